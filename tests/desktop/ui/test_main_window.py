from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QPushButton, QWidget

from desktop.ui.avatar.pose import STATES
from desktop.ui.i18n.translator import CATALOGUES, LANGUAGES, Translator, best_language
from desktop.ui.theme import DARK, LIGHT, Palette, contrast
from orchestrator.contracts.commands import (
    MuteMicrophone,
    MuteVoice,
    NewSession,
    PushToTalk,
    Quit,
    SendText,
    Stop,
)
from orchestrator.contracts.views import (
    DeviceView,
    MuteView,
    NoticeView,
    StateView,
)


def texts(window: QWidget) -> dict[str, str]:
    """Every text a user can see or be read, by where it is."""
    found: dict[str, str] = {}
    for widget in [window, *window.findChildren(QWidget)]:
        name = widget.objectName()
        if not name or name.startswith("qt_"):
            continue
        found[f"{name}.accessible"] = widget.accessibleName()
        found[f"{name}.tip"] = widget.toolTip()
        if isinstance(widget, (QLabel, QPushButton)):
            found[f"{name}.text"] = widget.text()
        elif isinstance(widget, QLineEdit):
            found[f"{name}.placeholder"] = widget.placeholderText()
        elif isinstance(widget, QMenu):
            found[f"{name}.title"] = widget.title()
    for action in window.findChildren(QAction):
        if action.objectName():
            found[f"{action.objectName()}.action"] = action.text()
    return {key: text for key, text in found.items() if text}


# --- state line, notices, devices ---------------------------------------------------------------------------------


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_every_state_has_its_words_and_its_icon(make_stage: Callable[..., Any], language: str) -> None:
    stage = make_stage(language)
    words, icons = set(), set()
    for state in STATES:
        stage.show(StateView(state=state))
        words.add(stage.window.state_line.text())
        icons.add(bytes(stage.window.state_line._icon.pixmap().toImage().constBits()))
        assert stage.window.state()["state"] == stage.window.avatar.state == state
    assert len(words) == len(STATES)
    assert len(icons) >= len(STATES) - 1


def test_starting_tells_what_it_waits_for(stage: Any) -> None:
    assert stage.window.state()["state"] == "starting"
    stage.show(StateView(state="starting", detail="recogniser"))
    assert stage.window.state_line.text() == "Waking up · Loading speech recognition"
    stage.show(StateView(state="starting", detail="12 MB of 145 MB"))
    assert stage.window.state_line.text() == "Waking up · 12 MB of 145 MB"


def test_without_a_sound_card_the_window_says_so_and_typing_works(stage: Any) -> None:
    for direction in ("input", "output"):
        stage.show(DeviceView(direction=direction, device=None, state="missing", reason="no device"))
    window = stage.window
    assert window.notices.isVisible()
    assert window.notices.codes() == ["no_audio"]
    assert "No sound card" in window.notices.text()
    assert window.microphone.state == "missing"
    assert not window.controls.talk.isEnabled()
    QTest.keyClicks(window.controls.field, "hello")
    QTest.keyClick(window.controls.field, Qt.Key.Key_Return)
    assert stage.outside.commands == [SendText(text="hello")]


def test_a_microphone_that_comes_back_takes_the_notice_away(stage: Any) -> None:
    stage.show(DeviceView(direction="input", device="USB", state="opened"))
    stage.show(DeviceView(direction="input", device="USB", state="lost"))
    assert stage.window.notices.codes() == ["microphone_lost"]
    stage.show(DeviceView(direction="input", device="Built-in", state="replaced"))
    assert stage.window.notices.codes() == ["device_changed"]
    assert "Built-in" in stage.window.notices.text()


def test_what_was_never_there_is_missing_and_not_lost(stage: Any) -> None:
    stage.show(DeviceView(direction="output", device=None, state="lost"))
    assert stage.window.notices.codes() == ["no_output"]


def test_a_notice_takes_no_room_from_the_stage(stage: Any) -> None:
    before = stage.window.avatar.size()
    stage.show(NoticeView(code="x", text="A rather long explanation of what went wrong. " * 5, severity="error"))
    QApplication.processEvents()
    assert stage.window.notices.isVisible()
    assert stage.window.avatar.size() == before


def test_a_long_detail_does_not_widen_the_window(stage: Any) -> None:
    before = stage.window.minimumSizeHint().width()
    stage.show(StateView(state="error", detail="The model folder is missing. " * 12))
    assert stage.window.minimumSizeHint().width() == before
    assert len(stage.window.state_line.text()) < 60
    assert stage.window.state_line.toolTip().endswith("missing. ")


