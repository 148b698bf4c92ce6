"""Texts an author writes: one string, or one per language (`{en: …, zh: …}`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.flows.expressions import (
    BASE_NAMES,
    Condition,
    Outcome,
    Read,
    Template,
    compile_condition,
    compile_template,
    report_into,
)
from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode

PLACEHOLDER = re.compile(r"\{([A-Za-z_\u3400-\u9fff][\w\-]*)\}")
"""A place for a slot's value in an example: `{slot}`."""
LANGUAGES = ("en", "zh")
_LANGUAGE = re.compile(r"[a-z]{2}(-[A-Za-z]{2,4})?")
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


def language_of(text: str, default: str | None = None) -> str | None:
    """Return `zh` when the text has Chinese characters, `en` when it has Latin letters, else `default`."""
    if _CJK.search(text):
        return "zh"
    return "en" if re.search(r"[A-Za-z]{2}", text) else default


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text in one or more languages; the key None stands for "whatever the language"."""

    variants: Mapping[str | None, Template]

    def pick(self, language: str | None) -> Template:
        """Return the variant for `language`, else English, else the first."""
        for key in (language, (language or "")[:2], None, "en"):
            if key in self.variants:
                return self.variants[key]
        return next(iter(self.variants.values()))

    def render(self, names: Mapping[str, Any], language: str | None) -> Outcome:
        """Return the text in `language`, rendered."""
        return self.pick(language).render(names)

    def raw(self, language: str | None = None) -> str:
        """Return the text as the author wrote it."""
        return self.pick(language).source

    def all_raw(self) -> tuple[str, ...]:
        """Return every variant as written."""
        return tuple(dict.fromkeys(t.source for t in self.variants.values()))

    @property
    def reads(self) -> tuple[Read, ...]:
        """What all variants read."""
        return tuple(r for t in self.variants.values() for r in t.reads)


def is_languages(node: Node) -> bool:
    """Whether a node is a mapping by language."""
    return isinstance(node, MapNode) and bool(node.entries) and all(_LANGUAGE.fullmatch(k) for k in node)


def warn_languages(node: MapNode, report: Report, what: str) -> None:
    """Warn of each language that Mynah does not understand, so that its variant is never the user's own."""
    for key in node:
        if key[:2] not in LANGUAGES:
            report.add(
                node.key(key),
                "unknown_language",
                f"{what} has a text for {key!r}, but Mynah speaks {' and '.join(LANGUAGES)} only",
                suggestion={"cn": "zh", "ch": "zh", "us": "en", "gb": "en", "uk": "en"}.get(key[:2]),
                severity="warning",
            )


def read_template(node: Node | None, report: Report, what: str, names: frozenset[str] = BASE_NAMES) -> Template | None:
    """Compile a scalar as a template."""
    if not isinstance(node, ScalarNode) or (node.value is None and not node.style):
        if node is not None:
            report.add(node, "wrong_type", f"{what} must be text, not {node.kind}")
        return None
    template, problems = compile_template(node.text, names=names)
    report_into(report, node, problems)
    return template


def read_text(node: Node | None, report: Report, what: str, names: frozenset[str] = BASE_NAMES) -> Text | None:
    """Compile a text: a scalar or a mapping by language."""
    if isinstance(node, MapNode):
        if not is_languages(node):
            report.add(node, "wrong_type", f"{what} must be text or a mapping by language, as {{en: …, zh: …}}")
            return None
        warn_languages(node, report, what)
        variants: dict[str | None, Template] = {}
        for key, (_, value) in node.entries.items():
            template = read_template(value, report, what, names)
            if template is not None:
                variants[key] = template
        return Text(variants=variants) if variants else None
    template = read_template(node, report, what, names)
    return Text(variants={None: template}) if template is not None else None


def read_condition(node: Node | None, report: Report, what: str = "a condition") -> Condition | None:
    """Compile a scalar as a condition; `true` and numbers are conditions, too."""
    if not isinstance(node, ScalarNode):
        if node is not None:
            report.add(node, "wrong_type", f"{what} must be an expression, not {node.kind}")
        return None
    condition, problems = compile_condition(node.text)
    report_into(report, node, problems)
    return condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of `args` or `set_slots`: plain data in which every string is a template that may keep its type.

    `node` is a Template, a plain scalar, a list or a dict of `Value`.
    """

    node: Any
    reads: tuple[Read, ...] = ()

    def evaluate(self, names: Mapping[str, Any]) -> tuple[Any, tuple[str, ...], bool]:
        """Return the value, the traces, and whether everything could be evaluated."""
        if isinstance(self.node, Template):
            outcome = self.node.evaluate(names)
            return outcome.value, (*outcome.traces, *(f"{u} is unset" for u in outcome.unset)), outcome.ok
        if isinstance(self.node, dict):
            found = {k: v.evaluate(names) for k, v in self.node.items()}
            traces = tuple(t for _, ts, _ in found.values() for t in ts)
            return {k: v for k, (v, _, _) in found.items()}, traces, all(ok for _, _, ok in found.values())
        if isinstance(self.node, list):
            parts = [v.evaluate(names) for v in self.node]
            return [v for v, _, _ in parts], tuple(t for _, ts, _ in parts for t in ts), all(ok for _, _, ok in parts)
        return self.node, (), True


def read_value(node: Node, report: Report, names: frozenset[str] = BASE_NAMES) -> Value:
    """Compile plain data with templates inside."""
    if isinstance(node, MapNode):
        entries = {k: read_value(v, report, names) for k, (_, v) in node.entries.items()}
        return Value(node=entries, reads=tuple(r for v in entries.values() for r in v.reads))
    if isinstance(node, ListNode):
        items = [read_value(v, report, names) for v in node.items]
        return Value(node=items, reads=tuple(r for v in items for r in v.reads))
    assert isinstance(node, ScalarNode)
    if isinstance(node.value, str):
        template = read_template(node, report, "a value", names)
        if template is not None:
            return Value(node=template, reads=template.reads)
        return Value(node=None)
    return Value(node=node.value)
