"""Chinese: what is said for a written word."""

from __future__ import annotations

import re

from audio.tts.numerals import chinese_cardinal, chinese_decimal, chinese_digits

_UNITS = {
    "km": "公里", "m": "米", "cm": "厘米", "mm": "毫米", "kg": "公斤", "g": "克", "mg": "毫克", "l": "升",
    "ml": "毫升", "h": "小时", "min": "分钟", "s": "秒", "ms": "毫秒", "km/h": "公里每小时", "m/s": "米每秒",
    "°c": "摄氏度", "℃": "摄氏度", "°f": "华氏度", "℉": "华氏度", "°": "度", "kb": "千字节", "mb": "兆",
    "gb": "吉字节", "tb": "太字节", "kw": "千瓦", "kwh": "千瓦时", "w": "瓦", "v": "伏", "hz": "赫兹",
    "khz": "千赫兹", "mhz": "兆赫", "ghz": "吉赫", "m²": "平方米", "km²": "平方公里", "k": "千", "db": "分贝",
}  # fmt: skip
_MONEY = {
    "$": "美元", "€": "欧元", "£": "英镑", "¥": "元", "￥": "元",
}  # fmt: skip
_SYMBOLS = {
    "+": "加", "=": "等于", "±": "正负", "≈": "约等于", "²": "的平方", "³": "的立方", "‰": "千分之", "~": "约",
    "½": "二分之一", "¼": "四分之一", "¾": "四分之三",
    "&": "和", "%": "百分号", "@": "at", "×": "乘以", "÷": "除以", "<": "小于",
    ">": "大于", "#": "井号", "°": "度",
}  # fmt: skip
_ABBREVIATIONS = {
    "dr": "博士", "mr": "先生", "mrs": "太太", "ms": "女士", "vs": "对", "etc": "等等", "no": "第",
    "e.g": "例如", "i.e": "也就是",
}  # fmt: skip
_TWO_AS_LIANG = frozenset("点年亿万千人元个位只条件张本辆台双次天块岁杯瓶顿家间座首句场碗份套朵匹头棵段")

_NUMBER = r"(?P<sign>[-−+]?)(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<fraction>\d+))?"
_PLAIN = re.compile(_NUMBER)
_COUNT = re.compile(r"[-−+]?[\d.,]*(?:[-–~～]?[\d.,]*\d)")
_WITH_UNIT = re.compile(_NUMBER + r"(?P<unit>[A-Za-z°℃℉²/]+)")
_PERCENT = re.compile(_NUMBER + "[%％]")
_WITH_MONEY = re.compile(r"(?P<currency>[$€£¥￥])" + _NUMBER)
_TIME = re.compile(r"(?P<h>[01]?\d|2[0-4])[:：](?P<m>[0-5]\d)(?:[:：](?P<s>[0-5]\d))?")
_ISO_DATE = re.compile(
    r"(?P<y>\d{4})-(?P<m>0?[1-9]|1[0-2])-(?P<d>0?[1-9]|[12]\d|3[01])"
    r"(?:T(?P<time>\d\d:\d\d(?::\d\d)?)\S*)?"
)
_RANGE = re.compile(r"(\d+(?:\.\d+)?)([%％]?)[-–~～](\d+(?:\.\d+)?)(\D*)")
_FRACTION = re.compile(r"(\d{1,3})/(\d{1,3})")
_TIMES = re.compile(r"(\d{1,2}[:：]\d\d)[-–~～－](\d{1,2}[:：]\d\d)")
_ANY_DATE = re.compile(r"(\d{4})[/.](0?[1-9]|1[0-2])[/.](0?[1-9]|[12]\d|3[01])")
_EMERGENCY = frozenset({"110", "119", "120", "122"})
_NAME = re.compile(r"(\d{1,2})([GKD])")
_RATIO = re.compile(r"(\d{1,3})[:：](\d)")
_YEARS = re.compile(r"((?:19|20)\d\d)[-–~～－]((?:19|20)\d\d)")
_SHORT_RANGE = re.compile(r"(\d{1,2})[-–~～－](\d{1,2})")
_TO = re.compile(r"[-–~～－](\d+)")
_NUMBER_SIGN = re.compile(r"[Nn][Oo]\.?(\d{1,6})")
_EVENT = re.compile(r"(\d{1,2})·(\d{1,2})")
_PER_MILLE = re.compile(r"(\d+(?:\.\d+)?)‰")
_SCALES = frozenset({"万", "亿", "千"})
_OPERATORS = {"-": "减", "−": "减", "+": "加", "*": "乘", "×": "乘以", "/": "除以", "÷": "除以", "=": "等于"}
_FORMULA = re.compile(r"\d+(?:\.\d+)?(?:[-−+*×/÷]\d+(?:\.\d+)?)+(?:=\d+(?:\.\d+)?)?")
_DOTTED = re.compile(r"[vV]?\d+(?:\.\d+){2,}")
_GROUPED = re.compile(r"\+?\d{2,}(?:-\d{2,})+")


