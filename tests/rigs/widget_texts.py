"""The texts that a widget paints: where each stands, how much room its font needs, and whose words they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QMenu,
    QPushButton,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStyleOptionFrame,
    QTabBar,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from desktop.ui.i18n.translator import CATALOGUES, LANGUAGES
from desktop.ui.settings.editors import ChoiceBox

LETTERS = re.compile(r"[^\W\d_]{2,}|[\u3400-\u9fff]")
_TAGS = re.compile(r"<\w+[ >/]")
_JOINTS = ("\n", " · ", " — ", " – ", " → ", ": ", "：", " (", ", ")
"""What texts are put together with, the widest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A text where it is painted: `room` in the widget's pixels, `needed` as the font measures it."""

    text: str
    room: QRect
    needed: QSize
    font: QFont
    is_whole_elsewhere: bool = False
    is_data: bool = False
    is_enabled: bool = True


@dataclass(slots=True)
class Words:
    """Which words may stand in a window of one language: the catalogue's, and those of the user and the files."""

    language: str
    data: Collection[str] = ()
    _plain: set[str] = field(init=False)
    _known: dict[str, bool] = field(init=False, default_factory=dict)
    _templates: list[re.Pattern[str]] = field(init=False)

    def __post_init__(self) -> None:
        """Make patterns of the texts with places to fill."""
        texts = CATALOGUES[self.language].values()
        self._plain = {text for text in texts if "{" not in text} | set(LANGUAGES.values()) | set(self.data)
        self._templates = []
        for text in texts:
            if "{" not in text:
                continue
            parts = re.split(r"(\{[^{}]*\})", text)
            if LETTERS.search("".join(parts[::2])):
                pattern = "".join(".*" if part.startswith("{") else re.escape(part) for part in parts)
                self._templates.append(re.compile(pattern, re.DOTALL))

    def explain(self, text: str) -> bool:
        """Whether `text` is one of the catalogue's, or put together of those and of data."""
        if text not in self._known:
            self._known[text] = self._look_up(text)
        return self._known[text]

    def _look_up(self, text: str) -> bool:
        text = text.strip().removeprefix("• ")
        if (
            not LETTERS.search(text)
            or "://" in text
            or text in self._plain
            or any(t.fullmatch(text) for t in self._templates)
        ):
            return True
        for joint in _JOINTS:
            parts = [part for part in text.split(joint) if part.strip()]
            if len(parts) > 1 and all(self.explain(part.removesuffix(")")) for part in parts):
                return True
        return False


# --- texts ----------------------------------------------------------------------------------------------------------


def pieces(widget: QWidget) -> Iterator[Piece]:
    """Yield every text that `widget` itself paints."""
    for kind, look in _LOOKS:
        if isinstance(widget, kind):
            yield from look(widget)
            return


def _piece(widget: QWidget, text: str, room: QRect, **more: object) -> Piece:
    font = more.pop("font", None) or widget.font()
    assert isinstance(font, QFont)
    needed = QFontMetrics(font).size(0, text)
    return Piece(text=text, room=room, needed=needed, font=font, is_enabled=widget.isEnabled(), **more)  # type: ignore[arg-type]


def _label(label: QLabel) -> Iterator[Piece]:
    text = label.text()
    if not text or label.textFormat() == Qt.TextFormat.RichText or _TAGS.search(text):
        return
    margin = label.margin()
    room = label.contentsRect().adjusted(margin, margin, -margin, -margin)
    metrics = QFontMetrics(label.font())
    needed = metrics.size(0, text)
    if label.wordWrap():
        needed = metrics.boundingRect(QRect(0, 0, room.width(), 100_000), Qt.TextFlag.TextWordWrap, text).size()
    yield Piece(text=text, room=room, needed=needed, font=label.font(), is_enabled=label.isEnabled())


def _button(button: QPushButton) -> Iterator[Piece]:
    if button.text():
        option = QStyleOptionButton()
        button.initStyleOption(option)
        room = button.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, button)
        if not button.icon().isNull():
            room.setLeft(room.left() + button.iconSize().width() + 4)
        yield _piece(button, button.text(), room)


def _tool_button(button: QToolButton) -> Iterator[Piece]:
    if button.text() and button.toolButtonStyle() != Qt.ToolButtonStyle.ToolButtonIconOnly:
        yield _piece(button, button.text(), button.rect().adjusted(5, 5, -5, -5))


