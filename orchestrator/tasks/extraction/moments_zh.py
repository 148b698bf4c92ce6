"""Chinese dates and times in text whose numerals are digits already."""

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

_DAYS = {
    "一": 0,
    "二": 1,
    "三": 2,
    "四": 3,
    "五": 4,
    "六": 5,
    "日": 6,
    "天": 6,
    "末": 5,
    **{str(i): i - 1 for i in range(1, 8)},
}
_WEEK = r"(?:周|星期|礼拜)"
_WD = r"(?P<wd>[一二三四五六日天1-7])(?!天|个|次|点|分)"


def _day(match: re.Match[str]) -> int:
    return _DAYS[match["wd"]]


def _ymd(match: re.Match[str], today: date) -> date | None:
    groups = match.groupdict()
    year = groups.get("y")
    number = int(year) if year else None
    if groups.get("rel"):
        number = today.year + {"今年": 0, "明年": 1, "后年": 2}[groups["rel"]]
    if number is not None and number < 100:
        number += 2000
    return month_day(today, int(match["m"]), int(match["d"]), number)


_RULES: list[tuple[str, Callable[[re.Match[str], date], date | None]]] = [
    (r"(?:(?P<y>\d{2,4})年|(?P<rel>今年|明年|后年)的?)?(?P<m>\d{1,2})月(?:份的?)?(?P<d>\d{1,2})[日号]?(?!\d)", _ymd),
    (r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})", _ymd),
    (r"大后天", lambda m, t: t + timedelta(days=3)),
    (r"后天", lambda m, t: t + timedelta(days=2)),
    (r"明天|明儿个?|明日|明(?=[早晚])", lambda m, t: t + timedelta(days=1)),
    (r"今天|今儿个?|今日|今(?=[早晚夜])|当天", lambda m, t: t),
    (r"昨天|昨日|昨晚", lambda m, t: t - timedelta(days=1)),
    (r"大前天", lambda m, t: t - timedelta(days=3)),
    (r"前天", lambda m, t: t - timedelta(days=2)),
    (rf"(?P<n>下+)个?{_WEEK}{_WD}", lambda m, t: weekday_in_week(t, _day(m), len(m["n"]))),
    (rf"(?:这个?|本){_WEEK}{_WD}", lambda m, t: weekday_in_week(t, _day(m), 0)),
    (rf"上个?{_WEEK}{_WD}", lambda m, t: weekday_in_week(t, _day(m), -1)),
    (r"(?P<n>下+)个?周末", lambda m, t: weekday_in_week(t, 5, len(m["n"]))),
    (r"(?:这个?|本)?周末", lambda m, t: weekday_in_week(t, 5, 0) if t.weekday() <= 5 else weekday_after(t, 5)),
    (rf"{_WEEK}{_WD}", lambda m, t: weekday_after(t, _day(m))),
    (r"下个?月(?:的)?(?P<d>\d{1,2})[日号]?", lambda m, t: in_month(t, 1, int(m["d"]))),
    (r"(?:这个?|本)月(?:的)?(?P<d>\d{1,2})[日号]?", lambda m, t: in_month(t, 0, int(m["d"]))),
    (r"下个?月底", lambda m, t: month_end(t, 1)),
    (r"(?:这个?|本)?月底", lambda m, t: month_end(t)),
    (r"(?P<n>\d+)天(?:之|以)?后|过(?P<k>\d+)天(?!半)", lambda m, t: _ahead(t, int(m["n"] or m["k"]))),
    (r"(?P<n>\d+)个?(?:星期|周|礼拜)(?:之|以)?后|过(?P<k>\d+)个?(?:星期|周|礼拜)", lambda m, t: _ahead(t, 7 * int(m["n"] or m["k"]))),
    (r"(?P<n>\d+)个月(?:之|以)?后",
     lambda m, t: in_month(t, int(m["n"]), min(t.day, month_end(t, int(m["n"])).day)) if int(m["n"]) < 600 else None),
    (rf"下个?{_WEEK}(?![一二三四五六日天末])", lambda m, t: t + timedelta(days=7)),
    (r"(?P<n>\d+)天(?:之|以)?前", lambda m, t: _ahead(t, -int(m["n"]))),
    (r"(?P<n>\d+)个?(?:星期|周|礼拜)(?:之|以)?前", lambda m, t: _ahead(t, -7 * int(m["n"]))),
    (r"愚人节", lambda m, t: month_day(t, 4, 1)),
    (r"妇女节|三八节", lambda m, t: month_day(t, 3, 8)),
    (r"教师节", lambda m, t: month_day(t, 9, 10)),
    (r"(?P<m>\d{1,2})月(?:份的?)?(?:底|末|的?最后1天)", lambda m, t: _month_end(t, int(m["m"]))),
    (r"(?:这个?|本)月(?:的)?最后1天", lambda m, t: month_end(t)),
    (r"下个?月(?:的)?最后1天", lambda m, t: month_end(t, 1)),
    (r"元旦|新年第一天", lambda m, t: month_day(t, 1, 1)),
    (r"劳动节|五一(?!\d)", lambda m, t: month_day(t, 5, 1)),
    (r"国庆节?", lambda m, t: month_day(t, 10, 1)),
    (r"儿童节", lambda m, t: month_day(t, 6, 1)),
    (r"平安夜", lambda m, t: month_day(t, 12, 24)),
    (r"圣诞节?", lambda m, t: month_day(t, 12, 25)),
    (r"情人节", lambda m, t: month_day(t, 2, 14)),
    (r"除夕夜?跨年|跨年夜", lambda m, t: month_day(t, 12, 31)),
    (r"(?<![\d/.])(?P<m>\d{1,2})[/](?P<d>\d{1,2})(?![\d/])", _ymd),
    (r"(?<!第)(?<!\d)(?P<d>\d{1,2})[号日](?!线|楼|门|店|公)", lambda m, t: day_of_month(t, int(m["d"]))),
]  # fmt: skip
_COMPILED = [(re.compile(pattern), handler) for pattern, handler in _RULES]


