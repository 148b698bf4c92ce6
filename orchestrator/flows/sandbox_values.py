"""Attributes, comparisons, arithmetic, filters, tests and functions of the expression language, all within bounds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from jinja2 import Undefined
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.tests import TESTS as JINJA_TESTS

from orchestrator.flows.fuel import (
    MAX_INT_BITS,
    MAX_POWER,
    MAX_RANGE,
    MAX_WEIGHT,
    ArithmeticOnUnset,
    Refused,
    SafeCall,
    SlotView,
    Unset,
    fuel,
    is_unset,
    weigh,
    weighed,
)
from orchestrator.flows.spoken import spoken


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    text, old, new = str(text), str(old), str(new)
    hits = text.count(old) if count < 0 else min(count, text.count(old))
    if len(text) + hits * max(0, len(new) - len(old)) > MAX_WEIGHT:
        raise Refused("a text too long")
    return text.replace(old, new, count)


def _join(value: Any, separator: str = "", attribute: str | None = None) -> str:
    items = [] if is_unset(value) else list(value)
    if attribute is not None:
        items = [item.get(attribute, "") if isinstance(item, Mapping) else "" for item in items]
    texts = [as_text(item) for item in items]
    separator = as_text(separator)
    if sum(map(len, texts)) + len(separator) * len(texts) > MAX_WEIGHT:
        raise Refused("a text too long")
    return separator.join(texts)


def _strftime(moment: Any, form: str) -> str:
    if len(form) > 100 or not re.fullmatch(r"(?:[^%]|%[aAbBdHIjmMpSuUVwWxXyY%])*", form):
        raise Refused("this date format is not allowed")
    return str(moment.strftime(form))


_STR_METHODS = frozenset(
    [
        "upper",
        "lower",
        "title",
        "capitalize",
        "strip",
        "lstrip",
        "rstrip",
        "startswith",
        "endswith",
        "isdigit",
        "isalpha",
        "isalnum",
        "isnumeric",
        "find",
        "count",
        "splitlines",
        "casefold",
    ]
)
_MOMENT_FIELDS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_MOMENT_METHODS = frozenset({"weekday", "isoweekday", "isoformat", "date", "time"})
METHODS = (
    _STR_METHODS | _MOMENT_METHODS | {"replace", "split", "join", "strftime", "get", "keys", "values", "items", "index"}
)
"""Names of all that can be called on a value of any kind."""


def _split(text: str, separator: str | None = None, limit: int = -1) -> list[str]:
    return text.split(separator, limit)


def read_attribute(value: Any, name: str) -> Any:
    """Return a part of a value: an entry of a mapping first, then one of the few allowed attributes and methods."""
    if name.startswith("_"):
        raise Refused(f"the name {name[:40]} is not allowed")
    found: Any = None
    if isinstance(value, Undefined):
        return Unset(name=f"{value._undefined_name}.{name}")
    if isinstance(value, Mapping):
        return _of_mapping(value, name)
    if isinstance(value, str):
        found = _of_text(value, name)
    elif isinstance(value, (datetime, date, time)):
        found = _of_moment(value, name)
    elif type(value).__name__ == "LoopContext" and name in _LOOP_FIELDS:
        return getattr(value, name)
    elif isinstance(value, (list, tuple)) and name in ("count", "index"):
        found = SafeCall(name, lambda item: value.count(item) if name == "count" else _index(value, item))
    return Unset(name=name) if found is None else found


def _of_mapping(value: Mapping[str, Any], name: str) -> Any:
    # of slots only `get` is reserved; elsewhere entries win over it, too
    if isinstance(value, SlotView):
        if name != "get":
            return value[name] if name in value else Unset(name=f"slots.{name}")
    elif name in value:
        return value[name]
    if name == "get":
        return SafeCall("get", lambda key, default=None: value.get(key, default))
    if name in ("keys", "values", "items"):
        return SafeCall(name, lambda: [*getattr(value, name)()])
    return Unset(name=name)


def _of_text(value: str, name: str) -> Any:
    if name in _STR_METHODS:
        return SafeCall(name, getattr(value, name))
    special: dict[str, Callable[..., Any]] = {
        "replace": lambda old, new, count=-1: _replace(value, old, new, count),
        "split": lambda separator=None, limit=-1: _split(value, separator, limit),
        "join": lambda items: _join(items, value),
    }
    return SafeCall(name, special[name]) if name in special else None


def _of_moment(value: datetime | date | time, name: str) -> Any:
    if name in _MOMENT_FIELDS and hasattr(value, name):
        return getattr(value, name)
    if name in _MOMENT_METHODS and hasattr(value, name):
        return SafeCall(name, getattr(value, name))
    return SafeCall(name, lambda form: _strftime(value, form)) if name == "strftime" else None


_LOOP_FIELDS = frozenset(
    ["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "previtem", "nextitem"]
)


def _index(values: list[Any] | tuple[Any, ...], item: Any) -> int:
    return values.index(item) if item in values else -1


def _same_kind(left: Any, right: Any) -> bool:
    numbers = (int, float)
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return True
    if isinstance(left, str) and isinstance(right, str):
        return True
    if isinstance(left, datetime) and isinstance(right, datetime):
        return (left.tzinfo is None) == (right.tzinfo is None)
    return type(left) is type(right) and isinstance(left, (list, tuple, date, time))


_ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "gt": lambda a, b: a > b, "gteq": lambda a, b: a >= b, "lt": lambda a, b: a < b, "lteq": lambda a, b: a <= b,
}  # fmt: skip


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Bring a moment and a text of its kind together: slots hold moments as ISO texts, `now` is one itself."""
    if isinstance(left, str) and isinstance(right, (datetime, date, time)):
        right, left = _aligned(right, left)
    elif isinstance(left, (datetime, date, time)) and isinstance(right, str) and len(right) <= 40:
        for kind in (date, time, datetime):
            try:
                return _as_kind(left, kind, right), kind.fromisoformat(right)
            except ValueError:
                continue
    return left, right


