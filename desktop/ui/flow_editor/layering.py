"""Where the steps of a graph go: rows by distance from the start, crossings reduced. Knows no Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from desktop.ui.flow_editor.outline import Graph

_PASSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """`cells` are (row, position in the row, size of the row); `backward` the edges that lead up or stay level."""

    cells: Mapping[str, tuple[int, int, int]]
    backward: frozenset[tuple[str, str]]


def lay_out(graph: Graph) -> Layout:
    """Return rows for all steps; those that nothing leads to begin in the first row."""
    ids = [node.id for node in graph.nodes]
    after: dict[str, list[str]] = {i: [] for i in ids}
    for edge in graph.edges:
        if edge.target not in after[edge.source]:
            after[edge.source].append(edge.target)
    backward = _backward(ids, after)
    rows = _rows(ids, after, backward)
    ordered = _ordered(ids, after, backward, rows)
    cells = {node: (number, at, len(row)) for number, row in enumerate(ordered) for at, node in enumerate(row)}
    return Layout(cells=cells, backward=backward)


def _backward(ids: list[str], after: Mapping[str, list[str]]) -> frozenset[tuple[str, str]]:
    """Return the edges that close a circle, by a walk that keeps its own stack."""
    state: dict[str, int] = {}
    found: set[tuple[str, str]] = set()
    for root in ids:
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(after[root]))]
        while stack:
            node, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[node] = 2
                stack.pop()
            elif state.get(target) == 1:
                found.add((node, target))
            elif target not in state:
                state[target] = 1
                stack.append((target, iter(after[target])))
    return frozenset(found)


def _rows(ids: list[str], after: Mapping[str, list[str]], backward: frozenset[tuple[str, str]]) -> dict[str, int]:
    incoming = dict.fromkeys(ids, 0)
    for node in ids:
        for target in after[node]:
            incoming[target] += (node, target) not in backward
    rows = dict.fromkeys(ids, 0)
    ready = [node for node in ids if not incoming[node]]
    while ready:
        node = ready.pop(0)
        for target in after[node]:
            if (node, target) in backward:
                continue
            rows[target] = max(rows[target], rows[node] + 1)
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    return rows


def _ordered(
    ids: list[str], after: Mapping[str, list[str]], backward: frozenset[tuple[str, str]], rows: Mapping[str, int]
) -> list[list[str]]:
    ordered: list[list[str]] = [[] for _ in range(max(rows.values(), default=-1) + 1)]
    for node in ids:
        ordered[rows[node]].append(node)
    before: dict[str, list[str]] = {i: [] for i in ids}
    for node in ids:
        for target in after[node]:
            if (node, target) not in backward:
                before[target].append(node)
    for number in range(_PASSES):
        downward = number % 2 == 0
        neighbours = before if downward else after
        place = {node: (at + 0.5) / len(row) for row in ordered for at, node in enumerate(row)}
        for row in ordered if downward else reversed(ordered):

            def centre(node: str) -> float:
                near = [place[n] for n in neighbours[node] if n != node]  # noqa: B023 (used at once)
                return sum(near) / len(near) if near else place[node]  # noqa: B023

            row.sort(key=centre)
            place.update({node: (at + 0.5) / len(row) for at, node in enumerate(row)})
    return ordered
