"""The voice loop on loudspeakers in virtual time: the real player and ears, a room between them, and a user who talks.

Only the recogniser and the dialogue are scripted: the character talks all the time; who interrupts it is listened to
until the turn is over, then it begins anew.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from rigs.acoustics import AcousticPath, Path
from rigs.ears_rig import FakeEvents, FakeRecogniser

from audio.capture import Devices, EarsThread
from audio.ears import Ears
from audio.ears_config import EarsConfig
from audio.echo import EchoCanceller
from audio.echo_path import EchoPath
from audio.pcm import db_to_gain
from audio.playback import Player
from audio.player_render import ReferenceSink, Segment
from audio.ports import Samples
from audio.ring_buffer import RingBuffer
from audio.simulated import BLOCK_S, MIC_BLOCK, MIC_RATE_HZ, OUT_BLOCK, OUT_RATE_HZ
from orchestrator.clock import VirtualClock
from orchestrator.contracts.events import (
    DeviceStateChanged,
    InputInterrupt,
    InputSpeech,
    InputTurnEnd,
    OutputCut,
    OutputDuck,
)
from orchestrator.contracts.ids import GenerationId, IdFactory, IntentId

OUT_LATENCY_S = 0.02
_LATE_S = 0.5
_AHEAD_S = 1.0
_ANSWER_AFTER_S = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Something the program did, in seconds since the start."""

    what: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a user says: 16 kHz samples that begin to sound at `at_s`."""

    at_s: float
    samples: Samples

    @property
    def end_s(self) -> float:
        """When it is over."""
        return self.at_s + len(self.samples) / MIC_RATE_HZ


class Tap(StrEnum):
    """Where the canceller's reference is taken; all but PLAYED are mutants of the program."""

    PLAYED = "played"
    LATE = "500 ms late"
    ZERO = "zeroed"
    BEFORE_GAIN = "before the gain"


class _LateSink:
    """Hands every block on 500 ms late."""

    def __init__(self, sink: ReferenceSink) -> None:
        self._sink = sink
        self._waiting = deque([np.zeros(OUT_BLOCK, np.float32)] * round(_LATE_S / BLOCK_S))

    def write(self, block: Samples, at_s: float) -> None:
        self._waiting.append(block.copy())
        self._sink.write(self._waiting.popleft(), at_s)


class _ZeroSink:
    """Hands on silence."""

    def __init__(self, sink: ReferenceSink) -> None:
        self._sink = sink

    def write(self, block: Samples, at_s: float) -> None:
        self._sink.write(np.zeros_like(block), at_s)


class _NoSink:
    """Takes nothing."""

    def write(self, block: Samples, at_s: float) -> None:
        pass


