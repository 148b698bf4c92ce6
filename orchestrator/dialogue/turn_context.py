"""What one turn may use: the `TurnContext` of the running program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.contracts.dialogue import Effects, HistoryEntry, Llm, Reminders, Reply
from orchestrator.contracts.events import Event, Payload
from orchestrator.contracts.ids import CorrelationId, GenerationId, SnapshotId, UtteranceId
from orchestrator.contracts.ports import PageOpener
from orchestrator.generation import Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was known when the answer was begun; an answer never sees newer things than its snapshot."""

    snapshot_id: SnapshotId
    now: datetime
    history: Sequence[HistoryEntry]
    world: Mapping[str, Any]
    facts: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTurn:
    """The `TurnContext` of a real generation.

    `remember` hands a fact to the memory, False if it takes none; `page_opener` is None where no page can be opened.
    """

    generation: Generation
    snapshot: Snapshot
    utterance_id: UtteranceId | None
    reply: Reply
    llm: Llm
    effects: Effects
    reminders: Reminders
    trace: Callable[[Event], None]
    save_state: Callable[[Mapping[str, Any]], Any]
    remember: Callable[[str], bool]
    page_opener: PageOpener | None = None

    @property
    def generation_id(self) -> GenerationId:
        """The answer this turn makes."""
        return self.generation.generation_id

    @property
    def now(self) -> datetime:
        """Wall time of the snapshot."""
        return self.snapshot.now

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """The conversation as heard."""
        return self.snapshot.history

    @property
    def world(self) -> Mapping[str, Any]:
        """Newest context values by source."""
        return self.snapshot.world

    @property
    def facts(self) -> Sequence[str]:
        """Remembered facts, newest first."""
        return self.snapshot.facts

    @property
    def is_speculative(self) -> bool:
        """Whether the end of the user's turn is not confirmed yet."""
        return self.generation.is_speculative

    async def confirmed(self) -> None:
        """Wait until the answer is wanted for certain."""
        self.generation.check()
        await self.generation.confirmed.wait()
        self.generation.check()

    def check(self) -> None:
        """Raise `GenerationCancelled` if the answer is no longer wanted."""
        self.generation.check()

    def emit(self, payload: Payload, *, correlation_id: CorrelationId | None = None) -> None:
        """Put a fact with the turn's ids into the events file."""
        self.trace(
            Event(
                payload=payload,
                source="core",
                session_id=self.generation.session_id,
                utterance_id=self.utterance_id,
                generation_id=self.generation.generation_id,
                correlation_id=correlation_id,
            )
        )

    async def commit_early(self, state: Mapping[str, Any]) -> None:
        """Store the part of the dialogue state that must not wait; a speculative answer's once it is confirmed."""
        self.generation.check()
        await self.save_state(state)
