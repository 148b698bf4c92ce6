"""An asyncio loop on a virtual clock: time jumps to the next timer, but never while real work is under way."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.clock import Clock, VirtualClock

_POLL_S = 0.005


class _VirtualSelector(selectors.BaseSelector):
    """Waits for sockets like any selector, but moves the virtual clock instead of sleeping."""

    def __init__(self, clock: VirtualClock, real: Clock, is_working: Callable[[], bool], *, is_frozen: bool) -> None:
        self._inner = selectors.DefaultSelector()
        self._clock = clock
        self._real = real
        self._is_working = is_working
        self._is_frozen = is_frozen

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._is_working() or timeout is None:
            began_s = self._real.monotonic_s()
            ready = self._inner.select(_POLL_S if timeout is None or self._is_frozen else min(timeout, _POLL_S))
            if not self._is_frozen and self._is_working():
                self._clock.advance(self._real.monotonic_s() - began_s)
            return ready
        self._clock.advance(timeout)
        return []

    def close(self) -> None:
        self._inner.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs on `clock`.

    While `is_working()` is true (a model call is under way) the clock moves with real time, so that a call costs what
    it takes; with `is_frozen` it stands still instead, and the caller adds fixed costs. Work for an executor runs
    inline and
    costs its measured time, nothing when frozen.
    """

    def __init__(
        self, clock: VirtualClock, real: Clock, is_working: Callable[[], bool], *, is_frozen: bool = False
    ) -> None:
        """Begin at the clock's present time."""
        self._virtual_clock = clock
        self._real_clock = real
        self._is_frozen = is_frozen
        super().__init__(_VirtualSelector(clock, real, is_working, is_frozen=is_frozen))

    def time(self) -> float:
        """Return the virtual time."""
        return self._virtual_clock.monotonic_s()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run `func` now, in this thread."""
        future: asyncio.Future[Any] = self.create_future()
        began_s = self._real_clock.monotonic_s()
        try:
            future.set_result(func(*args))
        except BaseException as error:
            future.set_exception(error)
        if not self._is_frozen:
            self._virtual_clock.advance(self._real_clock.monotonic_s() - began_s)
        return future
