"""The field in which a misheard line is put right."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX


class CorrectionField(QLineEdit):
    """Opens over a line; Enter gives what was heard and what was said, Escape and a look elsewhere leave the line."""

    entered = Signal(str, str)

    def __init__(self, parent: QWidget, name: str, translator: Translator) -> None:
        """Begin hidden."""
        super().__init__(parent)
        self.setObjectName(name)
        self.setMaxLength(4000)
        self.hide()
        self._heard = ""
        self.returnPressed.connect(self._on_return_pressed)
        translator.bind(self.setAccessibleName, "subtitles.correct.name")
        translator.bind(self.setAccessibleDescription, "subtitles.correct.hint")
        translator.bind(self.setToolTip, "subtitles.correct.hint")

    def open(self, heard: str, place: QRect) -> None:
        """Show the line `heard` at `place`, ready to be written over."""
        self._heard = heard
        self.setText(heard)
        self.setGeometry(place)
        self.show()
        self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.selectAll()

    def wanted_height(self) -> int:
        """Return the height that its letters need."""
        return max(5 * GRID_PX, self.sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close on Escape, which must not stop the character as well."""
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
            return
        super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Close when the keyboard goes elsewhere; a menu of the field's own is not elsewhere."""
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:
            self.hide()

    def _on_return_pressed(self) -> None:
        said = self.text().strip()
        self.hide()
        if said and said != self._heard:
            self.entered.emit(self._heard, said)
