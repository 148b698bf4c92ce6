"""English: what is said for a written word."""

from __future__ import annotations

import re

from audio.tts import normalise_forms
from audio.tts.numerals import (
    english_cardinal,
    english_decimal,
    english_digits,
    english_ordinal,
    english_year,
)

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH_WORDS = {name.lower() for name in _MONTHS}
_MONTH_SHORT = {name[:3].lower(): name for name in _MONTHS if name != "May"} | {"sept": "September"}
_YEAR_BEFORE = frozenset(
    (
        "in",
        "since",
        "year",
        "of",
        "until",
        "by",
        "from",
        "before",
        "after",
        "spring",
        "summer",
        "autumn",
        "fall",
        "winter",
    )
)
_DAY_BEFORE = frozenset(("on", "by", "until", "due", "since"))
_DIALLED = frozenset(("dial", "call", "ring", "phone"))
_ABBREVIATIONS = {
    "dr": "doctor", "mr": "mister", "mrs": "missus", "ms": "miz", "prof": "professor", "st": "saint",
    "jr": "junior", "sr": "senior", "vs": "versus", "etc": "et cetera", "e.g": "for example", "i.e": "that is",
    "approx": "approximately", "dept": "department", "est": "estimated", "fig": "figure", "inc": "incorporated",
    "ltd": "limited", "mt": "mount", "no": "number", "vol": "volume", "a.m": "A M", "p.m": "P M",
    "tel": "telephone", "ave": "avenue", "p": "page", "pp": "pages", "max": "maximum",
}  # fmt: skip
_NUMBERED = frozenset({"p", "pp", "vol", "est", "max"})
_DOT_NEEDED = frozenset(
    {"p", "pp", "max", "ave", "no", "fig", "st", "mt", "est", "inc", "vol", "tel", "sr", "jr", "ms"}
)
_UNITS = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "mi": "mile", "ft": "foot",
    "kg": "kilogram", "g": "gram", "mg": "milligram", "lb": "pound", "lbs": "pound", "oz": "ounce",
    "l": "liter", "ml": "milliliter", "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute",
    "mins": "minute", "s": "second", "sec": "second", "ms": "millisecond", "kb": "kilobyte", "mb": "megabyte",
    "gb": "gigabyte", "tb": "terabyte", "kw": "kilowatt", "kwh": "kilowatt hour", "w": "watt", "v": "volt",
    "hz": "hertz", "khz": "kilohertz", "mhz": "megahertz", "ghz": "gigahertz", "km/h": "kilometer per hour",
    "m/s": "meter per second", "mph": "mile per hour", "°c": "degree celsius", "°f": "degree fahrenheit",
    "℃": "degree celsius", "℉": "degree fahrenheit", "°": "degree", "m²": "square meter", "m³": "cubic meter",
    "km²": "square kilometer", "k": "thousand", "%": "percent", "db": "decibel",
    "tbsp": "tablespoon", "tsp": "teaspoon", "gal": "gallon",
}  # fmt: skip
_UNCOUNTED = frozenset({"hertz", "kilohertz", "megahertz", "gigahertz", "percent", "thousand"})
_MONEY = {
    "$": ("dollar", "cent"), "€": ("euro", "cent"), "£": ("pound", "penny"), "¥": ("yuan", "fen"),
    "￥": ("yuan", "fen"),
}  # fmt: skip
_SYMBOLS = {
    "+": "plus", "=": "equals", "&": "and", "%": "percent", "@": "at", "×": "times", "÷": "divided by",
    "<": "less than", ">": "greater than", "#": "number", "°": "degrees",
}  # fmt: skip
_WHOLE_WORDS = {
    "w/": "with", "w/o": "without", "a.k.a": "also known as", "c#": "C sharp", "and/or": "and or",
    "24/7": "twenty four seven", "50/50": "fifty fifty", "911": "nine one one",
}  # fmt: skip
_SCALES = frozenset({"thousand", "million", "billion", "trillion"})
_CODES = {
    "USD": "US dollars", "EUR": "euros", "GBP": "pounds", "CNY": "yuan", "RMB": "yuan", "JPY": "yen",
}  # fmt: skip
_VULGAR = frozenset("½¼¾⅓⅔")
_FRACTIONS = {
    (1, 2): "one half",
    (1, 3): "one third",
    (2, 3): "two thirds",
    (1, 4): "one quarter",
    (3, 4): "three quarters",
}

