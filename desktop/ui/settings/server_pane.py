"""The fields of a server that recognises or speaks: address, model, voice, a test, and what leaves the computer."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from desktop.sound_server import DEFAULT_MODELS, DEFAULT_VOICE, SoundServer, checked_address, parse_server
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX

_EXAMPLE = "http://localhost:8000/v1"


class ServerPane(QWidget):
    """Gives the server as a value of the setting by `edited` when a line is left; `refused` says what is wrong."""

    edited = Signal(object)
    refused = Signal(str)
    test_asked = Signal()
    cancel_asked = Signal()

    def __init__(self, setting: str, translator: Translator) -> None:
        """Begin empty; `setting` is voice or whisper."""
        super().__init__()
        self.setObjectName(f"server_{setting}")
        self._setting = setting
        self._translator = translator
        self._shown = ""
        self._is_busy = False
        self.lines: dict[str, QLineEdit] = {}
        self.labels: dict[str, QLabel] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(GRID_PX)
        grid.setVerticalSpacing(GRID_PX)
        grid.setColumnStretch(1, 1)
        hints = {"url": _EXAMPLE, "model": DEFAULT_MODELS[setting], "voice": DEFAULT_VOICE}
        for row, part in enumerate(("url", "model", "voice") if setting == "voice" else ("url", "model")):
            label, line = self.labels[part], self.lines[part] = QLabel(), QLineEdit()
            label.setObjectName(f"serverName_{setting}_{part}")
            label.setBuddy(line)
            line.setObjectName(f"setting_{setting}_{part}")
            line.setProperty("isSmall", True)
            line.setMaxLength(500)
            line.setPlaceholderText(hints[part])
            line.editingFinished.connect(self._on_finished)
            translator.bind(label.setText, f"settings.server.{part}")
            translator.bind(line.setAccessibleName, f"settings.server.{part}")
            translator.bind(line.setToolTip, f"settings.server.{part}.tip")
            translator.bind(line.setAccessibleDescription, f"settings.server.{part}.tip")
            grid.addWidget(label, row, 0)
            grid.addWidget(line, row, 1)
        self.test = QPushButton()
        self.test.setObjectName(f"testServer_{setting}")
        self.test.setProperty("isSmall", True)
        # Enter in a line ends the line; it must not press a button of the dialog.
        self.test.setAutoDefault(False)
        self.test.clicked.connect(partial(_without_state, self._on_test_clicked))
        self.leaves = QLabel()
        self.leaves.setObjectName(f"leaves_{setting}")
        self.leaves.setProperty("role", "later")
        self.leaves.setWordWrap(True)
        self.leaves.setTextFormat(Qt.TextFormat.PlainText)
        button_row = QHBoxLayout()
        button_row.addWidget(self.test)
        button_row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID_PX)
        column.addLayout(grid)
        column.addWidget(self.leaves)
        column.addLayout(button_row)
        translator.changed.connect(self._refresh)
        self._refresh()

    def show_value(self, value: str) -> None:
        """Show the server that `value` names; nothing for a model's name."""
        self._shown = value
        server = parse_server(self._setting, value)
        for part, line in self.lines.items():
            line.setText(getattr(server, part) if server is not None else "")
        self._refresh()

    def set_busy(self, is_busy: bool) -> None:
        """Offer to cancel a running test, or to begin one."""
        self._is_busy = is_busy
        self._refresh()

    def focus(self) -> None:
        """Go to the address."""
        self.lines["url"].setFocus(Qt.FocusReason.OtherFocusReason)

    def _server(self) -> SoundServer:
        """Return what the lines say. Raises `ValueError` for an address that is none."""
        texts = {part: line.text().strip() for part, line in self.lines.items()}
        return SoundServer(url=checked_address(texts["url"]), model=texts["model"], voice=texts.get("voice", ""))

    def _on_finished(self) -> bool:
        """Tell what is new; returns whether the lines are in order."""
        if not self.lines["url"].text().strip():
            return False
        try:
            server = self._server()
        except ValueError as error:
            self.refused.emit(str(error))
            return False
        self.lines["url"].setText(server.url)
        value = server.name(self._setting)
        if value != self._shown:
            self._shown = value
            self._refresh()
            self.edited.emit(value)
        return True

    def _on_test_clicked(self) -> None:
        if self._is_busy:
            self.cancel_asked.emit()
        elif not self.lines["url"].text().strip():
            self.focus()
        elif self._on_finished():
            self.test_asked.emit()

    def _refresh(self) -> None:
        text = self._translator.text
        self.test.setText(text("settings.server.cancel" if self._is_busy else "settings.server.test"))
        self.test.setAccessibleName(self.test.text())
        self.leaves.setText(privacy_words(self._translator, self._setting, self._shown))
        self.leaves.setVisible(bool(self.leaves.text()))


def privacy_words(translator: Translator, setting: str, value: str) -> str:
    """Return what leaves this computer with `value` for `setting`; empty if it names no server."""
    server = parse_server(setting, value)
    if server is None:
        return ""
    if server.is_here:
        return translator.text("settings.server.here", host=server.host)
    return translator.text(f"settings.server.leaves.{setting}", host=server.host)


def _without_state(call: object, _: bool = False) -> None:
    assert callable(call)
    call()
