"""The audio side in one piece: ears, recogniser, voice and player around a pair of devices, real or simulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from audio.capture import Devices, EarsThread
from audio.device_manager import DeviceManager
from audio.ears import Ears
from audio.ears_config import EarsConfig
from audio.echo_path_store import EchoPathStore, Pair
from audio.pcm import resample
from audio.playback import Player
from audio.ports import Samples
from audio.ring_buffer import RingBuffer
from audio.stt.recogniser import Recogniser
from audio.stt.settings import CostTable, RecogniserSettings
from audio.stt.transcription import SpeechRecogniser, Transcription
from audio.tts.pauses import Pauses
from audio.tts.speech_worker import SpeechWorker
from audio.tts.voice import SpeechSynthesiser
from audio.tts.voice_choice import VoiceLoader
from audio.workers import Worker
from orchestrator.clock import Clock
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import Event, InputTranscript
from orchestrator.contracts.ids import IdFactory
from orchestrator.contracts.ports import EventSink, Staleness

_CAPTURE_S = 4.0
_REFERENCE_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioModels:
    """Loaded and warm: `final` and `partial` recognise, `voices` speak, the first that can.

    `load_voice` fetches a voice that an intent asks for by name.
    """

    final: SpeechRecogniser | None
    partial: SpeechRecogniser | None
    voices: tuple[SpeechSynthesiser, ...]
    load_voice: VoiceLoader | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What the user chose about sound; `echo_paths` is the file for what is learned of loudspeakers, None: none."""

    ears: EarsConfig = field(default_factory=EarsConfig)
    recogniser: RecogniserSettings = field(default_factory=RecogniserSettings)
    costs: CostTable | None = None
    synth_cost_per_char_s: float | None = None
    pauses: Pauses = field(default_factory=Pauses)
    input_name: str | None = None
    output_name: str | None = None
    extra_output_delay_s: float = 0.0
    is_hands_free: bool = True
    volume: float = 0.8
    echo_paths: Path | None = None


