"""Rooms that were never built: image-source responses, and the way from a loudspeaker to a microphone through them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import soxr

from audio.pcm import db_to_gain
from audio.ports import Samples
from audio.simulated import BLOCK_S, MIC_BLOCK, MIC_RATE_HZ, OUT_RATE_HZ

_SOUND_M_PER_S = 343.0
_RESAMPLER_LAG_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A room in metres with a loudspeaker and a microphone in it, and its reverberation time (−60 dB)."""

    size_m: tuple[float, float, float] = (4.2, 3.3, 2.5)
    speaker_m: tuple[float, float, float] = (1.4, 1.6, 0.9)
    microphone_m: tuple[float, float, float] = (1.9, 1.5, 0.8)
    rt60_s: float = 0.35


def image_source_response(place: Place, *, rate_hz: int = MIC_RATE_HZ) -> Samples:
    """Return the response of a shoebox room (Allen and Berkley 1979), the direct sound first, energy 1.

    All walls reflect alike, by Eyring's formula for the wanted reverberation time. Arrivals are rounded to samples.
    """
    size = np.array(place.size_m)
    volume = float(np.prod(size))
    surface = 2.0 * float(size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
    absorbed = 1.0 - np.exp(-0.161 * volume / (surface * place.rt60_s))
    reflection = float(np.sqrt(1.0 - absorbed))
    longest_m = _SOUND_M_PER_S * place.rt60_s
    orders = [np.arange(-int(longest_m / (2 * side)) - 1, int(longest_m / (2 * side)) + 2) for side in size]
    grid = np.stack(np.meshgrid(*orders, indexing="ij"), axis=-1).reshape(-1, 3)
    source, microphone = np.array(place.speaker_m), np.array(place.microphone_m)
    response = np.zeros(int(rate_hz * place.rt60_s) + 1)
    direct_m = float(np.linalg.norm(source - microphone))
    for flips in itertools.product((0, 1), repeat=3):
        flip = np.array(flips)
        images = (1 - 2 * flip) * source + 2 * grid * size
        distance_m = np.linalg.norm(images - microphone, axis=1)
        bounces = np.abs(grid - flip).sum(axis=1) + np.abs(grid).sum(axis=1)
        at = np.rint((distance_m - direct_m) / _SOUND_M_PER_S * rate_hz).astype(int)
        is_heard = at < len(response)
        strength = reflection ** bounces[is_heard] / np.maximum(distance_m[is_heard], 0.1)
        np.add.at(response, at[is_heard], strength)
    return np.asarray(response / np.sqrt((response**2).sum()), np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """From the loudspeaker to the microphone: a response of energy 1, the unreported part of its delay, a level."""

    response: Samples
    delay_s: float = 0.06
    gain_db: float = 0.0


class AcousticPath:
    """Carries 48 kHz blocks of 10 ms from a loudspeaker to a microphone whose clock runs `drift_ppm` faster.

    The path may change at any time: what sounded before then comes by the new one.
    """

    def __init__(self, path: Path, *, drift_ppm: float = 0.0) -> None:
        """Begin with silence."""
        self.rate_hz = MIC_RATE_HZ * (1.0 + drift_ppm * 1e-6)
        self._resampler = soxr.ResampleStream(OUT_RATE_HZ, self.rate_hz, 1, dtype="float32", quality="LQ")
        self._dry: Samples = np.zeros(0, np.float32)
        self._first = 0
        self.change(path)

    def change(self, path: Path) -> None:
        """Take another way from now on."""
        self._path = path
        self._size = 1 << (len(path.response) + MIC_BLOCK).bit_length()
        self._spectrum = np.fft.rfft(path.response * np.float32(db_to_gain(path.gain_db)), self._size)

    def play(self, block: Samples) -> None:
        """Take what the loudspeaker plays next."""
        self._dry = np.concatenate([self._dry, self._resampler.resample_chunk(block)])

    def hear(self, sample: int, ahead_s: float) -> Samples:
        """Return 160 samples from the microphone's `sample` on; the first block sounded `ahead_s` after sample 0."""
        begin = sample - round((self._path.delay_s + ahead_s) * self.rate_hz) - len(self._path.response) + 1
        count = len(self._path.response) - 1 + MIC_BLOCK
        self._forget(begin - MIC_RATE_HZ)
        at = begin - self._first
        part = self._dry[max(0, at) : max(0, at + count)]
        if at < 0:
            part = np.concatenate([np.zeros(min(-at, count), np.float32), part])
        if len(part) < count:
            part = np.pad(part, (0, count - len(part)))
        wet = np.fft.irfft(np.fft.rfft(part, self._size) * self._spectrum, self._size)
        return np.asarray(wet[count - MIC_BLOCK : count], np.float32)

    def _forget(self, sample: int) -> None:
        drop = sample - self._first
        if drop > MIC_RATE_HZ:
            self._dry = self._dry[drop:]
            self._first = sample


__all__ = ["BLOCK_S", "AcousticPath", "Path", "Place", "image_source_response"]
