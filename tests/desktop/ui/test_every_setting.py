"""Every setting: it has a field, the field changes what is stored, and what counts at once reaches window or engine."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QWidget
from pytestqt.qtbot import QtBot
from rigs.sound_endpoint import KEY as SECRET
from rigs.sound_endpoint import MemoryVault

from audio.tts.pauses import Pauses
from desktop import live_settings
from desktop.ears_numbers import ears_config
from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.live_settings import EngineDoor
from desktop.llm_host import LlmParts
from desktop.model_catalogue import load_catalogue
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings, describe, load_settings
from desktop.settings_service import ENGINE_LIVE, WINDOW_LIVE, DeviceChoice, DeviceChoices, SettingsService
from desktop.ui.panels import Panels
from desktop.ui.settings.avatar_editor import AvatarEditor
from desktop.ui.settings.editors import (
    ChoiceEditor,
    DeviceEditor,
    NumberBox,
    NumberEditor,
    SeveralEditor,
    SwitchEditor,
    TextEditor,
)
from desktop.ui.settings.groups import GROUPS, KEYS
from desktop.ui.settings.key_editor import KeyEditor
from desktop.ui.settings.llm_editor import LlmEditor, LlmModelEditor
from desktop.ui.settings.model_editor import ModelEditor
from desktop.ui.settings.numbers_editor import NumbersEditor
from desktop.ui.settings.sound_editor import SoundEditor
from orchestrator.clock import SystemClock
from orchestrator.contracts.commands import Command, Reload
from orchestrator.contracts.views import StateView, UserTextView

TYPED = {
    "llm_key_env": "MYNAH_TEST_KEY",
    "llm_model": "a-model",
    "event_socket": "4711",
    "subtitle_font": "DejaVu Serif",
    "global_talk_key": "Ctrl+Alt+T",
    "global_stop_key": "Ctrl+Alt+S",
}
"""What is typed into lines of text."""

BEFORE: Mapping[str, dict[str, Any]] = {
    "llm_model": {"llm": "http://localhost:9/v1"},
    "llm_key_env": {"llm": "http://localhost:9/v1"},
    "llm_can_plan": {"llm": "http://localhost:9/v1"},
    "llm_patience_s": {"llm": "http://localhost:9/v1"},
    "llm_key_in_keyring": {"llm": "http://localhost:9/v1"},
    "voice_key_in_keyring": {"voice": "http://localhost:9/v1#m/v"},
    "whisper_key_in_keyring": {"whisper": "http://localhost:9/v1#m"},
    "theme": {"theme": "light"},
    "reduced_motion": {"reduced_motion": True},
    "log_level": {"log_level": "warning"},
}
"""What holds before: what a field needs to be in sight, and what the window of a test begins with."""

Calls = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


class Recorder:
    """A part of the engine; notes every call under the part's name."""

    def __init__(self, name: str, calls: Calls) -> None:
        self._name, self._calls = name, calls

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **values: self._calls.append((f"{self._name}.{method}", args, values))