def _as_kind(moment: datetime | date | time, kind: type, text: str) -> Any:
    """Return the moment as precise as the text beside it; ValueError when it has no such part."""
    if not isinstance(moment, datetime):
        if type(moment) is kind:
            return moment
        raise ValueError("another kind of moment")
    if kind is date:
        return moment.date()
    if kind is time:
        return moment.time()
    zone = datetime.fromisoformat(text).tzinfo
    return moment if (zone is None) == (moment.tzinfo is None) else moment.replace(tzinfo=zone)


def compare(left: Any, operator: str, right: Any) -> bool:
    """Compare as authors expect: unset equals none, and ordering never raises."""
    fuel().spend(2)
    left, right = _aligned(left, right)
    if operator in ("eq", "ne"):
        if is_unset(left) or is_unset(right):
            same = is_unset(left) and is_unset(right)
        elif isinstance(left, bool) != isinstance(right, bool):
            same = False
        else:
            fuel().spend(weigh(left))
            same = bool(left == right)
        return same if operator == "eq" else not same
    if operator in ("in", "notin"):
        inside = _contains(right, left)
        return inside if operator == "in" else not inside
    if is_unset(left) or is_unset(right):
        fuel().trace("ordering with an unset value is false")
        return False
    if not _same_kind(left, right):
        fuel().trace(f"ordering between {type(left).__name__} and {type(right).__name__} is false")
        return False
    try:
        return bool(_ORDERINGS[operator](left, right))
    except TypeError:
        fuel().trace("ordering between values of different types is false")
        return False


def _contains(container: Any, item: Any) -> bool:
    if is_unset(container):
        return False
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    if isinstance(container, (Mapping, list, tuple, set, frozenset, range)):
        fuel().spend(weigh(container))
        try:
            return any(is_unset(x) for x in container) if is_unset(item) else item in container
        except TypeError:
            return False
    fuel().trace(f"'in' with {type(container).__name__} is false")
    return False


def is_number(value: Any) -> bool:
    """Whether arithmetic takes the value."""
    return isinstance(value, (int, float))


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    """Do a binary operation within bounds; arithmetic with unset raises `ArithmeticOnUnset`, all else `Refused`."""
    if is_unset(left) or is_unset(right):
        name = left if isinstance(left, Undefined) else right
        fuel().note_unset(str(getattr(name, "_undefined_name", None) or "none"))
        raise ArithmeticOnUnset("arithmetic with an unset value")
    if operator == "+" and (
        (isinstance(left, str) and isinstance(right, str)) or (isinstance(left, list) and isinstance(right, list))
    ):
        joined: Any = left + right  # type: ignore[operator]
        return weighed(joined)
    if operator == "*" and isinstance(left, int) and isinstance(right, (str, list, tuple)):
        left, right = right, left
    if operator == "*" and isinstance(left, (str, list, tuple)) and isinstance(right, int):
        if right > 0 and weigh(left) * right > MAX_WEIGHT:
            raise Refused("a repeat too large")
        return weighed(left * right)
    if isinstance(left, (datetime, date)) and operator == "-" and type(left) is type(right):
        return (left - right).total_seconds()
    if not (is_number(left) and is_number(right)):
        raise Refused(f"'{operator}' between {type(left).__name__} and {type(right).__name__} has no meaning")
    if operator == "**":
        if abs(right) > MAX_POWER or (isinstance(left, int) and left.bit_length() * abs(right) > MAX_INT_BITS):
            raise Refused("a power too large")
        result = left**right
        if isinstance(result, complex):
            raise Refused("a root of a negative number")
    else:
        result = _OPERATORS[operator](left, right)
    if isinstance(result, float) and math.isinf(result):
        raise Refused("a number too large")
    return weighed(result)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b,
}  # fmt: skip


