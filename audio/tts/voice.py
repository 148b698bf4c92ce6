"""What every voice offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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


def spoken_language(text: str, hint: str | None) -> str:
    """Return the language `text` has to be said in: Chinese as soon as it has a Chinese character, else the hint."""
    if has_cjk(text):
        return "zh"
    if hint is None or hint.lower().startswith("zh"):
        return "en"
    return hint.lower().split("-")[0].split("_")[0]
