"""The loudspeaker side of an answer: queues its sentences, has them synthesised a little ahead, feeds the player."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from audio.playback import Player, Segment
from audio.ports import Samples
from audio.tts.shown import ShownText
from audio.tts.voice import SpeechSynthesiser, Utterance, spoken_language
from audio.workers import Worker
from orchestrator.clock import Clock, SystemClock
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import (
    AppError,
    Event,
    IntentStateChanged,
    OutputStateChanged,
    OutputWord,
    Payload,
    TtsFirstPcm,
)
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.lanes import IntentState
from orchestrator.contracts.ports import EventSink, Staleness
from orchestrator.speech.intent_queue import Entry, IntentQueue, Way
from orchestrator.speech.words import ends_clause, ends_sentence

log = logging.getLogger(__name__)

_AHEAD_INTENTS = 2
_AHEAD_S = 12.0
_PAUSE_SENTENCE_S = 0.2
_PAUSE_CLAUSE_S = 0.12
_SOURCE = "tts"


_MOST_PREPARED = 2
_Key = tuple[str, str | None, str | None]


@dataclass(slots=True)
class _Prepared:
    """A sound made ahead; `utterance` is none until it is ready, or if it could not be made."""

    generation_id: GenerationId
    utterance: Utterance | None = None
    synth_s: float = 0.0


def _key_of(intent: SpeechIntent) -> _Key:
    return intent.text, intent.language, intent.voice


def resample(pcm: Samples, from_hz: int, to_hz: int) -> Samples:
    """Return `pcm` at another rate."""
    if from_hz == to_hz:
        return pcm
    import soxr

    converted: Samples = soxr.resample(pcm, from_hz, to_hz, quality="HQ")
    return np.ascontiguousarray(converted, dtype=np.float32)


class SpeechWorker:
    """Implements `SpeechPort`. Every method may be called from any thread and returns at once.

    The slow part runs on `worker`, one sentence at a time and at most two sentences or 12 s ahead. `poll` has to be
    called about every 10 ms; it polls the player, too. Without a loudspeaker, without a voice for the language, when
    muted or when synthesis fails, the text is shown at reading pace instead and counts as heard then.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        events: EventSink,
        staleness: Staleness,
        player: Player,
        worker: Worker,
        voices: Sequence[SpeechSynthesiser],
        cost_clock: Clock | None = None,
        synth_cost_s: Callable[[str], float] | None = None,
    ) -> None:
        """Speak with the first of `voices` that speaks a text's language; the others stand in for it.

        `synth_cost_s(text)` fixes the cost of synthesis in virtual time; `cost_clock` measures what is reported.
        """
        self._clock = clock
        self._events = events
        self._staleness = staleness
        self._player = player
        self._worker = worker
        self._voices = list(voices)
        self._cost_clock = cost_clock or SystemClock()
        self._synth_cost_s = synth_cost_s
        self._lock = threading.RLock()
        self._queue = IntentQueue(on_state=self._on_state, is_stale=staleness.is_stale)
        self._segments: dict[IntentId, Segment] = {}
        self._words_done: dict[IntentId, int] = {}
        self._shown: ShownText | None = None
        self._aside: dict[GenerationId, ShownText] = {}
        self._outbox: list[tuple[Payload, GenerationId | None, IntentId | None]] = []
        self._is_posting = False
        self._is_synthesising = False
        self._is_muted = False
        self._has_output = True
        self._was_busy = False
        self._noticed: set[str] = set()
        self.synthesised = 0
        self.failed = 0
        player.set_listener(self)

        self._prepared: OrderedDict[_Key, _Prepared] = OrderedDict()

    # --- SpeechPort ---------------------------------------------------------------------------------------

    def submit(self, intent: SpeechIntent) -> bool:
        """Queue `intent` by its behaviour; False if it was dropped at once (`intent:state` tells why)."""
        with self._lock:
            is_accepted = self._queue.submit(intent, self._clock.monotonic_s())
            self._was_busy = self._was_busy or is_accepted
            self._pump()
            return is_accepted

    def prepare(self, intent: SpeechIntent) -> None:
        """Synthesise what may have to be said soon; see `SpeechPort`. At most two are kept, the oldest is forgotten."""
        with self._lock:
            voices = self._voices_for(intent, with_notice=False)
            key = _key_of(intent)
            if self._is_muted or not self._has_output or not voices or key in self._prepared:
                return
            prepared = self._prepared[key] = _Prepared(generation_id=intent.generation_id)
            while len(self._prepared) > _MOST_PREPARED:
                self._prepared.popitem(last=False)
            cost_s = self._synth_cost_s(intent.text) if self._synth_cost_s is not None else None
            if not self._worker.submit(
                lambda: self._prepare(intent, voices, prepared), name=f"tts ahead {intent.generation_id}", cost_s=cost_s
            ):
                self._prepared.pop(key, None)

    def hold(self, generation_id: GenerationId) -> None:
        """Stop the sound of the generation and keep what is unplayed, also what comes later."""
        self._player.hold(generation_id)
        self.on_held(generation_id)

    def resume(self, generation_id: GenerationId) -> None:
        """Go on with a held generation from the start of the cut word."""
        with self._lock:
            self._queue.resume(generation_id)
            if self._shown is None:
                self._shown = self._aside.pop(generation_id, None)
            if self._shown is not None and self._shown.generation_id == generation_id:
                self._shown.resume(self._clock.monotonic_s())
                self._queue.playing(self._shown.intent.intent_id)
            self._player.resume(generation_id)
            self._pump()

    def purge(self, generation_id: GenerationId, reason: str) -> None:
        """Stop and forget everything of the generation; `output:state` stopped acknowledges."""
        self._player.purge(generation_id)
        with self._lock:
            if self._shown is not None and self._shown.generation_id == generation_id:
                self._shown.stop(self._clock.monotonic_s(), self._tell_word)
                self._shown = None
            self._aside.pop(generation_id, None)
            self._queue.purge(generation_id, reason)
            self._pump()

    def set_muted(self, on: bool) -> None:
        """Mute or unmute the voice; muted speech is shown at reading pace."""
        with self._lock:
            if on == self._is_muted:
                return
            self._is_muted = on
            self._player.set_muted(on)
            if on:
                self._tell(OutputStateChanged(state="muted", at_s=self._clock.monotonic_s()))
            self._pump()

    # --- the engine's side --------------------------------------------------------------------------------

    def poll(self, now_s: float) -> None:
        """Post what has sounded or been read by `now_s`, and go on with what is due."""
        self._player.poll(now_s)
        with self._lock:
            if self._shown is not None:
                self._shown.poll(now_s, self._tell_word)
                if self._shown.is_over:
                    intent_id = self._shown.intent.intent_id
                    self._shown = None
                    self._queue.played_out(intent_id)
            self._pump()

    def set_output(self, is_available: bool) -> None:
        """Say whether there is a loudspeaker at all; without one, what was to sound is shown from the next word on."""
        with self._lock:
            if is_available == self._has_output:
                return
            self._has_output = is_available
            if not is_available:
                for intent_id, words_done in self._player.take_back():
                    self._words_done[intent_id] = words_done
                    self._queue.show_rest(intent_id)
            self._pump()

    def set_voices(self, voices: Sequence[SpeechSynthesiser]) -> None:
        """Use other voices from the next sentence on."""
        with self._lock:
            self._voices = list(voices)
            self._noticed.clear()
            self._prepared.clear()

    def is_idle(self) -> bool:
        """Whether nothing waits, sounds, is shown or is being synthesised."""
        with self._lock:
            return not len(self._queue) and not self._is_synthesising and self._player.is_idle()

    def counters(self) -> dict[str, int]:
        """Return the counts for the record."""
        with self._lock:
            counts = {f"intent_dropped_{reason}": count for reason, count in sorted(self._queue.dropped.items())}
            return counts | {
                "intent_played": self._queue.played,
                "tts_synthesised": self.synthesised,
                "tts_failed": self.failed,
                "player_starved": self._player.starved,
                "player_underflows": self._player.underflows,
                "player_refused": self._player.refused,
            }

    # --- the player's side --------------------------------------------------------------------------------

    def on_playing(self, intent_id: IntentId) -> None:
        """The sound of the intent began or goes on."""
        with self._lock:
            self._queue.playing(intent_id)
            self._pump()

    def on_held(self, generation_id: GenerationId) -> None:
        """The sound of the generation was stopped and is kept."""
        with self._lock:
            if self._queue.is_held(generation_id):
                return
            self._queue.hold(generation_id)
            if self._shown is not None and self._shown.generation_id == generation_id:
                self._shown.hold(self._clock.monotonic_s(), self._tell_word)
            self._post()

    def on_played(self, intent_id: IntentId) -> None:
        """The last sample of the intent has sounded."""
        with self._lock:
            self._queue.played_out(intent_id)
            self._pump()

    # --- inside, under the lock ---------------------------------------------------------------------------

    def _pump(self) -> None:
        """Do everything that can be done now, then post what happened."""
        now_s = self._clock.monotonic_s()
        if self._is_muted or not self._has_output:
            self._queue.show_instead()
        self._queue.drop_overdue(now_s)
        self._withdraw()
        self._bring_back(now_s)
        while (entry := self._queue.next_for_output(now_s)) is not None:
            self._hand_over(entry, now_s)
        self._withdraw()
        self._synthesise_next(now_s)
        if self._was_busy and not len(self._queue):
            self._was_busy = False
            self._tell(OutputStateChanged(state="queue_empty", at_s=now_s))
        self._post()

    def _withdraw(self) -> None:
        for intent_id in self._queue.take_withdrawn():
            if self._shown is not None and self._shown.intent.intent_id == intent_id:
                self._shown.stop(self._clock.monotonic_s(), self._tell_word)
                self._shown = None
            else:
                self._aside = {key: s for key, s in self._aside.items() if s.intent.intent_id != intent_id}
                self._player.withdraw(intent_id)

    def _bring_back(self, now_s: float) -> None:
        """Go on showing what stood aside, when nothing else is shown and its answer is not held."""
        if self._shown is not None:
            return
        free = next((key for key in self._aside if not self._queue.is_held(key)), None)
        if free is not None:
            self._shown = self._aside.pop(free)
            self._shown.resume(now_s)

    def _hand_over(self, entry: Entry, now_s: float) -> None:
        intent = entry.intent
        if entry.way is Way.SHOWN:
            if self._shown is not None:
                # An answer that was held takes its place again; what is shown meanwhile waits until it is over.
                self._shown.hold(now_s, self._tell_word)
                self._aside[self._shown.generation_id] = self._shown
            self._shown = ShownText(intent, now_s, words_done=self._words_done.pop(intent.intent_id, 0))
            self._queue.playing(intent.intent_id)
            return
        segment = self._segments[intent.intent_id]
        # The device, and with it the rate, may change at any moment.
        while not self._player.enqueue(segment):
            if segment.rate_hz == self._player.rate_hz:
                self._queue.purge(intent.generation_id, "stale")
                return
            segment = self._at_rate(segment, self._player.rate_hz)

    @staticmethod
    def _at_rate(segment: Segment, rate_hz: int) -> Segment:
        return Segment(
            intent_id=segment.intent_id,
            generation_id=segment.generation_id,
            text=segment.text,
            pcm=resample(segment.pcm, segment.rate_hz, rate_hz),
            rate_hz=rate_hz,
            words=segment.words,
            visemes=segment.visemes,
            interruptible=segment.interruptible,
            pause_after_s=segment.pause_after_s,
        )

    def _synthesise_next(self, now_s: float) -> None:
        if self._is_synthesising:
            return
        count, ahead_s = self._queue.ahead()
        if count >= _AHEAD_INTENTS or ahead_s >= _AHEAD_S:
            return
        entry = self._queue.next_to_synthesise(now_s)
        if entry is None:
            return
        intent = entry.intent
        voices = self._voices_for(intent)
        # Preparing it, if it is not done yet, stands before this in the worker's queue.
        prepared = self._prepared.pop(_key_of(intent), None)
        cost_s = self._synth_cost_s(intent.text) if self._synth_cost_s is not None else None
        self._is_synthesising = True
        is_accepted = bool(voices) and self._worker.submit(
            lambda: self._synthesise(intent, voices, prepared),
            name=f"tts {intent.intent_id}",
            cost_s=cost_s if prepared is None else 0.0 if cost_s is not None else None,
        )
        if not is_accepted:
            self._is_synthesising = False
            self._queue.failed(intent.intent_id, now_s)

    def _voices_for(self, intent: SpeechIntent, *, with_notice: bool = True) -> list[SpeechSynthesiser]:
        language = spoken_language(intent.text, intent.language)
        able = [voice for voice in self._voices if voice.speaks(language)]
        if intent.voice is not None:
            able.sort(key=lambda voice: voice.name != intent.voice)
        if not with_notice:
            return able
        if not able:
            self._notice("voice_language_missing", f"no voice speaks {language}; the text is shown only")
        elif self._voices and able[0] is not self._voices[0] and intent.voice is None:
            name = able[0].name
            self._notice(f"voice_fallback_{language}", f"{name} speaks {language} for now; a better voice can be added")
        return able

    def _prepare(
        self, intent: SpeechIntent, voices: Sequence[SpeechSynthesiser], into: _Prepared
    ) -> Callable[[], None]:
        """Run on the worker: make the sound ahead. A failure is told when the text is really to be said."""
        if not self._staleness.is_stale(intent.generation_id):
            began_s = self._cost_clock.monotonic_s()
            into.utterance, _ = self._utter(intent, voices)
            into.synth_s = self._cost_clock.monotonic_s() - began_s
        return lambda: None

    def _synthesise(
        self, intent: SpeechIntent, voices: Sequence[SpeechSynthesiser], prepared: _Prepared | None
    ) -> Callable[[], None]:
        """Run on the worker: make the sound, say what is to be done with it."""
        if self._staleness.is_stale(intent.generation_id):
            return lambda: self._on_failed(intent, None)
        began_s = self._cost_clock.monotonic_s()
        utterance, failure = prepared.utterance if prepared is not None else None, None
        if utterance is None:
            utterance, failure = self._utter(intent, voices)
        if utterance is None:
            return lambda: self._on_failed(intent, failure)
        segment, frames = self._segment(intent, utterance), len(utterance.pcm)
        synth_s = self._cost_clock.monotonic_s() - began_s + (prepared.synth_s if prepared is not None else 0.0)
        return lambda: self._on_synthesised(intent, segment, synth_s, frames)

    @staticmethod
    def _utter(intent: SpeechIntent, voices: Sequence[SpeechSynthesiser]) -> tuple[Utterance | None, PartFailed | None]:
        language = spoken_language(intent.text, intent.language)
        failure: PartFailed | None = None
        for voice in voices:
            try:
                return voice.synthesise(intent.text, language=language), None
            except PartFailed as error:
                failure = error
            except Exception as error:
                log.exception("voice %s failed", voice.name)
                failure = PartFailed("tts_failed", f"the voice {voice.name} failed: {error}", part="tts")
        return None, failure

    def _segment(self, intent: SpeechIntent, utterance: Utterance) -> Segment:
        rate_hz = self._player.rate_hz
        text = intent.text.rstrip()
        pause_s = _PAUSE_CLAUSE_S if ends_clause(text) and not ends_sentence(text) else _PAUSE_SENTENCE_S
        return Segment(
            intent_id=intent.intent_id,
            generation_id=intent.generation_id,
            text=intent.text,
            pcm=resample(utterance.pcm, utterance.rate_hz, rate_hz),
            rate_hz=rate_hz,
            words=utterance.words,
            visemes=utterance.visemes,
            interruptible=intent.interruptible,
            pause_after_s=pause_s,
        )

    def _on_synthesised(self, intent: SpeechIntent, segment: Segment, synth_s: float, frames: int) -> None:
        with self._lock:
            self._is_synthesising = False
            self.synthesised += 1
            duration_s = len(segment.pcm) / segment.rate_hz
            self._segments[intent.intent_id] = segment
            if self._queue.synthesised(intent.intent_id, duration_s, self._clock.monotonic_s()):
                self._tell(TtsFirstPcm(synth_s=synth_s, frames=frames), intent.generation_id, intent.intent_id)
            else:
                self._segments.pop(intent.intent_id, None)
            self._pump()

    def _on_failed(self, intent: SpeechIntent, failure: PartFailed | None) -> None:
        with self._lock:
            self._is_synthesising = False
            if failure is not None:
                self.failed += 1
                self._notice(failure.code, failure.message)
            self._queue.failed(intent.intent_id, self._clock.monotonic_s())
            self._pump()

    def _notice(self, code: str, message: str) -> None:
        """Tell the user once."""
        if code not in self._noticed:
            self._noticed.add(code)
            self._tell(AppError(code=code, part="tts", recoverable=True, message=message))

    def _on_state(self, intent: SpeechIntent, change: IntentStateChanged) -> None:
        if change.state in (IntentState.PLAYED, IntentState.DROPPED):
            self._segments.pop(intent.intent_id, None)
            self._words_done.pop(intent.intent_id, None)
        self._tell(change, intent.generation_id, intent.intent_id)

    def _tell_word(self, intent: SpeechIntent, word: OutputWord) -> None:
        self._tell(word, intent.generation_id, intent.intent_id)

    def _tell(
        self, payload: Payload, generation_id: GenerationId | None = None, intent_id: IntentId | None = None
    ) -> None:
        self._outbox.append((payload, generation_id, intent_id))

    def _post(self) -> None:
        """Post in order; a sink that acts at once and comes back here only adds to what is being posted."""
        if self._is_posting:
            return
        self._is_posting = True
        try:
            while self._outbox:
                payload, generation_id, intent_id = self._outbox.pop(0)
                self._events.post(
                    Event(payload=payload, source=_SOURCE, generation_id=generation_id, intent_id=intent_id)
                )
        finally:
            self._is_posting = False
