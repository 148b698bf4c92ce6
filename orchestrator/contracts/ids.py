"""Identities carried by everything that belongs to a conversation."""

from __future__ import annotations

import itertools
import threading
from typing import NewType

SessionId = NewType("SessionId", str)
UtteranceId = NewType("UtteranceId", str)
GenerationId = NewType("GenerationId", str)
IntentId = NewType("IntentId", str)
CorrelationId = NewType("CorrelationId", str)
EventId = NewType("EventId", str)
CallId = NewType("CallId", str)
SnapshotId = NewType("SnapshotId", str)


class IdFactory:
    """Hands out ids that are unique within a process and, with the same prefix, the same in every run.

    Callable from any thread.
    """

    def __init__(self, prefix: str = "") -> None:
        """Put `prefix` (for instance a start stamp) into every id, so that ids of two runs differ."""
        self._prefix = prefix
        self._lock = threading.Lock()
        self._counters: dict[str, itertools.count[int]] = {}

    def _next(self, kind: str) -> str:
        with self._lock:
            counter = self._counters.setdefault(kind, itertools.count(1))
            return f"{kind}{self._prefix}-{next(counter)}"

    def session(self) -> SessionId:
        """Return a new session id."""
        return SessionId(self._next("s"))

    def utterance(self) -> UtteranceId:
        """Return a new utterance id."""
        return UtteranceId(self._next("u"))

    def generation(self) -> GenerationId:
        """Return a new generation id."""
        return GenerationId(self._next("g"))

    def intent(self) -> IntentId:
        """Return a new output intent id."""
        return IntentId(self._next("i"))

    def correlation(self) -> CorrelationId:
        """Return a new tool correlation id."""
        return CorrelationId(self._next("c"))

    def event(self) -> EventId:
        """Return a new event id."""
        return EventId(self._next("e"))

    def call(self) -> CallId:
        """Return a new model call id."""
        return CallId(self._next("k"))

    def snapshot(self) -> SnapshotId:
        """Return a new snapshot id."""
        return SnapshotId(self._next("n"))
