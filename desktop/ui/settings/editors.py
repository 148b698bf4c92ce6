"""One small editor for each kind of setting; all speak by `edited` and show by `show_value`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QVBoxLayout,
    QWidget,
)

from desktop.ui.i18n import Translator
from desktop.ui.theme import px

SHORT_ROLE = Qt.ItemDataRole.UserRole + 1
"""What a closed box shows of a choice whose line in the list says more."""


_LIST_FRAME_PX = 6
_SPARE_PX = 8


class ChoiceBox(QComboBox):
    """A box that the wheel scrolls past, so that scrolling a page changes nothing.

    Too long a text ends in an ellipsis and is the box's tip.
    """

    def shown_text(self) -> str:
        """Return what the closed box says."""
        return str(self.currentData(SHORT_ROLE) or self.currentText())

    def sizeHint(self) -> QSize:
        """Return the room of the widest choice: the style's own reckoning is a little short for large letters."""
        return super().sizeHint() + QSize(_SPARE_PX, 0)

    def showPopup(self) -> None:
        """Open the list as wide as its widest line."""
        view = self.view()
        is_long = self.count() > self.maxVisibleItems()
        bar = view.verticalScrollBar().sizeHint().width() if is_long else 0
        view.setMinimumWidth(view.sizeHintForColumn(0) + bar + 2 * _LIST_FRAME_PX)
        super().showPopup()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the box with the text that fits."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, self)
        words = self.fontMetrics().elidedText(self.shown_text(), Qt.TextElideMode.ElideRight, room.width())
        option.currentText = words
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page."""
        event.ignore()


class NumberBox(QDoubleSpinBox):
    """A number that the wheel scrolls past."""

    def __init__(self) -> None:
        """Keep the digits off the frame: a style sheet does not reach the field inside."""
        super().__init__()
        self.lineEdit().setTextMargins(6, 0, 0, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page."""
        event.ignore()


class Editor(QWidget):
    """Base of all editors. `control` is the widget that takes the keyboard."""

    edited = Signal(object)
    control: QWidget
    is_self_named = False
    """Whether the control shows the setting's name itself."""

    def __init__(self, name: str) -> None:
        """Name the editor after its setting."""
        super().__init__()
        self.setObjectName(f"editor_{name}")
        self.name = name
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)

    def show_value(self, value: Any) -> None:
        """Show `value` without asking for it."""
        raise NotImplementedError

    def set_name(self, text: str) -> None:
        """Say what the control is for."""
        self.control.setAccessibleName(text)

    def _take(self, control: QWidget, stretch: int = 0) -> None:
        self.control = control
        control.setObjectName(f"setting_{self.name}")
        self._row.addWidget(control, stretch)
        if not stretch:
            self._row.addStretch(1)


class ChoiceEditor(Editor):
    """One of several values; the words come from the catalogue as `settings.<name>.<value>`."""

    def __init__(self, name: str, values: Sequence[Any], keys: Sequence[str], translator: Translator) -> None:
        """Offer `values`, called by the texts of `keys`."""
        super().__init__(name)
        self._box = ChoiceBox()
        self._box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._values = list(values)
        for index, key in enumerate(keys):
            self._box.addItem("")
            translator.bind(partial(self._box.setItemText, index), key)
        self._box.activated.connect(self._on_activated)
        self._take(self._box)

    def show_value(self, value: Any) -> None:
        """Show `value`; one that is not offered shows nothing."""
        self._box.setCurrentIndex(self._values.index(value) if value in self._values else -1)

    def _on_activated(self, index: int) -> None:
        self.edited.emit(self._values[index])


class SwitchEditor(Editor):
    """On or off, with the setting's name beside the box."""

    is_self_named = True

    def __init__(self, name: str) -> None:
        """Begin off."""
        super().__init__(name)
        self._box = QCheckBox()
        self._box.setProperty("role", "name")
        self._box.clicked.connect(self._on_clicked)
        self._take(self._box)

    def set_name(self, text: str) -> None:
        """Say what the box is for, to eyes and ears."""
        super().set_name(text)
        self._box.setText(text)

    def show_value(self, value: Any) -> None:
        """Show `value`."""
        self._box.setChecked(bool(value))

    def _on_clicked(self, is_on: bool) -> None:
        self.edited.emit(is_on)


