"""Who recognises or speaks: a model on this computer, or a server by its address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop.settings_service import ModelChoice
from desktop.sound_server import is_server
from desktop.ui.i18n import Translator
from desktop.ui.settings.editors import Editor
from desktop.ui.settings.model_editor import ModelEditor
from desktop.ui.settings.server_pane import ServerPane
from desktop.ui.theme import GRID_PX


class SoundEditor(Editor):
    """The setting `voice` or `whisper`. `source_changed` tells whether a server is chosen."""

    source_changed = Signal(bool)
    refused = Signal(str)

    def __init__(self, name: str, kind: str, translator: Translator) -> None:
        """Begin with the models of `kind` on this computer."""
        super().__init__(name)
        self.models = ModelEditor(name, kind, translator, server_key="settings.server.choose")
        self.server = ServerPane(name, translator)
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID_PX)
        column.addWidget(self.models)
        column.addWidget(self.server)
        self._take(holder, 1)
        holder.setObjectName(f"sound_{name}")
        self.control = self.models.control
        self.models.edited.connect(self._on_model_chosen)
        self.models.server_chosen.connect(self._on_server_chosen)
        self.server.edited.connect(self.edited)
        self.server.refused.connect(self.refused)
        self.server.hide()

    @property
    def is_server(self) -> bool:
        """Whether a server is chosen, perhaps without an address yet."""
        return self.models.is_server

    def offer(self, models: Sequence[ModelChoice]) -> None:
        """Offer what fits of `models`."""
        self.models.offer(models)

    def show_value(self, value: Any) -> None:
        """Show `value`: a model's name, a folder, or a server's address."""
        self.models.show_value(value)
        self.server.show_value(str(value) if is_server(str(value)) else "")
        self._show_source()

    def set_name(self, text: str) -> None:
        """Say what the control is for."""
        self.models.set_name(text)

    def _on_model_chosen(self, value: Any) -> None:
        self.server.show_value("")
        self._show_source()
        self.edited.emit(value)

    def _on_server_chosen(self) -> None:
        self._show_source()
        self.server.focus()

    def _show_source(self) -> None:
        self.server.setVisible(self.is_server)
        self.source_changed.emit(self.is_server)