def _check_box(box: QCheckBox) -> Iterator[Piece]:
    if box.text():
        option = QStyleOptionButton()
        box.initStyleOption(option)
        room = box.style().subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, box)
        yield _piece(box, box.text(), room)


def _tabs(bar: QTabBar) -> Iterator[Piece]:
    for index in range(bar.count()):
        room = bar.tabRect(index).adjusted(6, 0, -6, 0).intersected(bar.rect())
        yield _piece(bar, bar.tabText(index), room)


def _combo(box: QComboBox) -> Iterator[Piece]:
    option = QStyleOptionComboBox()
    box.initStyleOption(option)
    part = QStyle.SubControl.SC_ComboBoxEditField
    room = box.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, box)
    text = box.shown_text() if isinstance(box, ChoiceBox) else box.currentText()
    yield _piece(box, text, room)


def _line(line: QLineEdit) -> Iterator[Piece]:
    if line.text() or not line.placeholderText():
        return
    option = QStyleOptionFrame()
    line.initStyleOption(option)
    room = line.style().subElementRect(QStyle.SubElement.SE_LineEditContents, option, line).adjusted(2, 0, -2, 0)
    yield _piece(line, line.placeholderText(), room)


def _number(box: QAbstractSpinBox) -> Iterator[Piece]:
    room = box.lineEdit().geometry()
    texts = {box.text()}
    if isinstance(box, QDoubleSpinBox):
        texts |= {box.textFromValue(value) + box.suffix() for value in (box.minimum(), box.maximum())}
    widest = max(texts, key=QFontMetrics(box.font()).horizontalAdvance)
    yield _piece(box, widest, room.adjusted(2, 0, -2, 0), is_data=True)


def _list(view: QListWidget) -> Iterator[Piece]:
    for row in range(view.count()):
        item = view.item(row)
        rect = view.visualItemRect(item).intersected(view.viewport().rect())
        if not rect.isEmpty():
            room = rect.adjusted(8, 0, -8, 0).translated(view.viewport().pos())
            yield _piece(view, item.text(), room)


def _tree(tree: QTreeWidget) -> Iterator[Piece]:
    if not tree.isHeaderHidden():
        header = tree.header()
        for column in range(tree.columnCount()):
            left = header.sectionViewportPosition(column)
            room = QRect(left, 0, header.sectionSize(column), header.height()).adjusted(8, 0, -8, 0)
            yield _piece(tree, tree.headerItem().text(column), room.translated(header.pos()))
    item = tree.itemAt(QPoint(4, 4))
    while item is not None:
        for column in range(tree.columnCount()):
            yield from _cell(tree, item, column)
        item = tree.itemBelow(item)


def _cell(tree: QTreeWidget, item: QTreeWidgetItem, column: int) -> Iterator[Piece]:
    text = item.text(column)
    rect = tree.visualRect(tree.indexFromItem(item, column))
    if not text or rect.isEmpty() or not tree.viewport().rect().contains(rect.center()) or tree.wordWrap():
        return
    sign = 0 if item.icon(column).isNull() else tree.iconSize().width() + 4 if tree.iconSize().isValid() else 20
    room = rect.adjusted(2 + sign, 0, -2, 0).translated(tree.viewport().pos())
    yield _piece(tree, text, room, is_whole_elsewhere=text in item.toolTip(column), is_data=True)


def _menu(menu: QMenu) -> Iterator[Piece]:
    for action in menu.actions():
        if action.text() and action.isVisible() and not action.isSeparator():
            place = menu.actionGeometry(action).adjusted(8, 0, -8, 0)
            made = _piece(menu, action.text().replace("&", ""), place)
            yield Piece(
                text=made.text, room=made.room, needed=made.needed, font=made.font, is_enabled=action.isEnabled()
            )


_LOOKS: tuple[tuple[type[QWidget], Callable[..., Iterator[Piece]]], ...] = (
    (QMenu, _menu),
    (QLabel, _label),
    (QPushButton, _button),
    (QToolButton, _tool_button),
    (QCheckBox, _check_box),
    (QTabBar, _tabs),
    (QComboBox, _combo),
    (QLineEdit, _line),
    (QAbstractSpinBox, _number),
    (QListWidget, _list),
    (QTreeWidget, _tree),
)
