"""A rig for the ears: scripted player, recogniser and VADs behind the real protocols, and a virtual room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from audio.ears import Ears
from audio.ears_config import RATE_HZ, WINDOW_SAMPLES, EarsConfig, EndpointConfig
from audio.echo import EchoCanceller
from audio.pcm import db_to_gain, power
from audio.ports import Audible, Recognition, Samples
from audio.vad import FrameVad, WindowVad
from orchestrator.contracts.events import Event, InputInterrupt, InputSpeech, InputTurnEnd
from orchestrator.contracts.ids import GenerationId, IdFactory, IntentId, UtteranceId


class FakeEvents:
    """An `EventSink` that keeps what it gets."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def post(self, event: Event) -> bool:
        self.events.append(event)
        return True

    def speech(self, phase: str) -> list[InputSpeech]:
        found = [each.payload for each in self.events if isinstance(each.payload, InputSpeech)]
        return [each for each in found if each.phase == phase]

    def turn_ends(self) -> list[InputTurnEnd]:
        return [each.payload for each in self.events if isinstance(each.payload, InputTurnEnd)]

    def interrupts(self) -> list[Event]:
        return [each for each in self.events if isinstance(each.payload, InputInterrupt)]


class FakeRecogniser:
    """A `RecogniserPort` that holds its callers to the contract; `is_busy` refuses partials.

    `posted` is what would have become the one final transcript of each utterance.
    """

    def __init__(self) -> None:
        self.jobs: list[Recognition] = []
        self.calls: list[str] = []
        self.is_busy = False
        self.posted: dict[UtteranceId, Recognition] = {}
        self._held: dict[UtteranceId, Recognition] = {}
        self._revision: dict[UtteranceId, int] = {}

    @property
    def finals(self) -> list[Recognition]:
        return [job for job in self.jobs if job.final]

    @property
    def partials(self) -> list[Recognition]:
        return [job for job in self.jobs if not job.final]

    def submit(self, job: Recognition) -> bool:
        assert job.utterance_id not in self.posted, "submitted after the release"
        if not job.final and self.is_busy:
            return False
        if job.final:
            assert job.revision == self._revision.get(job.utterance_id, 0) + 1, "revisions rise by one"
            self._revision[job.utterance_id] = job.revision
            self._held[job.utterance_id] = job
            self.calls.append(f"final {job.revision}")
        self.jobs.append(job)
        return True

    def withdraw(self, utterance_id: UtteranceId) -> None:
        assert utterance_id not in self.posted, "withdrawn after the release"
        self._held.pop(utterance_id, None)
        self.calls.append("withdraw")

    def release(self, utterance_id: UtteranceId, revision: int) -> None:
        assert utterance_id not in self.posted, "released twice"
        held = self._held.pop(utterance_id)
        assert held.revision == revision
        self.posted[utterance_id] = held
        self.calls.append(f"release {revision}")


class FakePlayer:
    """`PlayerControls` of an output that sounds while `is_on`; a cut ends it unless `keeps_sounding`."""

    GENERATION = GenerationId("g-7")

    def __init__(self) -> None:
        self.is_on = False
        self.is_interruptible = True
        self.keeps_sounding = False
        self.gain = 1.0
        self.now_s = 0.0
        self.calls: list[tuple[str, float]] = []

    def audible(self) -> Audible | None:
        if not self.is_on:
            return None
        return Audible(
            generation_id=self.GENERATION,
            intent_id=IntentId("i-1"),
            interruptible=self.is_interruptible,
            since_s=0.0,
            recent_text="",
        )

    def recent_text(self, within_s: float) -> str:
        return ""

    def duck(self, *, gain_db: float, ramp_s: float) -> None:
        assert gain_db <= -12.0
        assert ramp_s <= 0.02
        self.calls.append(("duck", self.now_s))
        self.gain = db_to_gain(gain_db)

    def unduck(self, *, ramp_s: float) -> None:
        self.calls.append(("unduck", self.now_s))
        self.gain = 1.0

    def cut(self) -> GenerationId | None:
        if not self.is_on:
            return None
        self.calls.append(("cut", self.now_s))
        self.is_on = self.keeps_sounding
        return self.GENERATION

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def first_s(self, *names: str, after_s: float = 0.0) -> float | None:
        return next((at_s for name, at_s in self.calls if name in names and at_s >= after_s), None)


def square(count: int, rate_hz: int, level: float) -> Samples:
    """A square wave of 500 Hz."""
    half = rate_hz // 1000
    return np.resize(np.repeat([level, -level], half), count).astype(np.float32)


class LoudVad:
    """Both VADs by level, for blocks made of silence and noise: above −50 dBFS is speech."""

    def __init__(self) -> None:
        self.windows = 0

    def is_speech(self, frame: Samples) -> bool:
        return power(frame) > 1e-5

    def probability(self, window: Samples) -> float:
        self.windows += 1
        return 0.95 if power(window) > 1e-5 else 0.02

    def reset(self) -> None:
        pass


