"""The conversation: hears what happens on the bus and decides what becomes of the answer in progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from orchestrator.bus.bus import Bus
from orchestrator.bus.envelope import Envelope
from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Brain, TurnInput
from orchestrator.contracts.events import (
    Event,
    InputContinued,
    InputInterrupt,
    InputSpeech,
    InputTranscript,
    InputTurnEnd,
    InputUser,
    ToolResult,
)
from orchestrator.contracts.ids import UtteranceId
from orchestrator.contracts.lanes import GenerationState, InterruptReason, Lane
from orchestrator.contracts.ports import SpeechPort, ViewSink
from orchestrator.contracts.views import UserTextView
from orchestrator.dialogue.attention import Attention, AttentionSettings, Heed
from orchestrator.dialogue.glue import glue
from orchestrator.dialogue.heard import HeardLedger
from orchestrator.dialogue.heeding import Heeding
from orchestrator.dialogue.held import HeldAnswers
from orchestrator.dialogue.interrupt_record import InterruptRecord
from orchestrator.dialogue.interruption import Decision, InterruptionTimes, Verdict
from orchestrator.dialogue.judge import Judge, input_of
from orchestrator.dialogue.ledger_turns import continuation, repetition
from orchestrator.dialogue.misheard import TYPED, Corrections
from orchestrator.dialogue.output_watch import OutputWatch
from orchestrator.dialogue.phrase_book import PhraseBook
from orchestrator.dialogue.quiet import Quiet
from orchestrator.dialogue.silence import SilenceTimer
from orchestrator.dialogue.speculation import Speculation
from orchestrator.dialogue.state_line import StateLine
from orchestrator.dialogue.thinking import Thinking
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.dialogue.turn_work import Script
from orchestrator.dialogue.utterances import Standing, Utterance, Utterances, turn_input
from orchestrator.dialogue.waiting_lines import WaitingLines
from orchestrator.generation import Generation, Generations
from orchestrator.speech.turn_text import Ending, ending_of

log = logging.getLogger(__name__)

WORDS_LIMIT_S = 10.0
"""How long after the end of the user's turn its words are waited for; a recogniser that takes longer is stuck."""


