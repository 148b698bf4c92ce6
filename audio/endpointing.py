"""When an utterance begins, pauses, goes on and ends: numbers in, events out, no clock and no audio."""

from __future__ import annotations

from dataclasses import dataclass

from audio.ears_config import EndpointConfig, VadConfig
from orchestrator.speech.turn_text import Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointEvent:
    """Base: what happened, and the stream time it belongs to."""

    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset(EndpointEvent):
    """An utterance began at `at_s`. `is_continued`: it follows without a pause on one that was too long."""

    probability: float
    is_continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceEnded(EndpointEvent):
    """Voice ended at `at_s` and did not come back at once: time for an early decode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceResumed(EndpointEvent):
    """The user goes on after `VoiceEnded`, in the same utterance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(EndpointEvent):
    """The turn is over. `by` is silence, semantic, ptt or limit; `voice_end_s` is the end of the last voiced sound.

    `vad_fraction` is the share of the span from first to last voice that was voiced; `is_ptt` whether the key held it.
    """

    voice_end_s: float
    silence_s: float
    by: str
    vad_fraction: float
    is_ptt: bool


class VoicedRun:
    """Voiced windows that follow each other closely; a gap over `gap_s` starts a new run."""

    def __init__(self, vad: VadConfig, gap_s: float) -> None:
        """Start with silence."""
        self._vad = vad
        self._gap_s = gap_s
        self._is_voiced = False
        self.start_s = 0.0
        self.end_s = float("-inf")
        self.voiced_s = 0.0

    def window(self, start_s: float, end_s: float, probability: float) -> bool:
        """Take a window; return whether it is voiced (with hysteresis)."""
        if start_s - self.end_s > self._gap_s:
            self.clear()
        threshold = self._vad.stop_probability if self._is_voiced else self._vad.start_probability
        self._is_voiced = probability >= threshold
        if self._is_voiced:
            if self.voiced_s == 0.0:
                self.start_s = start_s
            self.end_s = end_s
            self.voiced_s += end_s - start_s
        return self._is_voiced

    def clear(self) -> None:
        """Forget the run."""
        self._is_voiced = False
        self.voiced_s = 0.0
        self.end_s = float("-inf")


