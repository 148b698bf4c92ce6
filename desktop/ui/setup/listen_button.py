"""A button that lets the voice be heard."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from desktop.bridge import Bridge
from desktop.settings_service import SettingsService
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX


class ListenButton(QWidget):
    """Says a sentence with the voice in force; without a running conversation it says why not."""

    def __init__(self, service: SettingsService, bridge: Bridge, translator: Translator) -> None:
        """Lay the button out beside its note."""
        super().__init__()
        self.setObjectName("listenRow")
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self.button = QPushButton()
        self.button.setObjectName("listenButton")
        self.button.setProperty("isSmall", True)
        self.button.setAutoDefault(False)
        self.note = QLabel()
        self.note.setObjectName("listenNote")
        self.note.setProperty("role", "caption")
        self.note.setWordWrap(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GRID_PX)
        row.addWidget(self.button)
        row.addWidget(self.note, 1)
        translator.bind(self.button.setText, "setup.listen")
        translator.bind(self.button.setAccessibleName, "setup.listen")
        translator.bind(self.note.setText, "setup.listen.hint")
        self.button.clicked.connect(self._on_clicked)

    def _on_clicked(self) -> None:
        self._service.say_sample(self._on_said)

    def _on_said(self, is_said: bool) -> None:
        key = "setup.listen.hint" if is_said else "setup.not_running"
        self._bridge.call(lambda: self.note.setText(self._translator.text(key)))
