"""A desk to write flows at: the editor in a window, over a folder with one flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTreeWidget, QWidget
from pytestqt.qtbot import QtBot

from desktop import paths
from desktop.flow_folders import FlowFolders
from desktop.try_out import TryOut
from desktop.ui.flow_editor.panel import FlowEditorPanel

FLOW = """\
slots:
  order_number: {type: text, label: order}
flows:
  refund:
    name: a refund
    examples: [I want a refund, 我要退款]
    steps:
      - {id: start, type: start, next: ask}
      - id: ask
        type: collect
        slot_name: order_number
        response: {text: "Which order?"}
        next:
          - {if: "slots.order_number", then: done}
          - {else: ask}
      - id: done
        type: action
        action: action_response
        args: {text: "Done: {{ slots.order_number }}."}
        next: end
      - {id: end, type: end}
"""


@pytest.fixture
def folders(tmp_path: Path) -> FlowFolders:
    user = tmp_path / "flows"
    user.mkdir()
    return FlowFolders(shipped=paths.flow_config(), user=user)


@pytest.fixture
def open_editor(
    make_stage: Callable[..., Any], folders: FlowFolders, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Any, FlowEditorPanel]]]:
    stages = []

    def make(language: str = "en", theme: str = "light") -> tuple[Any, FlowEditorPanel]:
        stage = make_stage(language, theme)
        stages.append(stage)
        stage.window.flow_editor.configure(folders)
        stage.window.flow_editor.dock._make_try_out = lambda f, listener: TryOut(f, listener, embedding="exact")
        stage.window.flow_editor.toggle()
        panel = stage.window.flow_editor.dock.panel
        assert panel is not None
        qtbot.waitUntil(lambda: panel.view.files.names("shipped") != [], timeout=10_000)
        return stage, panel

    yield make
    for stage in stages:
        stage.window.flow_editor.dock.close_down()


def wait_checked(qtbot: QtBot, panel: FlowEditorPanel) -> None:
    qtbot.waitUntil(lambda: panel.is_checked, timeout=15_000)


def open_file(qtbot: QtBot, panel: FlowEditorPanel, layer: str, name: str) -> None:
    panel.open_file(layer, name)
    qtbot.waitUntil(lambda: panel.current is not None and panel.current.key == (layer, name), timeout=10_000)
    wait_checked(qtbot, panel)


def type_keys(widget: QWidget, text: str) -> None:
    for char in text:
        if char == "\n":
            QTest.keyClick(widget, Qt.Key.Key_Return)
        else:
            QTest.keyClicks(widget, char)


@pytest.fixture
def refund(folders: FlowFolders) -> Path:
    path = folders.user / "refund.yml"
    path.write_text(FLOW, encoding="utf-8")
    return path


def words_in(tree: QTreeWidget) -> list[str]:
    """Return all words of a tree, from the top."""
    groups = [tree.topLevelItem(n) for n in range(tree.topLevelItemCount())]
    items = [item for group in groups for item in (group, *(group.child(n) for n in range(group.childCount())))]
    return [item.text(n) for item in items for n in range(tree.columnCount()) if item.text(n)]
