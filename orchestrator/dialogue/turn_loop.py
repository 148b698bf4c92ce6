"""Makes answers: from an input to a settled generation. One answer is active at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import (
    Brain,
    HistoryEntry,
    Llm,
    LlmUnavailable,
    Message,
    PendingTurn,
    Reminders,
    TurnHeard,
    TurnInput,
)
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import AppError, Event, HistoryCommitted, Payload, TurnCommitted
from orchestrator.contracts.ids import GenerationId, IdFactory, SessionId
from orchestrator.contracts.lanes import GenerationState, InterruptReason
from orchestrator.contracts.ports import PageOpener, SpeechPort, ViewSink
from orchestrator.contracts.views import GenerationEndedView
from orchestrator.dialogue.effects import TurnEffects
from orchestrator.dialogue.heard import HeardLedger
from orchestrator.dialogue.history import History
from orchestrator.dialogue.reply import SpeechReply
from orchestrator.dialogue.tool_results import ToolResults
from orchestrator.dialogue.tools.runner import ToolBox
from orchestrator.dialogue.turn_context import CoreTurn, Snapshot
from orchestrator.generation import Generation, Generations
from orchestrator.llm.reply_text import ReplyText
from orchestrator.store.database import Database

log = logging.getLogger(__name__)

ACK_LIMIT_S = 0.3
"""How long an answer's end waits for the output to say that it stopped; then it closes itself and reports a fault."""
_END_LIMIT_S = 2.0
"""How long a cancelled answer's own work may take to unwind."""


class Script(Protocol):
    """Speaks something without the brain: the unheard rest, the last answer, a notification, an apology."""

    async def __call__(self, turn: CoreTurn) -> None:
        """Speak it."""
        ...


