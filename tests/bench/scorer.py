"""Times read from recordings alone: when the user began and ceased to speak, when a loudspeaker fell silent and spoke.

Nothing here knows the program under test: a recording of its microphone, one of its loudspeaker on the same clock and
the sound that was played are enough. Samples are float32 mono in -1..1; times are seconds from a recording's start
unless they end in `at_s`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]
Levels = npt.NDArray[np.float64]

FRAME_S = 0.005
SILENT_DB = -60.0
"""Below this the loudspeaker counts as silent: the character speaks some 40 dB louder."""
AUDIBLE_DB = -50.0
DOWN_BY_DB = 12.0
_CERTAIN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A recording and when its first sample was, on a clock shared with other tracks."""

    samples: Samples
    rate_hz: int
    start_s: float

    def index(self, at_s: float) -> int:
        """Return the sample at a moment of the shared clock, kept inside the recording."""
        return int(np.clip(round((at_s - self.start_s) * self.rate_hz), 0, len(self.samples)))

    def between(self, begin_s: float, end_s: float) -> Samples:
        """Return the samples between two moments of the shared clock."""
        return self.samples[self.index(begin_s) : self.index(end_s)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voiced:
    """First and last voiced sample of a sound, in seconds from its beginning."""

    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Where a known sound was found in a recording: first and last voiced sample on the shared clock.

    `likeness` is the normalised correlation, 1 for an exact copy.
    """

    onset_at_s: float
    end_at_s: float
    begin_at_s: float
    likeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Yielding:
    """How an output gave way, in seconds from the onset; None: it did not within the time looked at."""

    down_s: float | None
    silent_s: float | None


def levels_db(samples: Samples, rate_hz: int, frame_s: float = FRAME_S) -> Levels:
    """Return the RMS level of each whole frame in dBFS, -120 for silence."""
    frame = max(1, round(rate_hz * frame_s))
    count = len(samples) // frame
    power = np.mean(np.square(samples[: count * frame].astype(np.float64).reshape(count, frame)), axis=1)
    return np.asarray(10 * np.log10(np.maximum(power, 1e-12)), dtype=np.float64)


def voice_level_db(levels: Levels) -> float:
    """Return the level above which a frame of this recording has voice in it, in dBFS: well over its own noise."""
    loud, floor = float(np.percentile(levels, 95)), float(np.percentile(levels, 5))
    return min(max(loud - 28.0, floor + 8.0), loud - 10.0)


def voiced_span(samples: Samples, rate_hz: int) -> Voiced:
    """Return first and last voiced sample by level: well over the noise of the sound itself, for at least 30 ms.

    Raises:
        ValueError: if nothing in it stands out.
    """
    frame_s = 0.01
    levels = levels_db(samples, rate_hz, frame_s)
    if not len(levels):
        raise ValueError("no sound to look at")
    is_over = levels > voice_level_db(levels)
    if float(levels.max()) < -70.0:
        raise ValueError("the sound is silent")
    runs = _runs(is_over)
    long = [run for run in runs if run[1] - run[0] >= 3] or runs
    return Voiced(begin_s=long[0][0] * frame_s, end_s=long[-1][1] * frame_s)


def find_sound(known: Samples, track: Track, *, after_s: float | None = None, span: Voiced | None = None) -> Heard:
    """Find `known` (at the track's rate) in a recording by correlation.

    Other sound in the recording does no harm as long as the known one is not buried in it. `after_s` is a moment before
    which it cannot have begun. `span` overrides what counts as voiced.

    Raises:
        ValueError: if it is not there, or not all of it.
    """
    begin = 0 if after_s is None else track.index(after_s)
    heard = track.samples[begin:]
    if len(heard) < len(known) or not np.any(known):
        raise ValueError("the recording is too short for the sound")
    size = 1 << (len(heard) + len(known) - 1).bit_length()
    spectrum = np.fft.rfft(heard, size) * np.conj(np.fft.rfft(known, size))
    scores = np.fft.irfft(spectrum, size)[: len(heard) - len(known) + 1]
    best = int(np.argmax(scores))
    part = heard[best : best + len(known)].astype(np.float64)
    norm = float(np.linalg.norm(part) * np.linalg.norm(known.astype(np.float64)))
    likeness = float(scores[best]) / norm if norm > 0 else 0.0
    if likeness < _CERTAIN / 2:
        raise ValueError(f"the sound is not in the recording (likeness {likeness:.2f})")
    voiced = span or voiced_span(known, track.rate_hz)
    begin_at_s = track.start_s + (begin + best) / track.rate_hz
    return Heard(
        onset_at_s=begin_at_s + voiced.begin_s,
        end_at_s=begin_at_s + voiced.end_s,
        begin_at_s=begin_at_s,
        likeness=likeness,
    )


def speech_level_db(track: Track, begin_s: float, end_s: float) -> float | None:
    """Return the level speech between two moments often reaches (90th percentile of its frames); None if silent."""
    levels = levels_db(track.between(begin_s, end_s), track.rate_hz)
    audible = levels[levels > AUDIBLE_DB]
    return float(np.percentile(audible, 90)) if len(audible) >= 10 else None


def yielding(
    track: Track, onset_at_s: float, *, reference_db: float, within_s: float = 2.0, quiet_s: float = 0.5
) -> Yielding:
    """Measure how the loudspeaker's output gives way after `onset_at_s`.

    Speech has pauses of its own, so a figure is the *last* frame that was too loud before a stretch of at least
    `quiet_s` in which none was: down by 12 dB against `reference_db`, and silent. Both must begin within `within_s`.
    """
    begin = track.index(onset_at_s)
    levels = levels_db(track.samples[begin:], track.rate_hz)
    return Yielding(
        down_s=_quiet_from(levels, reference_db - DOWN_BY_DB, within_s, quiet_s),
        silent_s=_quiet_from(levels, SILENT_DB, within_s, quiet_s),
    )


def first_sound(
    track: Track, after_s: float, until_s: float | None = None, *, level_db: float = AUDIBLE_DB
) -> float | None:
    """Return the moment of the first 15 ms louder than `level_db` between two moments; None if there are none."""
    begin = track.index(after_s)
    end = len(track.samples) if until_s is None else track.index(until_s)
    runs = _runs(levels_db(track.samples[begin:end], track.rate_hz) > level_db)
    found = next((run[0] for run in runs if run[1] - run[0] >= 3), None)
    return None if found is None else track.start_s + begin / track.rate_hz + found * FRAME_S


def is_sounding(track: Track, begin_s: float, end_s: float) -> bool:
    """Whether anything audible is between two moments."""
    return first_sound(track, begin_s, end_s) is not None


def reply_after(track: Track, end_at_s: float, *, onset_at_s: float, silent_s: float | None = None) -> float | None:
    """Return how long after the end of speech the reply sounds; negative if it came before the user had ended.

    `silent_s` (from the onset) is when an interrupted output had fallen silent; without one nothing sounded before.
    """
    begin_s = onset_at_s + (0.0 if silent_s is None else silent_s + 2 * FRAME_S)
    at_s = first_sound(track, begin_s)
    return None if at_s is None else at_s - end_at_s


def _quiet_from(levels: Levels, limit_db: float, within_s: float, quiet_s: float) -> float | None:
    need = round(quiet_s / FRAME_S)
    for begin, end in _runs(levels <= limit_db):
        if begin * FRAME_S > within_s:
            return None
        if end - begin >= need:
            return begin * FRAME_S
    return None


def _runs(is_set: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return begin and end (exclusive) of each stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_set, [False])).astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
