from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.llm_probe import LlmTest
from desktop.models import ModelStore
from desktop.paths import assets
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings, describe, load_settings
from desktop.settings_service import DeviceChoice, DeviceChoices, InstallStep, SettingsService
from desktop.ui.avatar.library import AvatarChoice
from desktop.ui.i18n.translator import CATALOGUES, LANGUAGES
from desktop.ui.panels import Panels
from desktop.ui.settings.avatar_editor import AvatarEditor
from desktop.ui.settings.dialog import SettingsDialog
from desktop.ui.settings.editors import NumberBox
from desktop.ui.settings.groups import GROUPS, KEY
from orchestrator.contracts.errors import InputError


class Door:
    def __init__(self) -> None:
        self.applied: list[str] = []

    def apply(self, name: str, settings: Settings) -> None:
        if name == "output_device":
            raise InputError("device_unknown", "gone", part="devices")
        self.applied.append(name)

    def say_sample(self, language: str) -> None:
        self.said = language

    def is_quiet(self) -> bool:
        return True

    def rest_ears(self, on: bool) -> None:
        self.rests = on

    def read_again(self) -> None:
        self.reads = True


class Opened:
    """The dialog of a window, over a real service in an empty folder."""

    def __init__(self, qtbot: QtBot, stage: Any, folder: Path, settings: Settings) -> None:
        self.qtbot = qtbot
        self.folder = folder
        self.window = stage.window
        self.service = SettingsService(
            folder,
            settings,
            stage.clock,
            make_store=lambda: ModelStore(folder / "models"),
            list_sound=lambda: DeviceChoices(
                inputs=(DeviceChoice(name="USB microphone", is_default=True, is_bluetooth=False),),
                outputs=(DeviceChoice(name="Desk loudspeaker", is_default=True, is_bluetooth=False),),
            ),
        )
        self.panels = Panels(
            stage.window,
            stage.bridge,
            self.service,
            EventInbox(),
            PromptRecord(),
            HistoryService(folder / "mynah.db", stage.bridge.submit),
        )
        self.dialog: SettingsDialog = self.panels.settings

    def open(self, group: str) -> None:
        self.dialog.show_group(group)
        self.dialog.show()
        self.qtbot.waitUntil(lambda: self.dialog.is_informed)

    def child(self, name: str, kind: type[Any]) -> Any:
        found = self.dialog.findChild(kind, name)
        assert found is not None, name
        return found

    def choose(self, name: str, label: str) -> None:
        """Choose as a person does: by the keyboard."""
        box = self.child(f"setting_{name}", QComboBox)
        wanted = next(index for index in range(box.count()) if label in box.itemText(index))
        box.setFocus()
        step = Qt.Key.Key_Down if wanted > box.currentIndex() else Qt.Key.Key_Up
        for _ in range(abs(wanted - box.currentIndex())):
            QTest.keyClick(box, step)

    def saved(self) -> Settings:
        return load_settings(self.folder).or_raise()


