"""The flow editor takes care: nothing typed is lost by a click, nothing comes in unasked, waiting can be given up."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from rigs.flow_desk import FLOW, open_file, type_keys, wait_checked, words_in

from desktop.faults import Fault
from desktop.flow_folders import FlowFolders
from desktop.try_out import TryOutListener

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


def test_a_pack_brings_no_persona_and_no_policy_that_was_not_ticked(
    open_editor: Any, qtbot: QtBot, folders: FlowFolders, tmp_path: Path
) -> None:
    stage, panel = open_editor()
    pack = tmp_path / "all.zip"
    texts = {"refund.yml": FLOW, "persona.yml": "name: {en: Evil, zh: 坏}\n", "policy.yml": "{}\n"}
    with zipfile.ZipFile(pack, "w") as made:
        for name, text in texts.items():
            made.writestr(name, text)
    panel.packs.bring_in(str(pack))
    choice = panel.packs.choice
    qtbot.waitUntil(choice.isVisible, timeout=10_000)
    assert not list(folders.user.iterdir()) and choice.names() == ("refund.yml",)
    stage.window.set_language("zh_CN")
    assert choice.names() == ("refund.yml",) and "流程和规则" in words_in(choice.files)
    assert "导入" in choice.windowTitle() and "all.zip" in choice.words.text()
    choice.take.click()
    qtbot.waitUntil((folders.user / "refund.yml").exists, timeout=10_000)
    qtbot.waitUntil(lambda: panel.current is not None, timeout=10_000)
    assert {p.name for p in folders.user.glob("*.yml")} == {"refund.yml"}
    panel.packs.bring_in(str(pack))
    qtbot.waitUntil(choice.isVisible, timeout=10_000)
    choice.tick("refund.yml", False)
    assert choice.names() == () and not choice.take.isEnabled()
    choice.tick("persona.yml")
    choice.take.click()
    qtbot.waitUntil((folders.user / "persona.yml").exists, timeout=10_000)
    assert not (folders.user / "policy.yml").exists()


def test_a_pack_that_was_not_wanted_leaves_nothing(
    open_editor: Any, qtbot: QtBot, folders: FlowFolders, tmp_path: Path
) -> None:
    _, panel = open_editor()
    pack = tmp_path / "all.zip"
    with zipfile.ZipFile(pack, "w") as made:
        made.writestr("refund.yml", FLOW)
    panel.packs.bring_in(str(pack))
    qtbot.waitUntil(panel.packs.choice.isVisible, timeout=10_000)
    QTest.keyClick(panel.packs.choice, Qt.Key.Key_Escape)
    assert not panel.packs.choice.isVisible() and not list(folders.user.iterdir())


def test_a_clean_reload_keeps_the_cursor_and_can_be_undone(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit = panel.view.edit
    edit.go_to(20, 5)
    theirs = "# by another hand 🦜\n" + FLOW.replace("name: a refund", "name: money back")
    refund.write_text(theirs, encoding="utf-8")
    panel._poll()
    qtbot.waitUntil(lambda: panel.current.text == theirs, timeout=10_000)
    assert edit.place() == (21, 5)
    assert not panel.current.is_unsaved
    edit.undo()
    assert panel.current.text == FLOW and panel.current.is_unsaved
    edit.redo()
    assert panel.current.text == theirs and not panel.current.is_unsaved


def kept_copies(folder: Path) -> list[str]:
    return [p.read_text(encoding="utf-8") for p in sorted((folder / ".drafts").glob("*.copy"))]


def test_the_other_programs_text_takes_mine_away_only_to_give_it_back(
    open_editor: Any, qtbot: QtBot, refund: Path
) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    panel.view.edit.go_to(5, 11)
    type_keys(panel.view.edit, "my ")
    mine = panel.current.text
    theirs = FLOW.replace("refund:", "refunded:")
    refund.write_text(theirs, encoding="utf-8")
    panel._poll()
    qtbot.waitUntil(lambda: panel.view.banner.key == "flows.banner.conflict", timeout=10_000)
    panel.view.banner.buttons[0].click()
    qtbot.waitUntil(lambda: panel.current.text == theirs, timeout=10_000)
    assert kept_copies(refund.parent) == [mine]
    assert "Ctrl+Z" in panel.view.message_text() and "refund.yml.1.copy" in panel.view.message_text()
    panel.view.edit.undo()
    assert panel.current.text == mine and panel.current.is_unsaved


def test_a_discarded_draft_can_be_had_back(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    panel.view.edit.go_to(20, 18)
    type_keys(panel.view.edit, "less")
    mine = panel.current.text
    panel.save()
    qtbot.waitUntil(lambda: panel.current.is_draft, timeout=10_000)
    panel.discard_draft()
    qtbot.waitUntil(lambda: panel.current.text == FLOW, timeout=10_000)
    assert kept_copies(refund.parent) == [mine]
    panel.view.edit.undo()
    assert panel.current.text == mine
    # A file that was never saved is closed; its text is in the copy that the line below names.
    panel.new_file()
    type_keys(panel.view.edit, "flos: 1")
    panel.discard_draft()
    qtbot.waitUntil(lambda: "my_flows.yml.1.copy" in panel.view.message_text(), timeout=10_000)
    assert "flos: 1" in kept_copies(refund.parent)


def test_shift_and_enter_search_backwards(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit, bar = panel.view.edit, panel.view.find
    edit.go_to(1, 1)
    QTest.keyClick(edit, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(bar.needle, "next")
    places = [edit.place()]
    forward, backward = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
    for modifier in (forward, forward, backward, backward):
        QTest.keyClick(bar.needle, Qt.Key.Key_Return, modifier)
        places.append(edit.place())
    assert len(set(places[:3])) == 3
    assert places[3:] == [places[1], places[0]]


def test_what_an_action_takes_is_offered_inside_its_args(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    words = panel.checks.words
    assert words.arguments["action_set_reminder"] == ("text", "at", "in_s", "date", "time")
    assert "prompt" in words.arguments["action_response"] and words.arguments["start_flow"] == ("flow",)


def test_faults_are_told_in_chinese_and_follow_a_switch(
    open_editor: Any, qtbot: QtBot, refund: Path, tmp_path: Path
) -> None:
    stage, panel = open_editor(language="zh_CN")
    open_file(qtbot, panel, "user", "refund.yml")
    panel.view.edit.go_to(20, 15, (20, 18))
    type_keys(panel.view.edit, "ennd")
    wait_checked(qtbot, panel)
    assert "没有这个步骤：ennd、refund" in words_in(panel.view.problems)
    assert "refund.yml:20:15 没有这个步骤" in panel.view.problems.accessibleDescription()
    panel.packs.bring_in(str(tmp_path / "none.zip"))
    qtbot.waitUntil(lambda: "无法读取这个包" in panel.view.message_text(), timeout=10_000)
    stage.window.set_language("en")
    assert "can't be read" in panel.view.message_text()
    assert any(words.startswith("there is no step 'ennd'") for words in words_in(panel.view.problems))


class Slow:
    """A session that answers when it is told to."""

    def __init__(self, listener: TryOutListener) -> None:
        self.listener = listener
        self.calls: list[str] = []

    def begin(self, _: object) -> None:
        self.calls.append("begin")

    def reload(self, _: object) -> None:
        self.calls.append("reload")

    def say(self, text: str) -> None:
        self.calls.append(text)

    def run_tests(self, _: object) -> None:
        self.calls.append("tests")

    def cancel(self) -> None:
        self.calls.append("cancel")
        self.listener.on_cancelled()

    def stop(self) -> None:
        self.calls.append("stop")


def test_a_long_first_answer_shows_how_far_it_is_and_is_given_up_by_a_click(
    make_stage: Any, folders: FlowFolders, qtbot: QtBot
) -> None:
    made: list[Slow] = []

    def make(_: FlowFolders, listener: TryOutListener) -> Slow:
        made.append(Slow(listener))
        return made[-1]

    stage = make_stage()
    editor = stage.window.flow_editor
    editor.configure(folders)
    editor.dock._make_try_out = make
    editor.toggle()
    panel = editor.dock.panel
    pane, tests = panel.view.try_pane, panel.view.tests_pane
    (session,) = made
    panel.view.show_try()
    assert pane.cancel.isHidden()
    QTest.keyClicks(pane.field, "hello")
    QTest.keyClick(pane.field, Qt.Key.Key_Return)
    session.listener.on_progress(120, 800)
    assert pane.cancel.isVisible() and "120 of 800" in pane.talk.toPlainText()
    stage.window.set_language("zh_CN")
    assert "120/800" in pane.talk.toPlainText()
    panel.run_tests()
    assert tests.cancel.isVisible() and pane.cancel.accessibleName()
    qtbot.mouseClick(tests.cancel, Qt.MouseButton.LeftButton)
    assert pane.cancel.isHidden() and tests.cancel.isHidden()
    assert "已放弃" in pane.talk.toPlainText() and "已放弃" in tests.summary.text()
    panel.view.show_try()
    QTest.keyClicks(pane.field, "again")
    QTest.keyClick(pane.field, Qt.Key.Key_Return)
    # The texts never arrived, so they are sent again.
    assert session.calls == ["begin", "hello", "tests", "cancel", "begin", "again"]
    session.listener.on_fault(Fault(code="flow_unreadable", message="x.yml is no UTF-8 text"))
    assert "无法读取文件：x.yml" in pane.talk.toPlainText()
    editor.dock.close_down()
