"""The hidden flow editor is made a little at a time; whoever opens it earlier gets it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from desktop.flow_folders import FlowFolders
from desktop.ui.flow_editor.dock import FlowEditorDock


@pytest.fixture
def dock(make_stage: Callable[..., Any], folders: FlowFolders) -> Iterator[FlowEditorDock]:
    stage = make_stage("en", "light")
    stage.window.flow_editor.configure(folders)
    found: FlowEditorDock = stage.window.flow_editor.dock
    yield found
    found.close_down()


def test_it_is_made_in_small_steps_and_stands_hidden_in_its_place(dock: FlowEditorDock) -> None:
    made = []
    for _ in dock.steps():
        made.append((dock.panel is not None, dock.widget() is not None))
    assert len(made) >= 10
    # Neither the panel nor its place comes before the parts are made, nor both in one step.
    assert made.count((True, False)) == 2
    assert (True, True) not in made
    assert dock.panel is not None
    assert dock.widget() is dock.panel
    assert not dock.isVisible()
    assert "QPlainTextEdit" in dock.panel.styleSheet()


@pytest.mark.parametrize("after", [0, 1, 5, 8, 10])
def test_one_who_opens_it_meanwhile_has_it_whole_and_it_is_made_once(dock: FlowEditorDock, after: int) -> None:
    steps = dock.steps()
    for _ in range(after):
        next(steps)
    panel = dock.open_panel()
    assert panel.view.edit.isEnabled()
    assert panel.styleSheet()
    for _ in steps:
        assert dock.panel is panel
    assert dock.widget() is panel
