"""What the user, the model, tools and devices do to the conversation rig."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rigs.conversation_parts import RATE_HZ, ModelCall

from orchestrator.contracts.commands import SendText, Stop
from orchestrator.contracts.events import (
    Event,
    InputContinued,
    InputInterrupt,
    InputSpeech,
    InputTranscript,
    InputTurnEnd,
    Payload,
)
from orchestrator.contracts.ids import GenerationId, UtteranceId
from orchestrator.contracts.lanes import InterruptReason

BLOCK_S = 160 / RATE_HZ


@dataclass(slots=True)
class OpenUtterance:
    """What the ears still owe of an utterance."""

    utterance_id: UtteranceId
    ended: bool = False
    turn_ended: bool = False
    transcribed: bool = False
    cut: bool = False


class Acts:
    """Mixed into the rig; all methods are called from outside the loop."""

    if TYPE_CHECKING:
        # What the rig itself has.
        def __getattr__(self, name: str) -> Any: ...

    _words: Iterator[int] = itertools.count(1)
    utterance: OpenUtterance | None = None

    # --- the user -----------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Send a typed line."""
        self.do(lambda: self.core.handle(SendText(text=text)))

    def stop_button(self) -> None:
        """Press stop: the player hears of it directly, too."""

        def press() -> None:
            self.player.cut()
            self.core.handle(Stop())

        self.do(press)

    def post(self, payload: Payload, **fields: Any) -> bool:
        """Post an event from outside."""
        return bool(self.do(lambda: self.bus.post(Event(payload=payload, source="rig", **fields))))

    def begin_to_speak(self) -> OpenUtterance:
        """The user begins; whoever was speaking before has to be finished."""
        assert self.utterance is None
        self.utterance = OpenUtterance(self.ids.utterance())
        during = self.player.audible() is not None
        self.post(
            InputSpeech(phase="onset", at_s=self.clock.monotonic_s(), vad=0.9, during_output=during),
            utterance_id=self.utterance.utterance_id,
        )
        return self.utterance

    def vad_cut(self, by: str = "vad") -> GenerationId | None:
        """The ears are sure: the player is cut at once, the core is told."""
        utterance = self.utterance
        audible = self.player.audible()
        if audible is None or not audible.interruptible:
            return None

        def cut() -> GenerationId | None:
            generation_id = self.player.cut()
            self.bus.post(
                Event(
                    payload=InputInterrupt(reason=InterruptReason.USER_BARGE_IN, by=by),
                    source="ears",
                    utterance_id=utterance.utterance_id if utterance is not None else None,
                    target_generation_id=generation_id,
                    interrupt_reason=InterruptReason.USER_BARGE_IN,
                )
            )
            return generation_id

        found: GenerationId | None = self.do(cut)
        return found

    def partial(self, text: str) -> None:
        """Some words are known."""
        self._transcript(text, final=False, rejected=False)

    def provisional(self, text: str) -> None:
        """A short silence: what was said so far is known, and it may be all."""
        self._transcript(text, final=False, rejected=False, provisional=True)

    def go_on_speaking(self) -> None:
        """The user speaks again after the short silence, in the same utterance."""
        assert self.utterance is not None
        self.post(InputContinued(at_s=self.clock.monotonic_s()), utterance_id=self.utterance.utterance_id)

    def cease_to_speak(self) -> None:
        """The voice ended."""
        assert self.utterance is not None
        self.utterance.ended = True
        self.post(
            InputSpeech(phase="end", at_s=self.clock.monotonic_s(), vad=0.1, during_output=False),
            utterance_id=self.utterance.utterance_id,
        )

    def end_turn(self) -> None:
        """The turn is over."""
        assert self.utterance is not None
        if not self.utterance.ended:
            self.cease_to_speak()
        self.utterance.turn_ended = True
        self.post(
            InputTurnEnd(at_s=self.clock.monotonic_s(), silence_s=0.5, by="silence"),
            utterance_id=self.utterance.utterance_id,
        )
        self._close_utterance()

    def transcribe(self, text: str, *, rejected: bool = False) -> None:
        """The final words are known."""
        assert self.utterance is not None
        self.utterance.transcribed = True
        self._transcript(text, final=True, rejected=rejected)
        self._close_utterance()

    def finish_utterance(self, text: str, *, rejected: bool = False) -> None:
        """End what is open of the utterance, with these words."""
        utterance = self.utterance
        if utterance is not None and not utterance.turn_ended:
            self.end_turn()
        if self.utterance is not None and not self.utterance.transcribed:
            self.transcribe(text, rejected=rejected)

    def say(self, text: str, *, cut: bool = True, rejected: bool = False, during_s: float = 0.2) -> None:
        """Speak a whole utterance, over the answer if there is one."""
        self.begin_to_speak()
        if cut:
            self.vad_cut()
        self.seconds(during_s)
        self.cease_to_speak()
        self.seconds(0.1)
        self.finish_utterance(text, rejected=rejected)
        self.advance(1)

    def _transcript(self, text: str, *, final: bool, rejected: bool, provisional: bool = False) -> None:
        assert self.utterance is not None
        self.post(
            InputTranscript(
                final=final,
                text=text,
                language="zh" if any("\u4e00" <= char <= "\u9fff" for char in text) else "en",
                audio_s=1.0,
                decode_s=0.1,
                context="short",
                retried=False,
                avg_logprob=-0.3,
                no_speech=0.1,
                vad_fraction=0.8,
                rejected="noise" if rejected else None,
                provisional=provisional,
            ),
            utterance_id=self.utterance.utterance_id,
        )

    def _close_utterance(self) -> None:
        if self.utterance is not None and self.utterance.turn_ended and self.utterance.transcribed:
            self.utterance = None

    # --- model, tools, devices ------------------------------------------------------------------------------

    def open_calls(self) -> list[ModelCall]:
        """Return the model calls that are not over."""
        self.calls = [call for call in self.calls if not call.is_over]
        return self.calls

    def tokens(self, text: str) -> None:
        """Let the newest open model call say something more."""
        calls = self.open_calls()
        if calls:
            self.do(lambda: calls[-1].pieces.put_nowait(text))

    def end_model(self, error: Exception | None = None) -> None:
        """Let the newest open model call end."""
        calls = self.open_calls()
        if calls:
            calls[-1].is_over = True
            self.do(lambda: calls[-1].pieces.put_nowait(error))

    def end_tool(self, *, ok: bool = True) -> None:
        """Let the oldest running side effect end."""
        if self.tools:
            result = self.tools.pop(0).result
            if not result.done():
                self.do(lambda: result.set_result("done") if ok else result.set_exception(ArithmeticError("tool")))

    def ask(self, text: str, *answer: str, begin: bool = True) -> None:
        """Type a question and let the model answer it whole."""
        self.type(text)
        self.until(lambda: bool(self.open_calls()), 5.0)
        for part in answer:
            self.tokens(part)
        self.end_model()
        if begin:
            self.until(lambda: self.core.turns.active is not None and self.core.turns.active.sounded, 10.0)

    def sentence(self, count: int = 5) -> str:
        """Return a sentence whose words occur nowhere else."""
        return " ".join(_spell(next(self._words)) for _ in range(count)).capitalize() + ". "

    def is_quiet(self) -> bool:
        """Whether nothing is going on."""
        return (
            self.core.conversation.is_quiet
            and self.speech.is_idle()
            and all(generation.settled.is_set() for generation in self.generations.all)
        )

    def finish_everything(self, limit_s: float = 60.0) -> None:
        """End all that is open and let it become quiet."""
        if not self.has_device:
            self.give_device()
        if self.utterance is not None:
            self.finish_utterance("", rejected=True)
        for _ in range(round(limit_s / 0.2)):
            while self.open_calls():
                self.end_model()
            while self.tools:
                self.end_tool()
            if self.is_quiet():
                self.seconds(0.3)
                # What waits for the end of the quiet after a stop is still to be said.
                is_over = self.core.conversation.quiet.left_s == 0.0
                if is_over and self.is_quiet() and not self.open_calls() and not self.tools:
                    return
            self.seconds(0.2)
        active = self.core.turns.active
        self.note(f"it does not become quiet: {active.generation_id if active else None} {active and active.state}")

    def mute(self, on: bool) -> None:
        """Mute the voice; what the samples say of answers under way is no longer clear."""
        self._unclear.update(g.generation_id for g in self.generations.all if not g.settled.is_set())
        self.do(lambda: self.speech.set_muted(on))

    def lose_device(self) -> None:
        """The loudspeaker goes away."""
        self.has_device = False
        self._lose_last_block()
        self.player.detach()
        self.do(lambda: self.speech.set_output(False))

    def give_device(self) -> None:
        """The loudspeaker comes back."""
        self.player.attach(RATE_HZ)
        self.has_device = True
        self.do(lambda: self.speech.set_output(True))


def _spell(number: int) -> str:
    letters_of = "bcdfghklmnprstvw"
    vowels = "aeiou"
    parts = []
    while True:
        number, rest = divmod(number, 80)
        parts.append(letters_of[rest // 5] + vowels[rest % 5])
        if not number:
            return "mo" + "".join(reversed(parts))
