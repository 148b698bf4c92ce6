"""Every widget of the window, at every size of letters: named, reachable, readable, whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAction, QFontMetrics, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QWidget,
)
from rigs.pixels import pixels
from rigs.surface_parts import fill_window

from desktop.ui.avatar.pose import STATES
from desktop.ui.theme import DARK, LIGHT, Palette, Theme, contrast, font_scale, set_font_scale, stylesheet
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.views import (
    NoticeView,
    StateView,
)

G1, I1 = GenerationId("g-1"), IntentId("i-1")
LOOKS = [(language, theme) for language in ("en", "zh_CN") for theme in ("light", "dark")]


@pytest.fixture(params=[1.0, 2.0], ids=["100%", "200%"])
def scale(request: Any, qapp: object) -> Iterator[float]:
    set_font_scale(request.param)
    yield request.param
    set_font_scale(1.0)


def shown(window: QWidget) -> list[QWidget]:
    return [w for w in [window, *window.findChildren(QWidget)] if w.isVisible() and not _is_inside(w)]


def _is_inside(widget: QWidget) -> bool:
    """Whether the widget is a part of the toolkit's own: a viewport, the tool button in a text field."""
    return widget.objectName().startswith("qt_") or isinstance(widget.parent(), (QAbstractScrollArea, QLineEdit))


def is_a_thing(widget: QWidget) -> bool:
    """Whether a reader should be able to name it: it says something or does something."""
    return bool(widget.objectName()) and widget.objectName() not in ("centralPane", "wordsPane")


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_widget_has_an_accessible_name(make_stage: Callable[..., Any], language: str) -> None:
    stage = make_stage(language)
    fill_window(stage)
    things = [w for w in shown(stage.window) if is_a_thing(w)]
    assert len(things) > 20
    nameless = [
        w.objectName()
        for w in things
        if not (w.accessibleName() or w.windowTitle() or (w.text() if isinstance(w, (QLabel, QAbstractButton)) else ""))
    ]
    assert nameless == []


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_action_has_words_and_every_menu_its_name(make_stage: Callable[..., Any], language: str) -> None:
    window = make_stage(language).window
    for action in window.findChildren(QAction):
        assert action.text() or action.isSeparator() or action.menu() is not None, action.objectName()
    for menu in window.findChildren(QMenu):
        assert menu.objectName()


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_signs_have_contrast(palette: Palette) -> None:
    for ink in ("ink", "muted", "primary", "danger", "warning", "good"):
        for ground in ("background", "surface", "raised"):
            assert contrast(getattr(palette, ink), getattr(palette, ground)) >= 4.5, (ink, ground)
    for ink, ground in (("on_primary", "primary"), ("on_highlight", "highlight"), ("background", "danger")):
        assert contrast(getattr(palette, ink), getattr(palette, ground)) >= 4.5
    for ground in ("background", "surface"):
        # Borders of controls are signs, not texts.
        assert contrast(palette.outline, getattr(palette, ground)) >= 3.0


@pytest.mark.parametrize(("language", "theme"), LOOKS)
def test_painted_texts_have_contrast(make_stage: Callable[..., Any], language: str, theme: str) -> None:
    """Measured in the picture: the ink that differs most from the ground of a label."""
    stage = make_stage(language, theme)
    fill_window(stage)
    checked = 0
    whole = stage.window.grab().toImage()
    for widget in shown(stage.window):
        if not isinstance(widget, (QLabel, QPushButton)) or not widget.text() or not widget.isEnabled():
            continue
        place = QRect(widget.mapTo(stage.window, QPoint(0, 0)), widget.size())
        assert picture_contrast(whole.copy(place)) >= 4.5, widget.objectName()
        checked += 1
    assert checked >= 5


def picture_contrast(image: QImage) -> float:
    found = pixels(image).reshape(-1, 3)
    names = [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in {tuple(int(v) for v in p) for p in found}]
    ground = max(
        names, key=lambda name: int((found == [int(name[i : i + 2], 16) for i in (1, 3, 5)]).all(axis=1).sum())
    )
    return max(contrast(ground, name) for name in names)


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh_CN", "dark")])
def test_nothing_is_cut_off(make_stage: Callable[..., Any], scale: float, language: str, theme: str) -> None:
    stage = make_stage(language, theme)
    window = stage.window
    assert font_scale() == scale
    fill_window(stage)
    for state in STATES:
        stage.show(StateView(state=state))
        for widget in shown(window):
            assert_whole(widget, window)


