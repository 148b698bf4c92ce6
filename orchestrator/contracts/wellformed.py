r"""Well-formed text and JSON from outside: what nobody can store, send or print is mended or refused at the door.

JSON escapes may spell half a character (a lone surrogate, `"\ud800"`), which neither UTF-8 nor SQLite can hold, and a
NUL, which ends a text for C libraries. Python's `json` also reads NaN, and numbers too large to calculate with.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar, cast

T = TypeVar("T")

REPLACEMENT = "\ufffd"
MAX_DEPTH = 32
"""How deep JSON from outside may be nested; far below what a recursive walk can bear."""
_MAX_DIGITS = 300
_ILL_FORMED = re.compile("[\x00\ud800-\udfff]")
_HIGH_HALVES = ("\ud800", "\udbff")


def is_well_formed(text: str) -> bool:
    """Whether every store, socket and library can take `text` as it is."""
    return _ILL_FORMED.search(text) is None


def mend_text(text: str) -> str:
    """Return `text` with both halves of a character joined, and U+FFFD in place of a lone half or a NUL."""
    if is_well_formed(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", REPLACEMENT)


def mend(value: T) -> T:
    """Return `value` with all text in it mended: in mappings (their keys, too), lists, tuples, sets and dataclasses.

    What is whole comes back as the same object. Not for values nested deeper than Python recurses.
    """
    mended: Any = value
    if isinstance(value, str):
        mended = mend_text(value)
    elif isinstance(value, Mapping):
        mended = {mend(key): mend(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple, set, frozenset)):
        kind: Any = type(value)
        mended = kind(mend(item) for item in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        changed = {name: new for name, part in parts.items() if (new := mend(part)) != part}
        mended = dataclasses.replace(value, **changed) if changed else value
    return value if mended == value else cast(T, mended)


class StreamMender:
    """Mends a text that comes in pieces: a character may be cut in two between them."""

    def __init__(self) -> None:
        """Start with nothing kept."""
        self._half = ""

    def feed(self, text: str) -> str:
        """Return what is sure of the text so far; the first half of a character waits for the second."""
        text, self._half = self._half + text, ""
        if text and _HIGH_HALVES[0] <= text[-1] <= _HIGH_HALVES[1]:
            text, self._half = text[:-1], text[-1]
        return mend_text(text)

    def flush(self) -> str:
        """Return what waited, at the end of the text."""
        half, self._half = self._half, ""
        return mend_text(half)


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text from outside, its texts mended.

    Raises `ValueError` with one clear sentence: no JSON, no UTF-8, nested too deeply, or a number that is none.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8 text (byte {error.start + 1})") from error
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    except RecursionError:
        raise ValueError("not JSON that can be read: it is nested too deeply") from None
    _check_depth(value)
    return mend(value)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is too large")
    return int(digits)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for part in level
            if isinstance(part, (dict, list))
            for item in (part.values() if isinstance(part, dict) else part)
        ]
        if not level:
            return
    raise ValueError(f"nested too deeply: more than {MAX_DEPTH} levels")
