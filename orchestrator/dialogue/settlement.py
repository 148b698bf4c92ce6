"""How an answer that is over is settled: its output has stopped, its work has ended, and what was heard is stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.contracts.dialogue import TurnHeard
from orchestrator.contracts.events import AppError, Event, HistoryCommitted, Payload, TurnCommitted
from orchestrator.contracts.ids import SessionId
from orchestrator.dialogue.history import answer_entries
from orchestrator.dialogue.turn_work import TurnPorts, TurnWork
from orchestrator.generation import Generation

log = logging.getLogger(__name__)

ACK_LIMIT_S = 0.3
"""How long an answer's end waits for the output to say that it stopped; then it closes itself and reports a fault."""
END_LIMIT_S = 2.0
"""How long a cancelled answer's own work may take to unwind."""


class Settlement:
    """Waits for the end of answers and stores what was heard of them. Lives on the core loop."""

    def __init__(self, ports: TurnPorts) -> None:
        """Use `ports`."""
        self._ports = ports

    async def wait_for_end(self, work: TurnWork) -> None:
        """Wait until nothing of the answer sounds or works any more; what takes too long is reported and left."""
        generation = work.generation
        try:
            await asyncio.wait_for(generation.stopped.wait(), ACK_LIMIT_S)
        except TimeoutError:
            self.fault("output_ack_missing", "output", generation)
        await self.wait_for_task(generation)
        if work.storing is not None:
            await work.storing

    async def wait_for_task(self, generation: Generation) -> None:
        """Wait until the answer's own work has unwound."""
        task = generation.task
        if task is not None and not task.done():
            _, late = await asyncio.wait({task}, timeout=END_LIMIT_S)
            if late:
                self.fault("turn_does_not_end", "dialogue", generation)

    async def commit(self, work: TurnWork, outcome: str, session_id: SessionId) -> None:
        """Store what was heard and the state after it, in one transaction, and tell it."""
        ports, generation = self._ports, work.generation
        heard = ports.ledger.heard(generation.generation_id)
        sounded = any(message.sounded for message in heard)
        kind = {"cancelled": "interrupted"}.get(outcome, outcome)
        state: Mapping[str, Any] | None = None
        if work.pending is not None:
            state = work.pending.settle(TurnHeard(outcome=kind, messages=heard, joined=work.is_joined and not sounded))
        messages = ports.ledger.messages(generation.generation_id)
        # What failed is no answer; what a model said before it broke off is one, of which the rest is missing.
        entries = [] if outcome == "failed" and not work.is_cut_short else answer_entries(messages, outcome)
        version = await ports.history.commit_turn(
            session_id=session_id, generation_id=generation.generation_id, entries=entries, state=state
        )
        for entry in entries:
            self.emit(
                generation,
                HistoryCommitted(
                    role=entry.role,
                    status=entry.status,
                    text=entry.text,
                    heard_chars=len(entry.text),
                    full_chars=len(entry.text) + len(entry.unheard),
                ),
            )
        if outcome == "failed" and not entries:
            self.emit(
                generation, HistoryCommitted(role="assistant", status="failed", text="", heard_chars=0, full_chars=0)
            )
        self.emit(generation, TurnCommitted(effects=work.effects.done, state_version=version))

    def emit(self, generation: Generation, payload: Payload) -> None:
        """Tell an event of an answer."""
        self._ports.trace(
            Event(
                payload=payload,
                source="core",
                session_id=generation.session_id,
                utterance_id=generation.utterance_id,
                generation_id=generation.generation_id,
            )
        )

    def fault(self, code: str, part: str, generation: Generation | None = None) -> None:
        """Report what went wrong and can be lived with."""
        log.warning("%s: %s", part, code)
        event = Event(payload=AppError(code=code, part=part, recoverable=True, message=code), source="core")
        if generation is not None:
            event = replace(event, generation_id=generation.generation_id)
        self._ports.trace(event)