_NUMBER = r"(?P<sign>[-−+]?)(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<fraction>\d+))?"
_PLAIN = re.compile(_NUMBER)
_COUNT = re.compile(r"[-−+]?[\d.,]*(?:[-–~]?[\d.,]*\d)")
_WITH_UNIT = re.compile(_NUMBER + r"(?P<unit>[A-Za-z°℃℉%²/]+)")
_WITH_MONEY = re.compile(r"(?P<currency>[$€£¥￥])" + _NUMBER + r"(?P<scale>[kKmMbB]?)")
_TIME = re.compile(r"(?P<h>[01]?\d|2[0-4]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?P<half>[ap]m)?", re.IGNORECASE)
_ISO_DATE = re.compile(
    r"(?P<y>\d{4})-(?P<m>0?[1-9]|1[0-2])-(?P<d>0?[1-9]|[12]\d|3[01])"
    r"(?:T(?P<time>\d\d:\d\d(?::\d\d)?)\S*)?"
)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
_RANGE = re.compile(r"(\d+(?:\.\d+)?)[-–~](\d+(?:\.\d+)?)(\D*)")
_FRACTION = re.compile(r"(\d{1,3})/(\d{1,3})")
_DECADE = re.compile(r"['’]?(\d{2,4})s")
_DOTTED = re.compile(r"v?\d+(?:\.\d+){2,}", re.IGNORECASE)
_GROUPED = re.compile(r"\+?\d{2,}(?:-\d{2,})+")
_HALF_DAY = re.compile(r"(\d{1,2})([ap])\.?m", re.IGNORECASE)


def say(word: str, *, before: str, after: str) -> tuple[str, bool]:  # noqa: C901 - one line per written form
    """Return what is said for `word`, and whether its full stop only marked an abbreviation.

    `before` and `after` are the neighbours without their punctuation.
    """
    lower = word.lower()
    if lower in _SYMBOLS:
        return _SYMBOLS[lower], False
    if lower in _UNITS and _COUNT.fullmatch(before):
        return _unit(lower, is_one=before in ("1", "1.0")), True
    if lower in ("am", "pm") and before[:1].isdigit():
        return f"{word[0].upper()} M", False
    if lower == "x" and before[-1:].isdecimal() and after[:1].isdecimal():
        return "times", False
    if word == "St" and before[:1].isupper() and not after[:1].isupper():
        return "street", True
    if lower in _ABBREVIATIONS and (lower not in _DOT_NEEDED or _is_short_form(word, after)):
        return _ABBREVIATIONS[lower], True
    if lower in _MONTH_SHORT and (after[:1].isdigit() or before[:1].isdigit()):
        return _MONTH_SHORT[lower], True
    if lower in _WHOLE_WORDS:
        return _WHOLE_WORDS[lower], True
    if lower in _UNITS and "/" in lower:
        return _unit(lower, is_one=False), False
    if lower in _SCALES and before[:1] in _MONEY and before:
        return f"{word} {_MONEY[before[0]][0]}s".replace("yuans", "yuan"), False
    if word in _CODES and _COUNT.fullmatch(before):
        return _CODES[word], False
    if word in ("–", "-") and before[-1:].isdecimal() and after[:1].isdecimal():
        return "to", False
    if not any(char.isdigit() or char in _VULGAR for char in word):
        return _spell_parts(word), False
    if (special := normalise_forms.english(word, after=after.lower(), say=_part_of)) is not None:
        return special, False
    return _say_digits(word, lower, before=before.lower(), after=after.lower()), False


def _part_of(word: str) -> str:
    return _say_digits(word, word.lower(), before="", after="x")


