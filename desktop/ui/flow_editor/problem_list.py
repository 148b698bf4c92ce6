"""The problems of the open file and of what it breaks elsewhere; a click goes there, a button repairs."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHeaderView, QPushButton, QTreeWidget, QTreeWidgetItem

from desktop.ui import icons
from desktop.ui.empty_hint import EmptyHint
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme
from desktop.ui.tool_buttons import ICON_PX
from orchestrator.flows.source import Problem

_MOST = 300
_MOST_TOLD = 20
"""As many are read out with the list itself."""
_ROLE = Qt.ItemDataRole.UserRole


class ProblemList(QTreeWidget):
    """Lists problems in the order given."""

    problem_chosen = Signal(object)
    fix_chosen = Signal(object)

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Start without problems."""
        super().__init__()
        self.setObjectName("flowProblems")
        self._theme = theme
        self._translator = translator
        self._problems: tuple[Problem, ...] = ()
        self.setColumnCount(3)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(False)
        self.setWordWrap(True)
        self.setIconSize(icons.square(ICON_PX))
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        translator.bind(self.setAccessibleName, "flows.problems")
        self._empty = EmptyHint(self, "flows.problems.empty", translator)
        self.itemClicked.connect(self._on_item_chosen)
        self.itemActivated.connect(self._on_item_chosen)
        theme.changed.connect(self._fill)
        translator.changed.connect(self._fill)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is listed."""
        return self._problems

    def show_problems(self, problems: Sequence[Problem]) -> None:
        """List `problems`."""
        if tuple(problems) != self._problems:
            self._problems = tuple(problems)
            self._fill()

    def _fill(self) -> None:
        self.clear()
        told = (f"{p.file}:{p.line}:{p.col} {self._words(p)}" for p in self._problems[:_MOST_TOLD])
        self.setAccessibleDescription("\n".join(told))
        p = self._theme.palette
        for number, problem in enumerate(self._problems[:_MOST]):
            is_error = problem.severity == "error"
            item = QTreeWidgetItem([f"{problem.file}:{problem.line}:{problem.col}", self._words(problem), ""])
            name = "error" if is_error else "warning"
            icon = icons.icon(name, p.danger if is_error else p.warning, size_px=ICON_PX)
            icon.addPixmap(icons.pixmap(name, p.on_primary, ICON_PX, 2.0), icon.Mode.Selected)
            item.setIcon(0, icon)
            kind = self._translator.text(f"flows.severity.{name}")
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, f"{kind}: {problem.file}, {problem.line}")
            item.setData(0, _ROLE, number)
            item.setToolTip(1, f"{problem.code}: {problem.message}")
            self.addTopLevelItem(item)
            if problem.suggestion:
                button = self._fix_button(number, problem)
                self.setItemWidget(item, 2, button)
                button.ensurePolished()
                # The column asks the item, not the button, how much room it needs.
                item.setSizeHint(2, button.sizeHint() + QSize(GRID_PX // 2, 0))

    def _words(self, problem: Problem) -> str:
        """Return what is wrong in the language of the window; the checker's own English is in the tool tip."""
        return self._translator.fault(problem.code, problem.message)

    def _fix_button(self, number: int, problem: Problem) -> QPushButton:
        words = self._translator.text("flows.fix", word=problem.suggestion)
        made = QPushButton(words if len(words) <= 40 else f"{words[:39]}…")
        made.setObjectName(f"flowFix_{number}")
        made.setAccessibleName(words)
        made.setToolTip(self._translator.text("flows.fix.tip"))
        made.clicked.connect(lambda _=False, chosen=problem: self.fix_chosen.emit(chosen))
        return made

    def _on_item_chosen(self, item: QTreeWidgetItem) -> None:
        number = item.data(0, _ROLE)
        if isinstance(number, int) and number < len(self._problems):
            self.problem_chosen.emit(self._problems[number])