def say(word: str, *, before: str, after: str) -> tuple[str, bool]:
    """Return what is said for `word`, and whether its full stop only marked an abbreviation.

    `before` and `after` are the neighbours without their punctuation.
    """
    lower = word.lower()
    if lower in _SYMBOLS:
        return _SYMBOLS[lower], False
    if lower in _UNITS and _COUNT.fullmatch(before):
        return _UNITS[lower], True
    if lower in _ABBREVIATIONS and (word[0].isupper() or "." in word) and word != "NO":
        return _ABBREVIATIONS[lower], True
    if word in _SCALES and before[:1] in _MONEY and before:
        return word + _MONEY[before[0]], False
    if not any(char.isdigit() and char.isascii() for char in word):
        return word.replace("…", "").replace("—", "").replace("&", "和"), False
    return _say_digits(word, before=before, after=after), False


def _special(word: str, *, before: str, after: str) -> str | None:  # noqa: C901 - one line per written form
    """Return what is said for a word of several numbers, or for a number that is read in a way of its own."""
    if match := _TIMES.fullmatch(word):
        return f"{_say_digits(match[1], before='', after='')}到{_say_digits(match[2], before='', after='')}"
    if match := _ANY_DATE.fullmatch(word):
        month, day = chinese_cardinal(int(match[2])), chinese_cardinal(int(match[3]))
        return f"{chinese_digits(match[1])}年{month}月{day}日"
    if word in _EMERGENCY and (not after or after[0] in "急报电热火"):
        return chinese_digits(word)
    if match := _NAME.fullmatch(word):
        return chinese_cardinal(int(match[1])) + match[2]
    if match := _RATIO.fullmatch(word):
        return f"{chinese_cardinal(int(match[1]))}比{chinese_cardinal(int(match[2]))}"
    if match := _YEARS.fullmatch(word):
        return "到".join(chinese_digits(year) for year in match.groups())
    if (match := _SHORT_RANGE.fullmatch(word)) and int(match[1]) < int(match[2]):
        return f"{chinese_cardinal(int(match[1]))}到{chinese_cardinal(int(match[2]))}"
    if (match := _TO.fullmatch(word)) and before in ("年", "月", "日", "号", "点"):
        return "到" + _plain(_matched(match[1]), before="", after=after)
    if match := _NUMBER_SIGN.fullmatch(word):
        return chinese_cardinal(int(match[1])) + "号"
    if _FORMULA.fullmatch(word) and set(word) & set("=+*×÷"):
        return "".join(_OPERATORS.get(part) or _number(_matched(part)) for part in re.split(r"([-−+*×/÷=])", word))
    if word.isdecimal() and len(word) == 2 and after[:1] == "后":
        return chinese_digits(word)
    if match := _EVENT.fullmatch(word):
        return chinese_digits(match[1] + match[2])
    if word in ("100%", "100％"):
        return "百分之百"
    if match := _PER_MILLE.fullmatch(word):
        return "千分之" + _say_digits(match[1], before="", after="")
    return None


def _matched(number: str) -> re.Match[str]:
    match = _PLAIN.fullmatch(number)
    assert match is not None
    return match


