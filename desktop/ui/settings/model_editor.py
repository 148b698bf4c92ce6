"""Choice of a model with its size and licence, and its installation with progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QProgressBar

from desktop.settings_service import InstallStep, ModelChoice
from desktop.sound_server import is_server
from desktop.ui.i18n import Translator
from desktop.ui.settings.box_editor import BoxEditor
from desktop.ui.settings.editors import SHORT_ROLE

_MB = 1_000_000


class ModelEditor(BoxEditor):
    """A box of models; one that is not there yet can be fetched. A folder of the user's own stays as it is written."""

    install_asked = Signal(str)
    cancel_asked = Signal(str)
    server_chosen = Signal()

    def __init__(
        self, name: str, kind: str, translator: Translator, *, has_none: bool = False, server_key: str = ""
    ) -> None:
        """Offer models of `kind`; with `has_none` also the choice to leave it to the program.

        `server_key` names the words of a last line for a server in place of a model.
        """
        super().__init__(name, holder=f"models_{name}", button=f"install_{name}")
        self._kind = kind
        self._translator = translator
        self._has_none = has_none
        self._server_key = server_key
        self.is_server = False
        self._models: tuple[ModelChoice, ...] = ()
        self._values: list[str | None] = []
        self._value: str | None = None
        self._busy: str | None = None
        self._details = QLabel()
        self._details.setObjectName(f"details_{name}")
        self._details.setProperty("role", "caption")
        self._details.setTextFormat(Qt.TextFormat.PlainText)
        self._details.setWordWrap(True)
        self._progress = QProgressBar()
        self._progress.setObjectName(f"progress_{name}")
        self._progress.setTextVisible(False)
        self._progress.hide()
        translator.bind(self._progress.setAccessibleName, "settings.model.progress")
        self._column.addWidget(self._progress)
        self._column.addWidget(self._details)
        self._box.activated.connect(self._on_activated)
        self._button.clicked.connect(self._on_install_clicked)
        translator.changed.connect(self._refresh)
        self._refresh()

    def offer(self, models: Sequence[ModelChoice]) -> None:
        """Offer what fits of `models`."""
        self._models = tuple(model for model in models if model.kind == self._kind)
        self._refresh()

    def show_value(self, value: Any) -> None:
        """Show the model `value`."""
        self.is_server = bool(self._server_key) and isinstance(value, str) and is_server(value)
        self._value = value
        self._refresh()

    def show_step(self, step: InstallStep) -> None:
        """Show how far the installation is."""
        self._busy = None if step.is_over else step.name
        self._progress.setVisible(not step.is_over)
        self._progress.setRange(0, 1000 if step.total_bytes else 0)
        if step.total_bytes:
            self._progress.setValue(1000 * step.done_bytes // step.total_bytes)
        self._refresh()

    def words(self, model: ModelChoice) -> str:
        """Return the line that describes `model`."""
        return f"{model.title} · {self.details(model)}"

    def details(self, model: ModelChoice) -> str:
        """Return size, licence and whether `model` is there."""
        text = self._translator.text
        state = text("settings.model.installed" if model.is_installed else "settings.model.missing")
        size = text("settings.model.size", mb=max(1, round(model.size_bytes / _MB)))
        return f"{size} · {model.licence} · {state}"

    @property
    def value(self) -> str | None:
        """What is chosen; None leaves it to the program."""
        return self._value

    def _chosen(self) -> ModelChoice | None:
        """Return the model that is meant, also where the choice is left to the program."""
        if self.is_server:
            return None
        if self._value is None:
            return next((model for model in self._models if model.is_recommended), None)
        return next((model for model in self._models if model.name == self._value), None)

    def _refresh(self) -> None:
        text = self._translator.text
        names = [model.name for model in self._models]
        self._values = [None, *names] if self._has_none else list(names)
        labels = [self.words(model) for model in self._models]
        if self._has_none:
            chosen, words = self._chosen() if self._value is None else None, text("settings.model.automatic")
            labels.insert(0, f"{words}: {self.words(chosen)}" if chosen is not None else words)
        if self._value not in self._values and not self.is_server:
            self._values.insert(0, self._value)
            labels.insert(0, str(self._value or ""))
        if self._server_key:
            labels.append(text(self._server_key))
        self._box.clear()
        self._box.addItems(labels)
        self._box.setCurrentIndex(len(self._values) if self.is_server else self._values.index(self._value))
        self._box.setToolTip(self._box.currentText())
        chosen = self._chosen()
        self._show_details(chosen)
        is_busy = self._busy is not None
        self._button.setVisible(is_busy or (chosen is not None and not chosen.is_installed))
        self._button.setText(text("settings.model.cancel" if is_busy else "settings.model.install"))
        self._button.setAccessibleName(self._button.text())

    def _show_details(self, chosen: ModelChoice | None) -> None:
        """Let the closed box say what is chosen, and the line below how big it is and under which licence."""
        if chosen is not None:
            words = self._translator.text("settings.model.automatic")
            short = f"{words}: {chosen.title}" if self._value is None and self._has_none else chosen.title
            self._box.setItemData(self._box.currentIndex(), short, SHORT_ROLE)
            self._details.setText(self.details(chosen))
        self._details.setVisible(chosen is not None)

    def _on_activated(self, index: int) -> None:
        self.is_server = index == len(self._values)
        if self.is_server:
            self._refresh()
            self.server_chosen.emit()
            return
        self._value = self._values[index]
        self._refresh()
        self.edited.emit(self._value)

    def _on_install_clicked(self) -> None:
        if self._busy is not None:
            self.cancel_asked.emit(self._busy)
            return
        chosen = self._chosen()
        if chosen is not None:
            self.install_asked.emit(chosen.name)
