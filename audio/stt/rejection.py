"""Decides what is not speech: by the signal first, by known phrases only where the signal is weak. Pure."""

from __future__ import annotations

from audio.stt.hallucinations import is_hallucination_phrase
from audio.stt.text import units
from audio.stt.transcription import MIN_VAD_FRACTION, SURE_VAD_FRACTION, Transcription

MIN_LOGPROB = -0.8
DOUBTFUL_LOGPROB = -0.5
MAX_NO_SPEECH = 0.6
"""Found on recordings of speech and noise; together they tell every noise from speech, none does alone."""

_DOUBTFUL_VOUCHED_LOGPROB = -0.72
"""Short context raises the no-speech chance of true speech; where the VAD vouches for it, more is forgiven."""


def weakness(result: Transcription, *, vad_fraction: float | None = None) -> str | None:
    """Name what makes a decoding too weak to be speech (`low_confidence`, `no_speech`), None if it is good enough."""
    if result.avg_logprob is None:
        return None
    if result.avg_logprob < MIN_LOGPROB:
        return "low_confidence"
    is_vouched = result.context == "short" and vad_fraction is not None and vad_fraction >= SURE_VAD_FRACTION
    doubtful = _DOUBTFUL_VOUCHED_LOGPROB if is_vouched else DOUBTFUL_LOGPROB
    if result.no_speech is not None and result.no_speech > MAX_NO_SPEECH and result.avg_logprob < doubtful:
        return "no_speech"
    return None


def reject_before(vad_fraction: float | None) -> str | None:
    """Name the rule by which a voiced span is noise without decoding it (`vad`), None if it must be decoded."""
    return "vad" if vad_fraction is not None and vad_fraction < MIN_VAD_FRACTION else None


def reject(result: Transcription, *, vad_fraction: float | None) -> str | None:
    """Name the rule that finds `result` not to be speech; None if it is to be believed.

    Rules in order: `vad`, `empty`, `low_confidence`, `no_speech`, `runaway`, `phrase`. `vad_fraction` None means that
    no VAD had a say.
    """
    rule = reject_before(vad_fraction)
    if rule is not None:
        return rule
    if not units(result.text):
        return "empty"
    rule = weakness(result, vad_fraction=vad_fraction)
    if rule is not None:
        return rule
    # What still runs into the token limit with full context was never speech; repetition that survives was said.
    if result.flaw in ("capped", "compressed"):
        return "runaway"
    if is_hallucination_phrase(result.text) and _is_weak_signal(result, vad_fraction):
        return "phrase"
    return None


def _is_weak_signal(result: Transcription, vad_fraction: float | None) -> bool:
    return (
        (vad_fraction is not None and vad_fraction < SURE_VAD_FRACTION)
        or (result.avg_logprob is not None and result.avg_logprob < DOUBTFUL_LOGPROB)
        or (result.no_speech is not None and result.no_speech > MAX_NO_SPEECH)
    )
