"""The guide of the first start, walked as a newcomer does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.llm_probe import LlmTest
from desktop.models import ModelStore
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings, load_settings
from desktop.settings_service import DeviceChoice, DeviceChoices, SettingsService
from desktop.ui.i18n.translator import LANGUAGES
from desktop.ui.panels import Panels
from desktop.ui.setup.guide import STEPS, SetupGuide
from desktop.ui.setup.persona_pane import PersonaPane
from desktop.ui.setup.room_pane import RoomPane

CARD = {
    "spec": "chara_card_v2",
    "data": {"name": "Captain Rook", "first_mes": "*bows* Ahoy!", "description": "A raven."},
}


class Door:
    """A running conversation."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.quiet = True

    def apply(self, name: str, settings: Settings) -> None:
        self.calls.append((name, getattr(settings, name)))

    def say_sample(self, language: str) -> None:
        self.calls.append(("sample", language))

    def is_quiet(self) -> bool:
        return self.quiet

    def rest_ears(self, on: bool) -> None:
        self.calls.append(("rest", on))

    def read_again(self) -> None:
        self.calls.append(("read", True))


class Newcomer:
    """A window without settings, and the guide over it."""

    def __init__(self, qtbot: QtBot, stage: Any, folder: Path) -> None:
        self.qtbot, self.stage, self.folder, self.door = qtbot, stage, folder, Door()
        self.service = SettingsService(
            folder,
            Settings(ui_language="en" if stage.window.translator.language == "en" else "zh"),
            stage.clock,
            make_store=lambda: ModelStore(folder / "models"),
            list_sound=lambda: DeviceChoices(
                inputs=(DeviceChoice(name="USB microphone", is_default=True, is_bluetooth=False),)
            ),
        )
        self.service.find_servers = lambda on_done: on_done(())  # type: ignore[method-assign]
        self.service.attach(self.door)
        self.panels = Panels(
            stage.window,
            stage.bridge,
            self.service,
            EventInbox(),
            PromptRecord(),
            HistoryService(folder / "mynah.db", stage.bridge.submit),
        )
        self.panels.open_guide()
        self.guide: SetupGuide = self.panels.guide

    def press(self, name: str) -> None:
        button = self.guide.findChild(QPushButton, name)
        assert button is not None and button.isVisible(), name
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def find(self, kind: type[Any], name: str) -> Any:
        found = self.guide.findChild(kind, name)
        assert found is not None, name
        return found

    def saved(self) -> Settings:
        return load_settings(self.folder).or_raise()