def _month_end(today: date, month: int) -> date | None:
    return month_end(today, (month - today.month) % 12) if 1 <= month <= 12 else None


def _ahead(today: date, days: int) -> date | None:
    return today + timedelta(days=days) if abs(days) < 5000 else None


def find_dates(text: str, today: date) -> Iterator[FoundDate]:
    """Yield the days named, the most specific reading first."""
    taken: list[tuple[int, int]] = []
    for pattern, handler in _COMPILED:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            day = handler(match, today)
            # "February 30" is no day, and no shorter reading of it either
            taken.append(match.span())
            if day is not None:
                yield FoundDate(span=match.span(), day=day)


_PART = r"(?P<part>凌晨|清晨|清早|大清早|早晨|早上|一早|早|上午|中午|正午|午后|下午|傍晚|晚上|夜里|夜晚|深夜|半夜|今晚|明晚|晚|AM|PM|am|pm)?的?(?:大概|大约)?"
_TIME_RULES = [
    re.compile(_PART + r"差(?P<less>1刻钟?|\d{1,2}分?)(?:钟)?(?:到)?(?P<h>\d{1,2})点(?:钟|整)?"),
    re.compile(_PART + r"(?P<h>\d{1,2})点(?:钟)?差(?P<less>1刻钟?|\d{1,2}分?)"),
    re.compile(_PART + r"(?P<h>\d{1,2})[点时](?:钟|整)?过?(?:(?P<half>半)|(?P<quarter>[13])刻|零?(?P<m>\d{1,2})分?(?!钟|个|天|号))?"),
    re.compile(_PART + r"(?P<h>\d{1,2})[:：.](?P<m>[0-5]\d)(?::\d\d)?(?!\d)(?:\s?(?P<post>am|pm|AM|PM))?"),
    re.compile(r"(?P<word>中午|正午|午夜|半夜|零点|0点)"),
    re.compile(r"^(?P<h>\d{1,2})$"),
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
        noon = word in ("中午", "正午")
        return FoundTime(span=match.span(), hour=12 if noon else 0, next_day=not noon)
    hour = int(groups["h"])
    minute = 30 if groups.get("half") else int(groups.get("m") or 0)
    if groups.get("quarter"):
        minute = int(groups["quarter"]) * 15
    if hour > 24 or minute > 59:
        return None
    part = groups.get("part") or groups.get("post") or ""
    if not part:
        around = re.search(r"凌晨|早上|早晨|清晨|上午|中午|下午|傍晚|晚上|夜里|今晚|明晚|明早|今早", text)
        part = around[0] if around else ""
    bare = hour <= 12 and not (len(groups["h"]) == 2 and groups["h"].startswith("0")) and hour > 0
    hour, is_bare, next_day = _with_part(hour, part.lower(), bare)
    if groups.get("less"):
        less = 15 if "刻" in groups["less"] else int(re.sub(r"\D", "", groups["less"]))
        total = (hour * 60 - less) % 1440
        if is_bare and hour == 1:
            total = 13 * 60 - less
        hour, minute = divmod(total, 60)
    return FoundTime(span=match.span(), hour=hour, minute=minute, is_bare=is_bare, next_day=next_day)


def _with_part(hour: int, part: str, bare: bool) -> tuple[int, bool, bool]:
    if hour == 24:
        return 0, False, True
    if not part or hour > 12:
        return hour, bare, False
    if part in ("凌晨", "清晨", "清早", "大清早", "早晨", "早上", "一早", "早", "上午", "am", "明早", "今早"):
        return (0 if hour == 12 and part in ("凌晨", "am") else hour), False, False
    if part in ("中午", "正午"):
        return (hour + 12 if hour < 10 else hour), False, False
    if part in ("半夜", "深夜", "夜里") and (hour == 12 or hour < 6):
        return hour % 12, False, hour == 12
    if part in ("晚上", "今晚", "明晚", "晚", "夜晚", "夜里", "深夜", "半夜") and hour == 12:
        return 0, False, True
    if part in ("晚上", "今晚", "明晚", "晚", "夜晚") and hour < 4:
        return hour, False, True
    return (hour if hour == 12 or hour == 0 else hour + 12), False, False


def find_moments(text: str, now: datetime) -> Iterator[FoundMoment]:
    """Yield moments given as a distance from now: 「十分钟后」, 「过半小时」."""
    for found in find_durations(text, chinese=True):
        after = re.match(r"(?:钟)?(?:之|以)?[后後]", text[found.span[1] :])
        before = re.search(r"(?:再过|过|再等|等)$", text[: found.span[0]])
        if (after or before) and found.seconds < 400 * 86_400:
            start = before.start() if before else found.span[0]
            end = found.span[1] + (after.end() if after else 0)
            yield FoundMoment(span=(start, end), moment=whole_second(now) + timedelta(seconds=found.seconds))
