"""From device blocks to cancelled 10 ms frames with their times and VAD windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from audio.ears_config import FRAME_S, FRAME_SAMPLES, RATE_HZ, EarsConfig
from audio.echo import EchoCanceller, EchoFrame
from audio.pcm import StreamResampler, rms_db
from audio.ports import Samples
from audio.vad import TwoStageVad

_NUDGE = 0.05
_MAX_FAR_LAG_FRAMES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedWindow:
    """VAD 2's opinion with monotonic times at the microphone."""

    start_s: float
    end_s: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontFrame:
    """10 ms of cancelled sound that was at the microphone at `at_s`, and the windows that ended in it."""

    at_s: float
    echo: EchoFrame
    windows: tuple[TimedWindow, ...]

    @property
    def samples(self) -> Samples:
        """160 samples at 16 kHz."""
        return self.echo.samples

    @property
    def end_s(self) -> float:
        """Time right after the frame."""
        return self.at_s + FRAME_S


def levels_db(window: TimedWindow, frames: Sequence[FrontFrame]) -> tuple[float, ...]:
    """Return the levels (dBFS) of the frames within `window`; `frames` are the last ones, in time order."""
    half_s = FRAME_S / 2
    recent = takewhile(lambda frame: frame.end_s > window.start_s + half_s, reversed(frames))
    return tuple(rms_db(frame.samples) for frame in recent if frame.end_s <= window.end_s + half_s)[::-1]


class FrontEnd:
    """Resampling, framing, echo cancellation and the VADs, in this order. One thread."""

    def __init__(
        self, config: EarsConfig, echo: EchoCanceller, vad: TwoStageVad, *, rate_hz: int, reference_rate_hz: int
    ) -> None:
        """Take microphone blocks at `rate_hz` and references at `reference_rate_hz`."""
        self._config = config
        self._echo = echo
        self._vad = vad
        self._rate_hz = rate_hz
        self._reference_rate_hz = reference_rate_hz
        self._near = StreamResampler(rate_hz, RATE_HZ)
        self._far = StreamResampler(reference_rate_hz, RATE_HZ)
        self._far_owed = 0.0
        self._near_left: Samples = np.zeros(0, np.float32)
        self._far_left: Samples = np.zeros(0, np.float32)
        self._base_s: float | None = None
        self._next_s = 0.0
        self.breaks = 0
        self.far_padded_frames = 0

    def is_break(self, at_s: float) -> bool:
        """Whether a block at `at_s` does not follow on the last one (a device was changed, the machine slept)."""
        return self._base_s is not None and abs(at_s - self._next_s) > self._config.stream_gap_s

    def push(self, block: Samples, at_s: float, reference: Samples | None) -> Iterator[FrontFrame]:
        """Take a block (see `Ears.process`) and yield what is complete."""
        if self.is_break(at_s):
            self.breaks += 1
            self.reset()
        self._keep_time(at_s, len(block))
        self._near_left = np.concatenate((self._near_left, self._near.push(block)))
        self._far_left = np.concatenate((self._far_left, self._far.push(self._reference(reference, len(block)))))
        # The two resamplers may give their pieces at different moments; waiting keeps echo and reference aligned.
        while len(self._near_left) >= FRAME_SAMPLES:
            if len(self._far_left) < FRAME_SAMPLES:
                if len(self._near_left) < _MAX_FAR_LAG_FRAMES * FRAME_SAMPLES:
                    return
                self.far_padded_frames += 1
                self._far_left = np.pad(self._far_left, (0, FRAME_SAMPLES - len(self._far_left)))
            near, self._near_left = self._near_left[:FRAME_SAMPLES], self._near_left[FRAME_SAMPLES:]
            far, self._far_left = self._far_left[:FRAME_SAMPLES], self._far_left[FRAME_SAMPLES:]
            yield self._frame(near, far)

    def onset_before(self, at_s: float, limit_s: float) -> float:
        """Return where the sound that reaches `at_s` began by VAD 1, at most `limit_s` earlier."""
        sample = round((at_s - self._time_of(0)) * RATE_HZ)
        return self._time_of(self._vad.onset_before(sample, round(limit_s * RATE_HZ)))

    def reset(self) -> None:
        """Drop what is half done and begin a new stream; the canceller keeps what it knows of the room."""
        self._near.reset()
        self._far.reset()
        self._far_owed = 0.0
        self._near_left = self._near_left[:0]
        self._far_left = self._far_left[:0]
        self._base_s = None
        self._vad.reset()

    def stats(self) -> dict[str, int]:
        """Return counters."""
        own = {"stream_breaks": self.breaks, "far_padded_frames": self.far_padded_frames}
        return own | self._echo.stats() | self._vad.stats()

    def _keep_time(self, at_s: float, count: int) -> None:
        observed_s = at_s - self._near.in_frames / self._rate_hz
        if self._base_s is None:
            self._base_s = observed_s
        else:
            self._base_s += _NUDGE * (observed_s - self._base_s)
        self._next_s = at_s + count / self._rate_hz

    def _time_of(self, sample: int) -> float:
        """Time at the microphone of a sample behind the canceller."""
        return (self._base_s or 0.0) + sample / RATE_HZ - self._echo.delay_s

    def _reference(self, reference: Samples | None, count: int) -> Samples:
        if reference is not None:
            return reference
        exact = count * self._reference_rate_hz / self._rate_hz + self._far_owed
        silent = int(exact)
        self._far_owed = exact - silent
        return np.zeros(silent, np.float32)

    def _frame(self, near: Samples, far: Samples) -> FrontFrame:
        echo = self._echo.process(near, far)
        begin = self._vad.samples
        windows = self._vad.push(echo.samples)
        timed = tuple(
            TimedWindow(start_s=self._time_of(each.start), end_s=self._time_of(each.end), probability=each.probability)
            for each in windows
        )
        return FrontFrame(at_s=self._time_of(begin), echo=echo, windows=timed)
