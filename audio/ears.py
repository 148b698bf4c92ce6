"""The ears: from microphone blocks to the recogniser's mailbox, the player's duck and cut, and events.

What the dialogue may rely on, for each utterance id: exactly one `input:speech` onset, then exactly one `input:speech`
end (posted when the turn is over; its `at_s` is when the voice ended), right after it exactly one `input:turn_end`, and
from the recogniser exactly one final transcript, before or after, perhaps empty or rejected. Whoever has both the turn
end and the final transcript has the whole utterance (the rule for early finals is in `audio.ports.RecogniserPort`). A
turn over the limit is split: its first part ends with `by` limit, and the next utterance begins where it ended.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import numpy as np

from audio.barge_in import Action, BargeIn, Output
from audio.ears_config import FRAME_S, EarsConfig
from audio.echo import EchoCanceller, NoEchoCanceller, WebRtcEchoCanceller
from audio.echo_path import EchoPath
from audio.endpointing import (
    Endpointer,
    EndpointEvent,
    Onset,
    TurnEnded,
    VoiceEnded,
    VoiceResumed,
)
from audio.evidence import UserLevel, evidence_of
from audio.front_end import FrontEnd, FrontFrame
from audio.half_duplex import DuplexGuard
from audio.pcm import SILENCE_DB
from audio.ports import PlayerControls, RecogniserPort, Recognition, Samples
from audio.turn_words import TurnWords
from audio.utterance import OpenUtterance
from audio.vad import FrameVad, SileroVad, TwoStageVad, WebRtcVad, WindowVad
from orchestrator.contracts.events import (
    DeviceStateChanged,
    Event,
    InputContinued,
    InputInterrupt,
    InputSpeech,
    InputTurnEnd,
    Payload,
)
from orchestrator.contracts.ids import GenerationId, IdFactory, UtteranceId
from orchestrator.contracts.lanes import InterruptReason
from orchestrator.contracts.ports import EventSink

SOURCE = "ears"
_COMMANDS = 256
_OUTPUT_TAIL_S = 0.5
_STREAM_LOST_S = 0.5
_ECHO_LIMIT_S = 1.5


class Ears:
    """Owns everything between the microphone and the recogniser; all state belongs to the thread that calls `process`.

    The other public methods may be called from any thread: they queue a command (bounded to 256, the oldest is
    dropped), which is carried out at the next `process` or `idle`.
    """

    def __init__(
        self,
        *,
        config: EarsConfig,
        rate_hz: int,
        player: PlayerControls,
        recogniser: RecogniserPort,
        events: EventSink,
        ids: IdFactory,
        reference_rate_hz: int | None = None,
        echo: EchoCanceller | None = None,
        vad1: FrameVad | None = None,
        vad2: WindowVad | None = None,
    ) -> None:
        """Listen at `rate_hz`; `reference_rate_hz` is the loudspeaker's (default: the same). Loads the VADs."""
        self._config = config
        self._player = player
        self._recogniser = recogniser
        self._events = events
        self._ids = ids
        self._echo = echo or self._new_echo(config)
        self._vad = TwoStageVad(config.vad, vad1 or WebRtcVad(config.vad.vad1_mode), vad2 or SileroVad())
        self._front = self._new_front(rate_hz, reference_rate_hz or rate_hz)
        self._endpointer = Endpointer(config.endpoint, config.vad)
        self._barge_in = BargeIn(config.barge_in, config.vad, gap_s=config.endpoint.fragment_gap_s)
        self._duplex = DuplexGuard(config.echo)
        self._user = UserLevel()
        self._history: deque[FrontFrame] = deque(maxlen=round(config.endpoint.pre_roll_s / FRAME_S))
        self._utterance: OpenUtterance | None = None
        self._commands: deque[Callable[[], None]] = deque(maxlen=_COMMANDS)
        self._counts: Counter[str] = Counter()
        self._now_s = float("-inf")
        self._last_output_s = float("-inf")
        self._phrase: str | None = None
        self._is_muted = False
        self._is_hands_free = True
        self.words = TurnWords()
        self._level_db = SILENCE_DB

    # --- any thread --------------------------------------------------------------------------------------

    @property
    def level_db(self) -> float:
        """Level at the microphone in dBFS over the last 50 ms; `SILENCE_DB` when muted. Any thread."""
        return self._level_db

    @property
    def echo_path(self) -> EchoPath | None:
        """What was learned of these devices in their room; None until it is sure. Any thread."""
        return self._echo.path

    def set_muted(self, on: bool) -> None:
        """Close or open the microphone. An utterance in progress ends, and what was said of it is recognised."""
        self._commands.append(lambda: self._do_mute(on))

    def set_hands_free(self, on: bool) -> None:
        """Listen all the time, or only while push-to-talk is held (then nothing else ducks or cuts)."""
        self._commands.append(lambda: self._do_hands_free(on))

    def ptt_down(self, at_s: float) -> None:
        """Begin an utterance at once, whatever the VADs say, and cut the voice."""
        self._commands.append(lambda: self._do_ptt_down(at_s))

    def ptt_up(self, at_s: float) -> None:
        """End the push-to-talk utterance with the sound of `at_s` and a short tail."""
        self._commands.append(lambda: self._endpointer.ptt_up(at_s))

    def on_partial(
        self,
        text: str,
        utterance_id: UtteranceId | None = None,
        *,
        is_whole: bool = False,
        end_chance: float | None = None,
    ) -> None:
        """Tell the words so far: they say how patiently the end of the turn is waited for.

        `is_whole`: they are those of the early final, all that was said before the present pause; `end_chance` is how
        sure the recogniser is that a sentence ends there, None if it can't tell.
        """
        self._commands.append(lambda: self._do_partial(text, utterance_id, is_whole, end_chance))

    def on_partial_phrase(self, text: str, utterance_id: UtteranceId | None = None) -> None:
        """Tell that the words so far are a stop phrase: what sounds is cut."""
        self._commands.append(lambda: self._do_phrase(text, utterance_id))

    def end_turn(self, utterance_id: UtteranceId) -> None:
        """End the turn of `utterance_id` now if its voice has ended (semantic end of turn); else nothing happens."""
        self._commands.append(lambda: self._do_end_turn(utterance_id))

    def configure(self, config: EarsConfig) -> None:
        """Take other dials (`endpoint` and `barge_in` only)."""
        self._commands.append(lambda: self._do_configure(config))

    def stats(self) -> dict[str, int]:
        """Return counters. Any thread; numbers of one moment may be a frame apart."""
        own = {"gated_windows": self._barge_in.gated_windows}
        return dict(sorted((dict(self._counts) | own | self._front.stats()).items()))

    # --- ears thread -------------------------------------------------------------------------------------

    def set_devices(
        self, *, rate_hz: int, reference_rate_hz: int, same_room: bool = False, path: EchoPath | None = None
    ) -> None:
        """Go on with other devices: ends what was open; the echo canceller starts anew unless `same_room`.

        `path` is what an earlier run learned of the pair.
        """
        self._stop_stream(self._now_s)
        if not same_room:
            self._echo.reset()
            self._user.reset()
            self._barge_in.user_db = None
            if path is not None:
                self._echo.rehearse(path)
            if self._duplex.reset():
                self._tell_duplex()
        self._front = self._new_front(rate_hz, reference_rate_hz)

    def process(self, block: Samples, at_s: float, reference: Samples | None = None) -> None:
        """Hear a block: float32 mono at the microphone's rate, any length around 10 ms.

        `at_s` is the monotonic time of its first sample at the microphone; `reference` (float32 mono at the
        loudspeaker's rate, the same time span) what sounded meanwhile, None for nothing.
        """
        self._drain()
        if self._is_muted:
            return
        if self._front.is_break(at_s):
            self._stop_stream(self._now_s)
        for frame in self._front.push(block, at_s, reference):
            self._hear(frame)

    def idle(self, now_s: float) -> None:
        """Stand in for `process` while no blocks come: commands run, and a lost stream ends its utterance."""
        self._drain()
        if self._utterance is not None and now_s - self._now_s > _STREAM_LOST_S:
            self._counts["streams_lost"] += 1
            self._stop_stream(now_s)

    def _hear(self, frame: FrontFrame) -> None:
        now_s = self._now_s = frame.end_s
        self._level_db = frame.echo.near_db
        self._history.append(frame)
        if self._utterance is not None:
            self._utterance.frames.append(frame.samples)
        output = self._output()
        if self._duplex.frame(frame.echo):
            self._tell_duplex()
        is_deaf = frame.echo.is_doubtful or (self._duplex.is_half and self._may_be_echo(frame, output))
        # Over an echo a fragment may be its rest: there an utterance begins with the cut.
        is_over_echo = output is Output.INTERRUPTIBLE and frame.echo.is_far_active
        self._endpointer.is_listening = self._is_hands_free and not is_over_echo
        for window in frame.windows:
            probability = self._barge_in.window(evidence_of(window, frame, self._history, is_deaf=is_deaf))
            self._follow(self._endpointer.window(window.start_s, window.end_s, probability))
        self._follow(self._endpointer.tick(now_s))
        self._decide(output)
        self._ask_for_partial()

    def _may_be_echo(self, frame: FrontFrame, output: Output) -> bool:
        is_over = output is Output.SILENT and self._now_s - self._last_output_s >= self._duplex.tail_s
        return frame.echo.is_far_active or not is_over

    def _output(self) -> Output:
        audible = self._player.audible()
        if audible is None:
            return Output.SILENT
        self._last_output_s = self._now_s
        if self._utterance is not None:
            self._utterance.during_output = True
        return Output.INTERRUPTIBLE if audible.interruptible else Output.PROTECTED

    def _decide(self, output: Output) -> None:
        if self._endpointer.is_ptt:
            if output is Output.INTERRUPTIBLE:
                self._cut("ptt")
            return
        if not self._is_hands_free and self._phrase is None:
            return
        config = self._config.barge_in
        action = self._barge_in.decide(self._now_s, output)
        phrase, self._phrase = self._phrase, None
        if action is Action.DUCK:
            self._counts["ducks"] += 1
            self._player.duck(gain_db=config.duck_gain_db, ramp_s=config.duck_ramp_s)
        elif action is Action.UNDUCK:
            self._counts["unducks"] += 1
            self._player.unduck(ramp_s=config.unduck_ramp_s)
        elif action is Action.CUT:
            self._follow(self._endpointer.force_open(self._now_s))
            self._cut("vad" if phrase is None else "phrase", phrase)

    def _cut(self, by: str, text: str | None = None) -> None:
        generation_id = self._player.cut()
        if generation_id is None:
            self._counts["cuts_void"] += 1
            return
        self._counts["cuts"] += 1
        self._post(
            InputInterrupt(reason=InterruptReason.USER_BARGE_IN, by=by, text=text),
            target_generation_id=generation_id,
            interrupt_reason=InterruptReason.USER_BARGE_IN,
        )

    # --- utterances --------------------------------------------------------------------------------------

    def _follow(self, happened: list[EndpointEvent]) -> None:
        for event in happened:
            match event:
                case Onset():
                    self._begin(event)
                case VoiceEnded():
                    self._decode_early()
                case VoiceResumed():
                    self._withdraw()
                case TurnEnded():
                    self._finish(event)

    def _begin(self, onset: Onset) -> None:
        endpoint = self._config.endpoint
        is_ptt = self._endpointer.is_ptt
        at_s = onset.at_s
        begin_s = at_s
        if not onset.is_continued:
            if not is_ptt:
                at_s = self._front.onset_before(at_s, endpoint.back_track_s)
            begin_s = at_s - (endpoint.ptt_lead_s if is_ptt else endpoint.lead_s)
        during_output = self._now_s - self._last_output_s < _OUTPUT_TAIL_S
        self._utterance = OpenUtterance(
            id=self._ids.utterance(),
            begin_s=begin_s,
            during_output=during_output,
            frames=[frame.samples for frame in self._history if frame.end_s > begin_s + FRAME_S / 2],
        )
        self._counts["utterances"] += 1
        self._post(InputSpeech(phase="onset", at_s=at_s, vad=onset.probability, during_output=during_output))

    def _decode_early(self) -> None:
        utterance = self._utterance
        if utterance is not None:
            utterance.is_decoding = True
            self._counts["early_finals"] += 1
            self._submit(utterance, final=True, vad_fraction=self._endpointer.vad_fraction)

    def _withdraw(self) -> None:
        utterance = self._utterance
        if utterance is not None and utterance.is_decoding:
            utterance.is_decoding = utterance.is_told = False
            self._counts["withdrawn"] += 1
            self._recogniser.withdraw(utterance.id)
            self._post(InputContinued(at_s=self._endpointer.voice_end_s))

    def _finish(self, ended: TurnEnded) -> None:
        utterance = self._utterance
        if utterance is None:
            return
        if not utterance.is_decoding:
            self._submit(utterance, final=True, vad_fraction=ended.vad_fraction, is_ptt=ended.is_ptt)
        self._post(
            InputSpeech(
                phase="end",
                at_s=ended.voice_end_s,
                vad=ended.vad_fraction,
                during_output=utterance.during_output,
            )
        )
        is_hit = utterance.is_told and utterance.is_decoding
        self._post(InputTurnEnd(at_s=ended.at_s, silence_s=ended.silence_s, by=ended.by, speculative_hit=is_hit))
        self._counts[f"turn_ends_{ended.by}"] += 1
        self._recogniser.release(utterance.id, utterance.revision)
        self._judge_echo(utterance, ended)
        if not utterance.during_output:
            self._user.utterance(utterance.frames)
            self._barge_in.user_db = self._user.level_db
        self._utterance = None

    def _judge_echo(self, utterance: OpenUtterance, ended: TurnEnded) -> None:
        begin_ago_s, end_ago_s = self._now_s - utterance.begin_s, self._now_s - ended.voice_end_s
        is_spoken = not ended.is_ptt and utterance.begin_s - self._last_output_s < _ECHO_LIMIT_S
        if is_spoken and self._duplex.utterance(begin_ago_s, end_ago_s):
            self._tell_duplex()

    def _submit(self, utterance: OpenUtterance, *, final: bool, vad_fraction: float, is_ptt: bool = False) -> bool:
        if final:
            utterance.revision += 1
        audio = np.concatenate(utterance.frames) if utterance.frames else np.zeros(0, np.float32)
        return self._recogniser.submit(
            Recognition(
                utterance_id=utterance.id,
                audio=audio,
                final=final,
                vad_fraction=vad_fraction,
                during_output=utterance.during_output,
                revision=utterance.revision + (0 if final else 1),
                via="ptt" if is_ptt else "voice",
            )
        )

    def _ask_for_partial(self) -> None:
        utterance = self._utterance
        endpoint = self._config.endpoint
        if utterance is None or utterance.is_decoding or self._now_s < utterance.next_partial_s:
            return
        if self._endpointer.voiced_s < endpoint.partial_first_s:
            return
        fraction, is_ptt = self._endpointer.vad_fraction, self._endpointer.is_ptt
        accepted = self._submit(utterance, final=False, vad_fraction=fraction, is_ptt=is_ptt)
        self._counts["partials" if accepted else "partials_refused"] += 1
        utterance.next_partial_s = self._now_s + (endpoint.partial_every_s if accepted else endpoint.partial_retry_s)

    # --- commands ----------------------------------------------------------------------------------------

    def _drain(self) -> None:
        while self._commands:
            self._commands.popleft()()

    def _do_mute(self, on: bool) -> None:
        if on == self._is_muted:
            return
        self._is_muted = on
        self._counts["mutes"] += on
        self._stop_stream(self._now_s)
        self._level_db = SILENCE_DB

    def _do_hands_free(self, on: bool) -> None:
        self._is_hands_free = on
        self._endpointer.is_listening = on
        if not on:
            self._unduck(self._barge_in.reset())

    def _do_ptt_down(self, at_s: float) -> None:
        if self._is_muted or at_s - self._now_s > _STREAM_LOST_S:
            self._counts["ptt_without_microphone"] += 1
            return
        self._follow(self._endpointer.ptt_down(self._now_s))
        self._decide(self._output())

    def _do_partial(
        self, text: str, utterance_id: UtteranceId | None, is_whole: bool, end_chance: float | None
    ) -> None:
        utterance = self._utterance
        if utterance is None or utterance_id not in (None, utterance.id):
            return
        if is_whole and not utterance.is_decoding:
            return
        utterance.is_told = utterance.is_told or (is_whole and bool(text))
        sure = self._config.endpoint.sure_end_chance
        is_over = utterance.during_output
        ending = self.words.ending(text, end_chance, is_whole=is_whole, sure_end_chance=sure, is_over_output=is_over)
        self._endpointer.note_words(ending, is_whole=is_whole)

    def _do_phrase(self, text: str, utterance_id: UtteranceId | None) -> None:
        utterance = self._utterance
        if utterance_id is None or (utterance is not None and utterance_id == utterance.id):
            self._phrase = text
            self._barge_in.on_phrase()

    def _do_end_turn(self, utterance_id: UtteranceId) -> None:
        utterance = self._utterance
        if utterance is not None and utterance.id == utterance_id and utterance.is_decoding:
            self._follow(self._endpointer.end(self._now_s, "semantic"))

    def _do_configure(self, config: EarsConfig) -> None:
        self._config = config
        self._endpointer.configure(config.endpoint)
        self._barge_in.configure(config.barge_in)

    def _stop_stream(self, now_s: float) -> None:
        """End what is open, and make the next block the first of a new stream."""
        self._follow(self._endpointer.end(now_s, "silence"))
        self._endpointer.reset()
        self._unduck(self._barge_in.reset())
        self._front.reset()
        self._history.clear()
        self._phrase = None

    def _tell_duplex(self) -> None:
        state = "half_duplex" if self._duplex.is_half else "full_duplex"
        self._counts[state] += 1
        self._post(DeviceStateChanged(direction="input", device=None, rate=None, state=state, reason="echo"))

    def _unduck(self, action: Action) -> None:
        if action is Action.UNDUCK:
            self._counts["unducks"] += 1
            self._player.unduck(ramp_s=self._config.barge_in.unduck_ramp_s)

    def _post(
        self,
        payload: Payload,
        *,
        target_generation_id: GenerationId | None = None,
        interrupt_reason: InterruptReason | None = None,
    ) -> None:
        accepted = self._events.post(
            Event(
                payload=payload,
                source=SOURCE,
                utterance_id=self._utterance.id if self._utterance is not None else None,
                target_generation_id=target_generation_id,
                interrupt_reason=interrupt_reason,
            )
        )
        self._counts["events_refused"] += not accepted

    def _new_front(self, rate_hz: int, reference_rate_hz: int) -> FrontEnd:
        return FrontEnd(self._config, self._echo, self._vad, rate_hz=rate_hz, reference_rate_hz=reference_rate_hz)

    @staticmethod
    def _new_echo(config: EarsConfig) -> EchoCanceller:
        if not config.echo.enabled:
            return NoEchoCanceller(config.echo)
        return WebRtcEchoCanceller(config.echo)
