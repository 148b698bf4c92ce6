"""The flow editor as a user has it: keys, clicks and files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot
from rigs.flow_desk import FLOW, open_file, type_keys, wait_checked, words_in

from desktop.flow_folders import FlowFolders
from desktop.flow_pack import read_pack
from orchestrator.contracts.commands import Reload

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


def test_the_key_opens_the_editor_and_closes_it(make_stage: Any, folders: FlowFolders, qtbot: QtBot) -> None:
    stage = make_stage()
    stage.window.flow_editor.configure(folders)
    stage.window.activateWindow()
    field = stage.window.controls.field
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert stage.window.flow_editor.dock.isVisible()
    panel = stage.window.flow_editor.dock.panel
    panel.view.edit.setFocus()
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert not stage.window.flow_editor.dock.isVisible()
    stage.window.flow_editor.dock.close_down()


def test_without_own_files_it_says_what_it_is_for(open_editor: Any, qtbot: QtBot) -> None:
    _, panel = open_editor()
    assert panel.view.pages.currentIndex() == 0
    panel.view.first_flow.click()
    assert panel.current is not None and panel.current.key == ("user", "my_flows.yml")
    wait_checked(qtbot, panel)
    assert panel.problems == ()
    assert panel.view.graph.graph is not None and panel.view.graph.graph.id == "my_flow"


def test_a_fault_is_marked_on_its_line_while_typing(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    assert panel.problems == ()
    edit = panel.view.edit
    edit.go_to(11, 18)
    type_keys(edit, "x")
    wait_checked(qtbot, panel)
    assert {(p.line, p.code) for p in panel.problems} == {(9, "missing_slot"), (11, "unknown_key")}
    marked = [s.cursor.blockNumber() + 1 for s in edit.extraSelections() if s.format.underlineColor().isValid()]
    assert sorted(marked) == [9, 11]
    QTest.keyClick(edit, Qt.Key.Key_F8)
    assert edit.place()[0] == 9
    QTest.keyClick(edit, Qt.Key.Key_F8)
    assert edit.place()[0] == 11
    edit.undo()
    wait_checked(qtbot, panel)
    assert panel.problems == ()


def test_a_fix_is_one_click(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit = panel.view.edit
    edit.go_to(20, 15, (20, 18))
    type_keys(edit, "ennd")
    wait_checked(qtbot, panel)
    (problem,) = [p for p in panel.problems if p.suggestion]
    assert (problem.line, problem.suggestion) == (20, "end")
    assert [p.line for p in edit.problems_at(20)] == [20]
    button = panel.view.problems.findChild(QPushButton, "flowFix_0")
    assert button is not None
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    wait_checked(qtbot, panel)
    assert panel.problems == () and panel.current.text == FLOW
    edit.go_to(5, 19)
    type_keys(edit, "!")
    assert panel.current.is_unsaved
    QTest.keyClick(edit, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: any(isinstance(c, Reload) for c in stage.outside.commands), timeout=10_000)
    assert refund.read_text(encoding="utf-8") == FLOW.replace("name: a refund", "name: a refund!")
    assert (refund.parent / "refund.yml.bak").read_text(encoding="utf-8") == FLOW
    assert not panel.current.is_unsaved


def test_a_faulty_text_is_kept_as_a_draft(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit = panel.view.edit
    edit.go_to(20, 18)
    type_keys(edit, "less")
    panel.save()
    qtbot.waitUntil(lambda: panel.current.is_draft, timeout=10_000)
    assert refund.read_text(encoding="utf-8") == FLOW
    assert not any(isinstance(c, Reload) for c in stage.outside.commands)
    assert panel.view.banner.key == "flows.banner.draft"
    assert "draft" in panel.view.message_text()
    panel.discard_draft()
    qtbot.waitUntil(lambda: panel.current.text == FLOW, timeout=10_000)
    assert panel.view.banner.key is None


def test_a_new_file_that_is_discarded_leaves_the_first_page(
    open_editor: Any, qtbot: QtBot, folders: FlowFolders
) -> None:
    _, panel = open_editor()
    panel.new_file()
    type_keys(panel.view.edit, "flos: 1")
    panel.save()
    qtbot.waitUntil(lambda: panel.current.is_draft, timeout=10_000)
    panel.discard_draft()
    qtbot.waitUntil(lambda: panel.current is None, timeout=10_000)
    assert panel.view.pages.currentIndex() == 0
    assert not list(folders.user.rglob("*.draft"))
    open_file(qtbot, panel, "shipped", "rails.yml")


def test_the_conversations_step_is_lit(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    stage.window.flow_editor.show_running("refund", "done")
    assert panel.view.graph.running_step == "done"
    stage.window.flow_editor.show_running("other", "done")
    assert panel.view.graph.running_step is None


def test_shipped_files_are_copied_to_be_edited(open_editor: Any, qtbot: QtBot, folders: FlowFolders) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "shipped", "rails.yml")
    before = panel.current.text
    QTest.keyClicks(panel.view.edit, "abc")
    assert panel.current.text == before and panel.view.edit.isReadOnly()
    panel.view.banner.buttons[0].click()
    qtbot.waitUntil(lambda: panel.current.key == ("user", "rails.yml"), timeout=10_000)
    assert (folders.user / "rails.yml").read_text(encoding="utf-8") == before
    assert not panel.view.edit.isReadOnly()


def test_a_change_by_another_program_is_noticed(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    theirs = FLOW.replace("name: a refund", "name: money back")
    refund.write_text(theirs, encoding="utf-8")
    panel._poll()
    qtbot.waitUntil(lambda: panel.current.text == theirs, timeout=10_000)
    panel.view.edit.go_to(5, 11)
    type_keys(panel.view.edit, "my ")
    mine = panel.current.text
    refund.write_text(FLOW, encoding="utf-8")
    panel.save()
    qtbot.waitUntil(lambda: panel.view.banner.key == "flows.banner.conflict", timeout=10_000)
    assert refund.read_text(encoding="utf-8") == FLOW and panel.current.text == mine
    panel.view.banner.buttons[1].click()
    panel.save()
    qtbot.waitUntil(lambda: refund.read_text(encoding="utf-8") == mine, timeout=10_000)


def test_unsaved_text_survives_the_end(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    panel.view.edit.go_to(5, 11)
    type_keys(panel.view.edit, "my ")
    stage.window.close()
    kept = refund.parent / ".drafts" / "refund.yml.draft"
    assert kept.read_text(encoding="utf-8") == FLOW.replace("name: a", "name: my a")
    assert refund.read_text(encoding="utf-8") == FLOW


def test_completion_offers_what_is_valid_there(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit = panel.view.edit
    edit.go_to(20, 15, (20, 18))
    QTest.keyClick(edit, Qt.Key.Key_Delete)
    QTest.keyClick(edit, Qt.Key.Key_Space, Qt.KeyboardModifier.ControlModifier)
    assert edit.completions() == ["start", "ask", "done", "end"]
    QTest.keyClick(edit._popup, Qt.Key.Key_Down)
    QTest.keyClick(edit._popup, Qt.Key.Key_Return)
    assert panel.current.text.split("\n")[19] == "        next: ask"
    edit.go_to(10, 15)
    QTest.keyClick(edit, Qt.Key.Key_End)
    type_keys(edit, "\nskip")
    assert edit.completions() == ["skippable"]


def test_a_click_in_the_graph_goes_to_the_text(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    graph = panel.view.graph
    assert [n.id for n in graph.graph.nodes] == ["start", "ask", "done", "end"]
    at = graph.step_rect("done").center().toPoint()
    qtbot.mouseClick(graph.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert panel.view.edit.place()[0] == 16
    panel.show_running_step("refund", "ask")
    assert graph.running_step == "ask"
    panel.show_running_step(None, None)
    assert graph.running_step is None


def test_find_and_replace_by_keys(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit, bar = panel.view.edit, panel.view.find
    edit.setFocus()
    QTest.keyClick(edit, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert bar.isVisible()
    QTest.keyClicks(bar.needle, "ORDER_NUMBER")
    assert bar.count.text() == "4 found"
    bar.replacement.setText("number")
    bar.replace_all.click()
    assert panel.current.text == FLOW.replace("order_number", "number")
    edit.undo()
    assert panel.current.text == FLOW
    QTest.keyClick(bar.needle, Qt.Key.Key_Escape)
    assert not bar.isVisible()


def test_trying_it_out_answers_from_the_unsaved_text(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit, pane = panel.view.edit, panel.view.try_pane
    edit.go_to(12, 38)
    type_keys(edit, " please")
    pane.field.setText("I want a refund")
    QTest.keyClick(pane.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: any(who == "character" for who, _ in pane.lines()), timeout=20_000)
    assert ("character", "Which order please?") in pane.lines()
    assert panel.view.graph.running_step == "ask"
    assert pane.trace.topLevelItemCount() == 1
    assert "please" not in refund.read_text(encoding="utf-8")
    assert not stage.outside.commands


def test_the_tests_run_on_the_unsaved_text(open_editor: Any, qtbot: QtBot, refund: Path, folders: FlowFolders) -> None:
    tests = folders.user / "tests"
    tests.mkdir()
    turn = "{user: I want a refund, expect: {active_flow: refund, step: ask}}"
    (tests / "a.yml").write_text(f"tests:\n  - name: it starts\n    turns: [{turn}]\n", encoding="utf-8")
    _, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    panel.run_tests()
    qtbot.waitUntil(lambda: panel.view.tests_pane.summary.text() == "1 passed, 0 failed", timeout=20_000)


def test_a_pack_goes_out_and_comes_in(
    open_editor: Any, qtbot: QtBot, refund: Path, folders: FlowFolders, tmp_path: Path
) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    pack = tmp_path / "mine.zip"
    (refund.parent / "persona.yml").write_text("name: {en: Polly, zh: 波莉}\n", encoding="utf-8")
    panel.packs.ask_export()
    choice = panel.packs.choice
    qtbot.waitUntil(choice.isVisible, timeout=10_000)
    assert choice.names() == ("refund.yml",) and not choice.warning.isHidden()
    choice.cancel.click()
    panel.packs.export(str(pack), ("refund.yml",))
    qtbot.waitUntil(pack.exists, timeout=10_000)
    assert list(read_pack(pack).texts) == ["refund.yml"]
    refund.write_text(FLOW.replace("name: a refund", "name: other"), encoding="utf-8")
    panel.packs.bring_in(str(pack))
    qtbot.waitUntil(choice.isVisible, timeout=10_000)
    assert words_in(choice.files) == ["Flows and rails", "refund.yml", "replaces your file"]
    assert choice.warning.isHidden()
    choice.take.click()
    qtbot.waitUntil(lambda: refund.read_text(encoding="utf-8") == FLOW, timeout=10_000)
    qtbot.waitUntil(lambda: any(isinstance(c, Reload) for c in stage.outside.commands), timeout=10_000)
    panel.packs.bring_in(str(tmp_path / "none.zip"))
    qtbot.waitUntil(lambda: "none.zip" in panel.view.message_text(), timeout=10_000)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_control_has_a_name_in_the_language(open_editor: Any, qtbot: QtBot, refund: Path, language: str) -> None:
    stage, panel = open_editor(language)
    open_file(qtbot, panel, "user", "refund.yml")
    widgets = [w for w in panel.findChildren(QWidget) if w.isVisible() and not w.objectName().startswith("qt_")]
    for widget in widgets:
        if widget.focusPolicy() != Qt.FocusPolicy.NoFocus and type(widget).__module__.startswith(
            ("desktop", "PySide6")
        ):
            if widget.parent().__class__.__name__ in ("QTabBar", "QAbstractScrollArea") or not widget.objectName():
                continue
            assert widget.accessibleName(), widget.objectName()
    assert not stage.window.translator.missing


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("width", [1160, 1640])
def test_texts_fit(open_editor: Any, qtbot: QtBot, refund: Path, language: str, width: int) -> None:
    stage, panel = open_editor(language)
    stage.window.resize(width, 800)
    open_file(qtbot, panel, "user", "refund.yml")
    panel.view.find.open()
    for widget in panel.findChildren(QWidget):
        if not widget.isVisible() or not widget.objectName():
            continue
        if isinstance(widget, QPushButton) and widget.text():
            room = widget.contentsRect().width()
            assert widget.fontMetrics().horizontalAdvance(widget.text()) <= room, widget.objectName()
        if isinstance(widget, QLabel) and widget.text() and not widget.wordWrap():
            assert widget.fontMetrics().horizontalAdvance(widget.text()) <= widget.width() + 1, widget.objectName()
        if isinstance(widget, QToolButton):
            assert widget.width() >= 24 and widget.height() >= 24


def test_places_are_kept(open_editor: Any, make_stage: Any, qtbot: QtBot, refund: Path, folders: FlowFolders) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "shipped", "rails.yml")
    places = stage.window.flow_editor.places()
    other = make_stage()
    other.window.flow_editor.configure(folders)
    other.window.flow_editor.restore_places(places)
    assert other.window.flow_editor.dock.isVisible()
    again = other.window.flow_editor.dock.panel
    assert again is not None
    qtbot.waitUntil(lambda: again.current is not None and again.current.key == ("shipped", "rails.yml"), timeout=10_000)
    other.window.flow_editor.dock.close_down()
    assert QKeySequence("Ctrl+E").toString() == "Ctrl+E"


def test_theme_and_language_switch_while_it_is_open(open_editor: Any, qtbot: QtBot, refund: Path) -> None:
    stage, panel = open_editor()
    open_file(qtbot, panel, "user", "refund.yml")
    edit = panel.view.edit
    before = edit.grab().toImage().pixelColor(edit.width() // 2, edit.height() - 30)
    stage.window.set_theme("dark")
    stage.window.set_language("zh_CN")
    after = edit.grab().toImage().pixelColor(edit.width() // 2, edit.height() - 30)
    assert before.lightness() > 200 > 60 > after.lightness()
    assert not panel.current.is_unsaved and panel.current.text == FLOW
    assert panel.view.tabs.tabText(0) == "问题" and stage.window.flow_editor.dock._title.text() == "流程 — refund.yml"
    edit.go_to(20, 18)
    type_keys(edit, "d")
    wait_checked(qtbot, panel)
    item = panel.view.problems.topLevelItem(0)
    assert item is not None and item.text(1).startswith("没有这个步骤")
    assert not stage.window.translator.missing


@pytest.mark.parametrize(
    "kept", ["", "[]", "{", '{"state": 3, "geometry": "你", "flows": {"layer": "x"}}', "\x00" * 10]
)
def test_a_broken_file_of_places_changes_nothing(
    make_stage: Callable[..., Any], folders: FlowFolders, tmp_path: Path, kept: str
) -> None:
    path = tmp_path / "window.json"
    path.write_text(kept, encoding="utf-8")
    stage = make_stage()
    stage.window.flow_editor.configure(folders, path)
    assert not stage.window.flow_editor.dock.isVisible()
    stage.window.close()
    assert path.read_text(encoding="utf-8").startswith('{"geometry"')
