"""The sound of one intent on its way from the voice to the player, piece by piece at the device's rate."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from audio.playback import Fill, Segment
from audio.ports import Samples
from audio.tts.voice import SpeechStream
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.intents import SpeechIntent

FIRST_S = 0.28
"""First piece when nothing else sounds: short enough to be early, long enough to make the next one meanwhile."""

_RELAXED_S = 1.0
_MOST_S = 1.5
_GROWTH = 2.0
_CONVERTER_FRAMES = 64


def resample(pcm: Samples, from_hz: int, to_hz: int) -> Samples:
    """Return `pcm` at another rate."""
    if from_hz == to_hz:
        return pcm
    import soxr

    converted: Samples = soxr.resample(pcm, from_hz, to_hz, quality="HQ")
    return np.ascontiguousarray(converted, dtype=np.float32)


def at_rate(segment: Segment, rate_hz: int) -> Segment:
    """Return a complete `segment` at another rate."""
    pcm = resample(segment.pcm[: segment.end], segment.rate_hz, rate_hz)
    return dataclasses.replace(segment, pcm=pcm, rate_hz=rate_hz, fill=None)


def first_piece_s(ahead_s: float) -> float:
    """Return how long the first piece is to be while `ahead_s` of other sound comes before it."""
    return FIRST_S if ahead_s < _RELAXED_S else _RELAXED_S


class GrowingSound:
    """One stream and what has been made of it. Made by the speech worker's jobs, one after the other."""

    def __init__(self, stream: SpeechStream, *, first_s: float) -> None:
        """Take the first piece of `stream`, of `first_s`."""
        self._stream = stream
        self._next_s = first_s
        self._pieces: list[Samples] = []
        self._segment: Segment | None = None
        self._converter: Any = None
        self._made: Samples | None = None
        self._is_broken = False
        self.first_frames = 0
        self.grow()
        self.first_frames = len(self._pieces[0]) if self._pieces else 0

    @property
    def is_over(self) -> bool:
        """Whether all of it has been made."""
        return self._stream.is_over

    @property
    def next_share(self) -> float:
        """Which part of the whole the next piece is, about."""
        return min(1.0, self._next_s * self._stream.rate_hz / max(1, self._stream.frames))

    def grow(self) -> None:
        """Make the next piece, twice as long as the one before; it can be played after `commit`.

        Raises:
            PartFailed: the voice failed; what has been made of a segment is its end then.
        """
        try:
            piece = self._stream.read(self._next_s)
        except PartFailed:
            self._is_broken = True
            raise
        self._next_s = min(self._next_s * _GROWTH, _MOST_S)
        if self._segment is None:
            self._pieces.append(piece)
        else:
            self._made = self._converted(piece)

    def commit(self) -> None:
        """Let the player have what the last `grow` made."""
        if self._is_broken:
            self._break_off()
        elif self._made is not None:
            self._fill(self._made)
            self._made = None

    def segment(self, intent: SpeechIntent, *, rate_hz: int, pause_s: float) -> Segment:
        """Return the segment of `intent` at `rate_hz`, which grows with every piece from now on. Call once."""
        stream = self._stream
        made = np.concatenate(self._pieces)
        fill: Fill | None = None
        if stream.is_over:
            pcm = resample(made, stream.rate_hz, rate_hz)
        else:
            room = -(-stream.frames * rate_hz // stream.rate_hz) + _CONVERTER_FRAMES
            pcm = np.zeros(room, dtype=np.float32)
            fill = Fill(ready=0, end=room)
        segment = Segment(
            intent_id=intent.intent_id,
            generation_id=intent.generation_id,
            text=intent.text,
            pcm=pcm,
            rate_hz=rate_hz,
            words=stream.words,
            visemes=stream.visemes,
            interruptible=intent.interruptible,
            pause_after_s=pause_s,
            fill=fill,
        )
        self._pieces.clear()
        if fill is not None:
            if rate_hz != stream.rate_hz:
                import soxr

                self._converter = soxr.ResampleStream(stream.rate_hz, rate_hz, 1, dtype="float32", quality="HQ")
            self._segment = segment
            self._fill(self._converted(made))
        return segment

    def _converted(self, piece: Samples) -> Samples:
        if self._converter is None:
            return piece
        converted: Samples = self._converter.resample_chunk(np.ascontiguousarray(piece), last=self.is_over)
        return converted

    def _fill(self, piece: Samples) -> None:
        segment = self._segment
        assert segment is not None
        assert segment.fill is not None
        start = segment.fill.ready
        end = min(start + len(piece), len(segment.pcm))
        segment.pcm[start:end] = piece[: end - start]
        if self.is_over:
            # A last piece that is empty after conversion still has to move the end (see `Fill`).
            end = segment.fill.end = max(end, min(start + 1, len(segment.pcm)))
        segment.fill.ready = end

    def _break_off(self) -> None:
        fill = self._segment.fill if self._segment is not None else None
        if fill is not None:
            fill.end = min(fill.ready + 1, fill.end)
            fill.ready = fill.end
