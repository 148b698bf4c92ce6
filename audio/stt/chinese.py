"""Brings recognised Chinese into one script and gives it the punctuation that is certain."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import Any

from audio.stt.text import CJK, has_cjk


class ChineseScript(StrEnum):
    """The characters Chinese is shown in."""

    SIMPLIFIED = "simplified"
    TRADITIONAL = "traditional"
    AS_RECOGNISED = "as_recognised"


_CONVERSIONS = {ChineseScript.SIMPLIFIED: "t2s", ChineseScript.TRADITIONAL: "s2t"}
_WIDE = {",": "，", "?": "？", "!": "！", ";": "；", ":": "：", ".": "。"}
_NARROW_AFTER_CJK = re.compile(rf"(?<=[{CJK}])\s*([,?!;:.])\s*(?=[{CJK}]|$)")
_GAP = re.compile(rf"(?<=[{CJK}])\s+(?=[{CJK}])")
_MIN_SENTENCE_CHARS = 4
_QUESTION_WORDS = ("什么", "什麼", "甚麼", "怎么", "怎麼", "哪", "谁", "誰", "几", "幾", "多少", "为何", "為何", "呢")


@cache
def _converter(name: str) -> Any:
    # Imported here: reading the dictionaries takes a moment, which those who speak no Chinese need not wait for.
    from opencc import OpenCC

    return OpenCC(name)


def to_script(text: str, script: ChineseScript) -> str:
    """Return `text` in `script`, phrase by phrase where characters are ambiguous; other languages stay as they are."""
    name = _CONVERSIONS.get(script)
    if name is None or not has_cjk(text):
        return text
    return str(_converter(name).convert(text))


def punctuate(text: str, *, is_whole: bool) -> str:
    """Return Chinese `text` with full-width marks, pauses (spaces) as commas and, if it `is_whole`, an end.

    Only what is certain: a question mark after 吗, a full stop after four characters or more. Marks between Latin
    words and inside numbers stay.
    """
    text = _NARROW_AFTER_CJK.sub(lambda match: _WIDE[match[1]], text)
    text = _GAP.sub("，", text)
    if not is_whole or not has_cjk(text[-1:]):
        return text
    if text[-1] in "吗嗎":
        return text + "？"
    return text + "。" if len(text) >= _MIN_SENTENCE_CHARS and not _asks(text) else text


def _asks(text: str) -> bool:
    """Whether `text` may be a question, so that a full stop could be wrong."""
    return any(word in text for word in _QUESTION_WORDS)


def finish_text(text: str, *, language: str | None, script: ChineseScript, is_whole: bool) -> str:
    """Return recognised `text` as it is shown and processed: Chinese in `script`, with punctuation."""
    if language != "zh" or not has_cjk(text):
        return text
    return punctuate(to_script(text, script), is_whole=is_whole)