class Conversation:
    """Subscribes to the bus and steers the turn loop. Lives on the core loop; handlers never wait."""

    def __init__(
        self,
        *,
        bus: Bus,
        clock: Clock,
        generations: Generations,
        ledger: HeardLedger,
        turns: TurnLoop,
        speech: SpeechPort,
        views: ViewSink,
        brain: Callable[[], Brain],
        book: PhraseBook,
        thinking: Thinking,
        times: InterruptionTimes | None = None,
        may_speculate: Callable[[], bool] = lambda: True,
        attention: AttentionSettings | None = None,
    ) -> None:
        """Wire the handlers; nothing happens before the bus is attached.

        `may_speculate` tells whether an answer may be made ahead of the end of the user's turn; `attention` whom the
        character answers (default: everyone).
        """
        self._bus = bus
        self._generations = generations
        self._turns = turns
        self._speech = speech
        self._views = views
        self._brain = brain
        self._book = book
        self._times = times or InterruptionTimes()
        self._utterances = Utterances()
        self._kept = WaitingLines(bus, views)
        self._corrections = Corrections(views, turns.turn_of)
        self._silence = SilenceTimer(
            limit_s=lambda: self._brain().silence_timeout_s(),
            is_quiet=lambda: self.is_quiet,
            on_silence=lambda: self._turns.start(TurnInput(kind="silence"), on_end=self._on_answer_end),
        )
        self._output = OutputWatch(
            bus=bus,
            clock=clock,
            generations=generations,
            ledger=ledger,
            turns=turns,
            views=views,
            on_change=self.refresh,
            on_silence=self._on_output_silent,
        )
        self.speculation = Speculation(clock=clock, turns=turns, trace=bus.trace, may_begin=may_speculate)
        self.attention = Attention(
            settings=attention or AttentionSettings(), clock=clock, trace=bus.trace, on_change=self.refresh
        )
        self._heeding = Heeding(attention=self.attention, turns=turns, brain=brain, clock=clock)
        self.thinking = thinking
        self._line = StateLine(
            bus=bus,
            views=views,
            turns=turns,
            utterances=self._utterances,
            audible=lambda: self._output.audible,
            attention=lambda: self.attention.state,
        )
        self._record = InterruptRecord(bus, turns)
        self._judge = Judge(turns=turns, ledger=ledger, brain=brain)
        self._is_closing = False
        self.quiet = Quiet(clock=clock, length_s=lambda: self._times.quiet_after_stop_s)
        self.held = HeldAnswers(
            turns=turns,
            speech=speech,
            record=self._record,
            times=lambda: self._times,
            is_undecided=lambda: self._utterances.is_undecided,
            on_change=self.refresh,
        )
        self.idle_hooks: list[Callable[[], None]] = []
        for kind, handler in (
            (InputSpeech, self._on_speech),
            (InputInterrupt, self._on_interrupt),
            (InputTranscript, self._on_transcript),
            (InputTurnEnd, self._on_turn_end),
            (InputContinued, self._on_continued),
            (InputUser, self._on_user),
        ):
            bus.subscribe(kind, handler)
        bus.set_stale_check(self._is_stale)

    def set_phrases(self, book: PhraseBook, times: InterruptionTimes) -> None:
        """Use other phrases and times from now on."""
        self._book = book
        self._times = times

    @property
    def is_quiet(self) -> bool:
        """Whether neither the user nor the character has anything going on."""
        return self._turns.active is None and not self._utterances.is_undecided

    @property
    def is_user_busy(self) -> bool:
        """Whether the user speaks, or what they said is not understood yet."""
        return self._utterances.is_undecided

    def close(self) -> None:
        """Begin nothing new: the program ends."""
        self._is_closing = True
        self.held.disarm()
        self._silence.close()
        self.thinking.close()
        self.attention.close()
        self.held.cancel_aside(InterruptReason.SHUTDOWN)

    def refresh(self) -> None:
        """Tell the window and the bus the character's state if it has changed."""
        self._line.refresh()

    # --- the user's voice -------------------------------------------------------------------------------

    def _on_speech(self, envelope: Envelope) -> None:
        payload, utterance_id = envelope.event.payload, envelope.event.utterance_id
        if not isinstance(payload, InputSpeech) or utterance_id is None:
            return
        if payload.phase == "end":
            utterance = self._utterances.get(utterance_id)
            if utterance is not None:
                utterance.end_at_s = payload.at_s
            self.held.arm()
            return
        active = self._turns.active
        utterance = Utterance(
            utterance_id=utterance_id,
            onset_at_s=payload.at_s,
            during_output=payload.during_output,
            over_generation=active.generation_id if active is not None else None,
        )
        self._utterances.begin(utterance)
        self.held.disarm()
        self._silence.close()
        is_audible = active is not None and self._output.audible == active.generation_id
        is_silent = active is not None and not (active.sounded and is_audible)
        if active is not None and is_silent and not active.is_protected:
            self._hold_for(utterance, active)
        elif active is not None and active.state is GenerationState.SUSPENDED:
            utterance.holds = active.generation_id
        self._line.refresh()

    def _hold_for(self, utterance: Utterance, active: Generation) -> None:
        """Hold an answer of which nothing sounds that the ears could cut: before its first sound, or in a silence."""
        utterance.holds = active.generation_id
        if active.suspend("user_spoke_first"):
            self._speech.hold(active.generation_id)

    def _on_output_silent(self) -> None:
        """Hold for a user who began too softly to be noticed over the voice and still speaks into its silence."""
        active, utterance = self._turns.active, self._utterances.speaking()
        if active is not None and utterance is not None and not active.is_protected and not self._is_closing:
            self._hold_for(utterance, active)

    def _on_interrupt(self, envelope: Envelope) -> None:
        event = envelope.event
        payload = event.payload
        if not isinstance(payload, InputInterrupt):
            return
        active = self._turns.active
        if payload.reason in (InterruptReason.USER_STOP, InterruptReason.SHUTDOWN, InterruptReason.OUTPUT_FAILURE):
            self._stop_now(payload, event.utterance_id)
            return
        if active is None or active.is_protected:
            return
        if active.suspend(payload.by):
            self._speech.hold(active.generation_id)
        utterance = self._utterances.get(event.utterance_id) or self._utterances.newest()
        if utterance is not None:
            utterance.holds = active.generation_id
            utterance.by_ptt = utterance.by_ptt or payload.by == "ptt"
        else:
            self.held.arm()
        self._line.refresh()

    def _stop_now(self, payload: InputInterrupt, utterance_id: UtteranceId | None) -> None:
        active = self._turns.active
        self._kept.forget()
        self.speculation.discard("stopped")
        if payload.reason is InterruptReason.USER_STOP:
            self.quiet.begin()
        if active is not None:
            self._record.confirm(active, Verdict.STOP_ONLY, "words", None, utterance_id)
            self._cancel(active, payload.reason)
        self._turns.silence_apart(payload.reason)
        self._line.refresh()

    def _on_transcript(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        utterance = self._utterances.get(envelope.event.utterance_id)
        if not isinstance(payload, InputTranscript) or utterance is None:
            return
        if payload.final:
            utterance.final = payload
            self._decide_if_complete(utterance)
            return
        if not payload.text:
            return
        utterance.partial = payload.text
        if not self.attention.is_asleep:
            self._views.show(UserTextView(utterance_id=utterance.utterance_id, text=payload.text, final=False))
        if payload.provisional:
            self._speculate(utterance, payload)
        active = self._turns.active
        if active is None or active.state is GenerationState.SUSPENDED or self._output.audible != active.generation_id:
            return
        match = self._book.stop_phrase(payload.text)
        if match is not None and not active.is_protected:
            self._record.post(active, utterance.utterance_id, by="phrase", text=payload.text)

    def _on_continued(self, envelope: Envelope) -> None:
        self.speculation.discard("continued", envelope.event.utterance_id)

    def _speculate(self, utterance: Utterance, heard: InputTranscript) -> None:
        """Begin to answer what is the whole turn if the user says no more; an unfinished sentence is not."""
        if (
            self._is_closing
            or len(self._kept)
            or utterance is not self._utterances.only()
            or self._book.holds_turn(heard.text)
            or ending_of(heard.text) is Ending.OPEN
        ):
            return
        user = input_of(self._judge.decide(utterance, heard, self._book), utterance, heard.language)
        if user is not None and self._heeding.judge(user, utterance) is Heed.ANSWER:
            turn = turn_input(user, utterance.utterance_id)
            self.speculation.begin(turn, script=self._script_for(user.text))

    def _on_turn_end(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        utterance = self._utterances.get(envelope.event.utterance_id)
        if not isinstance(payload, InputTurnEnd) or utterance is None:
            return
        utterance.turn_end = payload
        utterance.by_ptt = utterance.by_ptt or payload.by == "ptt"
        self._decide_if_complete(utterance)
        if not utterance.is_complete and not self._is_closing:
            asyncio.get_running_loop().call_later(WORDS_LIMIT_S, self._on_words_overdue, utterance)
        self._line.refresh()

    def _on_words_overdue(self, utterance: Utterance) -> None:
        """Go on without the words of an utterance: what was held is resumed, and later words are not taken."""
        if self._is_closing or self._utterances.get(utterance.utterance_id) is not utterance:
            return
        self._utterances.close(utterance.utterance_id)
        self.speculation.discard("nothing", utterance.utterance_id)
        active = self._turns.active
        is_held = active is not None and active.state is GenerationState.SUSPENDED
        verdict = Verdict.RESUME if is_held else Verdict.KEEP
        self._views.show(UserTextView(utterance_id=utterance.utterance_id, text="", final=True))
        self._carry_out(Decision(verdict=verdict, because="timeout"), active, None, utterance.utterance_id)

    def _decide_if_complete(self, utterance: Utterance) -> None:
        final = utterance.final
        if not utterance.is_complete or final is None:
            return
        decision = self._judge.decide(utterance, final, self._book)
        self._utterances.close(utterance.utterance_id)
        user = input_of(decision, utterance, final.language)
        is_ignored = user is not None and not self._heeding.note(user, utterance)
        user = None if is_ignored else user
        shown = final.text.strip() if decision.because == "words" and not is_ignored else ""
        self._views.show(UserTextView(utterance_id=utterance.utterance_id, text=shown, final=True))
        if user is None:
            self.speculation.discard("nothing", utterance.utterance_id)
        self._carry_out(decision, self._turns.active, user, utterance.utterance_id)

    def _carry_out(
        self, decision: Decision, active: Generation | None, user: InputUser | None, utterance_id: UtteranceId
    ) -> None:
        is_joined = False
        if decision.verdict is Verdict.STOP_ONLY:
            self.quiet.begin()
            self._kept.forget()
        if active is not None:
            was_touched = decision.verdict is not Verdict.KEEP
            if was_touched:
                self._record.confirm(active, decision.verdict, decision.because, decision.input_text, utterance_id)
            if decision.verdict is Verdict.RESUME and not self._utterances.holding(active.generation_id):
                self.held.resume(active, decision.because)
            elif decision.verdict in (Verdict.CANCEL, Verdict.STOP_ONLY):
                is_joined = decision.is_joined and bool(self._turns.input_of(active))
                if is_joined and user is not None:
                    user = replace(user, text=glue(self._turns.input_of(active), user.text))
                self._cancel(active, InterruptReason.USER_BARGE_IN, is_joined=is_joined)
        if user is not None:
            said = Event(
                payload=user,
                source="dialogue",
                session_id=self._turns.session_id,
                utterance_id=utterance_id,
                coalesce_key="joined" if is_joined else None,
            )
            if decision.is_kept:
                self._kept.keep(said, user, self._book, str(utterance_id))
            else:
                self._bus.post(said)
        self._line.refresh()
        if user is None or decision.is_kept:
            self._when_quiet()

    # --- inputs -----------------------------------------------------------------------------------------

    def _on_user(self, envelope: Envelope) -> None:
        event = envelope.event
        payload = event.payload
        if not isinstance(payload, InputUser):
            return
        if payload.via in TYPED and event.dedupe_key is None:
            heeded = self._judge.after_stop_phrase(payload, self._book)
            if heeded is None:
                self._stop_by_line(payload, event)
                return
            payload = heeded
        said = self._corrections.heed(payload, event.utterance_id, self._brain())
        if said is not None:
            payload = replace(payload, text=said.text, corrects=None, corrects_turn=said.turn, interrupt_hint=None)
        active = self._turns.active
        standing = self._standing(active, payload, event, is_correction=said is not None)
        if standing is Standing.AFTER:
            self._keep(envelope, payload, active)
            return
        if envelope.lane is Lane.CONTROL or active is not None:
            hint = payload.interrupt_hint
            is_joined = event.coalesce_key == "joined"
            if active is not None:
                is_joined = standing is Standing.JOINED
                hint = hint or ("interrupted" if active.sounded else None)
                self._record.note(active, event.utterance_id, by=payload.via)
                if is_joined:
                    payload = replace(payload, text=glue(self._turns.input_of(active), payload.text))
                self._cancel(active, InterruptReason.TOPIC_CHANGE, is_joined=is_joined)
            self._bus.post(
                replace(
                    event,
                    payload=replace(payload, interrupt_hint=hint),
                    source="dialogue",
                    dedupe_key=f"{envelope.event_id}:again",
                    coalesce_key="joined" if is_joined else None,
                )
            )
            self._line.refresh()
            return
        self._begin(payload, event)

    def _standing(self, active: Generation | None, new: InputUser, event: Event, *, is_correction: bool) -> Standing:
        """Return what new words are to the input of the answer in the making, and to what waits behind it."""
        if active is not None and active.is_protected and active.sounded:
            return Standing.AFTER
        if is_correction or new.corrects_turn is not None:
            return Standing.INSTEAD
        before = self._turns.input_of(active) if active is not None and not active.sounded else ""
        return self._kept.standing(event, new, before, self._book)

    def _keep(self, envelope: Envelope, new: InputUser, active: Generation | None) -> None:
        """Let an input wait for the answers before it; one that sounds already is cut off by it."""
        self._kept.keep(envelope.event, new, self._book, envelope.event_id)
        if active is not None and active.sounded and not active.is_protected:
            self._record.note(active, envelope.event.utterance_id, by=new.via)
            self._cancel(active, InterruptReason.TOPIC_CHANGE)
        self._line.refresh()
        self._when_quiet()

    def _stop_by_line(self, payload: InputUser, event: Event) -> None:
        """Be silent: a line was typed that asks for it and for nothing else."""
        self._kept.show(event, payload)
        self._kept.forget()
        self.quiet.begin()
        active = self._turns.active
        if active is not None:
            self._record.confirm(active, Verdict.STOP_ONLY, "words", payload.text, event.utterance_id)
            self._cancel(active, InterruptReason.USER_STOP)
        self._line.refresh()

    def _begin(self, payload: InputUser, event: Event) -> None:
        if self._is_closing:
            return
        self._kept.show(event, payload)
        user = turn_input(payload, event.utterance_id)
        self.quiet.end()
        self._silence.disarm()
        is_joined = event.coalesce_key == "joined"
        replaces = payload.corrects_turn
        is_new = is_joined or replaces is not None
        generation = None if is_new else self.speculation.take(user, on_end=self._on_answer_end)
        if generation is None:
            script = self._heeding.script_for(payload, event) or self._script_for(payload.text)
            generation = self._turns.start(
                user, script=script, is_joined=is_joined, on_end=self._on_answer_end, replaces=replaces
            )
        self._corrections.note(payload.text, generation.generation_id, is_joined=is_joined)
        self.thinking.expect(self._times.thinking_after_s, payload.language)

    def _script_for(self, text: str) -> Script | None:
        """Return what answers "go on" and "say that again", which need no brain."""
        if self._book.is_go_on(text):
            return continuation(self._turns)
        return repetition(self._turns) if self._book.is_repeat(text) else None

    def _on_answer_end(self, generation: Generation) -> None:
        if not self._is_closing:
            self.attention.note_exchange()
        self._silence.arm()
        self._when_quiet()

    def _when_quiet(self) -> None:
        """Answer what was kept, else let notifications through, once neither side has anything going on."""
        if self._is_closing or not self.is_quiet:
            return
        if self._kept.post_next():
            return
        for hook in self.idle_hooks:
            hook()

    def _cancel(self, generation: Generation, reason: InterruptReason, *, is_joined: bool = False) -> None:
        """Cancel the answer in progress and, before it, what stood aside for it."""
        self.held.cancel_aside(reason)
        self._turns.cancel(generation, reason, is_joined=is_joined)

    # --- holding and going on ---------------------------------------------------------------------------

    def after_notification(self, notification: Generation) -> None:
        """Let the answer go on that stood aside, or end it if the notification was cut off by words."""
        self.held.come_back(notification)
        self._on_answer_end(notification)
        self._line.refresh()

    def _is_stale(self, envelope: Envelope) -> bool:
        """An interrupt for an answer that is over changes nothing; nor does what its tools return."""
        event = envelope.event
        if isinstance(event.payload, ToolResult):
            asker = self._generations.get(event.generation_id)
            return asker is None or asker.is_stale
        if not isinstance(event.payload, InputInterrupt) or event.target_generation_id is None:
            return False
        target = self._generations.get(event.target_generation_id)
        return target is None or not target.is_active
