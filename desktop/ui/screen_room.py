"""Room on the screen for what opens beside the character."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


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
