"""The tree of a YAML text: nodes that know where they stand, and what an unquoted scalar means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


def resolve_plain(text: str) -> Any:
    """Return what an unquoted scalar means: YAML 1.2 core, so `yes`, `on`, `12:30` and dates stay text."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 30:
        if _INT.fullmatch(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


@dataclass(slots=True, eq=False)
class Node:
    """Base of the tree. Positions start at 1; `end_*` is just after the node."""

    file: str
    line: int
    col: int
    end_line: int
    end_col: int

    def plain(self) -> Any:
        """Return the value as plain Python data."""
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """What the node is, for messages."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class ScalarNode(Node):
    """A string, number, boolean or null. `text` is the string as written, `value` what it means (YAML 1.2 core)."""

    text: str = ""
    value: Any = None
    style: str = ""
    raw: str = ""

    def plain(self) -> Any:
        """Return the resolved value."""
        return self.value

    @property
    def kind(self) -> str:
        """What the node is, for messages."""
        return {str: "text", bool: "true or false", int: "a number", float: "a number"}.get(type(self.value), "nothing")

    def place(self, offset: int) -> tuple[int, int]:
        """Return (line, column) of the character at `offset` of `text`."""
        offset = max(0, min(offset, len(self.text)))
        index = _raw_index(self.text, self.raw, self.style, offset)
        before = self.raw[:index]
        newlines = before.count("\n")
        if newlines:
            return self.line + newlines, index - before.rfind("\n")
        return self.line, self.col + index


@dataclass(slots=True, eq=False)
class MapNode(Node):
    """A mapping with its keys in order; of a double key the first stays."""

    entries: dict[str, tuple[ScalarNode, Node]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return a dict of plain values."""
        return {key: node.plain() for key, (_, node) in self.entries.items()}

    @property
    def kind(self) -> str:
        """What the node is, for messages."""
        return "a mapping"

    def get(self, key: str) -> Node | None:
        """Return the value of `key`, or None."""
        found = self.entries.get(key)
        return found[1] if found else None

    def key(self, key: str) -> ScalarNode:
        """Return the node of the key itself."""
        return self.entries[key][0]

    def __contains__(self, key: object) -> bool:
        """Whether the key is there."""
        return key in self.entries

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys in file order."""
        return iter(self.entries)


@dataclass(slots=True, eq=False)
class ListNode(Node):
    """A sequence."""

    items: list[Node] = field(default_factory=list)

    def plain(self) -> list[Any]:
        """Return a list of plain values."""
        return [item.plain() for item in self.items]

    @property
    def kind(self) -> str:
        """What the node is, for messages."""
        return "a list"


def _raw_index(text: str, raw: str, style: str, offset: int) -> int:
    """Return the index in `raw` (the source of a scalar) that `offset` of its value came from."""
    at = 0
    if style in ("'", '"'):
        at = 1
    elif style in ("|", ">"):
        newline = raw.find("\n")
        at = newline + 1 if newline >= 0 else len(raw)
    for index, char in enumerate(text):
        if not char.isspace():
            while at < len(raw) and raw[at] != char and not (style == '"' and raw[at] == "\\"):
                at += 1
        if index == offset:
            return min(at, max(0, len(raw) - 1)) if raw else 0
        if style == '"' and at < len(raw) and raw[at] == "\\":
            at += _escape_length(raw, at)
        elif char.isspace():
            at += 1 if at < len(raw) and raw[at] == char else 0
        else:
            at += 1
    return min(at, len(raw))


def _escape_length(raw: str, at: int) -> int:
    kind = raw[at + 1 : at + 2]
    return {"x": 4, "u": 6, "U": 10}.get(kind, 2)
