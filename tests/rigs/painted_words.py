"""The words that widgets paint by themselves, as they are painted: what, where, how large, in which colour.

The walk of widgets asks labels and buttons what they say; a subtitle, a graph or a timeline can only be watched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRect, QRectF, QSize
from PySide6.QtGui import QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QWidget
from rigs.pixels import pixels
from rigs.widget_texts import LETTERS, Words
from rigs.widget_walk import LEAST_CONTRAST, LEAST_CONTRAST_OF_SIGNS, picture_contrast

_ELIDED = "…"
_LARGE_PX, _LARGE_BOLD_PX = 24, 18.66


@dataclass(frozen=True, slots=True, kw_only=True)
class Painted:
    """A text in a rectangle, in pixels of the picture; `needed` is what its font takes, wrapped if that is meant."""

    text: str
    room: QRect
    needed: QSize
    font: QFont
    ink: tuple[int, int, int]
    is_clipped: bool


@contextmanager
def watched() -> Iterator[list[Painted]]:
    """Collect what is painted into rectangles meanwhile."""
    found: list[Painted] = []
    real = QPainter.drawText

    def draw(painter: QPainter, *arguments: Any) -> Any:
        if len(arguments) >= 3 and isinstance(arguments[0], (QRect, QRectF)) and isinstance(arguments[2], str):
            found.append(_painted(painter, QRectF(arguments[0]), int(arguments[1]), arguments[2]))
        return real(painter, *arguments)

    QPainter.drawText = draw  # type: ignore[method-assign]
    try:
        yield found
    finally:
        QPainter.drawText = real  # type: ignore[method-assign]


def _painted(painter: QPainter, room: QRectF, flags: int, text: str) -> Painted:
    bounds = QFontMetricsF(painter.font()).boundingRect(QRectF(0, 0, room.width(), 1e6), flags, text)
    mapped = painter.deviceTransform().mapRect(room)
    scale = painter.deviceTransform().m11() or 1.0
    needed = QSize(round(bounds.width() * scale), round(bounds.height() * scale))
    is_clipped = painter.hasClipping() and not painter.clipBoundingRect().contains(room)
    colour = painter.pen().color()
    ink = (colour.red(), colour.green(), colour.blue())
    return Painted(text=text, room=mapped.toRect(), needed=needed, font=painter.font(), ink=ink, is_clipped=is_clipped)


def painted_faults(root: QWidget, words: Words, data: Collection[str] = ()) -> list[str]:
    """Return what is wrong with the words widgets below `root` paint: cut, pale, of no catalogue and not `data`."""
    with watched() as found:
        picture = pixels(root.grab().toImage())
    inside = QRect(0, 0, picture.shape[1], picture.shape[0])
    faults: list[str] = []
    for piece in found:
        short = piece.text if len(piece.text) < 50 else piece.text[:49] + "…"
        if not LETTERS.search(piece.text):
            continue
        is_over = piece.needed.width() > piece.room.width() + 1 or piece.needed.height() > piece.room.height() + 2
        if is_over and not piece.is_clipped:
            size, room = piece.needed, piece.room
            wanted_px, has_px = (f"{s.width()}×{s.height()}" for s in (size, room))
            faults.append(f"cut: painted {short!r} needs {wanted_px} of {has_px}")
        if _ELIDED not in piece.text and piece.text not in data and not words.explain(piece.text):
            faults.append(f"untranslated: painted {short!r}")
        if inside.contains(piece.room) and not piece.is_clipped:
            # The ink against the ground: words may be under what fades them out at an edge.
            reached, wanted = _contrast(piece.ink, _crop(picture, piece.room)), _wanted(piece.font)
            if reached < wanted:
                faults.append(f"pale: painted {short!r} has {reached:.1f} of {wanted}")
    return faults


def _crop(picture: npt.NDArray[np.int16], place: QRect) -> npt.NDArray[np.int16]:
    return picture[place.top() : place.bottom() + 1, place.left() : place.right() + 1]


def _contrast(ink: tuple[int, int, int], picture: npt.NDArray[np.int16]) -> float:
    colours, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
    ground = colours[int(counts.argmax())].astype(np.int16)
    return picture_contrast(np.array([[ground, ground, ink]], dtype=np.int16))


def _wanted(font: QFont) -> float:
    is_bold = font.weight() >= QFont.Weight.DemiBold
    return LEAST_CONTRAST_OF_SIGNS if font.pixelSize() >= (_LARGE_BOLD_PX if is_bold else _LARGE_PX) else LEAST_CONTRAST
