"""Which of several things is meant by its place: "the second one", 「第一个」, "the last"."""

from __future__ import annotations

import re
from datetime import datetime

from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.extract import extract
from orchestrator.tasks.extraction.words import fold_en

MAX_CHARS = 30
_EN = re.compile(r"\b(first|former|second|third|last|latter)\b")
_ZH = re.compile(r"(前面|前者|头一个|最后|后面|后者)")
_FIRST = ("first", "former", "前面", "前者", "头一个")
_ALL = re.compile(
    r"(?:(?:cancel|delete|remove|take) )?(?:all(?: of (?:them|these|those))?|both(?: of them)?|every(?:thing| one)?"
    r"|them all|all reminders)"
    r"|(?:把)?(?:所有|全部|一切|全都|都|两个都?|统统)(?:的|要|取消|删掉|删除|不要|不用)*(?:了|吧|掉)*"
)


def place_named(text: str, count: int, *, now: datetime) -> int | None:
    """Return the place, from 0, that a text names among `count` things; None for none."""
    match = _EN.search(fold_en(text)) or _ZH.search(text)
    place = None
    if match is not None:
        place = {"second": 2, "third": 3}.get(match[1], 1 if match[1] in _FIRST else count)
    elif len(text) < MAX_CHARS and count > 1:
        found = extract(Slot(id="which", type="integer"), text.replace("第", ""), now=now)
        place = int(found.value) if found is not None and found.is_strict else None
    return place - 1 if place is not None and 1 <= place <= count else None


def means_all(text: str) -> bool:
    """Whether a text means all of several things."""
    return _ALL.fullmatch(fold_en(text) or text.strip(" 。，！!")) is not None
