"""What finders hand over: a value and where its words stood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A value and the ranges of the text it came from."""

    value: Any
    spans: tuple[Span, ...]


def merged(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the ranges in order, overlapping ones as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)
