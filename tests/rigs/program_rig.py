"""The program as a user starts it, with its events read while it runs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.bus.event_checker import check_file

ROOT = Path(__file__).resolve().parent.parent.parent
Record = dict[str, Any]


class Program:
    """A started `mynah`; use it as a context manager. `events` has everything it wrote so far."""

    def __init__(
        self, arguments: list[str], *, folder: Path, env: Mapping[str, str], ready_timeout_s: float = 90.0
    ) -> None:
        self.folder = folder
        self.events_path = folder / "events.jsonl"
        self._arguments = arguments
        self._env = {**os.environ, **env}
        self._ready_timeout_s = ready_timeout_s
        self._lines: queue.Queue[str] = queue.Queue()
        self._offset = 0
        self._partial = ""
        self.events: list[Record] = []
        self.stderr_path = folder / "stderr.txt"
        self.process: subprocess.Popen[str] | None = None
        self.ready_after_s = 0.0
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Program:
        command = [
            sys.executable, "-m", "desktop.cli", *self._arguments, "--events", str(self.events_path),
            "--data", str(self.folder / "data"), "--control", "-",
        ]  # fmt: skip
        began_s = time.monotonic()
        with self.stderr_path.open("w") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=self._env,
                cwd=ROOT,
            )
        self._reader = threading.Thread(target=self._read_stdout, name="program-stdout", daemon=True)
        self._reader.start()
        try:
            while self._lines.get(timeout=self._ready_timeout_s) != "ready":
                pass
        except queue.Empty:
            self._kill()
            self._close_pipes()
            raise AssertionError(f"not ready in time: {self.stderr}") from None
        self.ready_after_s = time.monotonic() - began_s
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self._kill()
        self._close_pipes()

    def _close_pipes(self) -> None:
        if self._reader is not None:
            self._reader.join(5)
        for pipe in (self.process.stdin, self.process.stdout) if self.process is not None else ():
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def send(self, **command: Any) -> None:
        """Write a line to the control channel."""
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(json.dumps(command, ensure_ascii=False) + "\n")
        self.process.stdin.flush()

    def wait_for(
        self, kind: str, matches: Callable[[Record], bool] = lambda _: True, *, timeout_s: float = 30.0, after: int = 0
    ) -> Record:
        """Return the first event of `kind` that matches, beyond seq `after`; waits for it."""
        until_s = time.monotonic() + timeout_s
        seen = 0
        while True:
            self._read_events()
            for record in self.events[seen:]:
                if record["type"] == kind and record["seq"] > after and matches(record):
                    return record
            seen = len(self.events)
            if time.monotonic() > until_s:
                tail = [(r["type"], r["payload"]) for r in self.events if r["type"] != "bus:handled"][-12:]
                raise AssertionError(f"no {kind} within {timeout_s} s; the last events: {tail}; {self.stderr}")
            time.sleep(0.02)

    def of(self, kind: str) -> list[Record]:
        """Return all events of `kind` so far."""
        self._read_events()
        return [record for record in self.events if record["type"] == kind]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Stop it with a signal; returns its exit code and how long it took. Its events file is checked, too."""
        assert self.process is not None
        began_s = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(15)
        took_s = time.monotonic() - began_s
        self._read_events()
        problems = check_file(self.events_path)
        assert problems == [], problems
        return code, took_s

    @property
    def stderr(self) -> str:
        """What it complained about."""
        return self.stderr_path.read_text(encoding="utf-8", errors="replace")[-2000:]

    def _read_stdout(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def _read_events(self) -> None:
        if not self.events_path.exists():
            return
        with self.events_path.open(encoding="utf-8") as file:
            file.seek(self._offset)
            text = self._partial + file.read()
            self._offset = file.tell()
        *lines, self._partial = text.split("\n")
        self.events.extend(json.loads(line) for line in lines if line)

    def _kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(5)