@dataclass(slots=True)
class _Work:
    """What belongs to one generation while it lives."""

    generation: Generation
    user: TurnInput
    script: Script | None
    reply: SpeechReply
    effects: TurnEffects
    pending: PendingTurn | None = None
    run_is_over: bool = False
    failed_because: str | None = None
    is_joined: bool = False
    on_end: Callable[[Generation], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPorts:
    """What the turn loop needs from around it."""

    clock: Clock
    ids: IdFactory
    generations: Generations
    ledger: HeardLedger
    history: History
    database: Database
    speech: SpeechPort
    views: ViewSink
    brain: Callable[[], Brain]
    llm_for: Callable[[GenerationId, Callable[[Payload], None]], Llm]
    results: ToolResults
    reminders_for: Callable[[str], Reminders]
    make_pipe: Callable[[], ReplyText]
    trace: Callable[[Event], None]
    world: Callable[[], Mapping[str, Any]]
    facts: Callable[[], tuple[str, ...]]
    apology: Callable[[str | None, str | None], str]
    remember: Callable[[str], bool]
    tools: ToolBox | None = None
    page_opener: PageOpener | None = None


class TurnLoop:
    """Starts, watches, cancels and settles answers. Lives on the core loop."""

    def __init__(self, ports: TurnPorts, session_id: SessionId, on_change: Callable[[], None]) -> None:
        """Use `ports`; `on_change` is called when the active answer changed its state."""
        self._ports = ports
        self._on_change = on_change
        self.session_id = session_id
        self._work: dict[GenerationId, _Work] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self.active: Generation | None = None
        self._joined: GenerationId | None = None
        self._late: list[TurnEffects] = []

    # --- starting ---------------------------------------------------------------------------------------

    def start(
        self,
        user: TurnInput,
        *,
        script: Script | None = None,
        is_joined: bool = False,
        on_end: Callable[[Generation], None] | None = None,
    ) -> Generation:
        """Begin an answer to `user`; an active one must have been cancelled or finished before."""
        ports = self._ports
        previous = self.active
        generation = ports.generations.start(
            session_id=self.session_id, utterance_id=user.utterance_id, snapshot_id=ports.ids.snapshot()
        )
        self.active = generation
        reply = SpeechReply(
            generation=generation,
            ledger=ports.ledger,
            speech=ports.speech,
            ids=ports.ids,
            make_pipe=ports.make_pipe,
        )
        effects = TurnEffects(
            generation=generation, database=ports.database, clock=ports.clock, results=ports.results
        )
        work = _Work(generation=generation, user=user, script=script, reply=reply, effects=effects, on_end=on_end)
        self._work[generation.generation_id] = work
        joined, self._joined = self._joined if is_joined else None, None
        generation.task = asyncio.get_running_loop().create_task(
            self._run(work, previous, joined=joined), name=f"turn:{generation.generation_id}"
        )
        generation.task.add_done_callback(lambda _: self._on_run_over(work))
        self._on_change()
        return generation

    async def _run(self, work: _Work, previous: Generation | None, *, joined: GenerationId | None) -> None:
        await self._wait_for_settled(previous)
        turn = await self._snapshot(work, joined=joined)
        try:
            if work.script is not None:
                await work.script(turn)
            else:
                work.pending = self._ports.brain().begin(turn, work.user)
                await work.pending.run()
        except (asyncio.CancelledError, GenerationCancelled):
            raise
        except LlmUnavailable as error:
            await self._apologise(work, str(error.args[0]) if error.args else "unreachable", part="llm")
        except Exception:
            log.exception("a turn failed")
            await self._apologise(work, "internal", part="dialogue")

    async def _wait_for_settled(self, previous: Generation | None) -> None:
        def unsettled() -> Generation | None:
            ended = (work.generation for work in self._work.values() if work.generation.state.is_final)
            first = next((generation for generation in ended if not generation.settled.is_set()), None)
            if first is None and previous is not None and previous.generation_id not in self._work:
                first = previous if not previous.settled.is_set() else None
            return first

        try:
            async with asyncio.timeout(ACK_LIMIT_S + _END_LIMIT_S):
                while (waited := unsettled()) is not None:
                    await waited.settled.wait()
        except TimeoutError:
            self._fault("settle_timeout", "history")

    async def _snapshot(self, work: _Work, *, joined: GenerationId | None) -> CoreTurn:
        ports = self._ports
        generation, user = work.generation, work.user
        history = list(ports.history.entries)
        if ports.history.has_input_of(joined) and history and history[-1].role == "user":
            history.pop()
        if user.kind == "user" and (user.text or user.object is not None):
            entry = HistoryEntry(role="user", text=user.text, object=user.object)
            await ports.history.add_user(
                entry,
                session_id=self.session_id,
                generation_id=generation.generation_id,
                utterance_id=user.utterance_id,
                replaces=joined,
            )
            self._emit(
                generation,
                HistoryCommitted(
                    role="user",
                    status="completed",
                    text=user.text,
                    heard_chars=len(user.text),
                    full_chars=len(user.text),
                ),
            )
        snapshot = Snapshot(
            snapshot_id=generation.snapshot_id or ports.ids.snapshot(),
            now=ports.clock.wall(),
            history=tuple(history),
            world=dict(ports.world()),
            facts=ports.facts(),
        )
        llm = ports.llm_for(generation.generation_id, lambda payload: self._emit(generation, payload))
        reminders = ports.reminders_for(str(generation.generation_id))
        if ports.tools is not None:
            llm = ports.tools.with_tools(llm, generation=generation, effects=work.effects, reminders=reminders)
        return CoreTurn(
            generation=generation,
            snapshot=snapshot,
            utterance_id=user.utterance_id,
            reply=work.reply,
            llm=llm,
            effects=work.effects,
            reminders=reminders,
            trace=ports.trace,
            save_state=ports.history.save_state,
            remember=ports.remember,
            page_opener=ports.page_opener,
        )

    async def _apologise(self, work: _Work, code: str, *, part: str) -> None:
        """Say once, in the user's language, what failed and what to do; it is never stored as an answer."""
        text = self._ports.apology(code, work.user.language)
        work.failed_because = code
        self._emit(work.generation, AppError(code=f"{part}_{code}", part=part, recoverable=True, message=text))
        await work.reply.say(Message(text=text, source="error", language=work.user.language))

    # --- ending -----------------------------------------------------------------------------------------

    def cancel(self, generation: Generation, reason: InterruptReason | str, *, is_joined: bool = False) -> bool:
        """Cancel an answer now: stale at once, sound purged, model and tools aborted. False if it was final."""
        if not self._ports.generations.cancel(generation, reason):
            return False
        work = self._work.get(generation.generation_id)
        if work is not None:
            work.is_joined = is_joined
            self._joined = generation.generation_id if is_joined else None
            self._spawn_settle(work, "failed" if work.failed_because is not None else "cancelled")
        self._ports.speech.purge(generation.generation_id, str(reason))
        if self.active is generation:
            self.active = None
        self._on_change()
        return True

    def note_output_progress(self, generation_id: GenerationId | None) -> None:
        """Look whether an answer is over, after one of its intents was played or dropped."""
        work = self._work.get(generation_id) if generation_id is not None else None
        if work is None:
            return
        work.reply.note_progress()
        self._complete_if_done(work)

    def note_stopped(self, generation_id: GenerationId | None) -> None:
        """Take the output's word that nothing of an answer sounds any more."""
        generation = self._ports.generations.get(generation_id)
        if generation is not None:
            generation.stopped.set()

    async def shut_down(self) -> None:
        """Cancel what is active and wait, in bounded time, until everything is in history."""
        if self.active is not None:
            self.cancel(self.active, InterruptReason.SHUTDOWN)
        if self._settling:
            await asyncio.wait(set(self._settling), timeout=ACK_LIMIT_S + _END_LIMIT_S)
        for effects in [*self._late, *(work.effects for work in self._work.values())]:
            await effects.close(ACK_LIMIT_S)

    @property
    def is_settling(self) -> bool:
        """Whether any answer is not yet in history."""
        return any(not work.generation.settled.is_set() for work in self._work.values())

    def input_of(self, generation: Generation) -> str:
        """Return what the user said to get this answer, "" when it is forgotten."""
        work = self._work.get(generation.generation_id)
        return work.user.text if work is not None else ""

    @property
    def last_was_unfinished(self) -> bool:
        """Whether the newest interrupted answer was cut off while it was still being generated."""
        for work in reversed(self._work.values()):
            messages = self._ports.ledger.messages(work.generation.generation_id)
            if messages and work.generation.state.is_final:
                return not all(message.is_complete for message in messages)
        return False

    @property
    def last_heard_text(self) -> str:
        """The text of the newest answer that sounded, as far as it was generated."""
        for work in reversed(self._work.values()):
            parts = [message.text for message in self._ports.ledger.messages(work.generation.generation_id)]
            if parts:
                return " ".join(parts)
        return ""

    def _on_run_over(self, work: _Work) -> None:
        work.run_is_over = True
        if work.generation.is_active:
            task = work.generation.task
            if task is not None and not task.cancelled() and task.exception() is not None:
                work.failed_because = work.failed_because or "internal"
            self._complete_if_done(work)

    def _complete_if_done(self, work: _Work) -> None:
        generation = work.generation
        if not work.run_is_over or not generation.is_active or generation.state is GenerationState.SUSPENDED:
            return
        if not self._ports.ledger.is_drained(generation.generation_id):
            return
        if work.failed_because is not None:
            self._ports.generations.fail(generation, work.failed_because)
        else:
            self._ports.generations.complete(generation)
        generation.stopped.set()
        self._spawn_settle(work, "failed" if work.failed_because is not None else "completed")
        if self.active is generation:
            self.active = None
        self._on_change()

    def recheck(self, generation: Generation) -> None:
        """Look whether a resumed answer has nothing left to say."""
        work = self._work.get(generation.generation_id)
        if work is not None:
            self._complete_if_done(work)

    def _spawn_settle(self, work: _Work, outcome: str) -> None:
        task = asyncio.get_running_loop().create_task(
            self._settle(work, outcome), name=f"settle:{work.generation.generation_id}"
        )
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, work: _Work, outcome: str) -> None:
        generation = work.generation
        try:
            await self._wait_for_end(work)
            await self._commit(work, outcome)
        except Exception:
            log.exception("an answer could not be stored")
            self._fault("history_failed", "store")
        finally:
            generation.settled.set()
            self._ports.views.show(GenerationEndedView(generation_id=generation.generation_id, outcome=outcome))
            self._forget_settled()
            if work.on_end is not None:
                work.on_end(generation)
            self._on_change()

    async def _wait_for_end(self, work: _Work) -> None:
        generation = work.generation
        try:
            await asyncio.wait_for(generation.stopped.wait(), ACK_LIMIT_S)
        except TimeoutError:
            self._fault("output_ack_missing", "output", generation)
        task = generation.task
        if task is not None and not task.done():
            _, late = await asyncio.wait({task}, timeout=_END_LIMIT_S)
            if late:
                self._fault("turn_does_not_end", "dialogue", generation)

    async def _commit(self, work: _Work, outcome: str) -> None:
        ports, generation = self._ports, work.generation
        heard = ports.ledger.heard(generation.generation_id)
        sounded = any(message.sounded for message in heard)
        kind = {"cancelled": "interrupted"}.get(outcome, outcome)
        state: Mapping[str, Any] | None = None
        if work.pending is not None:
            state = work.pending.settle(TurnHeard(outcome=kind, messages=heard, joined=work.is_joined and not sounded))
        entries = [] if outcome == "failed" else self._entries(generation, outcome)
        version = await ports.history.commit_turn(
            session_id=self.session_id, generation_id=generation.generation_id, entries=entries, state=state
        )
        for entry in entries:
            self._emit(
                generation,
                HistoryCommitted(
                    role=entry.role,
                    status=entry.status,
                    text=entry.text,
                    heard_chars=len(entry.text),
                    full_chars=len(entry.text) + len(entry.unheard),
                ),
            )
        if outcome == "failed":
            self._emit(
                generation, HistoryCommitted(role="assistant", status="failed", text="", heard_chars=0, full_chars=0)
            )
        self._emit(generation, TurnCommitted(effects=work.effects.done, state_version=version))

    def _entries(self, generation: Generation, outcome: str) -> list[HistoryEntry]:
        """Return one assistant message for the answer, as far as it was heard; none when nothing was."""
        messages = [m for m in self._ports.ledger.messages(generation.generation_id) if m.source != "error"]
        heard = " ".join(part for part in (message.heard for message in messages) if part)
        if not heard:
            return []
        unheard = " ".join(part for part in (message.unheard for message in messages) if part)
        status = "completed" if outcome == "completed" or not unheard else "interrupted"
        if outcome == "cancelled" and not all(message.is_complete for message in messages):
            status = "interrupted"
        return [HistoryEntry(role="assistant", text=heard, status=status, unheard=unheard)]

    def _forget_settled(self) -> None:
        settled = [gid for gid, work in self._work.items() if work.generation.settled.is_set()]
        self._late = [effects for effects in self._late if effects.is_running]
        for gid in settled[:-8]:
            work = self._work.pop(gid)
            if work.effects.is_running:
                self._late.append(work.effects)

    # --- small things -----------------------------------------------------------------------------------

    def _emit(self, generation: Generation, payload: Payload) -> None:
        self._ports.trace(
            Event(
                payload=payload,
                source="core",
                session_id=generation.session_id,
                utterance_id=generation.utterance_id,
                generation_id=generation.generation_id,
            )
        )

    def _fault(self, code: str, part: str, generation: Generation | None = None) -> None:
        log.warning("%s: %s", part, code)
        event = Event(payload=AppError(code=code, part=part, recoverable=True, message=code), source="core")
        if generation is not None:
            event = replace(event, generation_id=generation.generation_id)
        self._ports.trace(event)
