"""The quiet a user has asked for: for a while after a stop nothing is said that can wait."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.clock import Clock


class Quiet:
    """Begins with a stop (button, key, phrase) and ends by itself, or with the user's next words to be answered."""

    def __init__(self, *, clock: Clock, length_s: Callable[[], float]) -> None:
        """Ask `length_s` at each stop how long the quiet lasts."""
        self._clock = clock
        self._length_s = length_s
        self._until_s = 0.0

    def begin(self) -> None:
        """Be quiet from now on, anew if it was quiet."""
        self._until_s = self._clock.monotonic_s() + self._length_s()

    def end(self) -> None:
        """Be quiet no longer."""
        self._until_s = 0.0

    @property
    def left_s(self) -> float:
        """How much longer it lasts; 0 when it is over."""
        return max(0.0, self._until_s - self._clock.monotonic_s())
