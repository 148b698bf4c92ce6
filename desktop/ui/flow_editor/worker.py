"""Does the editor's work on files off the GUI thread, one job after another, and brings the results back."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from desktop.faults import Fault, fault_of
from desktop.flow_files import FlowFiles
from orchestrator.contracts.errors import MynahError

log = logging.getLogger(__name__)

_STOP_LIMIT_S = 3.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Job:
    key: str | None
    run: Callable[[FlowFiles], Any]
    then: Callable[[Any], None]


class FlowWorker(QObject):
    """Owns the thread “flow-files” and the layer's files; callbacks come on the GUI thread.

    Jobs wait without a bound, but one with a `key` replaces the waiting one of that key.
    """

    failed = Signal(object)
    _finished = Signal(object)

    def __init__(self, files: FlowFiles, parent: QObject | None = None) -> None:
        """Start no thread before the first job."""
        super().__init__(parent)
        self._files = files
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._finished.connect(self._on_finished, Qt.ConnectionType.QueuedConnection)

    def run(self, job: Callable[[FlowFiles], T], then: Callable[[T], None], *, key: str | None = None) -> None:
        """Do `job` on the thread, then call `then` here; an error of the user's becomes `failed`, as a `Fault`."""
        with self._wake:
            if self._is_stopped:
                return
            if key is not None:
                self._jobs = deque(j for j in self._jobs if j.key != key)
            self._jobs.append(_Job(key, job, then))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="flow-files", daemon=True)
                self._thread.start()
            self._wake.notify()

    def stop(self) -> None:
        """Finish what waits, then end the thread; idempotent."""
        with self._wake:
            self._is_stopped = True
            self._wake.notify()
            thread = self._thread
        if thread is not None:
            thread.join(_STOP_LIMIT_S)

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._is_stopped:
                    self._wake.wait()
                if not self._jobs:
                    return
                job = self._jobs.popleft()
            try:
                result = job.run(self._files)
            except MynahError as error:
                self._emit(fault_of(error))
            except Exception as error:
                log.exception("work on flow files failed")
                self._emit(fault_of(error))
            else:
                self._emit((job.then, result))

    def _emit(self, result: object) -> None:
        try:
            self._finished.emit(result)
        except RuntimeError:
            # The window is gone; nobody waits for the result.
            log.debug("a result came after the end")

    def _on_finished(self, result: object) -> None:
        if isinstance(result, Fault):
            self.failed.emit(result)
        elif isinstance(result, tuple) and not self._is_stopped:
            then, value = result
            then(value)
