"""An event with its place in the order."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.contracts.events import Event
from orchestrator.contracts.ids import EventId
from orchestrator.contracts.lanes import Lane, PriorityClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What travels. `created_at_s` is bus time; `expires_at_s` none means never; `order` is the arrival number."""

    event: Event
    event_id: EventId
    lane: Lane
    priority_class: PriorityClass
    priority_score: int
    policy_reason: str
    created_at_s: float
    expires_at_s: float | None
    coalesce_key: str | None
    order: int

    @property
    def type(self) -> str:
        """The event's public type name."""
        return self.event.payload.TYPE

    @property
    def preemptible(self) -> bool:
        """Whether lower work may be pre-empted by this event."""
        return self.event.preemptible
