"""A voice and a recogniser by address in the settings, used as a person does, against a local stand-in server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot
from rigs.sound_endpoint import KEY, MODEL, VOICE, MemoryVault, SoundEndpoint

from desktop import sound_models
from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.live_settings import EngineDoor
from desktop.models import ModelStore
from desktop.prompt_record import PromptRecord
from desktop.settings import SETTINGS_FILE, Settings, load_settings
from desktop.settings_service import SettingsService
from desktop.sound_server import KEY_ENVS
from desktop.ui.panels import Panels
from orchestrator.clock import SystemClock

PAGES = {"voice": "voice", "whisper": "recognition"}
KEY_LINES = {"voice": "setting_voice_key_in_keyring", "whisper": "setting_whisper_key_in_keyring"}


class Parts:
    """What the running engine was given last."""

    def __init__(self) -> None:
        self.voices: tuple[Any, ...] = ()
        self.final: Any = None

    def set_voices(self, voices: tuple[Any, ...]) -> None:
        self.voices = voices

    def set_models(self, final: Any, partial: Any) -> None:
        self.final = final


class Owner:
    """Somebody at the settings of a running program with a keyring."""

    def __init__(self, qtbot: QtBot, stage: Any, folder: Path, vault: MemoryVault) -> None:
        self.qtbot, self.window, self.folder, self.vault = qtbot, stage.window, folder, vault
        self.engine = Parts()
        self.service = SettingsService(
            folder,
            Settings(unspeakable="show_only", whisper_partial="whisper-none"),
            SystemClock(),
            vault=vault,
            make_store=lambda: ModelStore(folder / "models"),
        )
        program = SimpleNamespace(
            assembly=SimpleNamespace(
                engine=SimpleNamespace(speech=self.engine, recogniser=self.engine),
                brains=None,
                settings=self.service.settings,
                timing=SimpleNamespace(clock=SystemClock()),
            )
        )
        self.service.attach(EngineDoor(cast(Any, program), ModelStore(folder / "models")))
        self.panels = Panels(
            stage.window,
            stage.bridge,
            self.service,
            EventInbox(),
            PromptRecord(),
            HistoryService(folder / "mynah.db", stage.bridge.submit),
        )
        self.dialog = self.panels.settings

    def child(self, name: str, kind: type[Any]) -> Any:
        found = self.dialog.findChild(kind, name)
        assert found is not None, name
        return found

    def open(self, setting: str) -> None:
        self.dialog.show_group(PAGES[setting])
        self.dialog.show()
        self.qtbot.waitUntil(lambda: self.dialog.is_informed)

    def choose_server(self, setting: str) -> None:
        box = self.child(f"setting_{setting}", QComboBox)
        box.setFocus()
        QTest.keyClick(box, Qt.Key.Key_End)
        assert self.child(f"server_{setting}", object).isVisible()

    def type(self, name: str, text: str) -> None:
        line = self.child(name, QLineEdit)
        assert line.isVisible(), name
        line.setFocus()
        line.selectAll()
        QTest.keyClicks(line, text) if text else QTest.keyClick(line, Qt.Key.Key_Backspace)
        QTest.keyClick(line, Qt.Key.Key_Return)

    def fill_in(self, setting: str, url: str) -> None:
        self.choose_server(setting)
        self.type(f"setting_{setting}_url", url)
        self.type(f"setting_{setting}_model", MODEL)
        if setting == "voice":
            self.type("setting_voice_voice", VOICE)

    def press_test(self, setting: str) -> None:
        QTest.mouseClick(self.child(f"testServer_{setting}", QPushButton), Qt.MouseButton.LeftButton)

    def wait_for(self, setting: str, words: str) -> None:
        row = self.dialog.rows[setting]
        self.qtbot.waitUntil(lambda: words in row.status(), timeout=10_000)

    def saved(self) -> Settings:
        return load_settings(self.folder).or_raise()

    def pronounce(self) -> None:
        """Let what the engine has now speak or listen once."""
        if self.engine.voices:
            self.engine.voices[0].synthesise("Hello.", language="en")
        else:
            self.engine.final.transcribe(np.zeros(16_000, np.float32), languages=("en",))


@pytest.fixture
def endpoint() -> Iterator[SoundEndpoint]:
    with SoundEndpoint() as made:
        yield made


@pytest.fixture
def owner(
    qtbot: QtBot, make_stage: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Owner]]:
    for name in KEY_ENVS.values():
        monkeypatch.delenv(name, raising=False)
    made: list[Owner] = []

    def make(language: str = "en", vault: MemoryVault | None = None) -> Owner:
        vault = vault or MemoryVault()
        monkeypatch.setattr(sound_models, "SystemKeyVault", lambda: vault)
        made.append(Owner(qtbot, make_stage(language), tmp_path, vault))
        return made[-1]

    yield make
    for one in made:
        one.service.close()


@pytest.mark.parametrize("setting", ["voice", "whisper"])
def test_a_server_with_a_key_is_set_up_tested_and_used_at_once(
    owner: Callable[..., Owner], endpoint: SoundEndpoint, setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    one = owner()
    one.open(setting)
    assert not one.child(KEY_LINES[setting], QLineEdit).isVisible(), "a model here needs no key"
    one.fill_in(setting, endpoint.url)
    one.press_test(setting)
    one.wait_for(setting, "wants a key")
    one.type(KEY_LINES[setting], "sk-wrong")
    one.qtbot.waitUntil(lambda: getattr(one.saved(), f"{setting}_key_in_keyring") is True)
    one.press_test(setting)
    one.wait_for(setting, "refused the key")
    one.type(KEY_LINES[setting], KEY)
    one.qtbot.waitUntil(lambda: one.vault.keys == {endpoint.url: KEY})
    one.press_test(setting)
    one.wait_for(setting, "It works: answered in ")
    endpoint.asked.clear()
    one.pronounce()
    assert [asked.key for asked in endpoint.asked] == [KEY], "the running engine has the server and its key"
    everything = "".join(path.read_text(encoding="utf-8") for path in one.folder.rglob("*") if path.is_file())
    assert (one.folder / SETTINGS_FILE).is_file() and "sk-" not in everything
    assert "sk-" not in caplog.text


@pytest.mark.parametrize("setting", ["voice", "whisper"])
def test_wrong_models_and_addresses_are_told_apart(
    owner: Callable[..., Owner], endpoint: SoundEndpoint, setting: str
) -> None:
    endpoint.key = None
    one = owner()
    one.open(setting)
    one.choose_server(setting)
    one.press_test(setting)
    assert one.child(f"setting_{setting}_url", QLineEdit).hasFocus(), "the address is wanted first"
    one.type(f"setting_{setting}_url", "htp:/x")
    one.wait_for(setting, "can't be used: expected an address")
    assert one.child(f"setting_{setting}_url", QLineEdit).text() == "htp:/x", "it stays to be corrected"
    assert not (one.folder / SETTINGS_FILE).exists()
    one.type(f"setting_{setting}_url", endpoint.url.removesuffix("/v1"))
    one.press_test(setting)
    one.wait_for(setting, "Check the address")
    one.type(f"setting_{setting}_url", endpoint.url)
    one.press_test(setting)
    one.wait_for(setting, "does not know this model")


def test_a_test_can_be_cancelled(owner: Callable[..., Owner], endpoint: SoundEndpoint) -> None:
    one = owner()
    one.open("voice")
    one.fill_in("voice", endpoint.url)
    endpoint.gate.clear()
    one.press_test("voice")
    button = one.child("testServer_voice", QPushButton)
    one.qtbot.waitUntil(endpoint.came.is_set)
    assert button.text() == "Cancel" and "Asking" in one.dialog.rows["voice"].status()
    one.press_test("voice")
    one.wait_for("voice", "Cancelled.")
    assert button.text() == "Test"


def test_the_way_back_to_a_model_here_hides_what_a_server_needs(
    owner: Callable[..., Owner], endpoint: SoundEndpoint
) -> None:
    one = owner()
    one.open("whisper")
    one.fill_in("whisper", endpoint.url)
    one.qtbot.waitUntil(lambda: one.saved().whisper == f"{endpoint.url}#{MODEL}")
    box = one.child("setting_whisper", QComboBox)
    assert box.currentText() == "A server, by its address …"
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Home)
    one.wait_for("whisper", "Not on this computer yet")
    assert not one.child("setting_whisper_url", QLineEdit).isVisible()
    assert not one.child(KEY_LINES["whisper"], QLineEdit).isVisible()
    # and what was said of that model says nothing of a server
    one.choose_server("whisper")
    assert one.dialog.rows["whisper"].status() == ""


def test_a_key_is_kept_for_its_address_and_can_be_forgotten(
    owner: Callable[..., Owner], endpoint: SoundEndpoint
) -> None:
    one = owner()
    one.open("voice")
    one.fill_in("voice", endpoint.url)
    one.type(KEY_LINES["voice"], KEY)
    one.qtbot.waitUntil(lambda: one.saved().voice_key_in_keyring)
    line, forget = one.child(KEY_LINES["voice"], QLineEdit), one.child("forget_voice_key_in_keyring", QPushButton)
    one.qtbot.waitUntil(forget.isVisible)
    assert line.text() == "" and "a key is kept" in line.placeholderText()
    one.type("setting_voice_url", "http://localhost:9/v1")
    one.qtbot.waitUntil(lambda: not one.saved().voice_key_in_keyring)
    one.qtbot.waitUntil(lambda: not forget.isVisible())
    one.type("setting_voice_url", endpoint.url)
    one.qtbot.waitUntil(lambda: one.saved().voice_key_in_keyring)
    one.qtbot.waitUntil(forget.isVisible)
    QTest.mouseClick(forget, Qt.MouseButton.LeftButton)
    one.qtbot.waitUntil(lambda: not one.saved().voice_key_in_keyring)
    assert one.vault.keys == {}


def test_without_a_keyring_the_field_says_what_to_do(owner: Callable[..., Owner], endpoint: SoundEndpoint) -> None:
    one = owner(vault=MemoryVault(is_there=False))
    one.open("voice")
    one.fill_in("voice", endpoint.url)
    one.qtbot.waitUntil(lambda: one.saved().voice.startswith(endpoint.url))
    one.type(KEY_LINES["voice"], KEY)
    row = one.dialog.rows["voice_key_in_keyring"]
    one.qtbot.waitUntil(lambda: "environment variable" in row.status())
    assert not one.saved().voice_key_in_keyring


@pytest.mark.parametrize(("language", "words"), [("en", "leaves this computer"), ("zh_CN", "离开这台电脑")])
def test_what_leaves_the_computer_is_said_where_it_is_chosen_and_under_privacy(
    owner: Callable[..., Owner], language: str, words: str
) -> None:
    one = owner(language)
    one.dialog.show_group("privacy")
    told = one.child("leavesWords", QLabel)
    nothing = told.text()
    one.open("whisper")
    one.choose_server("whisper")
    one.type("setting_whisper_url", "https://speech.example.com/v1")
    note = one.child("leaves_whisper", QLabel)
    assert note.isVisible() and words in note.text() and "speech.example.com" in note.text()
    one.qtbot.waitUntil(lambda: "speech.example.com" in told.text() and told.text() != nothing)
    one.qtbot.waitUntil(lambda: "speech.example.com" in one.window.notices.text())
    one.type("setting_whisper_url", "http://localhost:8000/v1")
    one.qtbot.waitUntil(lambda: "whisper_leaves" not in one.window.notices.codes())
