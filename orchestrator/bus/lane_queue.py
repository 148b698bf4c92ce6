"""The waiting room of the bus: ordered by lane, score and arrival; bounded per type; not thread-safe by itself."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from orchestrator.bus.envelope import Envelope
from orchestrator.contracts.lanes import LANE_ORDER

_RANK = {lane: rank for rank, lane in enumerate(LANE_ORDER)}


@dataclass(order=True, slots=True)
class _Entry:
    key: tuple[int, int, int]
    envelope: Envelope | None = field(compare=False)
    not_before_s: float = field(compare=False, default=0.0)


class LaneQueue:
    """Holds waiting envelopes. A replaced or dropped entry stays as an empty shell until it surfaces."""

    def __init__(self) -> None:
        """Start empty."""
        self._heap: list[_Entry] = []
        self._by_key: dict[str, _Entry] = {}
        self._by_type: dict[str, list[_Entry]] = {}
        self._delayed: list[_Entry] = []
        self._count = 0

    def __len__(self) -> int:
        """Number of waiting envelopes."""
        return self._count

    def waiting(self, kind: str) -> int:
        """Number of waiting envelopes of one type."""
        return sum(1 for entry in self._by_type.get(kind, ()) if entry.envelope is not None)

    def push(self, envelope: Envelope, *, delay_until_s: float = 0.0) -> Envelope | None:
        """Add `envelope`; returns the one it replaces by its coalesce key, if any."""
        key = (_RANK[envelope.lane], -envelope.priority_score, envelope.order)
        replaced: Envelope | None = None
        if envelope.coalesce_key is not None:
            old = self._by_key.get(envelope.coalesce_key)
            if old is not None and old.envelope is not None:
                replaced = old.envelope
                delay_until_s = old.not_before_s
                self._empty(old)
        entry = _Entry(key, envelope, delay_until_s)
        if envelope.coalesce_key is not None:
            self._by_key[envelope.coalesce_key] = entry
        self._by_type.setdefault(envelope.type, []).append(entry)
        self._count += 1
        if delay_until_s > 0.0:
            self._delayed.append(entry)
        else:
            heapq.heappush(self._heap, entry)
        return replaced

    def evict_oldest(self, kind: str) -> Envelope | None:
        """Drop and return the waiting envelope of `kind` with the lowest score, the oldest among equals."""
        entries = [entry for entry in self._by_type.get(kind, ()) if entry.envelope is not None]
        if not entries:
            return None
        victim = max(entries, key=lambda e: (e.key[0], e.key[1], -e.key[2]))
        envelope = victim.envelope
        self._empty(victim)
        return envelope

    def release_delayed(self, now_s: float) -> float | None:
        """Move what is due into the order; returns when the next one is due."""
        still: list[_Entry] = []
        for entry in self._delayed:
            if entry.envelope is None:
                continue
            if entry.not_before_s <= now_s:
                heapq.heappush(self._heap, entry)
            else:
                still.append(entry)
        self._delayed = still
        return min((entry.not_before_s for entry in still), default=None)

    def pop(self) -> Envelope | None:
        """Take the first in the order, None when nothing is ready."""
        while self._heap:
            entry = heapq.heappop(self._heap)
            envelope = entry.envelope
            if envelope is None:
                continue
            self._empty(entry)
            return envelope
        return None

    def _empty(self, entry: _Entry) -> None:
        envelope = entry.envelope
        if envelope is None:
            return
        entry.envelope = None
        self._count -= 1
        if envelope.coalesce_key is not None and self._by_key.get(envelope.coalesce_key) is entry:
            del self._by_key[envelope.coalesce_key]
        entries = self._by_type[envelope.type]
        entries.remove(entry)
