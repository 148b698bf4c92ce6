"""A disk that is full: nothing can be stored, the user is told once, and the conversation goes on."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig, checked_rig

from desktop.faults import fault_text
from orchestrator.contracts.commands import Notify
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.views import NoticeView
from orchestrator.store.database import Database

LONG = " with many words" * 400


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


def fill(rig: ConversationRig, *, is_full: bool) -> None:
    """Let the database grow no more, as on a full disk, or grow again."""
    connection = rig.database._connection
    pages = int(connection.execute("PRAGMA page_count").fetchone()[0])
    connection.execute(f"PRAGMA max_page_count={pages if is_full else 1_000_000}")


def test_the_conversation_goes_on_and_the_user_is_told_once(
    rig: ConversationRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fill(rig, is_full=True)
    said = []
    for topic in ("Rome", "Paris", "罗马"):
        said.append(rig.sentence().strip())
        rig.ask(f"tell me about {topic}{LONG}", said[-1])
        assert rig.until(rig.is_quiet)
    rig.do(lambda: rig.core.handle(Notify(id="n", text="the kettle boils.", urgent=False)))
    assert rig.until(rig.is_quiet)
    heard = rig.words_sounded()
    assert all(sentence in heard for sentence in (*said, "the kettle boils."))
    assert heard.count("store failed and lost.") == 1
    (error,) = rig.payloads("app:error")
    assert (error["code"], error["part"], error["recoverable"]) == ("store_failed", "store", True)
    assert "full" in error["message"]
    assert [view.code for view in rig.views.shown if isinstance(view, NoticeView)] == ["store_failed"]
    assert not [record for record in caplog.records if record.exc_info], "no traceback"
    remembered = [entry.text for entry in rig.core.history.entries if entry.role == "assistant"]
    assert all(sentence in remembered for sentence in said), "the conversation is in mind all the same"
    fill(rig, is_full=False)
    rig.ask("tell me more", rig.sentence())
    assert rig.until(rig.is_quiet)
    assert [entry["text"] for entry in rig.stored() if entry["role"] == "user"][-1] == "tell me more"


def test_a_reminder_that_can_not_be_marked_is_marked_when_there_is_room(rig: ConversationRig) -> None:
    from orchestrator.contracts.dialogue import Reminder
    from orchestrator.store import records

    due = rig.clock.wall()
    rig.database.transact_now(
        lambda db: records.add_reminder(db, Reminder(id="r", text="water the plants.", due=due), effect_key=None)
    )
    real = rig.database.transact_now

    def refuse(work: object) -> object:
        raise PartFailed("store_failed", "database or disk is full", part="store", recoverable=True)

    rig.do(rig.core._reminders.look_again)
    rig.database.transact_now = refuse  # type: ignore[assignment, method-assign]
    assert rig.until(lambda: "water the plants." in rig.words_sounded())
    rig.seconds(1.0)
    rig.database.transact_now = real  # type: ignore[method-assign]
    assert rig.until(lambda: not rig.database.transact_now(records.waiting_reminders), 70.0)
    assert rig.words_sounded().count("water the plants.") == 1


def test_the_error_of_a_full_disk_says_so(tmp_path: Path) -> None:
    database = Database(tmp_path / "m.db", is_inline=True)
    pages = database._connection.execute("PRAGMA page_count").fetchone()[0]
    database._connection.execute(f"PRAGMA max_page_count={pages}")

    def write(db: sqlite3.Connection) -> None:
        for number in range(2000):
            db.execute("INSERT INTO sessions (id, started_at) VALUES (?, ?)", (f"s{number}", "x" * 100))

    with pytest.raises(PartFailed, match="full"):
        database.transact_now(write)
    database.transact_now(lambda db: db.execute("SELECT 1").fetchone())
    database.close()


@pytest.mark.parametrize(("language", "named"), [("en", "disk"), ("zh", "磁盘")])
def test_the_words_say_what_may_be_wrong(language: str, named: str) -> None:
    assert named in fault_text("store_failed", "", language)
