"""A box of choices with a button beside it, and whatever belongs below."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.ui.settings.editors import ChoiceBox, Editor
from desktop.ui.theme import GRID_PX

_LEAST_LETTERS = 12


class BoxEditor(Editor):
    """Base of editors whose choices come and go."""

    def __init__(self, name: str, *, holder: str, button: str) -> None:
        """Call the holder of all parts `holder`, the button `button`."""
        super().__init__(name)
        self._box = ChoiceBox()
        self._box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._box.setMinimumContentsLength(_LEAST_LETTERS)
        self._button = QPushButton()
        self._button.setProperty("isSmall", True)
        # Enter in a line of the dialog must not press it.
        self._button.setAutoDefault(False)
        around = QWidget()
        self._column = QVBoxLayout(around)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(GRID_PX // 2)
        row = QHBoxLayout()
        row.setSpacing(GRID_PX)
        row.addWidget(self._box, 1)
        row.addWidget(self._button)
        self._column.addLayout(row)
        self._take(around, 1)
        around.setObjectName(holder)
        self.control = self._box
        self._box.setObjectName(f"setting_{name}")
        self._button.setObjectName(button)