class Llm:
    """The language model's host."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def prepare(self, settings: Settings) -> LlmParts:
        self._calls.append(("llm.prepare", (settings,), {}))
        return LlmParts()

    async def change(self, parts: LlmParts) -> None:
        self._calls.append(("llm.change", (), {}))


class Store:
    """Every model of the real catalogue is there."""

    catalogue = load_catalogue()

    def path(self, name: str) -> Path:
        return Path("/models") / name

    def is_installed(self, name: str) -> bool:
        return True


class Running:
    """A running conversation as `EngineDoor` changes it."""

    def __init__(self, settings: Settings) -> None:
        self.calls: Calls = []
        self.commands: list[Command] = []
        part = {name: Recorder(name, self.calls) for name in ("engine", "ears", "speech", "recogniser", "attention")}
        engine = part["engine"]
        engine.ears, engine.speech, engine.recogniser = part["ears"], part["speech"], part["recogniser"]  # type: ignore[attr-defined]
        self.assembly = SimpleNamespace(
            settings=settings,
            engine=engine,
            llm=Llm(self.calls),
            brains=SimpleNamespace(names=("Mynah",)),
            timing=SimpleNamespace(clock=SystemClock()),
            core=SimpleNamespace(conversation=SimpleNamespace(attention=part["attention"])),
            use=lambda new: self.calls.append(("use", (new,), {})),
        )

    def submit(self, command: Command) -> bool:
        self.commands.append(command)
        return True

    def run_on_core(self, work: Callable[[], Awaitable[object]]) -> None:
        coroutine = cast(Any, work())
        with pytest.raises(StopIteration):
            coroutine.send(None)

    def last(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return next((args, values) for called, args, values in reversed(self.calls) if called == name)


def configures(name: str) -> Callable[[Running, Settings], bool]:
    return lambda running, now: running.last(f"{name}.configure")[0][0] == ears_config(now)


def prepares(setting: str) -> Callable[[Running, Settings], bool]:
    def seen(running: Running, now: Settings) -> bool:
        prepared = running.last("llm.prepare")[0][0]
        return getattr(prepared, setting) == getattr(now, setting) and running.commands == [Reload()]

    return seen


def devices(running: Running, now: Settings) -> bool:
    wanted = {"input_name": now.input_device, "output_name": now.output_device}
    return running.last("engine.choose_devices")[1] == wanted


def pace(running: Running, now: Settings) -> bool:
    return running.last("speech.adjust")[1] == {"speed": now.speed, "volume": now.volume}


def heeds(running: Running, now: Settings) -> bool:
    window_s = now.attention_s if now.attention == "addressed" else None
    return bool(running.last("attention.configure")[0][0].window_s == window_s)


def speaks(running: Running, now: Settings) -> bool:
    return bool(running.last("speech.set_voices")[0] == ((now.voice, now.unspeakable, now.voice_key_in_keyring),))


def recognises(running: Running, now: Settings) -> bool:
    final = (now.whisper, now.whisper_key_in_keyring)
    return bool(running.last("recogniser.set_models")[0] == (final, now.whisper_partial))


def languages(running: Running, now: Settings) -> bool:
    args, _ = running.last("recogniser.set_languages")
    return args[0] == now.languages and args[1].value == now.chinese_script


SEEN: Mapping[str, Callable[[Running, Settings], bool]] = {
    "input_device": devices,
    "output_device": devices,
    "extra_output_delay_ms": lambda running, now: (
        running.last("engine.set_extra_output_delay")[0] == (now.extra_output_delay_ms / 1000,)
    ),
    "sensitivity": configures("ears"),
    "patience": configures("ears"),
    "ears": configures("ears"),
    "attention": heeds,
    "attention_s": heeds,
    "talk_mode": lambda running, now: running.last("ears.set_hands_free")[0] == (now.talk_mode == "hands_free",),
    "volume": pace,
    "speed": pace,
    "pauses": lambda running, now: running.last("speech.set_pauses")[0] == (Pauses().scaled(now.pauses),),
    "thinking_cue": lambda running, now: running.last("use")[0][0].thinking_cue == now.thinking_cue,
    "voice": speaks,
    "unspeakable": speaks,
    "voice_key_in_keyring": speaks,
    "whisper": recognises,
    "whisper_partial": recognises,
    "whisper_key_in_keyring": recognises,
    "languages": languages,
    "chinese_script": languages,
    **{name: prepares(name) for name in describe() if name.startswith("llm")},
}
"""What a running conversation has after each change that it takes over at once."""


class Opened:
    """The settings of a window over a running conversation."""

    def __init__(self, qtbot: QtBot, stage: Any, folder: Path, settings: Settings) -> None:
        self.qtbot, self.window, self.folder = qtbot, stage.window, folder
        self.running = Running(settings)
        store = cast(Any, Store())
        self.service = SettingsService(
            folder,
            settings,
            stage.clock,
            vault=MemoryVault(),
            make_store=lambda: store,
            list_sound=lambda: DeviceChoices(
                inputs=(DeviceChoice(name="USB microphone", is_default=True, is_bluetooth=False),),
                outputs=(DeviceChoice(name="Desk loudspeaker", is_default=True, is_bluetooth=False),),
            ),
        )
        self.service.attach(EngineDoor(cast(Any, self.running), store))
        self.history = HistoryService(folder / "mynah.db", stage.bridge.submit)
        panels = Panels(stage.window, stage.bridge, self.service, EventInbox(), PromptRecord(), self.history)
        self.dialog = panels.settings
        stage.show(StateView(state="idle"), UserTextView(utterance_id=None, text="Hello there, 你好", final=True))

    def show(self, name: str) -> None:
        self.dialog.show_group(next(group for group, names in GROUPS.items() if name in names))
        self.dialog.show()
        self.qtbot.waitUntil(lambda: self.dialog.is_informed)
        self.qtbot.waitUntil(lambda: bool(self.window.characters.choices))

    def line(self, name: str, text: str) -> None:
        line = self.dialog.findChild(QLineEdit, name)
        assert isinstance(line, QLineEdit)
        assert line.isVisible(), name
        line.setFocus()
        line.selectAll()
        QTest.keyClicks(line, text)
        QTest.keyClick(line, Qt.Key.Key_Return)

    def step(self, box: QWidget, last_kept: int = 0) -> None:
        """Choose the next line of a box, or the one before at its end; the `last_kept` lines are left alone."""
        assert isinstance(box, QComboBox)
        assert box.isVisible()
        box.setFocus()
        is_last = box.currentIndex() >= box.count() - 1 - last_kept
        QTest.keyClick(box, Qt.Key.Key_Up if is_last else Qt.Key.Key_Down)

    def press(self, name: str) -> None:
        box = self.dialog.findChild(QCheckBox, name)
        assert isinstance(box, QCheckBox)
        assert box.isVisible()
        QTest.keyClick(box, Qt.Key.Key_Space)

    def change(self, name: str) -> None:
        """Use the field of `name` by the keyboard."""
        editor = self.dialog.rows[name].editor
        match editor:
            case NumbersEditor():
                box = editor.boxes["endpoint.end_silence_s"]
                self._up(box)
            case NumberEditor():
                assert isinstance(editor.control, NumberBox)
                self._up(editor.control)
            case KeyEditor():
                self.line(f"setting_{name}", SECRET)
            case LlmModelEditor():
                self.line("setting_llm_model_name", TYPED[name])
            case TextEditor():
                self.line(f"setting_{name}", TYPED[name])
            case SwitchEditor():
                self.press(f"setting_{name}")
            case SeveralEditor():
                self.press(f"setting_{name}_{describe()[name].choices[0]}")
            case SoundEditor():
                self.step(editor.control, last_kept=1)
            case ChoiceEditor() | DeviceEditor() | ModelEditor() | AvatarEditor() | LlmEditor():
                self.step(editor.control)
            case _:
                raise AssertionError(f"nobody knows how to use the field of {name}")

    def _up(self, box: NumberBox) -> None:
        assert box.isVisible()
        box.setFocus()
        is_highest = box.value() >= box.maximum()
        QTest.keyClick(box, Qt.Key.Key_Down if is_highest else Qt.Key.Key_Up)

    def saved(self) -> Settings:
        return load_settings(self.folder).or_raise()


@pytest.fixture
def opened(
    qtbot: QtBot, stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Settings], Opened]]:
    monkeypatch.setenv(TYPED["llm_key_env"], "x")
    monkeypatch.setattr(live_settings, "load_voices", lambda s, store: (s.voice, s.unspeakable, s.voice_key_in_keyring))
    monkeypatch.setattr(live_settings, "load_final", lambda s, store, clock: (s.whisper, s.whisper_key_in_keyring))
    monkeypatch.setattr(live_settings, "load_partial", lambda s, store, clock: s.whisper_partial)
    made: list[Opened] = []

    def make(settings: Settings) -> Opened:
        made.append(Opened(qtbot, stage, tmp_path, settings))
        return made[-1]

    root = logging.getLogger()
    level = root.level
    yield make
    root.setLevel(level)
    for one in made:
        one.service.close()
        one.history.close()


def look(window: Any, name: str) -> object:
    """Return what the window shows of a setting that it carries out itself."""
    seen: Mapping[str, Callable[[], object]] = {
        "ui_language": lambda: window.translator.language,
        "theme": lambda: window.theme.choice,
        "reduced_motion": lambda: window.is_motion_reduced,
        "always_on_top": lambda: bool(window.windowFlags() & Qt.WindowType.WindowStaysOnTopHint),
        "log_level": lambda: logging.getLogger().level,
        "subtitles": lambda: window.subtitles.isVisible(),
        "subtitle_size_pt": lambda: window.subtitles.grab().toImage(),
        "subtitle_font": lambda: window.subtitles.grab().toImage(),
        "subtitle_contrast": lambda: window.subtitles.grab().toImage(),
        "avatar": lambda: window.characters.id,
        "companion_click_through": lambda: window.companion.tray.click_through_action.isChecked(),
    }
    return seen[name]()


def test_what_counts_at_once_is_looked_at_here() -> None:
    assert set(SEEN) == set(ENGINE_LIVE)


@pytest.mark.parametrize("name", list(describe()))
def test_its_field_changes_it_and_what_runs(opened: Callable[[Settings], Opened], name: str) -> None:
    settings = Settings(**{"ui_language": "en", **BEFORE.get(name, {})})
    one = opened(settings)
    keys: list[tuple[object, object]] = []
    one.window.global_keys_changed.connect(lambda talk, stop: keys.append((talk, stop)))
    one.show(name)
    row = one.dialog.rows[name]
    assert row.isVisible() and (name == "ears" or row.editor.control.accessibleName())
    is_look = name in WINDOW_LIVE and not name.startswith("global_")
    before = look(one.window, name) if is_look else None
    one.change(name)
    one.qtbot.waitUntil(lambda: getattr(one.service.settings, name) != getattr(settings, name))
    now = one.service.settings
    assert getattr(one.saved(), name) == getattr(now, name), "what is in force is what is stored"
    if name in ENGINE_LIVE:
        one.qtbot.waitUntil(lambda: SEEN[name](one.running, now))
    elif name.startswith("global_"):
        one.qtbot.waitUntil(lambda: bool(keys))
        assert keys[-1] == (now.global_talk_key, now.global_stop_key)
    elif is_look:
        one.qtbot.waitUntil(lambda: look(one.window, name) != before)
    else:
        one.qtbot.waitUntil(lambda: "restart" in row.status())
        return
    if name not in KEYS:
        one.qtbot.waitUntil(lambda: row.status() == "")


def test_only_what_the_docs_name_needs_a_restart() -> None:
    late = set(describe()) - set(ENGINE_LIVE) - set(WINDOW_LIVE)
    assert late == {"answer_ahead", "session_idle_min", "context_sources", "event_socket", "text_size"}
