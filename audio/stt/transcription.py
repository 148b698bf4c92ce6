"""What a speech recogniser takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from audio.ports import Samples

SAMPLE_RATE_HZ = 16_000
"""The rate every recogniser here works at."""

MIN_VAD_FRACTION = 0.2
"""Below this share of speech windows a voiced span is noise: 22 of 24 noises fall below, no recorded speech does."""

SURE_VAD_FRACTION = 0.5
"""From this share on, the second VAD vouches for speech, so a doubtful text earns a second decoding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """What a model made of some audio.

    `context` is how much the encoder saw: short or full. `retried` says that a first decoding was thrown away.
    `avg_logprob`, `no_speech` and `compression` are None where the model does not tell.
    `flaw` names what is still wrong with the text after all retries (`capped`, `repeated`, `compressed`, `too_fast`),
    None if nothing is. `end_chance` is how sure the model is that a sentence ends where the text does, 0 where it wrote
    no end, None if it does not tell.
    """

    text: str
    language: str | None
    decode_s: float
    context: str = "short"
    retried: bool = False
    avg_logprob: float | None = None
    no_speech: float | None = None
    compression: float | None = None
    flaw: str | None = None
    end_chance: float | None = None


class Unwanted(Exception):  # noqa: N818 # nothing went wrong
    """The text is not wanted any more; what was begun of it is given up."""


class SpeechRecogniser(Protocol):
    """Turns audio into text. Blocking; called by one thread at a time."""

    @property
    def cores(self) -> float:
        """How many processor cores a decoding occupies; what partials cost is counted with it."""
        ...

    def transcribe(
        self,
        audio: Samples,
        *,
        languages: Sequence[str],
        hotwords: Sequence[str] = (),
        final: bool = True,
        vad_fraction: float | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Transcription:
        """Return the text of `audio` (float32, mono, 16 kHz, any length).

        `languages` are ISO 639-1 codes of what may be spoken; the best fitting one is chosen. A text that is not
        `final` gets one attempt only. `vad_fraction` is the share of speech windows, None if unknown: where it
        vouches for speech, a weak text is decoded again with more context. Text is empty where nothing was understood.
        `is_wanted` tells, on this thread, whether anybody still wants it; a model that works in steps asks in between.

        Raises:
            PartFailed: the model or its server failed.
            Unwanted: `is_wanted` said no.
        """
        ...
