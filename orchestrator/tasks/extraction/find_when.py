"""Dates, clock times, moments and durations as slot values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from orchestrator.tasks.extraction import moments_en, moments_zh
from orchestrator.tasks.extraction.durations import find_durations
from orchestrator.tasks.extraction.hits import Hit, merged
from orchestrator.tasks.extraction.moments import FoundDate, FoundTime, resolve_time, whole_second


def durations_in(normal: str, now: datetime, *, chinese: bool) -> Iterator[Hit]:
    """Yield the durations named."""
    if _HOLDS.search(normal) or _RANGE.search(normal):
        return
    # "twenty minutes, actually thirty": the unit is that of the length before
    again = _RETAKEN.search(normal)
    before = list(find_durations(normal[: again.start()], chinese=chinese)) if again is not None else []
    if again is not None and len(before) == 1:
        unit = next((u for u in (86_400, 3_600, 60, 1) if before[0].seconds % u == 0), 1)
        yield Hit(value=int(again["n"]) * unit, spans=((before[0].span[0], again.end()),))
        return
    for found in find_durations(normal, chinese=chinese):
        yield Hit(value=found.seconds, spans=(found.span,))


_TAKES_BACK = re.compile(
    r"\b(?:no|sorry|wait|actually|rather|i mean|make that|make it|scratch that)\b"
    r"|不对|不是|等等|不不|说错|还是|改成|换成|哦不|啊不|应该是"
)
_THIS_TIME = re.compile(r"\b(?:this|the same|same) time\b|这个?时间|这个?时候|同一时间|这个?点(?!\d)|此时此刻")
_HOLDS = re.compile(
    r"\b(?:give me|gimme|just|wait|hold on|hang on|hold|bear with me)\b.{0,10}?"
    r"\b(?:a|1|one) (?:sec|second|minute|moment|min)\b(?! timer)"
    r"|(?:等|给)我?(?:1下|1会|1(?:秒|分钟?))(?!后|之后|以后|的)|稍等"
)
"""Words that ask for patience; the minute in them is no length anybody sets."""


_UNKNOWN_DAY = re.compile(
    r"除夕|大年|春节|过年|元宵|清明|端午|七夕|中秋|重阳|腊八|冬至|农历|阴历|正月|腊月|感恩节|复活节|母亲节|父亲节"
    r"|\b(?:easter|thanksgiving|good friday|ramadan|diwali|hanukkah|lunar new year|chinese new year)\b"
    r"|\b(?:mother'?s day|father'?s day|my birthday)\b"
)
"""Days that move from year to year: without a calendar of them another day would be made up."""
_RETAKEN = re.compile(
    r"[,，]? ?(?:\b(?:no|wait|sorry|actually|rather|i mean|make that|make it)\b"
    r"|不对|不是|等等|说错了|还是|改成|[啊哦]?不|算了)[,，]? ?(?P<n>\d{1,3})$"
)
_NOW = re.compile(r"(?:right )?now|immediately|right away|现在|马上|立刻|立即|此刻")
_RANGE = re.compile(
    r"\d (?:or|to|or maybe|till) (?:an? )?\d|\d(?:到|至|或|或者|还是|[-~])\d+(?:个|分|秒|小|天|周|点)"
    r"|[一二两三四五六七八][二三四五六七八九](?:个|分|秒|小|天|周)"
)


def days_of(module: Any, normal: str, now: datetime) -> list[FoundDate]:
    """Return the days named, without one that was taken back ("tomorrow, I mean Friday")."""
    if _UNKNOWN_DAY.search(normal):
        return []
    dates: list[FoundDate] = sorted(module.find_dates(normal, now.date()), key=lambda d: d.span[0])
    kept: list[FoundDate] = []
    for found in dates:
        if kept and kept[-1].day != found.day and _TAKES_BACK.search(normal[kept[-1].span[1] : found.span[0]]):
            found = replace(found, span=(kept.pop().span[0], found.span[1]))
        kept.append(found)
    return kept


def dates_in(normal: str, now: datetime, *, chinese: bool) -> Iterator[Hit]:
    """Yield the dates named."""
    module = moments_zh if chinese else moments_en
    dates = days_of(module, normal, now)
    for found in dates:
        yield Hit(value=found.day.isoformat(), spans=(found.span,))


def times_in(normal: str, now: datetime, *, chinese: bool) -> Iterator[Hit]:
    """Yield the times named."""
    module = moments_zh if chinese else moments_en
    if _NOW.fullmatch(normal.strip(" .。!！")):
        yield Hit(value=now.strftime("%H:%M"), spans=((0, len(normal)),))
        return
    moments = list(module.find_moments(normal, now))
    for moment in moments:
        # A time has no seconds: rather later than sooner.
        whole = moment.moment + timedelta(seconds=-moment.moment.second % 60)
        yield Hit(value=whole.strftime("%H:%M"), spans=(moment.span,))
    if moments:
        return
    dates = days_of(module, normal, now)
    day = dates[0].day if len(dates) == 1 else None
    for found in _kept(_apart(list(module.find_times(normal)), dates), normal):
        when = resolve_time(found, now, day)
        spans = (*(d.span for d in dates), found.span) if len(dates) == 1 else (found.span,)
        yield Hit(value=when.strftime("%H:%M"), spans=merged(spans))


def _exact(moment: datetime) -> str:
    """Return the value of a moment, with seconds where it has any: "in one minute" is 60 s from now."""
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")


def datetimes_in(normal: str, now: datetime, *, chinese: bool) -> Iterator[Hit]:
    """Yield the datetimes named."""
    if _NOW.fullmatch(normal.strip(" .。!！")):
        yield Hit(value=now.strftime("%Y-%m-%dT%H:%M"), spans=((0, len(normal)),))
        return
    module = moments_zh if chinese else moments_en
    moments = list(module.find_moments(normal, now))
    if moments and any(m.moment.time() != whole_second(now).time() for m in moments):
        for moment in moments:
            yield Hit(value=_exact(moment.moment), spans=(moment.span,))
        return
    if _UNKNOWN_DAY.search(normal):
        return
    dates = days_of(module, normal, now)
    times = _apart(list(module.find_times(normal)), dates)
    same = _THIS_TIME.search(normal) if not times and dates else None
    if same is not None:
        times = [FoundTime(span=same.span(), hour=now.hour, minute=now.minute)]
    times = _kept(times, normal)
    days = list(dict.fromkeys(d.day for d in dates))
    for found in times:
        wanted: list[date | None] = [*days] if days else [None]
        for day in wanted:
            when = resolve_time(found, now, day)
            spans = (*(d.span for d in dates if d.day == day), found.span)
            yield Hit(value=when.strftime("%Y-%m-%dT%H:%M"), spans=merged(spans))
    for moment in moments if not times else ():
        # whole days from now, without a clock time: the same time of day
        yield Hit(value=moment.moment.strftime("%Y-%m-%dT%H:%M"), spans=(moment.span,))


def times_of(module: Any, normal: str, dates: list[FoundDate]) -> list[FoundTime]:
    """Return the clock times named beside these days, without one that was taken back."""
    return _kept(_apart(list(module.find_times(normal)), dates), normal)


def _kept(times: list[FoundTime], normal: str) -> list[FoundTime]:
    """Drop a time that was taken back ("at four, no, five")."""
    kept: list[FoundTime] = []
    for found in sorted(times, key=lambda t: t.span[0]):
        if kept and _TAKES_BACK.search(normal[kept[-1].span[1] : found.span[0]]):
            found = replace(found, span=(kept.pop().span[0], found.span[1]))
        kept.append(found)
    return kept


def _apart(times: list[FoundTime], dates: list[FoundDate]) -> list[FoundTime]:
    """Drop times that are really part of a date (the 9 of "December 9"), but keep "tonight at 8"."""
    kept = []
    for found in times:
        overlaps = [d for d in dates if d.span[0] < found.span[1] and found.span[0] < d.span[1]]
        if all(d.span[1] - d.span[0] <= found.span[1] - found.span[0] for d in overlaps):
            kept.append(found)
    return kept
