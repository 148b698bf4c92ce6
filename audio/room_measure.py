"""What a room does to the conversation: two recorded tracks in, figures out.

The tracks go through the same ears as in a conversation, so what is counted is what would happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from audio.capture import BLOCK_S, Devices, EarsThread
from audio.ears import Ears
from audio.ears_config import RATE_HZ, EarsConfig
from audio.echo import EchoFrame, WebRtcEchoCanceller
from audio.pcm import SILENCE_DB, db_to_gain, power, power_db, resample
from audio.ports import Audible, Recognition, Samples
from audio.ring_buffer import RingBuffer
from orchestrator.clock import VirtualClock
from orchestrator.contracts.events import Event
from orchestrator.contracts.ids import GenerationId, IdFactory, IntentId, UtteranceId

_FRAME = RATE_HZ // 100
_LONGEST_DELAY_S = 1.0
_EARLIEST_S = -0.15
_LIKELY = 8.0
_SOUND_DB = -60.0
_THERE_DB = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Mono samples and the monotonic time of the first one, at the microphone or at the loudspeaker."""

    samples: Samples
    rate_hz: int
    at_s: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / self.rate_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomFigures:
    """What was found. Levels are dBFS at the microphone.

    `noise_db` is the quiet room, `voice_db` the character's voice (None: it does not reach the microphone),
    `coupling_db` that voice relative to what was played; `delay_s` how much later than the devices report it arrives
    (None: not found); `loss_db` how much the canceller takes out; `ducks`, `cuts` how often the own voice was taken for
    the user in `talked_s` of talking; `is_half_duplex` whether the echo can't be tamed.
    """

    noise_db: float
    voice_db: float | None
    coupling_db: float | None
    delay_s: float | None
    loss_db: float | None
    ducks: int
    cuts: int
    talked_s: float
    is_half_duplex: bool

    @property
    def ducks_per_minute(self) -> float:
        """False ducks in a minute of talking."""
        return 60.0 * self.ducks / self.talked_s if self.talked_s > 0.0 else 0.0


