"""Icons drawn in one stroke style, tinted by the theme."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from desktop import paths
from desktop.ui.theme import px

_DRAWN_IN = "#000000"


def pixmap(name: str, colour: str, size_px: int, ratio: float = 1.0) -> QPixmap:
    """Return the icon `name` in `colour`, `size_px` device-independent pixels wide at letters of normal size."""
    return _drawn(name, colour, px(size_px), ratio)


def square(size_px: int) -> QSize:
    """Return the size of an icon that is `size_px` wide at letters of normal size."""
    return QSize(px(size_px), px(size_px))


@lru_cache(maxsize=256)
def _drawn(name: str, colour: str, size_px: int, ratio: float) -> QPixmap:
    source = (paths.assets() / "icons" / f"{name}.svg").read_text(encoding="utf-8").replace(_DRAWN_IN, colour)
    made = QPixmap(round(size_px * ratio), round(size_px * ratio))
    made.fill(Qt.GlobalColor.transparent)
    painter = QPainter(made)
    QSvgRenderer(QByteArray(source.encode())).render(painter, QRectF(0, 0, made.width(), made.height()))
    painter.end()
    made.setDevicePixelRatio(ratio)
    return made


def icon(name: str, colour: str, *, pressed: str | None = None, size_px: int = 20, ratio: float = 2.0) -> QIcon:
    """Return the icon for a button; `pressed` is its colour while the button is down or checked."""
    made = QIcon(pixmap(name, colour, size_px, ratio))
    if pressed is not None:
        made.addPixmap(pixmap(name, pressed, size_px, ratio), QIcon.Mode.Normal, QIcon.State.On)
    return made
