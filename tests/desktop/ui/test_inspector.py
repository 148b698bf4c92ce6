from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QPlainTextEdit
from pytestqt.qtbot import QtBot

from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings
from desktop.settings_service import SettingsService
from desktop.ui.i18n.translator import LANGUAGES
from desktop.ui.inspector.panel import InspectorPanel
from desktop.ui.inspector.timeline import moment_text
from desktop.ui.panels import Panels
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask


def records(count: int = 1, *, from_s: float = 100.0) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number in range(count):
        at_s, ids = from_s + number, {"generationId": f"g-{number}", "utteranceId": f"u-{number}"}
        common = {"source": "test", **ids}
        made += [
            {"t": at_s, "type": "input:user", "lane": "dialogue", **common, "payload": {"text": f"question {number}"}},
            {"t": at_s + 0.1, "type": "generation:state", **common, "payload": {"from": None, "to": "PREPARING"}},
            {"t": at_s + 0.2, "type": "bus:handled", **common, "payload": {"wait_s": 0.1}},
            {
                "t": at_s + 0.3,
                "type": "intent:state",
                "lane": "control",
                "intentId": f"i-{number}",
                **common,
                "payload": {"kind": "speech", "text": f"answer {number}", "state": "dropped", "reason": "stale"},
            },
        ]
    return made


