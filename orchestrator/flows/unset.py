"""Warns of texts that print a slot which may still be unset when they are spoken."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.flows.expressions import Read
from orchestrator.flows.graph import successors
from orchestrator.flows.model import ActionStep, CallStep, CollectStep, Flow, Response, SetSlotsStep, Slot, Step
from orchestrator.flows.texts import Text


def _filled_by(step: Step, flows: Mapping[str, Flow], slots: Mapping[str, Slot]) -> frozenset[str]:
    """Return the slots that surely have a value after a step (an action is trusted to fill the slots made for it)."""
    if isinstance(step, CollectStep):
        return frozenset() if step.skippable else frozenset({step.slot})
    if isinstance(step, SetSlotsStep):
        return frozenset(name for name, value in step.values.items() if value.node is not None)
    if isinstance(step, CallStep):
        called = flows.get(step.flow)
        return frozenset(called.slots) if called is not None else frozenset()
    if isinstance(step, ActionStep) and step.action not in ("action_response", "action_listen"):
        return frozenset(s.id for s in slots.values() if s.filled_by == "action")
    return frozenset()


def _emptied_by(step: Step) -> frozenset[str]:
    if isinstance(step, SetSlotsStep):
        return frozenset(name for name, value in step.values.items() if value.node is None)
    return frozenset()


def surely_filled(flow: Flow, flows: Mapping[str, Flow], slots: Mapping[str, Slot]) -> dict[str, frozenset[str]]:
    """Return for every reachable step the slots that have a value on every way to it."""
    everything = frozenset(slots)
    before: dict[str, frozenset[str]] = {flow.start: frozenset()}
    pending = [flow.start]
    while pending:
        step = flow.steps[pending.pop()]
        normal = (before[step.id] | _filled_by(step, flows, slots)) - _emptied_by(step)
        for target in successors(flow, step):
            # a branch of failure or giving up leaves the slot as it was
            by_failure = target not in step.links.targets()
            coming = before[step.id] if by_failure else normal
            known = before.get(target, everything)
            merged = known & coming
            if target not in before or merged != known:
                before[target] = merged
                pending.append(target)
    return before


def texts_of(step: Step) -> list[Text]:
    """Return the texts a step may speak."""
    responses: list[Response | None] = []
    if isinstance(step, CollectStep):
        responses = [step.response, step.failure, step.unrecognized, step.last_attempt, step.silence]
    elif isinstance(step, ActionStep):
        responses = [step.response]
    return [r.text for r in responses if r is not None and r.text is not None]


def unset_reads(flow: Flow, flows: Mapping[str, Flow], slots: Mapping[str, Slot]) -> list[tuple[Step, Read]]:
    """Return the places where a text prints a slot that may be unset; what a text tests itself is left out."""
    filled = surely_filled(flow, flows, slots)
    found: list[tuple[Step, Read]] = []
    for step_id, known in filled.items():
        step = flow.steps[step_id]
        for text in texts_of(step):
            tested = {r.field for r in text.reads if r.namespace == "slots" and not r.printed}
            for read in text.reads:
                slot = slots.get(read.field)
                if read.namespace != "slots" or not read.printed or slot is None or slot.persist:
                    continue
                if read.field not in known and read.field not in tested:
                    found.append((step, read))
    return found