class SeveralEditor(Editor):
    """Any number of values; the words come from the catalogue as `settings.<name>.<value>`."""

    def __init__(self, name: str, values: Sequence[str], translator: Translator) -> None:
        """Offer `values`, a box each."""
        super().__init__(name)
        self._boxes: dict[str, QCheckBox] = {}
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        for value in values:
            box = self._boxes[value] = QCheckBox()
            translator.bind(box.setText, f"settings.{name}.{value}")
            translator.bind(box.setAccessibleName, f"settings.{name}.{value}")
            box.clicked.connect(self._on_clicked)
            column.addWidget(box)
        self._take(holder)
        for value, box in self._boxes.items():
            box.setObjectName(f"setting_{name}_{value}")

    def show_value(self, value: Any) -> None:
        """Show `value`."""
        for one, box in self._boxes.items():
            box.setChecked(one in value)

    def _on_clicked(self, is_on: bool) -> None:
        self.edited.emit(tuple(value for value, box in self._boxes.items() if box.isChecked()))


class NumberEditor(Editor):
    """A number in the unit people know: `scale` turns the setting's value into it."""

    def __init__(self, name: str, limits: tuple[float, float], step: float, unit: str, scale: float = 1.0) -> None:
        """Allow `limits` of the setting's value, in steps of the shown one."""
        super().__init__(name)
        self._scale = scale
        self._box = NumberBox()
        self._box.setKeyboardTracking(False)
        self._box.setRange(limits[0] * scale, limits[1] * scale)
        self._box.setSingleStep(step)
        self._box.setDecimals(0 if step >= 1 else 2)
        self._box.setSuffix(unit)
        self._box.setMinimumWidth(px(152))
        self._box.valueChanged.connect(self._on_changed)
        self._take(self._box)

    def show_value(self, value: Any) -> None:
        """Show `value`."""
        was_blocked = self._box.blockSignals(True)
        self._box.setValue(float(value) * self._scale)
        self._box.blockSignals(was_blocked)

    def _on_changed(self, shown: float) -> None:
        self.edited.emit(shown / self._scale)


class TextEditor(Editor):
    """A line of text; empty means none where `is_optional`."""

    def __init__(self, name: str, translator: Translator, *, is_optional: bool) -> None:
        """Take a line; `edited` comes when the line is left or Enter is pressed."""
        super().__init__(name)
        self._is_optional = is_optional
        self._shown = ""
        self._line = QLineEdit()
        self._line.setProperty("isSmall", True)
        self._line.setMaxLength(2000)
        if translator.has(f"settings.{name}.placeholder"):
            translator.bind(self._line.setPlaceholderText, f"settings.{name}.placeholder")
        self._line.editingFinished.connect(self._on_finished)
        self._take(self._line, 1)

    def show_value(self, value: Any) -> None:
        """Show `value`."""
        self._shown = "" if value is None else str(value)
        self._line.setText(self._shown)

    def text(self) -> str:
        """Return what is in the line now."""
        return self._line.text().strip()

    def _on_finished(self) -> None:
        text = self.text()
        if text != self._shown:
            self._shown = text
            self.edited.emit(None if self._is_optional and not text else text)


class DeviceEditor(Editor):
    """A sound device by name; the system's default comes first."""

    def __init__(self, name: str, translator: Translator) -> None:
        """Offer the default until the devices are known."""
        super().__init__(name)
        self._translator = translator
        self._names: list[str | None] = [None]
        self._labels: list[str] = []
        self._value: str | None = None
        self._box = ChoiceBox()
        self._box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._box.setMinimumContentsLength(12)
        self._box.activated.connect(self._on_activated)
        translator.changed.connect(self._refresh)
        self._take(self._box, 1)
        self._refresh()

    def offer(self, names: Sequence[str]) -> None:
        """Offer `names` beside the system's default."""
        self._labels = list(names)
        self._refresh()

    def show_value(self, value: Any) -> None:
        """Show the device `value`, also while it is not there."""
        self._value = value
        self._refresh()

    def _refresh(self) -> None:
        known: list[str] = list(self._labels)
        # A setting may be a part of a name or a number; it stays as the user wrote it.
        if self._value is not None and self._value not in known:
            known.insert(0, self._value)
        self._names = [None, *known]
        self._box.clear()
        self._box.addItem(self._translator.text("settings.device.default"))
        self._box.addItems(known)
        self._box.setCurrentIndex(self._names.index(self._value))
        for index in range(self._box.count()):
            self._box.setItemData(index, self._box.itemText(index), Qt.ItemDataRole.ToolTipRole)

    def _on_activated(self, index: int) -> None:
        self.edited.emit(self._names[index])
