"""The widgets of the flow editor and how they are laid out; what they do is the panel's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QShortcut, QTextDocument
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPlainTextDocumentLayout,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop.faults import Fault
from desktop.flow_files import FlowFile
from desktop.ui import icons
from desktop.ui.flow_editor.banner import Banner
from desktop.ui.flow_editor.buffers import Buffer, Key
from desktop.ui.flow_editor.completion import Completion
from desktop.ui.flow_editor.find_bar import FindBar
from desktop.ui.flow_editor.keys import KeyPass
from desktop.ui.flow_editor.parts import BUTTON_ICONS, PanelParts
from desktop.ui.flow_editor.style import editor_stylesheet
from desktop.ui.flow_editor.templates import KINDS
from desktop.ui.flow_editor.text_change import change_text
from desktop.ui.flow_editor.try_pane import TestsPane, TryOutPort, TryPane
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme, px
from desktop.ui.tool_buttons import ICON_PX, tool_button
from orchestrator.flows.source import Problem

_TABS = ("problems", "try", "tests")
_NARROW_PX = 64 * GRID_PX


class PanelView(QObject):
    """Builds everything into `panel`; its signals say what was asked for by button, menu or key."""

    template_chosen = Signal(str)
    file_asked = Signal(str)
    save_asked = Signal()
    copy_asked = Signal()
    tests_asked = Signal()
    import_chosen = Signal(str)
    export_asked = Signal()
    discard_asked = Signal()
    problem_step_asked = Signal(int)

    def __init__(
        self,
        panel: QWidget,
        theme: Theme,
        translator: Translator,
        completer_of: Callable[[str, int, int], Completion],
        port: TryOutPort,
        texts: Callable[[], tuple[int, Mapping[str, str]]],
        parts: PanelParts,
    ) -> None:
        """Lay the widgets out, `parts` among them."""
        super().__init__(panel)
        self._panel = panel
        self._theme = theme
        self._translator = translator
        self._said: tuple[str, dict[str, object]] | Fault = Fault(code="", message="")
        self._place = (1, 1)
        self._counts = (0, 0)
        self._is_narrow = self._is_graph_put_away = False
        parts.complete = completer_of
        self.files, self.outline, self.edit = parts.files, parts.outline, parts.edit
        self.find = FindBar(self.edit, theme, translator)
        self.banner = Banner(translator)
        self.graph, self.problems = parts.graph, parts.problems
        self.try_pane = TryPane(port, texts, theme, translator)
        self.tests_pane = TestsPane(port, theme, translator)
        self.tabs = QTabWidget()
        self.pages = QStackedWidget()
        self.message, self.position = QLabel(), QLabel()
        self._buttons: dict[str, QToolButton] = {}
        self._empty_edit_page = self._make_empty_page()
        self._nothing = QTextDocument(self)
        self._nothing.setDocumentLayout(QPlainTextDocumentLayout(self._nothing))
        self.edit.setDocument(self._nothing)
        self._lay_out()
        self._bind_keys()
        translator.bind(self.edit.setAccessibleName, "flows.text")
        translator.bind(self.edit.numbers.setAccessibleName, "flows.line_numbers")
        theme.changed.connect(self._restyle)
        translator.changed.connect(self._refresh)
        self._key_pass = KeyPass(self)
        for field in (self.find.needle, self.find.replacement, self.try_pane.field):
            field.installEventFilter(self._key_pass)
        self._is_dressed = False
        self._refresh()
        self.show_nothing()

    # --- what the panel shows --------------------------------------------------------------------------

    def show_document(self, buffer: Buffer) -> None:
        """Put a file into the text, at the place where it was left."""
        document, place = buffer.document, buffer.place
        self.edit.setDocument(document)
        self.edit.setReadOnly(not buffer.is_editable)
        flags = self.edit.textInteractionFlags() | Qt.TextInteractionFlag.TextSelectableByKeyboard
        self.edit.setTextInteractionFlags(flags)
        self.edit.setTabStopDistance(self.edit.fontMetrics().horizontalAdvance(" ") * 2)
        cursor = self.edit.textCursor()
        cursor.setPosition(min(place, document.characterCount() - 1))
        self.edit.setTextCursor(cursor)
        self.edit.verticalScrollBar().setValue(buffer.scroll)
        self.pages.setCurrentIndex(1)

    def show_nothing(self) -> None:
        """Show what the editor is for, with the first steps."""
        if self.edit.document() is not self._nothing:
            self.edit.setDocument(self._nothing)
        self.pages.setCurrentIndex(0)
        self.graph.show_graph(None)
        self.problems.show_problems(())

    def replace_text(self, text: str) -> None:
        """Put another text in, as one step that can be undone."""
        change_text(self.edit.document(), text)

    def show_files(self, files: Sequence[FlowFile], unsaved: Collection[str], current: Key) -> None:
        """List the files."""
        self.files.show_files(files, unsaved, current)

    def show_abilities(self, buffer: Buffer | None) -> None:
        """Enable what can be done with the open file."""
        is_mine = buffer is not None and buffer.is_editable
        self._buttons["save"].setEnabled(is_mine)
        self._buttons["copy"].setEnabled(buffer is not None and not is_mine)
        self._buttons["find"].setEnabled(buffer is not None)

    def show_place(self, line: int, col: int) -> None:
        """Say where the cursor is."""
        self._place = line, col
        self._tell_place()

    def show_counts(self, problems: Sequence[Problem]) -> None:
        """Say how many problems there are."""
        errors = sum(p.severity == "error" for p in problems)
        self._counts = errors, len(problems) - errors
        self._tell_place()

    def show_tests(self) -> None:
        """Turn to the tests, which run."""
        self.tests_pane.show_running()
        self.tabs.setCurrentIndex(_TABS.index("tests"))

    def show_try(self) -> None:
        """Turn to the chat."""
        self.tabs.setCurrentIndex(_TABS.index("try"))
        self.try_pane.field.setFocus()

    def focus(self) -> None:
        """Put the keyboard where work begins."""
        (self.edit if self.pages.currentIndex() == 1 else self.first_flow).setFocus()

    def fit(self, width: int) -> None:
        """Put the graph away where there is no room for it beside the text; its button brings it back."""
        is_narrow = width < px(_NARROW_PX)
        if is_narrow == self._is_narrow:
            return
        self._is_narrow = is_narrow
        button = self._buttons["graph"]
        if is_narrow:
            self._is_graph_put_away = button.isChecked()
            button.setChecked(False)
        elif self._is_graph_put_away:
            button.setChecked(True)

    def say(self, key: str, **values: object) -> None:
        """Show a line below."""
        self._said = key, values
        self._tell()

    def say_fault(self, fault: Fault) -> None:
        """Show what went wrong."""
        self._said = fault
        self._tell()

    def message_text(self) -> str:
        """Return the line below."""
        return self.message.text()

    # --- building --------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        column = QVBoxLayout(self._panel)
        column.setContentsMargins(GRID_PX, GRID_PX // 2, GRID_PX, GRID_PX // 2)
        column.setSpacing(GRID_PX // 2)
        column.addLayout(self._make_bar())
        self.side = QSplitter(Qt.Orientation.Vertical)
        self.side.setObjectName("flowSide")
        self.side.addWidget(self.files)
        self.side.addWidget(self.outline)
        self.pages.setObjectName("flowPages")
        self.pages.addWidget(self._empty_edit_page)
        self.pages.addWidget(self._make_text_page())
        self.middle = QSplitter(Qt.Orientation.Horizontal)
        self.middle.setObjectName("flowMiddle")
        self.middle.setChildrenCollapsible(False)
        for number, (part, least) in enumerate(((self.side, 12), (self.pages, 0), (self.graph, 14))):
            part.setMinimumWidth(px(least * GRID_PX))
            self.middle.addWidget(part)
            self.middle.setStretchFactor(number, (0, 3, 2)[number])
        self.middle.setSizes([px(22 * GRID_PX), px(60 * GRID_PX), px(36 * GRID_PX)])
        self.tabs.setObjectName("flowTabs")
        self._translator.bind(self.tabs.setAccessibleName, "flows.tabs")
        self.tabs.tabBar().setObjectName("flowTabBar")
        self._translator.bind(self.tabs.tabBar().setAccessibleName, "flows.tabs")
        for tab in (self.problems, self.try_pane, self.tests_pane):
            self.tabs.addTab(tab, "")
        rows = QSplitter(Qt.Orientation.Vertical)
        rows.setObjectName("flowRows")
        rows.setChildrenCollapsible(False)
        rows.addWidget(self.middle)
        rows.addWidget(self.tabs)
        rows.setStretchFactor(0, 3)
        rows.setStretchFactor(1, 1)
        rows.setSizes([56 * GRID_PX, 24 * GRID_PX])
        column.addWidget(rows, 1)
        self.message.setObjectName("flowMessage")
        self.message.setWordWrap(True)
        self.position.setObjectName("flowPosition")
        self.position.setProperty("isMuted", True)
        row = QHBoxLayout()
        row.addWidget(self.message, 1)
        row.addWidget(self.position)
        column.addLayout(row)

    def _make_bar(self) -> QHBoxLayout:
        bar = QHBoxLayout()
        bar.setSpacing(2)
        for name, is_checkable in (("new", False), ("save", False), ("copy", False), ("find", False), ("try", False),
                                   ("tests", False)):  # fmt: skip
            bar.addWidget(self._button(name, is_checkable=is_checkable))
        bar.addStretch(1)
        for name in ("zoom_out", "fit", "zoom_in"):
            bar.addWidget(self._button(name))
        for name in ("files", "graph"):
            bar.addWidget(self._button(name, is_checkable=True))
            self._buttons[name].setChecked(True)
        bar.addWidget(self._button("more"))
        buttons = self._buttons
        buttons["save"].clicked.connect(self.save_asked)
        buttons["copy"].clicked.connect(self.copy_asked)
        buttons["find"].clicked.connect(self.find.open)
        buttons["try"].clicked.connect(self.show_try)
        buttons["tests"].clicked.connect(self.tests_asked)
        buttons["zoom_in"].clicked.connect(lambda: self.graph.zoom(1.2))
        buttons["zoom_out"].clicked.connect(lambda: self.graph.zoom(1 / 1.2))
        buttons["fit"].clicked.connect(self.graph.fit)
        buttons["files"].toggled.connect(self._show_side)
        buttons["graph"].toggled.connect(self._show_graph)
        self._make_menus()
        return bar

    def _button(self, name: str, *, is_checkable: bool = False) -> QToolButton:
        key = {"new": "flows.new", "save": "flows.save", "copy": "flows.copy", "find": "flows.find", "try": "flows.try",
               "tests": "flows.run_tests", "more": "flows.more", "files": "flows.show_files",
               "graph": "flows.show_graph"}.get(name, f"flows.graph.{name}")  # fmt: skip
        made = tool_button(f"flowButton_{name}", key, self._translator, is_checkable=is_checkable)
        self._buttons[name] = made
        return made

    def _show_side(self, is_shown: bool) -> None:
        self.side.setVisible(is_shown)

    def _show_graph(self, is_shown: bool) -> None:
        self.graph.setVisible(is_shown)
        for name in ("zoom_in", "zoom_out", "fit"):
            self._buttons[name].setVisible(is_shown)

    def _make_menus(self) -> None:
        new, more = self._menu("new"), self._menu("more")
        for kind in KINDS:
            self._entry(new, f"flowTemplate_{kind}", f"flows.new.{kind}", partial(self.template_chosen.emit, kind))
        new.addSeparator()
        self._entry(new, "flowNewFile", "flows.new.file", lambda: self.file_asked.emit("flows"))
        self._entry(new, "flowNewTests", "flows.new.tests", lambda: self.file_asked.emit("tests"))
        self._entry(more, "flowImport", "flows.import", self._ask_import)
        self._entry(more, "flowExport", "flows.export", self.export_asked.emit)
        more.addSeparator()
        self._entry(more, "flowNextProblem", "flows.next_problem", lambda: self.problem_step_asked.emit(1))
        self._entry(more, "flowPreviousProblem", "flows.previous_problem", lambda: self.problem_step_asked.emit(-1))
        self._entry(more, "flowFixHere", "flows.fix_here", self.edit.fix_asked.emit)
        more.addSeparator()
        self._entry(more, "flowDiscard", "flows.banner.discard", self.discard_asked.emit)

    def _menu(self, name: str) -> QMenu:
        button = self._buttons[name]
        made = QMenu(button)
        made.setObjectName(f"flowMenu_{name}")
        self._translator.bind(made.setTitle, {"new": "flows.new", "more": "flows.more"}[name])
        button.setMenu(made)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        return made

    def _entry(self, menu: QMenu, name: str, key: str, act: Callable[[], object]) -> None:
        action = QAction(menu)
        action.setObjectName(name)
        self._translator.bind(action.setText, key)
        action.triggered.connect(lambda _=False: act())
        menu.addAction(action)

    def _make_text_page(self) -> QWidget:
        page = QWidget()
        page.setObjectName("flowTextPage")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID_PX // 2)
        column.addWidget(self.banner)
        column.addWidget(self.find)
        column.addWidget(self.edit, 1)
        self.edit.setMinimumSize(px(28 * GRID_PX), 10 * GRID_PX)
        return page

    def _make_empty_page(self) -> QWidget:
        page = QWidget()
        page.setObjectName("flowEmptyPage")
        head, words = QLabel(), QLabel()
        head.setObjectName("flowEmptyTitle")
        words.setObjectName("flowEmptyText")
        for label, key in ((head, "flows.empty.title"), (words, "flows.empty.text")):
            label.setWordWrap(True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            self._translator.bind(label.setText, key)
        self.first_flow, self.first_reminder = QPushButton(), QPushButton()
        column = QVBoxLayout(page)
        column.setSpacing(GRID_PX)
        column.addStretch(1)
        column.addWidget(head)
        column.addWidget(words)
        for button, name, key in (
            (self.first_flow, "flowFirstFlow", "flows.empty.new"),
            (self.first_reminder, "flowFirstReminder", "flows.empty.reminder"),
        ):
            button.setObjectName(name)
            self._translator.bind(button.setText, key)
            self._translator.bind(button.setAccessibleName, key)
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        self.first_flow.clicked.connect(lambda: self.template_chosen.emit("flow"))
        self.first_reminder.clicked.connect(lambda: self.template_chosen.emit("reminder"))
        column.addStretch(2)
        return page

    # --- keys ------------------------------------------------------------------------------------------

    def _bind_keys(self) -> None:
        for keys, act in (
            ("Ctrl+S", self.save_asked.emit),
            ("Ctrl+F", self.find.open),
            ("Ctrl+R", self.find.open),
            ("F3", self.find.find_next),
            ("Shift+F3", self.find.find_previous),
            ("F8", lambda: self.problem_step_asked.emit(1)),
            ("Shift+F8", lambda: self.problem_step_asked.emit(-1)),
            ("Ctrl+Shift+T", self.tests_asked.emit),
            ("Ctrl+T", self.show_try),
            ("Ctrl+N", lambda: self.template_chosen.emit("flow")),
            ("Ctrl+Shift+O", self.outline.setFocus),
            ("F6", lambda: self._cycle(1)),
            ("Shift+F6", lambda: self._cycle(-1)),
        ):
            made = QShortcut(QKeySequence(keys), self._panel)
            made.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            made.activated.connect(act)

    def _cycle(self, step: int) -> None:
        """Go to the next pane: the way out of the text, where Tab indents."""
        tab = (self.problems, self.try_pane.field, self.tests_pane.results)[self.tabs.currentIndex()]
        text: QWidget = self.edit if self.pages.currentIndex() == 1 else self.first_flow
        panes: list[QWidget] = [p for p in (self.files, self.outline, text, self.graph, tab) if p.isVisible()]
        here = next((n for n, pane in enumerate(panes) if pane.hasFocus()), -1)
        panes[(here + step) % len(panes)].setFocus(Qt.FocusReason.TabFocusReason)

    # --- packs -----------------------------------------------------------------------------------------

    def _ask_import(self) -> None:
        self._dialog("flowImportDialog", "flows.import", self.import_chosen.emit, is_open=True)

    def ask_export_path(self, chosen: Callable[[str], object]) -> None:
        """Ask where a pack is to go."""
        self._dialog("flowExportDialog", "flows.export", chosen, is_open=False)

    def _dialog(self, name: str, key: str, chosen: Callable[[str], object], *, is_open: bool) -> None:
        made = QFileDialog(self._panel, self._translator.text(key))
        made.setObjectName(name)
        made.setNameFilter(self._translator.text("flows.pack.filter"))
        made.setDefaultSuffix("zip")
        made.setFileMode(QFileDialog.FileMode.ExistingFile if is_open else QFileDialog.FileMode.AnyFile)
        made.setAcceptMode(QFileDialog.AcceptMode.AcceptOpen if is_open else QFileDialog.AcceptMode.AcceptSave)
        made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        made.fileSelected.connect(chosen)
        made.open()

    # --- looks -----------------------------------------------------------------------------------------

    def dress(self) -> None:
        """Take the colours of the theme, once; later changes of it come by themselves."""
        if not self._is_dressed:
            self._restyle()

    def _restyle(self) -> None:
        self._is_dressed = True
        p = self._theme.palette
        self._panel.setStyleSheet(editor_stylesheet(p))
        for name, icon in BUTTON_ICONS.items():
            made = icons.icon(icon, p.ink, size_px=ICON_PX)
            made.addPixmap(icons.pixmap(icon, p.outline, ICON_PX, 2.0), made.Mode.Disabled)
            self._buttons[name].setIcon(made)
            self._buttons[name].setIconSize(icons.square(ICON_PX))
        self.edit.restyle()

    def _refresh(self) -> None:
        self._tell()
        self._tell_place()

    def _tell(self) -> None:
        if isinstance(self._said, Fault):
            self.message.setText(self._translator.fault(self._said.code, self._said.message))
        else:
            key, values = self._said
            self.message.setText(self._translator.text(key, **values))

    def _tell_place(self) -> None:
        text = self._translator.text
        errors, warnings = self._counts
        for number, tab in enumerate(_TABS):
            label = text(f"flows.tab.{tab}")
            self.tabs.setTabText(
                number, f"{label} ({errors + warnings})" if number == 0 and errors + warnings else label
            )
        self.position.setText(text("flows.position", line=self._place[0], col=self._place[1]))
