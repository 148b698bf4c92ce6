"""Estimated word times, for voices that give none and for text that is shown instead of spoken."""

from __future__ import annotations

from orchestrator.contracts.events import TimedWord
from orchestrator.speech.words import speaking_weight, word_spans


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
