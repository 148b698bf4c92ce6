from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.contracts.dialogue import HistoryEntry
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import ObjectRef
from orchestrator.contracts.ids import SessionId
from orchestrator.store import database as database_module
from orchestrator.store import records
from orchestrator.store.database import Database
from orchestrator.store.schema import MIGRATIONS

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def say(db: sqlite3.Connection, text: str) -> int:
    return records.add_message(
        db,
        session_id=SessionId("s"),
        generation_id=None,
        utterance_id=None,
        entry=HistoryEntry(role="user", text=text),
        at=NOW,
    )


def texts(path: Path) -> list[str]:
    database = Database(path, is_inline=True)
    try:
        return [row["text"] for row in database.transact_now(records.list_messages)]
    finally:
        database.close()


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "m.db", is_inline=True)

    def half(db: sqlite3.Connection) -> None:
        say(db, "one")
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        database.transact_now(half)
    database.transact_now(lambda db: say(db, "two"))
    database.close()
    assert texts(tmp_path / "m.db") == ["two"]


async def test_work_on_the_store_thread_is_finished_although_its_waiter_was_cancelled(tmp_path: Path) -> None:
    import threading

    database = Database(tmp_path / "m.db")
    may_go = threading.Event()

    def slow(db: sqlite3.Connection) -> None:
        may_go.wait(5)
        say(db, "whole")

    task = asyncio.create_task(database.transact(slow))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_go.set()
    await database.transact(lambda db: say(db, "after"))
    database.close()
    assert texts(tmp_path / "m.db") == ["whole", "after"]


def test_messages_come_back_as_they_were(tmp_path: Path) -> None:
    database = Database(tmp_path / "m.db", is_inline=True)
    entries = [
        HistoryEntry(role="user", text="what is this?", object=ObjectRef(type="file", id="f", title="图片.png")),
        HistoryEntry(role="assistant", text="一只鸟", status="interrupted", unheard="，很小。"),
    ]
    for entry in entries:
        database.transact_now(
            lambda db, entry=entry: records.add_message(
                db, session_id=SessionId("s"), generation_id=None, utterance_id=None, entry=entry, at=NOW
            )
        )
    database.close()
    database = Database(tmp_path / "m.db", is_inline=True)
    assert database.transact_now(lambda db: records.recent_messages(db, limit=5)) == entries
    assert database.transact_now(lambda db: records.recent_messages(db, limit=1)) == entries[1:]
    database.close()


@pytest.mark.parametrize("damage", ["header", "middle", "text", "empty_wal"])
def test_a_damaged_file_is_moved_aside_and_the_store_opens(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "m.db"
    database = Database(path, is_inline=True)
    for number in range(400):
        database.transact_now(lambda db, number=number: say(db, f"message {number} " * 8))
    database.close()
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[:64] = b"\x00" * 64
    elif damage == "middle":
        content[4096 : 4096 * 6] = b"\xff" * (4096 * 5)
    elif damage == "text":
        content = bytearray(b"this is no database, it is a letter\n" * 100)
    path.write_bytes(bytes(content))
    if damage == "empty_wal":
        path.with_name("m.db-wal").write_bytes(b"rubbish that is no log")
    database = Database(path, is_inline=True)
    is_fine = damage == "empty_wal"
    assert (database.moved_aside is None) is is_fine, "a rubbish log beside a whole file harms nobody"
    database.transact_now(lambda db: say(db, "new"))
    database.close()
    if not is_fine:
        assert texts(path) == ["new"]
        assert database.moved_aside is not None and database.moved_aside.read_bytes() == bytes(content)
        path.write_bytes(bytes(content))
        again = Database(path, is_inline=True)
        assert again.moved_aside != database.moved_aside, "an older one is never overwritten"
        again.close()


def test_a_file_of_schema_zero_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    sqlite3.connect(path).close()
    database = Database(path, is_inline=True)
    assert database.moved_aside is None
    assert database.transact_now(lambda db: db.execute("PRAGMA user_version").fetchone()[0]) == len(MIGRATIONS)
    database.transact_now(lambda db: say(db, "one"))
    database.close()


def test_later_migrations_keep_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.db"
    database = Database(path, is_inline=True)
    database.transact_now(lambda db: say(db, "old"))
    database.close()
    more = (*MIGRATIONS, "ALTER TABLE messages ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")
    monkeypatch.setattr(database_module, "MIGRATIONS", more)
    database = Database(path, is_inline=True)
    rows = database.transact_now(lambda db: db.execute("SELECT text, mood FROM messages").fetchall())
    assert rows == [("old", "calm")]
    database.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.db"
    database = Database(path, is_inline=True)
    database.transact_now(lambda db: say(db, "old"))
    database.close()
    monkeypatch.setattr(
        database_module, "MIGRATIONS", (*MIGRATIONS, "ALTER TABLE messages ADD COLUMN mood TEXT; SELECT * FROM nowhere")
    )
    with pytest.raises(PartFailed) as caught:
        Database(path, is_inline=True)
    assert caught.value.code == "store_migration_failed"
    assert list(tmp_path.glob("*.damaged-*")) == [], "it is not damaged"
    monkeypatch.setattr(database_module, "MIGRATIONS", MIGRATIONS)
    assert texts(path) == ["old"]


def test_a_file_of_a_newer_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(PartFailed) as caught:
        Database(path, is_inline=True)
    assert caught.value.code == "store_too_new"
    assert "newer Mynah" in caught.value.message
    assert path.read_bytes() == before
    assert list(tmp_path.glob("*.damaged-*")) == []


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "m.db").mkdir()
    with pytest.raises(PartFailed) as caught:
        Database(tmp_path / "m.db", is_inline=True)
    assert caught.value.code == "store_unavailable"


def test_a_file_that_another_program_has_locked_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.db"
    Database(path, is_inline=True).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    connect = sqlite3.connect
    monkeypatch.setattr(
        database_module.sqlite3, "connect", lambda *args, **fields: connect(*args, **{**fields, "timeout": 0.1})
    )
    with pytest.raises(PartFailed) as caught:
        Database(path, is_inline=True)
    assert caught.value.code == "store_unavailable"
    assert list(tmp_path.glob("*.damaged-*")) == []
    other.close()


def test_an_effect_key_is_started_once(tmp_path: Path) -> None:
    database = Database(tmp_path / "m.db", is_inline=True)

    def start(db: sqlite3.Connection) -> None:
        records.start_effect(db, key="k", name="n", args={}, at=NOW)

    def state() -> object:
        return database.transact_now(lambda db: records.effect_state(db, "k"))

    assert state() is None
    database.transact_now(start)
    assert state() == ("started", None)
    database.transact_now(lambda db: records.end_effect(db, key="k", ok=False, result=None))
    database.transact_now(start)
    assert state() is not None and state()[0] == "started"  # type: ignore[index]
    database.transact_now(lambda db: records.end_effect(db, key="k", ok=True, result={"id": "好"}))
    database.transact_now(start)
    assert state() == ("done", {"id": "好"}), "what is done stays done"
    database.close()
