"""What the player has to tell, collected under its lock and told without it, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from orchestrator.contracts.events import Event, Payload
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.ports import EventSink


class PlayerListener(Protocol):
    """Hears of the life of the segments; called by the thread that polls, holds or purges, without a lock."""

    def on_playing(self, intent_id: IntentId) -> None:
        """The sound of the intent began or goes on."""
        ...

    def on_held(self, generation_id: GenerationId) -> None:
        """The sound of the generation was stopped and is kept."""
        ...

    def on_played(self, intent_id: IntentId) -> None:
        """The last sample of the intent has sounded."""
        ...


class Outbox:
    """Events and calls of one player. `tell` and `call` are used under the player's lock, `flush` without it."""

    def __init__(
        self, events: EventSink, source: str, lock: threading.Lock, listener: PlayerListener | None = None
    ) -> None:
        """Post to `events` as `source`; `lock` is the player's."""
        self._events = events
        self._source = source
        self._lock = lock
        self.listener = listener
        # Keeps the order of events when two threads post at once; re-entrant, for sinks that act at once.
        self._order = threading.RLock()
        self._told: list[Event] = []
        self._calls: list[Callable[[PlayerListener], None]] = []

    def tell(
        self, payload: Payload, generation_id: GenerationId | None = None, intent_id: IntentId | None = None
    ) -> None:
        """Have `payload` posted."""
        self._told.append(Event(payload=payload, source=self._source, generation_id=generation_id, intent_id=intent_id))

    def playing(self, intent_id: IntentId) -> None:
        """Have the listener hear that the intent sounds."""
        self._calls.append(lambda listener: listener.on_playing(intent_id))

    def held(self, generation_id: GenerationId) -> None:
        """Have the listener hear that the generation is held."""
        self._calls.append(lambda listener: listener.on_held(generation_id))

    def played(self, intent_id: IntentId) -> None:
        """Have the listener hear that the intent has sounded to its end."""
        self._calls.append(lambda listener: listener.on_played(intent_id))

    def flush(self) -> None:
        """Post and call what has been collected."""
        with self._order:
            with self._lock:
                told, self._told = self._told, []
                calls, self._calls = self._calls, []
            for event in told:
                self._events.post(event)
        listener = self.listener
        if listener is not None:
            for call in calls:
                call(listener)
