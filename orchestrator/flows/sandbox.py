"""The Jinja2 sandbox in which conditions and templates run: unset equals none, everything is weighed, nothing is trusted.

Values are weighed when they come into being, so that no later step can be dearer than the bounds allow; rounds of loops
and the weight of all results are paid from one `Fuel` per evaluation.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import date, datetime, time
from typing import Any, ClassVar

from jinja2 import Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.lexer import TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS as JINJA_TESTS

from orchestrator.flows.spoken import spoken

MAX_OUTPUT_CHARS = 20_000
MAX_WEIGHT = 20_000
MAX_FUEL = 400_000
MAX_LOOP_ROUNDS = 2_000
MAX_RANGE = 1_000
MAX_INT_BITS = 256
MAX_POWER = 64


class Refused(SecurityError):
    """An evaluation went beyond what an author's text may do."""


class ArithmeticOnUnset(Exception):  # noqa: N818 - names a condition of the author's text
    """Arithmetic met a value that is not set."""


class Fuel:
    """What one evaluation may still spend, and what it has to report."""

    __slots__ = ("language", "left", "now", "rounds", "traces", "unset")

    def __init__(self) -> None:
        """Start with a full tank."""
        self.left = MAX_FUEL
        self.rounds = MAX_LOOP_ROUNDS
        self.traces: list[str] = []
        self.unset: list[str] = []
        self.language: str | None = None
        self.now: datetime | None = None

    def spend(self, amount: int) -> None:
        """Pay for work; raises `Refused` when the tank is empty."""
        self.left -= amount
        if self.left < 0:
            raise Refused("too much work")

    def trace(self, text: str) -> None:
        """Note something the author should see."""
        if len(self.traces) < 50 and text not in self.traces:
            self.traces.append(text)

    def note_unset(self, name: str) -> None:
        """Note that `name` was read or printed while unset."""
        if len(self.unset) < 50 and name not in self.unset:
            self.unset.append(name)


FUEL: ContextVar[Fuel] = ContextVar("fuel")


def fuel() -> Fuel:
    """Return the fuel of the running evaluation."""
    try:
        return FUEL.get()
    except LookupError:
        tank = Fuel()
        FUEL.set(tank)
        return tank


class Unset(Undefined):
    """A name without a value: equals none, is false and empty, and any part of it is unset, too."""

    def _name(self) -> str:
        return str(self._undefined_name or "value")

    def __str__(self) -> str:
        """Return nothing, and note that something was missing."""
        fuel().note_unset(self._name())
        return ""

    def __eq__(self, other: object) -> bool:
        """Equal none and anything unset."""
        return other is None or isinstance(other, Undefined)

    def __ne__(self, other: object) -> bool:
        """Differ from every value."""
        return not self == other

    def __hash__(self) -> int:
        """Hash like none."""
        return hash(None)

    def __bool__(self) -> bool:
        """Be false."""
        return False

    def __len__(self) -> int:
        """Be empty."""
        return 0

    def __iter__(self) -> Iterator[Any]:
        """Be empty."""
        return iter(())

    def __contains__(self, _item: object) -> bool:
        """Contain nothing."""
        return False

    def __getitem__(self, _key: Any) -> Unset:
        """Return another unset value."""
        return self

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Refuse: there is nothing to call."""
        raise Refused(f"{self._name()} can't be called")


def is_unset(value: Any) -> bool:
    """Whether a value is none or unset."""
    return value is None or isinstance(value, Undefined)


def weigh(value: Any, limit: int = MAX_WEIGHT) -> int:
    """Return how much a value weighs (characters, elements, counted in full); raises `Refused` past `limit`."""
    total = 0
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (str, bytes)):
            total += 1 + len(item)
        elif isinstance(item, bool):
            total += 1
        elif isinstance(item, int):
            if item.bit_length() > MAX_INT_BITS:
                raise Refused("a number too large")
            total += 1
        elif isinstance(item, Mapping):
            total += 1 + len(item)
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            total += 1 + len(item)
            if total <= limit:
                stack.extend(item)
        else:
            total += 1
        if total > limit:
            raise Refused("a value too large")
    return total


def weighed(value: Any) -> Any:
    """Return the value after paying for its weight."""
    if isinstance(value, Iterator):
        taken: list[Any] = []
        for item in value:
            taken.append(item)
            if len(taken) > MAX_WEIGHT:
                raise Refused("a value too large")
        value = taken
    fuel().spend(weigh(value))
    return value


class SafeCall:
    """A method or function an author may call."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        """Keep the function under its name."""
        self.name = name
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call and weigh the result."""
        for arg in (*args, *kwargs.values()):
            fuel().spend(weigh(arg))
        return weighed(self.function(*args, **kwargs))

    def __str__(self) -> str:
        """Return nothing: a method is no text."""
        fuel().trace(f"{self.name} is not called")
        return ""


