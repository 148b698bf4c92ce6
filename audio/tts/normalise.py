"""What a voice is to say for each written word: numbers, dates, times, money, units and abbreviations in words.

The map from written to spoken words is kept: one `SpokenWord` per word of the original text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from audio.tts import normalise_en, normalise_zh
from orchestrator.speech.words import ends_clause, ends_sentence, has_cjk, word_spans

_QUOTES = "\"'“”‘’「」『』（）()[]《》<>*_`~"
_CLOSING = ".,;:!?，；：。！？、…—\"'”’)）-"
_OPENING = "\"'“‘(（…—·•"
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+$", re.ASCII | re.IGNORECASE)
"""Nobody wants to hear these: they are shown."""

_QUESTION = ("?", "？")
_EXCLAMATION = ("!", "！")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenWord:
    """A written word, where it stands, what is said for it (may be empty) and the pause mark that follows."""

    text: str
    char_start: int
    char_end: int
    spoken: str
    mark: str


def normalise(text: str, language: str) -> tuple[SpokenWord, ...]:
    """Return what to say for every word of `text`; `language` is `en` or `zh` (others are treated like English)."""
    spans = word_spans(text)
    cores = [_strip(span.text) for span in spans]
    say = normalise_zh.say if language == "zh" else normalise_en.say
    spoken: list[SpokenWord] = []
    for index, span in enumerate(spans):
        before = cores[index - 1] if index else ""
        after = cores[index + 1] if index + 1 < len(cores) else ""
        if _ADDRESS.match(cores[index]):
            said, is_abbreviation = "", False
        else:
            said, is_abbreviation = say(cores[index], before=before, after=after)
        mark = _mark(span.text, language)
        if is_abbreviation and mark in (".", "。") and index + 1 < len(spans):
            mark = ""
        spoken.append(
            SpokenWord(text=span.text, char_start=span.char_start, char_end=span.char_end, spoken=said, mark=mark)
        )
    return tuple(spoken)


def sentence(words: tuple[SpokenWord, ...], language: str) -> str:
    """Join the spoken words to the text that is handed to the voice."""
    parts: list[str] = []
    for word in words:
        if not word.spoken and not word.mark:
            continue
        if not word.spoken and not parts:
            continue
        needs_space = bool(parts) and bool(word.spoken)
        if needs_space and language == "zh" and (has_cjk(word.spoken[:1]) or has_cjk(parts[-1][-1:])):
            needs_space = False
        parts.append((" " if needs_space else "") + word.spoken + word.mark)
    return "".join(parts)


def _strip(word: str) -> str:
    """Drop punctuation around `word`, but not what belongs to it (a sign, a currency, a per cent, a degree)."""
    return word.strip(_QUOTES).rstrip(_CLOSING).lstrip(_OPENING)


def _mark(word: str, language: str) -> str:
    chinese = language == "zh"
    closing = word.rstrip("\"'“”‘’」』）)]》*_ ")
    if closing.endswith(_QUESTION):
        return "？" if chinese else "?"
    if closing.endswith(_EXCLAMATION):
        return "！" if chinese else "!"
    if ends_sentence(word):
        return "。" if chinese else "."
    if ends_clause(word) or closing.endswith((" -", " –")):
        return "，" if chinese else ","
    return ""
