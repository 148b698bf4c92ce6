"""The policy table: which way an event travels. Program rules only; no model decides real-time priority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.contracts.events import Event, NotifyRequested
from orchestrator.contracts.lanes import Lane, PriorityClass


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """How events of one type travel.

    `expires_after_s` drops what waited longer; `coalesce_key` names a payload field (or `type`) by whose value waiting
    events replace each other; `coalesce_window_s` delays the first of a key so that followers can replace it;
    `max_waiting` bounds how many wait (the oldest of the lowest score is dropped); `drop_when_busy` drops the event
    while an answer is being made or spoken.
    """

    lane: Lane
    score: int
    priority_class: PriorityClass | None = None
    expires_after_s: float | None = None
    coalesce_key: str | None = None
    coalesce_window_s: float = 0.0
    max_waiting: int | None = None
    drop_when_busy: bool = False


def class_of(lane: Lane, score: int) -> PriorityClass:
    """Return the informational class that follows from lane and score."""
    if lane is Lane.CONTROL and score >= 950:
        return PriorityClass.CRITICAL
    if score >= 600:
        return PriorityClass.HIGH
    if score >= 200:
        return PriorityClass.NORMAL
    return PriorityClass.LOW


_C, _D, _A = Lane.CONTROL, Lane.DIALOGUE, Lane.ACTIVE_GENERATION
_N, _X, _B = Lane.NOTIFICATION, Lane.CONTEXT, Lane.BACKGROUND

DEFAULT_ROWS: Mapping[str, PolicyRow] = {
    "input:interrupt": PolicyRow(lane=_C, score=1000, expires_after_s=2.0, coalesce_key="reason"),
    "output:cut": PolicyRow(lane=_C, score=990),
    "output:state/acknowledgement": PolicyRow(lane=_C, score=985),
    "output:word": PolicyRow(lane=_C, score=980),
    "intent:state": PolicyRow(lane=_C, score=980),
    "output:first_sound": PolicyRow(lane=_C, score=980),
    "output:resume": PolicyRow(lane=_C, score=980),
    "output:duck": PolicyRow(lane=_C, score=970),
    "output:unduck": PolicyRow(lane=_C, score=970),
    "input:speech": PolicyRow(lane=_C, score=960),
    "input:continued": PolicyRow(lane=_C, score=955),
    "input:turn_end": PolicyRow(lane=_C, score=950),
    "input:transcript": PolicyRow(lane=_C, score=940),
    "input:user/speaking": PolicyRow(lane=_C, score=930),
    "input:user": PolicyRow(lane=_D, score=800),
    "notify/urgent": PolicyRow(lane=_N, score=650, expires_after_s=3600.0, max_waiting=32),
    "tool:result": PolicyRow(lane=_A, score=500),
    "notify": PolicyRow(lane=_N, score=400, expires_after_s=3600.0, max_waiting=32),
    "external:event": PolicyRow(lane=_N, score=450, expires_after_s=60.0, max_waiting=64),
    "input:object": PolicyRow(lane=_D, score=700),
    "output:state": PolicyRow(lane=_X, score=300),
    "device:state": PolicyRow(lane=_X, score=290),
    "context:update": PolicyRow(lane=_X, score=100, coalesce_key="origin", max_waiting=64),
    "memory:write": PolicyRow(lane=_B, score=20, max_waiting=64, drop_when_busy=False),
    "tts:first_pcm": PolicyRow(lane=_B, score=10),
    "app:error": PolicyRow(lane=_C, score=945),
}
"""Shipped values, also in `flow_config/policy.yml`; the file wins."""

_FALLBACK = PolicyRow(lane=Lane.BACKGROUND, score=10, max_waiting=256)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTable:
    """All rows by type, some with a variant (`input:user/speaking`)."""

    rows: Mapping[str, PolicyRow] = field(default_factory=lambda: DEFAULT_ROWS)

    def place(self, event: Event, *, output_is_speaking: bool) -> tuple[PolicyRow, str]:
        """Return the row for `event` and the rule's name; the same event always gets the same place."""
        kind = event.payload.TYPE
        variant = self._variant(event, output_is_speaking=output_is_speaking)
        if variant is not None:
            row = self.rows.get(f"{kind}/{variant}")
            if row is not None:
                return row, f"{kind}/{variant}"
        row = self.rows.get(kind)
        if row is not None:
            return row, kind
        return _FALLBACK, "default"

    @staticmethod
    def _variant(event: Event, *, output_is_speaking: bool) -> str | None:
        payload = event.payload
        if isinstance(payload, NotifyRequested):
            return "urgent" if payload.urgent else None
        if payload.TYPE == "input:user" and output_is_speaking and not event.dedupe_key:
            return "speaking"
        if payload.TYPE == "output:state" and event.generation_id is not None:
            return "acknowledgement"
        return None


def coalesce_key_of(row: PolicyRow, event: Event) -> str | None:
    """Return the key by which `event` replaces a waiting one, None if it never does."""
    if event.coalesce_key is not None:
        return f"{event.payload.TYPE}:{event.coalesce_key}"
    if row.coalesce_key is None:
        return None
    if row.coalesce_key == "type":
        return event.payload.TYPE
    value = getattr(event.payload, row.coalesce_key, None)
    target = f":{event.target_generation_id}" if event.target_generation_id is not None else ""
    return f"{event.payload.TYPE}:{value}{target}"
