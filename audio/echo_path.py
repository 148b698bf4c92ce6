"""The way from the loudspeaker to the microphone in figures: found while the character talks, rehearsed at a start."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from audio.ears_config import FRAME_S, FRAME_SAMPLES, RATE_HZ
from audio.pcm import db_to_gain, power
from audio.ports import Samples

SEGMENT_S = 2.0
_SEGMENT = round(SEGMENT_S * RATE_HZ)
_LONGEST_S = 0.6
_LIKELY = 8.0
_SOUND_DB = -50.0
_SOUNDING = 0.5
_EVERY_S = 10.0
_KEPT = 7
_ALIKE_S = 0.003
_ALIKE = 3
_REHEARSAL_S = 3.0
_REHEARSAL_DB, _REHEARSAL_NOISE_DB = -22.0, -75.0
_SYLLABLES_HZ = 6.0
_LOWEST_HZ, _SLOPE_HZ = 80.0, 500.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoPath:
    """What is known of a pair of devices in its room, as the canceller sees it.

    `delay_s` is how much later the microphone hears what is played than the reference says; `coupling_db` how loud
    relative to it; `loss_db` how much of it is taken out, `leak_db` what the rest usually reaches beside the echo.
    """

    delay_s: float
    coupling_db: float
    loss_db: float
    leak_db: float


class PathObserver:
    """Finds delay and coupling from what was heard and played, in pieces of two seconds, a piece every ten at most.

    A piece counts if output sounds for half of it and one lag stands out (by the phase of the cross spectrum). The
    delay is known when three of the last seven pieces agree; words of the user spoil single pieces. 6 ms a piece.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._near: list[Samples] = []
        self._far: list[Samples] = []
        self._found: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._near.clear()
        self._far.clear()
        self._found.clear()
        self._wait_frames = 0
        self.delay_s: float | None = None
        self.coupling_db: float | None = None

    def frame(self, near: Samples, far: Samples | None) -> None:
        """Take 10 ms; `far` None: nothing sounded."""
        if self._wait_frames > 0:
            self._wait_frames -= 1
            return
        if not self._near and (far is None or power(far) < db_to_gain(_SOUND_DB) ** 2):
            return
        self._near.append(near)
        self._far.append(np.zeros(FRAME_SAMPLES, np.float32) if far is None else far)
        if len(self._near) * FRAME_SAMPLES >= _SEGMENT:
            self._look(np.concatenate(self._near), np.concatenate(self._far))
            self._near.clear()
            self._far.clear()

    def _look(self, near: Samples, far: Samples) -> None:
        powers = np.mean(np.square(far.reshape(-1, FRAME_SAMPLES)), axis=1)
        if float(np.mean(powers > db_to_gain(_SOUND_DB) ** 2)) < _SOUNDING:
            return
        self._wait_frames = round(_EVERY_S / FRAME_S) if len(self._found) >= _ALIKE else 0
        delay_s = find_delay_s(near, far)
        if delay_s is None:
            return
        ratio = power(near) / max(power(far), 1e-12)
        self._found.append((delay_s, 10 * math.log10(max(ratio, 1e-12))))
        middle = float(np.median([delay for delay, _ in self._found]))
        alike = [pair for pair in self._found if abs(pair[0] - middle) <= _ALIKE_S]
        if len(alike) >= _ALIKE:
            self.delay_s = middle
            # The user only adds to what is heard.
            self.coupling_db = float(np.percentile([coupling for _, coupling in alike], 25))


def find_delay_s(near: Samples, far: Samples, *, longest_s: float = _LONGEST_S) -> float | None:
    """Return how much later `near` has what `far` has, both at 16 kHz; None if no lag stands out."""
    size = 1 << (len(near) + round(longest_s * RATE_HZ)).bit_length()
    cross = np.fft.rfft(near, size) * np.conj(np.fft.rfft(far, size))
    scores = np.abs(np.fft.irfft(cross / np.maximum(np.abs(cross), 1e-9), size)[: round(longest_s * RATE_HZ)])
    best = int(np.argmax(scores))
    if scores[best] < _LIKELY * float(np.sqrt(np.mean(scores**2))):
        return None
    return best / RATE_HZ


def rehearsal(path: EchoPath, *, seed: int = 0) -> tuple[Samples, Samples]:
    """Return three seconds of what would be heard and played on `path`, at 16 kHz: noise in the rhythm of syllables.

    A canceller that has heard them knows where and how loud to expect the echo. Only the direct sound is in them, so
    what it learned is right for the loudest part of the echo and never wrong by a whole room.
    """
    count = round(_REHEARSAL_S * RATE_HZ) // FRAME_SAMPLES * FRAME_SAMPLES
    chance = np.random.default_rng(seed)
    spectrum = np.fft.rfft(chance.standard_normal(count))
    hz = np.fft.rfftfreq(count, 1 / RATE_HZ)
    spectrum /= np.sqrt(1.0 + (hz / _SLOPE_HZ) ** 2)
    spectrum[hz < _LOWEST_HZ] = 0.0
    rhythm = 0.3 + np.abs(np.sin(np.pi * _SYLLABLES_HZ * np.arange(count) / RATE_HZ))
    far = np.fft.irfft(spectrum, count) * rhythm
    far *= db_to_gain(_REHEARSAL_DB) / np.sqrt(np.mean(far**2))
    lag = round(path.delay_s * RATE_HZ)
    near = np.concatenate([np.zeros(lag), far[: count - lag]]) * db_to_gain(path.coupling_db)
    near += chance.standard_normal(count) * db_to_gain(_REHEARSAL_NOISE_DB)
    return np.asarray(near, np.float32), np.asarray(far, np.float32)
