"""Breaks a block into lines and says where a stretch of characters lies."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QTextLayout, QTextOption


class BlockLayout:
    """Lines of one text at one width; lighting a word never changes where words are."""

    def __init__(self, text: str, font: QFont, width: float) -> None:
        """Lay `text` out; Chinese breaks between characters, never before closing punctuation."""
        self.text = text
        self.width = width
        self.font_px = font.pixelSize()
        self._layout = QTextLayout(text, font)
        option = QTextOption(Qt.AlignmentFlag.AlignLeft)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._layout.setTextOption(option)
        self._layout.beginLayout()
        y = 0.0
        while True:
            line = self._layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(width)
            line.setPosition(QPointF(0.0, y))
            y += round(line.height() * 1.12)
        self._layout.endLayout()
        self.height = y

    @property
    def line_height(self) -> float:
        """Height of one line with its gap."""
        return self.height / max(1, self._layout.lineCount())

    @property
    def layout(self) -> QTextLayout:
        """The laid out text."""
        return self._layout

    def rects(self, start: int, end: int) -> list[QRectF]:
        """Return one rectangle per line for the characters from `start` to `end`."""
        units_start, units_end = self._units(start), self._units(end)
        found = []
        for index in range(self._layout.lineCount()):
            line = self._layout.lineAt(index)
            first = max(units_start, line.textStart())
            last = min(units_end, line.textStart() + line.textLength())
            if first >= last:
                continue
            left, right = _x(line.cursorToX(first)), _x(line.cursorToX(last))
            found.append(QRectF(left, line.y(), right - left, line.height()))
        return found

    def bottom_of(self, char: int) -> float:
        """Return the bottom of the line that holds the character at `char`."""
        units = self._units(char)
        for index in range(self._layout.lineCount()):
            line = self._layout.lineAt(index)
            if units < line.textStart() + line.textLength():
                return line.y() + self.line_height
        return self.height

    def _units(self, char: int) -> int:
        """Return the offset in UTF-16 units: the text engine counts those, Python counts characters."""
        return char + sum(ord(c) > 0xFFFF for c in self.text[:char])


def _x(value: object) -> float:
    """Return the coordinate of a cursor, which the binding gives alone or with the cursor position."""
    return float(value[0] if isinstance(value, tuple) else value)  # type: ignore[arg-type]


def with_room(box: QRectF, letters: QFont) -> QRectF:
    """Return `box`, as high as the letters need, about the same middle."""
    more = max(0.0, QFontMetricsF(letters).height() - box.height()) / 2
    return box.adjusted(0, -more, 0, more)