class Opened:
    def __init__(self, qtbot: QtBot, stage: Any, folder: Path) -> None:
        self.qtbot = qtbot
        self.window = stage.window
        self.inbox, self.prompts = EventInbox(), PromptRecord()
        service = SettingsService(folder, Settings(), stage.clock, list_sound=lambda: pytest.fail("not asked for"))
        self.panels = Panels(
            stage.window,
            stage.bridge,
            service,
            self.inbox,
            self.prompts,
            HistoryService(folder / "mynah.db", stage.bridge.submit),
        )

    def open(self) -> InspectorPanel:
        self.window.activateWindow()
        self.qtbot.waitUntil(self.window.isActiveWindow)
        QTest.keyClick(self.window, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
        panel = self.panels.inspector
        assert panel.isVisible()
        return panel

    def feed(self, found: list[dict[str, Any]]) -> None:
        for record in found:
            self.inbox.offer(record)
        self.panels.inspector.refresh()


@pytest.fixture
def opened(qtbot: QtBot, stage: Any, tmp_path: Path) -> Opened:
    return Opened(qtbot, stage, tmp_path)


def column(table: Any, index: int) -> list[str]:
    return [table.topLevelItem(row).text(index) for row in range(table.topLevelItemCount())]


def test_the_key_opens_and_closes_it(opened: Opened) -> None:
    panel = opened.open()
    assert "as it happens" in panel.status.text()
    QTest.keyClick(opened.window, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    assert not panel.isVisible()


def test_live_events_reach_the_tables(opened: Opened) -> None:
    panel = opened.open()
    opened.feed(records(2))
    panel.tabs.setCurrentIndex(1)
    assert column(panel.answers, 6) == ["question 1", "question 0"]
    assert column(panel.answers, 1) == ["preparing", "preparing"]
    panel.tabs.setCurrentIndex(2)
    ends = list(zip(column(panel.outputs, 3), column(panel.outputs, 4), strict=True))
    assert ends == [("dropped", "its answer was over")] * 2
    assert "8 events" in panel.status.text()


def test_events_are_taken_while_nobody_looks(opened: Opened) -> None:
    panel = opened.panels.inspector
    opened.feed(records(3))
    assert len(panel.live.answers) == 3


def test_the_arrow_keys_walk_through_the_events(opened: Opened) -> None:
    panel = opened.open()
    opened.feed(records())
    panel.timeline.setFocus()
    QTest.keyClick(panel.timeline, Qt.Key.Key_Left)
    assert json.loads(panel.details.toPlainText())["type"] == "intent:state"
    QTest.keyClick(panel.timeline, Qt.Key.Key_Left)
    assert json.loads(panel.details.toPlainText())["type"] == "generation:state", "chatter is skipped"
    QTest.mouseClick(panel.with_chatter, Qt.MouseButton.LeftButton, pos=QPoint(8, panel.with_chatter.height() // 2))
    QTest.keyClick(panel.timeline, Qt.Key.Key_Right)
    assert json.loads(panel.details.toPlainText())["type"] == "bus:handled"


def test_a_click_chooses_the_event_under_it(opened: Opened) -> None:
    panel = opened.open()
    opened.feed(records())
    line = panel.timeline
    record = records()[0]
    QTest.mouseClick(
        line, Qt.MouseButton.LeftButton, pos=QPoint(round(line.position(100.0)), round(line.row_of(record)))
    )
    assert json.loads(panel.details.toPlainText()) == record


def test_pausing_holds_the_picture(opened: Opened) -> None:
    panel = opened.open()
    QTest.mouseClick(panel.pause, Qt.MouseButton.LeftButton)
    opened.feed(records())
    assert len(panel.live.records) == 0
    QTest.mouseClick(panel.pause, Qt.MouseButton.LeftButton)
    panel.refresh()
    assert len(panel.live.records) == 4


def test_a_file_is_shown_and_one_can_return(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records(3)), encoding="utf-8")
    panel = opened.open()
    panel.load(path)
    opened.qtbot.waitUntil(lambda: "old.jsonl" in panel.status.text() and "12" in panel.status.text())
    assert panel.view is not panel.live
    panel.tabs.setCurrentIndex(1)
    assert panel.answers.topLevelItemCount() == 3
    QTest.mouseClick(panel.back, Qt.MouseButton.LeftButton)
    assert panel.view is panel.live
    assert panel.answers.topLevelItemCount() == 0


def test_a_file_that_is_none_is_said(opened: Opened, tmp_path: Path) -> None:
    panel = opened.open()
    panel.load(tmp_path / "missing.jsonl")
    opened.qtbot.waitUntil(lambda: "can't be read" in panel.status.text())
    assert panel.view is panel.live


def test_an_export_is_without_words_unless_asked(opened: Opened, tmp_path: Path) -> None:
    panel = opened.open()
    opened.feed(records())
    path = tmp_path / "report.jsonl"
    panel.save(path)
    opened.qtbot.waitUntil(lambda: "without what was said" in panel.status.text())
    assert "question" not in path.read_text(encoding="utf-8")
    panel.with_text.setChecked(True)
    panel.save(path)
    opened.qtbot.waitUntil(lambda: "question" in path.read_text(encoding="utf-8"))


def test_the_last_prompt_is_shown(opened: Opened) -> None:
    panel = opened.open()
    panel.tabs.setCurrentIndex(4)
    opened.prompts.note(
        LlmRequest(task=LlmTask.PERSONA, messages=(ChatMessage(role="system", content="You are a bird."),))
    )
    panel.refresh()
    assert "[system]\nYou are a bird." in panel.prompt.toPlainText()


def test_a_full_view_is_painted_in_time(opened: Opened) -> None:
    panel = opened.open()
    for start in range(0, 1250, 250):
        opened.feed(records(250, from_s=100.0 + start / 100))
    for _ in range(6):
        panel.timeline.zoom(1)
    panel.timeline.grab()
    began_s = time.thread_time()
    panel.timeline.grab()
    panel.refresh()
    assert time.thread_time() - began_s < 0.05, "the window must never stall"


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_everything_has_a_name_in_every_language(
    make_stage: Callable[..., Any], qtbot: QtBot, tmp_path: Path, language: str
) -> None:
    one = Opened(qtbot, make_stage(language), tmp_path)
    panel = one.open()
    one.feed(records(2))
    for index in range(panel.tabs.count()):
        panel.tabs.setCurrentIndex(index)
        assert panel.tabs.tabText(index)
    assert panel.widget().widget().minimumSizeHint().width() <= 320, "it fits a narrow dock"
    assert one.window.translator.missing == set()
    for kind in (QAbstractButton, QAbstractItemView, QPlainTextEdit):
        for widget in panel.findChildren(kind):
            if widget.objectName().startswith("inspector"):
                assert widget.accessibleName(), widget.objectName()


@pytest.mark.parametrize("zooms", range(-4, 4))
def test_time_is_counted_from_the_first_event_and_its_labels_stand_apart(opened: Opened, zooms: int) -> None:
    panel = opened.open()
    opened.feed(records(200, from_s=26_352.0))
    panel.timeline.zoom(zooms)
    panel.timeline.follow()
    marks = panel.timeline.scale()
    assert len(marks) >= (2 if panel.timeline.span_s < 200 else 1)
    for (left, _, width), (right, _, _) in itertools.pairwise(marks):
        assert right - left >= width
    assert all(":" in words and not words.startswith("2635") for _, words, _ in marks)
    if panel.timeline.span_s >= 300:
        assert marks[0][1] == "0:00"


def test_a_moment_is_as_exact_as_its_scale() -> None:
    assert [moment_text(at, 1) for at in (0, 61, 3723)] == ["0:00", "1:01", "1:02:03"]
    assert [moment_text(at, 0.5) for at in (0.5, 59.96)] == ["0:00.5", "1:00.0"]