@dataclass
class Rig:
    """Ears with everything around them scripted; `hear` plays blocks of 10 ms into them."""

    ears: Ears
    player: FakePlayer
    recogniser: FakeRecogniser
    events: FakeEvents
    rate_hz: int
    now_s: float = 0.0
    echo_db: float | None = None
    echo_delay_s: float = 0.12
    on_block: Callable[[float], None] | None = None
    impulse: Samples | None = None
    _coming: Samples = field(default_factory=lambda: np.zeros(0, np.float32))
    _gain: float = 1.0

    def hear(self, near: Samples, far: Samples | None = None) -> None:
        """Let `near` sound at the microphone while `far` plays; ducks and cuts act on `far`, echo comes back late."""
        step = self.rate_hz // 100
        for begin in range(0, len(near) - step + 1, step):
            block = near[begin : begin + step]
            reference = None
            if far is not None:
                reference = self._play(far[begin : begin + step])
                if self.echo_db is not None:
                    block = block + self._echo(reference)
            self.player.now_s = self.now_s + 0.01
            if self.on_block is not None:
                self.on_block(self.now_s)
            self.ears.process(block.astype(np.float32), self.now_s, reference)
            self.now_s += 0.01

    def silence(self, seconds: float) -> None:
        self.hear(np.zeros(round(seconds * self.rate_hz), np.float32))

    def voice(self, seconds: float, level: float = 0.1) -> None:
        """A sound that `LoudVad` takes for speech."""
        self.hear(square(round(seconds * self.rate_hz), self.rate_hz, level))

    def _play(self, block: Samples) -> Samples:
        gain = self.player.gain if self.player.is_on else 0.0
        played = block * np.linspace(self._gain, gain, len(block), dtype=np.float32)
        self._gain = gain
        return played

    def _echo(self, played: Samples) -> Samples:
        """What of the sound so far comes back in this block; `played` will come back later."""
        assert self.echo_db is not None
        late = round(self.echo_delay_s * self.rate_hz)
        sound = played * np.float32(db_to_gain(self.echo_db))
        if self.impulse is not None:
            size = 1 << (len(sound) + len(self.impulse)).bit_length()
            sound = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(self.impulse, size), size)
        if len(self._coming) < late + len(sound):
            self._coming = np.pad(self._coming, (0, late + len(sound) - len(self._coming)))
        self._coming[late : late + len(sound)] += sound
        now, self._coming = self._coming[: len(played)], self._coming[len(played) :]
        return now.astype(np.float32)


def make_rig(
    *,
    config: EarsConfig | None = None,
    rate_hz: int = RATE_HZ,
    echo: EchoCanceller | None = None,
    vad1: FrameVad | None = None,
    vad2: WindowVad | None = None,
) -> Rig:
    """Ears with a fake player, recogniser and event sink."""
    player, recogniser, events = FakePlayer(), FakeRecogniser(), FakeEvents()
    ears = Ears(
        config=config or EarsConfig(endpoint=EndpointConfig(decode_wait_s=0.0)),
        rate_hz=rate_hz,
        player=player,
        recogniser=recogniser,
        events=events,
        ids=IdFactory(),
        echo=echo,
        vad1=vad1,
        vad2=vad2,
    )
    return Rig(ears=ears, player=player, recogniser=recogniser, events=events, rate_hz=rate_hz)


def energy_onset_s(samples: Samples, rate_hz: int, below_db: float = 20.0) -> float:
    """When the sound first comes within `below_db` of its loud parts and stays there for 50 ms."""
    step = rate_hz // 100
    levels = np.array([power(samples[at : at + step]) for at in range(0, len(samples) - step, step)])
    loud = levels > np.percentile(levels, 95) * 10 ** (-below_db / 10)
    for index in range(len(loud) - 5):
        if loud[index : index + 5].all():
            return index * 0.01
    return 0.0


def room(rate_hz: int, *, decay_s: float = 0.3, seed: int = 2) -> Samples:
    """The impulse response of a room that was not measured: a direct sound and a noise that decays by 60 dB."""
    count = round(decay_s * rate_hz)
    noise = np.random.default_rng(seed).normal(0.0, 1.0, count)
    tail = noise * 10 ** (-3.0 * np.arange(count) / count)
    tail *= 0.7 / np.sqrt((tail**2).sum())
    tail[0] = 0.7
    return tail.astype(np.float32)


def at_level(samples: Samples, level_db: float) -> Samples:
    """`samples` with their active parts at `level_db` dBFS RMS."""
    windows = samples[: len(samples) // WINDOW_SAMPLES * WINDOW_SAMPLES].reshape(-1, WINDOW_SAMPLES)
    powers = (windows**2).mean(axis=1)
    active = float(np.sqrt(powers[powers > powers.max() * 1e-3].mean()))
    return (samples * (db_to_gain(level_db) / active)).astype(np.float32)