@pytest.fixture
def opened(qtbot: QtBot, stage: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    made: list[Opened] = []

    def make(stage_: Any = None, **values: Any) -> Opened:
        made.append(Opened(qtbot, stage_ or stage, tmp_path, Settings(**values)))
        return made[-1]

    yield make
    for one in made:
        one.service.close()


def test_every_setting_stands_on_exactly_one_page() -> None:
    placed = [name for names in GROUPS.values() for name in names]
    assert sorted(placed) == sorted(describe())


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_every_text_exists_in_every_language(make_stage: Any, opened: Callable[..., Opened], language: str) -> None:
    one = opened(make_stage(language))
    for group in GROUPS:
        one.open(group)
    assert one.window.translator.missing == set()
    assert set(CATALOGUES["en"]) == set(CATALOGUES["zh_CN"])
    for widget in one.dialog.findChildren(QWidget):
        if isinstance(widget, (QComboBox, QLineEdit, QCheckBox, QPushButton)) and not widget.objectName().startswith(
            "qt_"
        ):
            assert widget.objectName(), widget
            assert widget.accessibleName(), widget.objectName()


def test_the_theme_changes_live_and_is_saved(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("general")
    one.choose("theme", "Dark")
    one.qtbot.waitUntil(lambda: one.window.theme.choice == "dark")
    assert one.saved().theme == "dark"


def test_the_language_changes_live_and_the_dialog_follows(opened: Callable[..., Opened]) -> None:
    one = opened(ui_language="en")
    one.open("general")
    one.choose("ui_language", "简体中文")
    one.qtbot.waitUntil(lambda: one.dialog.windowTitle() == "设置")
    assert one.child("name_theme", QLabel).text() == "外观"
    assert one.saved().ui_language == "zh"


def test_a_choice_in_the_menu_shows_in_the_dialog(opened: Callable[..., Opened]) -> None:
    from desktop.ui.panels import keep_choice

    one = opened()
    one.open("general")
    keep_choice(one.service, "theme", "light")
    one.panels.refresh()
    assert one.child("setting_theme", QComboBox).currentText() == "Light"
    assert one.saved().theme == "light"


def test_a_switch_says_when_it_takes_effect(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("talking")
    QTest.keyClick(one.child("setting_answer_ahead", QCheckBox), Qt.Key.Key_Space)
    one.qtbot.waitUntil(lambda: "restart" in one.dialog.rows["answer_ahead"].status())
    assert one.saved().answer_ahead is False


def test_subtitles_follow_size_and_switch(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("subtitles")
    QTest.keyClick(one.child("setting_subtitles", QCheckBox), Qt.Key.Key_Space)
    one.qtbot.waitUntil(lambda: not one.window.subtitles.isVisible())
    assert one.saved().subtitles is False


def test_a_lost_device_is_said_at_its_field_and_the_choice_goes_back(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.service.attach(Door())
    one.open("sound")
    one.choose("output_device", "Desk")
    row = one.dialog.rows["output_device"]
    one.qtbot.waitUntil(lambda: "not there" in row.status())
    assert one.child("setting_output_device", QComboBox).currentIndex() == 0
    assert one.saved().output_device is None
    one.choose("input_device", "USB")
    one.qtbot.waitUntil(lambda: one.saved().input_device == "USB microphone")
    assert one.dialog.rows["input_device"].status() == ""


def test_a_wrong_address_is_said_at_its_field_and_stays_to_be_corrected(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("llm")
    one.choose("llm", "endpoint")
    line = one.child("setting_llm_url", QLineEdit)
    assert line.isVisible()
    QTest.keyClicks(line, "htp:/x")
    QTest.keyClick(line, Qt.Key.Key_Return)
    one.qtbot.waitUntil(lambda: "can't be used" in one.dialog.rows["llm"].status())
    assert line.text() == "htp:/x"
    assert one.saved().llm == "none", "the last choice that could be kept"
    line.selectAll()
    QTest.keyClicks(line, "http://localhost:1234/v1")
    QTest.keyClick(line, Qt.Key.Key_Return)
    one.qtbot.waitUntil(lambda: one.saved().llm == "http://localhost:1234/v1")


def test_the_key_is_asked_for_only_with_an_endpoint(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("llm")
    key = one.child(f"setting_{KEY}", QLineEdit)
    assert not key.isVisible()
    one.choose("llm", "endpoint")
    assert key.isVisible()
    assert key.echoMode() == QLineEdit.EchoMode.Password


def test_a_model_that_is_missing_can_be_fetched_with_progress(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("voice")
    box = one.child("setting_voice", QComboBox)
    assert "MB" in box.currentText()
    assert "not here yet" in box.currentText()
    asked: list[str] = []
    one.service.install = lambda name, on_step: asked.append(name)  # type: ignore[method-assign]
    button = one.child("install_voice", QPushButton)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert asked == ["piper-en_US-joe-medium"]
    one.dialog.form.show_step(InstallStep(name=asked[0], stage="downloading", done_bytes=5, total_bytes=10))
    progress = one.child("progress_voice", QWidget)
    assert progress.isVisible()
    assert button.text() == "Cancel"
    one.dialog.form.show_step(InstallStep(name=asked[0], stage="failed", message="no network"))
    assert not progress.isVisible()
    assert "no network" in one.dialog.rows["voice"].status()


def test_the_test_of_an_endpoint_says_how_it_went(opened: Callable[..., Opened]) -> None:
    one = opened(llm="http://localhost:1/v1")
    one.open("llm")
    one.dialog.form.show_test(LlmTest(url="u", is_ok=False, messages={"en": "Wrong key.", "zh": "密钥错误。"}))
    assert one.dialog.rows["llm"].status() == "Wrong key."
    one.dialog.form.show_test(LlmTest(url="u", is_ok=True, models=("m",)))
    assert one.dialog.rows["llm"].status() == "It works: m"


def test_the_meter_follows_the_microphone(opened: Callable[..., Opened], outside: Any) -> None:
    one = opened()
    one.open("sound")
    outside.level = -10.0
    one.qtbot.waitUntil(lambda: one.dialog.meter.level > 0.5)


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_no_text_is_cut_off(make_stage: Any, opened: Callable[..., Opened], language: str) -> None:
    one = opened(make_stage(language), llm="http://localhost:1234/v1")
    for group in GROUPS:
        one.open(group)
        # What the service told last may still be waiting for its place.
        labels = one.dialog.findChildren(QLabel)
        one.qtbot.waitUntil(lambda labels=labels: all(label.height() for label in labels if label.isVisible()))
        for label in one.dialog.findChildren(QLabel):
            if label.isVisible() and label.text():
                room = label.heightForWidth(label.width()) if label.wordWrap() else label.sizeHint().height()
                assert label.height() >= room, (label.objectName(), label.text())
        for button in one.dialog.findChildren(QPushButton):
            if button.isVisible():
                assert button.width() >= QFontMetrics(button.font()).horizontalAdvance(button.text()), button.text()


def test_the_key_opens_the_dialog(opened: Callable[..., Opened]) -> None:
    one = opened()
    assert not one.dialog.isVisible()
    one.window.activateWindow()
    one.qtbot.waitUntil(one.window.isActiveWindow)
    QTest.keyClick(one.window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    assert one.dialog.isVisible()


def test_a_number_set_by_hand_goes_before_the_dial_and_can_go_back(opened: Callable[..., Opened]) -> None:
    one = opened()
    door = Door()
    one.service.attach(door)
    one.open("numbers")
    box = one.child("ears_endpoint.end_silence_s", NumberBox)
    before = box.value()
    box.setFocus()
    box.selectAll()
    QTest.keyClicks(box, "2.5")
    QTest.keyClick(box, Qt.Key.Key_Return)
    one.qtbot.waitUntil(lambda: one.saved().ears == (("endpoint.end_silence_s", 2.5),))
    assert door.applied == ["ears"], "the ears take it over while they listen"
    assert one.dialog.rows["ears"].status() == ""
    QTest.mouseClick(one.child("ears_reset_endpoint.end_silence_s", QPushButton), Qt.MouseButton.LeftButton)
    one.qtbot.waitUntil(lambda: one.saved().ears == ())
    assert box.value() == before
    QTest.keyClick(one.child("ears_echo.noise_suppression", QCheckBox), Qt.Key.Key_Space)
    one.qtbot.waitUntil(lambda: "restart" in one.dialog.rows["ears"].status())
    assert one.saved().ears == (("echo.noise_suppression", 0.0),)


def test_the_character_is_chosen_from_a_list(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("character")
    box = one.child("setting_avatar", QComboBox)
    one.qtbot.waitUntil(lambda: box.count() > 2)
    other = next(choice for choice in one.window.characters.choices if choice.id != one.window.characters.id)
    one.choose("avatar", other.name(one.window.translator.language))
    one.qtbot.waitUntil(lambda: one.window.characters.id == other.id)
    assert one.saved().avatar == other.id


def test_a_pack_with_a_fault_is_listed_with_it_and_can_not_be_chosen(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.open("character")
    editor = one.dialog.rows["avatar"].editor
    assert isinstance(editor, AvatarEditor)
    fault = "avatar.yaml:3:1: unknown key 'eys'; did you mean 'eyes'?"
    editor.offer([AvatarChoice(id="mine", is_shipped=False, problem=fault)])
    box = one.child("setting_avatar", QComboBox)
    assert "mine" in box.itemText(1) and not box.model().flags(box.model().index(1, 0)) & Qt.ItemFlag.ItemIsEnabled
    told = one.child("avatarProblems", QLabel)
    assert told.isVisible() and told.text() == fault
    editor.offer([])
    assert not told.isVisible()


def test_a_pack_is_imported_from_the_settings(opened: Callable[..., Opened], tmp_path: Path) -> None:
    one = opened()
    one.window.characters.library.user = tmp_path / "avatars"
    one.open("character")
    packed = tmp_path / "guest.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted((assets() / "avatars" / "mynah").rglob("*")):
            if file.is_file():
                archive.write(file, f"guest/{file.relative_to(assets() / 'avatars' / 'mynah')}")
    editor = one.dialog.rows["avatar"].editor
    assert isinstance(editor, AvatarEditor)
    editor.import_asked.emit(packed)
    one.qtbot.waitUntil(lambda: one.window.characters.id == "guest")
    assert (tmp_path / "avatars" / "guest" / "avatar.yaml").is_file()
