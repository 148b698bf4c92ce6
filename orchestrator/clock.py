"""The only module that reads the system clock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Source of time for everything that does not take `now_s` directly. Callable from any thread."""

    def monotonic_s(self) -> float:
        """Seconds that never go back; the time base of the events file."""
        ...

    def wall(self) -> datetime:
        """Local wall time with its UTC offset."""
        ...


class SystemClock:
    """The machine's clock."""

    def monotonic_s(self) -> float:
        """Seconds of the system's monotonic clock."""
        return time.monotonic()

    def wall(self) -> datetime:
        """Local wall time with its UTC offset."""
        return datetime.now().astimezone()


class VirtualClock:
    """A clock that moves only when told; for tests and simulation."""

    def __init__(self, start_s: float = 0.0, wall: datetime | None = None) -> None:
        """Start at `start_s`; `wall` is the wall time at that moment (default: now, read once)."""
        self._start_s = start_s
        self._now_s = start_s
        self._wall0 = wall if wall is not None else datetime.now().astimezone()

    def monotonic_s(self) -> float:
        """Seconds as advanced so far."""
        return self._now_s

    def wall(self) -> datetime:
        """Wall time moved by the same amount as the monotonic time."""
        return self._wall0 + timedelta(seconds=self._now_s - self._start_s)

    def advance(self, by_s: float) -> None:
        """Move on by `by_s` ≥ 0 seconds."""
        if by_s < 0:
            raise ValueError("time does not go back")
        self._now_s += by_s

    def advance_to(self, to_s: float) -> None:
        """Move on to `to_s`; an earlier time changes nothing."""
        self._now_s = max(self._now_s, to_s)
