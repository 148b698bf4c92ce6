"""What the editor knows of the open text: it asks for checks as one types and shows what they find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from desktop.flow_folders import FlowFolders
from desktop.ui.flow_editor.check_process import CheckProcess
from desktop.ui.flow_editor.checking import CheckResult, schema_of
from desktop.ui.flow_editor.completion import Completion, Vocabulary, complete
from desktop.ui.flow_editor.outline import Graph, Outline
from orchestrator.flows.source import Problem

if TYPE_CHECKING:
    from desktop.ui.flow_editor.panel import FlowEditorPanel

_DELAY_MS = 250


class Checks(QObject):
    """Belongs to `panel`. `problems` are those of the last check, of the open file first."""

    def __init__(self, panel: FlowEditorPanel, folders: FlowFolders) -> None:
        """Check nothing before a text is opened."""
        super().__init__(panel)
        self._panel = panel
        self._process = CheckProcess(folders)
        self.words = Vocabulary()
        self.outline = Outline()
        self.problems: tuple[Problem, ...] = ()
        self._version = 0
        self._checked_version = -1
        self._is_closed = False
        self._running: tuple[str | None, str | None] = (None, None)
        self._tried: tuple[str | None, str | None] = (None, None)
        self._timer = QTimer(self)
        self._timer.setInterval(_DELAY_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._check)

    @property
    def is_done(self) -> bool:
        """Whether the problems in sight are those of the text in sight."""
        return self._checked_version == self._version

    @property
    def pid(self) -> int | None:
        """Process id of the checking process."""
        return self._process.pid

    def ask(self) -> None:
        """Check soon: the text changed."""
        self._version += 1
        self._timer.start()

    def begin(self) -> None:
        """Check a text that was just opened."""
        self.outline = Outline()
        self.show_problems(())
        self._version += 1
        self._check()

    def close(self) -> None:
        """End the process."""
        self._is_closed = True
        self._timer.stop()
        self._process.close()

    def _check(self) -> None:
        panel = self._panel
        buffer = panel.current
        if buffer is None or self._is_closed:
            return
        version, texts, text, label = self._version, panel.buffers.unsaved(), buffer.text, buffer.label
        panel.worker.run(lambda files: self._process.check(version, texts, label, text), self._on_checked, key="check")

    def _on_checked(self, result: CheckResult) -> None:
        panel = self._panel
        if result.version != self._version or panel.current is None:
            return
        self._checked_version = result.version
        self.words = result.words
        if result.outline.items or not result.problems:
            # While a text is no YAML for a moment, its last picture stays.
            self.outline = result.outline
        panel.view.outline.show_outline(self.outline)
        label = panel.current.label
        mine = [p for p in result.problems if p.file == label]
        others = [p for p in result.problems if p.file != label and p.severity == "error"]
        self.show_problems((*mine, *others))
        self.on_place_changed(*panel.view.edit.place())

    def show_problems(self, problems: Sequence[Problem]) -> None:
        """Show `problems` in the text, in the list, and counted."""
        panel = self._panel
        self.problems = tuple(problems)
        label = panel.current.label if panel.current is not None else ""
        panel.view.edit.show_problems([p for p in problems if p.file == label])
        panel.view.problems.show_problems(problems)
        panel.view.show_counts(problems)

    def complete(self, text: str, line: int, col: int) -> Completion:
        """Return what may be written at a place."""
        current = self._panel.current
        kind = current.kind if current is not None else "flows"
        return complete(text, line, col, schema_of(kind), self.words)

    # --- the graph --------------------------------------------------------------------------------------

    def on_place_changed(self, line: int, col: int) -> None:
        """Show the graph of the flow at the cursor."""
        view = self._panel.view
        view.show_place(line, col)
        graph = self.outline.graph_at(line) or (
            None if view.graph.graph in self.outline.graphs else self._first_graph()
        )
        if graph is not None or not self.outline.graphs:
            view.graph.show_graph(graph)
            self._light()
        view.graph.show_line(line)

    def show_running(self, flow: str | None, step: str | None) -> None:
        """Light the step that the real conversation is at."""
        self._running = flow, step
        self._light()

    def show_tried(self, flow: str | None, step: str | None) -> None:
        """Light the step that is being tried; after that the real conversation's again."""
        self._tried = flow, step
        self._light()

    def _first_graph(self) -> Graph | None:
        return self.outline.graphs[0] if self.outline.graphs else None

    def _light(self) -> None:
        self._panel.view.graph.show_running(*(self._tried if self._tried[0] is not None else self._running))
