"""Test files → test cases, with every fault and its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orchestrator.contracts.dialogue import LlmTask
from orchestrator.flows.reading import as_list, as_map, check_keys, is_empty, read_string
from orchestrator.flows.source import Document, ListNode, MapNode, Node, Report, ScalarNode, did_you_mean
from orchestrator.flows.testing import shapes
from orchestrator.flows.testing.shapes import Shape, check_fields

TEST: Mapping[str, Shape] = {
    "name": shapes.text,
    "description": shapes.optional(shapes.text),
    "files": shapes.listed(shapes.text, "file names", alone=True),
    "config": shapes.mapping,
    "embedding": shapes.anything,
    "now": shapes.anything,
    "vars": shapes.mapping,
    "slots": shapes.mapping,
    "actions": shapes.mapping,
    "turns": shapes.anything,
    "trace": shapes.anything,
    "language": shapes.optional(shapes.language),
}
"""The keys of a test; those with any shape have readers of their own."""
TURN: Mapping[str, Shape] = {
    "user": shapes.text,
    "event": shapes.EVENT,
    "silence": shapes.number(),
    "object": shapes.OBJECT,
    "vars": shapes.mapping,
    "llm": shapes.anything,
    "interrupt": shapes.anything,
    "expect": shapes.mapping,
}
"""The keys of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """A barge-in after so many words of the reply."""

    after_words: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestTurn:
    """One turn of a test, started by `user` (perhaps with `thing`), `event`, `silence_s`, or `thing` alone."""

    __test__ = False

    user: str | None = None
    event: Mapping[str, Any] | None = None
    silence_s: float | None = None
    thing: Mapping[str, Any] | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    llm: tuple[Mapping[str, Any], ...] = ()
    interrupt: Interrupt | None = None
    expect: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One test. `files` of None stands for the whole flow folder."""

    __test__ = False

    name: str
    files: tuple[str, ...] | None = None
    config: Node | None = None
    embedding: str = "exact"
    now: datetime = datetime(2026, 1, 5, 9, 0)
    vars: Mapping[str, Any] = field(default_factory=dict)
    slots: Mapping[str, Any] = field(default_factory=dict)
    actions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    turns: tuple[TestTurn, ...] = ()
    trace: tuple[Mapping[str, Any], ...] = ()
    language: str | None = None
    file: str = ""
    line: int = 1


def read_tests(document: Document, report: Report) -> list[TestCase]:
    """Read the tests of a file; every fault of the format is reported, so that a test without one runs."""
    report.problems.extend(document.problems)
    if document.root is None:
        return []
    body = as_map(document.root, report, "a test file")
    if body is None:
        return []
    check_keys(body, ("tests",), report, "a test file")
    found: list[TestCase] = []
    for item in as_list(body.get("tests"), report, "tests"):
        test = _read_test(item, report)
        if test is None:
            continue
        first = next((t for t in found if t.name == test.name), None)
        if first is not None:
            place = item.get("name") if isinstance(item, MapNode) else None
            report.add(
                place or item,
                "duplicate_name",
                f"the test in line {first.line} has the same name, {test.name!r}",
                severity="warning",
            )
        found.append(test)
    tests = body.get("tests")
    if is_empty(tests) or (isinstance(tests, ListNode) and not tests.items):
        report.add(tests or body, "no_tests", "there are no tests in this file", severity="warning")
    return found


def _read_test(node: Node, report: Report) -> TestCase | None:
    if not isinstance(node, MapNode):
        report.add(node, "wrong_type", f"a test must be a mapping, not {node.kind}")
        return None
    check_fields(node, TEST, report, "a test")
    name_node = node.get("name")
    name = name_node.text.strip() if isinstance(name_node, ScalarNode) and not is_empty(name_node) else ""
    if not name:
        if name_node is None or isinstance(name_node, ScalarNode):
            report.add(name_node or node, "missing_name", "a test needs a name")
        name = f"line {node.line}"
    turns = tuple(
        t for t in (_read_turn(i, report) for i in as_list(node.get("turns"), report, "turns")) if t is not None
    )
    trace = _read_trace(node.get("trace"), report)
    _check_asserts(node, name, turns, report)
    return TestCase(
        name=name,
        files=_read_files(node.get("files")),
        config=node.get("config") if isinstance(node.get("config"), MapNode) else None,
        embedding=_read_embedding(node.get("embedding"), report),
        now=_read_now(node.get("now"), report),
        vars=_plain_map(node, "vars"),
        slots=_plain_map(node, "slots"),
        actions=_read_stubs(node.get("actions"), report),
        turns=turns,
        trace=trace,
        language=_text(node.get("language")),
        file=node.file,
        line=node.line,
    )


def _check_asserts(node: MapNode, name: str, turns: tuple[TestTurn, ...], report: Report) -> None:
    """Report a test that can't fail, or hardly."""
    lists = [node.get("turns"), node.get("trace")]
    if "turns" not in node and "trace" not in node:
        report.add(node, "missing_turns", f"the test {name!r} needs turns or a trace")
    elif all(is_empty(n) or (isinstance(n, ListNode) and not n.items) for n in lists):
        place = next(n for n in lists if n is not None)
        report.add(place, "empty_test", f"the test {name!r} has no turns and no trace, so it asserts nothing")
    elif turns and "trace" not in node and not any(t.expect or t.llm for t in turns):
        report.add(
            node,
            "nothing_expected",
            f"no turn of the test {name!r} expects anything: it only fails when something breaks",
            severity="warning",
        )


def _text(node: Node | None) -> str | None:
    return node.text if isinstance(node, ScalarNode) and not is_empty(node) else None


