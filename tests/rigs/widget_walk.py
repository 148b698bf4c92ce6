"""What can be wrong with a widget that is in sight: words cut, pale or untranslated, no name, no way to it.

`faults` looks at everything below a widget and returns what is wrong, a line each. It measures: the room that the style
leaves for a text against its font, and the pixels that were painted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QGuiApplication, QImage, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QGraphicsView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QSizeGrip,
    QStyle,
    QStyleOptionSpinBox,
    QTabBar,
    QTabWidget,
    QTextEdit,
    QToolButton,
    QTreeWidget,
    QWidget,
)
from rigs.pixels import pixels
from rigs.widget_texts import LETTERS, Words, pieces

LEAST_CONTRAST = 4.5
LEAST_CONTRAST_OF_SIGNS = 3.0
LEAST_TARGET_PX = 24
_LARGE_PX, _LARGE_BOLD_PX = 24, 18.66
"""From here on letters count as large (WCAG 2, 1.4.3): 18 pt, or 14 pt and bold."""
_TIP_PX = 720
_INTERACTIVE = (QAbstractButton, QLineEdit, QComboBox, QAbstractSpinBox, QAbstractItemView, QTextEdit, QPlainTextEdit,
                QTabBar, QGraphicsView)  # fmt: skip
_OF_OTHERS = {
    "persona_name",
    "persona_greeting",
    "persona_style",
    "persona_about",
    "persona_example",
    "appName",
    "roomFindings",
}
"""Widgets whose words come from the character's file, or from a report that has them in both languages."""


# --- which widgets count --------------------------------------------------------------------------------------------


def shown(root: QWidget) -> list[QWidget]:
    """Return `root` and everything in sight below it, but for the parts that the toolkit's own controls are made of."""
    return [w for w in [root, *root.findChildren(QWidget)] if w.isVisible() and not w.size().isEmpty() and _counts(w)]


def _counts(widget: QWidget) -> bool:
    parent = widget.parentWidget()
    if isinstance(widget, QTabBar):
        return True
    if widget.objectName().startswith("qt_") or isinstance(parent, (QLineEdit, QAbstractSpinBox, QComboBox, QTabBar)):
        return False
    if isinstance(parent, QAbstractScrollArea) and widget is parent.viewport():
        return False
    return not (isinstance(widget, QHeaderView) or type(widget).__name__ == "QComboBoxPrivateContainer")


def is_interactive(widget: QWidget) -> bool:
    """Whether a person does something with it."""
    if isinstance(widget, _INTERACTIVE):
        return True
    is_holder = isinstance(widget, (QAbstractScrollArea, QTabWidget)) or widget.objectName() == "centralPane"
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and not is_holder


# --- the walk -------------------------------------------------------------------------------------------------------


def faults(root: QWidget, words: Words, *, is_painted: bool = True) -> list[str]:
    """Return what is wrong below `root`; without `is_painted` its pixels are not looked at."""
    top = root.window()
    widgets = shown(root)
    found: list[str] = []
    picture = pixels(root.grab().toImage()) if is_painted else None
    corner = root.mapTo(top, QPoint(0, 0))
    places: list[tuple[QWidget, QRect]] = []
    for widget in widgets:
        visible, complaint = _clip(widget, top)
        name = f"{type(widget).__name__} {widget.objectName() or '?'}"
        if complaint:
            found.append(f"unreachable: {name}: {complaint}")
        found += [
            f"{fault[0]}: {name}: {fault[1]}" for fault in _of_texts(widget, top, corner, visible, words, picture)
        ]
        found += [f"{fault[0]}: {name}: {fault[1]}" for fault in _of_controls(widget, words)]
        if picture is not None and isinstance(widget, QAbstractButton) and _is_sign(widget):
            reached = picture_contrast(_crop(picture, _centre(widget, top).intersected(visible).translated(-corner)))
            if reached < LEAST_CONTRAST_OF_SIGNS:
                found.append(f"pale: {name}: its sign has {reached:.1f}")
        if not visible.isEmpty() and (is_interactive(widget) or isinstance(widget, QLabel)):
            places.append((widget, visible))
    return found + _overlaps(places)


