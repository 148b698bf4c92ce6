"""English number words → digits, in place: "half past three" becomes "half past 3"."""

from __future__ import annotations

import math
import re

_UNITS = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
}
_TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fourty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_SCALES = {"thousand": 1_000, "grand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "eleventh": 11,
    "twelfth": 12,
    "thirteenth": 13,
    "fourteenth": 14,
    "fifteenth": 15,
    "sixteenth": 16,
    "seventeenth": 17,
    "eighteenth": 18,
    "nineteenth": 19,
    "twentieth": 20,
    "thirtieth": 30,
}
_TOKEN = re.compile(
    r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:[.:]\d+)*(?:st|nd|rd|th)?|[a-z]+\d\w*|[a-z]+(?:'[a-z]+)?|[^\sa-z\d]|\S"
)


_ISH = re.compile(rf"\b((?:{'|'.join([*_UNITS, *_TENS])})|\d+)(?:[ -]?ish)\b")


def tokens_of(text: str) -> list[str]:
    """Return words, numbers and marks, folded, hyphens between words opened."""
    folded = text.casefold().replace("’", "'")
    folded = _ISH.sub(r"\1", folded)
    folded = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", folded)
    folded = re.sub(r"\b([ap])\.\s?m\b\.?", r"\1m", folded)
    folded = re.sub(r"(?<=\d)\s*([ap])\s?m\b", r" \1m", folded)
    return _TOKEN.findall(folded)


def digits_for_words(text: str) -> str:
    """Return the text folded, with number words as digits and single spaces between tokens."""
    tokens = tokens_of(text)
    out: list[str] = []
    index = 0
    while index < len(tokens):
        value, used, is_ordinal = _cardinal(tokens, index)
        if used:
            out.append(f"{value}th" if is_ordinal else str(value))
            index += used
            continue
        token = tokens[index]
        if re.fullmatch(r"\d+(?:,\d{3})+(?:\.\d+)?", token):
            token = token.replace(",", "")
        elif re.fullmatch(r"\d+(?:st|nd|rd|th)", token):
            token = re.sub(r"\D", "", token) + "th"
        out.append(token)
        index += 1
    joined = " ".join(out)
    return _fractions(joined)


def _cardinal(tokens: list[str], start: int) -> tuple[int, int, bool]:  # noqa: C901 - a grammar in one loop
    """Return the number that begins at `start`, how many tokens it takes (0: none), and whether it is an ordinal."""
    total = 0
    current: int | None = None
    index = start
    last = "none"
    while index < len(tokens):
        word = tokens[index]
        if word in _UNITS:
            small = _UNITS[word]
            if last in ("unit", "teen") or (last == "tens" and small >= 10) or (last == "tens" and small == 0):
                break
            current = (current or 0) + small
            last = "unit" if small < 10 else "teen"
        elif word in _TENS:
            if last in ("unit", "teen", "tens"):
                break
            current = (current or 0) + _TENS[word]
            last = "tens"
        elif word == "hundred" and last in ("unit", "teen", "digits", "a"):
            current = (current or 1) * 100
            last = "hundred"
        elif word in _SCALES and last in ("unit", "teen", "tens", "hundred", "digits", "a"):
            total += (current or 1) * _SCALES[word]
            current, last = None, "scale"
        elif word in _ORDINALS and last in ("none", "tens", "hundred", "scale"):
            if word == "second" and (last != "tens" or _is_unit_second(tokens, index)):
                break
            if last == "tens" and _ORDINALS[word] >= 10:
                break
            return total + (current or 0) + _ORDINALS[word], index + 1 - start, True
        elif word == "and" and last in ("hundred", "scale") and _continues(tokens, index + 1):
            pass
        elif word in ("a", "an") and last == "none" and _next_is(tokens, index + 1, ("hundred", *_SCALES)):
            current, last = 1, "a"
        elif last == "none" and word.isdecimal() and _next_is(tokens, index + 1, ("hundred", *_SCALES)):
            current, last = int(word[:12]), "digits"
        elif last == "none" and word == "dozen":
            return 12, 1, False
        else:
            break
        index += 1
    while index > start and tokens[index - 1] == "and":
        index -= 1
    if last == "none":
        return 0, 0, False
    return total + (current or 0), index - start, False


def _is_unit_second(tokens: list[str], index: int) -> bool:
    return tokens[index] == "second" and index > 0 and tokens[index - 1] in ("a", "one", "1")


def _continues(tokens: list[str], index: int) -> bool:
    return index < len(tokens) and (tokens[index] in _UNITS or tokens[index] in _TENS)


def _next_is(tokens: list[str], index: int, words: tuple[str, ...]) -> bool:
    return index < len(tokens) and tokens[index] in words


def _scaled(match: re.Match[str]) -> str:
    return _plain(float(match[1]) * {"hundred": 100, **_SCALES}[match[2]])


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return str(round(value)) if abs(value - round(value)) < 1e-6 else str(value)


def _fractions(text: str) -> str:
    text = re.sub(
        r"\b(\d+) point (\d+?)((?:000){1,3})\b", lambda m: _plain(float(f"{m[1]}.{m[2]}") * 10 ** len(m[3])), text
    )
    text = re.sub(r"\bhalf (?:a )?(\d+(?:000)+)\b", lambda m: _plain(float(m[1]) / 2), text)
    text = re.sub(r"\b(\d+) point ((?:\d+ ?)+)(?=\D|$)", lambda m: f"{m[1]}.{m[2].replace(' ', '')} ", text)
    text = re.sub(r"\b(?:oh|o)\b(?=(?: (?:oh|o))* \d+\b)|(?<=\d )(?:oh|o)\b(?!['’])", "0", text)
    text = re.sub(r"\b0 (?=\d\b)(?<!\d 0 )", "0", text)
    text = re.sub(r"\b(double|triple) (\d)\b", lambda m: " ".join(m[2] * (2 if m[1] == "double" else 3)), text)
    text = re.sub(r"\b(\d+\.\d+) (hundred|thousand|grand|million|billion)\b", _scaled, text)
    text = re.sub(r"\b(\d+) (dozen)\b", lambda m: str(int(m[1]) * 12), text)
    text = re.sub(r"\b(?:a )?couple of\b|\ba couple\b", "2", text)
    text = re.sub(r"\bhalf a (12)\b", "6", text)
    text = re.sub(r"\ba (12)\b(?! (?:pm|am))", "12", text)
    text = re.sub(r"\b(\d+) and a half\b", r"\1.5", text)
    text = re.sub(r"\b(\d+) and a quarter\b", r"\1.25", text)
    text = re.sub(r"\b(\d+) and three quarters\b|\b(\d+) and 3 quarters\b", lambda m: f"{m[1] or m[2]}.75", text)
    text = re.sub(r"(?<!\w)(?:minus|negative) (?=\d)", "-", text)
    text = re.sub(r"(?<![\w.])- (?=\d)", "-", text)
    return re.sub(r"\s+", " ", text).strip()
