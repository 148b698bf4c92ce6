"""A ring of samples between a device callback and the ears."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audio.ports import Samples

_MARKS = 1024
_MAX_STEP_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch read from a ring: `samples`, the frame index of the first one, and its monotonic time."""

    samples: Samples
    first_frame: int
    at_s: float


class RingBuffer:
    """Float32 mono ring for one writing and one reading thread; neither ever waits or locks.

    Overflow policy: the writer always succeeds and overwrites the oldest samples; a reader that lags by more than
    the capacity goes on with what is left, and `lost_frames` counts what it missed. Every write leaves a mark
    (frame index → monotonic time), so that the reader knows the time of each sample, also across gaps.
    `write` makes no arrays, so it may run in a device callback.
    """

    def __init__(self, *, capacity_frames: int, rate_hz: int) -> None:
        """Allocate `capacity_frames` at `rate_hz`; two seconds are plenty."""
        self.rate_hz = rate_hz
        self._capacity = capacity_frames
        self._data: Samples = np.zeros(capacity_frames, np.float32)
        self._mark_frame: NDArray[np.int64] = np.full(_MARKS, -1, np.int64)
        self._mark_s: NDArray[np.float64] = np.zeros(_MARKS, np.float64)
        self._marks = 0
        self._written = 0
        self._read = 0
        self.lost_frames = 0

    @property
    def capacity_frames(self) -> int:
        """Samples the ring holds."""
        return self._capacity

    @property
    def written_frames(self) -> int:
        """Samples written since the start. Any thread."""
        return self._written

    @property
    def read_frames(self) -> int:
        """Index of the next sample to be read. Reader thread."""
        return self._read

    @property
    def available_frames(self) -> int:
        """Samples ready for the reader, at most the capacity."""
        return min(self._written - self._read, self._capacity)

    def write(self, samples: Samples, at_s: float) -> None:
        """Append `samples` (float32 mono), the first of which sounds at `at_s`. Writer thread only; never blocks.

        Of a block longer than the ring only the end is kept.
        """
        count = len(samples)
        if count == 0:
            return
        begin = self._written
        if count > self._capacity:
            skip = count - self._capacity
            samples = samples[skip:]
            at_s += skip / self.rate_hz
            begin += skip
            count = self._capacity
        slot = self._marks % _MARKS
        self._mark_frame[slot] = begin
        self._mark_s[slot] = at_s
        self._marks += 1
        place = begin % self._capacity
        head = min(count, self._capacity - place)
        self._data[place : place + head] = samples[:head]
        if head < count:
            self._data[: count - head] = samples[head:]
        self._written = begin + count

    def read(self, max_frames: int, *, min_frames: int = 1) -> Span | None:
        """Take up to `max_frames` that follow each other in time; None if fewer than `min_frames` are there.

        A jump of more than 20 ms between two writes ends the span (it may then be shorter than `min_frames`).
        """
        begin = self._skip_lost()
        count = min(max_frames, self._written - begin)
        if count < max(1, min_frames):
            return None
        at_s, steady = self._time_of(begin)
        count = min(count, steady)
        samples = self._copy(begin, count)
        if samples is None:
            return None
        self._read = begin + count
        return Span(samples=samples, first_frame=begin, at_s=at_s)

    def time_of(self, frame: int) -> float | None:
        """Return the monotonic time of `frame` (extrapolated past the last one); None before any write."""
        return None if self._marks == 0 else self._time_of(frame)[0]

    def newest_at_s(self) -> float | None:
        """Return the time right after the last written sample; None before any write."""
        return self.time_of(self._written)

    def seek(self, frame: int) -> None:
        """Go on reading at `frame`, within what the ring holds. Reader thread."""
        self._read = min(max(frame, self._oldest()), self._written)

    def clear(self) -> None:
        """Skip everything written so far. Reader thread."""
        self._read = self._written

    def _oldest(self) -> int:
        return max(0, self._written - self._capacity)

    def _skip_lost(self) -> int:
        oldest = self._oldest()
        if self._read < oldest:
            self.lost_frames += oldest - self._read
            self._read = oldest
        return self._read

    def _copy(self, begin: int, count: int) -> Samples | None:
        place = begin % self._capacity
        head = min(count, self._capacity - place)
        out: Samples = np.empty(count, np.float32)
        out[:head] = self._data[place : place + head]
        if head < count:
            out[head:] = self._data[: count - head]
        # The writer may have come round while this copied; then the copy is a mixture and is not to be used.
        if begin < self._oldest():
            self._skip_lost()
            return None
        return out

    def _time_of(self, frame: int) -> tuple[float, int]:
        """Time of `frame`, and how many frames from it on are free of jumps."""
        newest = self._marks - 1
        steady_end = self._written
        later_frame = self._written
        later_s: float | None = None
        for number in range(newest, max(-1, newest - _MARKS + 1), -1):
            mark_frame = int(self._mark_frame[number % _MARKS])
            mark_s = float(self._mark_s[number % _MARKS])
            if later_s is not None and abs(mark_s + (later_frame - mark_frame) / self.rate_hz - later_s) > _MAX_STEP_S:
                steady_end = later_frame
            if mark_frame <= frame:
                return mark_s + (frame - mark_frame) / self.rate_hz, max(1, steady_end - frame)
            later_frame, later_s = mark_frame, mark_s
        assert later_s is not None
        return later_s + (frame - later_frame) / self.rate_hz, max(1, steady_end - frame)
