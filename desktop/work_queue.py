"""Slow work for the window, one piece after the other on a named thread."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class WorkQueue:
    """Runs work in the order it came; the thread starts with the first piece. Any thread may add."""

    def __init__(self, name: str) -> None:
        """Call the thread `name`."""
        self._name = name
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, work: Callable[[], None]) -> bool:
        """Run `work` soon; False after `close`."""
        with self._lock:
            if self._is_closed:
                return False
            self._work.put(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return True

    def close(self, timeout_s: float = 0.5) -> None:
        """Take no more work and wait a little for what is there."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            self._work.put(None)
            thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            try:
                work()
            except Exception:
                log.exception("work of the thread %s failed", self._name)
            # The work may hold the last reference to a widget, which must not end with this thread.
            del work