@pytest.fixture
def arrive(qtbot: QtBot, make_stage: Any, tmp_path: Path) -> Iterator[Callable[..., Newcomer]]:
    made: list[Newcomer] = []

    def make(language: str = "en", theme: str = "light") -> Newcomer:
        made.append(Newcomer(qtbot, make_stage(language, theme), tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.service.close()
        one.panels.persona.close()


@pytest.mark.parametrize("language", list(LANGUAGES))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_translated_named_and_not_cut_off(arrive: Any, language: str, theme: str) -> None:
    one = arrive(language, theme)
    for step in STEPS:
        assert one.guide.step == step
        for _ in range(3):
            QApplication.processEvents()
        for label in one.guide.findChildren(QLabel):
            if label.isVisible() and label.text():
                room = label.heightForWidth(label.width()) if label.wordWrap() else label.sizeHint().height()
                assert label.height() >= room, (step, label.objectName(), label.text())
        for button in one.guide.findChildren(QPushButton):
            if button.isVisible():
                assert button.accessibleName(), button.objectName()
                assert button.width() >= QFontMetrics(button.font()).horizontalAdvance(button.text()), button.text()
        assert all(w.objectName() for w in one.guide.findChildren(QPushButton)), step
        one.press("setupNextButton")
    assert one.stage.window.translator.missing == set()
    assert not one.guide.isVisible()
    assert not one.service.is_first_start(), "it does not come again by itself"


def test_it_can_be_skipped_and_opened_again_from_the_menu(arrive: Any) -> None:
    one = arrive()
    assert one.service.is_first_start()
    one.press("setupSkipButton")
    assert not one.guide.isVisible() and not one.service.is_first_start()
    action = one.stage.window.menu.findChild(QWidget, "setupAction") or next(
        a for a in one.stage.window.menu.actions() if a.objectName() == "setupAction"
    )
    action.trigger()
    assert one.guide.isVisible() and one.guide.step == "language"


def test_choices_count_at_once_and_the_window_follows(arrive: Any) -> None:
    one = arrive()
    box = one.find(QComboBox, "setting_ui_language")
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Down)
    one.qtbot.waitUntil(lambda: one.guide.windowTitle() == "初次使用")
    assert one.find(QPushButton, "setupNextButton").text() == "下一步"
    spoken = one.find(QComboBox, "setting_languages")
    spoken.setFocus()
    QTest.keyClick(spoken, Qt.Key.Key_Down)
    one.qtbot.waitUntil(lambda: ("languages", ("zh", "en")) in one.door.calls)
    one.qtbot.waitUntil(lambda: one.saved().languages == ("zh", "en"))
    one.press("setupNextButton")
    one.press("listenButton")
    one.qtbot.waitUntil(lambda: ("sample", "zh") in one.door.calls)


def test_the_room_is_measured_and_its_advice_taken(arrive: Any) -> None:
    one = arrive()
    one.guide.go_to(list(STEPS).index("room"))
    pane = one.find(RoomPane, "roomPane")
    one.press("roomStartButton")
    assert one.door.calls[-1] == ("rest", True), "what is said meanwhile is not answered"
    levels = {"quiet": -60.0, "voice": -28.0, "speak": -25.0}
    ticks = 0
    while pane.check.is_running:
        ticks += 1
        assert ticks < 2000
        one.stage.clock.advance_to(one.stage.clock.monotonic_s() + 0.05)
        one.stage.outside.level = levels[pane.check.step.value]
        one.door.quiet = pane.check.step.value != "voice" or pane.check.left_s(one.stage.clock.monotonic_s()) < 8
        pane.tick()
    one.qtbot.waitUntil(lambda: ("sample", "en") in one.door.calls)
    assert ("rest", False) in one.door.calls
    assert "loudspeaker" in pane.words.text()
    one.press("roomTakeButton")
    one.qtbot.waitUntil(lambda: one.saved().sensitivity == "relaxed")


def test_servers_on_this_machine_are_offered_by_name(arrive: Any) -> None:
    one = arrive()
    one.service.find_servers = lambda on_done: on_done(
        (LlmTest(url="http://localhost:11434/v1", is_ok=True, models=("qwen",), program="Ollama"),)
    )
    one.guide.go_to(list(STEPS).index("llm"))
    one.qtbot.waitUntil(lambda: one.guide.findChild(QPushButton, "useLlm_Ollama") is not None)
    one.qtbot.waitUntil(one.find(QPushButton, "useLlm_Ollama").isVisible)
    one.press("useLlm_Ollama")
    one.qtbot.waitUntil(lambda: ("llm", "http://localhost:11434/v1") in one.door.calls)
    one.qtbot.waitUntil(lambda: one.saved().llm == "http://localhost:11434/v1")


def test_a_card_is_shown_before_it_is_taken_and_the_bird_comes_back(arrive: Any, tmp_path: Path) -> None:
    one = arrive()
    one.guide.go_to(list(STEPS).index("persona"))
    pane = one.find(PersonaPane, "personaPane")
    name = one.find(QLabel, "persona_name")
    one.qtbot.waitUntil(lambda: name.text() == "Mynah")
    path = tmp_path / "rook.json"
    path.write_text(json.dumps(CARD), encoding="utf-8")
    pane.bring_in(path)
    one.qtbot.waitUntil(lambda: name.text() == "Captain Rook")
    assert not (tmp_path / "flows" / "persona.yml").exists(), "a preview changes nothing"
    one.press("cardTakeButton")
    one.qtbot.waitUntil(lambda: ("read", True) in one.door.calls)
    assert "Captain Rook" in (tmp_path / "flows" / "persona.yml").read_text(encoding="utf-8")
    one.qtbot.waitUntil(lambda: one.find(QPushButton, "personaBackButton").isVisible())
    one.press("personaBackButton")
    one.qtbot.waitUntil(lambda: name.text() == "Mynah")
    path.write_bytes(b"nonsense")
    pane.bring_in(path)
    one.qtbot.waitUntil(lambda: "no character card" in one.find(QLabel, "persona_status").text())
    assert name.text() == "Mynah"
