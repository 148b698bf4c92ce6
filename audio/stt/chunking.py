"""Cuts long audio where it is quiet."""

from __future__ import annotations

import numpy as np

from audio.ports import Samples
from audio.stt.transcription import SAMPLE_RATE_HZ

MAX_CHUNK_S = 28.0
"""What fits into Whisper's 30 s window with the silence it needs behind the speech."""

_MIN_CHUNK_S = 10.0
_STEP_S = 0.02
_QUIET_S = 0.3


def split_at_silences(audio: Samples, *, max_s: float = MAX_CHUNK_S) -> list[Samples]:
    """Split `audio` (16 kHz) into consecutive parts of at most `max_s`, each cut in the quietest 0.3 s in reach."""
    parts: list[Samples] = []
    longest = int(max_s * SAMPLE_RATE_HZ)
    shortest = min(int(_MIN_CHUNK_S * SAMPLE_RATE_HZ), longest // 2)
    rest = audio
    while len(rest) > longest:
        at = shortest + _quietest_sample(rest[shortest:longest])
        parts.append(rest[:at])
        rest = rest[at:]
    parts.append(rest)
    return parts


def _quietest_sample(audio: Samples) -> int:
    step = int(_STEP_S * SAMPLE_RATE_HZ)
    count = len(audio) // step
    energy = np.square(audio[: count * step].reshape(count, step).astype(np.float64)).mean(axis=1)
    width = min(int(_QUIET_S / _STEP_S), count)
    smooth = np.convolve(energy, np.ones(width), mode="valid")
    return (int(np.argmin(smooth)) + width // 2) * step
