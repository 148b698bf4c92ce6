"""English dates and times in text whose number words are digits already."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

from orchestrator.tasks.extraction.durations import find_durations
from orchestrator.tasks.extraction.moments import (
    FoundDate,
    FoundMoment,
    FoundTime,
    day_of_month,
    in_month,
    month_day,
    month_end,
    weekday_after,
    weekday_in_week,
    whole_second,
)

_WEEKDAYS = {
    "monday": 0, "mon": 0, "tuesday": 1, "tues": 1, "tue": 1, "wednesday": 2, "wed": 2, "thursday": 3, "thurs": 3, "thur": 3,
    "thu": 3, "friday": 4, "fri": 4, "saturday": 5, "sat": 5, "sunday": 6, "sun": 6,
}  # fmt: skip
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sept sep", "october oct", "november nov", "december dec"), start=1)
    for name in names.split()
}  # fmt: skip
_WD = "|".join(sorted(_WEEKDAYS, key=len, reverse=True))
_MO = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR = r"(?:,? ?(?:of )?(?P<year>\d{4}|(?:19|20) \d\d)(?! ?(?:am|pm|:)))?"
_HOLIDAYS = {
    r"christmas eve": (12, 24), r"christmas(?: day)?": (12, 25), r"boxing day": (12, 26), r"new year ?'?s eve": (12, 31),
    r"new year ?'?s(?: day)?": (1, 1), r"valentine ?'?s(?: day)?": (2, 14), r"halloween": (10, 31),
}  # fmt: skip


def _year(text: str | None) -> int | None:
    return int(text.replace(" ", "")) if text else None


def _month(match: re.Match[str], today: date) -> date | None:
    return month_day(today, _MONTHS[match["month"]], int(match["day"]), _year(match["year"]))


def _slashes(match: re.Match[str], today: date) -> date | None:
    first, second = int(match["a"]), int(match["b"])
    month, day = (second, first) if first > 12 else (first, second)
    year = int(match["year"]) if match["year"] else None
    return month_day(today, month, day, year + 2000 if year is not None and year < 100 else year)


def _iso(match: re.Match[str], today: date) -> date | None:
    return month_day(today, int(match["m"]), int(match["d"]), int(match["y"]))


def _weekday(match: re.Match[str], today: date) -> date:
    day, which = _WEEKDAYS[match["wd"]], (match["which"] or "").strip()
    weeks = match.groupdict().get("weeks")
    if which in ("this", "this coming"):
        return weekday_in_week(today, day, 0) if which == "this" else weekday_after(today, day)
    if which == "next":
        return weekday_in_week(today, day, 1)
    found = weekday_after(today, day)
    return found + timedelta(weeks=1) if weeks else found


def _in_units(match: re.Match[str], today: date) -> date | None:
    count = 1.0 if match["n"] in ("a", "an", "the") else float(match["n"])
    unit = match["unit"]
    if count > 5000 or count != int(count):
        return None
    if unit.startswith("month"):
        return in_month(today, int(count), min(today.day, month_end(today, int(count)).day))
    if unit.startswith("year"):
        return month_day(today, today.month, today.day if today.day < 29 else 28, today.year + int(count))
    return today + timedelta(days=int(count) * {"day": 1, "week": 7, "fortnight": 14}[unit.rstrip("s")])


def _ago(match: re.Match[str], today: date) -> date | None:
    count = 1 if match["n"] in ("a", "an") else int(match["n"])
    return (
        today - timedelta(days=count * {"day": 1, "week": 7, "fortnight": 14}[match["unit"].rstrip("s")])
        if count < 5000
        else None
    )


_RULES: list[tuple[str, Callable[[re.Match[str], date], date | None]]] = [
    (r"(?P<y>\d{4}) ?[-/] ?(?P<m>\d{1,2}) ?[-/] ?(?P<d>\d{1,2})\b", _iso),
    (r"(?:the )?day after tomorrow", lambda m, t: t + timedelta(days=2)),
    (r"(?:the )?day before yesterday", lambda m, t: t - timedelta(days=2)),
    (rf"(?:a |1 )?week (?:from|after) (?:on )?(?P<wd>{_WD})\b",
     lambda m, t: weekday_after(t, _WEEKDAYS[m["wd"]]) + timedelta(weeks=1)),
    (rf"(?:on )?(?P<wd>{_WD}) (?:of )?(?P<when>next|this) week|(?P<when2>next|this) week,? (?:on )?(?P<wd2>{_WD})\b",
     lambda m, t: weekday_in_week(t, _WEEKDAYS[m["wd"] or m["wd2"]], int("next" in (m["when"], m["when2"])))),
    (r"(?:a|1) week (?:from (?:today|now))|today week", lambda m, t: t + timedelta(days=7)),
    (r"(?:a|1) week from tomorrow", lambda m, t: t + timedelta(days=8)),
    (r"tomorrow|tmrw|tmr", lambda m, t: t + timedelta(days=1)),
    (rf"last (?P<wd>{_WD})\b", lambda m, t: t - timedelta(days=(t.weekday() - _WEEKDAYS[m["wd"]] - 1) % 7 + 1)),
    (r"(?P<n>a|an|\d+) (?P<unit>days?|weeks?|fortnights?) ago\b", lambda m, t: _ago(m, t)),
    (rf"(?P<n>\d{{1,2}}) weeks? (?:from|after) (?:on )?(?P<wd>{_WD})\b",
     lambda m, t: weekday_after(t, _WEEKDAYS[m["wd"]]) + timedelta(weeks=int(m["n"]))),
    (rf"(?:the )?(?:last day|end) of (?P<month>{_MO})\b",
     lambda m, t: month_end(t, (_MONTHS[m["month"]] - t.month) % 12)),
    (r"april fool'?s?(?: day)?", lambda m, t: month_day(t, 4, 1)),
    (r"not tomorrow ?,? (?:but )?the day after", lambda m, t: t + timedelta(days=2)),
    (r"yesterday", lambda m, t: t - timedelta(days=1)),
    (r"today|tonight|this (?:morning|afternoon|evening)", lambda m, t: t),
    (rf"(?P<which>this coming |this |next |on |coming )?(?P<wd>{_WD})\b(?P<weeks> week)?", _weekday),
    (rf"(?:the )?(?P<day>\d{{1,2}})(?:th)? (?:of )?(?P<month>{_MO})\b\.?{_YEAR}", _month),
    (rf"(?P<month>{_MO})\b\.? (?:the )?(?P<day>\d{{1,2}})(?:th)?(?![\d:])(?! (?:am|pm|oclock)){_YEAR}", _month),
    (r"(?<![\d.])(?P<a>\d{1,2}) ?/ ?(?P<b>\d{1,2})(?: ?/ ?(?P<year>\d{4}|\d{2}))?(?!\d)", _slashes),
    (r"(?:in |after )(?P<n>a|an|\d+) (?P<unit>days?|weeks?|months?|years?|fortnights?)(?: time)?\b", _in_units),
    (r"(?P<n>a|an|\d+) (?P<unit>days?|weeks?|months?|years?|fortnights?) (?:from (?:now|today)|later|ahead)\b", _in_units),
    (r"(?:the )?(?:end|last day) of (?:the|this) month", lambda m, t: month_end(t)),
    (r"(?:the )?(?:end|last day) of next month", lambda m, t: month_end(t, 1)),
    (r"(?:the )?(?P<d>\d{1,2})(?:th)? (?:of )?next month", lambda m, t: in_month(t, 1, int(m["d"]))),
    (r"next month on the (?P<d>\d{1,2})(?:th)?", lambda m, t: in_month(t, 1, int(m["d"]))),
    (r"(?:the )?(?P<d>\d{1,2})(?:th)? (?:of )?this month", lambda m, t: in_month(t, 0, int(m["d"]))),
    (r"(?:this |the |at the )?weekend", lambda m, t: weekday_in_week(t, 5, 0) if t.weekday() <= 5 else weekday_after(t, 5)),
    (r"next weekend", lambda m, t: weekday_in_week(t, 5, 1)),
    (r"next week", lambda m, t: t + timedelta(days=7)),
    *((pattern, lambda m, t, md=md: month_day(t, *md)) for pattern, md in _HOLIDAYS.items()),
    (r"(?:on )?the (?P<d>\d{1,2})(?:th)\b|\b(?P<e>\d{1,2})th\b", lambda m, t: day_of_month(t, int(m["d"] or m["e"]))),
    (r"the second\b", lambda m, t: day_of_month(t, 2)),
]  # fmt: skip
_COMPILED = [(re.compile(rf"(?<![\w])(?:{pattern})(?!\w)"), handler) for pattern, handler in _RULES]


def find_dates(text: str, today: date) -> Iterator[FoundDate]:
    """Yield the days named, the most specific reading first; readings that overlap an earlier one are left out."""
    taken: list[tuple[int, int]] = []
    text = re.sub(r"\bthe second of\b", "the 2th of", text) if "the second of" in text else text
    for pattern, handler in _COMPILED:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            day = handler(match, today)
            # "February 30" is no day, and no shorter reading of it either
            taken.append(match.span())
            if day is not None:
                yield FoundDate(span=match.span(), day=day)


_PART = (
    r"(?: (?P<part>am|pm|in the morning|in the afternoon|in the evening|at night|this morning|this afternoon|this evening|"
    r"tonight|at noon|in the night|o ?' ?clock in the morning|o ?' ?clock in the afternoon|o ?' ?clock in the evening|o ?' ?clock at night|"
    r"(?:tomorrow|yesterday|today) (?P<dp>morning|afternoon|evening|night)))?"
)
_OCLOCK = r"(?: ?o ?' ?clock| oclock)"
_TIME_RULES = [
    re.compile(r"(?<![\w.])(?P<word>midday|noon|midnight)(?!\w)"),
    re.compile(rf"(?<![\w.])(?P<rel>half|a quarter|quarter|\d{{1,2}})(?: ?minutes?| ?mins?)? (?P<dir>past|after|to|before|till|til|of) (?P<h>\d{{1,2}}|noon|midnight)(?![\d:.])(?:{_OCLOCK})?{_PART}"),
    re.compile(rf"(?<![\w.])(?P<rel>half) (?P<dir>)(?P<h>\d{{1,2}})(?![\d:.]| ?(?:minutes|hours|hour|an|a)\b)(?:{_OCLOCK})?{_PART}"),
    re.compile(rf"(?<![\w.:/-])(?P<h>\d{{1,2}}) ?[:.] ?(?P<m>\d\d)(?: ?: ?\d\d)?(?![\d.:]){_PART}"),
    re.compile(rf"(?<![\w.:/-])(?P<h>\d{{1,2}})h(?P<m>\d\d)(?!\w){_PART}"),
    re.compile(rf"(?<![\w.:/-])(?P<h>\d{{1,2}}) (?P<m>[0-5]\d)(?![\d.:]| ?(?:%|percent))(?:{_OCLOCK})?{_PART}(?! (?:minutes|hours|seconds|days))"),
    re.compile(rf"(?<![\w.:/-])(?P<h>\d{{1,2}}){_OCLOCK}(?: sharp)?{_PART}"),
    re.compile(r"(?<![\w.:/-])(?P<h>\d{1,2}) (?P<part>am|pm|in the morning|in the afternoon|in the evening|at night|this morning|this afternoon|this evening|tonight|(?:tomorrow|today) (?P<dp>morning|afternoon|evening|night))(?!\w)"),
    re.compile(r"(?<![\w.:/-])(?P<h>[01]\d|2[0-3])(?P<m>[0-5]\d) hours?(?!\w)"),
    re.compile(rf"(?<!\w)(?:(?P<pre>in the morning|in the afternoon|in the evening|this morning|this afternoon|this evening|tonight|tomorrow morning|tomorrow afternoon|tomorrow evening|tomorrow night|morning|afternoon|evening|night),? )(?:at |around |about )?(?P<h>\d{{1,2}})(?: ?[: ] ?(?P<m>[0-5]\d))?(?![\d.:/]|th)(?:{_OCLOCK})?"),
    re.compile(r"(?<!\w)(?:at|around|about|by|until|till|for|from|before|after|make it|say) (?P<h>\d{1,2})(?! ?(?:minutes?|mins?|hours?|hrs?|seconds?|secs?|days?|weeks?|months?|years?|%|percent|people|th))(?![\d.:/]|th)(?: sharp)?"),
    re.compile(r"^(?P<h>\d{1,2})$"),
    re.compile(r"^(?P<h>\d{1,2})(?=,? (?:no|wait|sorry|actually|make it|make that|i mean)\b)"),
    re.compile(r"(?:(?<=\bno )|(?<=wait )|(?<=sorry )|(?<=actually )|(?<=make it )|(?<=make that )|(?<=i mean )|(?<=\bno, )|(?<=wait, )|(?<=sorry, ))(?P<h>\d{1,2})$"),
]  # fmt: skip


def find_times(text: str) -> Iterator[FoundTime]:
    """Yield the clock times named, the most specific reading first."""
    taken: list[tuple[int, int]] = []
    for pattern in _TIME_RULES:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            found = _time(match, text)
            if found is not None:
                taken.append(match.span())
                yield found


def _time(match: re.Match[str], text: str) -> FoundTime | None:
    groups = match.groupdict()
    word = groups.get("word")
    if word:
        return FoundTime(span=match.span(), hour=0 if word == "midnight" else 12, next_day=word == "midnight")
    raw_hour = groups.get("h") or ""
    named = {"noon": 12, "midnight": 24}.get(raw_hour)
    hour = named if named is not None else int(raw_hour)
    minute = int(groups.get("m") or 0)
    if groups.get("rel"):
        amount = {"half": 30, "a quarter": 15, "quarter": 15}.get(groups["rel"])
        minute = amount if amount is not None else int(groups["rel"])
        if minute > 59 or (groups["dir"] == "of" and minute > 30):
            return None
        if groups["dir"] in ("to", "before", "till", "til", "of"):
            hour, minute = (hour - 1) % 24 if hour != 1 else 12, (60 - minute) % 60
        if named is not None:
            return FoundTime(span=match.span(), hour=hour % 24, minute=minute)
    if hour > 24 or minute > 59:
        return None
    part = groups.get("dp") or groups.get("part") or groups.get("pre") or ""
    part = part or _part_elsewhere(text, match.span())
    return _with_part(match.span(), hour, minute, part, raw_hour)


def _part_elsewhere(text: str, span: tuple[int, int]) -> str:
    rest = text[: span[0]] + " " + text[span[1] :]
    found = re.search(r"\b(?:(?:tomorrow|this|in the|today|day|sunday) (morning|afternoon|evening)|(tonight|at night|tomorrow night))\b"
                      r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day (morning|afternoon|evening|night)\b", rest)  # fmt: skip
    return next((g for g in found.groups() if g), "") if found else ""


def _with_part(span: tuple[int, int], hour: int, minute: int, part: str, raw: str) -> FoundTime:
    if hour > 12 or hour == 0 or (len(raw) == 2 and raw.startswith("0")):
        return FoundTime(span=span, hour=hour % 24, minute=minute)
    if part.endswith("pm") or part.endswith("afternoon") or part.endswith("evening"):
        return FoundTime(span=span, hour=hour if hour == 12 else hour + 12, minute=minute)
    if part.endswith("am") or part.endswith("morning"):
        return FoundTime(span=span, hour=0 if hour == 12 else hour, minute=minute)
    if part.endswith("night"):
        late = hour == 12 or hour < 5
        return FoundTime(span=span, hour=hour % 12 if late else hour + 12, minute=minute, next_day=late)
    if part.endswith("noon"):
        return FoundTime(span=span, hour=12, minute=minute)
    return FoundTime(span=span, hour=hour, minute=minute, is_bare=True)


def find_moments(text: str, now: datetime) -> Iterator[FoundMoment]:
    """Yield moments given as a distance from now: "in ten minutes", "half an hour from now"."""
    for found in find_durations(text, chinese=False):
        before = re.search(r"\b(?:in|after)(?: about| around)? $", text[: found.span[0]])
        after = re.match(r" (?:from now|later|from today)\b", text[found.span[1] :])
        if (before or after) and found.seconds < 400 * 86_400:
            start = before.start() if before else found.span[0]
            end = found.span[1] + (after.end() if after else 0)
            yield FoundMoment(span=(start, end), moment=whole_second(now) + timedelta(seconds=found.seconds))
