"""Comparing texts."""

from __future__ import annotations

from collections.abc import Sequence


def distance(wanted: Sequence[str], found: Sequence[str]) -> int:
    """Return how many insertions, deletions and replacements lie between two lists."""
    before = list(range(len(found) + 1))
    for row, one in enumerate(wanted, 1):
        now = [row]
        for column, other in enumerate(found, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (one != other)))
        before = now
    return before[-1]
