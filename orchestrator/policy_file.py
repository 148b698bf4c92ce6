"""`policy.yml`: the policy table, the phrases and the times of interruption. All errors at once, with their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from orchestrator.bus.policy import DEFAULT_ROWS, PolicyRow, PolicyTable
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import payload_classes
from orchestrator.contracts.lanes import Lane, PriorityClass
from orchestrator.dialogue.default_phrases import DEFAULT_PHRASES, Phrases
from orchestrator.dialogue.interruption import InterruptionTimes
from orchestrator.dialogue.phrase_book import PhraseBook, phrase_book
from orchestrator.flows.source import ListNode, MapNode, Node, Problem, Report, ScalarNode, did_you_mean, read_source

_SECTIONS = ("events", "phrases", "interruption")
_CELLS = (
    "lane",
    "class",
    "score",
    "expires_after_s",
    "coalesce_key",
    "coalesce_window_s",
    "max_waiting",
    "drop_when_busy",
)
_LANGUAGES = ("en", "zh")
_LEAST_TIME_S = {"quiet_after_stop_s": 0.0}
_USUAL_LEAST_S = 0.1
_MOST_TIME_S = 60

_QUEUED = frozenset(
    {"lane", "class", "score", "expires_after_s", "coalesce_key", "coalesce_window_s", "max_waiting", "drop_when_busy"}
)
_MEANINGFUL: Mapping[str, frozenset[str]] = {
    "input:interrupt": frozenset({"class", "score", "expires_after_s", "coalesce_key"}),
    "input:user": frozenset({"class", "score", "expires_after_s", "max_waiting"}),
    "input:user/speaking": frozenset({"lane", "class", "score", "expires_after_s"}),
    "input:object": frozenset({"class", "score", "expires_after_s", "max_waiting", "drop_when_busy"}),
    "notify": _QUEUED,
    "notify/urgent": _QUEUED - {"drop_when_busy"},
    "external:event": _QUEUED,
    "context:update": _QUEUED,
    "memory:write": _QUEUED,
    "tool:result": frozenset({"class", "score", "expires_after_s"}),
    "output:state": _QUEUED - {"drop_when_busy", "expires_after_s"},
    "device:state": _QUEUED - {"drop_when_busy", "expires_after_s"},
}
"""Which cells mean something for a type.