def _is_short_form(word: str, after: str) -> bool:
    if word.lower() == "no":
        return word[0] == "N" and after[:1].isdigit()
    if word.lower() in _NUMBERED and after[:1].isdecimal():
        return True
    return word.lower() not in ("p", "pp", "max") and word[0].isupper() and bool(after)


def _spell_parts(word: str) -> str:
    said = word.replace("&", " and ").replace("@", " at ").replace("+", " plus ").replace("_", " ").replace("/", " ")
    said = said.replace("…", " ").replace("—", ", ").replace("’", "'")
    return " ".join(said.split())


def _say_digits(word: str, lower: str, *, before: str, after: str) -> str:  # noqa: C901 - one line per written form
    if match := _ISO_DATE.fullmatch(word):
        said = f"{_MONTHS[int(match['m']) - 1]} {english_ordinal(int(match['d']))}, {english_year(int(match['y']))}"
        return f"{said}, {_say_digits(match['time'], '', before='', after='')}" if match["time"] else said
    if match := _TIME.fullmatch(word):
        return _time(match, is_half_day=after in ("am", "pm", "a.m", "p.m") or match["half"] is not None)
    if match := _WITH_MONEY.fullmatch(word):
        return _money(match, after)
    if match := _ORDINAL.fullmatch(word):
        return english_ordinal(int(match[1]))
    if match := _HALF_DAY.fullmatch(word):
        return f"{english_cardinal(int(match[1]))} {match[2].upper()} M"
    if match := _DOTTED.fullmatch(word):
        parts = [english_cardinal(int(part)) for part in lower.lstrip("v").split(".")]
        return ("version " if lower.startswith("v") else "") + " point ".join(parts)
    if (match := _FRACTION.fullmatch(word)) and before in _DAY_BEFORE and after != "of":
        month, day = int(match[1]), int(match[2])
        if 1 <= month <= 12 and 1 <= day <= 31:
            return f"{_MONTHS[month - 1]} {english_ordinal(day)}"
    if match:
        return _fraction(int(match[1]), int(match[2]))
    if match := _PLAIN.fullmatch(word):
        return _plain(match, before=before, after=after)
    if (match := _DECADE.fullmatch(word)) and (match[1].endswith("0") and len(match[1]) in (2, 4)):
        return _decade(int(match[1]))
    if (match := _WITH_UNIT.fullmatch(word)) and match["unit"].lower() in _UNITS:
        is_one = match["whole"] == "1" and not match["fraction"]
        return f"{_number(match)} {_unit(match['unit'].lower(), is_one=is_one)}"
    if (match := _RANGE.fullmatch(word)) and (not _GROUPED.fullmatch(word) or _is_range(match)):
        return _range(match)
    if _GROUPED.fullmatch(word):
        return ", ".join(english_digits(part) for part in word.lstrip("+").split("-"))
    return _mixed(word)


def _is_range(match: re.Match[str]) -> bool:
    """Tell 10-15 and 1999-2005 from a telephone number."""
    low, high = match[1], match[2]
    return len(low) == len(high) and len(low) in (2, 4) and int(low) < int(high)


def _range(match: re.Match[str]) -> str:
    ends = [_say_digits(end, end, before="in" if len(end) == 4 else "", after="") for end in match.group(1, 2)]
    tail = match[3].lower()
    said = " to ".join(ends)
    if not tail:
        return said
    return f"{said} {_unit(tail, is_one=False) if tail in _UNITS else match[3]}"


def _time(match: re.Match[str], *, is_half_day: bool) -> str:
    hour, minute = int(match["h"]), int(match["m"])
    said = english_cardinal(hour)
    if minute:
        said += f" oh {english_cardinal(minute)}" if minute < 10 else f" {english_cardinal(minute)}"
    elif not is_half_day:
        said += " o'clock" if 1 <= hour <= 12 else " hundred hours"
    if match["s"] and int(match["s"]):
        said += f" and {english_cardinal(int(match['s']))} seconds"
    if match["half"]:
        said += f" {match['half'][0].upper()} M"
    return said


def _number(match: re.Match[str]) -> str:
    sign = {"-": "minus ", "−": "minus ", "+": "plus "}.get(match["sign"], "")
    whole = match["whole"].replace(",", "")
    return sign + (english_decimal(whole, match["fraction"]) if match["fraction"] else english_cardinal(int(whole)))