def _say_digits(word: str, *, before: str, after: str) -> str:
    if (special := _special(word, before=before, after=after)) is not None:
        return special
    if match := _ISO_DATE.fullmatch(word):
        month, day = chinese_cardinal(int(match["m"])), chinese_cardinal(int(match["d"]))
        said = f"{chinese_digits(match['y'])}年{month}月{day}日"
        return said + (_say_digits(match["time"], before="", after="") if match["time"] else "")
    if match := _TIME.fullmatch(word):
        return _time(match)
    if match := _PERCENT.fullmatch(word):
        sign = "负" if match["sign"] in ("-", "−") else ""
        return f"{sign}百分之{_unsigned(match)}"
    if match := _WITH_MONEY.fullmatch(word):
        # The scale stands between amount and currency: ￥1.5万 is said 一点五万元.
        return _number(match) + ("" if after[:1] in _SCALES else _MONEY[match["currency"]])
    if _DOTTED.fullmatch(word):
        said = "点".join(chinese_cardinal(int(part)) for part in word.lstrip("vV").split("."))
        return f"版本{said}" if word[0] in "vV" else said
    if match := _FRACTION.fullmatch(word):
        return f"{chinese_cardinal(int(match[2]))}分之{chinese_cardinal(int(match[1]))}"
    if match := _PLAIN.fullmatch(word):
        return _plain(match, before=before, after=after)
    if (match := _WITH_UNIT.fullmatch(word)) and match["unit"].lower() in _UNITS:
        return _number(match) + _UNITS[match["unit"].lower()]
    if _GROUPED.fullmatch(word):
        return "，".join(chinese_digits(part) for part in word.lstrip("+").split("-"))
    if match := _RANGE.fullmatch(word):
        tail = match[4]
        per_cent = "%" if tail in ("%", "％") else ""
        ends = [_say_digits(end + per_cent, before="", after="") for end in match.group(1, 3)]
        return "到".join(ends) + ("" if per_cent else _UNITS.get(tail.lower(), tail))
    return _mixed(word)


def _time(match: re.Match[str]) -> str:
    hour, minute = int(match["h"]), int(match["m"])
    said = ("两" if hour == 2 else chinese_cardinal(hour)) + "点"
    if minute:
        said += ("零" if minute < 10 else "") + chinese_cardinal(minute) + "分"
    if match["s"] and int(match["s"]):
        said += chinese_cardinal(int(match["s"])) + "秒"
    return said


def _unsigned(match: re.Match[str]) -> str:
    whole = match["whole"].replace(",", "")
    return chinese_decimal(whole, match["fraction"]) if match["fraction"] else chinese_cardinal(int(whole))


def _number(match: re.Match[str]) -> str:
    return {"-": "负", "−": "负", "+": "加"}.get(match["sign"], "") + _unsigned(match)


def _plain(match: re.Match[str], *, before: str, after: str) -> str:
    whole = match["whole"].replace(",", "")
    is_bare = not match["fraction"] and not match["sign"]
    if is_bare and after[:1] == "年" and len(whole) in (2, 4) and not (len(whole) == 2 and after[1:2] == "代"):
        return chinese_digits(whole)
    if is_bare and whole == "2" and after and after[0] in _TWO_AS_LIANG and before != "第":
        return "两"
    if is_bare and ((len(whole) > 1 and whole.startswith("0")) or (len(whole) == 11 and whole.startswith("1"))):
        return chinese_digits(whole)
    return _number(match)


def _mixed(word: str) -> str:
    """Say letters and digits that stand together, part by part."""
    parts: list[str] = []
    for part in re.findall(r"\d+(?:\.\d+)?|[^\d\W]+|[^\w\s]", word.replace("_", " ")):
        if part[0].isdecimal():
            whole, _, fraction = part.partition(".")
            if fraction:
                parts.append(chinese_decimal(whole, fraction))
            else:
                parts.append(chinese_cardinal(int(whole)) if len(whole) < 8 else chinese_digits(whole))
        elif part[0].isalpha():
            parts.append(part)
        elif part in _SYMBOLS:
            parts.append(_SYMBOLS[part])
    return "".join(parts)
