from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QFocusEvent, QIcon
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QPushButton, QWidget

from desktop.ui.companion.mode import CompanionMode
from desktop.ui.companion.placement import LARGEST, SMALLEST, Rect, clamped, default_place, read_place
from desktop.ui.companion.window import CompanionWindow
from desktop.ui.theme import TYPE
from orchestrator.contracts.commands import MuteMicrophone, PushToTalk, Quit, Stop
from orchestrator.contracts.events import AvatarPainted, SubtitlePainted
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.views import DeviceView, MuteView, StateView, UserTextView

# The platform of the tests has no stacking of windows.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support raise")

G1, I1 = GenerationId("g-1"), IntentId("i-1")


@dataclass
class FakeTray:
    """A tray that can be looked at; implements `TrayPort`."""

    is_there: bool = True
    is_shown: bool = False
    tip: str = ""
    click: Callable[[], None] | None = None
    icons: list[int] = field(default_factory=list)

    def is_available(self) -> bool:
        return self.is_there

    def show(self, icon: QIcon, tip: str, menu: QMenu, on_click: Callable[[], None]) -> None:
        self.is_shown, self.tip, self.click = True, tip, on_click
        self.icons.append(icon.cacheKey())

    def hide(self) -> None:
        self.is_shown = False


@dataclass
class Desk:
    stage: Any
    tray: FakeTray

    @property
    def mode(self) -> CompanionMode:
        mode: CompanionMode = self.stage.window.companion
        return mode

    @property
    def companion(self) -> CompanionWindow:
        return self.mode.companion

    def look(self) -> None:
        self.mode._on_meter()


@pytest.fixture
def make_desk(make_stage: Callable[..., Any]) -> Callable[..., Desk]:
    def make(*, has_tray: bool = True, language: str = "en", theme: str = "light") -> Desk:
        tray = FakeTray(is_there=has_tray)
        stage = make_stage(language, theme, tray=tray)
        assert stage.window.companion.show_tray() is has_tray
        return Desk(stage, tray)

    return make


@pytest.fixture
def desk(make_desk: Any) -> Desk:
    made: Desk = make_desk()
    return made


# --- places -------------------------------------------------------------------------------------------------------

NUMBERS = st.integers(-4000, 4000)
SIZES = st.integers(1, 3000)
SCREENS = st.lists(
    st.builds(Rect, NUMBERS, NUMBERS, st.integers(300, 3000), st.integers(300, 3000)), min_size=1, max_size=4
)


@given(place=st.builds(Rect, NUMBERS, NUMBERS, SIZES, SIZES), there=SCREENS)
def test_wherever_it_stood_it_is_wholly_on_a_screen(place: Rect, there: list[Rect]) -> None:
    found = clamped(place, there)
    assert any(found.overlap(screen) == found.width * found.height for screen in there)
    assert SMALLEST[0] <= found.width <= LARGEST[0] and SMALLEST[1] <= found.height <= LARGEST[1]
    assert clamped(found, there) == found


def test_it_stays_on_the_screen_it_lies_on_most() -> None:
    left, right = Rect(0, 0, 1920, 1080), Rect(1920, -200, 2560, 1440)
    assert clamped(Rect(3000, 400, 320, 400), [left, right]) == Rect(3000, 400, 320, 400)
    assert clamped(Rect(1800, 100, 320, 400), [left, right]).x == 1920
    assert clamped(Rect(3000, 400, 320, 400), [left]) == Rect(1600, 400, 320, 400)
    assert default_place([left]) == Rect(1576, 656, 320, 400)


@pytest.mark.parametrize("value", [None, 3, [1, 2, 3], [1, 2, 3, "4"], [1, 2, 0, 4], [10**9, 0, 9, 9], {"x": 1}])
def test_a_place_that_can_not_be_read_is_none(value: object) -> None:
    assert read_place(value) is None


# --- window or companion ------------------------------------------------------------------------------------------


def test_companion_mode_takes_the_place_of_the_window_and_gives_it_back(desk: Desk) -> None:
    window = desk.stage.window
    window.menu.companion.trigger()
    flags = desk.companion.windowFlags()
    assert flags & Qt.WindowType.FramelessWindowHint and flags & Qt.WindowType.WindowStaysOnTopHint
    assert desk.companion.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    assert desk.companion.isVisible() and not window.isVisible()
    assert window.state()["companion"] is True
    assert desk.tray.is_shown and desk.mode.tray.companion_action.isChecked()
    desk.companion.back.click()
    assert not desk.companion.isVisible() and window.isVisible()
    assert not desk.mode.tray.companion_action.isChecked()


