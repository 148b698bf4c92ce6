"""Layers of configuration files → one checked `FlowConfig`. The editor, the checker and the runtime all come here.

Within a layer an id stands once; a later layer overlays an earlier one by id. Faulty flows and rails are reported and
left out, so that what is good goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.flows.expressions import compile_condition, compile_template, report_into
from orchestrator.flows.model import Flow, FlowConfig, Slot
from orchestrator.flows.read_flows import FlowChecker, RawFlow, read_flow
from orchestrator.flows.read_slots import read_slot
from orchestrator.flows.reading import as_map
from orchestrator.flows.source import Document, MapNode, Node, Problem, Report, ScalarNode, parse_source, read_source

NOT_FLOWS = frozenset({"policy.yml", "persona.yml", "policy.yaml", "persona.yaml"})
"""Files of the same folder that have their own readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The files of one folder, or an inline configuration."""

    documents: tuple[Document, ...]

    @classmethod
    def of_folder(cls, folder: Path, *, shown: str | None = None, texts: Mapping[str, str] | None = None) -> Layer:
        """Read every flow file of a folder; `texts` replaces files by name (what an editor has not saved yet)."""
        unsaved = dict(texts or {})
        names = {p.name for p in folder.glob("*.y*ml") if p.is_file()} if folder.is_dir() else set()
        documents = []
        for name in sorted((names | set(unsaved)) - NOT_FLOWS):
            label = f"{shown}/{name}" if shown else str(folder / name)
            if name in unsaved:
                documents.append(parse_source(unsaved[name], label))
            else:
                documents.append(read_source(folder / name, label))
        return cls(documents=tuple(documents))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> Layer:
        """Parse texts by file name."""
        return cls(documents=tuple(parse_source(text, name) for name, text in texts.items()))

    @classmethod
    def of_node(cls, node: Node) -> Layer:
        """Take an inline configuration that was already parsed."""
        return cls(documents=(Document(file=node.file, root=node, problems=()),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What loading came to. `problems` hold warnings, too."""

    config: FlowConfig
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that are errors."""
        return tuple(p for p in self.problems if p.severity == "error")


def load_config(layers: Sequence[Layer], *, actions: Container[str] | None = None) -> Loaded:
    """Merge and check. `actions` are the names that are registered; None leaves them unchecked."""
    report = Report()
    for layer in layers:
        for document in layer.documents:
            report.problems.extend(document.problems)
    fragments = [[_Fragment(d.root, report) for d in layer.documents if d.root is not None] for layer in layers]
    slot_entries = _merge(fragments, "slots", report)
    flow_entries = _merge(fragments, "flows", report)
    slots: dict[str, Slot] = {name: read_slot(name, key, node, report) for name, (key, node) in slot_entries.items()}
    raws: dict[str, RawFlow] = {}
    for name, (key, node) in flow_entries.items():
        raw = read_flow(name, key, node, report)
        if raw is not None:
            raws[name] = raw
    FlowChecker(raws, slots, slot_entries.keys(), actions, report).check_all()
    rails = _build_rails(fragments, report, actions, flow_entries, slots)
    flows = _sound(raws)
    settings = getattr(rails, "settings", None)
    config = FlowConfig(
        slots=slots, flows=flows, rails=rails,
        embeddings_only=getattr(settings, "embeddings_only", True),
        similarity_threshold=getattr(settings, "similarity_threshold", None),
        similarity_scale=getattr(settings, "similarity_scale", "cosine"), margin=getattr(settings, "margin", 0.03),
    )  # fmt: skip
    return Loaded(config=config, problems=tuple(report.sorted()))


class Expressions:
    """Checks conditions and templates of sections that other packages read."""

    def condition(self, node: ScalarNode, report: Report) -> None:
        """Check an expression."""
        report_into(report, node, compile_condition(node.text)[1])

    def template(self, node: ScalarNode, report: Report) -> None:
        """Check a text with `{{ … }}`."""
        report_into(report, node, compile_template(node.text)[1])


class _Fragment:
    """One file's sections; the rails' part is read by the rails' own reader."""

    def __init__(self, root: Node, report: Report) -> None:
        from orchestrator.rails.validate import read_fragment  # the rails import this package's leaves

        self.root = root
        self.rails = read_fragment(root, report, also=("slots", "flows"))

    def section(self, name: str, report: Report) -> MapNode | None:
        node = self.root.get(name) if isinstance(self.root, MapNode) else None
        return as_map(node, report, name)


def _merge(fragments: list[list[_Fragment]], section: str, report: Report) -> dict[str, tuple[ScalarNode, Node]]:
    merged: dict[str, tuple[ScalarNode, Node]] = {}
    for layer in fragments:
        seen: dict[str, ScalarNode] = {}
        for fragment in layer:
            body = fragment.section(section, report)
            for name in body or ():
                assert body is not None
                key, node = body.entries[name]
                if name in seen:
                    first = seen[name]
                    report.add(
                        key, "duplicate_id", f"{name!r} stands twice in {section}; first in {first.file}:{first.line}"
                    )
                    continue
                seen[name] = key
                merged[name] = (key, node)
    return merged


def _build_rails(
    fragments: list[list[_Fragment]],
    report: Report,
    actions: Container[str] | None,
    flows: Container[str],
    slots: Container[str],
) -> Any:
    from orchestrator.rails.validate import build

    build_rails: Callable[..., Any] = build
    return build_rails(
        [[f.rails for f in layer] for layer in fragments],
        report,
        expressions=Expressions(),
        actions=actions,
        flows=flows,
        slots=slots,
    )


def _sound(raws: Mapping[str, RawFlow]) -> dict[str, Flow]:
    """Return the flows without errors, and without calls to faulty ones."""
    good = {name: raw.flow for name, raw in raws.items() if raw.flow is not None and not raw.is_faulty}
    changed = True
    while changed:
        changed = False
        for name, flow in list(good.items()):
            called = [getattr(s, "flow", None) for s in flow.steps.values() if s.type == "call"]
            if any(c not in good for c in called):
                del good[name]
                changed = True
    return good
