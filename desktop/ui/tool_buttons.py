"""Icon buttons of panels and their title bars."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from desktop.ui import icons
from desktop.ui.i18n import Translator
from desktop.ui.theme import RADIUS_PX, TYPE, Palette

ICON_PX = 18


def tool_button(name: str, key: str, translator: Translator, *, is_checkable: bool = False) -> QToolButton:
    """Return an icon button whose name and tip are the texts `key` and `key.tip`."""
    made = QToolButton()
    made.setObjectName(name)
    made.setCheckable(is_checkable)
    made.setIconSize(icons.square(ICON_PX))
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    translator.bind(made.setAccessibleName, key)
    translator.bind(made.setToolTip, f"{key}.tip")
    return made


def tool_button_stylesheet(p: Palette) -> str:
    """Return the rules of icon buttons."""
    return f"""
    QToolButton {{ background: transparent; border: 1px solid transparent; border-radius: {RADIUS_PX}px; padding: 5px;
        font-size: {TYPE.caption_px}px; }}
    QToolButton:hover {{ border: 1px solid {p.outline}; }}
    QToolButton:focus {{ border: 2px solid {p.primary}; padding: 4px; }}
    QToolButton:checked, QToolButton:pressed {{ background: {p.raised}; border: 1px solid {p.outline}; }}
    QToolButton:checked:focus {{ border: 2px solid {p.primary}; }}
    QToolButton:disabled {{ color: {p.muted}; }}
    QToolButton::menu-indicator {{ image: none; width: 0; }}
    """