def test_without_a_tray_the_way_back_is_the_taskbar(make_desk: Any) -> None:
    desk = make_desk(has_tray=False)
    window = desk.stage.window
    desk.mode.turn(True)
    assert window.isMinimized() and not desk.tray.is_shown
    window.showNormal()
    window.activateWindow()
    QTest.qWait(50)
    desk.look()
    assert not desk.mode.is_on and not desk.companion.isVisible()
    desk.stage.show()
    assert "companion_no_tray" in window.notices.codes()


def test_what_is_said_stands_in_the_bubble(desk: Desk, spoken: Any) -> None:
    stage = desk.stage
    stage.show(UserTextView(utterance_id=UtteranceId("u-1"), text="hello", final=True), spoken.added())
    desk.mode.turn(True)
    stage.show(
        StateView(state="speaking"), spoken.started(100.0), UserTextView(utterance_id=None, text="x", final=True)
    )
    stage.clock.advance_to(100.6)
    desk.companion.avatar.repaint()
    desk.companion.subtitles.repaint()
    lines = desk.companion.subtitles.lines()
    assert [(line["role"], line["text"]) for line in lines] == [
        *(("user", "hello"), ("character", spoken.text), ("user", "x")),
    ]
    assert lines[1]["lit_to"] == 13 and desk.companion.bubble.isVisible()
    assert stage.painted(SubtitlePainted) and stage.painted(AvatarPainted)[-1].payload.mouth == "aa"
    desk.mode.turn(False)
    assert len(stage.window.subtitles.lines()) == 3


@pytest.mark.parametrize("is_made_first", [True, False])
def test_what_is_set_for_the_words_holds_in_the_bubble_too(desk: Desk, spoken: Any, is_made_first: bool) -> None:
    window = desk.stage.window
    desk.stage.show(UserTextView(utterance_id=UtteranceId("u-1"), text="hello " * 30, final=True))

    def look() -> tuple[int, Any]:
        return desk.companion.bubble.height(), desk.companion.subtitles.grab().toImage()

    if is_made_first:
        desk.mode.turn(True)
        before, usual = look()
    window.set_subtitles(is_shown=True, size_px=2 * TYPE.subtitle_px)
    window.set_subtitle_style(family=None, is_high_contrast=True)
    desk.mode.turn(True)
    after, large = look()
    if is_made_first:
        assert after > before and large != usual
    assert after < desk.companion.height() / 2, "the character keeps its part"
    window.set_subtitle_style(family=None, is_high_contrast=False)
    assert look()[1] != large
    window.set_subtitles(is_shown=False, size_px=TYPE.subtitle_px)
    assert not desk.companion.bubble.isVisible()
    window.set_subtitles(is_shown=True, size_px=TYPE.subtitle_px)
    assert desk.companion.bubble.isVisible()


def test_the_companion_has_the_keys_of_the_window(desk: Desk) -> None:
    outside = desk.stage.outside
    desk.stage.show(DeviceView(direction="input", device="mic", state="open"))
    desk.mode.turn(True)
    desk.look()
    QTest.keyPress(desk.companion, Qt.Key.Key_Space)
    QTest.keyRelease(desk.companion, Qt.Key.Key_Space)
    assert outside.commands[-2:] == [PushToTalk(down=True), PushToTalk(down=False)]
    QTest.keyPress(desk.companion, Qt.Key.Key_Space)
    QApplication.sendEvent(desk.companion, QFocusEvent(QEvent.Type.FocusOut))
    # A key whose release goes elsewhere is let go.
    assert outside.commands[-2:] == [PushToTalk(down=True), PushToTalk(down=False)]
    assert desk.stage.window.menu.companion in desk.companion.actions(), "Ctrl+M leads back"
    desk.stage.window.menu.companion.trigger()
    assert not desk.mode.is_on


def test_an_open_microphone_is_seen_on_the_companion_and_in_the_tray(desk: Desk) -> None:
    stage = desk.stage
    desk.mode.turn(True)
    stage.show(DeviceView(direction="input", device="mic", state="open"))
    stage.outside.level = -20.0
    desk.look()
    sign = desk.companion.microphone
    assert sign.state == "open" and sign.isVisible() and sign.meter.isVisible()
    assert desk.tray.tip == "Mynah · Microphone open"
    open_icon = desk.tray.icons[-1]
    desk.companion.mute.click()
    assert stage.outside.commands[-1] == MuteMicrophone(on=True)
    stage.show(MuteView(direction="input", on=True))
    desk.look()
    assert sign.state == "muted" and desk.tray.tip == "Mynah · Microphone muted"
    assert desk.tray.icons[-1] != open_icon and desk.mode.tray.mute_action.isChecked()


