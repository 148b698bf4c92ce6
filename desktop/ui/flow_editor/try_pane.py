"""Trying the unsaved text: a chat, what each turn did, and the tests."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QSplitter,
    QTextBrowser,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from desktop.faults import Fault
from desktop.flow_folders import FlowFolders
from desktop.try_out import TestRun, TriedTurn, TryOut, TryOutListener
from desktop.ui import icons
from desktop.ui.empty_hint import EmptyHint
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme
from desktop.ui.tool_buttons import ICON_PX, tool_button
from orchestrator.flows.source import Problem

_ROLE = Qt.ItemDataRole.UserRole
_MANY = 32
"""Fewer new sentences are learnt before anybody has read that they are."""
MakeTryOut = Callable[[FlowFolders, TryOutListener], TryOut]


class TryOutPort(QObject):
    """Brings the try-out's results to the GUI thread."""

    begun = Signal(object)
    turn_done = Signal(object)
    tests_done = Signal(object)
    failed = Signal(object)
    progressed = Signal(int, int)
    cancelled = Signal()

    def __init__(self, folders: FlowFolders, make: MakeTryOut, parent: QObject | None = None) -> None:
        """Start no thread yet."""
        super().__init__(parent)
        self._is_closed = False
        self.session = make(
            folders,
            TryOutListener(
                on_begun=lambda problems: self._tell(self.begun, problems),
                on_turn=lambda turn: self._tell(self.turn_done, turn),
                on_tests=lambda run: self._tell(self.tests_done, run),
                on_fault=lambda fault: self._tell(self.failed, fault),
                on_progress=lambda done, total: self._tell(self.progressed, done, total),
                on_cancelled=lambda: self._tell(self.cancelled),
            ),
        )

    def stop(self) -> None:
        """End the try-out's thread."""
        self._is_closed = True
        self.session.stop()

    def _tell(self, signal: Any, *values: object) -> None:
        # The thread may still speak while the window is taken down.
        if not self._is_closed:
            signal.emit(*values)


