"""A room without devices: the user's voice from a file, the loudspeaker into an array, echo and noise in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr

from audio.ports import Samples

MIC_RATE_HZ = 16_000
OUT_RATE_HZ = 48_000
BLOCK_S = 0.01
MIC_BLOCK = MIC_RATE_HZ // 100
OUT_BLOCK = OUT_RATE_HZ // 100
_VOICED_BELOW_PEAK_DB = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomConfig:
    """What the microphone hears beside the user.

    `echo_db` is the RMS of the echo at the microphone relative to the user's speech there, None for headphones;
    `impulse_response` (16 kHz) shapes it, None for a direct path; `delay_s` is the whole way from loudspeaker
    to microphone; `drift_ppm` how much faster the microphone's clock runs; `noise` (16 kHz) is repeated at `snr_db`.
    """

    echo_db: float | None = None
    impulse_response: Samples | None = None
    delay_s: float = 0.04
    drift_ppm: float = 0.0
    noise: Samples | None = None
    snr_db: float = 20.0


def active_rms(samples: Samples, rate_hz: int) -> float:
    """Return the RMS of the voiced parts: 20 ms frames within 30 dB of the loudest frame; 0 for silence."""
    frame = max(1, rate_hz // 50)
    count = len(samples) // frame
    if count == 0:
        return float(np.sqrt(np.mean(np.square(samples)))) if len(samples) else 0.0
    energy = np.mean(np.square(samples[: count * frame].reshape(count, frame)), axis=1)
    loudest = float(energy.max())
    if loudest <= 0.0:
        return 0.0
    return float(np.sqrt(energy[energy >= loudest * 10 ** (-_VOICED_BELOW_PEAK_DB / 10)].mean()))


class SimulatedRoom:
    """Gives the microphone's blocks and takes the loudspeaker's, 10 ms at a time. One thread.

    `voice_rms` is the level of the character's speech at the loudspeaker, by which `echo_db` is set.
    """

    def __init__(self, user: Samples, config: RoomConfig, *, voice_rms: float) -> None:
        """`user` is the user's track at 16 kHz."""
        self._user = user
        self._config = config
        self._position = 0
        self._heard: list[Samples] = []
        self._noise_at = 0
        user_rms = active_rms(user, MIC_RATE_HZ) or 0.1
        self._noise_gain = 0.0
        if config.noise is not None:
            noise_rms = float(np.sqrt(np.mean(np.square(config.noise)))) or 1.0
            self._noise_gain = user_rms * 10 ** (-config.snr_db / 20) / noise_rms
        self._echo_gain = 0.0
        response = (
            np.ones(1, np.float32) if config.impulse_response is None else config.impulse_response.astype(np.float32)
        )
        energy = float(np.sqrt(np.sum(np.square(response)))) or 1.0
        self._response: Samples = response / np.float32(energy)
        if config.echo_db is not None and voice_rms > 0.0:
            self._echo_gain = user_rms * 10 ** (config.echo_db / 20) / voice_rms
        mic_rate_hz = MIC_RATE_HZ * (1.0 + config.drift_ppm * 1e-6)
        # What the resampler holds back (12 ms) is part of the delay; a shorter one can't be had.
        self._resampler = soxr.ResampleStream(OUT_RATE_HZ, mic_rate_hz, 1, dtype="float32", quality="LQ")
        self._far: Samples = np.zeros(round(config.delay_s * MIC_RATE_HZ), np.float32)
        self._tail: Samples = np.zeros(len(self._response) - 1, np.float32)

    @property
    def is_user_over(self) -> bool:
        """Whether the user's track has been heard to its end."""
        return self._position >= len(self._user)

    @property
    def character(self) -> Samples:
        """What the loudspeaker played so far, at 48 kHz."""
        return np.concatenate(self._heard) if self._heard else np.zeros(0, np.float32)

    def play(self, block: Samples) -> None:
        """Take what the loudspeaker plays in these 10 ms (48 kHz)."""
        self._heard.append(block.copy())
        if self._echo_gain > 0.0:
            self._far = np.concatenate([self._far, self._resampler.resample_chunk(block)])

    def listen(self) -> Samples:
        """Return what the microphone hears in these 10 ms (16 kHz)."""
        out: Samples = np.zeros(MIC_BLOCK, np.float32)
        part = self._user[self._position : self._position + MIC_BLOCK]
        out[: len(part)] = part
        self._position += MIC_BLOCK
        if self._echo_gain > 0.0:
            out += self._echo()
        if self._config.noise is not None and self._noise_gain > 0.0:
            out += self._noise_gain * self._take_noise(self._config.noise)
        return np.clip(out, -1.0, 1.0)

    def _echo(self) -> Samples:
        if len(self._far) < MIC_BLOCK:
            self._far = np.concatenate([self._far, np.zeros(MIC_BLOCK - len(self._far), np.float32)])
        fresh, self._far = self._far[:MIC_BLOCK], self._far[MIC_BLOCK:]
        history = np.concatenate([self._tail, fresh])
        self._tail = history[len(history) - len(self._tail) :] if len(self._tail) else self._tail
        wet = np.convolve(history, self._response, mode="valid")
        return np.float32(self._echo_gain) * wet.astype(np.float32)

    def _take_noise(self, noise: Samples) -> Samples:
        index = (self._noise_at + np.arange(MIC_BLOCK)) % len(noise)
        self._noise_at = (self._noise_at + MIC_BLOCK) % len(noise)
        return noise[index]
