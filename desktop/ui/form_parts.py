"""Labels and buttons of forms, as settings and guide have them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton


def make_label(name: str, role: str | None = None) -> QLabel:
    """Return a label that wraps its words and takes them literally; `role` is one of the style sheet's."""
    made = QLabel()
    made.setObjectName(name)
    made.setWordWrap(True)
    made.setTextFormat(Qt.TextFormat.PlainText)
    if role is not None:
        made.setProperty("role", role)
    return made


def make_small_button(name: str) -> QPushButton:
    """Return a button within a form: Enter in a line ends the line and must not press it."""
    made = QPushButton()
    made.setObjectName(name)
    made.setProperty("isSmall", True)
    made.setAutoDefault(False)
    return made
