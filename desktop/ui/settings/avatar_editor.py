"""Choice of a character among the packs there are, with the fault of one that can't be shown, and an import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QLabel

from desktop.ui.avatar.library import AvatarChoice
from desktop.ui.i18n import Translator
from desktop.ui.settings.box_editor import BoxEditor

# Where QStandardItem keeps its flags: Qt's own role just below those of users.
_FLAGS = Qt.ItemDataRole.UserRole - 1


class AvatarEditor(BoxEditor):
    """A box of packs; the first line leaves the choice to the persona. `import_asked` gives a zip file."""

    import_asked = Signal(Path)

    def __init__(self, name: str, translator: Translator) -> None:
        """Offer the persona's own until the packs are known."""
        super().__init__(name, holder=f"avatars_{name}", button="avatarImportButton")
        self._translator = translator
        self._choices: tuple[AvatarChoice, ...] = ()
        self._values: list[str | None] = []
        self._value: str | None = None
        self._problems = QLabel()
        self._problems.setObjectName("avatarProblems")
        self._problems.setProperty("role", "error")
        self._problems.setTextFormat(Qt.TextFormat.PlainText)
        self._problems.setWordWrap(True)
        self._problems.hide()
        self._column.addWidget(self._problems)
        self._box.activated.connect(lambda index: self.edited.emit(self._values[index]))
        self._button.clicked.connect(self._on_import_clicked)
        translator.bind(self._button.setText, "settings.avatar.import")
        translator.bind(self._button.setAccessibleName, "menu.avatar.import")
        translator.changed.connect(self._refresh)
        self._refresh()

    def offer(self, choices: Sequence[AvatarChoice]) -> None:
        """Offer `choices`; what is wrong with one stands below the box."""
        self._choices = tuple(choices)
        self._refresh()

    def show_value(self, value: Any) -> None:
        """Show the pack `value`, also while it is not there."""
        self._value = value
        self._refresh()

    def _refresh(self) -> None:
        text, language = self._translator.text, self._translator.language
        self._values = [None, *(choice.id for choice in self._choices)]
        self._box.clear()
        self._box.addItem(text("settings.avatar.persona"))
        for index, choice in enumerate(self._choices, 1):
            broken = text("menu.avatar.broken", name=choice.id)
            self._box.addItem(broken if choice.problem else choice.name(language))
            self._box.setItemData(index, self._problem_of(choice) or choice.licence, Qt.ItemDataRole.ToolTipRole)
            if choice.problem:
                # The flags of a line; its item would be a wrapper that outlives the line.
                self._box.setItemData(index, 0, _FLAGS)
        if self._value not in self._values:
            self._values.append(self._value)
            self._box.addItem(str(self._value))
        self._box.setCurrentIndex(self._values.index(self._value))
        problems = [self._problem_of(choice) for choice in self._choices if choice.problem]
        self._problems.setText("\n".join(problems))
        self._problems.setVisible(bool(problems))

    def _problem_of(self, choice: AvatarChoice) -> str:
        return self._translator.fault(choice.code, choice.problem) if choice.problem else ""

    def _on_import_clicked(self) -> None:
        text = self._translator.text
        name, _ = QFileDialog.getOpenFileName(self, text("menu.avatar.import"), "", text("menu.avatar.filter"))
        if name:
            self.import_asked.emit(Path(name))
