"""The conversation as heard, in memory for prompts and in the store for good."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import HistoryEntry
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.ids import GenerationId, SessionId, UtteranceId
from orchestrator.dialogue.glue import glued
from orchestrator.dialogue.heard import SpokenMessage
from orchestrator.store import records
from orchestrator.store.database import Database

T = TypeVar("T")


class History:
    """Messages of the present session. Lives on the core loop; every commit is one transaction of the store.

    A store that takes nothing (a full disk) ends no conversation: it goes on from memory, and `on_failure` is told.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        keep: int = 200,
        on_failure: Callable[[PartFailed], None] = lambda error: None,
    ) -> None:
        """Keep the newest `keep` messages in memory; `on_failure` hears of each commit that failed."""
        self._database = database
        self._on_failure = on_failure
        self._clock = clock
        self._entries: deque[HistoryEntry] = deque(maxlen=keep)
        self._turns: deque[GenerationId] = deque(maxlen=keep)
        # The newest stored input of the user with its row; belongs to the store's work.
        self._stored: tuple[GenerationId | None, int] = (None, 0)
        self._last_user_of: GenerationId | None = None

    @property
    def entries(self) -> Sequence[HistoryEntry]:
        """Messages as heard, oldest first."""
        return tuple(self._entries)

    def last_answer(self) -> HistoryEntry | None:
        """Return the newest message of the character, None without one."""
        return next((entry for entry in reversed(self._entries) if entry.role == "assistant"), None)

    async def open_session(self, session_id: SessionId, *, carry_over: int = 0) -> None:
        """Begin a session; `carry_over` messages of before stay in view."""
        kept = list(zip(self._entries, self._turns, strict=True))[-carry_over:] if carry_over else []
        self.clear()
        for entry, turn in kept:
            self._append(entry, turn)
        now = self._clock.wall()
        await self._commit(lambda db: records.add_session(db, session_id, now))

    async def add_user(
        self,
        entry: HistoryEntry,
        *,
        session_id: SessionId,
        generation_id: GenerationId,
        utterance_id: UtteranceId | None,
        replaces: GenerationId | None = None,
    ) -> None:
        """Store what the user said, in place of what was said for the answer `replaces` (if that was stored)."""
        now = self._clock.wall()
        is_replacing = self.has_input_of(replaces)

        def work(db: sqlite3.Connection) -> None:
            # Asked here, in the store's own order: the answer before may have been cancelled while it was being stored.
            stored_of, row = self._stored
            has_row = is_replacing and stored_of == replaces
            if has_row and records.replace_text(db, row, text=entry.text, generation_id=generation_id):
                self._stored = generation_id, row
                return
            added = records.add_message(
                db, session_id=session_id, generation_id=generation_id, utterance_id=utterance_id, entry=entry, at=now
            )
            self._stored = generation_id, added

        if is_replacing:
            for index in range(len(self._entries) - 1, -1, -1):
                if self._entries[index].role == "user":
                    self._entries[index] = replace(self._entries[index], text=entry.text)
                    self._turns[index] = generation_id
                    break
        else:
            self._append(entry, generation_id)
        self._last_user_of = generation_id
        await self._commit(work)

    def has_input_of(self, generation_id: GenerationId | None) -> bool:
        """Whether the newest message of the user is the one `generation_id` was begun with."""
        return generation_id is not None and generation_id == self._last_user_of

    async def commit_turn(
        self,
        *,
        session_id: SessionId,
        generation_id: GenerationId,
        entries: Sequence[HistoryEntry],
        state: Mapping[str, Any] | None,
    ) -> int:
        """Store what was heard of an answer and the state after it, all or nothing; returns the state's version."""
        now = self._clock.wall()

        def work(db: sqlite3.Connection) -> int:
            for entry in entries:
                records.add_message(
                    db, session_id=session_id, generation_id=generation_id, utterance_id=None, entry=entry, at=now
                )
            return records.save_state(db, state) if state is not None else 0

        version = await self._commit(work) or 0
        for entry in entries:
            self._append(entry, generation_id)
        return version

    def turn_of(self, text: str) -> GenerationId | None:
        """Return the answer to the newest message of the user that reads `text`, None if it is not remembered."""
        wanted = text.strip().casefold()
        for entry, turn in zip(reversed(self._entries), reversed(self._turns), strict=True):
            if entry.role == "user" and entry.text.strip().casefold() == wanted:
                return turn
        return None

    async def withdraw(self, generation_id: GenerationId, *, by: GenerationId) -> None:
        """Take both sides of a misheard turn out of the conversation; the store marks them as replaced."""
        if self._last_user_of == generation_id:
            self._last_user_of = None
        kept = [pair for pair in zip(self._entries, self._turns, strict=True) if pair[1] != generation_id]
        self._entries.clear()
        self._turns.clear()
        for entry, turn in kept:
            self._append(entry, turn)
        await self._commit(lambda db: records.replace_turn(db, generation_id, by=by))

    async def save_state(self, state: Mapping[str, Any]) -> int:
        """Store the dialogue state alone; returns its version, 0 if it could not be stored."""
        return await self._commit(lambda db: records.save_state(db, state)) or 0

    async def _commit(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            return await self._database.transact(work)
        except PartFailed as error:
            self._on_failure(error)
            return None

    def clear(self) -> None:
        """Forget the messages in memory."""
        self._entries.clear()
        self._turns.clear()
        self._last_user_of = None

    def _append(self, entry: HistoryEntry, turn: GenerationId) -> None:
        self._entries.append(entry)
        self._turns.append(turn)


def answer_entries(spoken: Sequence[SpokenMessage], outcome: str) -> list[HistoryEntry]:
    """Return one message of the character for an answer, as far as it was heard; none when nothing was."""
    messages = [message for message in spoken if message.source != "error"]
    heard = glued(message.heard for message in messages)
    if not heard:
        return []
    unheard = glued(message.unheard for message in messages)
    is_whole = all(message.is_complete for message in messages)
    status = "completed" if is_whole and (outcome == "completed" or not unheard) else "interrupted"
    return [HistoryEntry(role="assistant", text=heard, status=status, unheard=unheard)]