def test_the_tray_does_what_it_says(desk: Desk) -> None:
    window, tray = desk.stage.window, desk.mode.tray
    assert desk.tray.click is not None
    desk.tray.click()
    assert not window.isVisible() and tray.window_action.text() == "Show the window"
    tray.window_action.trigger()
    assert window.isVisible() and tray.window_action.text() == "Hide the window"
    tray.mute_action.trigger()
    assert desk.stage.outside.commands[-1] == MuteMicrophone(on=True)
    window.set_language("zh_CN")
    assert tray.window_action.text() == "隐藏窗口"
    tray.quit_action.trigger()
    assert Quit() in desk.stage.outside.commands and not desk.tray.is_shown


def test_click_through_can_be_taken_back_in_the_tray(desk: Desk) -> None:
    kept: list[tuple[str, object]] = []
    desk.stage.window.setting_changed.connect(lambda key, value: kept.append((key, value)))
    desk.mode.turn(True)
    desk.companion.click_through_action.trigger()
    assert desk.companion.windowFlags() & Qt.WindowType.WindowTransparentForInput
    assert desk.companion.isVisible() and desk.mode.tray.click_through_action.isChecked()
    desk.mode.tray.click_through_action.trigger()
    assert not desk.companion.windowFlags() & Qt.WindowType.WindowTransparentForInput
    assert kept == [("companion_click_through", True), ("companion_click_through", False)]


def test_it_is_dragged_and_resized_and_remembers_its_place(desk: Desk, tmp_path: Path) -> None:
    desk.mode.keep_in(tmp_path / "companion.json")
    desk.mode.turn(True)
    companion = desk.companion
    companion.put(Rect(300, 200, 320, 400))
    QTest.mousePress(companion, Qt.MouseButton.LeftButton, pos=QPoint(160, 200))
    QTest.mouseMove(companion, QPoint(110, 170))
    QTest.mouseRelease(companion, Qt.MouseButton.LeftButton, pos=QPoint(110, 170))
    moved = companion.place()
    assert (moved.x, moved.y) == (250, 170)
    QTest.keyClick(companion, Qt.Key.Key_Right)
    QTest.keyClicks(companion, "+")
    larger = companion.place()
    assert larger.width > moved.width and larger.x + larger.width // 2 == moved.x + 40 + moved.width // 2
    kept = json.loads((tmp_path / "companion.json").read_text(encoding="utf-8"))["place"]
    assert read_place(kept) == larger
    desk.mode.turn(False)
    desk.mode.turn(True)
    assert companion.place() == larger


@pytest.mark.parametrize("text", ["", "{", "[]", '{"place": [1e99, 0, 1, 1]}', '{"place": "x"}', "\x00"])
def test_a_broken_place_file_is_as_none(desk: Desk, tmp_path: Path, text: str) -> None:
    (tmp_path / "companion.json").write_text(text, encoding="utf-8")
    desk.mode.keep_in(tmp_path / "companion.json")
    desk.mode.turn(True)
    assert desk.companion.isVisible()


def test_escape_stops_and_closing_goes_back(desk: Desk) -> None:
    desk.mode.turn(True)
    desk.stage.outside.calls.clear()
    QTest.keyClick(desk.companion, Qt.Key.Key_Escape)
    assert desk.stage.outside.calls == ["player", "Stop"]
    assert desk.stage.outside.commands[-1] == Stop(by="companion")
    desk.companion.close()
    assert desk.stage.window.isVisible() and Quit() not in desk.stage.outside.commands


def test_it_shows_the_character_that_is_chosen(desk: Desk, qtbot: Any) -> None:
    desk.mode.turn(True)
    with qtbot.waitSignal(desk.stage.window.characters.shown):
        desk.stage.window.characters.show("tutu")
    for _ in range(40):
        desk.companion.avatar.repaint()
    assert desk.companion.avatar.pack.names["en"] == "Tutu"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_everything_on_it_has_a_name_and_is_reached_by_the_keyboard(make_desk: Any, language: str) -> None:
    desk = make_desk(language=language)
    desk.mode.turn(True)
    named = [w for w in desk.companion.findChildren(QWidget) if w.objectName() and w.isVisible()]
    assert len(named) > 6
    for widget in named:
        if not widget.objectName().startswith(("qt_", "microphone")):
            assert widget.accessibleName(), widget.objectName()
    for button in desk.companion.findChildren(QPushButton):
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus and button.toolTip()


def test_what_is_in_the_companion_can_be_written_down(make_stage: Callable[..., Any]) -> None:
    window = make_stage(tray=FakeTray()).window

    def shown() -> set[str]:
        return {w["objectName"] for w in window.dump()["widgets"] if w["visible"]}

    assert not any(name.startswith("companion") for name in shown())
    window.companion.turn(True)
    assert {"companionWindow", "companionBubble", "companionControls"} & shown() >= {"companionWindow"}
    written = {w["objectName"]: w for w in window.dump()["widgets"]}
    inside = window.companion.companion.findChildren(QPushButton)
    assert inside and {button.objectName() for button in inside} <= set(written)
    for button in inside:
        assert written[button.objectName()]["accessibleName"]
