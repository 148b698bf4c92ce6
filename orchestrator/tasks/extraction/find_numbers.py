"""Numbers in text whose number words are digits already."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from orchestrator.tasks.extraction.hits import Hit
from orchestrator.tasks.extraction.words import MEASURES_ZH

_NUMBER = re.compile(r"(?<![\w.:/])[-+]?\d+(?:\.\d+)?(?:th)?(?![\d:/]|\.\d)")
_NUMBER_ZH = re.compile(r"(?<![\d.:/A-Za-z])[-+]?\d+(?:\.\d+)?(?![\d:/A-Za-z]|\.\d)")

_HALF = re.compile(r"\b(?:(?<!at )once(?! (?:more|again|upon))|twice|(?:a |one )?half)\b")
_HALF_ZH = re.compile(r"[一1]半|半(?!天|小时|点|年)")


_NONE_ZH = re.compile(r"没有|没有人|没人|(?:1个)?[也都]?没有?|1[个位]也?没有?(?:的)?|无")
_METRES_ZH = re.compile(r"(?<![\d.])(\d)米(\d{1,2})(?!\d|[个分米])")
_MONEY_ZH = re.compile(
    r"(?<![\d.])(?:(?P<n>\d+)[块元](?P<d>\d)(?!\d)(?:[毛角](?:(?P<c>\d)分?)?)?|(?P<n2>\d+)[毛角](?!\d))(?:钱)?"
)
_NONE = re.compile(r"nobody|no one|none|none of them|zilch|nil|(?:it is |it's )?(?:just|only) me")
_PARTS = re.compile(
    r"(?<![\w.])(a|one|\d{1,2}) (thirds?|quarters?|fourths?|fifths?|tenths?|(?:3|4|5|6|8|10)ths?)\b(?! of (?:an?|the) )"
)
_BELOW = {
    "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10, "3th": 3, "4th": 4, "5th": 5, "6th": 6, "8th": 8,
    "10th": 10,
}  # fmt: skip


def find_numbers(normal: str, *, chinese: bool) -> Iterator[Hit]:
    """Yield the numbers named."""
    special = _special_zh(normal) if chinese else _special_en(normal)
    if special is not None:
        yield special
        return
    yield from _plain_numbers(normal, chinese=chinese)


def _special_zh(normal: str) -> Hit | None:
    percent = re.search(r"百分之([-\d.]*\d)", normal)
    if percent is not None:
        return Hit(value=_plain_number(percent[1]), spans=(percent.span(),))
    fraction = re.search(r"(\d+)分之(\d+)", normal)
    if fraction is not None and int(fraction[1]):
        return Hit(value=int(fraction[2]) / int(fraction[1]), spans=(fraction.span(),))
    money = _MONEY_ZH.search(normal)
    if money is not None:
        tenths = int(money["d"] or money["n2"] or 0)
        value = int(money["n"] or 0) + tenths / 10 + int(money["c"] or 0) / 100
        return Hit(value=round(value, 2), spans=(money.span(),))
    if _NONE_ZH.fullmatch(normal.strip(" 。，,.！!")):
        return Hit(value=0, spans=((0, len(normal)),))
    length = _METRES_ZH.search(normal)
    if length is not None:
        return Hit(value=float(f"{length[1]}.{length[2]}"), spans=(length.span(),))
    return None


def _special_en(normal: str) -> Hit | None:
    part = _PARTS.search(normal)
    if part is not None:
        above = 1 if part[1] in ("a", "one") else int(part[1])
        return Hit(value=above / _BELOW[part[2].removesuffix("s")], spans=(part.span(),))
    if _NONE.fullmatch(normal.strip(" .,!")):
        return Hit(value=1 if "me" in normal.split() else 0, spans=((0, len(normal)),))
    return None


def _plain_numbers(normal: str, *, chinese: bool) -> Iterator[Hit]:
    found = list((_NUMBER_ZH if chinese else _NUMBER).finditer(normal))
    if len(found) > 1 and all(re.fullmatch(r"\s?", normal[a.end() : b.start()]) for a, b in itertools.pairwise(found)):
        texts = [m[0] for m in found]
        is_said_in_parts = all(len(t) == 1 for t in texts) or [len(t) for t in texts] == [2, 2]
        if is_said_in_parts and all(t.isdecimal() for t in texts):
            yield Hit(value=int("".join(texts)), spans=((found[0].start(), found[-1].end()),))
            return
    for match in found:
        end = match.end()
        unit = re.match(r" ?(?:%|percent\b)", normal[end:])
        half = re.match(rf"[{MEASURES_ZH}]半(?![{MEASURES_ZH}小天])", normal[end:]) if chinese else None
        value = _plain_number(match[0])
        if half is not None:
            value += 0.5
        elif chinese and match[0] == "1" and normal[end:].startswith("半"):
            yield Hit(value=0.5, spans=((match.start(), end + 1),))
            continue
        yield Hit(value=value, spans=((match.start(), end + (unit.end() if unit else half.end() if half else 0)),))
    if not found:
        word = (_HALF_ZH if chinese else _HALF).search(normal)
        if word is not None:
            value = {"once": 1, "twice": 2}.get(word[0], 0.5)
            yield Hit(value=value, spans=(word.span(),))


def _plain_number(text: str) -> float | int:
    text = text.removesuffix("th")
    return float(text) if "." in text else int(text)


def find_integers(normal: str, *, chinese: bool) -> Iterator[Hit]:
    """Yield the whole numbers named."""
    for hit in find_numbers(normal, chinese=chinese):
        if hit.value == int(hit.value):
            yield Hit(value=int(hit.value), spans=hit.spans)
