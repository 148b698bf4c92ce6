"""The field of a key: it takes one, and shows only that one is kept."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QLineEdit, QPushButton

from desktop.ui.i18n import Translator
from desktop.ui.settings.editors import Editor


class KeyEditor(Editor):
    """`edited` gives a key to keep, or an empty text for one to forget."""

    def __init__(self, name: str, translator: Translator) -> None:
        """Begin without a key."""
        super().__init__(name)
        self._translator = translator
        self._is_kept = False
        self._line = QLineEdit()
        self._line.setProperty("isSmall", True)
        self._line.setMaxLength(2000)
        self._line.setEchoMode(QLineEdit.EchoMode.Password)
        self._forget = QPushButton()
        self._forget.setObjectName(f"forget_{name}")
        self._forget.setProperty("isSmall", True)
        self._forget.setAutoDefault(False)
        translator.bind(self._forget.setText, "settings.key.forget")
        translator.bind(self._forget.setAccessibleName, "settings.key.forget")
        self._line.editingFinished.connect(self._on_finished)
        self._forget.clicked.connect(lambda _=False: self.edited.emit(""))
        self._take(self._line, 1)
        self._row.addWidget(self._forget)
        translator.changed.connect(self._refresh)
        self._refresh()

    def show_value(self, value: Any) -> None:
        """Show whether a key is kept; what was typed is gone."""
        self._is_kept = bool(value)
        self._line.clear()
        self._refresh()

    def _refresh(self) -> None:
        key = "settings.key.replace" if self._is_kept else "settings.key.paste"
        self._line.setPlaceholderText(self._translator.text(key))
        self._forget.setVisible(self._is_kept)

    def _on_finished(self) -> None:
        key = self._line.text().strip()
        if key:
            self._line.clear()
            self.edited.emit(key)
