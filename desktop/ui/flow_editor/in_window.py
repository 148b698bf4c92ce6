"""The flow editor's place in the window: its dock, its key, and where both were at the last end."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from desktop import paths
from desktop.bridge import Bridge
from desktop.flow_folders import FlowFolders, write_atomically
from desktop.ui.flow_editor.dock import DOCK_WIDTH_PX, FlowEditorDock
from desktop.ui.flow_editor.keys import KeyPass
from desktop.ui.screen_room import widen
from desktop.ui.theme import GRID_PX
from orchestrator.contracts.commands import Reload, Stop
from orchestrator.contracts.errors import InputError

if TYPE_CHECKING:
    from desktop.ui.main_window import MainWindow

log = logging.getLogger(__name__)

FLOWS_KEY = "Ctrl+E"
_HEIGHT_PX = 100 * GRID_PX
_MAX_PLACES_BYTES = 100_000
_PREPARE_MS, _BETWEEN_MS = 1200, 60
_OVER = object()


class FlowEditorInWindow(QObject):
    """Adds the editor to `window`; saving in it asks the program to read its flows again."""

    def __init__(self, window: MainWindow, bridge: Bridge) -> None:
        """Add the dock, hidden, and the menu entry."""
        super().__init__(window)
        self._window = window
        self._bridge = bridge
        self._folders: FlowFolders | None = None
        self._places_file: Path | None = None
        self._steps: Iterator[None] = iter(())
        self.dock = FlowEditorDock(self._find_folders, window.theme, window.translator)
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, self.dock)
        self.dock.hide()
        self.action = window.add_panel("flowsAction", "menu.flows", FLOWS_KEY)
        self.action.triggered.connect(lambda _=False: self.toggle())
        self.dock.layers_changed.connect(lambda: bridge.submit(Reload()))
        self.dock.stop_asked.connect(self._on_stop_asked)
        window.closed.connect(self._on_closed)
        self._key_pass = KeyPass(self)
        window.controls.field.installEventFilter(self._key_pass)

    def configure(self, folders: FlowFolders, places_file: Path | None = None) -> None:
        """Edit these folders, and keep where window and docks are in `places_file`. Before the editor is opened."""
        self._folders = folders
        self._places_file = places_file
        if places_file is not None:
            self.restore_places(_read_places(places_file))

    def prepare(self) -> None:
        """Build the hidden editor when the window has nothing to do, a step at a time, so that opening it is quick."""
        self._steps = self.dock.steps()
        QTimer.singleShot(_PREPARE_MS, self, self._take_step)

    def toggle(self) -> None:
        """Show the editor and go to it; hide it if the keyboard is in it."""
        dock, window = self.dock, self._window
        focus = QApplication.focusWidget()
        if dock.isVisible() and focus is not None and dock.isAncestorOf(focus):
            dock.hide()
            window.controls.field.setFocus()
            return
        if not dock.isVisible():
            self._make_room()
        dock.show()
        dock.open_panel().view.focus()

    def show_running(self, flow: str | None, step: str | None) -> None:
        """Light the step that the conversation is at; None puts the light out."""
        self.dock.show_running(flow, step)

    def places(self) -> dict[str, object]:
        """Return where window and docks are, in plain values."""
        window = self._window
        return {
            "geometry": bytes(window.saveGeometry().toBase64().data()).decode("ascii"),
            "state": bytes(window.saveState().toBase64().data()).decode("ascii"),
            "flows": dict(self.dock.place()),
        }

    def restore_places(self, places: Mapping[str, object]) -> None:
        """Put window and docks where they were; what can't be read is left as it is."""
        flows = places.get("flows")
        if isinstance(flows, Mapping):
            self.dock.restore_place(flows)
        window = self._window
        for key, restore in (("geometry", window.restoreGeometry), ("state", window.restoreState)):
            value = places.get(key)
            if isinstance(value, str) and value.isascii():
                restore(QByteArray.fromBase64(value.encode()))

    def _take_step(self) -> None:
        if self._window.isVisible() and next(self._steps, _OVER) is not _OVER:
            QTimer.singleShot(_BETWEEN_MS, self, self._take_step)

    def _make_room(self) -> None:
        window = self._window
        if not self.dock.isFloating() and not window.isMaximized():
            widen(window, DOCK_WIDTH_PX, least_height_px=_HEIGHT_PX)
        window.resizeDocks([self.dock], [DOCK_WIDTH_PX], Qt.Orientation.Horizontal)

    def _find_folders(self) -> FlowFolders:
        if self._folders is None:
            data = paths.data_dir()
            return FlowFolders(shipped=paths.flow_config(), user=data / "flows", actions=data / "actions")
        return self._folders

    def _on_stop_asked(self) -> None:
        self._bridge.stop_now()
        self._bridge.submit(Stop(by="key"))

    def _on_closed(self) -> None:
        self.dock.close_down()
        if self._places_file is not None:
            try:
                write_atomically(self._places_file, json.dumps(self.places()))
            except InputError as error:
                log.warning("the window's place was not kept: %s", error.code)


def _read_places(path: Path) -> Mapping[str, object]:
    try:
        if path.stat().st_size > _MAX_PLACES_BYTES:
            return {}
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