@dataclass
class LoudspeakerRig:
    """A character that talks, a room, and the ears. `sentences` are 48 kHz; they repeat without end.

    `known` is what an earlier run learned of the devices.
    """

    sentences: Sequence[Samples]
    path: Path
    drift_ppm: float = 0.0
    noise_db: float = -70.0
    config: EarsConfig = field(default_factory=EarsConfig)
    echo: EchoCanceller | None = None
    tap: Tap = Tap.PLAYED
    has_echo: bool = True
    known: EchoPath | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.clock = VirtualClock(100.0)
        self.begin_s = 100.0
        self.events = FakeEvents()
        self.happened: list[Happened] = []
        self._seen = 0
        reference = RingBuffer(capacity_frames=8 * OUT_RATE_HZ, rate_hz=OUT_RATE_HZ)
        self._capture = RingBuffer(capacity_frames=4 * MIC_RATE_HZ, rate_hz=MIC_RATE_HZ)
        sinks: dict[Tap, Callable[[ReferenceSink], ReferenceSink]] = {
            Tap.PLAYED: lambda sink: sink,
            Tap.LATE: _LateSink,
            Tap.ZERO: _ZeroSink,
            Tap.BEFORE_GAIN: lambda sink: _NoSink(),
        }
        self.player = Player(
            rate_hz=OUT_RATE_HZ, clock=self.clock, events=self.events, reference=sinks[self.tap](reference)
        )
        if self.tap is Tap.BEFORE_GAIN:
            self._tap_before_gain(reference)
        self.ears = Ears(
            config=self.config,
            rate_hz=MIC_RATE_HZ,
            reference_rate_hz=OUT_RATE_HZ,
            player=self.player,
            recogniser=FakeRecogniser(),
            events=self.events,
            ids=IdFactory(),
            echo=self.echo,
        )
        self.loop = EarsThread(ears=self.ears, clock=self.clock, on_tick=self.player.poll)
        self.loop.connect(Devices(capture=self._capture, reference=reference, path=self.known))
        self.acoustics = AcousticPath(self.path, drift_ppm=self.drift_ppm)
        self._out: Samples = np.zeros(OUT_BLOCK, np.float32)
        self._blocks_out = 0
        self._sample = 0
        self._names: Iterator[int] = itertools.count(1)
        self._texts = itertools.cycle(self.sentences) if self.sentences else iter(())
        self._generation: GenerationId | None = None
        self._held: GenerationId | None = None
        self._talk_at_s = 0.0
        self._chance = np.random.default_rng(self.seed)
        self.is_talking = True
        self.mic: list[Samples] = []
        self.keep_mic = False

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return self._sample / self.acoustics.rate_hz

    def run(self, seconds: float, said: Sequence[Said] = ()) -> list[Happened]:
        """Let `seconds` pass; returns what the program did in them. `said` is timed since the start of the rig."""
        first = len(self.happened)
        end_s = self.now_s + seconds
        while self.now_s < end_s - 1e-9:
            self._block(said)
        return self.happened[first:]

    def _tap_before_gain(self, sink: ReferenceSink) -> None:
        renderer = self.player._renderer
        apply_gain = renderer._apply_gain

        def tap(out: Samples) -> None:
            sink.write(out, self.begin_s + self._blocks_out * BLOCK_S + OUT_LATENCY_S)
            apply_gain(out)

        renderer._apply_gain = tap  # type: ignore[method-assign]

    def _block(self, said: Sequence[Said]) -> None:
        begin_s = self.now_s
        block_end_s = begin_s + MIC_BLOCK / self.acoustics.rate_hz
        self._feed()
        while self._blocks_out * BLOCK_S < block_end_s:
            self.player.render(self._out, self.begin_s + self._blocks_out * BLOCK_S + OUT_LATENCY_S)
            self.acoustics.play(self._out)
            self._blocks_out += 1
        near = self._chance.normal(0.0, db_to_gain(self.noise_db), MIC_BLOCK).astype(np.float32)
        if self.has_echo:
            near += self.acoustics.hear(self._sample, OUT_LATENCY_S)
        for each in said:
            at = round((begin_s - each.at_s) * MIC_RATE_HZ)
            if -MIC_BLOCK < at < len(each.samples):
                part = each.samples[max(0, at) : at + MIC_BLOCK]
                where = max(0, -at)
                near[where : where + len(part)] += part
        near = np.clip(near, -1.0, 1.0)
        if self.keep_mic:
            self.mic.append(near)
        self._capture.write(near, self.begin_s + begin_s)
        self._sample += MIC_BLOCK
        self.clock.advance_to(self.begin_s + self.now_s)
        self.loop.step(self.clock.monotonic_s())
        self._follow()

    def _feed(self) -> None:
        if not self.is_talking or self._held is not None or self.now_s < self._talk_at_s:
            return
        if self._generation is None:
            self._generation = GenerationId(f"g-{next(self._names)}")
        if self.player.ahead_s() < _AHEAD_S:
            pcm = next(self._texts, None)
            if pcm is not None:
                self.player.enqueue(
                    Segment(
                        intent_id=IntentId(f"i-{next(self._names)}"),
                        generation_id=self._generation,
                        text="",
                        pcm=pcm,
                        rate_hz=OUT_RATE_HZ,
                        words=(),
                    )
                )

    def _follow(self) -> None:
        fresh = self.events.events[self._seen :]
        self._seen = len(self.events.events)
        for event in fresh:
            match event.payload:
                case InputInterrupt():
                    self._note("interrupt")
                    self._held = self._generation
                case DeviceStateChanged(state=state):
                    self._note(state)
                case OutputDuck(at_s=at_s):
                    self._note("duck", at_s)
                case OutputCut(at_s=at_s, last_sample_at_s=last_s):
                    self._note("cut", at_s)
                    self._note("silent", last_s)
                case InputSpeech(phase="onset", at_s=at_s):
                    self._note("onset", at_s)
                case InputTurnEnd():
                    self._note("turn_end")
                    if self._held is not None:
                        self.player.purge(self._held)
                        self._held = self._generation = None
                        self._talk_at_s = self.now_s + _ANSWER_AFTER_S
                case _:
                    pass
        if len(self.events.events) > 5000:
            self.events.events.clear()
            self._seen = 0

    def _note(self, what: str, at_s: float | None = None) -> None:
        self.happened.append(Happened(what=what, at_s=self.now_s if at_s is None else at_s - self.begin_s))


def names(happened: Sequence[Happened]) -> list[str]:
    """Return what happened, without times."""
    return [each.what for each in happened]


def first_s(happened: Sequence[Happened], *what: str, after_s: float = 0.0) -> float | None:
    """Return when one of `what` happened first after `after_s`; None if never."""
    return min((each.at_s for each in happened if each.what in what and each.at_s >= after_s), default=None)