def test_the_gravest_notice_shows_first_and_closing_shows_the_next(stage: Any) -> None:
    window = stage.window
    stage.show(NoticeView(code="made_up", text="A detail.", severity="info"))
    stage.show(NoticeView(code="llm_unreachable", text="raw words", severity="error"))
    stage.show(NoticeView(code="other", text="Another detail.", severity="info"))
    assert window.notices.text() == CATALOGUES["en"]["notice.llm_unreachable"]
    close = window.findChild(QPushButton, "noticeCloseButton")
    close.click()
    assert window.notices.text() == "Another detail."
    close.click()
    close.click()
    assert not window.notices.isVisible()


def test_an_open_microphone_has_a_visible_sign(stage: Any) -> None:
    window = stage.window
    stage.show(DeviceView(direction="input", device="USB", state="opened"))
    window._on_frame(200.0)
    assert window.microphone.state == "closed"
    assert not window.microphone.meter.isVisible()
    stage.outside.level = -12.0
    window._on_frame(201.0)
    assert window.microphone.state == "open"
    assert window.microphone.meter.isVisible()
    assert window.microphone.meter.level == pytest.approx(0.8)
    stage.show(MuteView(direction="input", on=True))
    assert window.microphone.state == "muted"
    assert window.controls.mute_microphone.isChecked()
    assert stage.outside.commands == []


def test_the_meter_rises_at_once_and_falls_slowly(stage: Any) -> None:
    meter = stage.window.microphone.meter
    meter.show_level(-6.0, 10.0)
    assert meter.level == pytest.approx(0.9)
    meter.show_level(-90.0, 10.1)
    assert 0.5 < meter.level < 0.9
    meter.show_level(None, 12.0)
    assert meter.level == 0.0


# --- commands -----------------------------------------------------------------------------------------------------


def test_stop_silences_the_player_before_the_core_hears_of_it(stage: Any) -> None:
    stage.window.controls.stop.click()
    assert stage.outside.calls == ["player", "Stop"]
    assert stage.outside.commands == [Stop(by="button")]


def test_escape_stops_from_everywhere(stage: Any) -> None:
    stage.window.controls.field.setFocus()
    QTest.keyClick(stage.window.controls.field, Qt.Key.Key_Escape)
    QTest.keyClick(stage.window.centralWidget(), Qt.Key.Key_Escape)
    assert stage.outside.calls == ["player", "Stop"] * 2
    assert stage.outside.commands == [Stop(by="key")] * 2


def test_a_refused_line_stays_in_the_field_and_is_explained(stage: Any) -> None:
    stage.outside.accepts = False
    field = stage.window.controls.field
    field.setText("  what time is it  ")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert field.text() == "  what time is it  "
    assert stage.window.notices.codes() == ["not_ready"]
    stage.outside.accepts = True
    stage.show(StateView(state="idle"))
    assert stage.window.notices.codes() == []
    stage.window.controls.send.click()
    assert stage.outside.commands == [SendText(text="what time is it")]
    assert field.text() == ""


def test_an_empty_line_is_not_sent(stage: Any) -> None:
    stage.window.controls.field.setText("   ")
    QTest.keyClick(stage.window.controls.field, Qt.Key.Key_Return)
    assert stage.outside.commands == []


def focus(stage: Any, widget: QWidget) -> None:
    stage.window.activateWindow()
    widget.setFocus()
    QApplication.processEvents()
    assert QApplication.focusWidget() is widget


def test_the_space_bar_talks_while_it_is_held(stage: Any) -> None:
    pane = stage.window.centralWidget()
    focus(stage, pane)
    QTest.keyPress(pane, Qt.Key.Key_Space)
    assert stage.window.controls.talk.isDown()
    QTest.keyPress(pane, Qt.Key.Key_Space)
    QTest.keyRelease(pane, Qt.Key.Key_Space)
    assert stage.outside.commands == [PushToTalk(down=True), PushToTalk(down=False)]
    assert not stage.window.controls.talk.isDown()


def test_the_space_bar_is_a_space_in_the_text_field(stage: Any) -> None:
    field = stage.window.controls.field
    focus(stage, field)
    QTest.keyClicks(field, "a b")
    assert field.text() == "a b"
    assert stage.outside.commands == []


