"""Values as people say them: the `spoken` filter of templates."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any

_WEEKDAYS_ZH = "一二三四五六日"
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Seconds(int):
    """The value of a duration slot as texts see it: a number that `spoken` knows for a length of time."""


def spoken(value: Any, kind: str | None = None, *, language: str | None = None, now: datetime | None = None) -> str:
    """Return words for a value. `kind` is needed where the value alone does not tell: `duration` for seconds."""
    chinese = language == "zh"
    if value is None:
        return ""
    if isinstance(value, bool):
        return ("是" if value else "不是") if chinese else ("yes" if value else "no")
    if isinstance(value, Seconds):
        kind = kind or "duration"
    if kind == "duration" and isinstance(value, (int, float)):
        return duration_words(value, chinese)
    if isinstance(value, (list, tuple)):
        parts = [spoken(v, language=language, now=now) for v in value]
        if len(parts) < 2:
            return "".join(parts)
        last = "和" if chinese else " and "
        return ("、" if chinese else ", ").join(parts[:-1]) + last + parts[-1]
    if isinstance(value, datetime):
        whole = value + timedelta(seconds=1) if value.microsecond else value
        return _moment(whole.strftime("%Y-%m-%dT%H:%M:%S"), chinese, now) or str(value)
    if isinstance(value, (date, time)):
        return (
            _moment(value.isoformat()[:10] if isinstance(value, date) else value.strftime("%H:%M"), chinese, now) or ""
        )
    if isinstance(value, str):
        return _moment(value, chinese, now) or value
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return str(value)


def _moment(text: str, chinese: bool, now: datetime | None) -> str | None:
    match = re.fullmatch(r"(?:(\d{4})-(\d\d)-(\d\d))?(T)?(?:(\d\d):(\d\d)(?::(\d\d))?)?(?:[+-]\d\d:?\d\d|Z)?", text)
    if not match or not (match[1] or match[5]):
        return None
    try:
        day = date(int(match[1]), int(match[2]), int(match[3])) if match[1] else None
        clock = time(int(match[5]), int(match[6]), int(match[7] or 0)) if match[5] else None
    except ValueError:
        return None
    if day is not None and clock is not None and clock.second:
        moment = datetime.combine(day, clock)
        soon = _soon_words(moment, chinese, now)
        if soon is not None:
            return soon
        moment += timedelta(seconds=30)
        day, clock = moment.date(), moment.time()
    words = []
    if day is not None:
        words.append(_day_words(day, chinese, now))
    if clock is not None:
        words.append(_clock_words(clock, chinese))
    return "".join(words) if chinese else " at ".join(words)


_SOON_S = 3_600


def _soon_words(moment: datetime, chinese: bool, now: datetime | None) -> str | None:
    """Return "in 10 minutes" for a moment to the second within the hour: nobody thinks of it as a time of day."""
    if now is None:
        return None
    # Moments that were counted from a part of a second end with the whole one after it.
    left = (moment - now.replace(tzinfo=None)) // timedelta(seconds=1)
    # what is left of ten minutes after a question and its answer is still called ten minutes
    unit = 1 if left <= 60 else 5 if left <= 120 else 30 if left <= 600 else 60
    length = round(left / unit) * unit
    if not 0 < length < _SOON_S:
        return None
    words = duration_words(length, chinese)
    return f"{words}后" if chinese else f"in {words}"


def _day_words(day: date, chinese: bool, now: datetime | None) -> str:
    ahead = (day - now.date()).days if now is not None else None
    near = {0: ("today", "今天"), 1: ("tomorrow", "明天"), 2: (None, "后天")}.get(ahead if ahead is not None else -1)
    if near is not None and near[1 if chinese else 0]:
        return str(near[1 if chinese else 0])
    if chinese:
        year = f"{day.year}年" if now is None or day.year != now.year else ""
        return f"{year}{day.month}月{day.day}日星期{_WEEKDAYS_ZH[day.weekday()]}"
    year = f", {day.year}" if now is None or day.year != now.year else ""
    return f"{_WEEKDAYS[day.weekday()]}, {_MONTHS[day.month - 1]} {day.day}{year}"


def _clock_words(clock: time, chinese: bool) -> str:
    hour, minute = clock.hour, clock.minute
    if chinese:
        part = (
            "凌晨"
            if hour < 6
            else "早上"
            if hour < 9
            else "上午"
            if hour < 12
            else "中午"
            if hour == 12
            else "下午"
            if hour < 18
            else "晚上"
        )
        shown = hour if hour <= 12 else hour - 12
        tail = "" if minute == 0 else "半" if minute == 30 else f"{minute:02d}分"
        return f"{part}{shown}点{tail}"
    if minute == 0 and hour in (0, 12):
        return "midnight" if hour == 0 else "noon"
    shown = hour % 12 or 12
    return f"{shown}{f':{minute:02d}' if minute else ''} {'am' if hour < 12 else 'pm'}"


_UNITS = ((86_400, "day", "天"), (3_600, "hour", "小时"), (60, "minute", "分钟"), (1, "second", "秒"))


def duration_words(seconds: float, chinese: bool) -> str:
    """Return a duration in words: "1 hour and 30 minutes", 「1小时30分钟」."""
    rest = round(seconds)
    parts = []
    for size, unit, unit_zh in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit_zh}" if chinese else f"{count} {unit}{'' if count == 1 else 's'}")
    if not parts:
        return "0秒" if chinese else "0 seconds"
    if chinese:
        return "".join(parts)
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
