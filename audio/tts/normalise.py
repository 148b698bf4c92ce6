"""What a voice is to say for each written word: numbers, dates, times, money, units and abbreviations in words.

The map from written to spoken words is kept: one `SpokenWord` per word of the original text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from audio.tts import normalise_en, normalise_zh
from audio.tts.numerals import chinese_cardinal, chinese_digits
from orchestrator.speech.words import ends_clause, ends_sentence, has_cjk, word_spans

_QUOTES = "\"'“”‘’「」『』（）()[]《》<>*_`~"
_CLOSING = ".,;:!?，；：。！？、…—\"'”’)）-"
_OPENING = "\"'“‘(（…—·•"
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+$", re.ASCII | re.IGNORECASE)
"""Nobody wants to hear these: they are shown."""

_OPERATION = re.compile(r"(?P<number>.*\d)\s+(?P<sign>[-–−/])")
"""A number and a sign that stands alone behind it; what follows is the other number."""

_DATE_BEFORE = re.compile(r".*(?:日期|截止|生日|到期)[是在于为：:]?", re.DOTALL)
_MONTH_AND_DAY = re.compile(r"(1[0-2]|0?[1-9])/(3[01]|[12]\d|0?[1-9])")
_TITLE_OF_DIGITS = re.compile(r".*《(\d{4})》.*")
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
        mark = _mark(span.text, language)
        if _ADDRESS.match(cores[index]):
            said, is_abbreviation = "", False
        elif (match := _OPERATION.fullmatch(span.text)) and after[:1].isdecimal():
            said, is_abbreviation = say(_strip(match["number"]), before=before, after="")
            space = "" if language == "zh" else " "
            said, mark = f"{said}{space}{_sign(match['sign'], cores, index, language)}", ""
        elif language == "zh" and (match := _TITLE_OF_DIGITS.fullmatch(span.text)):
            said, is_abbreviation = chinese_digits(match[1]), False
        elif (match := _MONTH_AND_DAY.fullmatch(cores[index])) and _DATE_BEFORE.fullmatch(text[: span.char_start]):
            month, day = (chinese_cardinal(int(part)) for part in match.groups())
            said, is_abbreviation = f"{month}月{day}日", False
        else:
            # A Chinese character is a word of its own: what a number means may take the second one to tell.
            beyond = cores[index + 2] if language == "zh" and index + 2 < len(cores) and has_cjk(after) else ""
            said, is_abbreviation = say(cores[index], before=before, after=after + beyond)
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


def _sign(sign: str, cores: list[str], index: int, language: str) -> str:
    """Say a sign between two numbers; a dash is only a minus where something equals something."""
    chinese = language == "zh"
    if sign == "/":
        return "除以" if chinese else "divided by"
    is_sum = "=" in (cores[index - 1] if index else "", *cores[index + 2 : index + 3])
    if is_sum:
        return "减" if chinese else "minus"
    return "到" if chinese else "to"


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
