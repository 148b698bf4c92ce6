"""What painting costs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PaintStats:
    """Frames painted since the start, and times of the last ones in milliseconds; `fps` over the same ones."""

    frames: int
    mean_ms: float
    p95_ms: float
    worst_ms: float
    fps: float


class PaintMeter:
    """Keeps the times of the last 600 frames."""

    def __init__(self) -> None:
        """Start empty."""
        self._frames = 0
        self._costs_s: deque[float] = deque(maxlen=600)
        self._moments_s: deque[float] = deque(maxlen=600)

    def add(self, at_s: float, cost_s: float) -> None:
        """Count a frame painted at `at_s` that took `cost_s`."""
        self._frames += 1
        self._costs_s.append(cost_s)
        self._moments_s.append(at_s)

    def stats(self) -> PaintStats:
        """Return the figures; zeros before the first frame."""
        if not self._costs_s:
            return PaintStats(frames=0, mean_ms=0.0, p95_ms=0.0, worst_ms=0.0, fps=0.0)
        costs = sorted(self._costs_s)
        span_s = self._moments_s[-1] - self._moments_s[0]
        return PaintStats(
            frames=self._frames,
            mean_ms=1000.0 * sum(costs) / len(costs),
            p95_ms=1000.0 * costs[int(0.95 * (len(costs) - 1))],
            worst_ms=1000.0 * costs[-1],
            fps=(len(costs) - 1) / span_s if span_s > 0 else 0.0,
        )
