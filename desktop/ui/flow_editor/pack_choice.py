"""Asks which files of a pack are taken, or go into one: by kind, and one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
)

from desktop.ui.i18n import Translator
from desktop.ui.panel_style import dress
from desktop.ui.theme import GRID_PX, Theme, px

_KINDS = ("flows", "tests", "persona", "policy")
_GRAVE = frozenset({"persona", "policy"})
"""Kinds that change the character itself, not only what it can do: taken when they are ticked, never by themselves."""
_SIZE_PX = (80 * GRID_PX, 48 * GRID_PX)
_NAME_ROLE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True, kw_only=True)
class PackEntry:
    """A file to choose. `kind` is flows, tests, persona or policy; `note` none, replaces or unsaved."""

    name: str
    kind: str
    note: str | None = None


class PackChoice(QDialog):
    """One dialog for both directions. `chosen` gives the names of the files that were ticked."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Stay hidden until there is something to ask."""
        super().__init__()
        self.setObjectName("packChoice")
        dress(self, theme)
        self._translator = translator
        self._way, self._source = "import", ""
        self._entries: tuple[PackEntry, ...] = ()
        self.words, self.warning, self.files = QLabel(), QLabel(), QTreeWidget()
        self.take, self.cancel = QPushButton(), QPushButton()
        self._lay_out()
        self.files.itemChanged.connect(self._on_item_changed)
        self.take.clicked.connect(self.accept)
        self.cancel.clicked.connect(self.reject)
        self.accepted.connect(self._on_accepted)
        translator.changed.connect(self._fill)
        self.resize(px(_SIZE_PX[0]), px(_SIZE_PX[1]))

    def ask(self, way: str, source: str, entries: Sequence[PackEntry]) -> None:
        """Show the files of the pack `source`; `way` is import or export."""
        self._way, self._source, self._entries = way, source, tuple(entries)
        self.files.clear()
        self._fill()
        self.open()
        self._fit()
        self.files.setFocus()

    def names(self) -> tuple[str, ...]:
        """Return the files that are ticked."""
        return tuple(
            str(item.data(0, _NAME_ROLE)) for item in self._items() if item.checkState(0) == Qt.CheckState.Checked
        )

    def tick(self, name: str, is_ticked: bool = True) -> None:
        """Tick a file, as a click on its box does."""
        for item in self._items():
            if item.data(0, _NAME_ROLE) == name:
                item.setCheckState(0, Qt.CheckState.Checked if is_ticked else Qt.CheckState.Unchecked)

    def _items(self) -> list[QTreeWidgetItem]:
        groups = [self.files.topLevelItem(n) for n in range(self.files.topLevelItemCount())]
        found = [group.child(n) for group in groups if group is not None for n in range(group.childCount())]
        return [item for item in found if item is not None]

    def _fill(self) -> None:
        text = self._translator.text
        ticked = set(self.names()) if self.files.topLevelItemCount() else None
        self.setWindowTitle(text(f"flows.pack.{self._way}.title"))
        self.words.setText(text(f"flows.pack.{self._way}.words", name=self._source))
        self.take.setText(text(f"flows.pack.{self._way}.take"))
        self.warning.setVisible(any(entry.kind in _GRAVE for entry in self._entries))
        self.files.blockSignals(True)
        self.files.clear()
        for kind in _KINDS:
            mine = [entry for entry in self._entries if entry.kind == kind]
            if not mine:
                continue
            group = QTreeWidgetItem([text(f"flows.pack.kind.{kind}")])
            group.setFlags(group.flags() | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsAutoTristate)
            self.files.addTopLevelItem(group)
            for entry in mine:
                item = QTreeWidgetItem([entry.name, text(f"flows.pack.note.{entry.note}") if entry.note else ""])
                item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
                item.setData(0, _NAME_ROLE, entry.name)
                is_ticked = entry.name in ticked if ticked is not None else kind not in _GRAVE
                item.setCheckState(0, Qt.CheckState.Checked if is_ticked else Qt.CheckState.Unchecked)
                group.addChild(item)
            group.setFirstColumnSpanned(True)
            group.setExpanded(True)
        self.files.blockSignals(False)
        self._fit()
        self._on_item_changed()

    def _fit(self) -> None:
        """Give the names their room: what the tree asks for leaves out the styled boxes before them."""
        self.files.setColumnWidth(0, self.files.sizeHintForColumn(0) + 2 * self.files.indentation() + px(2 * GRID_PX))

    def _on_item_changed(self) -> None:
        self.take.setEnabled(bool(self.names()))

    def _on_accepted(self) -> None:
        self.chosen.emit(self.names())

    def _lay_out(self) -> None:
        bind = self._translator.bind
        for widget, name in (
            (self.words, "packWords"), (self.warning, "packWarning"), (self.files, "packFiles"),
            (self.take, "packTake"), (self.cancel, "packCancel"),
        ):  # fmt: skip
            widget.setObjectName(name)
        for label in (self.words, self.warning):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        bind(self.warning.setText, "flows.pack.warning")
        bind(self.cancel.setText, "flows.banner.cancel")
        bind(self.files.setAccessibleName, "flows.pack.files")
        self.files.setColumnCount(2)
        self.files.setHeaderHidden(True)
        self.files.header().setStretchLastSection(True)
        self.take.setDefault(True)
        self.take.setProperty("isPrimary", True)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.cancel)
        row.addWidget(self.take)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        column.setSpacing(GRID_PX)
        column.addWidget(self.words)
        column.addWidget(self.files, 1)
        column.addWidget(self.warning)
        column.addLayout(row)
