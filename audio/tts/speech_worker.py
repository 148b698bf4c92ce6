"""The loudspeaker side of an answer: queues its sentences, has them synthesised a little ahead, feeds the player."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from audio.playback import Player, Segment
from audio.tts.growing import FIRST_S, GrowingSound, at_rate, first_piece_s
from audio.tts.pauses import Pauses
from audio.tts.prepared import Prepared, PreparedSounds
from audio.tts.shown import ShownText
from audio.tts.voice import SpeechSynthesiser, StreamingSynthesiser, spoken_language
from audio.tts.voice_choice import VoiceChoice, VoiceLoader
from audio.workers import Worker
from orchestrator.clock import Clock, SystemClock
from orchestrator.contracts.errors import MynahError, PartFailed
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

log = logging.getLogger(__name__)

_AHEAD_INTENTS = 2
_AHEAD_S = 12.0
_ENCODING_SHARE = 0.4
"""Part of the fixed cost of a text, in virtual time, that a voice takes before its first piece."""

_SOURCE = "tts"


class SpeechWorker:
    """Implements `SpeechPort`. Every method may be called from any thread and returns at once.

    The slow part runs on `worker`, a piece of a sentence at a time and at most two sentences or 12 s ahead: the first
    piece sounds while the next is made. `poll` has to be
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
        load_voice: VoiceLoader | None = None,
        pauses: Pauses | None = None,
    ) -> None:
        """Speak with the first of `voices` that speaks a text's language; the others stand in for it.

        A voice that an intent asks for by name and that is not among them is loaded by `load_voice`, on the worker.

        `synth_cost_s(text)` fixes the cost of synthesis in virtual time; `cost_clock` measures what is reported.
        """
        self._clock = clock
        self._events = events
        self._staleness = staleness
        self._player = player
        self._worker = worker
        self._choice = VoiceChoice(voices, load_voice)
        self._load_voice = load_voice
        self._voice_for: Callable[[str], str | None] = lambda language: None
        self._pauses = pauses or Pauses()
        self._cost_clock = cost_clock or SystemClock()
        self._synth_cost_s = synth_cost_s
        self._lock = threading.RLock()
        self._queue = IntentQueue(on_state=self._on_state, is_stale=staleness.is_stale)
        self._segments: dict[IntentId, Segment] = {}
        self._growing: dict[IntentId, tuple[SpeechIntent, GrowingSound]] = {}
        self._working_for: GenerationId | None = None
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
        self._prepared = PreparedSounds()
        player.set_listener(self)

    # --- SpeechPort ---------------------------------------------------------------------------------------

    def submit(self, intent: SpeechIntent) -> bool:
        """Queue `intent` by its behaviour; False if it was dropped at once (`intent:state` tells why)."""
        with self._lock:
            intent = self._with_voice(intent)
            is_accepted = self._queue.submit(intent, self._clock.monotonic_s())
            self._was_busy = self._was_busy or is_accepted
            self._pump()
            return is_accepted

    def prepare(self, intent: SpeechIntent) -> None:
        """Synthesise what may have to be said soon; see `SpeechPort`. At most two are kept, the oldest is forgotten."""
        with self._lock:
            intent = self._with_voice(intent)
            voices = self._voices_for(intent, with_notice=False)
            if self._is_muted or not self._has_output or not voices or intent in self._prepared:
                return
            prepared = self._prepared.add(intent)
            cost_s = self._first_cost_s(intent, voices[0])
            if not self._worker.submit(
                lambda: self._prepare(intent, prepared), name=f"tts ahead {intent.generation_id}", cost_s=cost_s
            ):
                self._prepared.take(intent)

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
            if self._working_for == generation_id:
                self._choice.cancel()
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
            self._choice = VoiceChoice(voices, self._load_voice)
            self._noticed.clear()
            self._prepared.clear()

    def adjust(self, *, speed: float, volume: float) -> None:
        """Change pace and loudness of the voices from the next sentence on."""
        with self._lock:
            self._choice.adjust(speed=speed, volume=volume)
            self._prepared.clear()

    def set_voice_for(self, voice_for: Callable[[str], str | None]) -> None:
        """Ask `voice_for` which voice the character has for a language (None: the user's choice); under the lock."""
        self._voice_for = voice_for

    def set_pauses(self, pauses: Pauses) -> None:
        """Use other pauses from the next sentence on."""
        self._pauses = pauses

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
            segment = at_rate(segment, self._player.rate_hz)

    def _synthesise_next(self, now_s: float) -> None:
        if self._is_synthesising:
            return
        count, ahead_s = self._queue.ahead()
        is_full = count >= _AHEAD_INTENTS or ahead_s >= _AHEAD_S
        # What is held can wait until the answer that passes it has its sound.
        growing = sorted(self._growing.values(), key=lambda item: self._queue.is_held(item[0].generation_id))
        if growing and not self._queue.is_held(growing[0][0].generation_id):
            self._grow_next(*growing[0])
            return
        entry = None if is_full else self._queue.next_to_synthesise(now_s)
        if entry is not None:
            self._begin_next(entry.intent, now_s)
        elif growing:
            self._grow_next(*growing[0])

    def _with_voice(self, intent: SpeechIntent) -> SpeechIntent:
        """Return `intent` with the character's voice, if it asks for none and the character has one."""
        if intent.voice is not None:
            return intent
        voice = self._voice_for(spoken_language(intent.text, intent.language))
        return intent if voice is None else replace(intent, voice=voice)

    def _begin_next(self, intent: SpeechIntent, now_s: float) -> None:
        voices = self._voices_for(intent)
        # Preparing it, if it is not done yet, stands before this in the worker's queue.
        prepared = self._prepared.take(intent)
        first_s = first_piece_s(self._player.ahead_s())
        cost_s = self._first_cost_s(intent, voices[0]) if voices else None
        self._is_synthesising = True
        self._working_for = intent.generation_id
        is_accepted = bool(voices) and self._worker.submit(
            lambda: self._synthesise(intent, prepared, first_s),
            name=f"tts {intent.intent_id}",
            cost_s=cost_s if prepared is None else 0.0 if cost_s is not None else None,
        )
        if not is_accepted:
            self._is_synthesising = False
            self._queue.failed(intent.intent_id, now_s)

    def _grow_next(self, intent: SpeechIntent, sound: GrowingSound) -> None:
        cost_s = None
        if self._synth_cost_s is not None:
            cost_s = self._synth_cost_s(intent.text) * (1.0 - _ENCODING_SHARE) * sound.next_share
        self._working_for = intent.generation_id
        self._is_synthesising = self._worker.submit(
            lambda: self._grow(intent, sound), name=f"tts {intent.intent_id} on", cost_s=cost_s
        )

    def _first_cost_s(self, intent: SpeechIntent, voice: SpeechSynthesiser) -> float | None:
        if self._synth_cost_s is None:
            return None
        return self._synth_cost_s(intent.text) * (_ENCODING_SHARE if isinstance(voice, StreamingSynthesiser) else 1.0)

    def _voices_for(self, intent: SpeechIntent, *, with_notice: bool = True) -> list[SpeechSynthesiser]:
        """Return the voices that can say `intent`, best first; none is loaded for this."""
        able, to_load = self._choice.able(intent)
        if not with_notice:
            return able
        language = spoken_language(intent.text, intent.language)
        if not able:
            self._notice("voice_language_missing", f"no voice speaks {language}; the text is shown only")
        elif intent.voice is None and to_load is None and not self._choice.is_first(able[0]):
            name = able[0].name
            self._notice(f"voice_fallback_{language}", f"{name} speaks {language} for now; a better voice can be added")
        return able

    def _prepare(self, intent: SpeechIntent, into: Prepared) -> Callable[[], None]:
        """Run on the worker: make the sound ahead. A failure is told when the text is really to be said."""
        if not self._staleness.is_stale(intent.generation_id):
            began_s = self._cost_clock.monotonic_s()
            into.sound, _ = self._choice.begin(intent, first_s=FIRST_S)
            into.synth_s = self._cost_clock.monotonic_s() - began_s
        return lambda: None

    def _synthesise(self, intent: SpeechIntent, prepared: Prepared | None, first_s: float) -> Callable[[], None]:
        """Run on the worker: make the first sound, say what is to be done with it."""
        if self._staleness.is_stale(intent.generation_id):
            return lambda: self._on_failed(intent, [], is_stale=True)
        began_s = self._cost_clock.monotonic_s()
        sound = prepared.sound if prepared is not None else None
        faults: list[MynahError] = []
        if sound is None:
            sound, faults = self._choice.begin(intent, first_s=first_s)
        if sound is None:
            return lambda: self._on_failed(intent, faults)
        made = sound
        segment = made.segment(intent, rate_hz=self._player.rate_hz, pause_s=self._pauses.after(intent.text))
        synth_s = self._cost_clock.monotonic_s() - began_s + (prepared.synth_s if prepared is not None else 0.0)
        return lambda: self._on_synthesised(intent, made, segment, synth_s, faults)

    def _grow(self, intent: SpeechIntent, sound: GrowingSound) -> Callable[[], None]:
        """Run on the worker: make the next piece, unless nobody wants it any more."""
        fault: PartFailed | None = None
        is_wanted = not self._staleness.is_stale(intent.generation_id)
        if is_wanted:
            try:
                sound.grow()
            except PartFailed as error:
                fault = error
        return lambda: self._on_grown(intent, sound, is_wanted=is_wanted and fault is None, fault=fault)

    def _on_synthesised(
        self, intent: SpeechIntent, sound: GrowingSound, segment: Segment, synth_s: float, faults: Sequence[MynahError]
    ) -> None:
        with self._lock:
            self._done()
            self.synthesised += 1
            self._note_faults(faults)
            duration_s = segment.end / segment.rate_hz
            self._segments[intent.intent_id] = segment
            if self._queue.synthesised(intent.intent_id, duration_s, self._clock.monotonic_s()):
                first_pcm = TtsFirstPcm(synth_s=synth_s, frames=sound.first_frames)
                self._tell(first_pcm, intent.generation_id, intent.intent_id)
                if not sound.is_over:
                    self._growing[intent.intent_id] = intent, sound
            else:
                self._segments.pop(intent.intent_id, None)
            self._pump()

    def _on_grown(
        self, intent: SpeechIntent, sound: GrowingSound, *, is_wanted: bool, fault: PartFailed | None
    ) -> None:
        with self._lock:
            self._done()
            sound.commit()
            if fault is not None:
                self.failed += 1
                self._note_faults([fault])
            if sound.is_over or not is_wanted:
                self._growing.pop(intent.intent_id, None)
            self._pump()

    def _on_failed(self, intent: SpeechIntent, faults: Sequence[MynahError], *, is_stale: bool = False) -> None:
        with self._lock:
            self._done()
            if not is_stale and not self._staleness.is_stale(intent.generation_id):
                self.failed += 1
                self._note_faults(faults)
            self._queue.failed(intent.intent_id, self._clock.monotonic_s())
            self._pump()

    def _done(self) -> None:
        self._is_synthesising = False
        self._working_for = None

    def _note_faults(self, faults: Sequence[MynahError]) -> None:
        for fault in faults:
            if fault.code == "voice_cancelled":
                continue
            self._notice(fault.code, fault.message)

    def _notice(self, code: str, message: str) -> None:
        """Tell the user once."""
        if code not in self._noticed:
            self._noticed.add(code)
            self._tell(AppError(code=code, part="tts", recoverable=True, message=message))

    def _on_state(self, intent: SpeechIntent, change: IntentStateChanged) -> None:
        if change.state in (IntentState.PLAYED, IntentState.DROPPED):
            self._segments.pop(intent.intent_id, None)
            self._growing.pop(intent.intent_id, None)
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
