"""A lock between processes, held on a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from orchestrator.contracts.errors import InputError

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


class DataFolderLock:
    """Keeps a data folder for one running program; the system frees it when the process dies."""

    def __init__(self, path: Path) -> None:
        """Lock the file `path`. Raises `InputError` data_in_use while another process holds it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] | None = path.open("a+b")
        except OSError as error:
            raise InputError(
                "data_unwritable", f"cannot write to the data folder {path.parent}: {error.strerror}"
            ) from error
        if not _try_lock(self._file):
            self.release()
            raise InputError(
                "data_in_use",
                f"another Mynah uses the data folder {path.parent}; end it, or choose another folder with --data",
                part="data",
            )

    def release(self) -> None:
        """Let others have the folder; a second time does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
