"""Find and replace in the text."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
)

from desktop.ui import icons
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme
from desktop.ui.tool_buttons import ICON_PX, tool_button


class FindBar(QFrame):
    """Works on one text; hidden until it is asked for. Letters match in either case."""

    closed = Signal()

    def __init__(self, edit: QPlainTextEdit, theme: Theme, translator: Translator) -> None:
        """Search in `edit`."""
        super().__init__()
        self.setObjectName("flowFindBar")
        self._edit = edit
        self._theme = theme
        self._translator = translator
        self.needle, self.replacement = QLineEdit(), QLineEdit()
        self.count = QLabel()
        self.previous = tool_button("flowFindPrevious", "flows.find.previous", translator)
        self.next = tool_button("flowFindNext", "flows.find.next", translator)
        self.replace_one, self.replace_all = QPushButton(), QPushButton()
        self.close_button = tool_button("flowFindClose", "flows.find.close", translator)
        self._lay_out()
        self.needle.textChanged.connect(self._on_needle_changed)
        self.previous.clicked.connect(self.find_previous)
        self.next.clicked.connect(self.find_next)
        self.replace_one.clicked.connect(self.replace)
        self.replace_all.clicked.connect(self.replace_everywhere)
        self.close_button.clicked.connect(self.leave)
        theme.changed.connect(self._restyle)
        translator.changed.connect(self._tell)
        self._restyle()
        self.hide()

    def open(self) -> None:
        """Show the bar, with what is selected as the thing to find."""
        selected = self._edit.textCursor().selectedText()
        if selected and "\u2029" not in selected:
            self.needle.setText(selected)
        self.show()
        self.needle.setFocus()
        self.needle.selectAll()
        self._tell()

    def leave(self) -> None:
        """Hide the bar and go back to the text."""
        self.hide()
        self._edit.setFocus()
        self.closed.emit()

    def find_next(self) -> bool:
        """Select the next place, from the beginning after the last; False when there is none."""
        return self._find(is_backward=False)

    def find_previous(self) -> bool:
        """Select the place before."""
        return self._find(is_backward=True)

    def replace(self) -> None:
        """Replace what is selected if it is a place found, and go to the next."""
        cursor = self._edit.textCursor()
        if not self._edit.isReadOnly() and cursor.selectedText().casefold() == self.needle.text().casefold() != "":
            cursor.insertText(self.replacement.text())
        self.find_next()
        self._tell()

    def replace_everywhere(self) -> int:
        """Replace all places in one step that can be undone; returns how many."""
        places = self._places()
        if self._edit.isReadOnly() or not places:
            return 0
        cursor = QTextCursor(self._edit.document())
        cursor.beginEditBlock()
        for start, end in reversed(places):
            cursor.setPosition(start)
            cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            cursor.insertText(self.replacement.text())
        cursor.endEditBlock()
        self._tell()
        return len(places)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close on Escape, search on Enter, backwards with Shift; Enter in the replacement replaces."""
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            event.accept()
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.find_previous()
            elif self.replacement.hasFocus():
                self.replace()
            else:
                self.find_next()
        else:
            super().keyPressEvent(event)

    def _find(self, *, is_backward: bool) -> bool:
        places = self._places()
        self._tell(len(places))
        if not places:
            return False
        cursor = self._edit.textCursor()
        if is_backward:
            before = [p for p in places if p[0] < cursor.selectionStart()]
            start, end = before[-1] if before else places[-1]
        else:
            after = [p for p in places if p[0] >= cursor.selectionEnd() and p != (cursor.position(), cursor.position())]
            start, end = after[0] if after else places[0]
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        self._edit.setTextCursor(cursor)
        self._edit.centerCursor()
        return True

    def _places(self) -> list[tuple[int, int]]:
        needle = self.needle.text()
        if not needle:
            return []
        text = self._edit.toPlainText()
        spans = [m.span() for m in re.finditer(re.escape(needle), text, re.IGNORECASE)]
        if text.isascii() or all(ord(c) < 0x10000 for c in text):
            return spans
        return [(_units(text[:start]), _units(text[:end])) for start, end in spans]

    def _on_needle_changed(self) -> None:
        cursor = self._edit.textCursor()
        cursor.setPosition(cursor.selectionStart())
        self._edit.setTextCursor(cursor)
        self.find_next()

    def _tell(self, found: int | None = None) -> None:
        if self.isVisible() or found is not None:
            number = len(self._places()) if found is None else found
            self.count.setText(self._translator.text("flows.find.count", count=number) if self.needle.text() else "")

    def _lay_out(self) -> None:
        bind = self._translator.bind
        for field, name, key in (
            (self.needle, "flowFindText", "flows.find.text"),
            (self.replacement, "flowReplaceText", "flows.find.replacement"),
        ):
            field.setObjectName(name)
            bind(field.setPlaceholderText, key)
            bind(field.setAccessibleName, key)
        self.count.setObjectName("flowFindCount")
        self.count.setProperty("isMuted", True)
        for button, name, key in (
            (self.replace_one, "flowReplaceOne", "flows.find.replace"),
            (self.replace_all, "flowReplaceAll", "flows.find.replace_all"),
        ):
            button.setObjectName(name)
            bind(button.setText, key)
            bind(button.setAccessibleName, key)
        grid = QGridLayout(self)
        grid.setContentsMargins(GRID_PX, GRID_PX // 2, GRID_PX, GRID_PX // 2)
        grid.setSpacing(GRID_PX // 2)
        grid.addWidget(self.needle, 0, 0)
        grid.addWidget(self.previous, 0, 1)
        grid.addWidget(self.next, 0, 2)
        grid.addWidget(self.count, 0, 3)
        grid.addWidget(self.close_button, 0, 4)
        grid.addWidget(self.replacement, 1, 0, 1, 5)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.replace_one)
        row.addWidget(self.replace_all)
        grid.addLayout(row, 2, 0, 1, 5)
        grid.setColumnStretch(0, 1)

    def _restyle(self) -> None:
        ink = self._theme.palette.ink
        shown: tuple[tuple[QToolButton, str], ...] = (
            (self.previous, "flow_previous"),
            (self.next, "flow_next"),
            (self.close_button, "close"),
        )
        for button, icon in shown:
            button.setIcon(icons.icon(icon, ink, size_px=ICON_PX))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
