"""The sign that tells whether the microphone is open, with its level."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from desktop.ui import icons
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme

_FLOOR_DB = -60.0
_BARS = 10
_FALL_PER_S = 1.8


class LevelMeter(QWidget):
    """A row of bars: rises at once, falls slowly."""

    def __init__(self, theme: Theme) -> None:
        """Start silent."""
        super().__init__()
        self.setObjectName("microphoneMeter")
        self.setFixedSize(self.sizeHint())
        self._theme = theme
        self._shown_s = 0.0
        self.level = 0.0
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        """Return the fixed size of the bars."""
        return QSize(_BARS * 6 - 2, 2 * GRID_PX)

    def show_level(self, level_db: float | None, now_s: float) -> None:
        """Show `level_db` in dBFS; none is silence."""
        wanted = 0.0 if level_db is None else max(0.0, min(1.0, 1.0 - level_db / _FLOOR_DB))
        fallen = self.level - _FALL_PER_S * max(0.0, now_s - self._shown_s)
        self._shown_s = now_s
        before = round(self.level * _BARS)
        self.level = max(wanted, fallen, 0.0)
        if round(self.level * _BARS) != before:
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint lit bars tall and unlit ones low, so that the level shows without colour."""
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        lit = round(self.level * _BARS)
        for index in range(_BARS):
            is_lit = index < lit
            high = 5.0 + index * 1.1 if is_lit else 4.0
            painter.setBrush(QColor(palette.good if is_lit else palette.outline))
            painter.drawRoundedRect(QRectF(index * 6.0, (self.height() - high) / 2, 4.0, high), 2, 2)
        painter.end()


class MicrophoneSign(QFrame):
    """Icon, words and meter. `state` is open, muted, closed or missing."""

    def __init__(self, theme: Theme, translator: Translator, *, is_compact: bool = False) -> None:
        """Begin closed; a compact one says its words as a tip and for readers, and shows icon and meter."""
        super().__init__()
        self.setObjectName("microphoneSign")
        self._theme = theme
        self._translator = translator
        self._is_compact = is_compact
        self._is_meter_shown = True
        self.state = "closed"
        row = QHBoxLayout(self)
        row.setContentsMargins(GRID_PX, 4, 12, 4)
        row.setSpacing(6)
        self._icon = QLabel()
        self._icon.setObjectName("microphoneIcon")
        self._text = QLabel()
        self._text.setObjectName("microphoneText")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self.meter = LevelMeter(theme)
        for part in (self._icon, self._text, self.meter):
            row.addWidget(part)
        translator.bind(self.setAccessibleName, "microphone.sign")
        translator.bind(self.meter.setAccessibleName, "meter.name")
        translator.changed.connect(self._refresh)
        theme.changed.connect(self._refresh)
        self._refresh()

    def show_state(self, state: str) -> None:
        """Show `state`: open, muted, closed or missing."""
        if state != self.state:
            self.state = state
            self._refresh()

    def set_meter_shown(self, is_shown: bool) -> None:
        """Leave the level out where there is no room for it."""
        if is_shown != self._is_meter_shown:
            self._is_meter_shown = is_shown
            self._refresh()

    def _refresh(self) -> None:
        palette = self._theme.palette
        words = self._translator.text(f"microphone.{self.state}")
        self._text.setText(words)
        self._text.setVisible(not self._is_compact)
        self.setToolTip(words if self._is_compact else "")
        self._icon.setAccessibleName(words)
        self.setAccessibleDescription(words)
        self.meter.setVisible(self.state == "open" and self._is_meter_shown)
        is_open = self.state == "open"
        colour = palette.good if is_open else palette.warning if self.state == "missing" else palette.muted
        name = "mic" if is_open else "mic_off"
        self._icon.setPixmap(icons.pixmap(name, colour, 20, self.devicePixelRatioF()))
        self.setProperty("isOpen", is_open)
        self.style().unpolish(self)
        self.style().polish(self)
