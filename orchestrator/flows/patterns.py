"""Regular expressions of authors, matched with a limit on the work instead of trust.

Python's `re` can't be stopped once it backtracks; this walks the same parsed pattern with a budget of steps.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

MAX_STEPS = 15_000
MAX_TEXT_CHARS = 2_000


class PatternTooSlow(Exception):  # noqa: N818 - names an outcome
    """Matching took more steps than allowed."""


class _Budget:
    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise PatternTooSlow


_SUPPORTED = frozenset(
    {
        "LITERAL",
        "NOT_LITERAL",
        "ANY",
        "IN",
        "BRANCH",
        "SUBPATTERN",
        "MAX_REPEAT",
        "MIN_REPEAT",
        "POSSESSIVE_REPEAT",
        "AT",
        "GROUPREF",
        "ASSERT",
        "ASSERT_NOT",
        "ATOMIC_GROUP",
    }
)


@lru_cache(maxsize=512)
def parse_pattern(pattern: str) -> tuple[Any, int]:
    """Parse a pattern; raises `re.error` when it is faulty or uses something unsupported."""
    if len(pattern) > 500:
        raise re.error("longer than 500 characters")
    compiled = re.compile(pattern)
    parser: Any = re._parser  # type: ignore[attr-defined] # the only public way to a parsed pattern is private
    tree = parser.parse(pattern, compiled.flags)
    _check_supported(tree, pattern)
    return tree, compiled.flags


def _check_supported(tree: Any, pattern: str) -> None:
    for op, args in tree:
        if op.name not in _SUPPORTED:
            raise re.error(f"{op.name.lower().replace('_', ' ')} is not supported")
        for sub in _children(op.name, args):
            _check_supported(sub, pattern)


def _children(name: str, args: Any) -> list[Any]:
    if name == "BRANCH":
        return list(args[1])
    if name == "SUBPATTERN":
        return [args[3]]
    if name.endswith("REPEAT"):
        return [args[2]]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [args[1]]
    return [args] if name == "ATOMIC_GROUP" else []


def full_match(pattern: str, text: str, max_steps: int = MAX_STEPS) -> bool:
    """Whether the whole text matches; raises `PatternTooSlow`."""
    tree, flags = parse_pattern(pattern)
    if len(text) > MAX_TEXT_CHARS:
        raise PatternTooSlow
    matcher = _Matcher(text, flags, _Budget(max_steps))
    try:
        return any(end == len(text) for end, _ in matcher.seq(tree, 0, 0, {}))
    except RecursionError as error:
        raise PatternTooSlow from error


Groups = dict[int, str]


class _Matcher:
    def __init__(self, text: str, flags: int, budget: _Budget) -> None:
        self.text = text
        self.budget = budget
        self.fold = bool(flags & re.IGNORECASE)
        self.dotall = bool(flags & re.DOTALL)
        self.multiline = bool(flags & re.MULTILINE)

    def seq(self, items: Any, index: int, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        if index == len(items):
            yield at, groups
            return
        op, args = items[index]
        for end, found in self.one(op.name, args, at, groups):
            yield from self.seq(items, index + 1, end, found)

    def one(self, name: str, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        self.budget.spend()
        handler: Callable[..., Iterator[tuple[int, Groups]]] | None = getattr(self, f"_{name.lower()}", None)
        if handler is not None:
            yield from handler(args, at, groups)
        elif at < len(self.text) and self._char(name, args, self.text[at]):
            yield at + 1, groups

    def _char(self, name: str, args: Any, char: str) -> bool:
        if name == "ANY":
            return self.dotall or char != "\n"
        if name == "IN":
            return self._in_set(args, char) or (self.fold and self._in_set(args, char.swapcase()))
        same = char == chr(args) or (self.fold and char.casefold() == chr(args).casefold())
        return same if name == "LITERAL" else not same

    def _in_set(self, items: Any, char: str) -> bool:
        negate = bool(items) and items[0][0].name == "NEGATE"
        hit = False
        for op, args in items[1:] if negate else items:
            if op.name == "LITERAL":
                hit = char == chr(args)
            elif op.name == "RANGE":
                hit = args[0] <= ord(char) <= args[1]
            elif op.name == "CATEGORY":
                hit = _in_category(args.name, char)
            if hit:
                break
        return hit != negate

    def _branch(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        for option in args[1]:
            yield from self.seq(option, 0, at, groups)

    def _subpattern(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        number, _, _, body = args
        for end, found in self.seq(body, 0, at, groups):
            yield end, ({**found, number: self.text[at:end]} if number is not None else found)

    def _max_repeat(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        low, high, body = args
        yield from self._repeat(low, int(high), body, at, groups, 0, greedy=True)

    def _min_repeat(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        low, high, body = args
        yield from self._repeat(low, int(high), body, at, groups, 0, greedy=False)

    def _possessive_repeat(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        for found in self._max_repeat(args, at, groups):
            yield found
            return

    def _atomic_group(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        for found in self.seq(args, 0, at, groups):
            yield found
            return

    def _repeat(
        self, low: int, high: int, body: Any, at: int, groups: Groups, count: int, *, greedy: bool
    ) -> Iterator[tuple[int, Groups]]:
        self.budget.spend()
        if not greedy and count >= low:
            yield at, groups
        if count < high:
            for end, found in self.seq(body, 0, at, groups):
                if end > at or count < low:
                    yield from self._repeat(low, high, body, end, found, count + 1, greedy=greedy)
        if greedy and count >= low:
            yield at, groups

    def _groupref(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        wanted = groups.get(args)
        if wanted is not None and self.text.startswith(wanted, at):
            yield at + len(wanted), groups

    def _assert(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        if self._looks(args, at, groups):
            yield at, groups

    def _assert_not(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        if not self._looks(args, at, groups):
            yield at, groups

    def _looks(self, args: Any, at: int, groups: Groups) -> bool:
        direction, body = args
        if direction > 0:
            return any(True for _ in self.seq(body, 0, at, groups))
        low, high = body.getwidth()
        starts = range(max(0, at - int(high)), at - int(low) + 1)
        return any(end == at for start in starts for end, _ in self.seq(body, 0, start, groups))

    def _at(self, args: Any, at: int, groups: Groups) -> Iterator[tuple[int, Groups]]:
        if self._is_at(args.name, at):
            yield at, groups

    def _is_at(self, name: str, at: int) -> bool:
        text = self.text
        if name in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
            return at == 0 or (name == "AT_BEGINNING" and self.multiline and text[at - 1] == "\n")
        if name in ("AT_END", "AT_END_STRING"):
            last = at == len(text) or (name == "AT_END" and at == len(text) - 1 and text[at] == "\n")
            return last or (name == "AT_END" and self.multiline and text[at] == "\n")
        before = at > 0 and _is_word(text[at - 1])
        after = at < len(text) and _is_word(text[at])
        return ((before != after) == name.endswith("_BOUNDARY") and not name.endswith("NON_BOUNDARY")) or (
            name.endswith("NON_BOUNDARY") and before == after
        )


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _in_category(name: str, char: str) -> bool:
    wanted = "NOT_" not in name
    if "DIGIT" in name:
        hit = unicodedata.category(char) == "Nd"
    elif "SPACE" in name:
        hit = char.isspace()
    else:
        hit = _is_word(char)
    return hit == wanted
