"""A store that was damaged: the program starts, the record has it, and the user hears what is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig

from desktop.faults import fault_text
from orchestrator.contracts.views import NoticeView


def test_damage_is_shown_and_said_once_and_the_conversation_works(tmp_path: Path) -> None:
    (tmp_path / "r.db").write_bytes(b"this is a letter and no database\n" * 200)
    rig = ConversationRig(tmp_path / "r.db")
    assert rig.until(rig.is_quiet)
    (error,) = rig.payloads("app:error")
    assert (error["code"], error["part"], error["recoverable"]) == ("store_damaged", "store", True)
    assert "r.db.damaged-1" in error["message"] and "reminders" in error["message"]
    assert [view.code for view in rig.views.shown if isinstance(view, NoticeView)] == ["store_damaged"]
    assert rig.words_sounded() == "store damaged and lost."
    rig.ask("tell me", rig.sentence())
    rig.finish_everything()
    rig.close()
    rig.open()
    assert rig.until(rig.is_quiet)
    assert not rig.payloads("app:error"), "the new store is whole"
    rig.close()
    rig.check()
    rig.dispose()


@pytest.mark.parametrize(("language", "named"), [("en", "your reminders"), ("zh", "你的提醒")])
def test_the_words_name_the_reminders_and_the_file(language: str, named: str) -> None:
    assert named in fault_text("store_damaged", "", language)
    assert "mynah.db.damaged-1" in fault_text("store_damaged", "moved to “mynah.db.damaged-1”.", language)
