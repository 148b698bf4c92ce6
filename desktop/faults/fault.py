"""A fault as it is told to people, in their language. No Qt: commands say it as the window does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from desktop.faults import texts_en, texts_zh_cn
from orchestrator.contracts.errors import MynahError

INTERNAL = "internal"
FAULT_KEY, PROBLEM_KEY = "fault.", "flows.problem."
TEXTS: Mapping[str, Mapping[str, str]] = {"en": texts_en.TEXTS, "zh_CN": texts_zh_cn.TEXTS}

_PLACE = re.compile(r"^\S*\.ya?ml:\d+(?::\d+)?(?=:)")
_NAMED = re.compile(
    r"""(?<!\w)'([^'\n]{1,100})'(?!\w)|"([^"\n]{1,100})"|“([^”\n]{1,100})”|`([^`\n]{1,100})`"""
    r"""|(\{[^{}\n]{0,80}(?::|…)[^{}\n]{0,80}\})|(?:\bone of|there are:|only) ([\w\-]+(?:, [\w\-]+)+)"""
    r"""|((?<![\w/])(?:~?/)?[\w.\-]+/[^\s:,;]+|[\w\-]+\.(?:ya?ml|zip|png|svg|json|jsonl|py|onnx)\b)"""
)

_KINDS_ZH = {
    "list": "列表", "mapping": "映射", "text": "文本", "texts": "文本", "number": "数字", "whole number": "整数",
    "expression": "表达式", "true or false": "true 或 false", "empty": "空", "nothing": "空",
    "boolean": "true 或 false",
}  # fmt: skip
_KIND = "(?:an? )?(" + "|".join(sorted(_KINDS_ZH, key=len, reverse=True)) + r")\b"
_DETAILS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"must be {_KIND}"), "应为{}"),
    (re.compile(rf", (?:not|got) {_KIND}"), "而不是{}"),
    (re.compile(r"from (-?\d+(?:\.\d+)?) to (-?\d+(?:\.\d+)?)"), "{} 到 {}"),
    (re.compile(r"(?:longer|deeper|more) than (\d+)"), "最多 {}"),
    (re.compile(r"first (?:one )?(?:is )?in line (\d+)"), "第一处在第 {} 行"),
    (re.compile(r"did you mean ([^?]{1,60})\?"), "是不是 {}？"),
)
"""What else a message tells, beside its names: found in English, said in Chinese."""
_FIRST_WORD = re.compile(r"([a-z]+(?:_[a-z]+)*) (?:must be|needs|takes|has either)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What went wrong: a stable code, and the English line that says it all."""

    code: str
    message: str


def fault_of(error: Exception) -> Fault:
    """Return what an exception comes to, in one line."""
    if isinstance(error, MynahError):
        return Fault(code=error.code, message=error.message.splitlines()[0])
    return Fault(code=INTERNAL, message=f"{type(error).__name__}: {error}".splitlines()[0])


def fault_text(code: str, message: str, language: str) -> str:
    """Return the sentence of a fault in `language` (en, zh or zh_CN).

    The parts of the program speak English, so English is `message` itself. Another language has a sentence for each
    code, with the names, files and places that the message holds; a code without one leaves the message as it is.
    """
    texts = TEXTS.get("zh_CN" if language.startswith("zh") else "en", texts_en.TEXTS)
    if texts is texts_en.TEXTS and message:
        return message
    words = texts.get(FAULT_KEY + code) or texts.get(PROBLEM_KEY + code)
    if words is None:
        return message
    place = _PLACE.match(message)
    rest = message[place.end() :].lstrip(": ") if place else message
    named, more = particulars(rest), _details_zh(rest)
    told = f"{words.rstrip('。')}：{'、'.join(named)}" if named else words
    if more:
        told = f"{told.rstrip('。')}（{'，'.join(more)}）"
    return (f"{place[0]}：" if place else "") + told


def particulars(message: str) -> list[str]:
    """Return what a message names: the key it begins with, quoted words, examples, choices, files; each once."""
    first = _FIRST_WORD.match(message)
    names = (next(g for g in found.groups() if g) for found in _NAMED.finditer(message))
    return list(dict.fromkeys([*([first[1]] if first is not None else []), *names]))


def _details_zh(message: str) -> list[str]:
    told = []
    for pattern, words in _DETAILS:
        found = pattern.search(message)
        if found is not None:
            told.append(words.format(*(_KINDS_ZH.get(group, group) for group in found.groups())))
    return told