def _plain(match: re.Match[str], *, before: str, after: str) -> str:
    whole = match["whole"]
    is_bare = not match["fraction"] and not match["sign"]
    if is_bare and before in _MONTH_WORDS | set(_MONTH_SHORT) and len(whole) <= 2 and int(whole) >= 1:
        return english_ordinal(int(whole))
    if is_bare and after in _MONTH_WORDS | set(_MONTH_SHORT) and len(whole) <= 2 and int(whole) >= 1:
        return english_ordinal(int(whole))
    if is_bare and len(whole) == 3 and before in _DIALLED:
        return english_digits(whole)
    near_year = before in _YEAR_BEFORE or before in _MONTH_WORDS or (before.isdigit() and len(before) <= 2) or not after
    if is_bare and len(whole) == 4 and 1100 <= int(whole) <= 2099 and near_year:
        return english_year(int(whole))
    if (is_bare and len(whole) > 1 and whole.startswith("0")) or len(whole) > 15:
        return english_digits(whole.replace(",", ""))
    return _number(match)


def _unit(unit: str, *, is_one: bool) -> str:
    name = _UNITS[unit]
    head, _, tail = name.partition(" per ")
    if not is_one and name not in _UNCOUNTED:
        if head == "foot":
            head = "feet"
        elif head.startswith("degree "):
            head = head.replace("degree", "degrees", 1)
        elif head not in _UNCOUNTED:
            head += "s"
    return f"{head} per {tail}" if tail else head


def _money(match: re.Match[str], after: str) -> str:
    major, minor = _MONEY[match["currency"]]
    whole = int(match["whole"].replace(",", ""))
    fraction = match["fraction"]
    scale = {"k": "thousand", "m": "million", "b": "billion"}.get(match["scale"].lower(), "")
    plural = major if major == "yuan" or (whole == 1 and not fraction and not scale) else major + "s"
    if after in _SCALES:
        return _number(match)
    if scale or (fraction and len(fraction) != 2):
        return " ".join(part for part in (_number(match), scale, plural) if part)
    said = f"{_number_sign(match)}{english_cardinal(whole)} {plural if whole != 1 else major}"
    cents = int(fraction) if fraction else 0
    if cents:
        name = minor if cents == 1 or minor == "fen" else "pence" if minor == "penny" else minor + "s"
        said += f" and {english_cardinal(cents)} {name}"
    return said


def _number_sign(match: re.Match[str]) -> str:
    return "minus " if match["sign"] in ("-", "−") else ""


def _fraction(top: int, bottom: int) -> str:
    if (top, bottom) in _FRACTIONS:
        return _FRACTIONS[top, bottom]
    if 5 <= bottom <= 10 and top < bottom:
        return f"{english_cardinal(top)} {english_ordinal(bottom)}{'s' if top > 1 else ''}"
    return f"{english_cardinal(top)} over {english_cardinal(bottom)}"


def _decade(number: int) -> str:
    said = english_year(number) if number >= 1000 else english_cardinal(number)
    return said[:-1] + "ies" if said.endswith("y") else said + "s"


def _part(number: str) -> str:
    whole, _, fraction = number.partition(".")
    if fraction:
        return english_decimal(whole, fraction)
    is_spelled = (whole.startswith("0") and len(whole) > 1) or len(whole) > 15
    return english_digits(whole) if is_spelled else english_cardinal(int(whole))


def _mixed(word: str) -> str:
    """Say letters and digits that stand together, part by part: A4, 221B, B2B, GPT-4."""
    parts: list[str] = []
    for part in re.findall(r"\d+(?:\.\d+)?|[^\d\W]+|[^\w\s]", word.replace("_", " ")):
        if part[0].isdecimal():
            parts.append(_part(part))
        elif part[0].isalpha():
            parts.append(part)
        elif part in _SYMBOLS or part == "/":
            parts.append(_SYMBOLS.get(part, "slash"))
    return " ".join(parts)
