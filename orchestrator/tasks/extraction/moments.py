"""Dates and clock times: what was found in a sentence, and what it means from now.

A time without am/pm is the next future one between 7:00 and 21:59; "Wednesday" is the next one, "this Wednesday" that
of this ISO week, "next Wednesday" the week after.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

FIRST_HOUR, LAST_HOUR = 7, 21
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDate:
    """A day and where it stood."""

    span: Span
    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTime:
    """A clock time and where it stood. `is_bare`: it could be morning or afternoon. `next_day`: midnight of a night."""

    span: Span
    hour: int
    minute: int = 0
    is_bare: bool = False
    next_day: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMoment:
    """An exact moment, from "in ten minutes"."""

    span: Span
    moment: datetime


def whole_second(now: datetime) -> datetime:
    """Return the first whole second that is not before `now`, without its offset: counted from it, nothing is early."""
    local = now.replace(tzinfo=None, microsecond=0)
    return local + timedelta(seconds=1) if now.microsecond else local


def weekday_after(today: date, weekday: int) -> date:
    """Return the next day of this weekday (0 = Monday), never today."""
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def weekday_in_week(today: date, weekday: int, weeks: int) -> date:
    """Return the weekday of this ISO week (`weeks` 0), the next (1), and so on."""
    return today - timedelta(days=today.weekday()) + timedelta(days=weekday, weeks=weeks)


def month_day(today: date, month: int, day: int, year: int | None = None) -> date | None:
    """Return the day of a month: of the year given, else the next such day from today on."""
    if year is not None:
        return _day(year, month, day)
    for candidate in (today.year, today.year + 1, today.year + 2, today.year + 3, today.year + 4):
        found = _day(candidate, month, day)
        if found is not None and found >= today:
            return found
    return None


def day_of_month(today: date, day: int) -> date | None:
    """Return the next such day from today on, in this month or a later one."""
    if not 1 <= day <= 31:
        return None
    year, month = today.year, today.month
    for _ in range(12):
        found = _day(year, month, day)
        if found is not None and found >= today:
            return found
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return None


def in_month(today: date, months: int, day: int) -> date | None:
    """Return a day of the month that is `months` away."""
    index = today.month - 1 + months
    return _day(today.year + index // 12, index % 12 + 1, day)


def month_end(today: date, months: int = 0) -> date:
    """Return the last day of the month that is `months` away."""
    index = today.month + months
    return date(today.year + index // 12, index % 12 + 1, 1) - timedelta(days=1)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def resolve_time(found: FoundTime, now: datetime, day: date | None) -> datetime:
    """Return the moment a clock time means, on `day` or else the next time it comes round."""
    local = now.replace(tzinfo=None)
    if not found.is_bare:
        moment = datetime.combine(day or local.date(), time(found.hour % 24, found.minute))
        if found.next_day and day is not None:
            moment += timedelta(days=1)
        if day is None and moment <= local:
            moment += timedelta(days=1)
        return moment
    hours = sorted({found.hour % 12, found.hour % 12 + 12})
    days = [day] if day is not None else [local.date(), local.date() + timedelta(days=1)]
    in_window = [
        datetime.combine(d, time(h, found.minute)) for d in days for h in hours if FIRST_HOUR <= h <= LAST_HOUR
    ]
    future = [m for m in in_window if m > local]
    if future:
        return min(future)
    if in_window:
        return min(in_window)
    return datetime.combine(days[0], time(hours[-1], found.minute))
