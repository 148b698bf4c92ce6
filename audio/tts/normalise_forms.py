"""Written forms of several numbers in one word, English: ranges of times, dates, ratios, formulas, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable

from audio.tts.numerals import english_cardinal, english_ordinal, english_year

Say = Callable[[str], str]
"""Says one part on its own."""

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_VULGAR = {"½": "a half", "¼": "a quarter", "¾": "three quarters", "⅓": "a third", "⅔": "two thirds"}
_ALONE = {"½": "one half", "¼": "one quarter", "¾": "three quarters", "⅓": "one third", "⅔": "two thirds"}
_PREFIXES = {
    "~": "about", "≈": "about", ">": "more than", "<": "less than", "±": "plus or minus", "§": "section", "№": "number",
}  # fmt: skip
_OPERATORS = {
    "*": "times", "×": "times", "+": "plus", "-": "minus", "−": "minus", "=": "equals", "^": "to the power of",
    "÷": "divided by",
}  # fmt: skip

_MIXED = re.compile(r"(\d*)([½¼¾⅓⅔])")
_PREFIXED = re.compile(r"([~≈<>±§№])(\S+)")
_TIMES = re.compile(r"(\d{1,2}(?::\d\d)?(?:[ap]m)?)[-–~](\d{1,2}(?::\d\d)?(?:[ap]m)?)", re.IGNORECASE)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_RATIO = re.compile(r"(\d{1,2}):(\d{1,2})")
_SEASON = re.compile(r"((?:19|20)\d\d)/(\d\d)")
_TIMES_X = re.compile(r"(\d+(?:\.\d+)?)[x×]", re.IGNORECASE)
_NAME = re.compile(r"(\d{1,2})([GKD])")
_FORMULA = re.compile(r"\d+(?:\.\d+)?(?:[*×+^÷=−-]\d+(?:\.\d+)?)+")
_MONEY_RANGE = re.compile(r"([$€£])(\d+)[-–](\d+)")
_FOREIGN_MONEY = re.compile(r"(?:US|A|C|HK)\$(\d[\d,.]*)|(\d[\d,.]*)([€$£])")
_HEIGHT = re.compile(r"(\d)['′](\d{1,2})[\"″]?")
_NETWORK = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_MONEY = {"$": "dollars", "€": "euros", "£": "pounds"}


def english(word: str, *, after: str, say: Say) -> str | None:  # noqa: C901 - one line per written form
    """Return what is said for `word`, None if it is of no form known here. `after` is the next word, lower case."""
    if match := _MIXED.fullmatch(word):
        whole = match[1]
        return f"{english_cardinal(int(whole))} and {_VULGAR[match[2]]}" if whole else _ALONE[match[2]]
    if match := _PREFIXED.fullmatch(word):
        return f"{_PREFIXES[match[1]]} {say(match[2])}"
    if (match := _TIMES.fullmatch(word)) and (":" in word or word[-1] in "mM"):
        return f"{say(match[1])} to {say(match[2])}"
    if match := _SLASHED.fullmatch(word):
        # Month first, unless it can't be one.
        first, second = int(match[1]), int(match[2])
        return _date(second, first, int(match[3])) if first <= 12 else _date(first, second, int(match[3]))
    if match := _DOTTED.fullmatch(word):
        return _date(int(match[1]), int(match[2]), int(match[3]))
    if (match := _RATIO.fullmatch(word)) and len(match[2]) == 1:
        return f"{english_cardinal(int(match[1]))} to {english_cardinal(int(match[2]))}"
    if match := _SEASON.fullmatch(word):
        return f"{english_year(int(match[1]))}, {english_cardinal(int(match[2]))}"
    if match := _TIMES_X.fullmatch(word):
        return f"{say(match[1])} times"
    if match := _NAME.fullmatch(word):
        return f"{english_cardinal(int(match[1]))} {match[2]}"
    if match := _MONEY_RANGE.fullmatch(word):
        return f"{say(match[2])} to {say(match[3])} {_MONEY[match[1]]}"
    if match := _FOREIGN_MONEY.fullmatch(word):
        return f"{say(match[1])} dollars" if match[1] else say(match[3] + match[2])
    if match := _HEIGHT.fullmatch(word):
        return f"{english_cardinal(int(match[1]))} foot {english_cardinal(int(match[2]))}"
    if _NETWORK.fullmatch(word):
        return " dot ".join(english_cardinal(int(part)) for part in word.split("."))
    if _FORMULA.fullmatch(word) and (set(word) & set("*×+^÷=")):
        parts = re.split(r"([*×+^÷=−-])", word)
        return " ".join(_OPERATORS.get(part) or say(part) for part in parts)
    return None


def _date(day: int, month: int, year: int) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{_MONTHS[month - 1]} {english_ordinal(day)}, {english_year(year)}"
