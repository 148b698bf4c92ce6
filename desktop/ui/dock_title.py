"""The title bar of a panel: its name, and buttons to make it a window of its own and to close it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QWidget

from desktop.ui import icons
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, TYPE, Theme
from desktop.ui.tool_buttons import ICON_PX, tool_button, tool_button_stylesheet


class DockTitle(QWidget):
    """Drawn here because the toolkit's own buttons are small, and no key reaches them."""

    def __init__(self, dock: QDockWidget, name: str, key: str, theme: Theme, translator: Translator) -> None:
        """Name the parts `name`Title, `name`Float and `name`Close; the words are `key`.float and `key`.close."""
        super().__init__()
        self.setObjectName(f"{name}TitleBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._title = QLabel()
        self._title.setObjectName(f"{name}Title")
        self._title.setTextFormat(Qt.TextFormat.PlainText)
        self._float = tool_button(f"{name}Float", f"{key}.float", translator)
        self._close = tool_button(f"{name}Close", f"{key}.close", translator)
        self._float.clicked.connect(lambda: dock.setFloating(not dock.isFloating()))
        self._close.clicked.connect(dock.close)
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID_PX, GRID_PX // 2, GRID_PX, GRID_PX // 2)
        row.setSpacing(GRID_PX // 2)
        row.addWidget(self._title, 1)
        row.addWidget(self._float)
        row.addWidget(self._close)
        theme.changed.connect(self._restyle)
        self._restyle()

    def show_title(self, title: str) -> None:
        """Show `title`."""
        self._title.setText(title)

    def text(self) -> str:
        """Return the title in sight."""
        return self._title.text()

    def _restyle(self) -> None:
        p = self._theme.palette
        self.setStyleSheet(
            f"""
            QWidget#{self.objectName()} {{ background: {p.surface}; border-bottom: 1px solid {p.line}; }}
            QLabel {{ font-size: {TYPE.body_px}px; font-weight: 600; }}
            """
            + tool_button_stylesheet(p)
        )
        self._close.setIcon(icons.icon("close", p.ink, size_px=ICON_PX))
        self._float.setIcon(icons.icon("flow_copy", p.ink, size_px=ICON_PX))