def assert_whole(widget: QWidget, window: QWidget) -> None:
    corner = widget.mapTo(window, widget.rect().topLeft())
    assert corner.x() >= 0 and corner.x() + widget.width() <= window.width(), widget.objectName()
    assert corner.y() >= 0 and corner.y() + widget.height() <= window.height(), widget.objectName()
    if not isinstance(widget, (QLabel, QPushButton)) or not widget.text():
        return
    metrics = QFontMetrics(widget.font())
    room = widget.contentsRect()
    if isinstance(widget, QLabel) and widget.wordWrap():
        flags = int(Qt.TextFlag.TextWordWrap)
        needed = metrics.boundingRect(0, 0, room.width(), 10_000, flags, widget.text())
        assert needed.height() <= widget.height() + 1, widget.objectName()
        return
    icon = widget.iconSize().width() if isinstance(widget, QPushButton) and not widget.icon().isNull() else 0
    assert metrics.horizontalAdvance(widget.text()) + icon <= widget.width() + 1, widget.objectName()
    assert metrics.height() <= widget.height() + 1, widget.objectName()


def test_tab_reaches_every_control_and_comes_round(stage: Any) -> None:
    fill_window(stage)
    window = stage.window
    window.activateWindow()
    wanted = {w for w in shown(window) if isinstance(w, (QAbstractButton, QLineEdit)) and w.isEnabled()}
    window.centralWidget().setFocus()
    reached: set[QWidget] = set()
    for _ in range(40):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        found = QApplication.focusWidget()
        if found is not None:
            reached.add(found)
    assert {w.objectName() for w in wanted - reached} == set()


def test_a_focused_control_looks_focused(stage: Any) -> None:
    window = stage.window
    window.activateWindow()
    for button in (window.controls.stop, window.controls.send, window.controls.talk, window.menu_button):
        window.controls.field.setFocus()
        before = button.grab().toImage()
        button.setFocus(Qt.FocusReason.TabFocusReason)
        assert button.hasFocus() and button.grab().toImage() != before, button.objectName()


def test_signs_differ_without_their_colour(stage: Any) -> None:
    """State, notice and microphone, as a person sees them to whom all colours are grey."""

    def grey(image: QImage) -> bytes:
        flat = image.convertToFormat(QImage.Format.Format_Alpha8)
        return bytes(flat.constBits())

    window = stage.window
    icons = []
    for state in ("listening", "thinking", "speaking", "interrupted", "muted", "error"):
        stage.show(StateView(state=state))
        icons.append(grey(window.state_line._icon.pixmap().toImage()))
    assert len(set(icons)) == len(icons)
    icons = []
    for severity in ("info", "warning", "error"):
        stage.show(NoticeView(code=f"x_{severity}", text=severity, severity=severity))
        icons.append(grey(window.notices._icon.pixmap().toImage()))
    assert len(set(icons)) == 3
    icons = []
    for state in ("open", "muted"):
        window.microphone.show_state(state)
        icons.append(grey(window.microphone._icon.pixmap().toImage()))
    assert len(set(icons)) == 2


def test_less_motion_paints_the_same_picture_again(make_stage: Callable[..., Any]) -> None:
    stage = make_stage(reduced_motion=True)
    for state in ("thinking", "asleep", "listening", "interrupted"):
        stage.show(StateView(state=state))
        stage.at(stage.clock.monotonic_s() + 0.5)
        one = stage.window.avatar.grab().toImage()
        stage.at(stage.clock.monotonic_s() + 0.02)
        assert stage.window.avatar.grab().toImage() == one, state
        assert stage.window.avatar.frame_interval_s(stage.clock.monotonic_s() + 5) >= 0.1


def test_the_style_grows_with_the_letters(qapp: object) -> None:
    small = stylesheet(Theme("light").palette)
    set_font_scale(2.0)
    try:
        assert "font-size: 30px" in stylesheet(Theme("light").palette) and "font-size: 30px" not in small
    finally:
        set_font_scale(1.0)
