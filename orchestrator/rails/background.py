"""Sentences that belong to no intent: thresholds are measured against them, and an intent has to be nearer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator.contracts.errors import InputError
from orchestrator.flows.problems import Report, did_you_mean
from orchestrator.flows.source import ListNode, MapNode, Node, ScalarNode, read_source
from orchestrator.rails.language import language_of

SHIPPED = Path(__file__).with_name("background.yml")
_KINDS = ("ordinary", "near_misses", "other_jobs")
_LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """Sentences by kind.

    `ordinary` is small talk, the only part that calibrates: the others would make thresholds too strict for it.
    `near_misses` are worded like an intent and mean something else, or are short answers. `other_jobs` have something
    done: they mean no rail, but may well mean a task.
    """

    ordinary: tuple[str, ...]
    near_misses: tuple[str, ...]
    other_jobs: tuple[str, ...]

    @property
    def rivals(self) -> tuple[str, ...]:
        """What an intent has to beat without being calibrated by it."""
        return (*self.near_misses, *self.other_jobs)


@cache
def shipped() -> Background:
    """Return the sentences that ship with the program, read once. Raises `InputError`."""
    return read_background(SHIPPED)


def read_background(path: Path) -> Background:
    """Read a file of sentences by kind and language. Raises `InputError` with the first mistake and its place."""
    document = read_source(path)
    report = Report()
    report.problems.extend(document.problems)
    found: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    seen: set[str] = set()
    root = document.root
    for kind, by_language in _entries(root, _KINDS, report):
        for language, texts in _entries(by_language, _LANGUAGES, report):
            for node in texts.items if isinstance(texts, ListNode) else [texts]:
                text = node.value if isinstance(node, ScalarNode) else None
                if not isinstance(text, str) or language_of(text) != language:
                    report.add(node, "not_a_sentence", f"expected a sentence in {language}")
                elif text in seen:
                    report.add(node, "doubled", f"{text!r} stands there twice")
                else:
                    seen.add(text)
                    found[kind].append(text)
    if report.problems or root is None:
        raise InputError("background_invalid", str(report.problems[0]) if report.problems else f"{path}: is empty")
    return Background(**{kind: tuple(texts) for kind, texts in found.items()})


def _entries(node: Node | None, keys: tuple[str, ...], report: Report) -> list[tuple[str, Node]]:
    """Return the values of exactly these keys; everything else is a problem."""
    if not isinstance(node, MapNode):
        if node is not None:
            report.add(node, "not_a_mapping", f"expected a mapping with {', '.join(keys)}, not {node.kind}")
        return []
    for key in node:
        if key not in keys:
            report.add(node.key(key), "unknown_key", f"unknown key {key!r}", suggestion=did_you_mean(key, keys))
    for key in keys:
        if key not in node.entries:
            report.add(node, "missing_key", f"{key} is missing")
    return [(key, node.entries[key][1]) for key in keys if key in node.entries]
