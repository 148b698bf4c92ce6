"""A lock between processes, held on a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


@contextmanager
def file_lock(path: Path, *, keep_waiting: Callable[[], None], poll_s: float = 0.2) -> Iterator[None]:
    """Hold the lock on `path` for the block; the system frees it when the process dies.

    While somebody else holds it, `keep_waiting` is called every `poll_s` seconds and may raise to give up.
    The file stays: removing it would let two processes lock two files of the same name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        while not _try_lock(file):
            keep_waiting()
            time.sleep(poll_s)
        yield
