"""The dock that holds the flow editor. The editor itself is built when the dock is first shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QDockWidget

from desktop.flow_folders import FlowFolders
from desktop.ui.dock_title import DockTitle
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme

if TYPE_CHECKING:
    from desktop.ui.flow_editor.panel import FlowEditorPanel
    from desktop.ui.flow_editor.parts import PanelParts
    from desktop.ui.flow_editor.try_pane import MakeTryOut

DOCK_WIDTH_PX = 110 * GRID_PX


class FlowEditorDock(QDockWidget):
    """`layers_changed`: the program may read its flows again. `stop_asked`: Escape in the floating dock."""

    layers_changed = Signal()
    stop_asked = Signal()

    def __init__(
        self,
        folders: Callable[[], FlowFolders],
        theme: Theme,
        translator: Translator,
        *,
        make_try_out: MakeTryOut | None = None,
    ) -> None:
        """Start hidden and without an editor."""
        super().__init__()
        self.setObjectName("flowDock")
        self._folders = folders
        self._theme = theme
        self._translator = translator
        self._make_try_out = make_try_out
        self._place: Mapping[str, object] = {}
        self._file = ""
        self._running: tuple[str | None, str | None] = (None, None)
        self.panel: FlowEditorPanel | None = None
        self._parts: PanelParts | None = None
        self.setAllowedAreas(Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea)
        translator.bind(self.setWindowTitle, "flows.title")
        translator.bind(self.setAccessibleName, "flows.title")
        self._title = DockTitle(self, "flowDock", "flows", theme, translator)
        self.setTitleBarWidget(self._title)
        translator.changed.connect(lambda: self._show_title(self._file))
        self._show_title("")
        self.hide()

    def open_panel(self) -> FlowEditorPanel:
        """Return the editor, built if need be."""
        made = self.make_panel()
        if self.widget() is not made:
            made.dress()
            self.setWidget(made)
        return made

    def steps(self) -> Iterator[None]:
        """Make the editor and put it in its place a little at a time; each yield lets the window go on."""
        # Imported here: checking and trying flows needs parts that the window must not wait for at the start.
        from desktop.ui.flow_editor.parts import PanelParts

        yield
        parts = self._parts = PanelParts(self._theme, self._translator)
        # one who opens the editor meanwhile gets it with the parts that are made
        for _ in parts.steps():
            yield
        self.make_panel()
        yield
        self.make_panel().dress()
        yield
        self.open_panel()

    def make_panel(self) -> FlowEditorPanel:
        """Return the editor, perhaps not in its place yet: making and placing are two waits that need not be one."""
        if self.panel is None:
            # Imported here: checking and trying flows needs parts that the window must not wait for at the start.
            from desktop.ui.flow_editor.panel import FlowEditorPanel, real_try_out

            make = self._make_try_out or real_try_out
            parts, self._parts = self._parts, None
            made = FlowEditorPanel(self._folders(), self._theme, self._translator, make_try_out=make, parts=parts)
            made.restore_place(self._place)
            made.layers_changed.connect(self.layers_changed)
            made.title_changed.connect(self._show_title)
            made.show_running_step(*self._running)
            self.panel = made
        return self.panel

    def show_running(self, flow: str | None, step: str | None) -> None:
        """Light the step that the conversation is at."""
        self._running = flow, step
        if self.panel is not None:
            self.panel.show_running_step(flow, step)

    def place(self) -> Mapping[str, object]:
        """Return what is open, for the next start."""
        return self.panel.place() if self.panel is not None else self._place

    def restore_place(self, place: Mapping[str, object]) -> None:
        """Open that when the dock is shown."""
        self._place = place

    def close_down(self) -> None:
        """End the editor's threads; unsaved texts are kept as drafts."""
        if self.panel is not None:
            self.panel.close_down()

    def showEvent(self, event: QShowEvent) -> None:
        """Build the editor when it is first seen."""
        self.open_panel()
        super().showEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape silences the character from the floating dock, too."""
        if event.key() == Qt.Key.Key_Escape and self.isFloating():
            self.stop_asked.emit()
        else:
            super().keyPressEvent(event)

    def _show_title(self, file: str) -> None:
        self._file = file
        title = self._translator.text("flows.title")
        self._title.show_title(f"{title} — {file}" if file else title)
