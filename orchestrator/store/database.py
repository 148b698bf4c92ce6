"""The SQLite file: opening, migrating, setting aside what is broken, and running work off the core loop."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.contracts.errors import InputError, PartFailed
from orchestrator.contracts.wellformed import mend
from orchestrator.store.schema import MIGRATIONS

log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class _Connection(sqlite3.Connection):
    """A connection that never meets text SQLite can't hold."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run one statement, the texts among its values mended."""
        return super().execute(sql, mend(parameters))


class Database:
    """One connection on a thread of its own (`store`); inline when `is_inline`, for simulation and tests.

    Each `transact` is one transaction, all or nothing. `moved_aside` names the file a corrupted database was moved to.
    """

    def __init__(self, path: Path | None, *, is_inline: bool = False) -> None:
        """Open `path`, or a database in memory when None. Raises `PartFailed` store_unavailable."""
        self._path = path
        self.moved_aside: Path | None = None
        self._executor = None if is_inline else ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._connection = self._open_safely()

    async def transact(self, work: Work[T]) -> T:
        """Run `work` in one transaction and return its result. Not interrupted half-way by a cancel."""
        if self._executor is None:
            return self.transact_now(work)
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._executor, self.transact_now, work))

    def transact_now(self, work: Work[T]) -> T:
        """Run `work` in one transaction in this thread; for start-up, shutdown and command-line tools."""
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                # A full disk has SQLite roll back by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise PartFailed(
                "store_failed", f"the conversation store failed: {error}", part="store", recoverable=True
            ) from error
        return result

    def close(self) -> None:
        """Finish waiting work and close the file."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)
        self._connection.close()

    def _open_safely(self) -> sqlite3.Connection:
        try:
            return self._open()
        except OSError as error:
            raise InputError("data_unwritable", f"cannot write to the data folder: {error}", part="store") from error
        except sqlite3.Error as error:
            # A file that is locked or can't be read is whole: only what is damaged is moved away.
            if self._path is None or not _is_damage(error):
                raise PartFailed(
                    "store_unavailable", f"cannot open the conversation store: {error}", part="store"
                ) from error
            self.moved_aside = _set_aside(self._path)
            log.warning("the conversation store was damaged and was moved to %s", self.moved_aside.name)
            try:
                return self._open()
            except sqlite3.Error as second:
                raise PartFailed(
                    "store_unavailable", f"cannot open the conversation store: {second}", part="store"
                ) from second

    def _open(self) -> sqlite3.Connection:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            str(self._path) if self._path is not None else ":memory:",
            isolation_level=None,
            check_same_thread=False,
            timeout=5.0,
            factory=_Connection,
        )
        try:
            version = _version_of(connection)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA foreign_keys=ON")
            if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
                raise _Damaged("the file is damaged")
            _migrate(connection, version)
        except BaseException:
            connection.close()
            raise
        return connection


class _Damaged(sqlite3.DatabaseError):
    """The file can be opened but is not whole."""


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, _Damaged) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _version_of(connection: sqlite3.Connection) -> int:
    """Return the schema's version; asked before anything is written. Raises `PartFailed` store_too_new."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise PartFailed(
            "store_too_new",
            f"the conversation store was written by a newer Mynah (schema {version}, this one knows "
            f"{len(MIGRATIONS)}); update Mynah or choose another --data folder",
            part="store",
        )
    return version


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    for number in range(version, len(MIGRATIONS)):
        try:
            connection.executescript(f"BEGIN; {MIGRATIONS[number]}; PRAGMA user_version={number + 1}; COMMIT;")
        except sqlite3.Error as error:
            if _is_damage(error):
                raise
            raise PartFailed(
                "store_migration_failed",
                f"the conversation store could not be brought up to date (schema {number + 1}): {error}",
                part="store",
            ) from error


def _set_aside(path: Path) -> Path:
    number = 1
    while True:
        target = path.with_name(f"{path.name}.damaged-{number}")
        if not target.exists():
            break
        number += 1
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(target.with_name(target.name + suffix))
    return target