def as_text(value: Any) -> str:
    """Return what a value looks like inside a text; unset is empty, and a bounded size is checked first."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, Undefined):
        return str(value)
    if isinstance(value, (Mapping, SlotView)):
        value = dict(value)
    fuel().spend(weigh(value))
    return str(value)


def concat(*parts: Any) -> str:
    """Join values as text (`~`)."""
    return str(weighed("".join(as_text(part) for part in parts)))


def loop(value: Any) -> list[Any]:
    """Return what a loop goes over, its rounds paid."""
    if is_unset(value):
        return []
    if isinstance(value, (Mapping, str, list, tuple, set, frozenset, range)):
        items = list(value)
    elif isinstance(value, Iterator):
        items = list(weighed(value))
    else:
        raise Refused(f"can't loop over {type(value).__name__}")
    tank = fuel()
    tank.rounds -= len(items)
    if tank.rounds < 0:
        raise Refused("too many rounds in loops")
    return items


def _range(*args: Any) -> list[int]:
    if not 1 <= len(args) <= 3 or any(isinstance(a, bool) or not isinstance(a, int) for a in args):
        raise Refused("range() takes one to three whole numbers")
    found = range(*args)
    if len(found) > MAX_RANGE:
        raise Refused("a range too large")
    return list(found)


def _len(value: Any) -> int:
    if is_unset(value):
        return 0
    if isinstance(value, (str, Mapping, list, tuple, set, frozenset, range)):
        return len(value)
    fuel().trace(f"len() of {type(value).__name__} is 0")
    return 0


def _default(value: Any, fallback: Any = "", falsy: bool = False) -> Any:
    return fallback if is_unset(value) or (falsy and not value) else value


def _sum(value: Any, attribute: Any = None, start: Any = 0) -> Any:
    items = [] if is_unset(value) else list(value)
    if attribute is not None:
        items = [item.get(attribute) if isinstance(item, Mapping) else None for item in items]
    numbers = [item for item in items if is_number(item)]
    return sum(numbers, start if is_number(start) else 0)


def _to_json(value: Any) -> str:
    return json.dumps(_jsonable(value), ensure_ascii=False)


def _jsonable(value: Any) -> Any:
    weigh(value)
    if is_unset(value):
        return None
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(v) for v in value]
    if isinstance(value, (str, int, float, bool)):
        return value
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _spoken(value: Any, kind: str | None = None) -> str:
    tank = fuel()
    if is_unset(value):
        tank.note_unset("none")
    return spoken(None if is_unset(value) else value, kind, language=tank.language, now=tank.now)


def _int(value: Any, default: int = 0) -> int:
    try:
        return int(float(value)) if isinstance(value, str) and "." in value[:400] else int(value)
    except (ValueError, TypeError, OverflowError):
        return default


def _round(value: Any, digits: int = 0, method: str = "common") -> Any:
    if not is_number(value) or isinstance(digits, bool) or not isinstance(digits, int) or abs(digits) > 15:
        raise Refused("round() takes a number and up to 15 digits")
    if method == "common":
        return round(value, digits)
    if method not in ("ceil", "floor"):
        raise Refused("round() knows common, ceil and floor")
    factor = 10**digits
    return (math.ceil if method == "ceil" else math.floor)(value * factor) / factor


_PLAIN_FILTERS = [
    "abs",
    "capitalize",
    "first",
    "last",
    "float",
    "list",
    "lower",
    "upper",
    "max",
    "min",
    "reverse",
    "sort",
    "title",
    "trim",
    "truncate",
    "unique",
    "wordcount",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
    "map",
    "items",
    "dictsort",
]
FILTERS: dict[str, Callable[..., Any]] = {name: JINJA_FILTERS[name] for name in _PLAIN_FILTERS}
FILTERS.update(
    {
        "default": _default, "d": _default, "join": _join, "replace": _replace, "string": as_text, "sum": _sum,
        "tojson": _to_json, "int": _int, "length": _len, "count": _len, "round": _round, "spoken": _spoken,
    }
)  # fmt: skip

_TEST_NAMES = [
    "even",
    "odd",
    "divisibleby",
    "number",
    "integer",
    "float",
    "boolean",
    "string",
    "mapping",
    "sequence",
    "iterable",
    "lower",
    "upper",
]
TESTS: dict[str, Any] = {name: JINJA_TESTS[name] for name in _TEST_NAMES}
TESTS.update(
    {
        "none": is_unset, "None": is_unset, "undefined": is_unset, "defined": lambda v: not is_unset(v),
        "true": lambda v: v is True, "True": lambda v: v is True,
        "false": lambda v: v is False, "False": lambda v: v is False,
        "in": lambda v, c: compare(v, "in", c),
        **{name: (lambda v, o, op=op: compare(v, op, o)) for op, names in {
            "eq": ("eq", "equalto", "=="), "ne": ("ne", "!="), "lt": ("lt", "lessthan", "<"), "lteq": ("le", "<="),
            "gt": ("gt", "greaterthan", ">"), "gteq": ("ge", ">="),
        }.items() for name in names},
    }
)  # fmt: skip

FUNCTIONS: dict[str, SafeCall] = {"len": SafeCall("len", _len), "range": SafeCall("range", _range)}
