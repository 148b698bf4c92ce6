"""One line above the text that says what is special about the file, with up to two things to do."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QLabel, QPushButton, QSizePolicy

from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX

_NARROW_PX = 45 * GRID_PX

Act = tuple[str, Callable[[], None]]
"""A text key and what the button does."""


class Banner(QFrame):
    """Hidden while there is nothing to say."""

    def __init__(self, translator: Translator) -> None:
        """Start hidden."""
        super().__init__()
        self.setObjectName("flowBanner")
        self._translator = translator
        self._key: str | None = None
        self._values: dict[str, object] = {}
        self._acts: tuple[Act, ...] = ()
        self.words = QLabel()
        self.words.setObjectName("flowBannerText")
        self.words.setWordWrap(True)
        self.words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.buttons = (QPushButton(), QPushButton())
        row = self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(GRID_PX, GRID_PX // 2, GRID_PX, GRID_PX // 2)
        row.setSpacing(GRID_PX // 2)
        row.addWidget(self.words, 1)
        for number, button in enumerate(self.buttons):
            button.setObjectName(f"flowBannerButton_{number}")
            button.clicked.connect(lambda _=False, chosen=number: self._acts[chosen][1]())
            row.addWidget(button)
        translator.changed.connect(self._fill)
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the buttons below where there is no room beside the words."""
        super().resizeEvent(event)
        is_narrow = self.width() < _NARROW_PX
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if is_narrow else directions.LeftToRight)

    @property
    def key(self) -> str | None:
        """What is said, as a text key; None while hidden."""
        return self._key

    def say(self, key: str | None, *acts: Act, is_warning: bool = False, **values: object) -> None:
        """Show the text `key` with buttons; None hides the line."""
        self._key, self._acts, self._values = key, acts, values
        self.setProperty("severity", "warning" if is_warning else "info")
        self.style().unpolish(self)
        self.style().polish(self)
        self._fill()
        self.setVisible(key is not None)

    def _fill(self) -> None:
        if self._key is None:
            return
        text = self._translator.text
        self.words.setText(text(self._key, **self._values))
        for number, button in enumerate(self.buttons):
            button.setVisible(number < len(self._acts))
            if number < len(self._acts):
                button.setText(text(self._acts[number][0]))
                button.setAccessibleName(button.text())
