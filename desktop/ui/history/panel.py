"""The history panel: what both said, to search, copy, export, correct and delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.bridge import Bridge
from desktop.history_service import Done, Found, HistoryService, Line
from desktop.ui.dock_title import DockTitle
from desktop.ui.history.lines import LineList, LineModel
from desktop.ui.i18n import Translator
from desktop.ui.panel_style import dress
from desktop.ui.theme import GRID_PX, Theme
from orchestrator.contracts.views import UserTextView

_SETTLED_MS = 400
"""A line is stored a moment after it was shown, and typing a query goes on for a moment."""


class HistoryPanel(QDockWidget):
    """Shows what is stored; asks in the panel itself before it deletes."""

    def __init__(self, service: HistoryService, bridge: Bridge, theme: Theme, translator: Translator) -> None:
        """Look things up when shown."""
        super().__init__()
        self.setObjectName("historyPanel")
        dress(self, theme)
        self._title = DockTitle(self, "history", "dock", theme, translator)
        self.setTitleBarWidget(self._title)
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self._found = Found(query="")
        self._message: Callable[[], str] | None = None
        self._to_delete: list[int] | None = None
        self._question: Callable[[], str] = str
        self._correcting: Line | None = None
        self.model = LineModel(translator)
        self.list = LineList(self.model, theme)
        self.search = QLineEdit()
        self.empty = QLabel()
        self.status = QLabel()
        self.copy = self._button("historyCopyButton", "history.copy")
        self.correct = self._button("historyCorrectButton", "history.correct")
        self.export = self._button("historyExportButton", "history.export")
        self.delete = self._button("historyDeleteButton", "history.delete")
        self.delete_all = self._button("historyDeleteAllButton", "history.delete_all")
        self.question = QLabel()
        self.confirm = self._button("historyConfirmButton", "history.confirm")
        self.keep = self._button("historyKeepButton", "history.keep")
        self.corrected = QLineEdit()
        self.resend = self._button("historyResendButton", "history.resend")
        self.leave = self._button("historyLeaveButton", "history.keep")
        self._stack = QStackedWidget()
        self._question_bar = self._bar("historyQuestionBar", (self.question,), (self.confirm, self.keep))
        self._correct_bar = self._bar("historyCorrectBar", (self.corrected,), (self.resend, self.leave))
        self._lay_out()
        self._bind()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SETTLED_MS)
        self._timer.timeout.connect(self.refresh)
        self._connect()
        self._show()

    # --- showing ----------------------------------------------------------------------------------------

    def set_character_name(self, name: str) -> None:
        """Call the character by `name`."""
        self.model.character = name
        self.list.viewport().update()

    def refresh(self) -> None:
        """Look the lines up anew."""
        query = self.search.text()
        self._service.find(query, lambda found: self._later(lambda: self._take(found)))

    def showEvent(self, event: QShowEvent) -> None:
        """Look when someone looks."""
        super().showEvent(event)
        self.refresh()

    def _take(self, found: Found) -> None:
        if found.query != self.search.text():
            return
        if found == self._found:
            self._show()
            return
        bar = self.list.verticalScrollBar()
        is_at_end = bar.value() >= bar.maximum() - 4 or not self._found.lines or found.query != self._found.query
        place, chosen = bar.value(), {line.id for line in self.list.chosen()}
        self._found = found
        self.model.show_lines(found.lines)
        self.list.choose(chosen)
        self.list.scrollToBottom() if is_at_end else bar.setValue(place)
        self._show()

    def _show(self) -> None:
        text, found = self._translator.text, self._found
        self._stack.setCurrentWidget(self.list if found.lines else self.empty)
        self.empty.setText(text("history.nothing_found" if self.search.text().strip() else "history.empty"))
        if self._message is not None:
            words = self._message()
        elif found.error:
            words = text("history.failed", reason=found.error)
        elif not found.lines:
            words = ""
        else:
            words = text("history.more" if found.has_more else "history.count", count=len(found.lines))
        self.status.setText(words)
        self.status.setAccessibleName(words)
        chosen = self.list.chosen()
        self.copy.setEnabled(bool(chosen))
        self.delete.setEnabled(bool(chosen))
        self.correct.setEnabled(self._correctable() is not None)
        for part in (self.export, self.delete_all):
            part.setEnabled(bool(found.lines))
        self.question.setText(self._question())
        self.question.setAccessibleName(self.question.text())
        self._question_bar.setVisible(self._to_delete is not None)
        self._correct_bar.setVisible(self._correcting is not None)

    def _say(self, key: str, **values: object) -> None:
        self._message = lambda: self._translator.text(key, **values)
        self._show()

    def _later(self, call: Callable[[], None]) -> None:
        self._bridge.call(call)

    # --- what the user does -----------------------------------------------------------------------------

    def _on_chosen(self) -> None:
        self._message = None
        if self._correcting is not None and [line.id for line in self.list.chosen()] != [self._correcting.id]:
            self._correcting = None
        self._show()

    def _on_copy(self) -> None:
        chosen = self.list.chosen()
        if chosen:
            several = len(chosen) > 1
            text = "\n".join(f"{self.model.speaker(one.role)}: {one.text}" if several else one.text for one in chosen)
            QGuiApplication.clipboard().setText(text)
            self._say("history.copied", count=len(chosen))

    def _on_delete(self) -> None:
        ids = [line.id for line in self.list.chosen()]
        if ids:
            self._ask(ids, "history.ask", count=len(ids))

    def _on_delete_all(self) -> None:
        self._ask([], "history.ask_all")

    def _ask(self, ids: list[int], key: str, **values: object) -> None:
        self._to_delete, self._correcting = ids, None
        self._question = lambda: self._translator.text(key, **values)
        self._show()
        # The harmless answer has the keyboard.
        self.keep.setFocus()

    def _on_confirmed(self) -> None:
        ids, self._to_delete = self._to_delete, None
        if ids is None:
            return
        if ids:
            self._service.delete(ids, lambda done: self._later(lambda: self._on_deleted(done)))
        else:
            self._service.delete_all(lambda done: self._later(lambda: self._on_deleted(done)))
        self._show()

    def _on_kept(self) -> None:
        self._to_delete = self._correcting = None
        self._show()
        self.list.setFocus()

    def _on_deleted(self, done: Done) -> None:
        if done.error:
            self._say("history.failed", reason=done.error)
        else:
            self._say("history.deleted", count=done.count)
        self.refresh()

    def _correctable(self) -> Line | None:
        """Return the chosen line if it is one that can have been misheard, and was not put right already."""
        chosen = self.list.chosen()
        is_one = len(chosen) == 1 and chosen[0].role == "user" and not chosen[0].is_replaced
        return chosen[0] if is_one else None

    def _on_correct(self) -> None:
        line = self._correctable()
        if line is not None:
            self._correcting, self._to_delete = line, None
            self.corrected.setText(line.text)
            self._show()
            self.corrected.setFocus()
            self.corrected.selectAll()

    def _on_resend(self) -> None:
        line, text = self._correcting, self.corrected.text()
        if line is None or not text.strip():
            return
        if self._service.correct(line, text):
            self._correcting = None
            self._say("history.resent")
        else:
            self._say("history.not_resent")

    def _on_export(self) -> None:
        text = self._translator.text
        chosen, kind = QFileDialog.getSaveFileName(
            self, text("history.export"), "mynah.md", "Markdown (*.md);;SRT (*.srt)"
        )
        if chosen:
            path = Path(chosen)
            self.save(path if path.suffix else path.with_suffix(".srt" if "srt" in kind else ".md"))

    def save(self, path: Path) -> None:
        """Write the chosen lines, or all that are shown."""
        lines = self.list.chosen()
        names = {role: self.model.speaker(role) for role in ("user", "assistant", "note")}
        self._service.export(
            path,
            lines if len(lines) > 1 else self._found.lines,
            names,
            lambda done: self._later(lambda: self._on_exported(path.name, done)),
        )

    def _on_exported(self, name: str, done: Done) -> None:
        if done.error:
            self._say("history.failed", reason=done.error)
        else:
            self._say("history.exported", count=done.count, name=name)

    def _on_query_changed(self) -> None:
        self._message = None
        self._timer.start()

    def _on_news(self, view: object) -> None:
        if self.isVisible() and (not isinstance(view, UserTextView) or view.final):
            self._timer.start()

    # --- building ---------------------------------------------------------------------------------------

    def _button(self, name: str, key: str) -> QPushButton:
        made = QPushButton()
        made.setObjectName(name)
        made.setProperty("isSmall", True)
        made.setAutoDefault(False)
        self._translator.bind(made.setText, key)
        self._translator.bind(made.setAccessibleName, key)
        return made

    def _bar(self, name: str, wide: tuple[QWidget, ...], buttons: tuple[QWidget, ...]) -> QFrame:
        made = QFrame()
        made.setObjectName(name)
        column = QVBoxLayout(made)
        column.setContentsMargins(0, 0, 0, 0)
        for part in wide:
            column.addWidget(part)
        row = QHBoxLayout()
        row.addStretch(1)
        for part in buttons:
            row.addWidget(part)
        column.addLayout(row)
        return made

    def _lay_out(self) -> None:
        body = QWidget()
        body.setObjectName("historyBody")
        column = QVBoxLayout(body)
        column.setContentsMargins(GRID_PX, GRID_PX, GRID_PX, GRID_PX)
        column.setSpacing(GRID_PX)
        for line, name in ((self.search, "historySearch"), (self.corrected, "historyCorrected")):
            line.setObjectName(name)
            line.setProperty("isSmall", True)
            line.setMaxLength(4000)
        self.search.setClearButtonEnabled(True)
        self.question.setObjectName("historyQuestion")
        self.question.setWordWrap(True)
        self.confirm.setProperty("isDanger", True)
        self.empty.setObjectName("historyEmpty")
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.status.setObjectName("historyStatus")
        self.status.setProperty("role", "caption")
        self.status.setWordWrap(True)
        self._stack.setObjectName("historyStack")
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.list)
        column.addWidget(self.search)
        column.addWidget(self._stack, 1)
        column.addWidget(self.status)
        column.addWidget(self._question_bar)
        column.addWidget(self._correct_bar)
        grid = QGridLayout()
        grid.setSpacing(GRID_PX)
        for place, part in enumerate((self.correct, self.copy, self.export, self.delete, self.delete_all)):
            grid.addWidget(part, place // 3, place % 3)
        column.addLayout(grid)
        body.setMinimumHeight(36 * GRID_PX)
        self.setWidget(body)

    def _bind(self) -> None:
        bind = self._translator.bind
        bind(self.setWindowTitle, "history.title")
        bind(self._title.show_title, "history.title")
        bind(self.setAccessibleName, "history.title")
        bind(self.list.setAccessibleName, "history.list")
        bind(self.search.setPlaceholderText, "history.search")
        bind(self.search.setAccessibleName, "history.search")
        bind(self.corrected.setPlaceholderText, "history.corrected")
        bind(self.corrected.setAccessibleName, "history.corrected")
        bind(self.correct.setToolTip, "history.correct.tip")

    def _connect(self) -> None:
        for button, call in (
            (self.copy, self._on_copy),
            (self.correct, self._on_correct),
            (self.export, self._on_export),
            (self.delete, self._on_delete),
            (self.delete_all, self._on_delete_all),
            (self.confirm, self._on_confirmed),
            (self.keep, self._on_kept),
            (self.resend, self._on_resend),
            (self.leave, self._on_kept),
        ):
            button.clicked.connect(partial(_without_state, call))
        self.corrected.returnPressed.connect(self._on_resend)
        self.search.textChanged.connect(self._on_query_changed)
        self.list.selectionModel().selectionChanged.connect(self._on_chosen)
        self.list.doubleClicked.connect(self._on_correct)
        self._translator.changed.connect(self._show)
        self._bridge.generation_ended.connect(self._on_news)
        self._bridge.user_text_changed.connect(self._on_news)
        for keys, call in (
            (QKeySequence(QKeySequence.StandardKey.Copy), self._on_copy),
            (QKeySequence(QKeySequence.StandardKey.Delete), self._on_delete),
            (QKeySequence(Qt.Key.Key_F2), self._on_correct),
        ):
            shortcut = QShortcut(keys, self.list)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(call)


def _without_state(call: Callable[[], None], _: bool = False) -> None:
    call()
