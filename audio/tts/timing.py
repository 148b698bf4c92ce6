"""Estimated word times, for voices that give none and for text that is shown instead of spoken."""

from __future__ import annotations

import numpy as np

from audio.ports import Samples
from audio.tts.visemes import visemes_from_loudness
from audio.tts.voice import Utterance
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import TimedWord
from orchestrator.speech.words import speaking_weight, word_spans

_SILENCE_LEVEL = 0.004


def estimate_words(text: str, *, start_s: float, end_s: float) -> tuple[TimedWord, ...]:
    """Spread the words of `text` over `start_s`…`end_s` by how long each takes to say."""
    spans = word_spans(text)
    weights = [speaking_weight(span.text) for span in spans]
    scale = (end_s - start_s) / sum(weights) if spans else 0.0
    words: list[TimedWord] = []
    at_s = start_s
    for index, (span, weight) in enumerate(zip(spans, weights, strict=True)):
        next_s = end_s if index == len(spans) - 1 else at_s + weight * scale
        words.append(
            TimedWord(
                index=index,
                text=span.text,
                char_start=span.char_start,
                char_end=span.char_end,
                start_s=at_s,
                end_s=next_s,
                estimated=True,
            )
        )
        at_s = next_s
    return tuple(words)


def estimated_utterance(text: str, pcm: Samples, rate_hz: int) -> Utterance:
    """Put estimated word and mouth times on sound that came without any.

    Raises:
        PartFailed: there is only silence.
    """
    loud = np.flatnonzero(np.abs(pcm) > _SILENCE_LEVEL)
    if not len(loud):
        raise PartFailed("tts_empty", "the voice has no sound for this text", part="tts", recoverable=True)
    first = max(0, int(loud[0]) - rate_hz // 100)
    last = min(len(pcm), int(loud[-1]) + rate_hz // 16)
    trimmed: Samples = np.array(pcm[first:last], dtype=np.float32)
    return Utterance(
        pcm=trimmed,
        rate_hz=rate_hz,
        words=estimate_words(text, start_s=0.0, end_s=(int(loud[-1]) + 1 - first) / rate_hz),
        visemes=visemes_from_loudness(trimmed, rate_hz),
        estimated=True,
    )
