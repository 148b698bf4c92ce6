"""Which steps and branches the tests went through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.flows.graph import successors
from orchestrator.flows.model import Flow, FlowConfig
from orchestrator.flows.testing.runner import TestResult


def coverage_of(results: Sequence[TestResult]) -> dict[str, Any]:
    """Return coverage per flow and rail of the configurations the tests used."""
    visited: set[tuple[str, str, str | None]] = set()
    heads: dict[str, set[int]] = {}
    flows: dict[str, Flow] = {}
    rails: dict[str, int] = {}
    for result in results:
        visited.update(result.visited)
        for name, found in result.rails.items():
            heads.setdefault(name, set()).update(found)
        if result.config is not None:
            flows.update(result.config.flows)
            rails.update(_rail_sizes(result.config))
    return {
        "flows": {name: _flow_coverage(flow, visited) for name, flow in sorted(flows.items())},
        "rails": {
            name: {"steps": size, "visited": min(size, len(heads.get(name, ())))}
            for name, size in sorted(rails.items())
        },
    }


def _rail_sizes(config: FlowConfig) -> dict[str, int]:
    rails: Iterable[Any] = getattr(config.rails, "rails", ()) or ()
    return {rail.id: len(rail.program.ops) for rail in rails}


def _flow_coverage(flow: Flow, visited: set[tuple[str, str, str | None]]) -> dict[str, Any]:
    steps = {step for name, step, _ in visited if name == flow.id}
    branches = [(step.id, target) for step in flow.steps.values() for target in successors(flow, step)]
    taken = {(step, target) for name, step, target in visited if name == flow.id and target is not None}
    missed = [f"{a} → {b}" for a, b in branches if (a, b) not in taken]
    return {
        "steps": len(flow.steps), "visited": len(steps & set(flow.steps)), "branches": len(branches),
        "taken": len(branches) - len(missed), "missed": missed,
    }  # fmt: skip
