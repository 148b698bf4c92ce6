"""Sleep and wake by menu and key, in the window and the companion, and what is seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings
from desktop.settings_service import SettingsService
from desktop.ui.i18n.translator import LANGUAGES
from desktop.ui.panels import Panels
from orchestrator.contracts.commands import SetAsleep, Stop
from orchestrator.contracts.views import StateView

# The platform of the tests has no stacking of windows.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support raise")

WORDS = {
    "en": ("Go to sleep", "Wake up", "Asleep", "Waiting for my name"),
    "zh_CN": ("去睡觉", "醒来", "睡着了", "等你叫名字"),
}


@pytest.fixture
def bedroom(make_stage: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    services: list[Any] = []

    def make(language: str = "en") -> Any:
        stage = make_stage(language)
        settings = SettingsService(tmp_path, Settings(), stage.clock)
        history = HistoryService(tmp_path / "mynah.db", stage.bridge.submit)
        services.extend((settings, history))
        Panels(stage.window, stage.bridge, settings, EventInbox(), PromptRecord(), history)
        stage.show(StateView(state="idle"))
        return stage

    yield make
    for service in services:
        service.close()


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_the_menu_says_what_it_would_do_and_the_state_what_is(bedroom: Callable[..., Any], language: str) -> None:
    stage = bedroom(language)
    sleep, wake, asleep, waiting = WORDS[language]
    action = stage.window.menu.sleep
    assert action.text() == sleep
    action.trigger()
    assert stage.outside.commands == [SetAsleep(on=True), Stop(by="key")]
    assert stage.outside.calls.index("player") < len(stage.outside.calls), "what it was saying is cut"
    stage.show(StateView(state="asleep"))
    assert action.text() == wake
    assert stage.window.state_line.text() == asleep
    action.trigger()
    assert stage.outside.commands[2:] == [SetAsleep(on=False)]
    stage.show(StateView(state="waiting"))
    assert action.text() == sleep
    assert stage.window.state_line.text() == waiting


def test_the_key_works_in_the_window(bedroom: Callable[..., Any], qtbot: Any) -> None:
    stage = bedroom()
    stage.window.activateWindow()
    qtbot.waitUntil(stage.window.isActiveWindow)
    QTest.keyClick(stage.window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    assert stage.outside.commands[0] == SetAsleep(on=True)


def test_the_companion_has_the_same_entry_and_key_and_shows_the_state(bedroom: Callable[..., Any], qtbot: Any) -> None:
    stage = bedroom()
    stage.window.companion.turn(True)
    companion = stage.window.companion.companion
    qtbot.waitExposed(companion)
    assert stage.window.menu.sleep in companion.menu.actions()
    companion.activateWindow()
    qtbot.waitUntil(companion.isActiveWindow)
    QTest.keyClick(companion, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    assert SetAsleep(on=True) in stage.outside.commands

    def picture() -> QImage:
        stage.at(stage.clock.monotonic_s() + 2.0)
        return companion.avatar.grab().toImage()

    shown = []
    for state in ("idle", "asleep", "waiting"):
        stage.show(StateView(state=state))
        shown.append(picture())
    assert shown[0] != shown[1] != shown[2] != shown[0]
    stage.window.companion.turn(False)


def test_it_is_in_the_menu_of_the_tray(bedroom: Callable[..., Any]) -> None:
    stage = bedroom()
    assert stage.window.menu.sleep in stage.window.companion.tray.menu.actions()


def test_nothing_happens_where_nobody_takes_it(bedroom: Callable[..., Any]) -> None:
    stage = bedroom()
    stage.outside.accepts = False
    stage.window.menu.sleep.trigger()
    assert "player" not in stage.outside.calls
    assert stage.window.menu.sleep.text() == "Go to sleep"
