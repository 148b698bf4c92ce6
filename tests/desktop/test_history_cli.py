"""`mynah history` on a real store."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop.bootstrap import DATABASE
from desktop.history_cli import history_main
from orchestrator.contracts.dialogue import HistoryEntry
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.ids import GenerationId, SessionId
from orchestrator.store import records
from orchestrator.store.database import Database

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    database = Database(tmp_path / DATABASE, is_inline=True)
    for number, (role, text, status) in enumerate(
        [("user", "hello", "completed"), ("assistant", "Hi there", "interrupted"), ("user", "你好", "completed")]
    ):
        session = SessionId(f"s-{number // 2}")
        entry = HistoryEntry(role=role, text=text, status=status)

        def work(db: object, session: SessionId = session, entry: HistoryEntry = entry) -> None:
            records.add_session(db, session, NOW)  # type: ignore[arg-type]
            records.add_message(
                db,  # type: ignore[arg-type]
                session_id=session, generation_id=GenerationId("g"), utterance_id=None, entry=entry, at=NOW,
            )  # fmt: skip

        database.transact_now(work)
    database.close()
    return tmp_path


def run(data: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert history_main(["--data", str(data), *arguments]) == 0
    return capsys.readouterr().out


def test_list_export_delete(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sessions = json.loads(run(data, capsys, "list", "--json"))
    assert {row["id"]: row["messages"] for row in sessions} == {"s-0": 2, "s-1": 1}
    exported = run(data, capsys, "export", "s-0")
    assert "hello" in exported and "Hi there *(interrupted)*" in exported and "你好" not in exported
    assert [m["text"] for m in json.loads(run(data, capsys, "export", "--format", "json"))] == [
        "hello",
        "Hi there",
        "你好",
    ]
    assert run(data, capsys, "delete", "s-0").startswith("2 messages")
    assert [m["text"] for m in json.loads(run(data, capsys, "export", "--format", "json"))] == ["你好"]
    assert run(data, capsys, "delete", "--all").startswith("1 messages")
    assert json.loads(run(data, capsys, "list", "--json")) == []


def test_what_is_not_there_is_said(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="s-9"):
        history_main(["--data", str(data), "export", "s-9"])
    with pytest.raises(InputError, match="--all"):
        history_main(["--data", str(data), "delete"])
    empty = tmp_path / "empty"
    assert run(empty, capsys, "list").startswith("no conversations")
    with pytest.raises(InputError, match="no conversations"):
        history_main(["--data", str(empty), "export"])


@pytest.mark.parametrize("what", [["list", "--json"], ["export", "--format", "json"], ["delete", "--all"]])
def test_the_folder_may_be_named_before_and_behind_the_sub_command(
    data: Path, what: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for argv in (["--data", str(data), *what], [*what, "--data", str(data)], [what[0], "--data", str(data), *what[1:]]):
        if what[0] != "delete" or not shown:
            assert history_main(argv) == 0
            shown.append(capsys.readouterr().out)
        else:
            assert history_main(argv) == 0
            assert capsys.readouterr().out == "0 messages deleted\n"
    assert len(set(shown)) == 1 and shown[0] not in ("", "[]\n")


def test_the_folder_named_last_counts(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert history_main(["--data", str(empty), "list", "--json", "--data", str(data)]) == 0
    assert json.loads(capsys.readouterr().out)
