"""The sound of a text from a Piper voice, made from the front on: trimmed, levelled, never louder than asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from audio.ports import Samples
from audio.tts.piper_model import Sounding
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import TimedViseme, TimedWord

_SILENCE_LEVEL = 0.004
_KEEP_BEFORE_S = 0.012
_KEEP_AFTER_S = 0.06
_EDGE_FADE_S = 0.004
_SHORTEST_REST_S = 0.3
_KNEE = 0.85
_CEILING = 1.05

Timing = tuple[tuple[TimedWord, ...], tuple[TimedViseme, ...], bool]
"""Words, mouth shapes and whether they are estimated."""


class PiperStream:
    """Implements `SpeechStream` over the sentences of one text.

    `peak` is the highest sample so far before levelling.
    """

    def __init__(
        self,
        sentences: Sequence[Sounding],
        *,
        rate_hz: int,
        hop: int,
        gain: float,
        volume: float,
        first_s: float,
        time_words: Callable[[int, int], Timing],
        on_over: Callable[[float], None],
    ) -> None:
        """Make the first piece. `time_words(first, frames)` times the words when it is known where sound begins.

        Raises:
            PartFailed: there is no sound at all.
        """
        self.rate_hz = rate_hz
        self.peak = 0.0
        self._sentences = list(sentences)
        self._hop = hop
        self._gain = gain
        self._volume = volume
        self._on_over = on_over
        self._index = 0
        self._at = 0
        self._given = 0
        self.is_over = False
        whole = sum(item.frames for item in sentences) * hop
        raw, first = self._lead(first_s)
        self.frames = whole - first
        self.words, self.visemes, self.estimated = time_words(first, self.frames)
        self._first: Samples | None = self._finish(raw[first:], is_first=True)

    def read(self, seconds: float) -> Samples:
        """Make the next piece."""
        if self._first is not None:
            piece, self._first = self._first, None
            self._given += len(piece)
            self.is_over = self._is_at_end
            return piece
        if self.is_over:
            return np.zeros(0, dtype=np.float32)
        piece = self._finish(self._next(seconds), is_first=False)
        self._given += len(piece)
        self.is_over = self._is_at_end
        return piece

    @property
    def _is_at_end(self) -> bool:
        return self._index >= len(self._sentences)

    def _lead(self, first_s: float) -> tuple[Samples, int]:
        """Return the sound up to where `first_s` of it is heard, and its first frame that is to be heard."""
        raw = self._next(first_s)
        while True:
            loud = np.flatnonzero(np.abs(raw) > _SILENCE_LEVEL)
            if len(loud):
                return raw, max(0, int(loud[0]) - int(_KEEP_BEFORE_S * self.rate_hz))
            if self._is_at_end:
                raise PartFailed("tts_empty", "the voice has no sound for this text", part="tts", recoverable=True)
            raw = np.concatenate([raw, self._next(first_s)])

    def _next(self, seconds: float) -> Samples:
        """Return about `seconds` of raw sound; a short rest of a sentence comes along with it."""
        item = self._sentences[self._index]
        wanted = max(1, round(seconds * self.rate_hz / self._hop))
        end = self._at + wanted
        if item.frames - end < _SHORTEST_REST_S * self.rate_hz / self._hop:
            end = item.frames
        raw = item.samples(self._at, end)
        self._at = end
        if end >= item.frames:
            self._index, self._at = self._index + 1, 0
        return raw

    def _finish(self, raw: Samples, *, is_first: bool) -> Samples:
        """Level a piece, and shape the ends of the text."""
        if len(raw):
            self.peak = max(self.peak, float(np.max(np.abs(raw))))
        piece = _limited(raw * np.float32(self._gain), self._volume)
        fade = int(_EDGE_FADE_S * self.rate_hz)
        if self._is_at_end:
            piece = piece[: self._end_of(raw)]
            count = min(fade, len(piece) // 2)
            piece[len(piece) - count :] *= np.linspace(1.0, 0.0, count, dtype=np.float32)
            self._on_over(self.peak)
        if is_first:
            count = min(fade, len(piece) // 2)
            piece[:count] *= np.linspace(0.0, 1.0, count, dtype=np.float32)
        return piece

    def _end_of(self, raw: Samples) -> int:
        """Return where the last piece ends: a little behind what is heard, and not within the last word."""
        loud = np.flatnonzero(np.abs(raw) > _SILENCE_LEVEL)
        heard = int(loud[-1]) + 1 + int(_KEEP_AFTER_S * self.rate_hz) if len(loud) else 1
        word = round(self.words[-1].end_s * self.rate_hz) - self._given if self.words and not self.estimated else 1
        return min(max(heard, word, 1), len(raw))


def _limited(sound: Samples, volume: float) -> Samples:
    """Bend what is near `volume` so that nothing is louder than a little above it."""
    knee, top = _KNEE * volume, min(_CEILING * volume, 1.0)
    size = np.abs(sound)
    over = size > knee
    if not over.any() or top <= knee:
        return np.clip(sound, -top, top).astype(np.float32)
    bent = knee + (top - knee) * np.tanh((size - knee) / (top - knee))
    limited: Samples = np.where(over, np.sign(sound) * bent, sound).astype(np.float32)
    return limited
