from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings
from desktop.settings_service import SettingsService
from desktop.ui.history.panel import HistoryPanel
from desktop.ui.i18n.translator import LANGUAGES
from desktop.ui.panels import Panels
from orchestrator.contracts.commands import NewSession, SendText
from orchestrator.contracts.dialogue import HistoryEntry
from orchestrator.contracts.ids import SessionId, UtteranceId
from orchestrator.contracts.views import UserTextView
from orchestrator.store import records
from orchestrator.store.database import Database

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SAID = (("user", "weather in foo chow"), ("assistant", "It is sunny."), ("user", "谢谢"), ("assistant", "不客气。"))


class Opened:
    def __init__(self, qtbot: QtBot, stage: Any, folder: Path) -> None:
        self.qtbot, self.stage, self.window = qtbot, stage, stage.window
        self.store = Database(folder / "mynah.db", is_inline=True)
        self.service = HistoryService(folder / "mynah.db", stage.bridge.submit)
        settings = SettingsService(folder, Settings(), stage.clock, list_sound=lambda: pytest.fail("not asked for"))
        self.panels = Panels(stage.window, stage.bridge, settings, EventInbox(), PromptRecord(), self.service)

    def store_lines(self, *lines: tuple[str, str]) -> None:
        def fill(db: sqlite3.Connection) -> None:
            records.add_session(db, SessionId("s"), AT)
            for number, (role, text) in enumerate(lines):
                entry = HistoryEntry(role=role, text=text, status="completed")
                at = AT + timedelta(minutes=number)
                records.add_message(
                    db, session_id=SessionId("s"), generation_id=None, utterance_id=None, entry=entry, at=at
                )

        self.store.transact_now(fill)

    def open(self) -> HistoryPanel:
        self.window.activateWindow()
        self.qtbot.waitUntil(self.window.isActiveWindow)
        QTest.keyClick(self.window, Qt.Key.Key_H, Qt.KeyboardModifier.ControlModifier)
        panel = self.panels.history
        assert panel.isVisible()
        return panel

    def open_with(self, count: int) -> HistoryPanel:
        panel = self.open()
        self.qtbot.waitUntil(lambda: len(panel.model.lines) == count)
        return panel

    def click_line(self, panel: HistoryPanel, row: int) -> None:
        panel.list.scrollTo(panel.model.index(row))
        at: QPoint = panel.list.visualRect(panel.model.index(row)).center()
        QTest.mouseClick(panel.list.viewport(), Qt.MouseButton.LeftButton, pos=at)


def click(button: QPushButton) -> None:
    assert button.isVisible()
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.fixture
def make_opened(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[[Any], Opened]]:
    made: list[Opened] = []

    def make(stage: Any) -> Opened:
        made.append(Opened(qtbot, stage, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.service.close()
        one.store.close()


@pytest.fixture
def opened(stage: Any, make_opened: Callable[[Any], Opened]) -> Opened:
    return make_opened(stage)


def test_an_empty_history_says_what_it_is_for(opened: Opened) -> None:
    panel = opened.open()
    assert "kept here" in panel.empty.text()
    assert panel.empty.isVisible()
    assert not panel.delete_all.isEnabled()


def test_both_speakers_are_shown_and_new_lines_come_by_themselves(opened: Opened) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    words = [panel.model.data(panel.model.index(row)) for row in range(4)]
    assert [str(one).split(" · ")[0] for one in words] == ["You", "Mynah", "You", "Mynah"]
    opened.store_lines(("user", "one more"))
    opened.stage.show(UserTextView(utterance_id=UtteranceId("u"), text="one more", final=True))
    opened.qtbot.waitUntil(lambda: panel.model.lines[-1].text == "one more")


def test_typing_searches(opened: Opened) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    QTest.keyClicks(panel.search, "SUNNY")
    opened.qtbot.waitUntil(lambda: [line.text for line in panel.model.lines] == ["It is sunny."])
    panel.search.setText("nobody said this")
    opened.qtbot.waitUntil(lambda: panel.empty.isVisible() and "Nothing like that" in panel.empty.text())


def test_a_line_is_copied_by_key(opened: Opened) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    opened.click_line(panel, 2)
    panel.list.setFocus()
    QTest.keyClick(panel.list, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "谢谢"


def test_a_deletion_asks_first_and_keeping_is_the_default(opened: Opened) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    assert not panel.delete.isEnabled(), "nothing is chosen"
    opened.click_line(panel, 1)
    click(panel.delete)
    assert panel.question.isVisible()
    assert panel.keep.hasFocus()
    QTest.keyClick(panel.keep, Qt.Key.Key_Space)
    assert not panel.question.isVisible()
    panel.refresh()
    opened.qtbot.wait(50)
    assert len(panel.model.lines) == 4
    opened.click_line(panel, 1)
    click(panel.delete)
    click(panel.confirm)
    opened.qtbot.waitUntil(lambda: [line.text for line in panel.model.lines] == [SAID[i][1] for i in (0, 2, 3)])


def test_deleting_all_asks_first_and_begins_anew(opened: Opened, outside: Any) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    click(panel.delete_all)
    click(panel.confirm)
    opened.qtbot.waitUntil(lambda: panel.empty.isVisible())
    assert NewSession() in outside.commands


def test_a_misheard_line_is_asked_again_from_the_corrected_text(opened: Opened, outside: Any) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    opened.click_line(panel, 1)
    assert not panel.correct.isEnabled(), "only what the user said can be misheard"
    opened.click_line(panel, 0)
    click(panel.correct)
    assert panel.corrected.text() == "weather in foo chow"
    QTest.keyClicks(panel.corrected, "weather in Fuzhou")
    QTest.keyClick(panel.corrected, Qt.Key.Key_Return)
    assert outside.commands == [SendText(text="weather in Fuzhou", corrects="weather in foo chow")]
    assert not panel.corrected.isVisible()
    opened.qtbot.waitUntil(lambda: opened.service.learned() == ("Fuzhou",))


def test_a_correction_that_is_refused_stays_to_be_sent_again(opened: Opened, outside: Any) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    opened.click_line(panel, 0)
    click(panel.correct)
    outside.accepts = False
    click(panel.resend)
    assert panel.corrected.isVisible()
    assert "could not be sent" in panel.status.text()


def test_what_is_shown_is_exported(opened: Opened, tmp_path: Path) -> None:
    opened.store_lines(*SAID)
    panel = opened.open_with(4)
    panel.save(tmp_path / "talk.srt")
    opened.qtbot.waitUntil(lambda: "talk.srt" in panel.status.text())
    assert "Mynah: 不客气。" in (tmp_path / "talk.srt").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_every_text_is_there_and_fits(
    make_stage: Callable[..., Any], make_opened: Callable[[Any], Opened], language: str
) -> None:
    one = make_opened(make_stage(language))
    one.store_lines(*SAID)
    panel = one.open_with(4)
    one.click_line(panel, 0)
    click(panel.delete)
    assert one.window.translator.missing == set()
    for label in panel.findChildren(QLabel):
        if label.isVisible() and label.text():
            assert label.height() >= label.heightForWidth(label.width()), label.text()
    for button in panel.findChildren(QPushButton):
        if button.isVisible() and button.objectName():
            assert button.accessibleName(), button.objectName()
            assert button.width() >= QFontMetrics(button.font()).horizontalAdvance(button.text()), button.text()
