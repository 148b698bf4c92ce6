"""A figure of the bench: its statistics, its budget, and how it is printed and stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Source = Literal["loudspeaker", "component"]
Stimuli = Literal["recorded", "synthetic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Upper limits in the row's unit; a row is over when any limit is exceeded. `share` limits a single value."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    worst: float | None = None
    share: float | None = None
    p95_over_p50: float | None = None

    def __str__(self) -> str:
        """Return the limits as text, e.g. `p50 ≤ 270, p95 ≤ 380`."""
        parts = [f"{name} ≤ {value:g}" for name in ("p50", "p95", "p99", "worst") if (value := getattr(self, name))]
        if self.share is not None:
            parts.append(f"≤ {self.share:g}")
        if self.p95_over_p50 is not None:
            parts.append(f"p95 ≤ {self.p95_over_p50:g} × p50")
        return ", ".join(parts)

    def is_met_by(self, values: Sequence[float]) -> bool:
        """Whether `values` keep within every limit; no values keep none."""
        if not values:
            return False
        p50, p95 = percentile(values, 50), percentile(values, 95)
        checks = (
            (self.p50, p50),
            (self.p95, p95),
            (self.p99, percentile(values, 99)),
            (self.worst, max(values)),
            (self.share, max(values)),
            (None if self.p95_over_p50 is None else self.p95_over_p50 * p50, p95),
        )
        return all(value <= limit for limit, value in checks if limit is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the bench. Without values it was not measured; `note` then says why, else what else is worth saying.

    `n` counts trials: for a share or a count it is larger than the number of values.
    """

    name: str
    condition: str
    values: tuple[float, ...]
    unit: str
    source: Source
    stimuli: Stimuli
    budget: Budget | None = None
    trials: int | None = None
    note: str = ""

    @property
    def n(self) -> int:
        """How many trials are behind the figure."""
        return len(self.values) if self.trials is None else self.trials

    @property
    def verdict(self) -> Literal["over", "under"] | None:
        """Whether the budget is exceeded; None without a budget. What was not measured is over."""
        if self.budget is None:
            return None
        return "under" if self.budget.is_met_by(self.values) else "over"

    def to_json(self) -> dict[str, Any]:
        """Return the row as it is stored; figures that were not measured are null."""
        return {
            "name": self.name,
            "condition": self.condition,
            "n": self.n,
            "p50": _rounded(percentile(self.values, 50)) if self.values else None,
            "p95": _rounded(percentile(self.values, 95)) if self.values else None,
            "unit": self.unit,
            "budget": None if self.budget is None else str(self.budget),
            "verdict": self.verdict,
            "source": self.source,
            "stimuli": self.stimuli,
        }


def share_row(*, name: str, condition: str, hits: int, trials: int, budget: float | None = None, **more: Any) -> Row:
    """Return a row for a share in percent; none without trials."""
    return Row(
        name=name,
        condition=condition,
        values=(100.0 * hits / trials,) if trials else (),
        trials=trials,
        unit="%",
        budget=None if budget is None else Budget(share=budget),
        **more,
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of all do not exceed (nearest rank).

    With few values a high percentile is the worst one, never something between two measurements.

    Raises:
        ValueError: without values, or for a percentage outside 0 to 100.
    """
    if not values or not 0 <= percent <= 100:
        raise ValueError("percentile of nothing" if not values else f"no such percentile: {percent}")
    ordered = sorted(values)
    return ordered[max(1, math.ceil(percent / 100 * len(ordered))) - 1]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text."""
    head = ("name", "condition", "n", "p50", "p95", "unit", "budget", "verdict", "source", "stimuli")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(head))]
    text = []
    for line, note in zip(lines, ["", *(row.note for row in rows)], strict=True):
        text.append("  ".join(_padded(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if note:
            text.append(f"    ({note})")
        if line is head:
            text.append("-" * len(text[0]))
    return "\n".join(text) + "\n"


def markdown(rows: Sequence[Row], facts: Mapping[str, Any]) -> str:
    """Return the rows as a Markdown table, with `facts` (machine, versions, load) above it."""
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    head = ("figure", "condition", "n", "p50", "p95", "unit", "budget", "verdict", "source", "stimuli")
    lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in _cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    stored = row.to_json()
    names = ("p50", "p95")
    p50, p95 = ("–" if stored[name] is None else f"{stored[name]:g}" for name in names)
    verdict = "not measured" if not row.values else row.verdict or "–"
    budget = "none" if row.budget is None else str(row.budget)
    return (row.name, row.condition, str(row.n), p50, p95, row.unit, budget, verdict, row.source, row.stimuli)


def _width(text: str) -> int:
    return sum(2 if "\u2e80" <= char <= "\uffef" else 1 for char in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _rounded(value: float) -> float:
    """Keep three digits that say something."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, max(0, 2 - math.floor(math.log10(abs(value)))))
