"""Checking in a process of its own: a long file is parsed and validated without the window's thread waiting for it.

The interpreter's lock is shared by all threads of a process, so a check on a mere thread makes the window stutter.
Run as a module it is the child: requests come by standard input, answers go to standard output, its end is theirs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from desktop.flow_check import FlowCheck
from desktop.flow_files import FlowFiles
from desktop.flow_folders import FlowFolders
from desktop.ui.flow_editor.checking import CheckResult, check_job

log = logging.getLogger(__name__)

_NICE = 5
"""The child waits for speech."""


class CheckProcess:
    """Owner of the child. One thread at a time asks; `close` may come from another.

    A child that dies is started once more; after that checks run here, slower for the window but all the same.
    """

    def __init__(self, folders: FlowFolders) -> None:
        """Start nothing before the first question."""
        self._folders = folders
        self._process: subprocess.Popen[bytes] | None = None
        self._starts_left = 2
        self._is_closed = False
        self._lock = threading.Lock()
        self._here: FlowFiles | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, none while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def check(self, version: int, texts: Mapping[str, str], label: str, text: str) -> CheckResult:
        """Check everything with `texts` unsaved; `text` is the open one, called `label`."""
        question = (version, dict(texts), label, text)
        while not self._is_closed and (process := self._running()) is not None:
            try:
                found = _ask(process, question)
            except (OSError, EOFError, pickle.PickleError) as error:
                log.warning("the checking process ended: %s", type(error).__name__)
                self._end()
                continue
            if isinstance(found, CheckResult):
                return found
            raise RuntimeError(str(found))
        if self._is_closed:
            return CheckResult(version=-1)
        if self._here is None:
            self._here = FlowFiles(self._folders, FlowCheck(self._folders))
        return check_job(self._here, version, texts, label, text)

    def close(self) -> None:
        """End the child."""
        self._is_closed = True
        self._end()

    def _running(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._process is None and self._starts_left > 0 and not self._is_closed:
                self._starts_left -= 1
                self._process = self._start()
            return self._process

    def _start(self) -> subprocess.Popen[bytes] | None:
        root = Path(__file__).resolve().parents[3]
        paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )
            assert process.stdin is not None
            pickle.dump(self._folders, process.stdin)
            process.stdin.flush()
        except OSError as error:
            log.warning("the checking process does not start: %s", error)
            return None
        return process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _ask(process: subprocess.Popen[bytes], question: object) -> Any:
    assert process.stdin is not None and process.stdout is not None
    pickle.dump(question, process.stdin)
    process.stdin.flush()
    return pickle.load(process.stdout)


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the questions end."""
    folders = pickle.load(questions)
    files = FlowFiles(folders)
    while True:
        try:
            version, texts, label, text = pickle.load(questions)
        except EOFError:
            return
        found: object
        try:
            found = check_job(files, version, texts, label, text)
        except Exception as error:  # the other side says it
            found = f"{type(error).__name__}: {error}".splitlines()[0]
        pickle.dump(found, answers)
        answers.flush()


def main() -> None:
    """Be the child."""
    if hasattr(os, "nice"):
        os.nice(_NICE)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Nothing that prints may come between the answers.
    sys.stdout = sys.stderr
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
