"""The files of both layers, and below them what the open one is about."""

from __future__ import annotations

from collections.abc import Container, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem

from desktop.flow_files import FlowFile
from desktop.ui import icons
from desktop.ui.empty_hint import EmptyHint
from desktop.ui.flow_editor.outline import Outline
from desktop.ui.i18n import Translator
from desktop.ui.theme import Theme
from desktop.ui.tool_buttons import ICON_PX

_ROLE = Qt.ItemDataRole.UserRole


class FileList(QTreeWidget):
    """Two groups: the user's own, and what ships (with a lock). An unsaved file has a dot before its name."""

    file_chosen = Signal(str, str)

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Start empty."""
        super().__init__()
        self.setObjectName("flowFiles")
        self._theme = theme
        self._translator = translator
        self._files: tuple[FlowFile, ...] = ()
        self._unsaved: Container[str] = ()
        self._current = ("", "")
        self.setHeaderHidden(True)
        self.setIndentation(12)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setIconSize(icons.square(ICON_PX))
        translator.bind(self.setAccessibleName, "flows.files")
        self.itemClicked.connect(self._on_item_chosen)
        self.itemActivated.connect(self._on_item_chosen)
        theme.changed.connect(self._fill)
        translator.changed.connect(self._fill)

    def show_files(self, files: Sequence[FlowFile], unsaved: Container[str], current: tuple[str, str]) -> None:
        """List `files`; `current` is the (layer, name) that is open."""
        self._files, self._unsaved, self._current = tuple(files), unsaved, current
        self._fill()

    def names(self, layer: str) -> list[str]:
        """Return the names of a layer."""
        return [f.name for f in self._files if f.layer == layer]

    def _fill(self) -> None:
        self.clear()
        p, text = self._theme.palette, self._translator.text
        for layer in ("user", "shipped"):
            group = QTreeWidgetItem([text(f"flows.layer.{layer}")])
            group.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self.addTopLevelItem(group)
            group.setExpanded(True)
            mine = [f for f in self._files if f.layer == layer]
            if not mine:
                empty = QTreeWidgetItem([text("flows.files.empty")])
                empty.setFlags(Qt.ItemFlag.ItemIsEnabled)
                empty.setToolTip(0, text("flows.files.empty"))
                group.addChild(empty)
            for file in mine:
                is_unsaved = layer == "user" and file.name in self._unsaved
                suffix = text("flows.files.draft") if file.has_draft else ""
                item = QTreeWidgetItem([f"{'• ' if is_unsaved else ''}{file.name}{suffix}"])
                name = "flow_file" if layer == "user" else "flow_lock"
                icon = icons.icon(name, p.muted, size_px=ICON_PX)
                icon.addPixmap(icons.pixmap(name, p.on_primary, ICON_PX, 2.0), icon.Mode.Selected)
                item.setIcon(0, icon)
                item.setData(0, _ROLE, (layer, file.name))
                item.setToolTip(0, f"{item.text(0)}\n{text(f'flows.kind.{file.kind}', name=file.name)}")
                group.addChild(item)
                if (layer, file.name) == self._current:
                    self.setCurrentItem(item)

    def _on_item_chosen(self, item: QTreeWidgetItem) -> None:
        found = item.data(0, _ROLE)
        if found is not None:
            self.file_chosen.emit(*found)


class OutlineList(QTreeWidget):
    """What the open text holds; a click goes there."""

    line_chosen = Signal(int)

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Start empty."""
        super().__init__()
        self.setObjectName("flowOutline")
        self._translator = translator
        self._outline = Outline()
        self.setHeaderHidden(True)
        self.setIndentation(12)
        translator.bind(self.setAccessibleName, "flows.outline")
        self._empty = EmptyHint(self, "flows.outline.empty", translator)
        self.itemClicked.connect(self._on_item_chosen)
        self.itemActivated.connect(self._on_item_chosen)
        translator.changed.connect(self._fill)

    def show_outline(self, outline: Outline) -> None:
        """Show the names of a text."""
        if outline.items != self._outline.items:
            self._outline = outline
            self._fill()

    def _fill(self) -> None:
        self.clear()
        groups: dict[str, QTreeWidgetItem] = {}
        flows: dict[str, QTreeWidgetItem] = {}
        for entry in self._outline.items:
            if entry.kind == "step":
                parent = flows.get(entry.parent)
            else:
                parent = groups.get(entry.kind)
                if parent is None:
                    parent = groups[entry.kind] = QTreeWidgetItem(
                        [self._translator.text(f"flows.section.{entry.kind}")]
                    )
                    parent.setToolTip(0, parent.text(0))
                    parent.setData(0, _ROLE, entry.line)
                    self.addTopLevelItem(parent)
                    parent.setExpanded(entry.kind in ("flows", "rails"))
            item = QTreeWidgetItem([entry.id])
            item.setToolTip(0, entry.id)
            item.setData(0, _ROLE, entry.line)
            if parent is not None:
                parent.addChild(item)
            if entry.kind == "flows":
                flows[entry.id] = item

    def _on_item_chosen(self, item: QTreeWidgetItem) -> None:
        line = item.data(0, _ROLE)
        if isinstance(line, int):
            self.line_chosen.emit(line)
