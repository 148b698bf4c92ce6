"""Where model calls run: on a thread of their own, or inline on a virtual clock."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from orchestrator.clock import Clock, VirtualClock

log = logging.getLogger(__name__)

Job = Callable[[], Callable[[], None] | None]
"""Does the slow part and returns what is to be done with the result (`deliver`), or None."""


class Worker(Protocol):
    """Runs one job at a time, in order. The worker owns its queue; it is bounded and refuses what does not fit."""

    def submit(self, job: Job, *, name: str, cost_s: float | None = None) -> bool:
        """Queue `job`; False when full or stopped.

        Callable from any thread. `cost_s` overrides the measured cost in virtual time.
        """
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a job is queued, running or waiting to deliver."""
        ...

    def stop(self, timeout_s: float) -> bool:
        """Refuse new jobs, drop the queued ones and wait for the running one; False if it outlasted `timeout_s`."""
        ...


class ThreadWorker:
    """A named daemon thread with a bounded queue; `refused` counts what did not fit, `failed` jobs that raised."""

    def __init__(self, name: str, *, capacity: int = 8) -> None:
        """Start the thread `name`; at most `capacity` jobs wait."""
        self._capacity = capacity
        self._jobs: deque[tuple[str, Job]] = deque()
        self._wake = threading.Condition()
        self._is_stopping = False
        self._is_running = False
        self.refused = 0
        self.failed = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job, *, name: str, cost_s: float | None = None) -> bool:
        """Queue `job`; `cost_s` is ignored here."""
        with self._wake:
            if self._is_stopping or len(self._jobs) >= self._capacity:
                self.refused += 1
                return False
            self._jobs.append((name, job))
            self._wake.notify()
            return True

    @property
    def is_busy(self) -> bool:
        """Whether a job is queued or running."""
        return self._is_running or bool(self._jobs)

    def stop(self, timeout_s: float) -> bool:
        """End the thread after the running job."""
        with self._wake:
            self._is_stopping = True
            self._jobs.clear()
            self._wake.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._is_stopping:
                    self._wake.wait()
                if self._is_stopping:
                    return
                name, job = self._jobs.popleft()
                self._is_running = True
            try:
                deliver = job()
                if deliver is not None:
                    deliver()
            except Exception:
                self.failed += 1
                log.exception("job %s failed", name)
            finally:
                self._is_running = False


class VirtualScheduler:
    """Callbacks at virtual times; the simulation runs the due ones as its clock advances. Single-threaded."""

    def __init__(self, clock: VirtualClock) -> None:
        """Schedule on `clock`."""
        self.clock = clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, when_s: float, call: Callable[[], None]) -> None:
        """Run `call` when the clock has reached `when_s`."""
        heapq.heappush(self._heap, (when_s, next(self._order), call))

    def next_s(self) -> float | None:
        """Time of the earliest callback, None without any."""
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> int:
        """Run everything that is due; returns how many ran."""
        count = 0
        while self._heap and self._heap[0][0] <= self.clock.monotonic_s():
            _, _, call = heapq.heappop(self._heap)
            call()
            count += 1
        return count


class VirtualWorker:
    """Runs jobs inline and delivers their results after their cost on the virtual clock, one after the other."""

    def __init__(self, name: str, scheduler: VirtualScheduler, real_clock: Clock, *, capacity: int = 8) -> None:
        """Measure costs with `real_clock`."""
        self._name = name
        self._scheduler = scheduler
        self._real_clock = real_clock
        self._capacity = capacity
        self._waiting: deque[tuple[str, Job, float | None]] = deque()
        self._is_running = False
        self._is_stopped = False
        self.refused = 0
        self.failed = 0

    def submit(self, job: Job, *, name: str, cost_s: float | None = None) -> bool:
        """Queue `job`; with `cost_s` the run is the same every time."""
        if self._is_stopped or len(self._waiting) >= self._capacity:
            self.refused += 1
            return False
        self._waiting.append((name, job, cost_s))
        if not self._is_running:
            self._start_next()
        return True

    @property
    def is_busy(self) -> bool:
        """Whether a job waits or its result has not been delivered."""
        return self._is_running or bool(self._waiting)

    def stop(self, timeout_s: float) -> bool:
        """Drop what waits."""
        self._is_stopped = True
        self._waiting.clear()
        return True

    def _start_next(self) -> None:
        if not self._waiting or self._is_stopped:
            return
        name, job, cost_s = self._waiting.popleft()
        self._is_running = True
        began_s = self._real_clock.monotonic_s()
        deliver: Callable[[], None] | None = None
        try:
            deliver = job()
        except Exception:
            self.failed += 1
            log.exception("job %s failed", name)
        took_s = self._real_clock.monotonic_s() - began_s if cost_s is None else cost_s

        def finish() -> None:
            self._is_running = False
            if deliver is not None and not self._is_stopped:
                deliver()
            if not self._is_running:
                self._start_next()

        self._scheduler.at(self._scheduler.clock.monotonic_s() + took_s, finish)
