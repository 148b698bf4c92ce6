"""Test files → test cases, with every fault and its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orchestrator.contracts.dialogue import LlmTask
from orchestrator.flows.reading import as_list, as_map, check_keys, is_empty, read_string
from orchestrator.flows.source import Document, ListNode, MapNode, Node, Report, ScalarNode, did_you_mean

TEST_KEYS = (
    "name",
    "description",
    "files",
    "config",
    "embedding",
    "now",
    "vars",
    "slots",
    "actions",
    "turns",
    "trace",
    "language",
)
TURN_KEYS = ("user", "event", "silence", "object", "vars", "llm", "interrupt", "expect")
EXPECT_KEYS = (
    "user_intent",
    "bot_intents",
    "replies",
    "reply_matches",
    "heard",
    "commands",
    "dropped",
    "slots",
    "vars",
    "active_flow",
    "step",
    "paused",
    "actions",
    "llm_calls",
    "error",
    "prompt_has",
    "prompt_lacks",
)
STUB_KEYS = ("returns", "raises", "delay_s", "by_args", "increment", "slots", "messages", "args")
LLM_KEYS = ("task", "completion", "fails")


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
    """Read the tests of a file."""
    report.problems.extend(document.problems)
    if document.root is None:
        return []
    body = as_map(document.root, report, "a test file")
    if body is None:
        return []
    check_keys(body, ("tests",), report, "a test file")
    found = []
    for item in as_list(body.get("tests"), report, "tests"):
        test = _read_test(item, report)
        if test is not None:
            found.append(test)
    return found


def _read_test(node: Node, report: Report) -> TestCase | None:
    body = as_map(node, report, "a test")
    if body is None:
        return None
    check_keys(body, TEST_KEYS, report, "a test")
    name = read_string(body.get("name"), report, "name") if "name" in body else None
    if name is None:
        report.add(node, "missing_name", "a test needs a name")
        name = f"line {node.line}"
    files_node = body.get("files")
    files = None
    if files_node is not None:
        items = (
            [files_node]
            if isinstance(files_node, ScalarNode) and not is_empty(files_node)
            else as_list(files_node, report, "files")
        )
        files = tuple(i.text for i in items if isinstance(i, ScalarNode))
    embedding = read_string(body.get("embedding"), report, "embedding") if "embedding" in body else "exact"
    if embedding not in ("exact", "real"):
        report.add(
            body.get("embedding") or node,
            "bad_value",
            "embedding is exact or real",
            suggestion=did_you_mean(embedding or "", ("exact", "real")),
        )
        embedding = "exact"
    turns = tuple(
        t for t in (_read_turn(i, report) for i in as_list(body.get("turns"), report, "turns")) if t is not None
    )
    if "turns" not in body and "trace" not in body:
        report.add(node, "missing_turns", f"the test {name!r} needs turns or a trace")
    return TestCase(
        name=name,
        files=files,
        config=as_map(body.get("config"), report, "config"),
        embedding=embedding,
        now=_read_now(body.get("now"), report),
        vars=_plain_map(body, "vars", report),
        slots=_plain_map(body, "slots", report),
        actions=_read_stubs(body.get("actions"), report),
        turns=turns,
        trace=_read_trace(body.get("trace"), report),
        language=read_string(body.get("language"), report, "language") if "language" in body else None,
        file=node.file,
        line=node.line,
    )


def _plain_map(body: MapNode, key: str, report: Report) -> dict[str, Any]:
    found = as_map(body.get(key), report, key)
    return found.plain() if found is not None else {}


def _read_now(node: Node | None, report: Report) -> datetime:
    default = datetime(2026, 1, 5, 9, 0)
    if node is None:
        return default
    text = read_string(node, report, "now") or ""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        report.add(node, "bad_value", "now must be a moment such as 2026-12-01T09:00:00")
        return default


def _read_stubs(node: Node | None, report: Report) -> dict[str, Mapping[str, Any]]:
    body = as_map(node, report, "actions")
    found: dict[str, Mapping[str, Any]] = {}
    for name in body or ():
        assert body is not None
        stub = body.get(name)
        if is_empty(stub):
            found[name] = {}
            continue
        spec = as_map(stub, report, f"the stub {name!r}")
        if spec is not None:
            check_keys(spec, STUB_KEYS, report, f"the stub {name!r}")
            found[name] = spec.plain()
    return found


def _read_turn(node: Node, report: Report) -> TestTurn | None:
    body = as_map(node, report, "a turn")
    if body is None:
        return None
    check_keys(body, TURN_KEYS, report, "a turn")
    starts = [k for k in ("user", "event", "silence") if k in body]
    if len(starts) > 1 or (not starts and "object" not in body):
        report.add(node, "bad_turn", "a turn has one of user, event, silence (or an object)")
        return None
    expect = as_map(body.get("expect"), report, "expect")
    if expect is not None:
        check_keys(expect, EXPECT_KEYS, report, "expect")
    event = body.get("event")
    event_value = (
        {"type": event.text} if isinstance(event, ScalarNode) else event.plain() if isinstance(event, MapNode) else None
    )
    silence = body.get("silence")
    silence_value = silence.plain() if silence is not None else None
    if silence is not None and (isinstance(silence_value, bool) or not isinstance(silence_value, (int, float))):
        report.add(silence, "wrong_type", "silence must be a number of seconds")
        silence_value = 0.0
    user = body.get("user")
    return TestTurn(
        user=user.text if isinstance(user, ScalarNode) else None,
        event=event_value,
        silence_s=silence_value,
        thing=_plain_map(body, "object", report) or None,
        vars=_plain_map(body, "vars", report),
        llm=_read_llm(body.get("llm"), report),
        interrupt=_read_interrupt(body.get("interrupt"), report),
        expect=expect.plain() if expect is not None else {},
    )


def _read_llm(node: Node | None, report: Report) -> tuple[Mapping[str, Any], ...]:
    found = []
    for item in as_list(node, report, "llm"):
        body = as_map(item, report, "a completion")
        if body is None:
            continue
        check_keys(body, LLM_KEYS, report, "a completion")
        task = read_string(body.get("task"), report, "task") if "task" in body else None
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
        body = as_map(item, report, "a trace step")
        if body is not None:
            check_keys(body, ("after", "next"), report, "a trace step")
            if not isinstance(body.get("after"), MapNode):
                report.add(item, "bad_trace", "a trace step needs after: {…}")
                continue
            found.append(body.plain())
    return tuple(found)


__all__ = ["EXPECT_KEYS", "Interrupt", "ListNode", "TestCase", "TestTurn", "read_tests"]
