"""Every surface of the window, one after the other: panels, pages, menus and what stands in them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QWidget
from pytestqt.qtbot import QtBot
from rigs.surface_parts import BROKEN, FLOW, SAID, TESTS, Door, event_records, fill_history, fill_window

from audio.room_measure import RoomFigures
from desktop import paths
from desktop.ears_numbers import ears_numbers
from desktop.event_view import EventInbox
from desktop.flow_check import kind_of
from desktop.flow_folders import FlowFolders
from desktop.history_service import HistoryService
from desktop.llm_probe import LlmTest
from desktop.model_catalogue import load_catalogue
from desktop.models import ModelStore
from desktop.prompt_record import PromptRecord
from desktop.room_measurement import RoomAdvice, RoomProgress, in_words
from desktop.settings import Settings
from desktop.settings_service import Change, DeviceChoice, DeviceChoices, InstallStep, SettingsService
from desktop.sound_server import DEFAULT_MODELS, DEFAULT_VOICE
from desktop.try_out import TryOut
from desktop.ui.companion.placement import SMALLEST
from desktop.ui.flow_editor.pack_choice import PackEntry
from desktop.ui.flow_editor.panel import FlowEditorPanel
from desktop.ui.i18n.translator import CATALOGUES, LANGUAGES
from desktop.ui.panels import Panels
from desktop.ui.settings.groups import GROUPS
from desktop.ui.settings.numbers_editor import NumbersEditor
from desktop.ui.setup.guide import STEPS
from desktop.ui.setup.room_pane import RoomPane
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask
from orchestrator.contracts.views import (
    DeviceView,
    MuteView,
    NoticeView,
    StateView,
)
from orchestrator.store.database import Database

STUMBLING = RoomFigures(
    noise_db=-38.0,
    voice_db=-20.0,
    coupling_db=-2.0,
    delay_s=0.18,
    loss_db=3.0,
    ducks=9,
    cuts=3,
    talked_s=20.0,
    is_half_duplex=True,
)
"""A room in which everything is to be said."""

Shown = tuple[str, QWidget]
"""Name of what is shown, and the widget to look at: a window, a dock or a menu."""


@dataclass
class Home:
    """A window with everything around it, over folders of its own."""

    qtbot: QtBot
    stage: Any
    folder: Path

    def __post_init__(self) -> None:
        """Put the services together as the program does."""
        stage, folder = self.stage, self.folder
        self.window = stage.window
        self.store = Database(folder / "mynah.db", is_inline=True)
        self.history = HistoryService(folder / "mynah.db", stage.bridge.submit)
        self.inbox, self.prompts = EventInbox(), PromptRecord()
        inputs = (DeviceChoice(name="USB microphone", is_default=True, is_bluetooth=False),)
        self.service = SettingsService(
            folder,
            Settings(llm="http://localhost:11434/v1", ui_language="en"),
            stage.clock,
            make_store=lambda: ModelStore(folder / "models"),
            list_sound=lambda: DeviceChoices(inputs=inputs, outputs=()),
        )
        found = LlmTest(url="http://localhost:11434/v1", is_ok=True, models=("qwen",), program="Ollama")
        self.service.find_servers = lambda on_done: on_done((found,))  # type: ignore[method-assign]
        self.service.attach(Door())
        user = folder / "flows"
        user.mkdir()
        self.folders = FlowFolders(shipped=paths.flow_config(), user=user)
        self.panels = Panels(
            self.window, stage.bridge, self.service, self.inbox, self.prompts, self.history, self.folders
        )
        editor = self.window.flow_editor
        editor.configure(self.folders)
        editor.dock._make_try_out = lambda folders, listener: TryOut(folders, listener, embedding="exact")

    def close(self) -> None:
        """End the threads."""
        self.window.flow_editor.dock.close_down()
        self.service.close()
        self.panels.persona.close()
        self.history.close()
        self.store.close()
        self.window.characters.close()

    def settle(self) -> None:
        """Let what waits happen."""
        self.stage.show()

    def look(self, language: str, theme: str) -> None:
        """Switch the open window, as its menu does."""
        self.window.set_language(language)
        self.window.set_theme(theme)
        self.settle()
        self.settle()

    def data_words(self) -> set[str]:
        """Return the words in sight that come from files, devices and people, the same in every language."""
        found = {"Mynah", "小八", "Ollama", "USB microphone", "http://localhost:11434/v1", "order", "mic"}
        found |= {text for _, text in SAID} | {*DEFAULT_MODELS.values(), DEFAULT_VOICE}
        found |= set(ears_numbers())
        found |= {file.name for file in self.folders.shipped.rglob("*.yml")} | {"refund.yml", "broken.yml"}
        for model in load_catalogue().models.values():
            found |= {model.title, model.licence, model.name}
        found |= {choice.name(language) for choice in self.window.characters.choices for language in LANGUAGES}
        return found

    def flow_words(self) -> set[str]:
        """Return the words of flow files that the graph shows."""
        steps = {"start", "end", "ask", "done", "slots.parcel", "parsel? Which order?", "Done: {{ slots.parcel }}."}
        return steps | {"▶ ask", "express self harm", "offer help in a crisis"}

    def surfaces(self, kind: str) -> Iterator[Shown]:
        """Yield what there is of a kind: main, menus, companion, history, inspector, settings, guide, flows."""
        made: Callable[[], Iterator[Shown]] = getattr(self, f"_{kind}")
        return made()

    # --- the first screen -------------------------------------------------------------------------------

    def _main(self) -> Iterator[Shown]:
        stage, window = self.stage, self.window
        yield "starting", window
        stage.show(StateView(state="idle"))
        yield "idle", window
        fill_window(self.stage)
        yield "talking", window
        window.subtitles.correct_last()
        yield "correcting", window
        window.subtitles.editor.hide()
        stage.show(NoticeView(code="stt_failed", text="", severity="error"), MuteView(direction="input", on=True))
        yield "muted", window
        stage.show(
            StateView(state="error"),
            DeviceView(direction="input", device="mic", state="lost"),
            DeviceView(direction="output", device="card", state="lost"),
        )
        stage.at(103.0)
        yield "no_devices", window

    def _notices(self) -> Iterator[Shown]:
        """Yield the bar with every notice there is."""
        bar = self.window.notices
        self.stage.show(StateView(state="idle"))
        codes = [key.removeprefix("notice.") for key in CATALOGUES["en"] if key.startswith("notice.")]
        for code in codes:
            if code in ("name", "close") or code.startswith("severity."):
                continue
            bar.raise_notice(
                NoticeView(code=code, text="", severity="warning"), device="USB microphone", host="localhost"
            )
            self.settle()
            yield f"notice_{code}", bar
            bar.withdraw(code)

    # --- menus ------------------------------------------------------------------------------------------

    def _menus(self) -> Iterator[Shown]:
        window, editor = self.window, self.window.flow_editor.dock
        panel = editor.open_panel()
        menus = [window.menu, *window.menu.findChildren(QMenu), window.companion.tray.menu]
        menus += [window.companion.companion.menu, *panel.findChildren(QMenu)]
        for menu in menus:
            menu.popup(QPoint(0, 0))
            self.settle()
            yield f"menu_{menu.objectName().rsplit('.', 1)[-1]}", menu
            menu.hide()

    # --- the companion ----------------------------------------------------------------------------------

    def _companion(self) -> Iterator[Shown]:
        mode, stage = self.window.companion, self.stage
        stage.show(StateView(state="idle"))
        mode.turn(True)
        yield "companion_idle", mode.companion
        fill_window(self.stage)
        mode._on_meter()
        stage.at(102.5)
        mode.companion.bubble.setVisible(True)
        yield "companion_talking", mode.companion
        place = mode.companion.place()
        mode.companion.resize(*SMALLEST)
        mode.companion.show_microphone("open", -20.0, 102.8)
        self.settle()
        yield "companion_smallest", mode.companion
        mode.companion.put(place)
        for state in ("muted", "missing"):
            mode.companion.show_microphone(state, None, 103.0)
            yield f"companion_{state}", mode.companion
        mode.turn(False)

    # --- history ----------------------------------------------------------------------------------------

    def _history(self) -> Iterator[Shown]:
        panel = self.panels.history
        self._open(panel)
        yield "history_empty", panel
        self.store.transact_now(fill_history)
        panel.refresh()
        self.qtbot.waitUntil(lambda: len(panel.model.lines) == len(SAID))
        yield "history_filled", panel
        panel.list.selectionModel().select(
            panel.model.index(0), panel.list.selectionModel().SelectionFlag.ClearAndSelect
        )
        panel.correct.click()
        yield "history_correcting", panel
        panel.leave.click()
        panel.delete.click()
        yield "history_asking", panel
        panel.keep.click()
        panel.search.setText("nobody said this")
        panel.refresh()
        self.qtbot.waitUntil(lambda: not panel.model.lines)
        yield "history_nothing_found", panel
        panel.hide()

    # --- the inspector ----------------------------------------------------------------------------------

    def _inspector(self) -> Iterator[Shown]:
        panel = self.panels.inspector
        self._open(panel)
        for is_filled in (False, True):
            if is_filled:
                for record in event_records(12):
                    self.inbox.offer(record)
                panel.tabs.setCurrentIndex(0)
                panel.refresh()
                panel.timeline._choose(5)
                self.prompts.note(
                    LlmRequest(task=LlmTask.PERSONA, messages=(ChatMessage(role="user", content="the question"),))
                )
            for index in range(panel.tabs.count()):
                panel.tabs.setCurrentIndex(index)
                panel.refresh()
                name = panel.tabs.widget(index).objectName().removeprefix("inspectorPage_")
                yield f"inspector_{name}_{'filled' if is_filled else 'empty'}", panel
        panel.hide()

    # --- settings ---------------------------------------------------------------------------------------

    def _settings(self) -> Iterator[Shown]:
        dialog = self.panels.settings
        dialog.show()
        self.qtbot.waitUntil(lambda: dialog.is_informed)
        for group in GROUPS:
            dialog.show_group(group)
            self.settle()
            self._stir(dialog, group)
            yield f"settings_{group}", dialog
            if group == "voice":
                dialog.form.rows["voice"].editor.show_value("http://localhost:8000/v1")
                yield "settings_voice_server", dialog
        dialog.hide()

    def _stir(self, dialog: Any, group: str) -> None:
        """Let a page show all that it can: progress, refusals, things found."""
        form = dialog.form
        if group == "recognition":
            form._installing["base"] = form.rows["whisper"].editor.models
            form.show_step(InstallStep(name="base", stage="fetching", done_bytes=40_000_000, total_bytes=145_000_000))
        elif group == "voice":
            change = Change(name="voice", value=None, effect="refused", code="model_missing", message="not there")
            form._on_changed(change)
        elif group == "llm":
            form.search_servers()
        elif group == "numbers":
            editor = form.rows["ears"].editor
            assert isinstance(editor, NumbersEditor)
            editor.boxes[next(iter(editor.boxes))].stepUp()
        elif group == "talking":
            form._on_changed(Change(name="answer_ahead", value=False, effect="restart"))
        self.qtbot.wait(1)

    # --- the guide --------------------------------------------------------------------------------------

    def _guide(self) -> Iterator[Shown]:
        self.panels.open_guide()
        guide = self.panels.guide
        self.qtbot.waitUntil(lambda: guide.form.is_informed)
        for index, step in enumerate(STEPS):
            guide.go_to(index)
            self.settle()
            if step == "persona":
                self.qtbot.wait(50)
            yield f"guide_{step}", guide
            if step == "room":
                yield from self._room(guide)
        guide.hide()

    def _room(self, guide: QWidget) -> Iterator[Shown]:
        pane = guide.findChild(RoomPane, "roomPane")
        assert isinstance(pane, RoomPane)
        pane.show_progress(RoomProgress(stage="quiet", share=0.1))
        yield "guide_room_running", guide
        advice = RoomAdvice(because="stumbles", sensitivity="relaxed", extra_output_delay_ms=180.0)
        findings = in_words(STUMBLING)
        pane.show_progress(RoomProgress(stage="done", figures=STUMBLING, advice=advice, findings=findings))
        self.settle()
        yield "guide_room_measured", guide
        pane.show_progress(RoomProgress(stage="failed", code="input_stalled"))
        yield "guide_room_failed", guide

    # --- the flow editor --------------------------------------------------------------------------------

    def _flows(self) -> Iterator[Shown]:
        dock = self.window.flow_editor.dock
        self._open(dock)
        panel: FlowEditorPanel = dock.open_panel()
        self.qtbot.waitUntil(lambda: panel.view.files.names("shipped") != [], timeout=10_000)
        yield "flows_empty", dock
        for name, text in (("refund.yml", FLOW), ("broken.yml", BROKEN)):
            (self.folders.user / name).write_text(text, encoding="utf-8")
        (self.folders.user / "tests").mkdir(exist_ok=True)
        (self.folders.user / "tests" / "refund_tests.yml").write_text(TESTS, encoding="utf-8")
        panel._poll()
        self._open_file(panel, "user", "refund.yml")
        panel.show_running_step("refund", "ask")
        yield "flows_graph", dock
        panel.view.find.open()
        panel.view.find.needle.setText("order")
        yield "flows_find", dock
        panel.view.find.leave()
        yield from self._try_out(panel, dock)
        self._open_file(panel, "user", "broken.yml")
        panel.view.tabs.setCurrentIndex(0)
        yield "flows_problems", dock
        panel.view.edit.go_to(5, 19)
        QTest.keyClicks(panel.view.edit, "!")
        panel.save()
        self.qtbot.waitUntil(lambda: panel.current is not None and panel.current.is_draft, timeout=10_000)
        yield "flows_draft", dock
        yield from self._pack(panel)
        self._open_file(panel, "shipped", "rails.yml")
        yield "flows_read_only", dock
        dock.hide()

    def _pack(self, panel: FlowEditorPanel) -> Iterator[Shown]:
        choice = panel.packs.choice
        notes = {"refund.yml": "replaces", "broken.yml": "unsaved"}
        names = ("refund.yml", "broken.yml", "persona.yml", "policy.yml")
        entries = [PackEntry(name=name, kind=kind_of(name), note=notes.get(name)) for name in names]
        for way in ("export", "import"):
            choice.ask(way, "refund.yml", entries)
            self.settle()
            yield f"flows_pack_{way}", choice
            choice.reject()

    def _try_out(self, panel: FlowEditorPanel, dock: QWidget) -> Iterator[Shown]:
        panel.view.show_try()
        yield "flows_try_empty", dock
        panel.view.try_pane.field.setText("I want a refund")
        panel.view.try_pane.send.click()
        self.qtbot.waitUntil(lambda: "character" in [who for who, _ in panel.view.try_pane.lines()], timeout=20_000)
        yield "flows_try", dock
        panel.view.tabs.setCurrentIndex(2)
        yield "flows_tests_empty", dock
        panel.run_tests()
        self.qtbot.waitUntil(lambda: panel.view.tests_pane.results.topLevelItemCount() > 0, timeout=20_000)
        yield "flows_tests", dock

    def _open_file(self, panel: FlowEditorPanel, layer: str, name: str) -> None:
        panel.open_file(layer, name)
        self.qtbot.waitUntil(lambda: panel.current is not None and panel.current.key == (layer, name), timeout=10_000)
        self.qtbot.waitUntil(lambda: panel.is_checked, timeout=15_000)

    # --- inside -----------------------------------------------------------------------------------------

    def _open(self, dock: Any) -> None:
        """Show one dock beside the character, as its key does, in a window of the size that it had."""
        window = self.window
        size = window.size()
        self.stage.show(StateView(state="idle"))
        if dock is window.flow_editor.dock:
            window.flow_editor.toggle()
        else:
            self.panels._turn(dock)
        window.resize(size)
        self.settle()
        window.resizeDocks([dock], [round(size.width() * 0.55)], Qt.Orientation.Horizontal)
        self.settle()


def place_in(widget: QWidget, top: QWidget) -> QRect:
    """Return where `widget` is in `top`."""
    return QRect(widget.mapTo(top, QPoint(0, 0)), widget.size())