def measure_room(microphone: Track, loudspeaker: Track, *, config: EarsConfig | None = None) -> RoomFigures:
    """Compare what was heard with what was played. What was heard begins with at least a second of silence."""
    config = config or EarsConfig()
    near = resample(microphone.samples, microphone.rate_hz, RATE_HZ)
    far = resample(loudspeaker.samples, loudspeaker.rate_hz, RATE_HZ)
    far_db = _levels(far)
    sounding = np.flatnonzero(far_db > _SOUND_DB)
    talked_s = len(sounding) * 0.01
    offset = round((loudspeaker.at_s - microphone.at_s) * RATE_HZ)
    first = offset + (int(sounding[0]) * _FRAME if len(sounding) else len(far))
    last = offset + (int(sounding[-1]) * _FRAME if len(sounding) else 0)
    noise_db = _level(near[: max(0, first + round(_EARLIEST_S * RATE_HZ))], 50)
    heard = near[max(0, first) : last + RATE_HZ // 2]
    heard_db = _level(heard, 90)
    is_heard = len(sounding) > 0 and heard_db > noise_db + _THERE_DB
    # Energies, because an echo is longer than what made it.
    echo = max(0.0, power(heard) - db_to_gain(noise_db) ** 2) * len(heard)
    played = power(far) * len(far)
    listened = _Listening(config, microphone, loudspeaker)
    listened.run()
    return RoomFigures(
        noise_db=noise_db,
        voice_db=heard_db if is_heard else None,
        coupling_db=power_db(echo / played) if is_heard else None,
        delay_s=_delay_s(near, far, offset) if is_heard else None,
        loss_db=listened.loss_db if is_heard else None,
        ducks=listened.ducks,
        cuts=listened.cuts,
        talked_s=talked_s,
        is_half_duplex=listened.is_half_duplex,
    )


def _levels(samples: Samples) -> Samples:
    count = len(samples) // _FRAME
    powers = np.mean(np.square(samples[: count * _FRAME].reshape(count, _FRAME)), axis=1)
    return np.asarray(10 * np.log10(np.maximum(powers, 1e-12)), np.float32)


def _level(samples: Samples, percent: float) -> float:
    levels = _levels(samples)
    return float(np.percentile(levels, percent)) if len(levels) else SILENCE_DB


def _delay_s(near: Samples, far: Samples, offset: int) -> float | None:
    """Find the lag of the echo by the phase of the cross spectrum; None if no peak stands out."""
    size = 1 << (len(near) + len(far)).bit_length()
    cross = np.fft.rfft(near, size) * np.conj(np.fft.rfft(far, size))
    scores = np.fft.irfft(cross / np.maximum(np.abs(cross), 1e-9), size)
    lags = np.arange(round(_EARLIEST_S * RATE_HZ), round(_LONGEST_DELAY_S * RATE_HZ)) + offset
    found = np.abs(scores[lags % size])
    best = int(np.argmax(found))
    if found[best] < _LIKELY * float(np.sqrt(np.mean(found**2))):
        return None
    return float(lags[best] - offset) / RATE_HZ


class _Watched(WebRtcEchoCanceller):
    """The canceller, which remembers its last frame."""

    last: EchoFrame | None = None

    def process(self, near: Samples, far: Samples | None) -> EchoFrame:
        """Cancel and remember."""
        self.last = super().process(near, far)
        return self.last


class _Listening:
    """The ears on two tracks: a player that only counts, a recogniser and a bus that only take."""

    def __init__(self, config: EarsConfig, microphone: Track, loudspeaker: Track) -> None:
        self._microphone = microphone
        self._loudspeaker = loudspeaker
        self._clock = VirtualClock(microphone.at_s)
        self._last_sound_s = float("-inf")
        self._echo = _Watched(config.echo)
        self._capture = RingBuffer(capacity_frames=4 * microphone.rate_hz, rate_hz=microphone.rate_hz)
        self._reference = RingBuffer(capacity_frames=8 * loudspeaker.rate_hz, rate_hz=loudspeaker.rate_hz)
        self._ears = Ears(
            config=config,
            rate_hz=microphone.rate_hz,
            reference_rate_hz=loudspeaker.rate_hz,
            player=self,
            recogniser=self,
            events=self,
            ids=IdFactory(),
            echo=self._echo,
        )
        self.ducks = 0
        self.cuts = 0
        self.loss_db: float | None = None

    @property
    def is_half_duplex(self) -> bool:
        """Whether the ears gave up listening over the voice."""
        counts = self._ears.stats()
        return counts.get("half_duplex", 0) > counts.get("full_duplex", 0)

    def run(self) -> None:
        """Let both tracks pass."""
        loop = EarsThread(ears=self._ears, clock=self._clock)
        loop.connect(Devices(capture=self._capture, reference=self._reference))
        near, far = self._microphone, self._loudspeaker
        near_step, far_step = round(near.rate_hz * BLOCK_S), round(far.rate_hz * BLOCK_S)
        played = 0
        loop.step(near.at_s)
        for number in range(len(near.samples) // near_step):
            begin_s = near.at_s + number * BLOCK_S
            # What is played is known ahead by the devices' latency.
            while played < len(far.samples) and far.at_s + played / far.rate_hz < begin_s + 0.05:
                block = far.samples[played : played + far_step]
                at_s = far.at_s + played / far.rate_hz
                self._reference.write(block, at_s)
                if power_db(power(block)) > _SOUND_DB:
                    self._last_sound_s = at_s
                played += far_step
            self._capture.write(near.samples[number * near_step : (number + 1) * near_step], begin_s)
            self._clock.advance_to(begin_s + BLOCK_S)
            loop.step(begin_s + BLOCK_S)
            if self._echo.last is not None and self._echo.last.loss_db is not None:
                self.loss_db = self._echo.last.loss_db

    # --- the player's side ------------------------------------------------------------------------------

    def audible(self) -> Audible | None:
        """Sound is audible while it is played and half a second after."""
        if self._clock.monotonic_s() - self._last_sound_s > 0.5:
            return None
        return Audible(
            generation_id=GenerationId("room"),
            intent_id=IntentId("room"),
            interruptible=True,
            since_s=0.0,
            recent_text="",
        )

    def recent_text(self, within_s: float) -> str:
        """Nothing that could be read was said."""
        return ""

    def duck(self, *, gain_db: float, ramp_s: float) -> None:
        """Count it; the track was played as it is."""
        self.ducks += 1

    def unduck(self, *, ramp_s: float) -> None:
        """Nothing was lowered."""

    def cut(self) -> GenerationId | None:
        """Count it."""
        self.cuts += 1
        return GenerationId("room")

    # --- the recogniser's and the bus's side --------------------------------------------------------------

    def submit(self, job: Recognition) -> bool:
        """Take it."""
        return True

    def withdraw(self, utterance_id: UtteranceId) -> None:
        """Nothing is kept."""

    def release(self, utterance_id: UtteranceId, revision: int) -> None:
        """Nothing is recognised."""

    def post(self, event: Event) -> bool:
        """Take it."""
        return True


def joined(blocks: Sequence[tuple[Samples, float]], rate_hz: int) -> Track:
    """Return device blocks with the times of their first samples as one track; holes become silence."""
    if not blocks:
        return Track(samples=np.zeros(0, np.float32), rate_hz=rate_hz, at_s=0.0)
    begin_s = blocks[0][1]
    hole = round(0.02 * rate_hz)
    # Blocks that follow the one before, and not their time, may end later than the time says by less than a hole.
    length = hole + max(round((at_s - begin_s) * rate_hz) + len(block) for block, at_s in blocks)
    out: Samples = np.zeros(length, np.float32)
    written = end = 0
    for block, at_s in blocks:
        place = round((at_s - begin_s) * rate_hz)
        # Device times lean and jitter; only a real hole moves the samples.
        place = written if abs(place - written) < hole else max(0, place)
        written = place + len(block)
        out[place:written] = block
        end = max(end, written)
    return Track(samples=out[:end], rate_hz=rate_hz, at_s=begin_s)
