"""The window program: opens at once, loads in the background, says what is missing."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QLocale, QTimer
from PySide6.QtWidgets import QApplication

from desktop.bridge import Bridge
from desktop.control_channel import ControlChannel, print_ack
from desktop.event_view import EventInbox
from desktop.flow_folders import FlowFolders
from desktop.global_keys.in_window import WindowKeys
from desktop.global_keys.keys import find_adapter
from desktop.history_service import HistoryService
from desktop.options import RunOptions
from desktop.paths import DATABASE
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings
from desktop.settings_service import SettingsService
from desktop.ui.avatar.library import FOLDER
from desktop.ui.collector import GuiCollector
from desktop.ui.companion.mode import PLACE_FILE
from desktop.ui.main_window import MainWindow, create_window
from desktop.ui.panels import Panels, keep_choice
from desktop.ui.screen_room import centre
from orchestrator.clock import Clock, SystemClock
from orchestrator.contracts.commands import Command, Quit
from orchestrator.contracts.errors import MynahError
from orchestrator.contracts.events import FlowStateChanged, json_name
from orchestrator.contracts.views import NoticeView, StateView

if TYPE_CHECKING:
    from desktop.bootstrap import Assembly, RunningProgram
    from desktop.window_loader import Loaded

log = logging.getLogger(__name__)

PLACES_FILE = "window.json"
"""Where window and docks were, in the data folder."""

_SIGNAL_POLL_MS = 100
_SWITCH_S = 0.001
_STOP_LIMIT_S = 2.8


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLook:
    """The window's part of the settings."""

    language: str
    theme: str
    reduced_motion: bool = False
    text_size: float = 1.0


def window_look(settings: Settings) -> WindowLook:
    """Translate settings into what the window asks for."""
    language = {"auto": "system", "zh": "zh_CN"}.get(settings.ui_language, settings.ui_language)
    theme = "system" if settings.theme == "auto" else settings.theme
    return WindowLook(
        language=language, theme=theme, reduced_motion=settings.reduced_motion, text_size=settings.text_size
    )


def with_user_layer(options: RunOptions) -> RunOptions:
    """Return options that read the user's flow folder also if it does not exist yet: the editor may make it."""
    if len(options.flow_layers) > 1:
        return options
    return replace(options, flow_layers=(*options.flow_layers, options.data / "flows"))