def test_talking_ends_when_the_window_loses_the_keyboard(stage: Any) -> None:
    pane = stage.window.centralWidget()
    focus(stage, pane)
    QTest.keyPress(pane, Qt.Key.Key_Space)
    other = QWidget()
    other.show()
    other.activateWindow()
    QApplication.processEvents()
    QApplication.sendEvent(stage.window, QEvent(QEvent.Type.ActivationChange))
    assert stage.outside.commands == [PushToTalk(down=True), PushToTalk(down=False)]
    other.close()


def test_the_talk_button_talks_while_it_is_held(stage: Any) -> None:
    QTest.mousePress(stage.window.controls.talk, Qt.MouseButton.LeftButton)
    assert stage.outside.commands == [PushToTalk(down=True)]
    QTest.mouseRelease(stage.window.controls.talk, Qt.MouseButton.LeftButton)
    assert stage.outside.commands == [PushToTalk(down=True), PushToTalk(down=False)]
    assert QApplication.focusWidget() is not stage.window.controls.talk


def test_typing_anywhere_goes_to_the_text_field(stage: Any) -> None:
    pane = stage.window.centralWidget()
    focus(stage, pane)
    QTest.keyClick(pane, "h")
    assert stage.window.controls.field.text() == "h"
    assert QApplication.focusWidget() is stage.window.controls.field


def test_mute_buttons_ask_and_follow_what_others_did(stage: Any) -> None:
    controls = stage.window.controls
    controls.mute_microphone.click()
    controls.mute_voice.click()
    controls.mute_voice.click()
    assert stage.outside.commands == [MuteMicrophone(on=True), MuteVoice(on=True), MuteVoice(on=False)]
    stage.outside.commands.clear()
    stage.show(MuteView(direction="output", on=True), MuteView(direction="input", on=False))
    assert (controls.mute_voice.isChecked(), controls.mute_microphone.isChecked()) == (True, False)
    assert controls.mute_voice.toolTip() == "Unmute the voice"
    assert stage.outside.commands == []


def test_a_refused_mute_is_not_shown_as_done(stage: Any) -> None:
    stage.outside.accepts = False
    stage.window.controls.mute_voice.click()
    assert not stage.window.controls.mute_voice.isChecked()
    assert stage.window.notices.codes() == ["refused"]


def test_the_menu_asks_for_a_new_conversation(stage: Any) -> None:
    stage.window.findChild(QAction, "newSessionAction").trigger()
    assert stage.outside.commands == [NewSession()]


def test_closing_the_window_asks_the_program_to_end(stage: Any, qtbot: Any) -> None:
    with qtbot.waitSignal(stage.window.closed, timeout=1000):
        stage.window.close()
    assert stage.outside.commands == [Quit()]


# --- language and appearance --------------------------------------------------------------------------------------


def test_both_languages_say_the_same_things() -> None:
    english, chinese = CATALOGUES["en"], CATALOGUES["zh_CN"]
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[key])), key
        assert text.strip() and chinese[key].strip()


def test_a_language_switch_changes_every_text(stage: Any) -> None:
    window = stage.window
    changed: list[tuple[str, object]] = []
    window.setting_changed.connect(lambda key, value: changed.append((key, value)))
    stage.show(
        StateView(state="thinking"),
        NoticeView(code="tts_failed", text="", severity="error"),
        MuteView(direction="output", on=True),
    )
    before = texts(window)
    window.findChild(QAction, "languageAction_zh_CN").trigger()
    after = texts(window)
    assert changed == [("language", "zh_CN")]
    assert before.keys() == after.keys()
    same_in_both = {"Mynah", *LANGUAGES.values()}
    left = {key: text for key, text in after.items() if text == before[key] and text not in same_in_both}
    assert left == {}
    own_names = {f"languageAction_{code}.action" for code in LANGUAGES}
    latin = {key: text for key, text in after.items() if re.search(r"[a-z]{3}", text) and key not in own_names}
    assert set(latin.values()) <= {"Mynah", "立即安静（Esc）", "立刻安静（Esc）"}
    window.findChild(QAction, "languageAction_en").trigger()
    assert texts(window) == before
    assert window.translator.missing == set()


def test_a_text_that_is_missing_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    translator = Translator("en")
    assert translator.text("no.such.key") == "no.such.key"
    assert translator.missing == {"no.such.key"}
    assert "no.such.key" in caplog.text


