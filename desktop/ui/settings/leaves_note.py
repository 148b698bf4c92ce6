"""What leaves the computer with the settings in force, in one place."""

from __future__ import annotations

import urllib.parse

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from desktop.settings import Settings
from desktop.sound_server import SoundServer
from desktop.ui.form_parts import make_label
from desktop.ui.i18n import Translator
from desktop.ui.settings.server_pane import privacy_words


class LeavesNote(QWidget):
    """A line for each thing that is sent somewhere, or one that says that nothing is."""

    def __init__(self, settings: Settings, translator: Translator) -> None:
        """Tell of `settings`."""
        super().__init__()
        self.setObjectName("leavesNote")
        self._settings = settings
        self._translator = translator
        title = QLabel()
        title.setObjectName("leavesTitle")
        title.setProperty("role", "name")
        translator.bind(title.setText, "settings.leaves.title")
        self.words = make_label("leavesWords")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(title)
        column.addWidget(self.words)
        translator.changed.connect(self._refresh)
        self._refresh()

    def tell_of(self, settings: Settings) -> None:
        """Tell of other settings."""
        self._settings = settings
        self._refresh()

    def _refresh(self) -> None:
        settings, text = self._settings, self._translator.text
        lines = [
            privacy_words(self._translator, "whisper", settings.whisper),
            privacy_words(self._translator, "voice", settings.voice),
        ]
        if settings.llm not in ("local", "none"):
            server = SoundServer(url=settings.llm)
            key = "settings.server.here" if server.is_here else "settings.leaves.llm"
            lines.append(text(key, host=urllib.parse.urlsplit(settings.llm).netloc.rpartition("@")[2]))
        told = [line for line in lines if line] or [text("settings.leaves.nothing")]
        self.words.setText("\n".join((*told, text("settings.leaves.models"))))