class DeafRecogniser:
    """Stands in where no recogniser could be loaded: every utterance is answered as not understood."""

    @property
    def cores(self) -> float:
        """It costs nothing."""
        return 0.0

    def transcribe(
        self,
        audio: Samples,
        *,
        languages: Sequence[str],
        hotwords: Sequence[str] = (),
        final: bool = True,
        vad_fraction: float | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Transcription:
        """Raise `PartFailed` stt_missing."""
        raise PartFailed(
            "stt_missing", "there is no recogniser; get one with `mynah models get`", part="stt", recoverable=True
        )


class _EarSink:
    """Lets the ears know the words so far on their way to the bus."""

    def __init__(self, inner: EventSink) -> None:
        self._inner = inner
        self.ears: Ears | None = None

    def post(self, event: Event) -> bool:
        payload = event.payload
        if self.ears is not None and isinstance(payload, InputTranscript) and not payload.final:
            self.ears.on_partial(
                payload.text, event.utterance_id, is_whole=payload.provisional, end_chance=payload.end_chance
            )
        return self._inner.post(event)


class _ReferenceTap:
    """Writes what was played into the ring of the moment; the ring changes with the device's rate."""

    def __init__(self, engine: AudioEngine) -> None:
        self._engine = engine

    def write(self, block: Samples, at_s: float) -> None:
        self._engine._reference.write(block, at_s)


class AudioEngine:
    """Owns the audio threads. `start` and `stop` belong to one thread; the rest may be called from any."""

    def __init__(
        self,
        *,
        clock: Clock,
        ids: IdFactory,
        events: EventSink,
        staleness: Staleness,
        models: AudioModels,
        config: EngineConfig,
        make_worker: Callable[[str], Worker],
        mic_rate_hz: int = 48_000,
        out_rate_hz: int = 48_000,
    ) -> None:
        """Build the parts; no device is opened before `start`."""
        self._clock = clock
        self._config = config
        self._events = events
        self._workers = {name: make_worker(name) for name in ("stt", "tts")}
        self._reference = _ring(out_rate_hz, _REFERENCE_S)
        self._capture = _ring(mic_rate_hz, _CAPTURE_S)
        self.player = Player(
            rate_hz=out_rate_hz, clock=clock, events=events, reference=_ReferenceTap(self), resample=resample
        )
        self.speech = SpeechWorker(
            worker=self._workers["tts"],
            player=self.player,
            voices=models.voices,
            load_voice=models.load_voice,
            pauses=config.pauses,
            events=events,
            clock=clock,
            staleness=staleness,
            synth_cost_s=None
            if config.synth_cost_per_char_s is None
            else _cost_by_length(config.synth_cost_per_char_s),
        )
        sink = _EarSink(events)
        self.recogniser = Recogniser(
            worker=self._workers["stt"],
            final=models.final if models.final is not None else DeafRecogniser(),
            partial=models.partial,
            events=sink,
            clock=clock,
            settings=config.recogniser,
            cost_table=config.costs,
        )
        self.ears = Ears(
            config=config.ears,
            rate_hz=mic_rate_hz,
            reference_rate_hz=out_rate_hz,
            player=self.player,
            recogniser=self.recogniser,
            events=events,
            ids=ids,
        )
        sink.ears = self.ears
        self.ears.set_hands_free(config.is_hands_free)
        self.loop = EarsThread(ears=self.ears, clock=clock, on_tick=self._on_tick)
        self._devices: DeviceManager | None = None
        self._echo_paths = EchoPathStore(config.echo_paths)
        self._ticks = 0
        self._is_threaded = False

    # --- devices ----------------------------------------------------------------------------------------

    def start(self, *, with_microphone: bool = True, with_loudspeaker: bool = True) -> None:
        """Open the devices and run. Raises `InputError` for a named device that does not exist."""
        self._devices = DeviceManager(
            clock=self._clock,
            events=self._events,
            input_name=self._config.input_name,
            output_name=self._config.output_name,
            on_block=self.hear if with_microphone else None,
            on_input_opening=self._on_input_opening,
            render=self.render if with_loudspeaker else None,
            on_output_opening=self._on_output_opening,
            on_output_lost=self.player.detach,
            on_underflow=self.player.note_underflow,
            on_output_available=self._on_output_available,
            is_output_busy=lambda: not self.player.is_idle(),
        )
        self._devices.open()
        self._is_threaded = True
        self.loop.start()

    def connect_simulation(self) -> None:
        """Use the engine's own rings in place of devices; the caller drives `hear`, `render` and `step`."""
        self.loop.connect(Devices(capture=self._capture, reference=self._reference))

    def stop_listening(self, timeout_s: float = 0.3) -> None:
        """End the utterance that is open and answer what is not recognised yet, so that every id is closed."""
        self.ears.set_muted(True)
        if self._is_threaded:
            seen, pause = self._ticks, threading.Event()
            for _ in range(int(timeout_s / 0.005)):
                # Two ticks later the command has been carried out, whatever the loop was doing when it came.
                if self._ticks >= seen + 2 or pause.wait(0.005):
                    break
        else:
            self.loop.step(self._clock.monotonic_s())
        self.recogniser.stop()

    def stop(self, timeout_s: float = 1.5) -> None:
        """Close the devices and end the threads; in bounded time."""
        if self._devices is not None:
            self._devices.close(timeout_s)
        self.loop.stop(0.5)
        self._echo_paths.save()
        self.recogniser.stop()
        for worker in self._workers.values():
            worker.stop(0.2)

    def choose_devices(self, *, input_name: str | None, output_name: str | None) -> None:
        """Change to other devices while running. Raises `InputError` for one that does not exist."""
        if self._devices is not None:
            self._devices.choose(input_name=input_name, output_name=output_name)

    # --- any thread -------------------------------------------------------------------------------------

    def set_extra_output_delay(self, seconds: float) -> None:
        """Reckon with another delay behind the loudspeaker from the next block on."""
        self._config = replace(self._config, extra_output_delay_s=seconds)

    def push_to_talk(self, *, down: bool) -> None:
        """Take the key."""
        now_s = self._clock.monotonic_s()
        if down:
            self.ears.ptt_down(now_s)
        else:
            self.ears.ptt_up(now_s)

    def mute_microphone(self, on: bool) -> None:
        """Close or open the microphone."""
        self.ears.set_muted(on)

    def stop_sound(self) -> None:
        """Silence the loudspeaker now; what becomes of the answer is the core's decision."""
        self.player.cut()

    @property
    def level_db(self) -> float:
        """Level at the microphone in dBFS."""
        return self.ears.level_db

    @property
    def is_output_idle(self) -> bool:
        """Whether nothing sounds or waits to be played."""
        return self.speech.is_idle()

    @property
    def is_working(self) -> bool:
        """Whether a model call of the audio side has not delivered."""
        return any(worker.is_busy for worker in self._workers.values())

    def latencies(self) -> tuple[float | None, float | None]:
        """Return the latencies of microphone and loudspeaker in seconds, None where there is no open device."""
        devices = self._devices
        if devices is None:
            return None, None
        capture, playback = devices.capture, devices.playback
        return (
            capture.latency_s if capture is not None and capture.is_open else None,
            playback.latency_s if playback is not None and playback.is_open else None,
        )

    def device_names(self) -> dict[str, str | None]:
        """Return the names of the open devices."""
        devices = self._devices
        found: dict[str, str | None] = {"input": None, "output": None}
        if devices is not None:
            for name, stream in (("input", devices.capture), ("output", devices.playback)):
                if stream is not None and stream.is_open and stream.device is not None:
                    found[name] = stream.device.name
        return found

    def stats(self) -> dict[str, int]:
        """Return the counters of the audio side."""
        found = dict(self.loop.stats())
        found.update(self.speech.counters())
        found["stt_refused_partials"] = self.recogniser.refused_partials
        found["stt_dropped_results"] = self.recogniser.dropped_results
        found["stt_failures"] = self.recogniser.failures
        if self._devices is not None:
            found["xruns"] = self._devices.xruns
            found["devices_lost"] = self._devices.lost
            found["devices_reopened"] = self._devices.reopened
        return found

    # --- device threads ---------------------------------------------------------------------------------

    def hear(self, block: Samples, at_s: float) -> None:
        """Take a microphone block; `at_s` is the time of its first sample at the microphone."""
        self._capture.write(block, at_s)

    def render(self, out: Samples, dac_time_s: float) -> None:
        """Fill a loudspeaker block whose first sample sounds at `dac_time_s`."""
        self.player.render(out, dac_time_s + self._config.extra_output_delay_s)

    # --- inside -----------------------------------------------------------------------------------------

    def _on_input_opening(self, rate_hz: int) -> None:
        self._capture = _ring(rate_hz, _CAPTURE_S)
        self._reconnect()

    def _on_output_opening(self, rate_hz: int) -> None:
        is_same_rate = rate_hz == self._reference.rate_hz
        if not is_same_rate:
            self._reference = _ring(rate_hz, _REFERENCE_S)
        self.player.attach(rate_hz)
        if not is_same_rate:
            # The ears would end what the user is saying; another latency does not concern them.
            self._reconnect()

    def _on_output_available(self, is_there: bool) -> None:
        self.speech.set_output(is_there)

    def _reconnect(self) -> None:
        pair = self._pair()
        path = self._echo_paths.get(pair) if pair is not None else None
        self.loop.connect(Devices(capture=self._capture, reference=self._reference, path=path))

    def _pair(self) -> Pair | None:
        """Return the names of the devices that are open, or just being opened."""
        devices = self._devices
        if devices is None or devices.capture is None or devices.playback is None:
            return None
        capture, playback = devices.capture.device, devices.playback.device
        return None if capture is None or playback is None else (capture.name, playback.name)

    def _note_echo_path(self) -> None:
        path, pair = self.ears.echo_path, self._pair()
        if path is not None and pair is not None:
            self._echo_paths.put(pair, path)

    def _on_tick(self, now_s: float) -> None:
        self.speech.poll(now_s)
        self._ticks += 1
        if self._devices is not None and self._ticks % 20 == 0:
            self._devices.check(now_s)
            self._note_echo_path()


def _cost_by_length(per_char_s: float) -> Callable[[str], float]:
    return lambda text: 0.02 + per_char_s * len(text)


def _ring(rate_hz: int, seconds: float) -> RingBuffer:
    return RingBuffer(capacity_frames=int(rate_hz * seconds), rate_hz=rate_hz)
