"""Durations in both languages, in text whose numbers are digits already."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_EN_UNITS = {
    "second": 1, "seconds": 1, "sec": 1, "secs": 1, "s": 1, "minute": 60, "minutes": 60, "min": 60, "mins": 60, "m": 60,
    "hour": 3_600, "hours": 3_600, "hr": 3_600, "hrs": 3_600, "h": 3_600, "day": 86_400, "days": 86_400,
    "week": 604_800, "weeks": 604_800, "fortnight": 1_209_600, "fortnights": 1_209_600, "month": 2_592_000,
    "months": 2_592_000, "year": 31_536_000, "years": 31_536_000,
}  # fmt: skip
_U = "|".join(sorted(_EN_UNITS, key=len, reverse=True))
_AMOUNT = r"(?:\d+(?:\.\d+)?|an?|1/2|half an?|half|a half|(?:a |1 )?quarters? of an?|quarter|3 quarters of an?|a few|several|a)"
_EN_PART = re.compile(
    rf"(?<![\w.:/])(?P<n>{_AMOUNT}) ?(?P<u>{_U})(?![a-z])(?P<tail> and an? half| and 1/2| and an? quarter| and 3 quarters)?"
)
_EN_LINK = re.compile(r"(?:and|,|, and)?")
_ZH_UNITS = {
    "秒钟": 1, "秒": 1, "分钟": 60, "分": 60, "刻钟": 900, "小时": 3_600, "钟头": 3_600, "个小时": 3_600, "个钟头": 3_600, "个钟": 3_600,
    "天": 86_400, "日": 86_400, "周": 604_800, "星期": 604_800, "个星期": 604_800, "个礼拜": 604_800, "礼拜": 604_800,
    "个月": 2_592_000, "年": 31_536_000,
}  # fmt: skip
_ZU = "|".join(sorted(_ZH_UNITS, key=len, reverse=True))
_ZH_PART = re.compile(rf"(?P<n>\d+(?:\.\d+)?|半)(?P<half>个半)?(?P<u>{_ZU})(?![号点月年])(?P<tail>半)?(?:钟)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDuration:
    """A length of time in seconds and where it stood."""

    span: tuple[int, int]
    seconds: float


def _en_seconds(match: re.Match[str]) -> float:
    text, unit = match["n"], _EN_UNITS[match["u"]]
    if text.startswith("3 quarters"):
        amount = 0.75
    elif "quarter" in text:
        amount = 0.25
    elif "half" in text or text == "1/2":
        amount = 0.5
    elif text in ("a", "an"):
        amount = 1.0
    elif text in ("a few", "several"):
        amount = 3.0
    else:
        amount = float(text)
    tail = match["tail"] or ""
    amount += (
        0.5 if "half" in tail or "1/2" in tail else 0.75 if "3 quarters" in tail else 0.25 if "quarter" in tail else 0.0
    )
    return amount * unit


def _zh_seconds(match: re.Match[str]) -> float:
    unit = _ZH_UNITS[match["u"]]
    if match["n"] == "半":
        return 43_200 if match["u"] in ("天", "日") else unit / 2
    amount = float(match["n"]) + (0.5 if match["half"] else 0.0)
    if match["tail"]:
        amount += 0.5
    return amount * unit


def find_durations(text: str, *, chinese: bool) -> Iterator[FoundDuration]:
    """Yield lengths of time; parts that follow each other ("1 hour 20 minutes") are one."""
    pattern, value, link = (
        (_ZH_PART, _zh_seconds, re.compile(r"[零又和]?")) if chinese else (_EN_PART, _en_seconds, _EN_LINK)
    )
    start = end = -1
    total = 0.0
    unit = 0
    for match in pattern.finditer(text):
        size = (_ZH_UNITS if chinese else _EN_UNITS)[match["u"]]
        if start >= 0 and size < unit and link.fullmatch(text[end : match.start()].strip() or ""):
            total += value(match)
            end = match.end()
        else:
            if start >= 0:
                yield FoundDuration(span=(start, end), seconds=_whole(total))
            start, end, total = match.start(), match.end(), value(match)
        unit = size
        end, total = _trailing(text, end, total, unit, chinese)
    if start >= 0:
        yield FoundDuration(span=(start, end), seconds=_whole(total))


def _trailing(text: str, end: int, total: float, unit: int, chinese: bool) -> tuple[int, float]:
    """Take a bare number after an hour or minute for the next smaller unit: "an hour twenty", 「一分三十」."""
    if unit not in (3_600, 60):
        return end, total
    rest = re.match(r"(\d{1,2})$" if chinese else r" (?:and )?(\d{1,2})$", text[end:])
    if rest is None:
        half = re.match(r"(?: and)? (?:an? )?(half|quarter)$", text[end:]) if not chinese else None
        if half is not None:
            return end + half.end(), total + unit * (0.5 if half[1] == "half" else 0.25)
        return end, total
    return end + rest.end(), total + int(rest[1]) * unit / 60


def _whole(seconds: float) -> float:
    return int(seconds) if seconds == int(seconds) else seconds