class SlotView(Mapping[str, Any]):
    """The `slots` of expressions: slot names win over every method name, only `.get` is reserved."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Show `values`; a value of None counts as unset."""
        self._values = values

    def __getitem__(self, key: str) -> Any:
        """Return the value of a slot."""
        value = self._values[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        """Iterate over the slots that are set."""
        return (k for k, v in self._values.items() if v is not None)

    def __len__(self) -> int:
        """Return how many are set."""
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        """Whether the slot is set."""
        return isinstance(key, str) and self._values.get(key) is not None


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


def _split(text: str, separator: str | None = None, limit: int = -1) -> list[str]:
    return text.split(separator, limit)


def read_attribute(value: Any, name: str) -> Any:
    """Return a part of a value: an entry of a mapping first, then one of the few allowed attributes and methods."""
    if name.startswith("_"):
        raise Refused(f"the name {name[:40]} is not allowed")
    if isinstance(value, SlotView):
        if name == "get":
            return SafeCall("get", lambda key, default=None: value.get(key, default))
        return value[name] if name in value else Unset(name=f"slots.{name}")
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        if name == "get":
            return SafeCall("get", lambda key, default=None: value.get(key, default))
        if name in ("keys", "values", "items"):
            return SafeCall(name, lambda: [*getattr(value, name)()])
        return Unset(name=name)
    if isinstance(value, Undefined):
        return Unset(name=f"{value._undefined_name}.{name}")
    if isinstance(value, str):
        if name in _STR_METHODS:
            return SafeCall(name, getattr(value, name))
        special: dict[str, Callable[..., Any]] = {
            "replace": lambda old, new, count=-1: _replace(value, old, new, count),
            "split": lambda separator=None, limit=-1: _split(value, separator, limit),
            "join": lambda items: _join(items, value),
        }
        if name in special:
            return SafeCall(name, special[name])
    if isinstance(value, (datetime, date, time)):
        if name in _MOMENT_FIELDS and hasattr(value, name):
            return getattr(value, name)
        if name in _MOMENT_METHODS and hasattr(value, name):
            return SafeCall(name, getattr(value, name))
        if name == "strftime":
            return SafeCall(name, lambda form: _strftime(value, form))
    if type(value).__name__ == "LoopContext" and name in _LOOP_FIELDS:
        return getattr(value, name)
    if isinstance(value, (list, tuple)) and name in ("count", "index"):
        return SafeCall(name, lambda item: value.count(item) if name == "count" else _index(value, item))
    return Unset(name=name)


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


def compare(left: Any, operator: str, right: Any) -> bool:
    """Compare as authors expect: unset equals none, and ordering never raises."""
    fuel().spend(2)
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


def _number(value: Any) -> bool:
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
        return weighed(left + right)
    if operator == "*" and isinstance(left, int) and isinstance(right, (str, list, tuple)):
        left, right = right, left
    if operator == "*" and isinstance(left, (str, list, tuple)) and isinstance(right, int):
        if right > 0 and weigh(left) * right > MAX_WEIGHT:
            raise Refused("a repeat too large")
        return weighed(left * right)
    if isinstance(left, (datetime, date)) and operator == "-" and type(left) is type(right):
        return (left - right).total_seconds()
    if not (_number(left) and _number(right)):
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


def _concat(*parts: Any) -> str:
    return str(weighed("".join(as_text(part) for part in parts)))


def _loop(value: Any) -> list[Any]:
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
    numbers = [item for item in items if _number(item)]
    return sum(numbers, start if _number(start) else 0)


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
    if not _number(value) or isinstance(digits, bool) or not isinstance(digits, int) or abs(digits) > 15:
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
TESTS: dict[str, Callable[..., Any]] = {name: JINJA_TESTS[name] for name in _TEST_NAMES}
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


@pass_context
def _finalize(_context: Any, value: Any) -> str:
    # taking the context keeps Jinja2 from evaluating anything at compile time
    if value is None:
        fuel().note_unset("none")
    return as_text(value)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's immutable sandbox, narrowed to the language of conditions and templates.

    Tokens carry their offset in the text in place of a line number, so that every node and error knows its place.
    """

    intercepted_binops: ClassVar[frozenset[str]] = frozenset(["+", "-", "*", "/", "//", "%", "**"])  # type: ignore[misc]
    intercepted_unops: ClassVar[frozenset[str]] = frozenset(["-", "+"])  # type: ignore[misc]

    def __init__(self) -> None:
        """Build it with our filters, tests and functions and nothing else."""
        super().__init__(undefined=Unset, autoescape=False, optimized=False, finalize=_finalize, cache_size=0)
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)
        self.globals = dict(FUNCTIONS)
        self.filters.update(
            {"_compare": compare, "_concat": _concat, "_loop": _loop, "_weighed": weighed, "_slice": self._slice}
        )

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        def with_offsets() -> Iterator[tuple[int, str, str]]:
            at = 0
            try:
                for _, token, value in self.lexer.tokeniter(source, name, filename, state):
                    found = source.find(value, at)
                    start = found if found >= 0 else at
                    at = start + len(value)
                    yield start, token, value
            except TemplateSyntaxError as error:
                place = re.search(r" at (\d+)$", error.message or "")
                error.lineno = int(place[1]) if place else at
                raise

        return TokenStream(self.lexer.wrap(with_offsets(), name, filename), name, filename)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - Jinja2's signature
        """Call only what was handed out as callable."""
        if not isinstance(__obj, SafeCall):
            raise Refused("this can't be called")
        return __obj(*args, **kwargs)

    def call_binop(self, _context: Any, operator: str, left: Any, right: Any) -> Any:
        """Do arithmetic within bounds."""
        fuel().spend(1)
        return arithmetic(operator, left, right)

    def call_unop(self, _context: Any, operator: str, arg: Any) -> Any:
        """Do a sign within bounds."""
        if is_unset(arg):
            raise ArithmeticOnUnset("arithmetic with an unset value")
        if not _number(arg):
            raise Refused(f"'{operator}' has no meaning here")
        return -arg if operator == "-" else +arg

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Read `obj.attribute`."""
        fuel().spend(1)
        return read_attribute(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Read `obj[argument]`."""
        fuel().spend(1)
        if isinstance(argument, str):
            return read_attribute(obj, argument)
        if isinstance(obj, (list, tuple, str)) and isinstance(argument, int):
            return obj[argument] if -len(obj) <= argument < len(obj) else Unset(name=f"[{argument}]")
        if isinstance(obj, (list, tuple, str)) and isinstance(argument, slice):
            return weighed(obj[argument])
        if isinstance(obj, Mapping) and not isinstance(argument, slice):
            try:
                return obj.get(argument, Unset(name=f"[{argument}]"))
            except TypeError:
                return Unset(name="item")
        return Unset(name="item")

    def _slice(self, obj: Any, start: Any, stop: Any, step: Any) -> Any:
        bounds = [None if is_unset(b) else b for b in (start, stop, step)]
        if any(b is not None and not isinstance(b, int) for b in bounds) or bounds[2] == 0:
            raise Refused("a slice takes whole numbers")
        return self.getitem(obj, slice(*bounds))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Refuse everything: reading goes through `read_attribute` alone."""
        return False


_ALLOWED_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign, nodes.Name, nodes.Const,
    nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.Keyword, nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Call,
    nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg,
    nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow, nodes.Concat,
)  # fmt: skip


def is_allowed(node: nodes.Node) -> bool:
    """Whether this kind of node belongs to the language."""
    return type(node) in _ALLOWED_NODES


def harden(node: Any) -> Any:
    """Rewrite a parsed tree so that comparisons, loops, joins and literals go through the bounded functions."""
    for field in node.fields:
        value = getattr(node, field, None)
        if isinstance(value, nodes.Node):
            setattr(node, field, harden(value))
        elif isinstance(value, list):
            setattr(node, field, [harden(v) if isinstance(v, nodes.Node) else v for v in value])
    at = {"lineno": node.lineno, "environment": node.environment}
    if isinstance(node, nodes.Compare):
        parts: list[nodes.Expr] = []
        left = node.expr
        for operand in node.ops:
            parts.append(_filter(left, "_compare", [nodes.Const(operand.op, **at), operand.expr], at))
            left = operand.expr
        result = parts[0]
        for part in parts[1:]:
            result = nodes.And(result, part, **at)
        return result
    if isinstance(node, nodes.Concat):
        return _filter(node.nodes[0], "_concat", node.nodes[1:], at)
    if isinstance(node, nodes.For):
        node.iter = _filter(node.iter, "_loop", [], at)
    if isinstance(node, nodes.Filter) and not node.name.startswith("_"):
        return _filter(node, "_weighed", [], at)
    if isinstance(node, (nodes.List, nodes.Dict)) or (isinstance(node, nodes.Tuple) and node.ctx == "load"):
        return _filter(node, "_weighed", [], at)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        # a slice is generated as plain Python; as a call of getitem it meets our checks
        parts = [
            p if p is not None else nodes.Const(None, **at) for p in (node.arg.start, node.arg.stop, node.arg.step)
        ]
        return _filter(node.node, "_slice", parts, at)
    return node


def _filter(node: Any, name: str, args: list[Any], at: dict[str, Any]) -> nodes.Filter:
    return nodes.Filter(node, name, args, [], None, None, **at)
