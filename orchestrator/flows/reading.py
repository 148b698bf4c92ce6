"""Helpers to read typed fields out of nodes, with a problem for everything that is not as it should be."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode, did_you_mean


def is_empty(node: Node | None) -> bool:
    """Whether a node is missing or null."""
    return node is None or (isinstance(node, ScalarNode) and node.value is None and not node.style)


def as_map(node: Node | None, report: Report, what: str) -> MapNode | None:
    """Return the node as a mapping, or report that it is none."""
    if isinstance(node, MapNode):
        return node
    if node is not None and not is_empty(node):
        report.add(node, "wrong_type", f"{what} must be a mapping, not {node.kind}")
    return None


def as_list(node: Node | None, report: Report, what: str) -> list[Node]:
    """Return the items of a list; empty when missing."""
    if isinstance(node, ListNode):
        return node.items
    if node is not None and not is_empty(node):
        report.add(node, "wrong_type", f"{what} must be a list, not {node.kind}")
    return []


def check_keys(node: MapNode, known: Iterable[str], report: Report, what: str) -> None:
    """Report keys that are not known."""
    names = tuple(known)
    for key in node:
        if key not in names:
            report.add(
                node.key(key), "unknown_key", f"unknown key {key!r} in {what}", suggestion=did_you_mean(key, names)
            )


def read_string(node: Node | None, report: Report, what: str) -> str | None:
    """Return a scalar's text; numbers and words are taken as written."""
    if isinstance(node, ScalarNode) and not is_empty(node):
        return node.text
    if node is not None:
        report.add(node, "wrong_type", f"{what} must be text, not {node.kind}")
    return None


_YES = {"yes": "true", "on": "true", "no": "false", "off": "false", "是": "true", "否": "false"}


def read_bool(node: Node | None, report: Report, what: str, default: bool) -> bool:
    """Return a boolean."""
    if node is None:
        return default
    if isinstance(node, ScalarNode) and isinstance(node.value, bool):
        return node.value
    hint = _YES.get(node.text.casefold()) if isinstance(node, ScalarNode) else None
    report.add(node, "wrong_type", f"{what} must be true or false", suggestion=hint)
    return default


def read_number(
    node: Node | None, report: Report, what: str, default: float, *, low: float, high: float, whole: bool = False
) -> float:
    """Return a number within bounds."""
    if node is None:
        return default
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (whole and not isinstance(value, int)):
        report.add(node, "wrong_type", f"{what} must be a {'whole ' if whole else ''}number")
        return default
    if not low <= value <= high:
        report.add(node, "out_of_range", f"{what} must be from {low:g} to {high:g}")
        return default
    return value


def read_word(node: Node | None, report: Report, what: str, known: Iterable[str], default: str) -> str:
    """Return one of the known words."""
    if node is None:
        return default
    names = tuple(known)
    word = node.text if isinstance(node, ScalarNode) else ""
    if word in names:
        return word
    report.add(node, "unknown_type", f"{what} must be one of {', '.join(names)}", suggestion=did_you_mean(word, names))
    return default