class WindowProgram:
    """The window and, once it is loaded, the conversation behind it. Lives on the GUI thread."""

    def __init__(self, options: RunOptions, clock: Clock) -> None:
        """Make the window; `start` begins to load."""
        options = with_user_layer(options)
        self._options = options
        self._clock = clock
        self._program: RunningProgram | None = None
        self._assembly: Assembly | None = None
        self._waiting: list[Command] = []
        self._lock = threading.Lock()
        self._is_ending = False
        self.exit_code = 0
        # Called on the GUI thread when loading is over, however it went.
        self.loaded: list[Callable[[], None]] = []
        self.bridge = Bridge(clock, commands=self, level_db=self._level_db, on_stop_now=self._stop_now)
        self.window: MainWindow = create_window(
            self.bridge, window_look(options.settings), avatars=options.data / FOLDER
        )
        self.window.setting_changed.connect(self._on_setting_changed)
        folders = FlowFolders(
            shipped=options.flow_layers[0], user=options.flow_layers[-1], actions=options.data / "actions"
        )
        self.window.flow_editor.configure(folders, options.data / PLACES_FILE)
        self.settings = SettingsService(options.data, options.settings, clock)
        self.inbox, self.prompts = EventInbox(), PromptRecord()
        self.history = HistoryService(options.data / DATABASE, self.submit)
        self.window.subtitles.corrected.connect(self.history.correct_text)
        self.bridge.misheard.connect(lambda view: self.history.learn(view.heard, view.said))
        self.panels = Panels(self.window, self.bridge, self.settings, self.inbox, self.prompts, self.history, folders)
        self.keys = WindowKeys(
            find_adapter(QApplication.platformName(), session=os.environ.get("XDG_SESSION_TYPE", "")),
            self.bridge.call,
            self.bridge.show,
            talk=self.window.hold_talk,
            stop=lambda: self.window.stop("key"),
        )
        self.window.global_keys_changed.connect(self.keys.apply)
        self.window.companion.keep_in(options.data / PLACE_FILE)
        self._loader = threading.Thread(target=self._load, name="loader", daemon=True)

    # --- life -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Show the window and begin to load."""
        # where it will stand is known at once to what opens over it
        centre(self.window, None)
        self.window.show()
        self.window.companion.show_tray()
        self.keys.apply(self.settings.settings.global_talk_key, self.settings.settings.global_stop_key)
        self.bridge.show(StateView(state="starting"))
        for problem in self._options.loaded.problems:
            self.bridge.show(NoticeView(code="settings_broken", text=str(problem), severity="warning"))
        self.settings.expect()
        self._loader.start()
        if self.settings.is_first_start() and self._options.control is None:
            # A program that drives the window by commands must not find a dialog over it.
            self.panels.open_guide()

    def end(self, code: int = 0) -> None:
        """End everything and leave the Qt loop. GUI thread."""
        if self._is_ending:
            return
        self._is_ending = True
        self.exit_code = code
        self.window.close()
        self.keys.close()
        self.bridge.close()
        self.settings.close()
        self.panels.persona.close()
        self.history.close()
        program = self._program
        if program is not None:
            stopper = threading.Thread(target=program.stop, args=(code,), name="stopper", daemon=True)
            stopper.start()
            stopper.join(_STOP_LIMIT_S)
        application = QApplication.instance()
        if application is not None:
            application.quit()

    # --- loading, on the loader's thread ----------------------------------------------------------------

    def _load(self) -> None:
        try:
            self._load_parts()
        except MynahError as error:
            log.warning("starting failed: %s", error.code)
            self.bridge.show(NoticeView(code=error.code, text=error.message, severity="error"))
            self.bridge.show(StateView(state="error", detail=error.message))
        except Exception as error:
            log.exception("starting failed")
            self.bridge.show(NoticeView(code="start_failed", text=str(error), severity="error"))
            self.bridge.show(StateView(state="error", detail=str(error)))
        finally:
            for call in self.loaded:
                self.bridge.call(call)

    def _load_parts(self) -> None:
        from desktop.window_loader import load_program

        loaded = load_program(
            self._options, self._clock, self.bridge, self._ask_to_end, inbox=self.inbox, prompts=self.prompts
        )
        self.bridge.call(lambda: self._attach(loaded))
        # What the editor imports takes half a second; on this thread nobody waits for it.
        import desktop.ui.flow_editor.panel  # noqa: F401

        self.bridge.call(self._prepare)

    def _attach(self, loaded: Loaded) -> None:
        """Connect the window to the running conversation. GUI thread."""
        program, assembly = loaded.program, loaded.assembly
        if self._is_ending:
            program.stop()
            return
        with self._lock:
            self._program = program
            self._assembly = assembly
            waiting, self._waiting = self._waiting, []
        self.settings.attach(loaded.door)
        self.history.attach(loaded.door)
        assembly.event_log.add_tap(self._on_record)
        self.bridge.attach(events=loaded.painted, staleness=assembly.generations)
        for command in waiting:
            program.submit(command)
        self.bridge.show(StateView(state="idle"))
        self.window.watch.count_anew()
        self.window.set_character_name(loaded.display_name)
        if self.settings.settings.avatar is None:
            self.window.characters.show(loaded.avatar)
        self.panels.set_character_name(loaded.display_name)
        if self._options.control is not None:
            acknowledge = assembly.acknowledge if self._options.events is not None else print_ack
            channel = ControlChannel(submit=self.submit, acknowledge=acknowledge, dump=self._dump)
            program.ending.append(channel.close)
            channel.start(self._options.control)
        sys.stdout.write("ready\n")
        sys.stdout.flush()

    def _prepare(self) -> None:
        if not self._is_ending:
            self.window.flow_editor.prepare()

    # --- doors ------------------------------------------------------------------------------------------

    def submit(self, command: Command) -> bool:
        """Take a command from the window or the control channel; while loading it waits. Any thread."""
        if isinstance(command, Quit):
            return self._is_ending or self.bridge.call(self.end)
        with self._lock:
            program = self._program
            if program is None:
                self._waiting = [*self._waiting[-15:], command]
                return True
        return program.submit(command)

    def _on_record(self, record: Mapping[str, Any]) -> None:
        """Light the running step in the flow editor. Called under the event log's lock: it must not wait."""
        if record.get("type") == FlowStateChanged.TYPE:
            payload = record.get("payload") or {}
            flow, step = payload.get(json_name("active_task")), payload.get("step")
            self.bridge.call(lambda: self.window.flow_editor.show_running(flow, step))

    def _on_setting_changed(self, key: str, value: object) -> None:
        """Keep what was chosen in the window for the next start."""
        change = keep_choice(self.settings, key, value)
        if change is None:
            return
        self.panels.refresh()
        if change.is_refused:
            self.bridge.show(NoticeView(code=change.code, text=change.message, severity="warning"))

    def _ask_to_end(self) -> None:
        self.bridge.call(self.end)

    def _level_db(self) -> float | None:
        assembly = self._assembly
        if assembly is None or assembly.engine.device_names()["input"] is None:
            return None
        return assembly.engine.level_db

    def _stop_now(self) -> None:
        if self._assembly is not None:
            self._assembly.engine.stop_sound()

    def _dump(self) -> dict[str, object]:
        """Ask the GUI thread for the widgets; for the control thread. Raises `ValueError` if it does not answer."""
        answered = threading.Event()
        found: dict[str, object] = {}

        def look() -> None:
            found.update(self.window.dump())
            answered.set()

        if not self.bridge.call(look) or not answered.wait(2.0):
            raise ValueError("the window does not answer")
        return found


def run_window(options: RunOptions) -> int:
    """Open the window and run until it is closed; returns the exit code."""
    if sys.platform == "linux" and os.environ.get("XDG_SESSION_TYPE") == "wayland":
        # A frameless window can't be moved by the program under Wayland; XWayland behaves.
        os.environ.setdefault("QT_QPA_PLATFORM", "xcb")
    application = QApplication.instance() or QApplication(["mynah"])
    if not isinstance(application, QApplication):
        raise MynahError("window_failed", "there is a Qt application without windows already", part="window")
    application.setApplicationName("mynah")
    application.setApplicationDisplayName("Mynah")
    application.setQuitOnLastWindowClosed(False)
    QLocale.setDefault(QLocale.system())
    # Loading models keeps three threads busy: each would make the window wait for the default of 5 ms.
    sys.setswitchinterval(_SWITCH_S)
    collector = GuiCollector()
    program = WindowProgram(options, SystemClock())
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: received.append(got))
    # Python's signal handlers run only between byte codes; the timer lets them run while Qt waits.
    poll = QTimer()
    poll.setInterval(_SIGNAL_POLL_MS)
    poll.timeout.connect(lambda: program.end(130 if received[0] == signal.SIGINT else 0) if received else None)
    poll.start()
    program.loaded.append(collector.start)
    program.start()
    application.exec()
    collector.stop()
    return program.exit_code
