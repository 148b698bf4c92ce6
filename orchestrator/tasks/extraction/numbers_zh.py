"""Chinese numerals → digits, in place: 「三点半」 becomes 「3点半」."""

from __future__ import annotations

import re
import unicodedata

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2, "俩": 2, "仨": 3, "幺": 1, "壹": 1, "贰": 2, "叁": 3, "肆": 4, "伍": 5, "陆": 6, "柒": 7, "捌": 8, "玖": 9,
}  # fmt: skip
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1_000, "仟": 1_000}
_LARGE = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_CHARS = "".join(_DIGITS) + "".join(_UNITS) + "".join(_LARGE)
_NUMERAL = re.compile(
    rf"(?:\d+(?:\.\d+)?)?[{_CHARS}]+(?:点[{''.join(_DIGITS)}]+(?![{''.join(_DIGITS)}\s]*[分十刻半]))?"
)
_FESTIVALS = re.compile(
    r"(?<![\d.周星期礼拜第零一二三四五六七八九十百千万年月点])([五六十])一(?=吧|假|长假|劳动|儿童|国庆|那天|当天|前|后|的时候|出发|放假|去|回)"
)
NOT_NUMERALS = re.compile(
    r"一下子?|一些|一起|一样|一定|一直|一般|一边|一会儿?|万一|第一次|千万|百分之|(?<![差零一二三四五六七八九])十分(?!钟|后|之|到)|一共|统一|唯一|三心二意|乱七八糟|星期[一二三四五六]|礼拜[一二三四五六]|周[一二三四五六](?!年)"
)


# Longer ones are no numbers that anybody says.
MAX_NUMERAL = 30


def parse(numeral: str) -> float | int | None:
    """Return the value of a numeral such as 一百二, 两千零五, 三万五, 一零零八; None when it is none."""
    whole, _, fraction = numeral.partition("点")
    value = _whole(whole)
    if value is None:
        return None
    if fraction:
        digits = "".join(str(_DIGITS[c]) for c in fraction if c in _DIGITS)
        return float(f"{value}.{digits}")
    return value


def _whole(text: str) -> int | None:
    if not text:
        return None
    if all(c in _DIGITS for c in text):
        return int("".join(str(_DIGITS[c]) for c in text))
    match = re.match(r"\d+(?:\.\d+)?", text)
    if match:
        rest = text[match.end() :]
        scale = 1
        for char in rest:
            scale *= _UNITS.get(char) or _LARGE.get(char) or 0
        return round(float(match[0]) * scale) if scale and len(match[0]) + len(rest) <= MAX_NUMERAL else None
    return _with_units(text)


def _with_units(text: str) -> int | None:
    total = section = 0
    digit: int | None = None
    last_unit = 1
    saw_zero = False
    for char in text:
        if char in _DIGITS:
            if digit is not None and digit != 0:
                return None
            digit = _DIGITS[char]
            saw_zero = saw_zero or digit == 0
        elif char in _UNITS:
            last_unit = _UNITS[char]
            section += (1 if digit is None else digit) * last_unit
            digit, saw_zero = None, False
        elif char in _LARGE:
            last_unit = _LARGE[char]
            section += digit or 0
            total = (
                (total + section) * last_unit
                if total and last_unit == 100_000_000
                else total + (section or 1) * last_unit
            )
            section, digit, saw_zero = 0, None, False
    if digit is not None:
        # 一百二 is 120, 三万五 is 35,000; 一百零二 is 102
        section += digit * (last_unit // 10) if last_unit >= 100 and not saw_zero else digit
    return total + section


def digits_for_numerals(text: str) -> str:
    """Return the text with numerals as digits; half-width, without spaces between Chinese characters."""
    # what stands for a protected word below has no meaning of its own
    text = re.sub("[\ue000-\uf8ff]", "", unicodedata.normalize("NFKC", text))
    text = re.sub(r"(?<=[\u3400-\u9fff\d])\s+(?=[\u3400-\u9fff\d])", "", text)
    protected: list[str] = []

    def hide(match: re.Match[str]) -> str:
        protected.append(match[0])
        return f"\ue000{chr(0xE100 + len(protected) - 1)}"

    text = text.replace("零下", "负")
    text = _FESTIVALS.sub(lambda m: {"五": "劳动节", "六": "儿童节", "十": "国庆节"}[m[1]], text)
    text = re.sub(r"半打", "6个", re.sub(r"([一两二三四五六七八九十])打(?![电折车开字听算])", _dozens, text))
    text = NOT_NUMERALS.sub(hide, text)
    text = _NUMERAL.sub(_digits, text)
    text = re.sub(r"(?:负|零下|0下)(?=\d)", "-", text)
    return re.sub("\ue000([\ue100-\uf8ff])", lambda m: protected[ord(m[1]) - 0xE100], text)


def _dozens(match: re.Match[str]) -> str:
    return f"{int(parse(match[1]) or 1) * 12}个"


_ABOUT = re.compile(r"[一二两三四五六七八][二三四五六七八九]")
_COUNTED = re.compile(r"[个天次人位点分秒年月周岁斤块本张件杯条瓶种]|小时|星期|礼拜|号")


def _is_about(text: str, following: str) -> bool:
    """Whether it is a range, as in 三四个: "three or four" is no number."""
    if not _ABOUT.fullmatch(text) or not _COUNTED.match(following):
        return False
    return _DIGITS[text[1]] - _DIGITS[text[0]] == 1


def _digits(match: re.Match[str]) -> str:
    text = match[0]
    if _is_about(text, match.string[match.end() :]):
        return text
    value = parse(text)
    if value is None:
        return _split_digits(text)
    if len(text) > 1 and text.startswith(("零", "〇")) and isinstance(value, int):
        # a leading zero belongs to codes and to minutes: 零八 is 08
        return "".join(str(_DIGITS.get(c, c)) for c in text) if all(c in _DIGITS for c in text) else str(value)
    return str(value)


def _split_digits(text: str) -> str:
    """Two numbers side by side, as in 三十五六: keep the longest readable beginning, then the rest."""
    for cut in range(len(text) - 1, 0, -1):
        value = parse(text[:cut])
        if value is not None:
            rest = parse(text[cut:])
            return f"{value} {rest if rest is not None else text[cut:]}"
    return text
