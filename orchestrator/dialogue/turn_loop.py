"""Makes answers: from an input to a settled generation. One answer is active at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.contracts.dialogue import (
    CUT_SHORT,
    HistoryEntry,
    LlmUnavailable,
    Message,
    TurnInput,
)
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import AppError, Event, HistoryCommitted
from orchestrator.contracts.ids import GenerationId, SessionId
from orchestrator.contracts.lanes import GenerationState, InterruptReason
from orchestrator.contracts.views import GenerationEndedView
from orchestrator.dialogue.effects import TurnEffects
from orchestrator.dialogue.history import answer_entries
from orchestrator.dialogue.reply import SpeechReply
from orchestrator.dialogue.settlement import ACK_LIMIT_S, END_LIMIT_S, Settlement
from orchestrator.dialogue.turn_context import CoreTurn, Snapshot
from orchestrator.dialogue.turn_work import Script, TurnPorts, TurnWork
from orchestrator.flows.texts import language_of
from orchestrator.generation import Generation

log = logging.getLogger(__name__)

_MOST_KEPT = 256


class TurnLoop:
    """Starts, watches, cancels and settles answers. Lives on the core loop."""

    def __init__(self, ports: TurnPorts, session_id: SessionId, on_change: Callable[[], None]) -> None:
        """Use `ports`; `on_change` is called when the active answer changed its state."""
        self._ports = ports
        self._on_change = on_change
        self._settlement = Settlement(ports)
        self.session_id = session_id
        self._work: dict[GenerationId, TurnWork] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self.active: Generation | None = None
        self.speculative: Generation | None = None
        self.on_discarded: Callable[[Generation, str], None] | None = None
        self._joined: GenerationId | None = None
        self._late: list[TurnEffects] = []
        self._apart: GenerationId | None = None

    # --- starting ---------------------------------------------------------------------------------------

    def start(
        self,
        user: TurnInput,
        *,
        script: Script | None = None,
        is_joined: bool = False,
        on_end: Callable[[Generation], None] | None = None,
        is_speculative: bool = False,
        replaces: GenerationId | None = None,
    ) -> Generation:
        """Begin an answer to `user`; an active one must have been cancelled or finished before.

        `replaces` is a misheard turn that is taken again: neither its words nor its answer count any more. A joined one
        takes over what the one before it was in place of.

        A speculative one is not the active one; it ends with `confirm` or `discard`, at the latest when a real one
        begins.
        """
        ports = self._ports
        if self.speculative is not None:
            self.discard(self.speculative, "turn")
        previous = self.active
        generation = ports.generations.start(
            session_id=self.session_id,
            utterance_id=user.utterance_id,
            snapshot_id=ports.ids.snapshot(),
            speculative=is_speculative,
        )
        if is_speculative:
            self.speculative = generation
        else:
            self.active = generation
        reply = SpeechReply(
            generation=generation,
            ledger=ports.ledger,
            speech=ports.speech,
            ids=ports.ids,
            make_pipe=ports.make_pipe,
        )
        effects = TurnEffects(generation=generation, database=ports.database, clock=ports.clock, results=ports.results)
        joined, self._joined = self._joined if is_joined else None, None
        if replaces is None and joined is not None and joined in self._work:
            replaces = self._work[joined].replaces
        work = TurnWork(
            generation=generation,
            user=user,
            script=script,
            reply=reply,
            effects=effects,
            on_end=on_end,
            replaces=replaces,
        )
        self._work[generation.generation_id] = work
        generation.task = asyncio.get_running_loop().create_task(
            self._run(work, previous, joined=joined), name=f"turn:{generation.generation_id}"
        )
        generation.task.add_done_callback(lambda _: self._on_run_over(work))
        if not is_speculative:
            self._on_change()
        return generation

    @property
    def may_speculate(self) -> bool:
        """Whether nothing is going on that a new answer would have to wait for."""
        works = self._work.values()
        return self.active is None and all(w.generation.settled.is_set() or w.generation.is_speculative for w in works)

    def on_first_piece(self, generation: Generation, call: Callable[[], None]) -> None:
        """Let `call` be called when the first piece of a speculative answer is there."""
        work = self._work.get(generation.generation_id)
        if work is not None:
            work.reply.on_first_piece = call

    def confirm(self, generation: Generation, *, on_end: Callable[[Generation], None] | None = None) -> bool:
        """Make the speculative answer the active one and let out what it kept back; False if it is over."""
        work = self._work.get(generation.generation_id)
        if self.speculative is not generation or work is None or not generation.is_active:
            return False
        self.speculative = None
        self.active = generation
        work.on_end = on_end
        # Begun before the answer goes on, so that the user's words are stored before anything that follows from them.
        work.storing = asyncio.get_running_loop().create_task(
            self._store_kept(work), name=f"store:{generation.generation_id}"
        )
        generation.confirm()
        for event in work.kept:
            self._ports.trace(event)
        work.kept.clear()
        self._on_change()
        self._complete_if_done(work)
        return True

    def discard(self, generation: Generation, because: str) -> bool:
        """Throw a speculative answer away: nothing of it is heard, shown or stored. False if it is none any more."""
        work = self._work.get(generation.generation_id)
        if self.speculative is not generation or work is None:
            return False
        self.speculative = None
        self._ports.generations.cancel(generation, f"speculation_{because}")
        task = asyncio.get_running_loop().create_task(
            self._clear_away(work), name=f"discard:{generation.generation_id}"
        )
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        if self.on_discarded is not None:
            self.on_discarded(generation, because)
        return True

    async def _clear_away(self, work: TurnWork) -> None:
        generation = work.generation
        try:
            await self._settlement.wait_for_task(generation)
        finally:
            self._ports.ledger.forget(generation.generation_id)
            generation.stopped.set()
            generation.settled.set()
            self._work.pop(generation.generation_id, None)

    async def _run(self, work: TurnWork, previous: Generation | None, *, joined: GenerationId | None) -> None:
        try:
            await self._wait_for_settled(previous)
            if work.replaces is not None:
                await self._take_back(work.replaces, by=work.generation.generation_id)
            turn = await self._snapshot(work, joined=joined)
            if work.script is not None:
                await work.script(turn)
            else:
                brain = self._ports.brain()
                work.before = brain.dump_state()
                work.pending = brain.begin(turn, work.user)
                await work.pending.run()
        except (asyncio.CancelledError, GenerationCancelled):
            raise
        except LlmUnavailable as error:
            await self._apologise(work, str(error.args[0]) if error.args else "unreachable", part="llm")
        except Exception:
            log.exception("a turn failed")
            await self._apologise(work, "internal", part="dialogue")

    async def _take_back(self, generation_id: GenerationId, *, by: GenerationId) -> None:
        """Make it as if a misheard turn had not been; what it did to the world stays, and so does its trace."""
        turns = [
            gid
            for gid, work in self._work.items()
            if not work.generation.is_speculative and not work.is_joined and gid != by
        ]
        work = self._work.get(generation_id)
        is_last = bool(turns) and turns[-1] == generation_id
        if work is not None and is_last and work.before is not None and not work.effects.done:
            self._ports.brain().load_state(work.before)
        await self._ports.history.withdraw(generation_id, by=by)

    async def _wait_for_settled(self, previous: Generation | None) -> None:
        def unsettled() -> Generation | None:
            ended = (work.generation for work in self._work.values() if work.generation.state.is_final)
            first = next((generation for generation in ended if not generation.settled.is_set()), None)
            if first is None and previous is not None and previous.generation_id not in self._work:
                first = previous if not previous.settled.is_set() else None
            return first

        try:
            async with asyncio.timeout(ACK_LIMIT_S + END_LIMIT_S):
                while (waited := unsettled()) is not None:
                    await waited.settled.wait()
        except TimeoutError:
            self._settlement.fault("settle_timeout", "history")

    async def _snapshot(self, work: TurnWork, *, joined: GenerationId | None) -> CoreTurn:
        ports = self._ports
        generation, user = work.generation, work.user
        history = list(ports.history.entries)
        if ports.history.has_input_of(joined) and history and history[-1].role == "user":
            history.pop()
        if not generation.is_speculative:
            await self._store_input(work, joined)
        snapshot = Snapshot(
            snapshot_id=generation.snapshot_id or ports.ids.snapshot(),
            now=ports.clock.wall(),
            history=tuple(history),
            world=dict(ports.world()),
            facts=ports.facts(),
        )
        llm = ports.llm_for(generation.generation_id, lambda payload: self._settlement.emit(generation, payload))
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
            trace=lambda event: self._tell(work, event),
            save_state=lambda state: self._save_state(work, state),
            remember=ports.remember,
            page_opener=ports.page_opener,
        )

    async def _store_input(self, work: TurnWork, joined: GenerationId | None) -> None:
        generation, user = work.generation, work.user
        if user.kind != "user" or (not user.text and user.object is None):
            return
        entry = HistoryEntry(role="user", text=user.text, object=user.object)
        await self._ports.history.add_user(
            entry,
            session_id=self.session_id,
            generation_id=generation.generation_id,
            utterance_id=user.utterance_id,
            replaces=joined,
        )
        size = len(user.text)
        committed = HistoryCommitted(role="user", status="completed", text=user.text, heard_chars=size, full_chars=size)
        self._settlement.emit(generation, committed)

    async def _store_kept(self, work: TurnWork) -> None:
        """Store what a speculative answer could not: the user's words, and the state that must not wait."""
        try:
            await self._store_input(work, None)
            if work.early_state is not None and not work.generation.is_stale:
                await self._ports.history.save_state(work.early_state)
        except Exception:
            log.exception("the user's words could not be stored")
            self._settlement.fault("history_failed", "store")

    def _tell(self, work: TurnWork, event: Event) -> None:
        """Put what a turn says of itself into the record; what a speculative one says waits for its confirmation."""
        if not work.generation.is_speculative:
            self._ports.trace(event)
        elif len(work.kept) < _MOST_KEPT:
            work.kept.append(event)

    async def _save_state(self, work: TurnWork, state: Mapping[str, Any]) -> None:
        if work.generation.is_speculative:
            work.early_state = dict(state)
            return
        if work.storing is not None:
            await work.storing
        await self._ports.history.save_state(state)

    async def _apologise(self, work: TurnWork, code: str, *, part: str) -> None:
        """Say once, in the user's language, what failed and what to do; it is never stored as an answer."""
        await work.generation.confirmed.wait()
        # A typed line says its language by its words alone.
        language = language_of(work.user.text, work.user.language)
        text = self._ports.apology(code, language)
        work.failed_because = code
        work.is_cut_short = code == CUT_SHORT
        self._settlement.emit(
            work.generation, AppError(code=f"{part}_{code}", part=part, recoverable=True, message=text)
        )
        await work.reply.say(Message(text=text, source="error", language=language))

    # --- ending -----------------------------------------------------------------------------------------

    def cancel(self, generation: Generation, reason: InterruptReason | str, *, is_joined: bool = False) -> bool:
        """Cancel an answer now: stale at once, sound purged, model and tools aborted. False if it was final."""
        if not self._ports.generations.cancel(generation, reason):
            return False
        work = self._work.get(generation.generation_id)
        if work is not None:
            work.is_joined = is_joined
            self._joined = generation.generation_id if is_joined else None
            self._spawn_settle(work, work.outcome_of("cancelled"))
        # That it stopped when it was held earlier says nothing about what has sounded since.
        generation.stopped.clear()
        self._ports.speech.purge(generation.generation_id, str(reason))
        if self.active is generation:
            self.active = None
        self._on_change()
        return True

    def note_apart(self, generation_id: GenerationId) -> None:
        """Know of speech outside the conversation, a sample of the voice, say: a stop silences it, too."""
        self._apart = generation_id

    def silence_apart(self, reason: InterruptReason) -> None:
        """Stop such speech."""
        if self._apart is not None:
            self._ports.speech.purge(self._apart, str(reason))
            self._apart = None

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
        if self.speculative is not None:
            self.discard(self.speculative, "shutdown")
        if self.active is not None:
            self.cancel(self.active, InterruptReason.SHUTDOWN)
        if self._settling:
            await asyncio.wait(set(self._settling), timeout=ACK_LIMIT_S + END_LIMIT_S)
        for effects in [*self._late, *(work.effects for work in self._work.values())]:
            await effects.close(ACK_LIMIT_S)

    @property
    def is_settling(self) -> bool:
        """Whether any answer is not yet in history."""
        return any(not work.generation.settled.is_set() for work in self._work.values())

    def turn_of(self, text: str) -> GenerationId | None:
        """Return the answer to the newest line of the user that reads `text`, None if it is not remembered."""
        return self._ports.history.turn_of(text)

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

    def broken_off(self) -> HistoryEntry | None:
        """Return what the newest answer had said when it failed half-way, None if it did not; history has none."""
        for work in reversed(self._work.values()):
            spoken = self._ports.ledger.messages(work.generation.generation_id)
            if spoken and work.generation.settled.is_set():
                is_broken = work.failed_because is not None and not work.is_cut_short
                entries = answer_entries(spoken, "failed") if is_broken else []
                return entries[0] if entries else None
        return None

    @property
    def last_heard_text(self) -> str:
        """The text of the newest answer that sounded, as far as it was generated."""
        for work in reversed(self._work.values()):
            parts = [message.text for message in self._ports.ledger.messages(work.generation.generation_id)]
            if parts:
                return " ".join(parts)
        return ""

    def _on_run_over(self, work: TurnWork) -> None:
        work.run_is_over = True
        if work.generation.is_active:
            task = work.generation.task
            if task is not None and not task.cancelled() and task.exception() is not None:
                work.failed_because = work.failed_because or "internal"
            self._complete_if_done(work)

    def _complete_if_done(self, work: TurnWork) -> None:
        generation = work.generation
        if not work.run_is_over or not generation.is_active or generation.state is GenerationState.SUSPENDED:
            return
        if generation.is_speculative:
            return
        if not self._ports.ledger.is_drained(generation.generation_id):
            return
        if work.failed_because is not None:
            self._ports.generations.fail(generation, work.failed_because)
        else:
            self._ports.generations.complete(generation)
        generation.stopped.set()
        self._spawn_settle(work, work.outcome_of("completed"))
        if self.active is generation:
            self.active = None
        self._on_change()

    def recheck(self, generation: Generation) -> None:
        """Look whether a resumed answer has nothing left to say."""
        work = self._work.get(generation.generation_id)
        if work is not None:
            self._complete_if_done(work)

    def _spawn_settle(self, work: TurnWork, outcome: str) -> None:
        task = asyncio.get_running_loop().create_task(
            self._settle(work, outcome), name=f"settle:{work.generation.generation_id}"
        )
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, work: TurnWork, outcome: str) -> None:
        generation = work.generation
        try:
            await self._settlement.wait_for_end(work)
            await self._settlement.commit(work, outcome, self.session_id)
        except Exception:
            log.exception("an answer could not be stored")
            self._settlement.fault("history_failed", "store")
        finally:
            generation.settled.set()
            self._ports.views.show(GenerationEndedView(generation_id=generation.generation_id, outcome=outcome))
            self._forget_settled()
            if work.on_end is not None:
                work.on_end(generation)
            self._on_change()

    def _forget_settled(self) -> None:
        settled = [gid for gid, work in self._work.items() if work.generation.settled.is_set()]
        self._late = [effects for effects in self._late if effects.is_running]
        for gid in settled[:-8]:
            work = self._work.pop(gid)
            if work.effects.is_running:
                self._late.append(work.effects)
