"""The heartbeat of the picture, and a watch over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, QTimer

from orchestrator.clock import Clock

_STALL_S = 0.05
_BEAT_MS = 25


class FrameTicker(QObject):
    """Calls for a frame as often as the picture needs one: up to 60 times a second, far less when idle."""

    def __init__(
        self,
        clock: Clock,
        on_frame: Callable[[float], None],
        interval_s: Callable[[float], float],
        parent: QObject | None = None,
    ) -> None:
        """Call `on_frame(now_s)`, then ask `interval_s(now_s)` how long to wait for the next."""
        super().__init__(parent)
        self._clock = clock
        self._on_frame = on_frame
        self._interval_s = interval_s
        self._due_s = 0.0
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_timeout)

    def start(self) -> None:
        """Begin now."""
        self._due_s = self._clock.monotonic_s()
        self._timer.start(0)

    def stop(self) -> None:
        """Paint no more until started again."""
        self._timer.stop()

    def hurry(self) -> None:
        """Bring the next frame forward: something happened."""
        if self._timer.isActive() and self._timer.remainingTime() > 1:
            self._due_s = self._clock.monotonic_s()
            self._timer.start(0)

    def _on_timeout(self) -> None:
        now_s = self._clock.monotonic_s()
        self._on_frame(now_s)
        wait_s = self._interval_s(now_s)
        self._due_s = max(self._due_s + wait_s, now_s)
        self._timer.start(max(1, round(1000 * (self._due_s - self._clock.monotonic_s()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class StallStats:
    """How often the GUI thread did not answer for more than 50 ms, and the longest time."""

    stalls: int
    worst_ms: float

    def plain(self) -> dict[str, float]:
        """Return both for `dump`."""
        return {"count": self.stalls, "worst_ms": self.worst_ms}


class StallWatch(QObject):
    """Counts beats of a timer that come late: the thread was busy, or the machine was."""

    def __init__(self, clock: Clock, parent: QObject | None = None) -> None:
        """Watch the thread this object lives in."""
        super().__init__(parent)
        self._clock = clock
        self._last_s: float | None = None
        self._stalls = 0
        self._worst_s = 0.0
        self.loading = self.stats()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(_BEAT_MS)
        self._timer.timeout.connect(self._on_beat)

    def start(self) -> None:
        """Begin to watch; the time until the first beat does not count."""
        self._last_s = None
        self._timer.start()

    def stop(self) -> None:
        """Watch no more."""
        self._timer.stop()

    def count_anew(self) -> None:
        """Begin to count again, for loading is over; `loading` keeps what was seen until now."""
        self.loading = self.stats()
        self._stalls, self._worst_s = 0, 0.0

    def stats(self) -> StallStats:
        """Return what was seen since the first start, or since `count_anew`."""
        return StallStats(stalls=self._stalls, worst_ms=1000.0 * self._worst_s)

    def _on_beat(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._last_s is not None:
            late_s = now_s - self._last_s - _BEAT_MS / 1000.0
            self._worst_s = max(self._worst_s, late_s)
            if late_s > _STALL_S:
                self._stalls += 1
        self._last_s = now_s
