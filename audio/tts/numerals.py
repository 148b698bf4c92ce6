"""Numbers in words, English and Chinese."""

from __future__ import annotations

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"))
_ORDINAL_ENDINGS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_ZH_DIGITS = "零一二三四五六七八九"
_ZH_UNITS = ("", "十", "百", "千")
_ZH_SCALES = ("", "万", "亿", "万亿")
_SPELL_FROM = 10**15


def english_cardinal(number: int) -> str:
    """Say `number` in English words; from a quadrillion on digit by digit."""
    if number < 0:
        return "minus " + english_cardinal(-number)
    if number >= _SPELL_FROM:
        return english_digits(str(number))
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens] + (f" {_ONES[rest]}" if rest else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{_ONES[hundreds]} hundred" + (f" {english_cardinal(rest)}" if rest else "")
    for size, name in _SCALES:
        if number >= size:
            head, rest = divmod(number, size)
            return f"{english_cardinal(head)} {name}" + (f" {english_cardinal(rest)}" if rest else "")
    raise AssertionError(number)


def english_ordinal(number: int) -> str:
    """Say `number` as a rank: first, twenty second."""
    head, _, last = english_cardinal(number).rpartition(" ")
    if last in _ORDINAL_ENDINGS:
        last = _ORDINAL_ENDINGS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last += "th"
    return f"{head} {last}".strip()


def english_year(number: int) -> str:
    """Say `number` as a year: nineteen eighty four, two thousand five, twenty twenty six."""
    high, low = divmod(number, 100)
    if not 1000 <= number <= 2999 or (high % 10 == 0 and low < 10):
        return english_cardinal(number)
    if low == 0:
        return f"{english_cardinal(high)} hundred"
    return f"{english_cardinal(high)} " + (f"oh {_ONES[low]}" if low < 10 else english_cardinal(low))


def english_digits(digits: str) -> str:
    """Say each digit."""
    return " ".join(_ONES[int(digit)] for digit in digits)


def english_decimal(whole: str, fraction: str) -> str:
    """Say a number with a decimal point; both parts are digit strings."""
    return f"{english_cardinal(int(whole or '0'))} point {english_digits(fraction)}"


def chinese_cardinal(number: int) -> str:
    """Say `number` in Chinese words; from a quadrillion on digit by digit."""
    if number < 0:
        return "负" + chinese_cardinal(-number)
    if number == 0:
        return "零"
    if number >= _SPELL_FROM:
        return chinese_digits(str(number))
    groups: list[int] = []
    while number:
        number, group = divmod(number, 10000)
        groups.append(group)
    said = ""
    skipped = False
    for index in range(len(groups) - 1, -1, -1):
        group = groups[index]
        if not group:
            skipped = bool(said)
            continue
        if said and (skipped or group < 1000):
            said += "零"
        said += _chinese_group(group) + _ZH_SCALES[index]
        skipped = False
    if said[:2] in ("二千", "二万", "二亿"):
        said = "两" + said[1:]
    return said[1:] if said.startswith("一十") else said


def _chinese_group(group: int) -> str:
    said = ""
    gap = False
    for place in range(3, -1, -1):
        digit = group // 10**place % 10
        if digit:
            said += ("零" if gap and said else "") + _ZH_DIGITS[digit] + _ZH_UNITS[place]
            gap = False
        else:
            gap = True
    return said


def chinese_digits(digits: str) -> str:
    """Say each digit, as in years and telephone numbers."""
    return "".join(_ZH_DIGITS[int(digit)] for digit in digits)


def chinese_decimal(whole: str, fraction: str) -> str:
    """Say a number with a decimal point; both parts are digit strings."""
    return f"{chinese_cardinal(int(whole or '0'))}点{chinese_digits(fraction)}"