@pytest.mark.parametrize(
    ("wanted", "found"), [("zh", "zh_CN"), ("zh-CN", "zh_CN"), ("zh_TW", "zh_CN"), ("en-GB", "en"), ("fr", "en")]
)
def test_the_nearest_language_is_used(wanted: str, found: str) -> None:
    assert best_language(wanted) == found


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_colour_has_contrast(palette: Palette) -> None:
    grounds = (palette.background, palette.surface, palette.raised)
    for name in ("ink", "muted", "danger", "warning", "good", "primary"):
        for ground in grounds:
            assert contrast(getattr(palette, name), ground) >= 4.5, (name, ground)
    assert contrast(palette.on_primary, palette.primary) >= 4.5
    assert contrast(palette.on_highlight, palette.highlight) >= 4.5
    assert contrast(palette.outline, palette.background) >= 3.0


def test_the_theme_switches_live(stage: Any) -> None:
    window = stage.window
    light = window.grab().toImage().pixelColor(4, 400)
    window.findChild(QAction, "themeAction_dark").trigger()
    dark = window.grab().toImage().pixelColor(4, 400)
    assert (light.name(), dark.name()) == (LIGHT.background, DARK.background)


@pytest.mark.parametrize("language", list(LANGUAGES))
@pytest.mark.parametrize("size", [(512, 544), (760, 736), (1400, 900)])
def test_texts_fit_their_widgets(make_stage: Callable[..., Any], language: str, size: tuple[int, int]) -> None:
    stage = make_stage(language)
    stage.outside.level = -20.0
    stage.window.resize(*size)
    stage.show(NoticeView(code="no_audio", text="", severity="warning"))
    stage.window._on_frame(200.0)
    QApplication.processEvents()
    for widget in [*stage.window.findChildren(QLabel), *stage.window.findChildren(QPushButton)]:
        if not widget.isVisible() or not widget.objectName() or not widget.text():
            continue
        if isinstance(widget, QLabel) and widget.wordWrap():
            assert widget.height() >= widget.heightForWidth(widget.width()), widget.objectName()
        else:
            assert widget.width() >= widget.sizeHint().width(), widget.objectName()
    assert stage.window.controls.field.width() >= 120


# --- dump and counters --------------------------------------------------------------------------------------------


def test_the_dump_tells_where_every_control_is(stage: Any) -> None:
    dump = stage.window.dump()
    by_name = {item["objectName"]: item for item in dump["widgets"]}
    assert set(by_name) >= {
        *("mainWindow", "avatar", "subtitles", "statePill", "stateText", "microphoneSign", "microphoneMeter"),
        *("messageField", "sendButton", "talkButton", "stopButton", "muteMicrophoneButton", "muteVoiceButton"),
        *("menuButton", "noticeBar"),
    }
    stop = by_name["stopButton"]
    assert (stop["role"], stop["text"], stop["accessibleName"]) == ("Button", "Stop", "Stop")
    assert stop["visible"] and stop["enabled"]
    x, y, width, height = stop["rect"]
    assert width > 30 and height > 30
    assert QApplication.widgetAt(x + width // 2, y + height // 2) is stage.window.controls.stop
    interactive = [w for w in dump["widgets"] if w["role"] in ("Button", "EditableText", "CheckBox", "ButtonMenu")]
    assert interactive and all(item["accessibleName"] for item in interactive)
    assert not by_name["noticeBar"]["visible"]


def test_the_dump_tells_what_is_shown(stage: Any, spoken: Any) -> None:
    stage.show(StateView(state="speaking"), spoken.added(), spoken.started(110.0))
    stage.at(110.5)
    state = stage.window.dump()["state"]
    assert state["state"] == "speaking"
    assert [(s["role"], s["lit_to"], s["cut_at"]) for s in state["subtitles"]] == [("character", 13, None)]
    assert state["avatar"] == {"state": "speaking", "expression": "happy", "mouth": "aa", "opening": 1.0}
    assert state["paint"]["frames"] > 0


def test_a_busy_gui_thread_is_counted_as_a_stall(stage: Any, qtbot: Any) -> None:
    watch = stage.window.watch
    watch.stop()
    watch.start()
    stage.clock.advance(10.0)
    qtbot.waitUntil(lambda: watch._last_s == stage.clock.monotonic_s(), timeout=2000)
    assert stage.window.gui_stalls().stalls == 0, "the time before the first beat does not count"
    stage.clock.advance(0.2)
    qtbot.waitUntil(lambda: stage.window.gui_stalls().stalls == 1, timeout=2000)
    assert stage.window.gui_stalls().worst_ms == pytest.approx(175.0, abs=1.0)
