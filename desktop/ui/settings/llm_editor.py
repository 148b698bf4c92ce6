"""Where the language model is: offline, none, or an endpoint with its address."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from desktop.llm_probe import LlmTest
from desktop.ui.i18n import Translator
from desktop.ui.settings.editors import ChoiceBox, Editor, TextEditor
from desktop.ui.settings.model_editor import ModelEditor

_SOURCES = ("local", "none", "endpoint")


class LlmEditor(Editor):
    """The setting `llm`, with a search for servers on this machine and a test."""

    test_asked = Signal()
    search_asked = Signal()
    source_changed = Signal(str)

    def __init__(self, translator: Translator) -> None:
        """Begin offline."""
        super().__init__("llm")
        self._translator = translator
        self._shown = "local"
        self._box = ChoiceBox()
        for index, source in enumerate(_SOURCES):
            self._box.addItem("")
            translator.bind(partial(self._box.setItemText, index), f"settings.llm.{source}")
        self._line = QLineEdit()
        self._line.setObjectName("setting_llm_url")
        self._line.setProperty("isSmall", True)
        self._line.setPlaceholderText("http://localhost:11434/v1")
        translator.bind(self._line.setAccessibleName, "settings.llm.url")
        self._test = self._button("testLlmButton", "settings.llm.test", translator)
        self._search = self._button("findLlmButton", "settings.llm.search", translator)
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._box)
        column.addWidget(self._line)
        row = QHBoxLayout()
        row.addWidget(self._test)
        row.addWidget(self._search)
        row.addStretch(1)
        column.addLayout(row)
        self._offers = QHBoxLayout()
        self._offers.addStretch(1)
        self.found: list[QPushButton] = []
        translator.changed.connect(self._name_found)
        column.addLayout(self._offers)
        self._take(holder, 1)
        holder.setObjectName("llmChoice")
        self.control = self._box
        self._box.setObjectName("setting_llm")
        self._box.activated.connect(self._on_source_chosen)
        self._line.editingFinished.connect(self._on_url_finished)
        self._test.clicked.connect(self._on_test_clicked)
        self._search.clicked.connect(self._on_search_clicked)
        self.show_value("local")

    @property
    def source(self) -> str:
        """Which kind is chosen: local, none or endpoint."""
        return _SOURCES[self._box.currentIndex()]

    def show_value(self, value: Any) -> None:
        """Show `value`: local, none or an address."""
        self._shown = str(value)
        is_endpoint = self._shown not in ("local", "none")
        self._box.setCurrentIndex(2 if is_endpoint else _SOURCES.index(self._shown))
        self._line.setText(self._shown if is_endpoint else "")
        self._show_parts()

    def set_busy(self, is_busy: bool) -> None:
        """Keep test and search from being asked twice."""
        self._test.setEnabled(not is_busy)
        self._search.setEnabled(not is_busy)

    def show_found(self, found: Sequence[LlmTest]) -> None:
        """Offer the servers that were found, a button each."""
        for old in self.found:
            self._offers.removeWidget(old)
            old.hide()
            old.deleteLater()
        self.found = []
        for test in found:
            name = test.program or test.url
            made = QPushButton()
            made.setObjectName(f"useLlm_{name.replace(' ', '')}")
            made.setProperty("isSmall", True)
            made.setAutoDefault(False)
            made.setProperty("server", name)
            made.clicked.connect(partial(self._take_server, test.url))
            self._offers.insertWidget(len(self.found), made)
            self.found.append(made)
            made.show()
        self._name_found()

    def _name_found(self) -> None:
        for button in self.found:
            button.setText(self._translator.text("settings.llm.use", name=button.property("server")))
            button.setAccessibleName(button.text())

    def _take_server(self, url: str, _: bool = False) -> None:
        self._box.setCurrentIndex(_SOURCES.index("endpoint"))
        self._line.setText(url)
        self._show_parts()
        self._on_url_finished()

    def _button(self, name: str, key: str, translator: Translator) -> QPushButton:
        made = QPushButton()
        made.setObjectName(name)
        made.setProperty("isSmall", True)
        # Enter in the address line ends the address; it must not press a button of the dialog.
        made.setAutoDefault(False)
        translator.bind(made.setText, key)
        translator.bind(made.setAccessibleName, key)
        return made

    def _show_parts(self) -> None:
        is_endpoint = self.source == "endpoint"
        for part in (self._line, self._test):
            part.setVisible(is_endpoint)
        self.source_changed.emit(self.source)

    def _on_source_chosen(self, index: int) -> None:
        self._show_parts()
        if _SOURCES[index] != "endpoint":
            self._shown = _SOURCES[index]
            self.edited.emit(self._shown)
        else:
            self._line.setFocus()

    def _on_url_finished(self) -> None:
        text = self._line.text().strip()
        if self.source == "endpoint" and text and text != self._shown:
            self._shown = text
            self.edited.emit(text)

    def _on_test_clicked(self) -> None:
        self._on_url_finished()
        self.test_asked.emit()

    def _on_search_clicked(self) -> None:
        self.search_asked.emit()


class LlmModelEditor(Editor):
    """The setting `llm_model`: a model of the catalogue when offline, a name the endpoint knows otherwise."""

    def __init__(self, translator: Translator) -> None:
        """Begin with the catalogue."""
        super().__init__("llm_model")
        self.models = ModelEditor("llm_model", "llm", translator, has_none=True)
        self.line = TextEditor("llm_model", translator, is_optional=True)
        self.line.control.setObjectName("setting_llm_model_name")
        self._row.addWidget(self.models, 1)
        self._row.addWidget(self.line, 1)
        self.control = self.models.control
        for part in (self.models, self.line):
            part.edited.connect(self.edited)
        self.show_source("local")

    def show_source(self, source: str) -> None:
        """Offer what fits `source`."""
        self.models.setVisible(source == "local")
        self.line.setVisible(source != "local")

    def show_value(self, value: Any) -> None:
        """Show `value`."""
        self.models.show_value(value)
        self.line.show_value(value)

    def set_name(self, text: str) -> None:
        """Say what the controls are for."""
        self.models.set_name(text)
        self.line.set_name(text)