def _read_files(node: Node | None) -> tuple[str, ...] | None:
    if node is None:
        return None
    items = node.items if isinstance(node, ListNode) else [node]
    return tuple(i.text for i in items if isinstance(i, ScalarNode) and not is_empty(i))


def _read_embedding(node: Node | None, report: Report) -> str:
    word = _text(node) if node is not None else "exact"
    if word in ("exact", "real"):
        return word
    assert node is not None
    hint = did_you_mean(word or "", ("exact", "real"))
    report.add(node, "bad_value", "embedding must be exact or real", suggestion=hint)
    return "exact"


def _plain_map(body: MapNode, key: str) -> dict[str, Any]:
    found = body.get(key)
    return found.plain() if isinstance(found, MapNode) else {}


def _read_now(node: Node | None, report: Report) -> datetime:
    default = datetime(2026, 1, 5, 9, 0)
    if node is None:
        return default
    try:
        return datetime.fromisoformat(_text(node) or "").replace(tzinfo=None)
    except ValueError:
        report.add(node, "bad_value", "now must be a moment such as 2026-12-01T09:00:00")
        return default


def _read_stubs(node: Node | None, report: Report) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    if not isinstance(node, MapNode):
        return found
    for name in node:
        stub = node.entries[name][1]
        spec = as_map(stub, report, f"the stub {name!r}")
        if spec is not None:
            check_fields(spec, shapes.STUB, report, f"the stub {name!r}")
        if spec is not None or is_empty(stub):
            found[name] = spec.plain() if spec is not None else {}
    return found


def _read_turn(node: Node, report: Report) -> TestTurn | None:
    if not isinstance(node, MapNode):
        report.add(node, "wrong_type", f"a turn must be a mapping, not {node.kind}")
        return None
    check_fields(node, TURN, report, "a turn")
    starts = [k for k in ("user", "event", "silence") if k in node]
    if len(starts) > 1 or (not starts and "object" not in node):
        report.add(node, "bad_turn", "a turn has one of user, event, silence (or an object)")
        return None
    expect = node.get("expect")
    if isinstance(expect, MapNode):
        check_fields(expect, shapes.EXPECT, report, "expect")
    event, silence = node.get("event"), node.get("silence")
    seconds = silence.plain() if isinstance(silence, ScalarNode) else None
    return TestTurn(
        user=_text(node.get("user")),
        event={"type": event.text} if isinstance(event, ScalarNode) else _plain_map(node, "event") or None,
        silence_s=seconds if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) else None,
        thing=_plain_map(node, "object") or None,
        vars=_plain_map(node, "vars"),
        llm=_read_llm(node.get("llm"), report),
        interrupt=_read_interrupt(node.get("interrupt"), report),
        expect=_expected(expect) if isinstance(expect, MapNode) else {},
    )


def _expected(body: MapNode) -> dict[str, Any]:
    """Return what is expected; what is said and named is a text, also where YAML takes it for a number."""
    found = body.plain()
    for key in body:
        node = body.entries[key][1]
        if key in shapes.TEXT_ALONE:
            found[key] = _text(node)
        elif key in shapes.TEXT_LISTS:
            items = node.items if isinstance(node, ListNode) else [node]
            found[key] = [i.text for i in items if isinstance(i, ScalarNode)]
    return found


def _read_llm(node: Node | None, report: Report) -> tuple[Mapping[str, Any], ...]:
    found = []
    for item in as_list(node, report, "llm"):
        if not isinstance(item, MapNode):
            report.add(item, "wrong_type", f"a completion must be a mapping, not {item.kind}")
            continue
        body = item
        check_fields(body, shapes.COMPLETION, report, "a completion")
        task = _text(body.get("task"))
        tasks = [t.value for t in LlmTask]
        if task not in tasks:
            report.add(
                body.get("task") or item,
                "unknown_task",
                f"task must be one of {', '.join(tasks)}",
                suggestion=did_you_mean(task or "", tasks),
            )
            continue
        found.append(body.plain())
    return tuple(found)


def _read_interrupt(node: Node | None, report: Report) -> Interrupt | None:
    body = as_map(node, report, "interrupt")
    if body is None:
        return None
    check_keys(body, ("after_words", "with"), report, "interrupt")
    words = body.get("after_words")
    count = words.plain() if words is not None else 0
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        report.add(words or body, "wrong_type", "after_words must be a whole number from 0")
        count = 0
    return Interrupt(
        after_words=count, text=read_string(body.get("with"), report, "with") or "" if "with" in body else ""
    )


def _read_trace(node: Node | None, report: Report) -> tuple[Mapping[str, Any], ...]:
    found = []
    for item in as_list(node, report, "trace"):
        if not isinstance(item, MapNode):
            report.add(item, "wrong_type", f"a trace step must be a mapping, not {item.kind}")
            continue
        check_keys(item, ("after", "next"), report, "a trace step")
        after = item.get("after")
        fault = _trace_fault(after)
        if fault is not None:
            report.add(after or item, "bad_trace", fault)
            continue
        found.append(item.plain())
    return tuple(found)


def _trace_fault(after: Node | None) -> str | None:
    from orchestrator.rails.trace import TraceError, to_event  # the rails import this package's leaves

    if not isinstance(after, MapNode):
        return "a trace step needs after: {…}"
    if list(after) == ["vars"]:
        return None if isinstance(after.get("vars"), MapNode) else "vars must be a mapping"
    try:
        to_event(after.plain())
    except TraceError as error:
        return str(error)
    return None


__all__ = ["Interrupt", "TestCase", "TestTurn", "read_tests"]
