"""One clear state: an icon and a line of words."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from desktop.ui import icons
from desktop.ui.avatar.pose import STATES
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, TYPE, Palette, Theme, font, px
from orchestrator.contracts.views import StateView

_WIDEST_PX = 50 * GRID_PX
"""Longer words are cut short: the line must never push the window wider. The tooltip has all of them."""


class StateLine(QFrame):
    """Says what the character does; while it starts, also what it waits for."""

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Begin with `starting`."""
        super().__init__()
        self.setObjectName("statePill")
        self._theme = theme
        self._translator = translator
        self.state = "starting"
        self._detail = ""
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID_PX, 4, 2 * GRID_PX, 4)
        row.setSpacing(GRID_PX)
        self._icon = QLabel()
        self._icon.setObjectName("stateIcon")
        self._text = QLabel()
        self._text.setObjectName("stateText")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        row.addWidget(self._icon)
        row.addWidget(self._text)
        translator.bind(self.setAccessibleName, "state.name")
        translator.changed.connect(self._refresh)
        theme.changed.connect(self._refresh)
        self._refresh()

    def show_state(self, view: StateView) -> None:
        """Show `view`; a state without words of its own counts as idle."""
        self.state = view.state if view.state in STATES else "idle"
        self._detail = view.detail
        self._refresh()

    def text(self) -> str:
        """Return the words shown."""
        return self._text.text()

    def _refresh(self) -> None:
        words = self._translator.text(f"state.{self.state}")
        if self._detail:
            key = f"progress.{self._detail}"
            detail = self._translator.text(key) if self._translator.has(key) else self._detail
            words = f"{words} · {detail}"
        metrics = QFontMetrics(font(TYPE.state_px, is_bold=True))
        self._text.setText(metrics.elidedText(words, Qt.TextElideMode.ElideRight, px(_WIDEST_PX)))
        self.setToolTip(words)
        self.setAccessibleDescription(words)
        self._icon.setAccessibleName(words)
        colour = _colour(self._theme.palette, self.state)
        self._icon.setPixmap(icons.pixmap(f"state_{self.state}", colour, 22, self.devicePixelRatioF()))


def _colour(palette: Palette, state: str) -> str:
    if state == "error":
        return palette.danger
    if state == "muted":
        return palette.warning
    return palette.good if state == "listening" else palette.primary