class TryPane(QWidget):
    """The chat. `texts` returns the unsaved texts with a number that changes when they do."""

    step_reached = Signal(object, object)

    def __init__(
        self, port: TryOutPort, texts: Callable[[], tuple[int, Mapping[str, str]]], theme: Theme, translator: Translator
    ) -> None:
        """Begin no conversation before something is said."""
        super().__init__()
        self.setObjectName("tryPane")
        self._port = port
        self._texts = texts
        self._theme = theme
        self._translator = translator
        self._version: int | None = None
        self._has_begun = self._is_stale = False
        self._progress = (0, 0)
        self._lines: list[tuple[str, str]] = []
        self._turns: list[TriedTurn] = []
        self._faults: list[Fault] = []
        self.talk, self.trace, self.field = QTextBrowser(), QTreeWidget(), QLineEdit()
        self.restart = tool_button("tryRestart", "flows.try.restart", translator)
        self.send = tool_button("trySend", "flows.try.send", translator)
        self.cancel = tool_button("tryCancel", "flows.try.cancel", translator)
        self._lay_out()
        self.field.returnPressed.connect(self._on_text_entered)
        self.send.clicked.connect(self._on_text_entered)
        self.restart.clicked.connect(self.begin_again)
        port.begun.connect(self._on_begun)
        port.turn_done.connect(self._on_turn_done)
        port.failed.connect(self._on_failed)
        port.progressed.connect(self._on_progressed)
        port.cancelled.connect(self._on_cancelled)
        self.cancel.clicked.connect(port.session.cancel)
        theme.changed.connect(self._refresh)
        translator.changed.connect(self._refresh)
        self._refresh()

    def begin_again(self) -> None:
        """Forget the conversation and begin one on the text as it is now."""
        if self._is_waiting():
            self._port.session.cancel()
        self._lines, self._turns = [], []
        self._has_begun = self._is_stale = False
        self._version, texts = self._texts()
        self._port.session.begin(texts)
        self._refresh()
        self.step_reached.emit(None, None)

    def lines(self) -> list[tuple[str, str]]:
        """Return (who, what) of everything in sight."""
        return list(self._lines)

    def _on_text_entered(self) -> None:
        text = self.field.text().strip()
        if not text:
            return
        version, texts = self._texts()
        if self._version is None:
            self._port.session.begin(texts)
        elif version != self._version or self._is_stale:
            self._port.session.reload(texts)
            if version != self._version:
                self._lines.append(("note", "flows.try.reloaded"))
        self._version, self._is_stale = version, False
        self._port.session.say(text)
        self.field.clear()
        self._lines.append(("user", text))
        self._lines.append(("wait", ""))
        self._refresh_talk()

    def _on_begun(self, problems: Sequence[Problem]) -> None:
        self._has_begun = True
        if problems:
            self._put(("note", "flows.try.faults"))

    def _on_turn_done(self, turn: TriedTurn) -> None:
        self._wait_no_more()
        self._lines += [("character", reply) for reply in turn.replies]
        if turn.is_broken:
            self._lines.append(("note", "flows.try.broken"))
        elif turn.needs_model:
            self._lines.append(("note", "flows.try.model"))
        elif not turn.replies:
            self._lines.append(("note", "flows.try.silent"))
        self._turns.append(turn)
        self._refresh()
        self.step_reached.emit(turn.active_flow, turn.step)

    def _on_failed(self, fault: Fault) -> None:
        self._wait_no_more()
        self._faults.append(fault)
        self._put(("error", str(len(self._faults) - 1)))

    def _on_progressed(self, done: int, total: int) -> None:
        if total >= _MANY:
            self._progress = done, total
            self._refresh_talk()

    def _on_cancelled(self) -> None:
        # The texts may never have arrived, so the next sentence brings them again.
        self._is_stale = True
        if not self._has_begun:
            self._version = None
        if self._is_waiting():
            self._wait_no_more()
            self._put(("note", "flows.try.cancelled"))

    def _is_waiting(self) -> bool:
        return any(who == "wait" for who, _ in self._lines)

    def _wait_no_more(self) -> None:
        self._progress = (0, 0)
        self._lines = [line for line in self._lines if line[0] != "wait"]

    def _put(self, line: tuple[str, str]) -> None:
        self._lines.append(line)
        self._refresh_talk()

    # --- drawing ---------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        p = self._theme.palette
        self.restart.setIcon(icons.icon("flow_restart", p.ink, size_px=ICON_PX))
        self.send.setIcon(icons.icon("send", p.ink, size_px=ICON_PX))
        self.cancel.setIcon(icons.icon("close", p.ink, size_px=ICON_PX))
        self._refresh_talk()
        self._refresh_trace()

    def _refresh_talk(self) -> None:
        p, text = self._theme.palette, self._translator.text
        self.cancel.setVisible(self._is_waiting())
        parts = []
        for who, what in self._lines:
            if who in ("user", "character"):
                colour = p.primary if who == "user" else p.good
                name = html.escape(text(f"role.{who}"))
                parts.append(
                    f'<p style="margin:3px"><b style="color:{colour}">{name}</b>&nbsp; {html.escape(what)}</p>'
                )
            elif who == "wait":
                done, total = self._progress
                words = text("flows.try.learning", done=done, total=total) if total else "…"
                parts.append(f'<p style="margin:3px;color:{p.muted}">{html.escape(words)}</p>')
            else:
                colour = p.danger if who == "error" else p.muted
                words = html.escape(self._fault_text(int(what)) if who == "error" else text(what))
                parts.append(f'<p style="margin:3px;color:{colour}"><i>{words}</i></p>')
        if not parts:
            parts.append(f'<p style="margin:3px;color:{p.muted}">{html.escape(text("flows.try.hint"))}</p>')
        self.talk.setHtml("".join(parts))
        bar = self.talk.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _fault_text(self, number: int) -> str:
        fault = self._faults[number]
        return self._translator.fault(fault.code, fault.message)

    def _refresh_trace(self) -> None:
        text = self._translator.text
        self.trace.clear()
        for turn in self._turns[-50:]:
            head = QTreeWidgetItem([f"{turn.number}. {turn.text}", f"{round(turn.duration_s * 1000)} ms"])
            head.setToolTip(0, turn.text)
            self.trace.addTopLevelItem(head)
            for line in turn.trace:
                child = QTreeWidgetItem([text(f"flows.trace.{line.kind}"), line.text])
                child.setToolTip(1, line.text)
                head.addChild(child)
            if turn.slots:
                slots = ", ".join(f"{name} = {value!r}" for name, value in turn.slots.items())
                child = QTreeWidgetItem([text("flows.trace.slots"), slots])
                child.setToolTip(1, slots)
                head.addChild(child)
            if turn.active_flow:
                head.addChild(QTreeWidgetItem([text("flows.trace.at"), f"{turn.active_flow} · {turn.step}"]))
        count = self.trace.topLevelItemCount()
        if count:
            last = self.trace.topLevelItem(count - 1)
            if last is not None:
                last.setExpanded(True)
                self.trace.scrollToItem(last, QTreeWidget.ScrollHint.PositionAtTop)

    def _lay_out(self) -> None:
        bind = self._translator.bind
        for widget, name, key in (
            (self.talk, "tryTalk", "flows.try.talk"),
            (self.trace, "tryTrace", "flows.try.trace"),
            (self.field, "tryField", "flows.try.field"),
        ):
            widget.setObjectName(name)
            bind(widget.setAccessibleName, key)
        bind(self.field.setPlaceholderText, "flows.try.field")
        self._empty = EmptyHint(self.trace, "flows.trace.empty", self._translator)
        self.talk.setOpenLinks(False)
        self.trace.setColumnCount(2)
        self.trace.setHeaderHidden(True)
        self.trace.setIndentation(12)
        self.trace.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        halves = QSplitter(Qt.Orientation.Horizontal)
        halves.setObjectName("tryHalves")
        halves.addWidget(self.talk)
        halves.addWidget(self.trace)
        halves.setSizes([300, 300])
        row = QHBoxLayout()
        row.setSpacing(GRID_PX // 2)
        row.addWidget(self.restart)
        row.addWidget(self.field, 1)
        row.addWidget(self.cancel)
        row.addWidget(self.send)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, GRID_PX // 2, 0, 0)
        column.setSpacing(GRID_PX // 2)
        column.addWidget(halves, 1)
        column.addLayout(row)


class TestsPane(QWidget):
    """The results of the tests; a click goes to the test."""

    __test__ = False

    test_chosen = Signal(str, int)

    def __init__(self, port: TryOutPort, theme: Theme, translator: Translator) -> None:
        """Start without results."""
        super().__init__()
        self.setObjectName("testsPane")
        self._theme = theme
        self._translator = translator
        self._run: TestRun | None = None
        self._is_running = self._is_cancelled = False
        self._progress = (0, 0)
        self.summary, self.results = QLabel(), QTreeWidget()
        self.summary.setObjectName("testsSummary")
        self.summary.setWordWrap(True)
        self.results.setObjectName("testResults")
        self.results.setColumnCount(2)
        self.results.setHeaderHidden(True)
        self.results.setIconSize(icons.square(ICON_PX))
        self.results.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        translator.bind(self.results.setAccessibleName, "flows.tests")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, GRID_PX // 2, 0, 0)
        column.setSpacing(GRID_PX // 2)
        self.cancel = tool_button("testsCancel", "flows.tests.cancel", translator)
        row = QHBoxLayout()
        row.setSpacing(GRID_PX // 2)
        row.addWidget(self.summary, 1)
        row.addWidget(self.cancel)
        column.addLayout(row)
        column.addWidget(self.results, 1)
        self.cancel.clicked.connect(port.session.cancel)
        self.results.itemClicked.connect(self._on_item_chosen)
        self.results.itemActivated.connect(self._on_item_chosen)
        port.tests_done.connect(self._on_tests_done)
        port.failed.connect(self._on_failed)
        port.progressed.connect(self._on_progressed)
        port.cancelled.connect(self._on_cancelled)
        theme.changed.connect(self._fill)
        translator.changed.connect(self._fill)
        self._fill()

    def show_running(self) -> None:
        """Say that the tests run."""
        self._is_running, self._is_cancelled = True, False
        self._progress = (0, 0)
        self._fill()

    def _on_tests_done(self, run: TestRun) -> None:
        self._is_running = False
        self._run = run
        self._fill()

    def _on_failed(self, _: Fault) -> None:
        self._is_running = False
        self._fill()

    def _on_progressed(self, done: int, total: int) -> None:
        if self._is_running and total >= _MANY:
            self._progress = done, total
            self._fill()

    def _on_cancelled(self) -> None:
        if self._is_running:
            self._is_running, self._is_cancelled = False, True
            self._fill()

    def _fill(self) -> None:
        p, text = self._theme.palette, self._translator.text
        self.results.clear()
        run = self._run
        self.cancel.setIcon(icons.icon("close", p.ink, size_px=ICON_PX))
        self.cancel.setVisible(self._is_running)
        if self._is_running or self._is_cancelled or run is None:
            self.summary.setText(self._state_text())
            return
        failed = sum(not t.passed for t in run.tests)
        if not run.tests:
            self.summary.setText(text("flows.tests.none"))
        else:
            self.summary.setText(text("flows.tests.summary", passed=len(run.tests) - failed, failed=failed))
        for test in sorted(run.tests, key=lambda t: t.passed):
            word = text("flows.tests.passed" if test.passed else "flows.tests.failed")
            item = QTreeWidgetItem([word, test.name])
            name, colour = ("flow_tests", p.good) if test.passed else ("error", p.danger)
            item.setIcon(0, icons.icon(name, colour, size_px=ICON_PX))
            item.setData(0, _ROLE, (test.file, test.line))
            for failure in test.failures:
                child = QTreeWidgetItem(["", failure])
                child.setToolTip(1, failure)
                child.setData(0, _ROLE, (test.file, test.line))
                item.addChild(child)
            self.results.addTopLevelItem(item)
            item.setExpanded(not test.passed)
        for flow, (visited, steps, taken, branches) in run.coverage.items():
            words = text("flows.tests.coverage", visited=visited, steps=steps, taken=taken, branches=branches)
            self.results.addTopLevelItem(QTreeWidgetItem([flow, words]))

    def _state_text(self) -> str:
        text = self._translator.text
        if not self._is_running:
            return text("flows.tests.cancelled" if self._is_cancelled else "flows.tests.hint")
        done, total = self._progress
        return text("flows.try.learning", done=done, total=total) if total else text("flows.tests.running")

    def _on_item_chosen(self, item: QTreeWidgetItem) -> None:
        found = item.data(0, _ROLE)
        if found is not None and found[0]:
            self.test_chosen.emit(*found)
