"""YAML text → tree of nodes that know where they stand, with all problems at once.

Nothing here raises on bad text: every fault becomes a `Problem`. Size, depth and aliases are bounded, so that a hostile
file costs no more than a long one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

MAX_CHARS = 1_000_000
MAX_DEPTH = 60
MAX_NODES = 100_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a file. Lines and columns start at 1; `end` is (line, column) after the range."""

    file: str
    line: int
    col: int
    end: tuple[int, int]
    code: str
    message: str
    suggestion: str | None = None
    severity: str = "error"

    def __str__(self) -> str:
        """Return the one-line form of `mynah flows check`."""
        hint = f"  did you mean {self.suggestion}?" if self.suggestion else ""
        kind = "" if self.severity == "error" else f"{self.severity}: "
        return f"{self.file}:{self.line}:{self.col}  {self.code}  {kind}{self.message}{hint}"

    def to_json(self) -> dict[str, Any]:
        """Return the problem as JSON."""
        return {
            "file": self.file,
            "line": self.line,
            "col": self.col,
            "end": list(self.end),
            "code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "severity": self.severity,
        }


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate closest to `word`, or None when none is close."""
    options = [c for c in candidates if isinstance(c, str)][:2000]
    if not word or len(word) > 100:
        return None
    folded = {c.casefold(): c for c in reversed(options)}
    if word.casefold() in folded and folded[word.casefold()] != word:
        return folded[word.casefold()]
    found = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    return found[0] if found and found[0] != word else None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One parsed file. `root` is None when the text is no YAML at all or empty."""

    file: str
    root: Node | None
    problems: tuple[Problem, ...]


class Report:
    """Collects problems; every part of the checker writes into one."""

    def __init__(self) -> None:
        """Start empty."""
        self.problems: list[Problem] = []

    def add(
        self, node: Node, code: str, message: str, *, suggestion: str | None = None, severity: str = "error"
    ) -> None:
        """Note a problem of the whole node."""
        self.problems.append(
            Problem(
                file=node.file,
                line=node.line,
                col=node.col,
                end=(node.end_line, node.end_col),
                code=code,
                message=message,
                suggestion=suggestion,
                severity=severity,
            )
        )

    def add_inside(
        self,
        node: ScalarNode,
        start: int,
        end: int,
        code: str,
        message: str,
        *,
        suggestion: str | None = None,
        severity: str = "error",
    ) -> None:
        """Note a problem of the characters `start`…`end` of the node's text."""
        line, col = node.place(start)
        if end > start:
            end_line, end_col = node.place(end - 1)
            end_col += 1
        else:
            end_line, end_col = line, col
        self.problems.append(
            Problem(
                file=node.file,
                line=line,
                col=col,
                end=(end_line, end_col),
                code=code,
                message=message,
                suggestion=suggestion,
                severity=severity,
            )
        )

    def sorted(self) -> list[Problem]:
        """Return the problems by file and place, each once."""
        seen = dict.fromkeys(self.problems)
        return sorted(seen, key=lambda p: (p.file, p.line, p.col, p.code))


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


@dataclass(slots=True)
class _Open:
    """A collection that is being read; `key` is a mapping's key that waits for its value."""

    node: MapNode | ListNode
    anchor: str | None
    key: ScalarNode | None = None
    skipping: bool = False


