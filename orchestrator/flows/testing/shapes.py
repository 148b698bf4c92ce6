"""What each field of a test file may hold, and the reports of what it holds instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from orchestrator.contracts.dialogue import LlmTask
from orchestrator.flows.reading import check_keys, is_empty
from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode, did_you_mean

Shape = Callable[[Node, Report, str], None]
"""Reports what is wrong with a node; the text is what the node is called in messages."""


def _wrong(node: Node, report: Report, what: str, wanted: str) -> None:
    report.add(node, "wrong_type", f"{what} must be {wanted}, not {node.kind}")


def anything(node: Node, report: Report, what: str) -> None:
    """Take every value."""


def text(node: Node, report: Report, what: str) -> None:
    """Take a text; numbers and words are taken as written."""
    if not isinstance(node, ScalarNode) or is_empty(node):
        _wrong(node, report, what, "a text")


def truth(node: Node, report: Report, what: str) -> None:
    """Take true or false."""
    if not isinstance(node, ScalarNode) or not isinstance(node.value, bool):
        _wrong(node, report, what, "true or false")


def number(*, whole: bool = False) -> Shape:
    """Take a number from 0 on."""

    def check(node: Node, report: Report, what: str) -> None:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or (whole and isinstance(value, float)):
            _wrong(node, report, what, f"a {'whole ' if whole else ''}number")
        elif not 0 <= value < 1e9:
            report.add(node, "out_of_range", f"{what} must be a number from 0 to 999999999")

    return check


def pattern(node: Node, report: Report, what: str) -> None:
    """Take a regular expression."""
    text(node, report, what)
    if not isinstance(node, ScalarNode) or is_empty(node):
        return
    try:
        re.compile(node.text)
    except (re.error, RecursionError, OverflowError) as error:
        at = min(getattr(error, "pos", None) or 0, max(len(node.text) - 1, 0))
        message = f"{what} must be a regular expression, {node.text[:60]!r} is none: {error}"
        report.add_inside(node, at, min(at + 1, len(node.text)), "bad_pattern", message)


def language(node: Node, report: Report, what: str) -> None:
    """Take a language's code."""
    if not isinstance(node, ScalarNode) or not re.fullmatch(r"[a-z]{2}(-[A-Za-z]{2,4})?", node.text):
        report.add(node, "bad_value", f"{what} must be a language such as en or zh")


def optional(shape: Shape) -> Shape:
    """Take null, too."""

    def check(node: Node, report: Report, what: str) -> None:
        if not is_empty(node):
            shape(node, report, what)

    return check


def map_or_text(shape: Shape, wanted: str) -> Shape:
    """Take a text, or a mapping of this shape; `wanted` says so in messages."""

    def check(node: Node, report: Report, what: str) -> None:
        if isinstance(node, MapNode):
            shape(node, report, what)
        elif not isinstance(node, ScalarNode) or is_empty(node):
            _wrong(node, report, what, wanted)

    return check


def listed(item: Shape, things: str, *, alone: bool = False) -> Shape:
    """Take a list; with `alone` a single item without one, too. `things` are the items in messages."""

    def check(node: Node, report: Report, what: str) -> None:
        if isinstance(node, ListNode):
            for entry in node.items:
                item(entry, report, f"an item of {what}")
        elif alone and not is_empty(node):
            item(node, report, what)
        else:
            _wrong(node, report, what, f"a list of {things}")

    return check


def mapping(node: Node, report: Report, what: str) -> None:
    """Take a mapping with any keys; nothing stands for an empty one."""
    if not isinstance(node, MapNode) and not is_empty(node):
        _wrong(node, report, what, "a mapping")


