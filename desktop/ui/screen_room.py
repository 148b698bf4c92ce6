"""Room on the screen for what opens beside the character."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


def centre(window: QWidget, over: QWidget | None) -> None:
    """Put `window` in the middle of `over`, or of the screen, with all of it on the screen."""
    room = window.screen().availableGeometry()
    place = window.frameGeometry()
    about = over.window().frameGeometry() if over is not None and over.window().isVisible() else room
    place.moveCenter(about.center())
    place.moveLeft(max(room.left(), min(place.left(), room.right() + 1 - place.width())))
    place.moveTop(max(room.top(), min(place.top(), room.bottom() + 1 - place.height())))
    window.move(place.topLeft())


def widen(window: QWidget, by_px: int, *, least_height_px: int = 0) -> None:
    """Widen `window` as far as the screen goes; all of it, what the window manager puts around it too, stays on it."""
    inner, frame = window.geometry(), window.frameGeometry()
    room = window.screen().availableGeometry()
    room.adjust(
        inner.left() - frame.left(),
        inner.top() - frame.top(),
        inner.right() - frame.right(),
        inner.bottom() - frame.bottom(),
    )
    width = min(inner.width() + by_px, room.width())
    height = min(max(inner.height(), least_height_px), room.height())
    left = max(room.left(), min(inner.x(), room.x() + room.width() - width))
    top = max(room.top(), min(inner.y(), room.y() + room.height() - height))
    window.setGeometry(left, top, width, height)