class _Builder:
    """Builds the tree from parser events, without recursion."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.report = Report()
        self.root: Node | None = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, Node] = {}
        self.weights: dict[int, int] = {}
        self.count = 0
        self.documents = 0
        self.stopped = False

    def _fail(self, mark: Any, code: str, message: str) -> None:
        line, col = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        self.report.problems.append(
            Problem(file=self.file, line=line, col=col, end=(line, col + 1), code=code, message=message)
        )

    def feed(self, event: Any) -> None:
        """Take one parser event."""
        mark = event.start_mark
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents == 2:
                self._fail(mark, "yaml_documents", "only one document per file is read")
                self.stopped = True
        elif isinstance(event, yaml.ScalarEvent):
            self._place(self._scalar(event), event.anchor)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(self.stack) >= MAX_DEPTH:
                self._fail(mark, "yaml_depth", f"nested deeper than {MAX_DEPTH} levels")
                self.stopped = True
                return
            if event.tag and not event.implicit:
                self._fail(mark, "yaml_tag", f"the tag {event.tag[:60]} is not allowed")
            cls: type[MapNode] | type[ListNode] = MapNode if isinstance(event, yaml.MappingStartEvent) else ListNode
            node = cls(self.file, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
            self.stack.append(_Open(node, event.anchor))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self.stack.pop()
            done.node.end_line, done.node.end_col = self._end(done.node, event)
            self._place(done.node, done.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _end(self, node: MapNode | ListNode, event: Any) -> tuple[int, int]:
        children = [v for _, v in node.entries.values()] if isinstance(node, MapNode) else node.items
        if event.end_mark.index > event.start_mark.index or not children:
            return event.end_mark.line + 1, event.end_mark.column + 1
        return children[-1].end_line, children[-1].end_col

    def _scalar(self, event: Any) -> ScalarNode:
        start, end = event.start_mark, event.end_mark
        style = event.style or ""
        tag = event.tag or ""
        if tag and tag != "tag:yaml.org,2002:str" and tag != "!":
            self._fail(start, "yaml_tag", f"the tag {tag[:60]} is not allowed")
        quoted = bool(style) or bool(tag)
        value = event.value if quoted else resolve_plain(event.value)
        return ScalarNode(
            self.file,
            start.line + 1,
            start.column + 1,
            end.line + 1,
            end.column + 1,
            text=event.value,
            value=value,
            style=style,
            raw=self.text[start.index : end.index],
        )

    def _alias(self, event: Any) -> None:
        node = self.anchors.get(event.anchor)
        if node is None:
            self._fail(event.start_mark, "yaml_alias", f"*{event.anchor[:60]} refers to nothing above")
            mark = event.start_mark
            node = ScalarNode(self.file, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
        self._place(node, None, weight=self.weights.get(id(node), 1))

    def _place(self, node: Node, anchor: str | None, weight: int | None = None) -> None:
        if weight is None:
            weight = 1
            if isinstance(node, MapNode):
                weight += sum(self.weights.get(id(v), 1) for _, v in node.entries.values())
            elif isinstance(node, ListNode):
                weight += sum(self.weights.get(id(v), 1) for v in node.items)
            self.weights[id(node)] = weight
            self.count += 1
        else:
            self.count += weight
        if self.count > MAX_NODES:
            self.report.add(node, "yaml_size", f"more than {MAX_NODES} values (aliases counted in full)")
            self.stopped = True
            return
        if anchor:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if isinstance(top.node, ListNode):
            top.node.items.append(node)
        elif top.key is None and not top.skipping:
            self._take_key(top, node)
        else:
            self._take_value(top, node)

    def _take_key(self, top: _Open, node: Node) -> None:
        if not isinstance(node, ScalarNode):
            self.report.add(node, "yaml_key", "a key must be plain text")
            top.skipping = True
        elif node.text == "<<" and not node.style:
            self.report.add(node, "yaml_merge", "merge keys (<<) are not supported; write the keys out")
            top.skipping = True
        else:
            top.key = node

    def _take_value(self, top: _Open, node: Node) -> None:
        key, top.key, skipped = top.key, None, top.skipping
        top.skipping = False
        if skipped or key is None or not isinstance(top.node, MapNode):
            return
        first = top.node.entries.get(key.text)
        if first is not None:
            self.report.add(
                key, "duplicate_key", f"the key {key.text!r} stands twice; the first is in line {first[0].line}"
            )
            return
        top.node.entries[key.text] = (key, node)


def parse_source(text: str, file: str = "<text>") -> Document:
    """Parse one file's text. Never raises; `file` is only used in positions."""
    if len(text) > MAX_CHARS:
        problem = Problem(
            file=file, line=1, col=1, end=(1, 2), code="yaml_size", message=f"longer than {MAX_CHARS} characters"
        )
        return Document(file=file, root=None, problems=(problem,))
    if text.startswith("\ufeff"):
        text = text[1:]
    builder = _Builder(file, text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.feed(event)
            if builder.stopped:
                break
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        builder._fail(mark, "yaml_syntax", _yaml_message(error))
        builder.root = None
    except (yaml.reader.ReaderError, UnicodeEncodeError):
        builder.report.problems.append(_reader_problem(file, text))
        builder.root = None
    except (yaml.YAMLError, ValueError, RecursionError, UnicodeError) as error:
        builder._fail(None, "yaml_syntax", f"not readable as YAML ({type(error).__name__})")
        builder.root = None
    root = None if builder.stopped else builder.root
    if isinstance(root, ScalarNode) and root.value is None:
        root = None
    return Document(file=file, root=root, problems=tuple(builder.report.problems))


def _yaml_message(error: Any) -> str:
    parts = [p for p in (error.context, error.problem) if p]
    text = ", ".join(parts) or "not readable as YAML"
    if "\\t" in text or "'\t'" in text:
        return "a tab can't be used for indentation"
    return " ".join(text.split())


def _reader_problem(file: str, text: str) -> Problem:
    bad = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    at = bad.start() if bad else 0
    line = text.count("\n", 0, at) + 1
    col = at - (text.rfind("\n", 0, at) + 1) + 1
    message = "a character that YAML does not allow"
    return Problem(file=file, line=line, col=col, end=(line, col + 1), code="yaml_character", message=message)


def read_source(path: Path, shown: str | None = None, read: Callable[[Path], bytes] = Path.read_bytes) -> Document:
    """Read and parse a file; a missing file or wrong encoding becomes a `Problem`."""
    name = shown or str(path)
    try:
        data = read(path)
    except OSError as error:
        problem = Problem(
            file=name, line=1, col=1, end=(1, 1), code="file_unreadable", message=error.strerror or "can't be read"
        )
        return Document(file=name, root=None, problems=(problem,))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        col = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        problem = Problem(
            file=name, line=line, col=col, end=(line, col + 1), code="file_encoding", message="not UTF-8 text"
        )
        return Document(file=name, root=None, problems=(problem,))
    return parse_source(text, name)
