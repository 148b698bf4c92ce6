from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop.history_service import Done, Found, HistoryService, Line, corrected_words, to_markdown, to_srt
from orchestrator.contracts.commands import Command, NewSession, SendText
from orchestrator.contracts.dialogue import HistoryEntry
from orchestrator.contracts.ids import SessionId
from orchestrator.store import records
from orchestrator.store.database import Database

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SAID = (
    ("s-1", "user", "Straße nach Fuzhou", "completed"),
    ("s-1", "assistant", "It is a long way", "interrupted"),
    ("s-2", "user", "明天会下雨吗", "completed"),
    ("s-2", "assistant", "明天有雨", "completed"),
)
NAMES = {"user": "You", "assistant": "Mynah"}


class Outside:
    """The conversation and its recogniser."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.words: list[tuple[str, ...]] = []
        self.accepts = True

    def submit(self, command: Command) -> bool:
        if self.accepts:
            self.commands.append(command)
        return self.accepts

    def expect_words(self, words: Sequence[str]) -> None:
        self.words.append(tuple(words))


class Waiting:
    def __init__(self) -> None:
        self._got: Any = None
        self._came = threading.Event()

    def __call__(self, result: Any) -> None:
        self._got = result
        self._came.set()

    def result(self) -> Any:
        assert self._came.wait(10.0), "no answer came"
        self._came.clear()
        return self._got


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture
def service(tmp_path: Path, outside: Outside) -> Iterator[HistoryService]:
    made = HistoryService(tmp_path / "mynah.db", outside.submit)
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    """The store as the running program has it open."""
    made = Database(tmp_path / "mynah.db", is_inline=True)

    def fill(db: sqlite3.Connection) -> None:
        for number, (session, role, text, status) in enumerate(SAID):
            at = AT + timedelta(seconds=10 * number)
            records.add_session(db, SessionId(session), at)
            entry = HistoryEntry(role=role, text=text, status=status)
            records.add_message(
                db, session_id=SessionId(session), generation_id=None, utterance_id=None, entry=entry, at=at
            )

    made.transact_now(fill)
    yield made
    made.close()


def find(service: HistoryService, query: str = "", limit: int = 500) -> Found:
    done = Waiting()
    service.find(query, done, limit)
    found = done.result()
    assert isinstance(found, Found)
    return found


def delete(service: HistoryService, ids: Sequence[int] | None) -> Done:
    done = Waiting()
    if ids is None:
        service.delete_all(done)
    else:
        service.delete(ids, done)
    result = done.result()
    assert isinstance(result, Done)
    return result


def test_without_a_store_there_is_nothing(service: HistoryService) -> None:
    assert find(service) == Found(query="")
    assert delete(service, None) == Done()


def test_lines_come_oldest_first_and_the_cut_is_marked(service: HistoryService, store: Database) -> None:
    lines = find(service).lines
    assert [line.text for line in lines] == [text for _, _, text, _ in SAID]
    assert [line.is_cut for line in lines] == [False, True, False, False]
    assert lines[0].at == AT


@pytest.mark.parametrize(("query", "hits"), [("FUZHOU", 1), ("strasse", 1), ("明天", 2), ("%", 0), ("' OR 1", 0)])
def test_search_knows_letter_case_of_every_language(
    service: HistoryService, store: Database, query: str, hits: int
) -> None:
    assert len(find(service, query).lines) == hits


def test_a_long_history_shows_its_newest_part(service: HistoryService, store: Database) -> None:
    found = find(service, limit=3)
    assert [line.text for line in found.lines] == [text for _, _, text, _ in SAID[1:]]
    assert found.has_more


def test_a_line_of_an_old_conversation_is_deleted_and_the_present_one_goes_on(
    service: HistoryService, store: Database, outside: Outside
) -> None:
    lines = find(service).lines
    assert delete(service, [lines[0].id]).count == 1
    assert [line.id for line in find(service).lines] == [line.id for line in lines[1:]]
    assert outside.commands == []


def test_deleting_from_the_present_conversation_begins_a_new_one(
    service: HistoryService, store: Database, outside: Outside
) -> None:
    delete(service, [find(service).lines[-1].id])
    assert outside.commands == [NewSession()]


def test_deleting_all_leaves_no_trace_and_the_program_can_go_on_storing(
    service: HistoryService, store: Database, outside: Outside, tmp_path: Path
) -> None:
    service.attach(outside)
    assert delete(service, None).count == len(SAID)
    assert outside.commands == [NewSession()]
    assert find(service).lines == ()
    for path in tmp_path.iterdir():
        assert b"Fuzhou" not in path.read_bytes(), path.name
    entry = HistoryEntry(role="user", text="new", status="completed")
    store.transact_now(
        lambda db: records.add_message(
            db, session_id=SessionId("s-2"), generation_id=None, utterance_id=None, entry=entry, at=AT
        )
    )
    assert [line.text for line in find(service).lines] == ["new"]


def test_what_a_cut_answer_stores_after_the_deletion_is_removed_too(
    service: HistoryService, store: Database, outside: Outside
) -> None:
    def begin_anew(command: Command) -> bool:
        store.transact_now(lambda db: records.add_session(db, SessionId("s-3"), AT + timedelta(hours=1)))
        return True

    service._submit = begin_anew
    delete(service, None)
    entry = HistoryEntry(role="assistant", text="what was heard", status="interrupted")
    store.transact_now(
        lambda db: records.add_message(
            db, session_id=SessionId("s-2"), generation_id=None, utterance_id=None, entry=entry, at=AT
        )
    )
    assert find(service).lines == ()
    assert store.transact_now(records.list_messages) == []


def test_a_store_that_can_not_be_read_is_said(service: HistoryService, tmp_path: Path) -> None:
    (tmp_path / "mynah.db").write_bytes(b"this is no database, only words " * 40)
    assert find(service).error
    assert delete(service, None).error


@pytest.mark.parametrize(
    ("heard", "said", "words"),
    [
        ("weather in foo chow", "weather in Fuzhou", ("Fuzhou",)),
        ("hello", "hello", ()),
        ("call me a", "call me Ann-Marie O'Neil", ("Ann-Marie", "O'Neil")),
        ("我在伏州", "我在福建省", ("福建省",)),
        ("", "a b", ()),
    ],
)
def test_only_what_was_misheard_is_learned(heard: str, said: str, words: tuple[str, ...]) -> None:
    assert corrected_words(heard, said) == words


def test_a_correction_asks_again_and_teaches_the_recogniser(
    service: HistoryService, store: Database, outside: Outside, tmp_path: Path
) -> None:
    service.attach(outside)
    line = find(service).lines[0]
    assert service.correct(line, " Straße nach Foochow ")
    find(service)  # the words were learned before this was answered
    assert outside.commands == [SendText(text="Straße nach Foochow", corrects=line.text)]
    assert outside.words == [("Foochow",)]
    later = HistoryService(tmp_path / "mynah.db", outside.submit)
    later.attach(outside)
    assert outside.words[-1] == ("Foochow",), "known again after a restart"


def test_a_correction_that_nobody_takes_teaches_nothing(service: HistoryService, outside: Outside) -> None:
    outside.accepts = False
    line = Line(id=1, session="s", role="user", status="completed", text="a", at=AT)
    assert not service.correct(line, "banana")
    assert not service.correct(line, "   ")
    assert service.learned() == ()


def test_a_misheard_turn_is_marked_and_left_out_of_exports(
    service: HistoryService, store: Database, tmp_path: Path
) -> None:
    first = find(service).lines[0]
    store.transact_now(lambda db: db.execute("UPDATE messages SET replaced_by = 'g9' WHERE id = ?", (first.id,)))
    lines = find(service).lines
    assert [line.is_replaced for line in lines] == [True, False, False, False]
    for name in ("talk.md", "talk.srt"):
        done = Waiting()
        service.export(tmp_path / name, lines, NAMES, done)
        done.result()
        assert first.text not in (tmp_path / name).read_text(encoding="utf-8")


def test_the_exports_are_readable(service: HistoryService, store: Database, tmp_path: Path) -> None:
    lines = find(service).lines
    for name in ("talk.md", "talk.srt"):
        done = Waiting()
        service.export(tmp_path / name, lines, NAMES, done)
        assert done.result() == Done(count=4)
    document = (tmp_path / "talk.md").read_text(encoding="utf-8")
    assert document.startswith("## 2026-11-30\n")
    assert "It is a long way …" in document
    blocks = (tmp_path / "talk.srt").read_text(encoding="utf-8").strip().split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == ["1", "2", "3", "4"]
    assert blocks[0].splitlines()[1:] == ["00:00:00,000 --> 00:00:01,200", "You: Straße nach Fuzhou"]
    done = Waiting()
    service.export(tmp_path / "no" / "where.md", lines, NAMES, done)
    assert "where.md" in done.result().error


def test_cues_never_overlap_and_text_can_not_break_the_format() -> None:
    lines = [
        Line(id=n, session="s", role="user", status="completed", text="a\n\n2\nb * [x](y) " * 20, at=AT)
        for n in range(4)
    ]
    blocks = to_srt(lines, NAMES).strip().split("\n\n")
    assert len(blocks) == 4
    ends = ""
    for block in blocks:
        start, _, end = block.splitlines()[1].partition(" --> ")
        assert ends <= start < end
        ends = end
    assert r"\[x\](y)" in to_markdown(lines, NAMES)
