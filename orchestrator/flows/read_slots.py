"""The `slots` section."""

from __future__ import annotations

import re
from typing import Any

from orchestrator.flows.model import SLOT_TYPES, Choice, Slot
from orchestrator.flows.patterns import parse_pattern
from orchestrator.flows.reading import as_map, check_keys, is_empty, read_bool, read_string, read_word
from orchestrator.flows.slot_values import coerce
from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode
from orchestrator.flows.texts import Text, read_text

SLOT_KEYS = ("type", "label", "description", "pattern", "default", "persist", "filled_by", "choices")
ID = re.compile(r"[A-Za-z\u3400-\u9fff][\w\-]*")


def read_slot(slot_id: str, key: ScalarNode, node: Node, report: Report) -> Slot:
    """Read one slot's definition; what is faulty falls back to its default."""
    check_id(key, report, "slot")
    body = as_map(node, report, f"the slot {slot_id!r}")
    if body is None:
        return Slot(id=slot_id)
    check_keys(body, SLOT_KEYS, report, f"the slot {slot_id!r}")
    kind = read_word(body.get("type"), report, "the type of a slot", SLOT_TYPES, "text")
    choices = _read_choices(body.get("choices"), report)
    if kind == "choice" and not choices:
        report.add(key, "missing_choices", f"the choice slot {slot_id!r} needs choices")
        kind = "text"
    elif kind != "choice" and "choices" in body:
        report.add(body.key("choices"), "unexpected_choices", "only a slot of type choice has choices")
        choices = ()
    slot = Slot(
        id=slot_id, type=kind, label=_optional_text(body, "label", report),
        description=_optional_text(body, "description", report),
        pattern=_read_pattern(body, kind, report), persist=read_bool(body.get("persist"), report, "persist", False),
        filled_by=read_word(body.get("filled_by"), report, "filled_by", ("user", "action"), "user"), choices=choices,
    )  # fmt: skip
    return _with_default(slot, body, report)


def check_id(key: ScalarNode, report: Report, what: str) -> None:
    """Report an id that no condition could name."""
    if not ID.fullmatch(key.text) or len(key.text) > 80:
        report.add(
            key, "bad_id", f"a {what}'s id begins with a letter and has letters, digits, - and _: {key.text[:40]!r}"
        )


def _optional_text(body: MapNode, key: str, report: Report) -> Text | None:
    node = body.get(key)
    return None if is_empty(node) else read_text(node, report, key)


def _read_pattern(body: MapNode, kind: str, report: Report) -> str | None:
    node = body.get("pattern")
    if node is None:
        return None
    pattern = read_string(node, report, "pattern")
    if kind not in ("text", "any"):
        report.add(node, "unexpected_pattern", f"a pattern is for text slots, not for {kind}")
        return None
    if pattern is None:
        return None
    try:
        parse_pattern(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        at = getattr(error, "pos", None) or 0
        assert isinstance(node, ScalarNode)
        report.add_inside(node, at, min(at + 1, len(node.text)), "bad_pattern", f"the pattern is faulty: {error}")
        return None
    return pattern


def _read_choices(node: Node | None, report: Report) -> tuple[Choice, ...]:
    found: list[Choice] = []
    said = _Said(report)
    if isinstance(node, MapNode):
        for value in node:
            found.append(Choice(value=node.key(value).value, names=_names(node.get(value), report)))
            said.take(found[-1], node.key(value), node.get(value))
    elif isinstance(node, ListNode):
        for item in node.items:
            if isinstance(item, ScalarNode) and not is_empty(item):
                found.append(Choice(value=item.value, names=()))
                said.take(found[-1], item, None)
            elif isinstance(item, MapNode) and not is_empty(item.get("value")):
                check_keys(item, ("value", "names"), report, "a choice")
                chosen = item.get("value")
                assert chosen is not None
                found.append(Choice(value=chosen.plain(), names=_names(item.get("names"), report)))
                said.take(found[-1], chosen, item.get("names"))
            else:
                report.add(item, "wrong_type", "a choice is a word, or {value: …, names: […]}")
    elif node is not None:
        report.add(node, "wrong_type", f"choices must be a list or a mapping, not {node.kind}")
    return tuple(found)


class _Said:
    """What the choices of a slot are called, to tell when one word means two of them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.values: set[str] = set()
        self.meant: dict[str, str] = {}

    def take(self, choice: Choice, place: Node, names: Node | None) -> None:
        """Note a choice; report that it stands twice, or each word that another one has, too."""
        value = str(choice.value)
        if value in self.values:
            self.report.add(place, "duplicate_choice", f"the choice {value!r} stands twice")
            return
        self.values.add(value)
        items = names.items if isinstance(names, ListNode) else [names]
        for item in [place, *(i for i in items if isinstance(i, ScalarNode))]:
            text = item.text if isinstance(item, ScalarNode) else value
            other = self.meant.setdefault(" ".join(text.casefold().split()), value)
            if other != value:
                message = f"{text!r} names both {other!r} and {value!r}, so it is taken for neither"
                self.report.add(item, "ambiguous_choice", message, severity="warning")


def _names(node: Node | None, report: Report) -> tuple[str, ...]:
    if is_empty(node):
        return ()
    items = node.items if isinstance(node, ListNode) else [node]
    for item in items:
        if item is not None and (not isinstance(item, ScalarNode) or not item.text.strip()):
            report.add(item, "wrong_type", "a name of a choice must be a text that is not empty")
    return tuple(i.text for i in items if isinstance(i, ScalarNode) and i.text.strip())


def _with_default(slot: Slot, body: MapNode, report: Report) -> Slot:
    node = body.get("default")
    if node is None or is_empty(node):
        return slot
    given: Any = node.plain()
    if slot.type == "text" and isinstance(node, ScalarNode):
        given = node.text
    result = coerce(slot, given)
    if not result.ok:
        report.add(node, "bad_default", f"the default does not fit: {result.reason}")
        return slot
    values = {name: getattr(slot, name) for name in Slot.__slots__}
    return Slot(**{**values, "default": result.value})
