"""Going from problem to problem, and putting a suggestion in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop.flow_check import SHIPPED_LABEL
from orchestrator.flows.source import Problem

if TYPE_CHECKING:
    from desktop.ui.flow_editor.panel import FlowEditorPanel


class Fixes(QObject):
    """Works on the problems that a panel shows."""

    def __init__(self, panel: FlowEditorPanel) -> None:
        """Belong to `panel`."""
        super().__init__(panel)
        self._panel = panel

    def go_to(self, problem: Problem) -> None:
        """Show the place of a problem, in whichever file it is."""
        edit = self._panel.view.edit
        folder, _, shipped = problem.file.partition("/")
        key = ("shipped", shipped) if folder == SHIPPED_LABEL else ("user", problem.file)

        def show() -> None:
            edit.go_to(problem.line, problem.col, problem.end if problem.end[0] == problem.line else None)
            edit.setFocus()

        if key in self._panel.file_keys:
            self._panel.open_file(*key, show)

    def go_to_next(self, step: int) -> None:
        """Go to the next problem of the open file, or with -1 to the one before."""
        mine = sorted(self._mine(), key=lambda p: (p.line, p.col))
        if not mine:
            return
        here = self._panel.view.edit.place()[0]
        if step > 0:
            chosen = next((p for p in mine if p.line > here), mine[0])
        else:
            chosen = next((p for p in reversed(mine) if p.line < here), mine[-1])
        self.go_to(chosen)

    def apply(self, problem: Problem) -> None:
        """Put a problem's suggestion in its place, unless the text has changed since."""
        panel = self._panel
        buffer, edit = panel.current, panel.view.edit
        if buffer is None or not buffer.is_editable or problem not in self._mine():
            return
        if problem.suggestion is None or problem.end[0] != problem.line:
            return
        cursor = edit.cursor_at((problem.line, problem.col), problem.end)
        old = cursor.selectedText()
        if not panel.is_checked and old.strip("\"'") not in problem.message:
            # A check is under way, and what stands here is no longer what was found.
            return
        is_quoted = len(old) > 1 and old[0] == old[-1] and old[0] in "\"'"
        cursor.insertText(f"{old[0]}{problem.suggestion}{old[0]}" if is_quoted else problem.suggestion)
        edit.setFocus()

    def fix_here(self) -> None:
        """Apply the suggestion for the cursor's line, if there is one."""
        edit = self._panel.view.edit
        found = next((p for p in edit.problems_at(edit.place()[0]) if p.suggestion), None)
        if found is not None:
            self.apply(found)

    def _mine(self) -> list[Problem]:
        buffer = self._panel.current
        return [p for p in self._panel.problems if buffer is not None and p.file == buffer.label]
