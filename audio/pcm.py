"""Sample formats, rates, levels and wav files."""

from __future__ import annotations

import math
import wave
from pathlib import Path

import numpy as np
import soxr
from numpy.typing import NDArray

from audio.ports import Samples
from orchestrator.contracts.errors import InputError

Int16Samples = NDArray[np.int16]

SILENCE_DB = -120.0
"""Level given to digital silence."""


def to_int16(samples: Samples) -> Int16Samples:
    """Return `samples` as int16, clipped to full scale."""
    scaled: Samples = np.rint(samples * np.float32(32768.0))
    return np.clip(scaled, -32768, 32767).astype(np.int16)


def to_float32(samples: Int16Samples) -> Samples:
    """Return int16 `samples` as float32 in [-1, 1)."""
    return samples.astype(np.float32) / np.float32(32768.0)


def power(samples: Samples) -> float:
    """Return the mean square of `samples`; 0 for none."""
    return float(np.dot(samples, samples)) / len(samples) if len(samples) else 0.0


def power_db(mean_square: float) -> float:
    """Return a mean square as dBFS (0 dB: full-scale square wave), at least `SILENCE_DB`."""
    return max(SILENCE_DB, 10.0 * math.log10(mean_square)) if mean_square > 0.0 else SILENCE_DB


def rms_db(samples: Samples) -> float:
    """Return the RMS level of `samples` in dBFS."""
    return power_db(power(samples))


def db_to_gain(level_db: float) -> float:
    """Return the amplitude factor of `level_db`."""
    return float(10.0 ** (level_db / 20.0))


class StreamResampler:
    """Changes the rate of a mono stream piece by piece, with `lag_s` of samples on their way inside.

    Output sample k belongs to input time k / out_rate: the filter's delay shows as a lag of the output, never as
    a shift. Soxr's quality "LQ" lags by 3 to 20 ms and keeps speech to about 6.5 kHz; "HQ" by up to 37 ms.
    Equal rates pass through unchanged.
    """

    def __init__(self, in_rate_hz: int, out_rate_hz: int, *, quality: str = "LQ") -> None:
        """Convert from `in_rate_hz` to `out_rate_hz`."""
        self.in_rate_hz = in_rate_hz
        self.out_rate_hz = out_rate_hz
        self._quality = quality
        self._stream = self._new()
        self.in_frames = 0
        self.out_frames = 0

    @property
    def lag_s(self) -> float:
        """Input that has not come out yet, in seconds."""
        return self.in_frames / self.in_rate_hz - self.out_frames / self.out_rate_hz

    def push(self, samples: Samples) -> Samples:
        """Take the next piece (float32 mono, any length) and return what is ready, perhaps nothing."""
        self.in_frames += len(samples)
        if self._stream is None:
            out = samples
        else:
            out = np.asarray(self._stream.resample_chunk(np.ascontiguousarray(samples, np.float32)), np.float32)
        self.out_frames += len(out)
        return out

    def flush(self) -> Samples:
        """Return the rest and start anew."""
        rest = np.zeros(0, np.float32)
        if self._stream is not None:
            rest = np.asarray(self._stream.resample_chunk(rest, last=True), np.float32)
        self.reset()
        return rest

    def reset(self) -> None:
        """Forget what is inside."""
        self._stream = self._new()
        self.in_frames = 0
        self.out_frames = 0

    def _new(self) -> soxr.ResampleStream | None:
        if self.in_rate_hz == self.out_rate_hz:
            return None
        return soxr.ResampleStream(self.in_rate_hz, self.out_rate_hz, 1, dtype="float32", quality=self._quality)


def resample(samples: Samples, in_rate_hz: int, out_rate_hz: int) -> Samples:
    """Return the whole of `samples` at another rate."""
    if in_rate_hz == out_rate_hz:
        return samples
    return np.asarray(soxr.resample(samples, in_rate_hz, out_rate_hz, quality="HQ"), np.float32)


def read_wav_channels(path: Path) -> tuple[Samples, int]:
    """Return the samples of a PCM wav as float32 of shape (frames, channels), and its rate in Hz.

    Raises:
        InputError: `wav_unreadable`, `wav_format` or `wav_empty`, with the file's name.
    """
    try:
        with path.open("rb") as file, wave.open(file, "rb") as reader:
            channels, width, rate_hz = reader.getnchannels(), reader.getsampwidth(), reader.getframerate()
            raw = reader.readframes(reader.getnframes())
    except FileNotFoundError:
        raise _wav_error("unreadable", path, "there is no such file") from None
    except OSError as error:
        raise _wav_error("unreadable", path, error.strerror or "it can't be read") from error
    except (wave.Error, EOFError, ValueError) as error:
        why = str(error) or "it ends too early"
        raise _wav_error("format", path, f"not a PCM wav file ({why}); convert it to 16-bit PCM") from error
    if width not in (1, 2, 3, 4) or channels < 1 or rate_hz < 1:
        found = f"{8 * width} bits, {channels} channels, {rate_hz} Hz"
        raise _wav_error("format", path, f"{found} is not supported; use 8, 16, 24 or 32 bits")
    usable = len(raw) // (width * channels) * width * channels
    if usable == 0:
        raise _wav_error("empty", path, "it holds no audio")
    return _decode(raw[:usable], width).reshape(-1, channels), rate_hz


def read_wav(path: Path) -> tuple[Samples, int]:
    """Return a wav mixed down to mono, float32, and its rate in Hz. Raises as `read_wav_channels`."""
    samples, rate_hz = read_wav_channels(path)
    return np.ascontiguousarray(samples.mean(axis=1, dtype=np.float32)), rate_hz


def write_wav(path: Path, samples: Samples, rate_hz: int) -> None:
    """Write float32 `samples`, of shape (frames,) or (frames, channels), as 16-bit PCM; clips at full scale.

    Raises:
        InputError: `wav_unwritable` if the file can't be made.
    """
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    try:
        with path.open("wb") as file, wave.open(file, "wb") as writer:
            writer.setnchannels(channels)
            writer.setsampwidth(2)
            writer.setframerate(rate_hz)
            writer.writeframes(to_int16(samples).astype("<i2").tobytes())
    except OSError as error:
        raise _wav_error("unwritable", path, error.strerror or "it can't be written") from error


def _wav_error(kind: str, path: Path, why: str) -> InputError:
    return InputError(f"wav_{kind}", f"{path.name}: {why}", part="audio")


def _decode(raw: bytes, width: int) -> Samples:
    if width == 1:
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - 128.0) / np.float32(128.0)
    if width == 2:
        return np.frombuffer(raw, "<i2").astype(np.float32) / np.float32(32768.0)
    if width == 4:
        return (np.frombuffer(raw, "<i4").astype(np.float64) / 2147483648.0).astype(np.float32)
    parts = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int32)
    values = parts[:, 0] | (parts[:, 1] << 8) | (parts[:, 2] << 16)
    values = np.where(values >= 1 << 23, values - (1 << 24), values)
    return values.astype(np.float32) / np.float32(1 << 23)
