"""What a file's text is about: its flows, rails and the like with their lines, and their graphs. Knows no Qt.

Built from the tree of nodes, not from the checked model, so that a flow with faults is drawn as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.flows.source import Document, ListNode, MapNode, Node, ScalarNode

_SECTIONS = ("slots", "flows", "user_intents", "bot_messages", "rails")
_MAX_DETAIL = 60
_RAIL_KINDS = ("user", "event", "bot", "say", "do", "set", "if", "branch", "extract", "call", "stop")
_MAX_NODES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A step. `line` and `end_line` are where its text stands; `kind` is the step's type."""

    id: str
    kind: str
    title: str
    detail: str = ""
    line: int = 1
    end_line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """A link. `kind` is next, error or give_up."""

    source: str
    target: str
    label: str = ""
    kind: str = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The graph of a flow or a rail (`kind`)."""

    kind: str
    id: str
    line: int
    end_line: int
    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineItem:
    """A named thing. `kind` is the section, or `step`; `parent` the flow of a step."""

    kind: str
    id: str
    line: int
    end_line: int
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Everything named in one text, in its order."""

    items: tuple[OutlineItem, ...] = ()
    graphs: tuple[Graph, ...] = ()

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the ids of a section."""
        return tuple(item.id for item in self.items if item.kind == kind)

    def steps(self, flow: str) -> tuple[str, ...]:
        """Return the step ids of a flow."""
        return tuple(item.id for item in self.items if item.kind == "step" and item.parent == flow)

    def graph_at(self, line: int) -> Graph | None:
        """Return the graph of the flow or rail that `line` is in."""
        return next((g for g in self.graphs if g.line <= line <= g.end_line), None)


def outline_of(document: Document) -> Outline:
    """Return the outline; empty for a text that is no YAML."""
    root = document.root
    if not isinstance(root, MapNode):
        return Outline()
    items: list[OutlineItem] = []
    graphs: list[Graph] = []
    for section in _SECTIONS:
        body = root.get(section)
        if not isinstance(body, MapNode):
            continue
        for name, (key, value) in body.entries.items():
            end = max(key.line, _last_line(value))
            items.append(OutlineItem(kind=section, id=name, line=key.line, end_line=end))
            if section == "flows" and isinstance(value, MapNode):
                graph = _flow_graph(name, key, value)
                items += [
                    OutlineItem(kind="step", id=n.id, line=n.line, end_line=n.end_line, parent=name)
                    for n in graph.nodes
                ]
                graphs.append(graph)
            elif section == "rails" and isinstance(value, MapNode):
                graphs.append(_rail_graph(name, key, value))
    return Outline(items=tuple(sorted(items, key=lambda i: i.line)), graphs=tuple(graphs))


def _last_line(node: Node) -> int:
    # A block ends where the next token stands; its last line is the one before, unless it ends within a line.
    return node.end_line if node.end_col > 1 else max(node.line, node.end_line - 1)


def _text(node: Node | None) -> str:
    return node.text if isinstance(node, ScalarNode) else ""


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_DETAIL else flat[: _MAX_DETAIL - 1] + "…"


def _words(node: Node | None) -> str:
    """Return the first text of a response, a text per language, or a scalar."""
    while isinstance(node, MapNode):
        inner = node.get("text")
        if inner is None:
            inner = next((value for _, value in node.entries.values()), None)
        node = inner
    return _short(_text(node))


# --- flows -----------------------------------------------------------------------------------------------


def _flow_graph(name: str, key: ScalarNode, body: MapNode) -> Graph:
    steps = body.get("steps")
    found = [s for s in (steps.items if isinstance(steps, ListNode) else []) if isinstance(s, MapNode)][:_MAX_NODES]
    nodes: dict[str, GraphNode] = {}
    edges: list[GraphEdge] = []
    for step in found:
        step_id = _text(step.get("id")) or f"line {step.line}"
        kind = _text(step.get("type"))
        nodes.setdefault(
            step_id,
            GraphNode(
                id=step_id,
                kind=kind,
                title=step_id,
                detail=_flow_detail(kind, step),
                line=step.line,
                end_line=_last_line(step),
            ),
        )
        edges += _flow_edges(step_id, step)
    known = [e for e in dict.fromkeys(edges) if e.target in nodes]
    return Graph(
        kind="flow", id=name, line=key.line, end_line=max(key.line, _last_line(body)), nodes=tuple(nodes.values()),
        edges=tuple(known),
    )  # fmt: skip


def _flow_detail(kind: str, step: MapNode) -> str:
    if kind == "collect":
        return _short(f"{_text(step.get('slot_name'))}? {_words(step.get('response'))}")
    if kind == "action":
        action = _text(step.get("action"))
        return _words(step.get("args")) if action == "action_response" else _short(action)
    if kind == "set_slots":
        slots = step.get("slots")
        return _short(", ".join(slots.entries)) if isinstance(slots, MapNode) else ""
    return _short(_text(step.get("flow")) if kind == "call" else _text(step.get("description")))


def _flow_edges(step_id: str, step: MapNode) -> list[GraphEdge]:
    edges: list[GraphEdge] = []
    following = step.get("next")
    if isinstance(following, ScalarNode) and following.text:
        edges.append(GraphEdge(source=step_id, target=following.text))
    for branch in following.items if isinstance(following, ListNode) else ():
        if not isinstance(branch, MapNode):
            edges.append(GraphEdge(source=step_id, target=_text(branch)))
        elif "then" in branch:
            edges.append(
                GraphEdge(source=step_id, target=_text(branch.get("then")), label=_short(_text(branch.get("if"))))
            )
        elif "else" in branch:
            edges.append(GraphEdge(source=step_id, target=_text(branch.get("else")), label="else"))
    if "on_error" in step:
        edges.append(GraphEdge(source=step_id, target=_text(step.get("on_error")), kind="error"))
    give_up = step.get("on_give_up")
    if isinstance(give_up, MapNode) and "next" in give_up:
        edges.append(GraphEdge(source=step_id, target=_text(give_up.get("next")), kind="give_up"))
    return edges


# --- rails -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _RailDrawing:
    """Collects the steps of a rail; `ends` are the open ends (node, label) the next step hangs on."""

    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)

    def steps(self, node: Node | None, ends: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Draw a list of steps below `ends`; returns the new open ends."""
        for item in node.items if isinstance(node, ListNode) else ():
            if isinstance(item, MapNode) and len(self.nodes) < _MAX_NODES:
                ends = self._step(item, ends)
        return ends

    def _step(self, step: MapNode, ends: list[tuple[str, str]]) -> list[tuple[str, str]]:
        kind = next((k for k in _RAIL_KINDS if k in step), "")
        here = f"{len(self.nodes)}"
        value = step.get(kind) if kind else None
        detail = ", ".join(value.entries) if kind == "set" and isinstance(value, MapNode) else _words(value)
        self.nodes.append(
            GraphNode(
                id=here,
                kind=kind,
                title=kind or "?",
                detail="" if kind == "branch" else _short(detail),
                line=step.line,
                end_line=_last_line(step),
            )
        )
        self.edges += [GraphEdge(source=end, target=here, label=label) for end, label in ends]
        if kind == "stop":
            return []
        if kind == "if":
            yes = self.steps(step.get("then"), [(here, "then")])
            return _once([*yes, *self.steps(step.get("else"), [(here, "else")])])
        if kind == "branch" and isinstance(value, ListNode):
            open_ends: list[tuple[str, str]] = []
            for arm in value.items:
                if isinstance(arm, MapNode):
                    label = _short(_words(arm.get("user")) or _words(arm.get("event")))
                    open_ends += self.steps(arm.get("then"), [(here, label)])
            return _once(open_ends)
        return [(here, "")]


def _once(ends: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(ends))


def _rail_graph(name: str, key: ScalarNode, body: MapNode) -> Graph:
    drawing = _RailDrawing()
    drawing.steps(body.get("steps"), [])
    return Graph(
        kind="rail", id=name, line=key.line, end_line=max(key.line, _last_line(body)), nodes=tuple(drawing.nodes),
        edges=tuple(drawing.edges),
    )  # fmt: skip
