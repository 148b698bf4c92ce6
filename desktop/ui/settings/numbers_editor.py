"""The expert page: every number of the ears, as the dials set it or as it was set by hand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop.ears_numbers import EarsNumber, Numbers, ears_numbers
from desktop.ui.i18n import Translator
from desktop.ui.settings.editors import Editor, NumberBox
from desktop.ui.theme import GRID_PX, px

_UNITS = (("_db_per_s", " dB/s"), ("_s", " s"), ("_db", " dB"))


class NumbersEditor(Editor):
    """A table by section. `edited` carries only the numbers that were set by hand."""

    def __init__(self, translator: Translator) -> None:
        """Show nothing until the dials' values are known."""
        super().__init__("ears")
        self._translator = translator
        self._own: dict[str, float] = {}
        self._dials: Mapping[str, float] = {}
        self.boxes: dict[str, NumberBox] = {}
        self.switches: dict[str, QCheckBox] = {}
        self.resets: dict[str, QPushButton] = {}
        self._labels: dict[str, QLabel] = {}
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID_PX)
        sections: dict[str, list[EarsNumber]] = {}
        for number in ears_numbers().values():
            sections.setdefault(number.section if "." in number.name else "other", []).append(number)
        for section, numbers in sections.items():
            column.addWidget(self._title(section, is_live=all(number.is_live for number in numbers)))
            column.addLayout(self._table(numbers))
        self._take(holder, 1)
        holder.setObjectName("setting_ears")
        translator.changed.connect(self._refresh)
        self._refresh()

    def set_name(self, text: str) -> None:
        """Leave the names to the numbers themselves."""

    def show_value(self, value: Any) -> None:
        """Show the numbers set by hand over the dials'."""
        self._own = dict(value)
        self._refresh()

    def show_dials(self, values: Mapping[str, float]) -> None:
        """Show what the dials make of each number."""
        self._dials = values
        self._refresh()

    def _title(self, section: str, *, is_live: bool) -> QLabel:
        made = QLabel()
        made.setObjectName(f"ears_section_{section}")
        made.setProperty("role", "name")

        def show() -> None:
            text, key = self._translator, f"ears.section.{section}"
            words = text.text(key) if text.has(key) else section
            made.setText(words if is_live else f"{words} ({text.text('ears.restart')})")

        self._translator.changed.connect(show)
        show()
        return made

    def _table(self, numbers: list[EarsNumber]) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(2 * GRID_PX)
        grid.setVerticalSpacing(GRID_PX)
        grid.setColumnStretch(0, 1)
        for row, number in enumerate(numbers):
            label = self._labels[number.name] = QLabel()
            label.setObjectName(f"ears_name_{number.name}")
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            grid.addWidget(label, row, 0)
            grid.addWidget(self._switch(number) if number.kind == "switch" else self._box(number), row, 1)
            grid.addWidget(self._reset(number), row, 2)
        return grid

    def _box(self, number: EarsNumber) -> NumberBox:
        box = self.boxes[number.name] = NumberBox()
        box.setObjectName(f"ears_{number.name}")
        box.setKeyboardTracking(False)
        is_level = number.name.endswith("_db")
        is_whole = number.kind == "integer"
        box.setDecimals(0 if is_whole else 1 if is_level else 3)
        box.setSingleStep(1 if is_whole or is_level else 0.05)
        box.setRange(number.minimum, number.maximum)
        box.setSuffix(next((unit for end, unit in _UNITS if number.name.endswith(end)), ""))
        box.setMinimumWidth(px(19 * GRID_PX))
        box.valueChanged.connect(partial(self._on_changed, number.name))
        return box

    def _switch(self, number: EarsNumber) -> QCheckBox:
        made = self.switches[number.name] = QCheckBox()
        made.setObjectName(f"ears_{number.name}")
        self._translator.bind(made.setText, "settings.switch")
        made.clicked.connect(lambda is_on, name=number.name: self._on_changed(name, float(is_on)))
        return made

    def _reset(self, number: EarsNumber) -> QPushButton:
        made = self.resets[number.name] = QPushButton()
        made.setObjectName(f"ears_reset_{number.name}")
        made.setProperty("isSmall", True)
        made.setAutoDefault(False)
        self._translator.bind(made.setText, "ears.reset")
        made.clicked.connect(partial(self._on_reset, number.name))
        # A hidden button must leave its place: the table must not jump.
        policy = made.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        made.setSizePolicy(policy)
        return made

    def words(self, name: str) -> str:
        """Return what a number is called; one without a text is called as in the file."""
        return self._translator.text(f"ears.{name}") if self._translator.has(f"ears.{name}") else name

    def _refresh(self) -> None:
        for name, label in self._labels.items():
            words = self.words(name)
            label.setText(words)
            label.setToolTip(name)
            value = self._own.get(name, self._dials.get(name, 0.0))
            control: QWidget
            if name in self.switches:
                control = self.switches[name]
                self.switches[name].setChecked(bool(value))
            else:
                control = box = self.boxes[name]
                was_blocked = box.blockSignals(True)
                box.setValue(value)
                box.blockSignals(was_blocked)
            control.setAccessibleName(words)
            control.setToolTip(name)
            self.resets[name].setVisible(name in self._own)
            self.resets[name].setAccessibleName(self._translator.text("ears.reset.name", name=words))

    def _on_changed(self, name: str, value: float) -> None:
        if abs(value - self._dials.get(name, 0.0)) < 1e-6:
            self._on_reset(name)
            return
        self._own[name] = round(value, 6)
        self._tell()

    def _on_reset(self, name: str, _: bool = False) -> None:
        self._own.pop(name, None)
        self._tell()

    def _tell(self) -> None:
        self._refresh()
        numbers: Numbers = tuple(self._own.items())
        self.edited.emit(numbers)
