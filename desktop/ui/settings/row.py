"""One setting on its page: its name, its editor, what it does, and what became of the last change."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop.ui.form_parts import make_label
from desktop.ui.i18n import Translator
from desktop.ui.settings.editors import Editor
from desktop.ui.theme import GRID_PX


class SettingRow(QWidget):
    """Shows the outcome at the field itself."""

    def __init__(self, editor: Editor, translator: Translator) -> None:
        """Lay `editor` out under its name."""
        super().__init__()
        self.setObjectName(f"row_{editor.name}")
        self.editor = editor
        self._translator = translator
        self._key: str | None = None
        self._raw = ""
        name, hint = make_label(f"name_{editor.name}", "name"), make_label(f"hint_{editor.name}", "caption")
        self._status = make_label(f"status_{editor.name}", "caption")
        self._status.hide()
        name.setBuddy(editor.control)
        translator.bind(name.setText, f"settings.{editor.name}")
        translator.bind(editor.set_name, f"settings.{editor.name}")
        translator.bind(hint.setText, f"settings.{editor.name}.hint")
        translator.bind(editor.control.setAccessibleDescription, f"settings.{editor.name}.hint")
        translator.changed.connect(self._refresh)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, GRID_PX, 0, GRID_PX)
        column.setSpacing(4)
        for part in (name, editor, hint, self._status):
            column.addWidget(part)
        if editor.is_self_named:
            name.hide()

    def tell(self, role: str, key: str, raw: str = "") -> None:
        """Say how it went: `role` error, later, good or caption; `raw` where the catalogue has no text for `key`."""
        self._status.setProperty("role", role)
        self._status.style().unpolish(self._status)
        self._status.style().polish(self._status)
        self._key, self._raw = key, raw
        self._status.show()
        self._refresh()

    def hush(self) -> None:
        """Say nothing."""
        self._key = None
        self._status.hide()

    def says(self, key: str) -> bool:
        """Whether `key` is what is said now."""
        return self._key == key

    def status(self) -> str:
        """Return what is said now."""
        return self._status.text() if self._key is not None else ""

    def _refresh(self) -> None:
        if self._key is None:
            return
        is_known = self._translator.has(self._key)
        code = self._key.removeprefix("settings.error.")
        words = self._translator.text(self._key) if is_known else self._translator.fault(code, self._raw) or self._key
        if is_known and "{detail}" in words:
            words = words.format(detail=self._raw)
        self._status.setText(words)
        self._status.setAccessibleName(words)
