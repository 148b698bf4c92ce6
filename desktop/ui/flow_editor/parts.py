"""The greater widgets of the flow editor, made one at a time while the window has nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from desktop.ui import icons
from desktop.ui.flow_editor.code_edit import CodeEdit
from desktop.ui.flow_editor.completion import Completion
from desktop.ui.flow_editor.file_list import FileList, OutlineList
from desktop.ui.flow_editor.graph_view import GraphView
from desktop.ui.flow_editor.problem_list import ProblemList
from desktop.ui.i18n import Translator
from desktop.ui.theme import Theme
from desktop.ui.tool_buttons import ICON_PX

BUTTON_ICONS = {
    "new": "flow_new", "save": "flow_save", "copy": "flow_copy", "find": "flow_find", "try": "flow_try",
    "tests": "flow_tests", "files": "flow_files", "graph": "flow_graph", "more": "flow_more",
    "zoom_in": "flow_zoom_in", "zoom_out": "flow_zoom_out", "fit": "flow_fit",
}  # fmt: skip
"""The buttons of the bar with their pictures."""
_ICONS_A_STEP = 4


class PanelParts:
    """Each is made when it is first asked for. GUI thread. `complete` is set by who knows the texts."""

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Make nothing yet."""
        self._theme = theme
        self._translator = translator
        self.complete: Callable[[str, int, int], Completion] | None = None

    def steps(self) -> Iterator[None]:
        """Make one after the other; each yield is a place to let the window go on."""
        palette = self._theme.palette
        for number, name in enumerate(BUTTON_ICONS.values()):
            for colour in (palette.ink, palette.outline):
                icons.pixmap(name, colour, ICON_PX, 2.0)
            if number % _ICONS_A_STEP == _ICONS_A_STEP - 1:
                yield
        for part in ("files", "outline", "edit", "graph", "problems"):
            getattr(self, part)
            yield

    @cached_property
    def files(self) -> FileList:
        """The files of both layers."""
        return FileList(self._theme, self._translator)

    @cached_property
    def outline(self) -> OutlineList:
        """What is in the open file."""
        return OutlineList(self._theme, self._translator)

    @cached_property
    def edit(self) -> CodeEdit:
        """The text."""
        return CodeEdit(self._theme, self._complete, lambda p: self._translator.fault(p.code, p.message))

    @cached_property
    def graph(self) -> GraphView:
        """The flow as a picture."""
        return GraphView(self._theme, self._translator)

    @cached_property
    def problems(self) -> ProblemList:
        """What is wrong."""
        return ProblemList(self._theme, self._translator)

    def _complete(self, text: str, line: int, col: int) -> Completion:
        if self.complete is None:
            raise RuntimeError("a text without a panel is not completed")
        return self.complete(text, line, col)
