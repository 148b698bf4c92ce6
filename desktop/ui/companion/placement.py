"""Where a window may stand when screens come and go; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SMALLEST = (200, 240)
LARGEST = (720, 860)
DEFAULT_SIZE = (320, 400)
MARGIN_PX = 24


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle in device-independent pixels; screens beside the first may have negative places."""

    x: int
    y: int
    width: int
    height: int

    def overlap(self, other: Rect) -> int:
        """Return how many pixels both have in common."""
        width = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        height = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return max(0, width) * max(0, height)


def clamped(place: Rect, screens: Sequence[Rect]) -> Rect:
    """Return `place` in a size that is allowed, moved wholly onto the screen it lies on most, else the first.

    `screens` are the available parts, the primary one first; without any the place stays.
    """
    width = max(SMALLEST[0], min(place.width, LARGEST[0]))
    height = max(SMALLEST[1], min(place.height, LARGEST[1]))
    sized = Rect(place.x, place.y, width, height)
    if not screens:
        return sized
    best = max(screens, key=sized.overlap)
    screen = best if sized.overlap(best) > 0 else screens[0]
    width, height = min(width, screen.width), min(height, screen.height)
    x = max(screen.x, min(sized.x, screen.x + screen.width - width))
    y = max(screen.y, min(sized.y, screen.y + screen.height - height))
    return Rect(x, y, width, height)


def default_place(screens: Sequence[Rect]) -> Rect:
    """Return the right bottom corner of the first screen."""
    width, height = DEFAULT_SIZE
    if not screens:
        return Rect(0, 0, width, height)
    screen = screens[0]
    right, bottom = screen.x + screen.width, screen.y + screen.height
    return clamped(Rect(right - width - MARGIN_PX, bottom - height - MARGIN_PX, width, height), screens)


def read_place(value: object) -> Rect | None:
    """Return the place that was kept as four numbers, None for anything else."""
    match value:
        case [int() as x, int() as y, int() as width, int() as height]:
            if max(abs(x), abs(y)) < 100_000 and 0 < width < 10_000 and 0 < height < 10_000:
                return Rect(x, y, width, height)
    return None