def _of_texts(
    widget: QWidget, top: QWidget, corner: QPoint, visible: QRect, words: Words, picture: npt.NDArray[np.int16] | None
) -> Iterator[tuple[str, str]]:
    offset = widget.mapTo(top, QPoint(0, 0))
    for piece in pieces(widget):
        short = piece.text if len(piece.text) < 50 else piece.text[:49] + "…"
        # Hinted letters may reach a pixel past what is laid out for them.
        is_cut = piece.needed.width() > piece.room.width() + 1 or piece.needed.height() > piece.room.height() + 2
        if is_cut and not piece.is_whole_elsewhere:
            size, room = piece.needed, piece.room
            yield "cut", f"{short!r} needs {size.width()}×{size.height()} of {room.width()}×{room.height()}"
        if not piece.is_data and widget.objectName() not in _OF_OTHERS and not words.explain(piece.text):
            yield "untranslated", repr(short)
        place = piece.room.translated(offset)
        if picture is None or not visible.contains(place) or not LETTERS.search(piece.text):
            continue
        is_bold = piece.font.weight() >= QFont.Weight.DemiBold
        is_large = QFontMetrics(piece.font).height() > 0 and _px(piece.font) >= (
            _LARGE_BOLD_PX if is_bold else _LARGE_PX
        )
        wanted = LEAST_CONTRAST_OF_SIGNS if is_large or not piece.is_enabled else LEAST_CONTRAST
        reached = picture_contrast(_crop(picture, place.translated(-corner)))
        if reached < wanted:
            yield "pale", f"{short!r} has {reached:.1f} of {wanted}"


def _px(font: QFont) -> float:
    return float(font.pixelSize() if font.pixelSize() > 0 else QFontMetrics(font).height() * 0.75)


def _of_controls(widget: QWidget, words: Words) -> Iterator[tuple[str, str]]:
    tip = widget.toolTip()
    if tip and not words.explain(tip):
        yield "untranslated", f"tip {tip[:50]!r}"
    if (
        tip
        and max(QFontMetrics(widget.font()).horizontalAdvance(line) for line in tip.split("\n")) > _TIP_PX * _scale()
    ):
        yield "cut", f"tip {tip[:50]!r} is one long line"
    if not is_interactive(widget) and not isinstance(widget, QSizeGrip):
        return
    text = widget.text() if isinstance(widget, QAbstractButton) else ""
    name = widget.accessibleName() or text
    if not name:
        yield "nameless", "nothing for a reader to say"
    elif not words.explain(name):
        yield "untranslated", f"name {name[:50]!r}"
    if isinstance(widget, QMenu) or not widget.isEnabled():
        return
    if min(widget.width(), widget.height()) < LEAST_TARGET_PX:
        yield "small", f"{widget.width()}×{widget.height()}"
    for part, size in _targets(widget):
        if min(size.width(), size.height()) < LEAST_TARGET_PX:
            yield "small", f"{part} {size.width()}×{size.height()}"
    if isinstance(widget, QTabBar):
        hidden = [b for b in widget.findChildren(QToolButton) if b.isVisible()]
        if hidden:
            yield "cut", "not all tabs are in sight"


def _scale() -> float:
    font = QGuiApplication.font()
    return max(1.0, font.pixelSize() / 15)


def _targets(widget: QWidget) -> Iterator[tuple[str, QSize]]:
    if isinstance(widget, QAbstractSpinBox) and widget.buttonSymbols() != QAbstractSpinBox.ButtonSymbols.NoButtons:
        option = QStyleOptionSpinBox()
        widget.initStyleOption(option)
        for part in (QStyle.SubControl.SC_SpinBoxUp, QStyle.SubControl.SC_SpinBoxDown):
            control = QStyle.ComplexControl.CC_SpinBox
            yield part.name, widget.style().subControlRect(control, option, part, widget).size()
    elif isinstance(widget, QTabBar):
        for index in range(widget.count()):
            yield f"tab {index}", widget.tabRect(index).size()
    elif isinstance(widget, QTreeWidget) and widget.topLevelItemCount():
        item = widget.topLevelItem(0)
        if item is not None:
            yield "row", QSize(LEAST_TARGET_PX, widget.visualItemRect(item).height())


def _clip(widget: QWidget, top: QWidget) -> tuple[QRect, str]:
    """Return what of `widget` is in sight, in pixels of `top`, and a complaint if the rest can't be scrolled to."""
    place = QRect(widget.mapTo(top, QPoint(0, 0)), widget.size())
    visible, complaint = QRect(place), ""
    walker = widget
    while walker is not top:
        parent = walker.parentWidget()
        if parent is None or walker.isWindow():
            break
        area = parent.parentWidget()
        room = QRect(parent.mapTo(top, QPoint(0, 0)), parent.size())
        is_view = isinstance(area, QAbstractScrollArea) and parent is area.viewport()
        if not room.contains(visible):
            is_across = visible.left() < room.left() or visible.right() > room.right()
            is_along = visible.top() < room.top() or visible.bottom() > room.bottom()
            goes_across = is_view and area.horizontalScrollBar().maximum() > 0
            goes_along = is_view and area.verticalScrollBar().maximum() > 0
            if (is_across and not goes_across) or (is_along and not goes_along):
                complaint = complaint or f"{visible.getRect()} is beyond {parent.objectName() or 'its parent'}"
            visible = visible.intersected(room)
            if visible.isEmpty():
                # It can be scrolled to, or there is a complaint already.
                break
        walker = parent
    return visible, complaint


