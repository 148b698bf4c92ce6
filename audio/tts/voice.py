"""What every voice offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from audio.ports import Samples
from orchestrator.contracts.events import TimedViseme, TimedWord
from orchestrator.speech.words import has_cjk


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A spoken text. `pcm` is mono float32 at `rate_hz`; `words` and `visemes` are relative to its first sample.

    `words` cover every word of the text in order (see `orchestrator.speech.words`), character offsets count in the
    original text; `estimated` says that the times were not given by the voice.
    """

    pcm: Samples
    rate_hz: int
    words: tuple[TimedWord, ...]
    visemes: tuple[TimedViseme, ...]
    estimated: bool

    @property
    def duration_s(self) -> float:
        """Length of the sound."""
        return len(self.pcm) / self.rate_hz


class SpeechSynthesiser(Protocol):
    """A voice. Used by one thread at a time."""

    @property
    def name(self) -> str:
        """Name for the record, for instance the voice's file name."""
        ...

    def speaks(self, language: str) -> bool:
        """Whether text in `language` (`en`, `zh`, …) can be said."""
        ...

    def synthesise(self, text: str, *, language: str) -> Utterance:
        """Speak `text`.

        Raises:
            PartFailed: the voice failed; the text is to be shown instead.
        """
        ...


class SpeechStream(Protocol):
    """A spoken text whose sound comes piece by piece, its word times first. Used by one thread at a time."""

    @property
    def rate_hz(self) -> int:
        """Rate of the pieces."""
        ...

    @property
    def frames(self) -> int:
        """The most frames there can be in all pieces together."""
        ...

    @property
    def words(self) -> tuple[TimedWord, ...]:
        """The words of the text, as in `Utterance`."""
        ...

    @property
    def visemes(self) -> tuple[TimedViseme, ...]:
        """The mouth shapes, as in `Utterance`."""
        ...

    @property
    def estimated(self) -> bool:
        """Whether the times were not given by the voice."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether there is no further piece."""
        ...

    def read(self, seconds: float) -> Samples:
        """Make the next piece, of about `seconds`; never empty unless it is over.

        Raises:
            PartFailed: the voice failed.
        """
        ...


@runtime_checkable
class StreamingSynthesiser(SpeechSynthesiser, Protocol):
    """A voice whose first sound does not wait for the whole text."""

    def begin(self, text: str, *, language: str, first_s: float) -> SpeechStream:
        """Begin to speak `text`; the first piece, of about `first_s`, has been made when this returns.

        Raises:
            PartFailed: as for `synthesise`.
        """
        ...


@runtime_checkable
class AdjustableSynthesiser(SpeechSynthesiser, Protocol):
    """A voice whose pace and loudness can be changed from one sentence to the next. Callable from any thread."""

    def adjust(self, *, speed: float, volume: float) -> None:
        """Talk `speed` times as fast as by nature, with peaks at about `volume` (0…1)."""
        ...


@runtime_checkable
class CancellableSynthesiser(SpeechSynthesiser, Protocol):
    """A voice that waits for something outside and can be told to give up. Callable from any thread."""

    def cancel(self) -> None:
        """End the call that is under way, which then raises; nothing happens if there is none."""
        ...


class WholeSound:
    """An utterance as a stream of one piece."""

    def __init__(self, made: Utterance) -> None:
        """Hand out `made`."""
        self._made = made
        self.is_over = False
        self.rate_hz = made.rate_hz
        self.frames = len(made.pcm)
        self.words = made.words
        self.visemes = made.visemes
        self.estimated = made.estimated

    def read(self, seconds: float) -> Samples:
        """Return everything."""
        if self.is_over:
            return np.zeros(0, dtype=np.float32)
        self.is_over = True
        return self._made.pcm


def begin(voice: SpeechSynthesiser, text: str, *, language: str, first_s: float) -> SpeechStream:
    """Begin to speak `text` with any voice. Raises `PartFailed`."""
    if isinstance(voice, StreamingSynthesiser):
        return voice.begin(text, language=language, first_s=first_s)
    return WholeSound(voice.synthesise(text, language=language))


def spoken_language(text: str, hint: str | None) -> str:
    """Return the language `text` has to be said in: Chinese as soon as it has a Chinese character, else the hint."""
    if has_cjk(text):
        return "zh"
    if hint is None or hint.lower().startswith("zh"):
        return "en"
    return hint.lower().split("-")[0].split("_")[0]
