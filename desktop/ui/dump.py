"""Writes down what is in the window, for the control channel and for tests."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QMenu, QWidget


def dump_widgets(*windows: QWidget) -> list[dict[str, Any]]:
    """Return every named widget of `windows`: name, role, accessible name, text, place, whether visible and enabled.

    Widgets of the toolkit itself (names beginning with `qt_`) are left out. `rect` is x, y, width, height.
    """
    found = []
    for widget in (w for window in windows for w in (window, *window.findChildren(QWidget))):
        name = widget.objectName()
        if not name or name.startswith("qt_"):
            continue
        corner = widget.mapToGlobal(QPoint(0, 0))
        found.append(
            {
                "objectName": name,
                "role": _role(widget),
                "accessibleName": widget.accessibleName() or _text(widget),
                "text": _text(widget),
                "rect": [corner.x(), corner.y(), widget.width(), widget.height()],
                "visible": widget.isVisible(),
                "enabled": widget.isEnabled(),
            }
        )
    return found


def _text(widget: QWidget) -> str:
    if isinstance(widget, (QLabel, QAbstractButton, QLineEdit)):
        return widget.text()
    if isinstance(widget, QMenu):
        return widget.title()
    return widget.windowTitle() if widget.isWindow() else widget.accessibleDescription()


def _role(widget: QWidget) -> str:
    interface: QAccessibleInterface | None = QAccessible.queryAccessibleInterface(widget)
    return "Client" if interface is None else str(interface.role().name)
