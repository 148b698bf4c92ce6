"""The guide of the first start, walked as a newcomer does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from audio.ports import Samples
from audio.room_measure import Track
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
from orchestrator.contracts.commands import Stop
from orchestrator.contracts.errors import PartFailed

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


class Sound:
    """A voice and devices for the check of the room: too late by 120 ms, and in a noisy room."""

    def __init__(self) -> None:
        self.is_playing, self.go_on = threading.Event(), threading.Event()
        self.fault: PartFailed | None = None

    def sample(self, settings: Settings) -> Samples:
        if self.fault is not None:
            raise self.fault
        chance = np.random.default_rng(3)
        bursts = np.repeat(chance.uniform(0.0, 0.3, 40), 4_800) * chance.standard_normal(40 * 4_800)
        return np.concatenate([np.zeros(3 * 48_000), bursts, np.zeros(48_000)]).astype(np.float32)

    def play(
        self, samples: Samples, settings: Settings, on_progress: Callable[[float], None], cancelled: threading.Event
    ) -> tuple[Track, Track]:
        on_progress(2.0)
        self.is_playing.set()
        while not self.go_on.wait(0.01):
            if cancelled.is_set():
                raise PartFailed("room_cancelled", "given up", part="devices")
        late = np.concatenate([np.zeros(round(0.12 * 48_000)), samples])[: len(samples)]
        heard = 0.3 * late + 0.02 * np.random.default_rng(4).standard_normal(len(samples))
        played = Track(samples=samples, rate_hz=48_000, at_s=9.0)
        return Track(samples=heard.astype(np.float32), rate_hz=48_000, at_s=9.0), played


class Newcomer:
    """A window without settings, and the guide over it."""

    def __init__(self, qtbot: QtBot, stage: Any, folder: Path) -> None:
        self.qtbot, self.stage, self.folder, self.door = qtbot, stage, folder, Door()
        self.sound = Sound()
        self.service = SettingsService(
            folder,
            Settings(ui_language="en" if stage.window.translator.language == "en" else "zh"),
            stage.clock,
            make_store=lambda: ModelStore(folder / "models"),
            list_sound=lambda: DeviceChoices(
                inputs=(DeviceChoice(name="USB microphone", is_default=True, is_bluetooth=False),)
            ),
            room_sound=self.sound,
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


@pytest.mark.parametrize("step", ["voice", "hearing", "llm"])
def test_enter_ends_a_line_and_neither_turns_the_page_nor_leaves_the_guide(arrive: Any, step: str) -> None:
    one = arrive()
    one.guide.go_to(list(STEPS).index(step))
    name = {"voice": "voice", "hearing": "whisper", "llm": "llm"}[step]
    box = one.find(QComboBox, f"setting_{name}")
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_End)
    line = one.find(QLineEdit, f"setting_{name}_url")
    assert line.isVisible()
    line.setFocus()
    QTest.keyClicks(line, "htp:/x")
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert one.guide.isVisible() and one.guide.step == step
    one.qtbot.waitUntil(lambda: "can't be used" in one.guide.form.rows[name].status())
    one.guide.next.setFocus()
    QTest.keyClick(one.guide.next, Qt.Key.Key_Return)
    assert one.guide.step != step, "on a button, Enter presses it"


def to_the_room(one: Newcomer) -> RoomPane:
    one.guide.go_to(list(STEPS).index("room"))
    pane = one.find(RoomPane, "roomPane")
    assert isinstance(pane, RoomPane)
    return pane


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_the_room_is_measured_and_its_advice_taken(arrive: Any, language: str) -> None:
    one = arrive(language)
    pane = to_the_room(one)
    one.door.quiet = False
    one.press("roomStartButton")
    assert ("rest", True) in one.door.calls, "what is said meanwhile is not answered"
    assert Stop(by="button") in one.stage.outside.commands, "nor is what is being said measured"
    one.qtbot.waitUntil(one.sound.is_playing.is_set)
    one.qtbot.waitUntil(lambda: pane.progress.value() > 100)
    assert pane.progress.isVisible() and pane.start.text() in ("Cancel", "取消")
    one.sound.go_on.set()
    one.qtbot.waitUntil(lambda: not pane.is_running, timeout=20_000)
    assert ("rest", False) in one.door.calls
    assert pane.words.text() == one.stage.window.translator.text("setup.room.because.noise")
    told = pane.findings.text()
    assert ("! noise of the room: " if language == "en" else "! 房间噪声：") in told
    assert "120" in pane.advice.text()
    one.press("roomTakeButton")
    one.qtbot.waitUntil(lambda: one.saved().sensitivity == "relaxed" and one.saved().extra_output_delay_ms == 120.0)
    assert ("sensitivity", "relaxed") in one.door.calls and ("extra_output_delay_ms", 120.0) in one.door.calls
    one.qtbot.waitUntil(lambda: not pane.take.isVisible())


def test_the_check_is_given_up_by_its_button_and_by_leaving_the_page(arrive: Any) -> None:
    one = arrive()
    pane = to_the_room(one)
    for leave in (lambda: one.press("roomStartButton"), lambda: one.press("setupBackButton")):
        one.guide.go_to(list(STEPS).index("room"))
        one.sound.is_playing.clear()
        one.press("roomStartButton")
        one.qtbot.waitUntil(one.sound.is_playing.is_set)
        leave()
        one.qtbot.waitUntil(lambda: not pane.is_running)
        assert one.door.calls[-1] == ("rest", False)
    assert pane.start.text() == "Check the room"


def test_a_check_without_a_voice_says_what_to_do(arrive: Any) -> None:
    one = arrive()
    pane = to_the_room(one)
    one.sound.fault = PartFailed("voice_missing", "none", part="tts")
    one.press("roomStartButton")
    one.qtbot.waitUntil(lambda: "page of the voice" in pane.words.text())
    assert pane.start.text() == "Check again"


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
