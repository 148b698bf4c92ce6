"""Values of corrections: what is said anew changes the old value, what is not said of it stays.

"No, at ten" about tomorrow at nine is tomorrow at ten; "tomorrow" about today at nine is tomorrow at nine; "ten" about
five minutes is ten minutes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction import moments_en, moments_zh
from orchestrator.tasks.extraction.extract import Extraction, extract
from orchestrator.tasks.extraction.find_when import days_of, times_of
from orchestrator.tasks.extraction.moments import FIRST_HOUR, FoundTime, resolve_time
from orchestrator.tasks.extraction.normal import normal_form, with_digits
from orchestrator.tasks.extraction.words import CJK

_SHIFT = re.compile(
    r"(?P<en>.+?) (?P<way>later|earlier|sooner)"
    r"|(?:推迟|延后|延迟|往后推|往后|晚)(?P<zh_later>\S+)|(?:提前|往前提|往前|早)(?P<zh_earlier>\S+)",
    re.IGNORECASE,
)
_PART = re.compile(
    r"\b(?:(?:in|during) the )?(?:(?P<am>morning)|(?P<pm>afternoon|evening))\b$"
    r"|(?:(?:早上|早晨|清晨|上午)|(?P<pm_zh>下午|傍晚|晚上))$",
    re.IGNORECASE,
)
_PART_OF_DAY = re.compile(
    r"\s*\b(?:(?:in|during|at) )?(?:the )?(?:(?P<am>morning)|(?P<pm>afternoon|evening|night))$"
    r"|的?(?:(?P<am_zh>早上|早晨|清晨|上午|早)|(?P<pm_zh>下午|傍晚|晚上|夜里|晚))$",
    re.IGNORECASE,
)
_NIGHTS = re.compile(r"\btonight\b|\bthis (?:morning|afternoon|evening)\b|今晚|明晚|今早|明早|后晚", re.IGNORECASE)
_NIGHTS_AS = {
    "tonight": "today in the evening", "this morning": "today in the morning",
    "this afternoon": "today in the afternoon", "this evening": "today in the evening",
    "今晚": "今天晚上", "明晚": "明天晚上", "今早": "今天早上", "明早": "明天早上", "后晚": "后天晚上",
}  # fmt: skip
NEAR_HOURS = 2
# From here on "in the morning" and "in the evening" are tomorrow's.
_NOON, _EVENING = 12, 22
_UNITS_S = (86_400, 3_600, 60, 1)


def amended(slot: Slot, text: str, old: Any, *, now: datetime) -> Any:
    """Return what `text`, which is nothing but a value, makes of the old one; None where it is no such value."""
    if old is None:
        return None
    if slot.type == "datetime":
        return _moment(slot, text, str(old), now)
    if slot.type == "duration" and isinstance(old, (int, float)):
        return _length(slot, text, old, now)
    return None


def day_said(slot: Slot, text: str, *, now: datetime) -> str | None:
    """Return the day that is all a text says of a moment: ISO, with " am" or " pm" where a part of it is named."""
    text = _NIGHTS.sub(lambda m: _NIGHTS_AS[m[0].casefold()], text.strip(" ,，.。!！"))
    part = _PART_OF_DAY.search(text)
    rest = text[: part.start()].strip(" ,，") if part is not None else text
    half = "" if part is None else " am" if part["am"] or part["am_zh"] else " pm"
    if half and not rest:
        is_over = now.hour >= (_NOON if half == " am" else _EVENING)
        return (now.date() + timedelta(days=int(is_over))).isoformat() + half
    found = extract(replace(slot, type="date"), rest, now=now)
    if found is None or not found.is_strict or found.rest:
        return None
    return str(found.value) + half


def moment_answer(slot: Slot, text: str, day: str | None, *, now: datetime) -> Extraction | None:
    """Return what answers the question for a moment: a moment, a time on the `day` said before, or a day alone."""
    moment = on_day(slot, text, day, now=now) if day is not None else None
    if moment is not None:
        return Extraction(value=moment, is_strict=True)
    found = extract(slot, text, now=now)
    if found is not None:
        return found
    said = day_said(slot, text, now=now)
    if said is not None:
        return Extraction(value=said, is_strict=True)
    return extract(replace(slot, type="date"), text, now=now)


def on_day(slot: Slot, text: str, day: str, *, now: datetime) -> str | None:
    """Return the moment on a day as of `day_said`, where `text` is a time and names no other day."""
    chinese = bool(CJK.search(text))
    module = moments_zh if chinese else moments_en
    normal = normal_form(text)
    if any(True for _ in module.find_moments(normal, now)):
        return None
    days = days_of(module, normal, now)
    times = times_of(module, normal, days)
    if days or len(times) != 1 or not _is_all(slot, "time", text, now):
        return None
    day, _, half = day.partition(" ")
    found = times[0]
    if half and found.is_bare:
        found = replace(found, hour=found.hour % 12 + (12 if half == "pm" else 0), is_bare=False)
    return _text(resolve_time(found, now, date.fromisoformat(day)))


def _is_all(slot: Slot, kind: str, text: str, now: datetime) -> bool:
    found = extract(replace(slot, type=kind), text, now=now)
    return found is not None and found.is_strict and not found.rest


def _moment(slot: Slot, text: str, old: str, now: datetime) -> str | None:
    try:
        before = datetime.fromisoformat(old).replace(tzinfo=None)
    except ValueError:
        return None
    chinese = bool(CJK.search(text))
    normal = normal_form(text)
    module = moments_zh if chinese else moments_en
    shift = _SHIFT.match(text.strip(" .。!！"))
    if shift is not None:
        return _shifted(slot, shift, before, now)
    if any(True for _ in module.find_moments(normal, now)):
        return None
    part = _PART.search(text)
    if part is not None:
        return _in_part(slot, text, part, before, now)
    days = days_of(module, normal, now)
    times = times_of(module, normal, days)
    if len(times) == 1 and not days and _is_all(slot, "time", text, now):
        return _text(_at(times[0], before, now))
    if len(days) == 1 and not times and _is_all(slot, "date", text, now):
        return _text(datetime.combine(days[0].day, before.time().replace(second=0)))
    if not days and not times and _is_all(slot, "duration", text, now):
        found = extract(slot, f"{text}后" if chinese else f"in {text}", now=now)
        return str(found.value) if found is not None else None
    return None


def _shifted(slot: Slot, shift: re.Match[str], before: datetime, now: datetime) -> str | None:
    """Return the moment so much later or earlier."""
    length = next(g for g in (shift["en"], shift["zh_later"], shift["zh_earlier"]) if g)
    found = extract(replace(slot, type="duration"), length, now=now)
    if found is None or not found.is_strict or found.rest:
        return None
    is_later = shift["zh_later"] is not None or (shift["way"] or "").casefold() == "later"
    return _text(before + timedelta(seconds=found.value if is_later else -found.value))


def _in_part(slot: Slot, text: str, part: re.Match[str], before: datetime, now: datetime) -> str | None:
    """Return the moment in the part of the day that is named without a time: "Saturday morning", "in the evening"."""
    rest = (text[: part.start()] + " " + text[part.end() :]).strip(" ,，.。!！")
    hour = before.hour % 12 + (12 if part["pm"] or part["pm_zh"] else 0)
    if rest:
        chinese = bool(CJK.search(rest))
        normal = normal_form(rest)
        days = days_of(moments_zh if chinese else moments_en, normal, now)
        if len(days) != 1 or not _is_all(slot, "date", rest, now):
            return None
        return _text(datetime.combine(days[0].day, time(hour, before.minute)))
    moment = datetime.combine(before.date(), time(hour, before.minute))
    return _text(moment if moment > now.replace(tzinfo=None) else moment + timedelta(days=1))


def _at(found: FoundTime, before: datetime, now: datetime) -> datetime:
    """Return a clock time on the day it was to be, in the same half of the day where it may be either."""
    local, day = now.replace(tzinfo=None), before.date()
    if not found.is_bare:
        moment = resolve_time(found, now, day)
        return moment if moment > local or day > local.date() else resolve_time(found, now, None)
    same = found.hour % 12 + (12 if before.hour >= 12 else 0)
    other = (same + 12) % 24
    # early, but near what it was: half past six instead of seven in the morning
    is_near = abs(same - before.hour) <= NEAR_HOURS
    hours = (same, other) if same >= FIRST_HOUR or is_near else (other, same)
    moments = [datetime.combine(day, time(hour, found.minute)) for hour in hours]
    return next((m for m in moments if m > local), None) or resolve_time(found, now, None)


def _length(slot: Slot, text: str, old: float, now: datetime) -> int | None:
    """Return a number without a unit in the unit of the old length."""
    found = extract(Slot(id=slot.id, type="integer", label=slot.label), text, now=now)
    if found is None or found.value <= 0 or not _is_number(text):
        return None
    unit = next((u for u in _UNITS_S if old % u == 0), 1)
    return int(found.value) * unit


def _is_number(text: str) -> bool:
    bare = with_digits(text)
    return bare.strip(" .。!！").isdigit()


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")