def closed(fields: Mapping[str, Shape], *, needs: Iterable[str] = (), others: str = "error") -> Shape:
    """Take a mapping with these keys; `others` says what any other key is: error, warning or fine."""
    needed = tuple(needs)

    def check(node: Node, report: Report, what: str) -> None:
        if not isinstance(node, MapNode):
            _wrong(node, report, what, "a mapping")
            return
        for key in node:
            if key in fields:
                fields[key](node.entries[key][1], report, key)
            elif others != "fine":
                hint = did_you_mean(key, fields)
                message = f"unknown key {key!r} in {what}"
                report.add(node.key(key), "unknown_key", message, suggestion=hint, severity=others)
        for key in needed:
            if key not in node.entries:
                report.add(node, "missing_key", f"{what} needs {key}")

    return check


def keyed(names: Iterable[str], value: Shape, *, thing: str) -> Shape:
    """Take a mapping whose keys are among `names`; nothing stands for an empty one."""
    known = tuple(names)

    def check(node: Node, report: Report, what: str) -> None:
        mapping(node, report, what)
        if not isinstance(node, MapNode):
            return
        for key in node:
            if key not in known:
                report.add(
                    node.key(key),
                    "unknown_key",
                    f"{what} has no {thing} {key!r}, only {', '.join(known)}",
                    suggestion=did_you_mean(key, known),
                )
            else:
                value(node.entries[key][1], report, f"{what}.{key}")

    return check


def check_fields(node: MapNode, fields: Mapping[str, Shape], report: Report, what: str) -> None:
    """Check the fields that are there, as they are called by themselves; unknown keys are reported."""
    check_keys(node, fields, report, what)
    for key in node:
        if key in fields:
            fields[key](node.entries[key][1], report, key)


_TASKS = tuple(t.value for t in LlmTask)
_TEXTS = listed(text, "texts", alone=True)
_ACTION = map_or_text(
    closed({"name": text, "args": optional(mapping)}, needs=("name",)), "an action's name, or {name, args}"
)
_DROPPED = map_or_text(mapping, "a command's name, a part of the reason, or {command, reason}")
_WORDS = keyed(_TASKS, _TEXTS, thing="kind of model call")

EXPECT: Mapping[str, Shape] = {
    "user_intent": optional(text),
    "bot_intents": _TEXTS,
    "replies": _TEXTS,
    "reply_matches": listed(pattern, "regular expressions", alone=True),
    "heard": text,
    "commands": listed(
        closed(
            {"command": text, "flow": optional(text), "flows": _TEXTS, "slots": mapping},
            needs=("command",),
            others="warning",
        ),
        "commands",
    ),
    "dropped": listed(_DROPPED, "commands that were not taken", alone=True),
    "slots": mapping,
    "vars": mapping,
    "active_flow": optional(text),
    "step": optional(text),
    "paused": _TEXTS,
    "actions": listed(_ACTION, "actions", alone=True),
    "llm_calls": number(whole=True),
    "error": truth,
    "prompt_has": _WORDS,
    "prompt_lacks": _WORDS,
}
"""The keys of `expect`."""

TEXT_LISTS = frozenset({"bot_intents", "replies", "reply_matches", "paused"})
"""Keys of `expect` whose values are texts, also where YAML takes one for a number; one alone is a list of one."""

TEXT_ALONE = frozenset({"user_intent", "heard", "active_flow", "step"})

_STUB_FIELDS: Mapping[str, Shape] = {
    "returns": anything,
    "raises": optional(text),
    "delay_s": optional(number()),
    "increment": optional(text),
    "slots": mapping,
    "messages": optional(_TEXTS),
}
STUB: Mapping[str, Shape] = {
    **_STUB_FIELDS,
    "by_args": optional(listed(closed({"args": mapping, **_STUB_FIELDS}, needs=("args",)), "mappings with args")),
}
"""The keys of a stubbed action."""

OBJECT = closed({"type": text, "id": text, "title": optional(text), "attributes": optional(mapping)}, others="warning")
EVENT = map_or_text(closed({"type": text}, needs=("type",), others="fine"), "a type, or a mapping with a type")
COMPLETION: Mapping[str, Shape] = {"task": anything, "completion": anything, "fails": optional(truth)}
"""The keys of a scripted completion; its `task` is checked by the reader."""