def _overlaps(places: list[tuple[QWidget, QRect]]) -> list[str]:
    found = []
    for number, (one, rect) in enumerate(places):
        for other, another in places[number + 1 :]:
            both = rect.intersected(another)
            if both.width() > 1 and both.height() > 1 and not one.isAncestorOf(other) and not other.isAncestorOf(one):
                found.append(f"overlap: {one.objectName() or one} and {other.objectName() or other}")
    return found


def crowded_lists(root: QWidget) -> list[str]:
    """Return the choices that the list of a box, once open, would not show whole."""
    found = []
    for box in root.findChildren(QComboBox):
        if box.isVisible() and box.count():
            box.showPopup()
            view = box.view()
            needed = view.sizeHintForColumn(0)
            if needed > view.viewport().width() + 1:
                found.append(f"cut: list of {box.objectName()} needs {needed} of {view.viewport().width()}")
            box.hidePopup()
    return found


# --- the keyboard ---------------------------------------------------------------------------------------------------


def lost_by_keys(root: QWidget, most: int = 400) -> list[str]:
    """Press the tab key until it comes round.

    Returns the controls below `root` that never had the keyboard, and those that look the same with it and without.
    """
    top = root.window()
    for _ in range(5):
        top.activateWindow()
        QApplication.processEvents()
    wanted = {w for w in shown(root) if is_interactive(w) and w.isEnabled() and not isinstance(w, QMenu)}
    start = next((w for w in shown(root) if w in wanted), None)
    if start is None:
        return []
    start.setFocus(Qt.FocusReason.TabFocusReason)
    reached: set[QWidget] = set()
    found: list[str] = []
    for _ in range(most):
        focus = QApplication.focusWidget()
        if focus is None:
            break
        if focus is start and len(reached) > 1:
            break
        reached.add(focus)
        with_keys = focus.grab().toImage() if focus in wanted else None
        is_text = isinstance(focus, (QPlainTextEdit, QTextEdit)) and not focus.tabChangesFocus()
        # In a text that is written Tab indents; F6 is the way on, and out.
        key = Qt.Key.Key_F6 if is_text and not focus.isReadOnly() else Qt.Key.Key_Tab
        QTest.keyClick(focus, key)
        if QApplication.focusWidget() is focus:
            QApplication.sendEvent(focus, QKeyEvent(QKeyEvent.Type.KeyPress, Qt.Key.Key_F6, Qt.KeyboardModifier(0)))
            if QApplication.focusWidget() is focus:
                break
        if with_keys is not None and focus.isVisible() and focus.grab().toImage() == with_keys:
            found.append(f"unseen focus: {type(focus).__name__} {focus.objectName()}")
    return found + [f"no way by keys: {type(w).__name__} {w.objectName()}" for w in wanted - reached if w.isVisible()]


# --- pixels ---------------------------------------------------------------------------------------------------------


def _is_sign(button: QAbstractButton) -> bool:
    return not button.text() and not button.icon().isNull() and button.isEnabled()


def _centre(button: QAbstractButton, top: QWidget) -> QRect:
    room = QRect(QPoint(0, 0), button.iconSize())
    room.moveCenter(button.rect().center())
    return room.translated(button.mapTo(top, QPoint(0, 0)))


def _crop(picture: npt.NDArray[np.int16], rect: QRect) -> npt.NDArray[np.int16]:
    left, top = max(0, rect.left()), max(0, rect.top())
    return picture[top : rect.bottom() + 1, left : rect.right() + 1]


def picture_contrast(picture: npt.NDArray[np.int16] | QImage) -> float:
    """Return the contrast of the commonest colour with the one that differs most from it; 21 where nothing is."""
    found = pixels(picture) if isinstance(picture, QImage) else picture
    if found.size == 0:
        return 21.0
    flat = found.reshape(-1, 3).astype(np.int64)
    codes, counts = np.unique((flat[:, 0] << 16) | (flat[:, 1] << 8) | flat[:, 2], return_counts=True)
    levels = np.stack([codes >> 16, (codes >> 8) & 255, codes & 255], axis=1) / 255.0
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    light = linear @ np.array([0.2126, 0.7152, 0.0722])
    ground = light[int(counts.argmax())]
    high, low = np.maximum(light, ground), np.minimum(light, ground)
    return float(((high + 0.05) / (low + 0.05)).max())
