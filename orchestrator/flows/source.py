"""YAML text → tree of nodes that know where they stand, with all problems at once.

Nothing here raises on bad text: every fault becomes a `Problem`. Size, depth and aliases are bounded, so that a hostile
file costs no more than a long one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orchestrator.contracts.wellformed import is_well_formed, mend_text
from orchestrator.flows.nodes import ListNode, MapNode, Node, ScalarNode, resolve_plain
from orchestrator.flows.problems import Problem, Report, did_you_mean
from orchestrator.flows.whole_text import ILL_FORMED

MAX_CHARS = 1_000_000
MAX_DEPTH = 60
MAX_NODES = 100_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One parsed file. `root` is None when the text is no YAML at all or empty."""

    file: str
    root: Node | None
    problems: tuple[Problem, ...]


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
        text = mend_text(event.value)
        if not is_well_formed(event.value):
            self._fail(start, "yaml_character", ILL_FORMED)
        value = text if quoted else resolve_plain(text)
        if isinstance(value, float) and not math.isfinite(value):
            self._fail(start, "out_of_range", f"the number {text} is too large")
            value = text
        return ScalarNode(
            self.file,
            start.line + 1,
            start.column + 1,
            end.line + 1,
            end.column + 1,
            text=text,
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
        builder._fail(_place_of(error), "yaml_syntax", _yaml_message(error, text))
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


def _place_of(error: Any) -> Any:
    """Return where a fault is: what is never closed is at fault where it begins, not where the file ends."""
    if "end of stream" in (error.problem or "") and error.context_mark is not None:
        return error.context_mark
    return error.problem_mark or error.context_mark


def _yaml_message(error: Any, text: str) -> str:
    mark = error.problem_mark
    if mark is not None and text.splitlines()[mark.line : mark.line + 1] and _is_tab(text.splitlines()[mark.line]):
        return "a tab can't be used for indentation"
    parts = [p for p in (error.context, error.problem) if p]
    return " ".join((", ".join(parts) or "not readable as YAML").split())


def _is_tab(line: str) -> bool:
    """Whether a tab stands among what a line begins with."""
    return "\t" in line[: len(line) - len(line.lstrip(" \t"))]


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


__all__ = [
    "Document",
    "ListNode",
    "MapNode",
    "Node",
    "Problem",
    "Report",
    "ScalarNode",
    "did_you_mean",
    "parse_source",
    "read_source",
    "resolve_plain",
]
