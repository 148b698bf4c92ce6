"""What a slot of a type may hold, and the lossless coercions into it.

Values are JSON: date `2026-12-09`, time `15:30`, datetime `2026-12-09T15:30` (with seconds where they matter,
`2026-12-09T15:30:20`), duration in seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, time
from typing import Any

from orchestrator.flows.model import Slot
from orchestrator.flows.patterns import PatternTooSlow, full_match
from orchestrator.flows.spoken import Seconds

MAX_TEXT_CHARS = 4_000


def shown(slot: Slot | None, value: Any) -> Any:
    """Return a slot's value as conditions and texts see it: a duration remembers that it is one."""
    is_length = slot is not None and slot.type == "duration" and type(value) in (int, float)
    return Seconds(value) if is_length and value == int(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Coerced:
    """The value as the slot holds it, or why it can't; `note` says what a coercion did."""

    ok: bool
    value: Any = None
    reason: str | None = None
    note: str | None = None


TRUE_WORDS = frozenset(
    [
        "true",
        "yes",
        "y",
        "on",
        "ok",
        "okay",
        "yeah",
        "yep",
        "sure",
        "是",
        "是的",
        "对",
        "对的",
        "好",
        "好的",
        "嗯",
        "行",
        "可以",
        "有",
        "真",
    ]
)
FALSE_WORDS = frozenset(
    [
        "false",
        "no",
        "n",
        "off",
        "nope",
        "nah",
        "否",
        "不",
        "不是",
        "不对",
        "不要",
        "不行",
        "没有",
        "不用",
        "假",
        "不可以",
    ]
)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return value if isinstance(value, str) and len(value) <= MAX_TEXT_CHARS else None


def _integer(value: Any) -> Any:
    number = _number(value)
    if number is None or number != int(number):
        return None
    return int(number)


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) and abs(value) < 1e18 else None
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d{1,18}(\.\d{1,15})?\s*", value):
        return float(value) if "." in value else int(value)
    return None


def _boolean(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().casefold()
        return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None
    return None


def _date(value: Any) -> Any:
    if not isinstance(value, str):
        return None
    match = re.fullmatch(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*", value)
    try:
        return date(*map(int, match.groups())).isoformat() if match else None
    except ValueError:
        return None


def _time(value: Any) -> Any:
    if not isinstance(value, str):
        return None
    match = re.fullmatch(r"\s*(\d{1,2}):(\d{2})(?::(\d{2}))?\s*", value)
    try:
        return time(int(match[1]), int(match[2])).strftime("%H:%M") if match else None
    except ValueError:
        return None


def _datetime(value: Any) -> Any:
    if not isinstance(value, str):
        return None
    match = re.fullmatch(
        r"\s*(\d{4}-\d{1,2}-\d{1,2})[T ]+(\d{1,2}:\d{2})(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?\s*", value
    )
    day, clock = (_date(match[1]), _time(match[2])) if match else (None, None)
    if match is None or not day or not clock:
        return None
    seconds = match[3][:3] if match[3] is not None else ":00"
    return f"{day}T{clock}" + (seconds if ":00" < seconds < ":60" else "")


_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def _duration(value: Any) -> Any:
    number = _number(value)
    if number is not None:
        return number if number >= 0 else None
    if isinstance(value, str) and len(value) > 2:
        match = _ISO_DURATION.fullmatch(value.strip())
        if match and any(match.groups()):
            days, hours, minutes, seconds = (float(g) if g else 0.0 for g in match.groups())
            total = days * 86_400 + hours * 3_600 + minutes * 60 + seconds
            return int(total) if total == int(total) else total
    return None


def _any(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, list, dict)) else None


_COERCERS: Mapping[str, Callable[[Any], Any]] = {
    "text": _text, "integer": _integer, "number": _number, "boolean": _boolean, "date": _date, "time": _time,
    "datetime": _datetime, "duration": _duration, "any": _any,
}  # fmt: skip


def _choice(slot: Slot, value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return None
    for choice in slot.choices:
        if value == choice.value and isinstance(value, bool) == isinstance(choice.value, bool):
            return choice.value
    word = str(value).strip().casefold()
    for choice in slot.choices:
        if word in (str(choice.value).casefold(), *(n.casefold() for n in choice.names)):
            return choice.value
    return None


def coerce(slot: Slot, value: Any) -> Coerced:
    """Return the value as the slot holds it; only coercions that lose nothing are made."""
    if value is None:
        return Coerced(ok=False, reason="null is no value")
    result = _choice(slot, value) if slot.type == "choice" else _COERCERS[slot.type](value)
    if result is None:
        wanted = f"one of {', '.join(str(c.value) for c in slot.choices)}" if slot.type == "choice" else slot.type
        return Coerced(ok=False, reason=f"{_shown(value)} is not {wanted}")
    if slot.pattern is not None and isinstance(result, str):
        try:
            if not full_match(slot.pattern, result):
                return Coerced(ok=False, reason=f"{_shown(value)} does not match the pattern {slot.pattern}")
        except PatternTooSlow:
            return Coerced(ok=False, reason=f"matching {slot.pattern} took too long")
    changed = type(result) is not type(value) or result != value
    return Coerced(ok=True, value=result, note=f"{_shown(value)} → {_shown(result)}" if changed else None)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
