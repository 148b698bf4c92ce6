"""Lets a key of the window through text fields that would take it for themselves."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent


class KeyPass(QObject):
    """An event filter for text fields: under X11 Ctrl+E means “end of line” to them."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Leave Ctrl+E to the window's shortcut."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            is_control = event.modifiers() == Qt.KeyboardModifier.ControlModifier
            if is_control and event.key() == Qt.Key.Key_E:
                event.ignore()
                return True
        return super().eventFilter(watched, event)