Reports of what was played, cut or understood only take a score and a class.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The whole file, shipped values where it says nothing."""

    table: PolicyTable = field(default_factory=PolicyTable)
    phrases: Mapping[str, Phrases] = field(default_factory=lambda: DEFAULT_PHRASES)
    times: InterruptionTimes = field(default_factory=InterruptionTimes)

    def book(self, names: tuple[str, ...]) -> PhraseBook:
        """Return the phrases for a character who answers to `names`."""
        return phrase_book(self.phrases, names)


def load_policy(paths: Sequence[Path]) -> Policy:
    """Read the layers in order (shipped first, the user's over it).

    Raises `InputError` policy_invalid listing every problem.
    """
    policy, problems = check_policy(paths)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise InputError("policy_invalid", "\n".join(str(problem) for problem in errors), part="policy")
    return policy


def check_policy(paths: Sequence[Path]) -> tuple[Policy, list[Problem]]:
    """Read the layers; returns what could be read and all problems by place."""
    policy = Policy()
    report = Report()
    for path in paths:
        document = read_source(path)
        report.problems.extend(document.problems)
        if document.root is not None:
            policy = _overlay(policy, document.root, report)
    return policy, report.sorted()


def _overlay(policy: Policy, root: Node, report: Report) -> Policy:
    if not isinstance(root, MapNode):
        report.add(root, "policy_shape", f"expected the sections {', '.join(_SECTIONS)}, got {root.kind}")
        return policy
    for key in root:
        if key not in _SECTIONS:
            report.add(
                root.key(key), "unknown_key", f"unknown section “{key}”", suggestion=did_you_mean(key, _SECTIONS)
            )
    rows = dict(policy.table.rows)
    section = root.get("events")
    if section is not None:
        _read_events(section, rows, report)
    phrases = dict(policy.phrases)
    section = root.get("phrases")
    if section is not None:
        _read_phrases(section, phrases, report)
    times = policy.times
    section = root.get("interruption")
    if section is not None:
        times = _read_times(section, times, report)
    return Policy(table=PolicyTable(rows=rows), phrases=phrases, times=times)


def _mapping(node: Node, report: Report, what: str) -> MapNode | None:
    if isinstance(node, MapNode):
        return node
    report.add(node, "policy_shape", f"{what} must be a mapping, got {node.kind}")
    return None


def _read_events(node: Node, rows: dict[str, PolicyRow], report: Report) -> None:
    section = _mapping(node, report, "“events”")
    if section is None:
        return
    known = (*DEFAULT_ROWS, *payload_classes())
    for name in section:
        if name not in known:
            report.add(
                section.key(name),
                "unknown_event",
                f"unknown event type “{name}”",
                suggestion=did_you_mean(name, DEFAULT_ROWS),
            )
            continue
        value = section.get(name)
        cells = _mapping(value, report, f"the row “{name}”") if value is not None else None
        if cells is not None:
            base = rows.get(name) or PolicyRow(lane=Lane.BACKGROUND, score=10)
            rows[name] = _read_row(name, cells, base, report)


def _read_row(name: str, cells: MapNode, row: PolicyRow, report: Report) -> PolicyRow:
    meaningful = _MEANINGFUL.get(name, frozenset({"class", "score"}))
    for cell in cells:
        node = cells.get(cell)
        if cell not in _CELLS:
            report.add(cells.key(cell), "unknown_key", f"unknown cell “{cell}”", suggestion=did_you_mean(cell, _CELLS))
        elif node is None or not isinstance(node, ScalarNode):
            report.add(cells.key(cell), "policy_value", f"“{cell}” takes one value")
        elif cell not in meaningful and not _is_shipped_value(row, cell, node.value):
            report.add(cells.key(cell), "policy_no_meaning", f"“{cell}” has no meaning for {name}")
        else:
            row = _with_cell(name, row, cell, node, report)
    return row


def _is_shipped_value(row: PolicyRow, cell: str, value: Any) -> bool:
    """Whether a cell that can't be changed only repeats what is so anyway."""
    present = getattr(row, "priority_class" if cell == "class" else cell)
    return bool(present == value or (present is not None and str(present) == str(value)))


def _with_cell(name: str, row: PolicyRow, cell: str, node: ScalarNode, report: Report) -> PolicyRow:
    if cell == "lane":
        return _with_lane(row, node, report)
    if cell == "class":
        return _with_class(row, node, report)
    if cell == "coalesce_key":
        return _with_coalesce_key(name, row, node, report)
    return _with_value(row, cell, node, report)


def _with_lane(row: PolicyRow, node: ScalarNode, report: Report) -> PolicyRow:
    if node.value in set(Lane):
        return replace(row, lane=Lane(node.value))
    report.add(node, "policy_value", f"unknown lane “{node.text}”", suggestion=did_you_mean(node.text, list(Lane)))
    return row


def _with_class(row: PolicyRow, node: ScalarNode, report: Report) -> PolicyRow:
    names = [member.name.lower() for member in PriorityClass]
    if isinstance(node.value, str) and node.value in names:
        return replace(row, priority_class=PriorityClass[node.value.upper()])
    report.add(node, "policy_value", f"unknown class “{node.text}”", suggestion=did_you_mean(node.text, names))
    return row


def _is_number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _with_value(row: PolicyRow, cell: str, node: ScalarNode, report: Report) -> PolicyRow:
    """Set a cell that is a number or a switch, if its value is in range."""
    value = node.value
    rules: Mapping[str, tuple[bool, str]] = {
        "score": (_is_whole(value, 0, 1000), "a whole number from 0 to 1000"),
        "expires_after_s": (value is None or _is_number(value, 0, 1e7), "a number of seconds, 0 or more"),
        "coalesce_window_s": (_is_number(value, 0, 60), "a number of seconds from 0 to 60"),
        "max_waiting": (value is None or _is_whole(value, 1, 10_000), "a whole number from 1 to 10000"),
        "drop_when_busy": (isinstance(value, bool), "true or false"),
    }
    is_right, expected = rules[cell]
    if not is_right:
        report.add(node, "policy_value", f"“{cell}” is {expected}")
        return row
    is_time = cell.endswith("_s") and value is not None
    changes: dict[str, Any] = {cell: float(value) if is_time else value}
    return replace(row, **changes)


def _with_coalesce_key(name: str, row: PolicyRow, node: ScalarNode, report: Report) -> PolicyRow:
    payload = payload_classes()[name.split("/")[0]]
    allowed = ["type", *(f.name for f in fields(payload))]
    if node.value is None or node.value in allowed:
        return replace(row, coalesce_key=node.value)
    report.add(
        node,
        "policy_value",
        f"“coalesce_key” is “type” or a field of {name}: {', '.join(allowed[1:])}",
        suggestion=did_you_mean(node.text, allowed),
    )
    return row


def _read_phrases(node: Node, phrases: dict[str, Phrases], report: Report) -> None:
    section = _mapping(node, report, "“phrases”")
    if section is None:
        return
    for kind in section:
        if kind not in DEFAULT_PHRASES:
            report.add(
                section.key(kind),
                "unknown_key",
                f"unknown class of phrases “{kind}”",
                suggestion=did_you_mean(kind, DEFAULT_PHRASES),
            )
            continue
        value = section.get(kind)
        groups = _mapping(value, report, f"“{kind}”") if value is not None else None
        if groups is None:
            continue
        merged = dict(phrases[kind])
        for language in groups:
            if language not in _LANGUAGES:
                report.add(
                    groups.key(language),
                    "unknown_key",
                    f"unknown language “{language}”",
                    suggestion=did_you_mean(language, _LANGUAGES),
                )
                continue
            merged[language] = _texts(groups.get(language), report)
        phrases[kind] = merged


def _texts(node: Node | None, report: Report) -> tuple[str, ...]:
    if not isinstance(node, ListNode):
        if node is not None:
            report.add(node, "policy_value", "expected a list of phrases")
        return ()
    found: list[str] = []
    for item in node.items:
        if isinstance(item, ScalarNode) and item.text.strip():
            found.append(item.text)
        else:
            report.add(item, "policy_value", "a phrase is a text")
    return tuple(found)


def _read_times(node: Node, times: InterruptionTimes, report: Report) -> InterruptionTimes:
    section = _mapping(node, report, "“interruption”")
    if section is None:
        return times
    names = [f.name for f in fields(InterruptionTimes)]
    for key in section:
        value = section.get(key)
        least_s = _LEAST_TIME_S.get(key, _USUAL_LEAST_S)
        if key not in names:
            report.add(section.key(key), "unknown_key", f"unknown time “{key}”", suggestion=did_you_mean(key, names))
        elif isinstance(value, ScalarNode) and _is_number(value.value, least_s, _MOST_TIME_S):
            times = replace(times, **{key: float(value.value)})
        elif value is not None:
            report.add(value, "policy_value", f"“{key}” is a number of seconds from {least_s:g} to {_MOST_TIME_S}")
    return times


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of `policy.yml`."""
    cell = {
        "lane": {"enum": [lane.value for lane in Lane]},
        "class": {"enum": [member.name.lower() for member in PriorityClass]},
        "score": {"type": "integer", "minimum": 0, "maximum": 1000},
        "expires_after_s": {"type": ["number", "null"], "minimum": 0},
        "coalesce_key": {"type": ["string", "null"]},
        "coalesce_window_s": {"type": "number", "minimum": 0, "maximum": 60},
        "max_waiting": {"type": ["integer", "null"], "minimum": 1},
        "drop_when_busy": {"type": "boolean"},
    }
    texts = {
        "type": "object",
        "properties": {lang: {"type": "array", "items": {"type": "string"}} for lang in _LANGUAGES},
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "policy.yml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "events": {
                "type": "object",
                "properties": {
                    name: {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            c: cell[c] for c in _CELLS if c in _MEANINGFUL.get(name, frozenset({"class", "score"}))
                        },
                    }
                    for name in DEFAULT_ROWS
                },
            },
            "phrases": {
                "type": "object",
                "additionalProperties": False,
                "properties": dict.fromkeys(DEFAULT_PHRASES, texts),
            },
            "interruption": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    f.name: {
                        "type": "number",
                        "minimum": _LEAST_TIME_S.get(f.name, _USUAL_LEAST_S),
                        "maximum": _MOST_TIME_S,
                    }
                    for f in fields(InterruptionTimes)
                },
            },
        },
    }
