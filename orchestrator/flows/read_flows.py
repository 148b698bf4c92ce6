"""The `flows` section: one flow, then the checks that need everything (slots, other flows, actions, the graph)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.flows.expressions import Read
from orchestrator.flows.graph import check_graph
from orchestrator.flows.model import CONTEXT_FIELDS, ActionStep, CallStep, CollectStep, Flow, SetSlotsStep, Slot, Step
from orchestrator.flows.read_slots import check_id
from orchestrator.flows.read_steps import read_step
from orchestrator.flows.reading import as_list, as_map, check_keys, is_empty, read_bool, read_string
from orchestrator.flows.slot_values import coerce
from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode, did_you_mean
from orchestrator.flows.texts import PLACEHOLDER, Text, read_condition, read_text, warn_languages
from orchestrator.flows.unset import unset_reads

FLOW_KEYS = ("name", "description", "slots", "steps", "examples", "if", "confirm_interrupt", "on_complete")


@dataclass(slots=True)
class RawFlow:
    """A flow as read, with the nodes its problems are reported at."""

    id: str
    key: ScalarNode
    body: MapNode
    steps: dict[str, Step]
    nodes: dict[str, MapNode]
    flow: Flow | None = None
    is_faulty: bool = False


def read_flow(flow_id: str, key: ScalarNode, node: Node, report: Report) -> RawFlow | None:
    """Read one flow for itself."""
    check_id(key, report, "flow")
    body = as_map(node, report, f"the flow {flow_id!r}")
    if body is None:
        if is_empty(node):
            report.add(key, "missing_steps", f"the flow {flow_id!r} needs steps")
        return None
    before = _errors(report)
    check_keys(body, FLOW_KEYS, report, f"the flow {flow_id!r}")
    raw = RawFlow(id=flow_id, key=key, body=body, steps={}, nodes={})
    steps = body.get("steps")
    if is_empty(steps) or (isinstance(steps, ListNode) and not steps.items):
        report.add(
            key if steps is None or is_empty(steps) else steps, "missing_steps", f"the flow {flow_id!r} needs steps"
        )
    for item in as_list(body.get("steps"), report, "steps"):
        step = read_step(item, report)
        if isinstance(item, MapNode):
            _keep_step(raw, item, step, report)
    name = _name(body, key, report)
    description = (
        None if is_empty(body.get("description")) else read_text(body.get("description"), report, "description")
    )
    listed = [n.text for n in as_list(body.get("slots"), report, "slots of a flow") if isinstance(n, ScalarNode)]
    collected = [s.slot for s in raw.steps.values() if isinstance(s, CollectStep)]
    start = next((s.id for s in raw.steps.values() if s.type == "start"), None)
    guard = read_condition(body.get("if"), report) if "if" in body else None
    on_complete = read_string(body.get("on_complete"), report, "on_complete") if "on_complete" in body else None
    if start is None and raw.nodes:
        report.add(key, "missing_start", f"the flow {flow_id!r} has no start step")
    raw.is_faulty = _errors(report) > before
    if start is not None:
        raw.flow = Flow(
            id=flow_id,
            name=name,
            description=description,
            slots=tuple(dict.fromkeys([*listed, *collected])),
            steps=raw.steps,
            start=start,
            examples=_examples(body.get("examples"), report),
            guard=guard,
            confirm_interrupt=read_bool(body.get("confirm_interrupt"), report, "confirm_interrupt", False),
            on_complete_step=on_complete if on_complete in raw.steps else None,
            on_complete_flow=on_complete if on_complete not in raw.steps else None,
        )
    return raw


def _errors(report: Report) -> int:
    return sum(p.severity == "error" for p in report.problems)


def _keep_step(raw: RawFlow, item: MapNode, step: Step | None, report: Report) -> None:
    id_node = item.get("id")
    if not isinstance(id_node, ScalarNode) or is_empty(id_node):
        return
    if id_node.text in raw.nodes:
        report.add(id_node, "duplicate_step", f"the step {id_node.text!r} stands twice in the flow {raw.id!r}")
        return
    raw.nodes[id_node.text] = item
    if step is not None:
        raw.steps[step.id] = step


def _name(body: MapNode, key: ScalarNode, report: Report) -> Text:
    node = body.get("name")
    text = None if is_empty(node) else read_text(node, report, "name", frozenset())
    if text is None:
        text = read_text(
            ScalarNode(
                key.file,
                key.line,
                key.col,
                key.end_line,
                key.end_col,
                text=key.text.replace("_", " "),
                value=key.text,
                raw=key.text,
            ),
            Report(),
            "name",
        )
    assert text is not None
    return text


def _examples(node: Node | None, report: Report) -> tuple[str, ...]:
    if isinstance(node, MapNode):
        warn_languages(node, report, "examples")
        return tuple(e for language in node for e in _examples(node.get(language), report))
    found = []
    for item in as_list(node, report, "examples"):
        text = read_string(item, report, "an example")
        if text is None:
            continue
        if not text.strip():
            report.add(item, "empty_example", "an example must not be empty")
            continue
        found.append(text.strip())
        stray = re.search(r"[{}]", PLACEHOLDER.sub(lambda m: " " * len(m[0]), text))
        if stray is not None and isinstance(item, ScalarNode):
            message = f"the {stray[0]} is taken as said; a place for a slot's value is {{slot}}"
            report.add_inside(item, stray.start(), stray.end(), "bad_placeholder", message, severity="warning")
    return tuple(found)


class FlowChecker:
    """Checks flows against everything else there is."""

    def __init__(
        self,
        raws: Mapping[str, RawFlow],
        slots: Mapping[str, Slot],
        slot_ids: Container[str],
        actions: Container[str] | None,
        report: Report,
    ) -> None:
        self.raws = raws
        self.slots = slots
        self.slot_ids = slot_ids
        self.actions = actions
        self.report = report

    def check_all(self) -> None:
        """Check every flow; sets `is_faulty` where something was found."""
        for raw in self.raws.values():
            before = _errors(self.report)
            self._check(raw)
            raw.is_faulty = raw.is_faulty or _errors(self.report) > before
        self._check_recursion()
        flows = {raw.id: raw.flow for raw in self.raws.values() if raw.flow is not None}
        for raw in self.raws.values():
            if raw.flow is not None and not raw.is_faulty and not raw.flow.is_system:
                self._warn_unset(raw, raw.flow, flows)

    def _warn_unset(self, raw: RawFlow, flow: Flow, flows: Mapping[str, Flow]) -> None:
        called = {s.flow for f in flows.values() for s in f.steps.values() if isinstance(s, CallStep)}
        if flow.id in called:
            # what its caller has filled is not known here
            return
        for step, read in unset_reads(flow, flows, self.slots):
            node, offset = find_text(raw.nodes[step.id], read.field, ("slots",)) or (raw.nodes[step.id], 0)
            message = f"the slot {read.field!r} may be unset in this text"
            if isinstance(node, ScalarNode):
                self.report.add_inside(
                    node, offset, offset + len(read.field), "maybe_unset", message, severity="warning"
                )
            else:
                self.report.add(node, "maybe_unset", message, severity="warning")

    def _check(self, raw: RawFlow) -> None:
        if raw.id.startswith("system_") and raw.id not in CONTEXT_FIELDS:
            self.report.add(
                raw.key,
                "unknown_system_flow",
                f"there is no system flow {raw.id!r}, so nothing ever starts it",
                suggestion=did_you_mean(raw.id, CONTEXT_FIELDS),
                severity="warning",
            )
        for item in as_list(raw.body.get("slots"), Report(), ""):
            if isinstance(item, ScalarNode):
                self._slot(item, item.text)
        if raw.flow is not None and raw.flow.on_complete_flow is not None:
            target = raw.flow.on_complete_flow
            if target not in self.raws or target.startswith("system_"):
                options = [*self.raws, *raw.steps]
                self.report.add(
                    raw.body.get("on_complete") or raw.key,
                    "unknown_target",
                    f"on_complete names neither a step of this flow nor a flow: {target!r}",
                    suggestion=did_you_mean(target, options),
                )
        self._check_examples(raw)
        if raw.flow is not None and raw.flow.guard is not None:
            self._reads(raw, raw.body.get("if"), raw.flow.guard.reads)
        for step_id, node in raw.nodes.items():
            self._check_targets(raw, node)
            step = raw.steps.get(step_id)
            if step is not None:
                self._check_step(raw, node, step)
        if raw.flow is not None:
            check_graph(raw.flow, raw.nodes, self.report)

    def _check_examples(self, raw: RawFlow) -> None:
        node = raw.body.get("examples")
        lists = (
            [node]
            if isinstance(node, ListNode)
            else [v for _, v in node.entries.values()]
            if isinstance(node, MapNode)
            else []
        )
        for item in [i for found in lists if isinstance(found, ListNode) for i in found.items]:
            for match in PLACEHOLDER.finditer(item.text) if isinstance(item, ScalarNode) else ():
                if match[1] not in self.slot_ids:
                    assert isinstance(item, ScalarNode)
                    known = _names(self.slot_ids)
                    self.report.add_inside(
                        item,
                        match.start(1),
                        match.end(1),
                        "unknown_slot",
                        f"there is no slot {match[1]!r}",
                        suggestion=did_you_mean(match[1], known),
                    )

    def _check_targets(self, raw: RawFlow, node: MapNode) -> None:
        for target in _target_nodes(node):
            if target.text not in raw.nodes:
                self.report.add(
                    target,
                    "unknown_target",
                    f"there is no step {target.text!r} in the flow {raw.id!r}",
                    suggestion=did_you_mean(target.text, raw.nodes),
                )

    def _check_step(self, raw: RawFlow, node: MapNode, step: Step) -> None:
        if isinstance(step, (CollectStep, CallStep)) and raw.id.startswith("system_"):
            self.report.add(node.get("type") or node, "not_in_system_flow", f"a system flow has no {step.type} steps")
        if isinstance(step, CollectStep):
            self._slot(node.get("slot_name") or node, step.slot)
            slot = self.slots.get(step.slot)
            if slot is not None:
                self._check_collected(node, step, slot)
        elif isinstance(step, SetSlotsStep):
            values = node.get("slots")
            assert isinstance(values, MapNode)
            for name in values:
                self._slot(values.key(name), name)
                self._check_constant(values.get(name), name)
        elif isinstance(step, CallStep):
            self._check_call(node.get("flow") or node, step)
        elif isinstance(step, ActionStep) and self.actions is not None and step.action not in self.actions:
            known = _names(self.actions)
            self.report.add(
                node.get("action") or node,
                "unknown_action",
                f"there is no action {step.action!r}",
                suggestion=did_you_mean(step.action, known),
            )
        self._reads(raw, node, tuple(step.reads()))

    def _check_collected(self, node: MapNode, step: CollectStep, slot: Slot) -> None:
        if slot.filled_by == "action":
            self.report.add(
                node.get("slot_name") or node,
                "slot_filled_by_action",
                f"the slot {slot.id!r} is filled by an action, so nobody can be asked for it",
            )
        if step.give_up.has_value:
            result = coerce(slot, step.give_up.value)
            if not result.ok:
                self.report.add(
                    node.get("on_give_up") or node, "bad_default", f"the default does not fit: {result.reason}"
                )

    def _check_constant(self, node: Node | None, name: str) -> None:
        slot = self.slots.get(name)
        if slot is None or not isinstance(node, ScalarNode) or is_empty(node) or "{" in node.text:
            return
        result = coerce(slot, node.text if slot.type == "text" else node.value)
        if not result.ok:
            self.report.add(node, "bad_value", f"the value does not fit the slot {name!r}: {result.reason}")

    def _check_call(self, node: Node, step: CallStep) -> None:
        if step.flow not in self.raws or step.flow.startswith("system_"):
            options = [f for f in self.raws if not f.startswith("system_")]
            self.report.add(
                node, "unknown_flow", f"there is no flow {step.flow!r}", suggestion=did_you_mean(step.flow, options)
            )

    def _slot(self, node: Node, name: str) -> None:
        if name not in self.slot_ids:
            known = _names(self.slot_ids)
            self.report.add(node, "unknown_slot", f"there is no slot {name!r}", suggestion=did_you_mean(name, known))

    def _reads(self, raw: RawFlow, node: Node | None, reads: tuple[Read, ...]) -> None:
        fields = CONTEXT_FIELDS.get(raw.id, frozenset())
        for read in reads:
            if read.namespace == "slots" and read.field not in self.slot_ids and read.offset:
                place = find_text(node, read.field, ("slots",))
                known = _names(self.slot_ids)
                self._at(place or (node, 0), read, "unknown_slot", f"there is no slot {read.field!r}", known)
            elif read.namespace == "context" and read.field not in fields:
                place = find_text(node, read.field, ("context",))
                self._at(
                    place or (node, 0),
                    read,
                    "unknown_context_field",
                    f"the context of {raw.id!r} has no field {read.field!r}",
                    list(fields),
                )

    def _at(self, place: tuple[Node | None, int], read: Read, code: str, message: str, known: list[str]) -> None:
        node, offset = place
        hint = did_you_mean(read.field, known)
        if isinstance(node, ScalarNode):
            self.report.add_inside(node, offset, offset + len(read.field), code, message, suggestion=hint)
        elif node is not None:
            self.report.add(node, code, message, suggestion=hint)

    def _check_recursion(self) -> None:
        calls = {raw.id: {s.flow for s in raw.steps.values() if isinstance(s, CallStep)} for raw in self.raws.values()}
        for raw in self.raws.values():
            for step_id, step in raw.steps.items():
                if isinstance(step, CallStep) and _reaches(calls, step.flow, raw.id):
                    node = raw.nodes[step_id]
                    self.report.add(
                        node.get("flow") or node,
                        "recursive_call",
                        f"the flow {raw.id!r} calls itself through {step.flow!r}",
                    )
                    raw.is_faulty = True


def _names(container: Container[str]) -> list[str]:
    return [str(name) for name in container] if isinstance(container, Iterable) else []


def _reaches(calls: Mapping[str, set[str]], start: str, goal: str) -> bool:
    pending, seen = [start], set()
    while pending:
        name = pending.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            pending.extend(calls.get(name, ()))
    return False


def _target_nodes(node: MapNode) -> list[ScalarNode]:
    found: list[Any] = []
    links = node.get("next")
    if isinstance(links, ScalarNode) and not is_empty(links):
        found.append(links)
    elif isinstance(links, ListNode):
        for item in links.items:
            if isinstance(item, MapNode):
                found += [item.get("then"), item.get("else")]
    found.append(node.get("on_error"))
    give_up = node.get("on_give_up")
    if isinstance(give_up, MapNode):
        found.append(give_up.get("next"))
    return [n for n in found if isinstance(n, ScalarNode) and not is_empty(n)]


def find_text(node: Node | None, field: str, owners: tuple[str, ...]) -> tuple[ScalarNode, int] | None:
    """Find the scalar under `node` that reads `owner.field`, and where in its text the field stands."""
    pending: list[Node] = [node] if node is not None else []
    while pending:
        item = pending.pop(0)
        if isinstance(item, MapNode):
            pending.extend(v for _, v in item.entries.values())
        elif isinstance(item, ListNode):
            pending.extend(item.items)
        elif isinstance(item, ScalarNode):
            for owner in owners:
                for form in (
                    f"{owner}.{field}",
                    f"{owner}.get('{field}'",
                    f'{owner}.get("{field}"',
                    f"{owner}['{field}'",
                    f'{owner}["{field}"',
                ):
                    at = item.text.find(form)
                    if at >= 0:
                        return item, at + form.index(field, len(owner))
    return None
