"""What an evaluation may cost, and the values it works with: fuel, weights, unset, what may be called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from jinja2 import Undefined
from jinja2.exceptions import SecurityError

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

    def __getitem__(self, _key: Any) -> Unset:  # type: ignore[override]
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
