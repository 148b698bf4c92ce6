"""The graph of a flow: what is reachable, which circles never listen, and its picture."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.flows.model import ActionStep, CallStep, CollectStep, Flow, FlowConfig, Step
from orchestrator.flows.source import MapNode, Report


def successors(flow: Flow, step: Step, *, completing: bool = True) -> list[str]:
    """Return every step that may follow, on error and giving up, too; with `completing` also that of `on_complete`."""
    found = list(step.links.targets())
    if isinstance(step, ActionStep) and step.on_error is not None:
        found.append(step.on_error)
    if isinstance(step, CollectStep) and step.give_up.step is not None:
        found.append(step.give_up.step)
    if completing and step.type == "end" and flow.on_complete_step is not None:
        found.append(flow.on_complete_step)
    return [s for s in dict.fromkeys(found) if s in flow.steps]


def _may_listen(step: Step) -> bool:
    return isinstance(step, (CollectStep, CallStep)) or (
        isinstance(step, ActionStep) and step.action == "action_listen"
    )


def check_graph(flow: Flow, nodes: Mapping[str, MapNode], report: Report) -> None:
    """Report unreachable steps, missing ends and links, and circles without a listen."""
    reachable: set[str] = set()
    pending = [flow.start]
    while pending:
        step_id = pending.pop()
        if step_id in reachable or step_id not in flow.steps:
            continue
        reachable.add(step_id)
        pending.extend(successors(flow, flow.steps[step_id]))
    # with a broken step or link, what seems unreachable may only be cut off
    complete = all(node_id in flow.steps for node_id in nodes) and all(
        target in flow.steps for step in flow.steps.values() for target in step.links.targets()
    )
    for step_id, step in flow.steps.items():
        node = nodes[step_id]
        place = node.get("id") or node
        if step_id not in reachable and complete:
            report.add(place, "unreachable_step", f"the step {step_id!r} is never reached")
        if step.type == "start" and step_id != flow.start:
            report.add(place, "duplicate_start", f"the flow {flow.id!r} has two start steps")
        if step.type != "end" and not step.links.targets() and "next" not in node:
            report.add(place, "missing_next", f"the step {step_id!r} needs a next")
        elif step.type != "end" and not step.links.targets():
            report.add(node.get("next") or place, "missing_next", f"the step {step_id!r} leads nowhere")
        elif step.type == "end" and step.links.targets():
            report.add(node.get("next") or place, "next_after_end", "an end step has no next")
    if not any(s.type == "end" for s in flow.steps.values()) and complete:
        report.add(next(iter(nodes.values())), "missing_end", f"the flow {flow.id!r} has no end step")
    _check_circles(flow, nodes, report)


def _check_circles(flow: Flow, nodes: Mapping[str, MapNode], report: Report) -> None:
    """Report circles made of steps that never wait for the user: they would spin."""
    # in the order of the file, so that a circle is always told at the same step
    silent = [s for s, step in flow.steps.items() if not _may_listen(step)]
    state: dict[str, int] = {}
    for root in silent:
        if root in state:
            continue
        stack: list[tuple[str, list[str]]] = [
            (root, [s for s in successors(flow, flow.steps[root], completing=False) if s in silent])
        ]
        state[root] = 1
        while stack:
            current, rest = stack[-1]
            if not rest:
                state[current] = 2
                stack.pop()
                continue
            following = rest.pop()
            if state.get(following) == 1:
                node = nodes[current]
                report.add(
                    node.get("next") or node,
                    "loop_without_listen",
                    f"the step {current!r} leads back to {following!r} without ever waiting for the user",
                )
            elif following not in state:
                state[following] = 1
                stack.append(
                    (following, [s for s in successors(flow, flow.steps[following], completing=False) if s in silent])
                )


def mermaid(config: FlowConfig, flow: Flow) -> str:
    """Return the flow as a Mermaid flowchart."""
    numbers = {step_id: f"s{index}" for index, step_id in enumerate(flow.steps)}
    shapes = {"start": ("([", "])"), "end": ("([", "])"), "collect": ("[/", "/]"), "call": ("[[", "]]")}
    lines = ["flowchart TD"]
    for step_id, step in flow.steps.items():
        left, right = shapes.get(step.type, ("[", "]"))
        lines.append(f'  {numbers[step_id]}{left}"{_quoted(step_id + _detail(step))}"{right}')
    for step_id, step in flow.steps.items():
        here = numbers[step_id]
        for condition, target in step.links.branches:
            if target in numbers:
                lines.append(f'  {here} -->|"{_quoted(condition.source)}"| {numbers[target]}')
        if step.links.otherwise in numbers:
            label = '|"else"|' if step.links.branches else ""
            lines.append(f"  {here} -->{label} {numbers[str(step.links.otherwise)]}")
        if isinstance(step, ActionStep) and step.on_error in numbers:
            lines.append(f'  {here} -.->|"error"| {numbers[str(step.on_error)]}')
        if isinstance(step, CollectStep) and step.give_up.step in numbers:
            lines.append(f'  {here} -.->|"gives up"| {numbers[str(step.give_up.step)]}')
    return "\n".join(lines) + "\n"


def _detail(step: Step) -> str:
    if isinstance(step, CollectStep):
        return f": {step.slot}?"
    if isinstance(step, ActionStep):
        return f": {step.action}"
    if isinstance(step, CallStep):
        return f": {step.flow}"
    return ""


def _quoted(text: str) -> str:
    return (
        text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
    )