class Endpointer:
    """The segmenter. Time only comes in through its arguments and must not go back.

    Every `Onset` is followed by exactly one `TurnEnded` before the next. Windows that nobody reports are silence:
    `tick` makes timers run without them.
    """

    def __init__(self, config: EndpointConfig, vad: VadConfig) -> None:
        """Wait for a voice."""
        self._config = config
        self._run = VoicedRun(vad, config.fragment_gap_s)
        self._is_decoded = False
        self._up_at_s: float | None = None
        self.is_open = False
        self.is_ptt = False
        self.is_listening = True
        self._ending = Ending.UNSURE
        self._is_known = False
        self.onset_s = 0.0
        self.first_voice_s: float | None = None
        self.voice_end_s = 0.0
        self.voiced_s = 0.0

    def configure(self, config: EndpointConfig) -> None:
        """Take other numbers from now on."""
        self._config = config

    @property
    def vad_fraction(self) -> float:
        """Share of the span from first to last voice that was voiced; 0 without any."""
        if self.first_voice_s is None or self.voice_end_s <= self.first_voice_s:
            return 0.0
        return min(1.0, self.voiced_s / (self.voice_end_s - self.first_voice_s))

    def window(self, start_s: float, end_s: float, probability: float) -> list[EndpointEvent]:
        """Take VAD 2's opinion on the span from `start_s` to `end_s`."""
        is_voiced = self._run.window(start_s, end_s, probability)
        if not is_voiced:
            return []
        if not self.is_open:
            if self.is_listening and self._run.voiced_s >= self._config.onset_voiced_s - 1e-6:
                return [self._open(self._run.start_s, probability)]
            return []
        if self._is_decoded:
            # A last breath or click must not throw away a finished transcript.
            if self._run.voiced_s < 2 * (end_s - start_s) - 1e-6:
                return []
            self._voice(self._run.start_s, end_s, self._run.voiced_s)
            return [self._resume(self._run.start_s)]
        self._voice(start_s, end_s, end_s - start_s)
        return []

    def _end_voice(self) -> VoiceEnded:
        self._is_decoded = True
        return VoiceEnded(at_s=self.voice_end_s)

    def _resume(self, at_s: float) -> VoiceResumed:
        self._is_decoded = False
        self._forget_words()
        return VoiceResumed(at_s=at_s)

    def tick(self, now_s: float) -> list[EndpointEvent]:
        """Let timers run to `now_s`."""
        if not self.is_open:
            return []
        if now_s - self.onset_s >= self._config.limit_s:
            was_ptt, up_at_s = self.is_ptt, self._up_at_s
            ended = self._close(now_s, "limit")
            if was_ptt or ended.silence_s < self._config.decode_after_s:
                opened = self._open(now_s, 1.0, is_continued=True)
                self.is_ptt, self._up_at_s = was_ptt, up_at_s
                return [ended, opened]
            return [ended]
        if self.is_ptt:
            if self._up_at_s is not None and now_s >= self._up_at_s + self._config.ptt_tail_s - 1e-6:
                return [self._close(now_s, "ptt")]
            return []
        silence_s = now_s - self.voice_end_s
        if now_s - self.onset_s >= self._config.split_after_s and silence_s >= self._config.split_pause_s:
            return [self._close(now_s, "limit")]
        patience_s = self.patience_s
        if silence_s >= patience_s - 1e-6:
            return [self._close(now_s, "semantic" if patience_s < self._config.end_silence_s else "silence")]
        if not self._is_decoded and silence_s >= self._config.decode_after_s - 1e-6:
            self._run.clear()
            return [self._end_voice()]
        return []

    def note_words(self, ending: Ending, *, is_whole: bool) -> None:
        """Take how the words so far end; `is_whole`: they are all that was said before the present pause."""
        if is_whole and not self._is_decoded:
            return
        if is_whole or not self._is_known:
            self._ending = ending
            self._is_known = is_whole

    @property
    def patience_s(self) -> float:
        """How much silence ends the turn as things stand.

        As long as the words before the pause are not known, a turn that could be in mid-sentence waits for them: no
        answer could be begun without them anyway.
        """
        config = self._config
        match self._ending:
            case Ending.HOLD:
                return config.wait_silence_s
            case Ending.OPEN:
                return config.hold_silence_s
        if not self._is_known:
            return max(config.end_silence_s, config.decode_wait_s)
        match self._ending:
            case Ending.CLOSED:
                return config.finish_silence_s
            case Ending.ANSWER:
                return config.answer_silence_s
        return config.end_silence_s

    def _forget_words(self) -> None:
        self._ending = Ending.UNSURE
        self._is_known = False

    def force_open(self, now_s: float) -> list[EndpointEvent]:
        """Begin an utterance now, because somebody else is sure that the user speaks."""
        if self.is_open:
            return []
        start_s = self._run.start_s if self._run.voiced_s > 0.0 else now_s
        return [self._open(start_s, 1.0)]

    def ptt_down(self, now_s: float) -> list[EndpointEvent]:
        """Begin at once, or take over the utterance that is open: from now on only the key ends it."""
        self._up_at_s = None
        if self.is_open:
            self.is_ptt = True
            return [self._resume(now_s)] if self._is_decoded else []
        opened = self._open(now_s, 1.0)
        self.is_ptt = True
        self.first_voice_s, self.voiced_s = None, 0.0
        return [opened]

    def ptt_up(self, at_s: float) -> None:
        """Let the utterance end when the stream has reached `at_s` and the tail."""
        if self.is_ptt:
            self._up_at_s = at_s

    def end(self, now_s: float, by: str) -> list[EndpointEvent]:
        """End the open utterance now (muted, device lost, semantic end of turn)."""
        return [self._close(now_s, by)] if self.is_open else []

    def reset(self) -> None:
        """Forget a half-heard onset; an open utterance has to be ended first."""
        self._run.clear()

    def _open(self, at_s: float, probability: float, *, is_continued: bool = False) -> Onset:
        self.is_open = True
        self.is_ptt = False
        self._forget_words()
        self._is_decoded = False
        self._up_at_s = None
        self.onset_s = at_s
        heard = self._run.voiced_s > 0.0 and not is_continued
        self.first_voice_s = at_s if heard else None
        self.voiced_s = self._run.voiced_s if heard else 0.0
        self.voice_end_s = self._run.end_s if heard else at_s
        return Onset(at_s=at_s, probability=probability, is_continued=is_continued)

    def _voice(self, start_s: float, end_s: float, voiced_s: float) -> None:
        if self.first_voice_s is None:
            self.first_voice_s = start_s
        self.voiced_s += voiced_s
        self.voice_end_s = end_s

    def _close(self, now_s: float, by: str) -> TurnEnded:
        voice_end_s = min(now_s, self.voice_end_s)
        ended = TurnEnded(
            at_s=now_s,
            voice_end_s=voice_end_s,
            silence_s=now_s - voice_end_s,
            by=by,
            vad_fraction=self.vad_fraction,
            is_ptt=self.is_ptt,
        )
        self.is_open = False
        self.is_ptt = False
        self._up_at_s = None
        self._is_decoded = False
        self._run.clear()
        return ended
