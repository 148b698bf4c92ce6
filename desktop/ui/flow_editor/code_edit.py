"""The text: line numbers, marks of problems, indentation by rule, completion. Lines and columns start at 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QRect, QSize, QStringListModel, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import QCompleter, QListView, QPlainTextEdit, QTextEdit, QToolTip, QWidget

from desktop.ui.flow_editor.completion import Completion
from desktop.ui.flow_editor.style import code_font
from desktop.ui.theme import Palette, Theme
from orchestrator.flows.source import Problem

_INDENT = "  "
_MARKS = {"error": "✕", "warning": "!"}
_ROOM_PX = 8
_TOGGLE_KEYS = (Qt.Key.Key_E,)


def to_utf16(text: str, col: int) -> int:
    """Return the column from 0 in Qt's units of a column from 1 in characters."""
    return len(text[: max(col - 1, 0)].encode("utf-16-le", "surrogatepass")) // 2


def from_utf16(text: str, position: int) -> int:
    """Return the column from 1 in characters of a column from 0 in Qt's units."""
    units = text.encode("utf-16-le", "surrogatepass")[: position * 2]
    return len(units.decode("utf-16-le", "replace")) + 1


class LineNumbers(QWidget):
    """The strip left of the text; a click selects the line."""

    def __init__(self, edit: CodeEdit) -> None:
        """Belong to `edit`."""
        super().__init__(edit)
        self.setObjectName("flowLineNumbers")
        self._edit = edit

    def sizeHint(self) -> QSize:
        """Return the width of the longest number."""
        return QSize(self._edit.numbers_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the numbers of the lines in sight."""
        self._edit.paint_numbers(self, event)


class CodeEdit(QPlainTextEdit):
    """Edits YAML. `completer_of` returns what fits at the cursor; it is called on the GUI thread and must be quick.

    `words_of` says a problem in the language of the window.
    """

    fix_asked = Signal()
    place_changed = Signal(int, int)

    def __init__(
        self, theme: Theme, completer_of: Callable[[str, int, int], Completion], words_of: Callable[[Problem], str]
    ) -> None:
        """Start empty."""
        super().__init__()
        self.setObjectName("flowText")
        self._theme = theme
        self._completer_of = completer_of
        self._words_of = words_of
        self._problems: tuple[Problem, ...] = ()
        self._lit: tuple[int, int] | None = None
        self._completion = Completion(prefix="")
        self.numbers = LineNumbers(self)
        self.setFont(code_font())
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTabStopDistance(self.fontMetrics().horizontalAdvance(" ") * len(_INDENT))
        self.setMouseTracking(True)
        self._popup = QListView()
        self._completer = self._make_completer()
        self.blockCountChanged.connect(self._fit_margin)
        self.updateRequest.connect(self._on_update_request)
        self.cursorPositionChanged.connect(self._on_cursor_moved)
        self._fit_margin()

    # --- places ----------------------------------------------------------------------------------------

    def place(self) -> tuple[int, int]:
        """Return the cursor's line and column."""
        cursor = self.textCursor()
        block = cursor.block()
        return block.blockNumber() + 1, from_utf16(block.text(), cursor.positionInBlock())

    def go_to(self, line: int, col: int = 1, end: tuple[int, int] | None = None) -> None:
        """Put the cursor to a place, or select up to `end`, and bring it into sight."""
        cursor = self.cursor_at((line, col), end)
        self.setTextCursor(cursor)
        self.centerCursor()

    def cursor_at(self, start: tuple[int, int], end: tuple[int, int] | None = None) -> QTextCursor:
        """Return a cursor that selects from `start` to `end`."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._position(*start))
        if end is not None:
            cursor.setPosition(self._position(*end), QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _position(self, line: int, col: int) -> int:
        block = self.document().findBlockByNumber(min(max(line, 1), self.blockCount()) - 1)
        return block.position() + min(to_utf16(block.text(), col), block.length() - 1)

    # --- marks -----------------------------------------------------------------------------------------

    def show_problems(self, problems: Sequence[Problem]) -> None:
        """Underline the problems of this text."""
        self._problems = tuple(problems)
        self._mark()
        self.numbers.update()

    def show_lines(self, first: int, last: int) -> None:
        """Tint the lines of a step."""
        self._lit = first, last
        self._mark()

    def problems_at(self, line: int) -> list[Problem]:
        """Return the problems of a line."""
        return [p for p in self._problems if p.line <= line <= max(p.line, p.end[0] if p.end[1] > 1 else p.end[0] - 1)]

    def restyle(self) -> None:
        """Take the theme's colours."""
        self._mark()
        self.numbers.update()

    def _mark(self) -> None:
        p = self._theme.palette
        found = [self._line_mark(p)]
        if self._lit is not None:
            found += [
                self._tint(line, p.raised) for line in range(self._lit[0], min(self._lit[1], self._lit[0] + 60) + 1)
            ]
        found += [self._squiggle(problem, p) for problem in self._problems[:200]]
        self.setExtraSelections(found)

    def _line_mark(self, p: Palette) -> QTextEdit.ExtraSelection:
        mark = self._tint(self.textCursor().blockNumber() + 1, p.background)
        mark.cursor = self.textCursor()
        mark.cursor.clearSelection()
        return mark

    def _tint(self, line: int, colour: str) -> QTextEdit.ExtraSelection:
        made = QTextEdit.ExtraSelection()
        made.format.setBackground(QColor(colour))
        made.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
        made.cursor = self.cursor_at((line, 1))
        return made

    def _squiggle(self, problem: Problem, p: Palette) -> QTextEdit.ExtraSelection:
        made = QTextEdit.ExtraSelection()
        form = made.format
        form.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
        form.setUnderlineColor(QColor(p.danger if problem.severity == "error" else p.warning))
        end = problem.end
        if end[0] > problem.line:
            # A whole block is underlined in its first line alone.
            end = (problem.line, len(self.document().findBlockByNumber(problem.line - 1).text()) + 1)
        cursor = self.cursor_at((problem.line, problem.col), end)
        if not cursor.hasSelection():
            cursor.select(QTextCursor.SelectionType.WordUnderCursor)
        if not cursor.hasSelection():
            cursor.select(QTextCursor.SelectionType.LineUnderCursor)
        made.cursor = cursor
        return made

    # --- line numbers ----------------------------------------------------------------------------------

    def numbers_width(self) -> int:
        """Return how wide the strip is."""
        digits = max(3, len(str(self.blockCount())))
        return self.fontMetrics().horizontalAdvance("9") * (digits + 1) + 3 * _ROOM_PX

    def paint_numbers(self, strip: QWidget, event: QPaintEvent) -> None:
        """Draw the strip: numbers, and a sign for each line with a problem."""
        p = self._theme.palette
        painter = QPainter(strip)
        painter.fillRect(event.rect(), QColor(p.background))
        painter.setFont(self.font())
        height = self.fontMetrics().height()
        marks = {problem.line: problem.severity for problem in reversed(self._problems)}
        here = self.textCursor().blockNumber()
        block: QTextBlock = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top <= event.rect().bottom():
            bottom = top + self.blockBoundingRect(block).height()
            if block.isVisible() and bottom >= event.rect().top():
                number = block.blockNumber()
                painter.setPen(QColor(p.ink if number == here else p.muted))
                room = QRect(0, round(top), strip.width() - _ROOM_PX, height)
                painter.drawText(room, Qt.AlignmentFlag.AlignRight, str(number + 1))
                severity = marks.get(number + 1)
                if severity is not None:
                    painter.setPen(QColor(p.danger if severity == "error" else p.warning))
                    painter.drawText(
                        room.adjusted(_ROOM_PX // 2, 0, 0, 0), Qt.AlignmentFlag.AlignLeft, _MARKS[severity]
                    )
            block, top = block.next(), bottom
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the strip as high as the text."""
        super().resizeEvent(event)
        room = self.contentsRect()
        self.numbers.setGeometry(QRect(room.left(), room.top(), self.numbers_width(), room.height()))

    def _fit_margin(self) -> None:
        self.setViewportMargins(self.numbers_width(), 0, 0, 0)
        room = self.contentsRect()
        self.numbers.setGeometry(QRect(room.left(), room.top(), self.numbers_width(), room.height()))

    def _on_update_request(self, rect: QRect, dy: int) -> None:
        if dy:
            self.numbers.scroll(0, dy)
        else:
            self.numbers.update(0, rect.y(), self.numbers.width(), rect.height())

    def _on_cursor_moved(self) -> None:
        self._mark()
        self.numbers.update()
        self.place_changed.emit(*self.place())

    # --- keys ------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Leave the window its own keys, and tell about a problem where the mouse rests."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            is_control = event.modifiers() == Qt.KeyboardModifier.ControlModifier
            if is_control and event.key() in _TOGGLE_KEYS:
                event.ignore()
                return False
        if event.type() == QEvent.Type.ToolTip:
            self._tell_problem(event)
            return True
        return super().event(event)

    def _tell_problem(self, event: QEvent) -> None:
        at = event.pos() - self.viewport().pos()  # type: ignore[attr-defined] # a QHelpEvent
        found = self.problems_at(self.cursorForPosition(at).blockNumber() + 1)
        text = "\n".join(self._words_of(p) for p in found)
        QToolTip.showText(event.globalPos(), text, self)  # type: ignore[attr-defined]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Indent, comment, complete; the rest as usual."""
        popup = self._popup
        key, modifiers = event.key(), event.modifiers()
        if popup.isVisible() and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab, Qt.Key.Key_Escape):
            event.ignore()
            return
        is_control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        if is_control and key == Qt.Key.Key_Space:
            self.offer_completion()
        elif is_control and key == Qt.Key.Key_Slash:
            self._toggle_comment()
        elif is_control and key == Qt.Key.Key_Period:
            self.fix_asked.emit()
        elif key == Qt.Key.Key_Tab and not is_control:
            self._indent()
        elif key == Qt.Key.Key_Backtab:
            self._dedent()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not is_control and not self.isReadOnly():
            self._new_line()
        else:
            super().keyPressEvent(event)
            if event.text() and not is_control:
                self._complete_while_typing(event.text())

    def _new_line(self) -> None:
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        lead = before[: len(before) - len(before.lstrip(" "))]
        body = before.strip()
        if body.startswith("- ") and not body.endswith(":"):
            lead += _INDENT if ":" in body and "{" not in body else ""
        elif body.endswith((":", "|", ">", ">-", "|-")):
            lead += _INDENT * (2 if body.startswith("- ") else 1)
        cursor.insertText("\n" + lead)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def _lines(self) -> tuple[int, int]:
        cursor = self.textCursor()
        document = self.document()
        first = document.findBlock(cursor.selectionStart()).blockNumber()
        last_block = document.findBlock(cursor.selectionEnd())
        last = last_block.blockNumber()
        if last > first and cursor.selectionEnd() == last_block.position():
            last -= 1
        return first, last

    def _change_lines(self, change: Callable[[str], str]) -> None:
        if self.isReadOnly():
            return
        first, last = self._lines()
        cursor = self.textCursor()
        cursor.beginEditBlock()
        for number in range(first, last + 1):
            block = self.document().findBlockByNumber(number)
            old = block.text()
            new = change(old)
            if new != old:
                edit = QTextCursor(block)
                kept = 0
                while kept < min(len(old), len(new)) and old[-1 - kept] == new[-1 - kept]:
                    kept += 1
                edit.setPosition(block.position() + len(old) - kept, QTextCursor.MoveMode.KeepAnchor)
                edit.insertText(new[: len(new) - kept])
        cursor.endEditBlock()

    def _indent(self) -> None:
        cursor = self.textCursor()
        if cursor.hasSelection():
            self._change_lines(lambda line: _INDENT + line if line.strip() else line)
        elif not self.isReadOnly():
            cursor.insertText(_INDENT if cursor.positionInBlock() % 2 == 0 else " ")

    def _dedent(self) -> None:
        self._change_lines(lambda line: line.removeprefix(_INDENT) if line.startswith(_INDENT) else line.lstrip(" "))

    def _toggle_comment(self) -> None:
        first, last = self._lines()
        document = self.document()
        texts = [document.findBlockByNumber(n).text() for n in range(first, last + 1)]
        written = [t for t in texts if t.strip()]
        depth = min((len(t) - len(t.lstrip(" ")) for t in written), default=0)
        if written and all(t.lstrip().startswith("#") for t in written):
            self._change_lines(_uncommented)
        else:
            self._change_lines(lambda line: f"{line[:depth]}# {line[depth:]}" if line.strip() else line)

    # --- completion ------------------------------------------------------------------------------------

    def offer_completion(self) -> None:
        """Show what fits at the cursor."""
        if self.isReadOnly():
            return
        line, col = self.place()
        self._completion = self._completer_of(self.toPlainText(), line, col)
        words = [c.text for c in self._completion.candidates]
        popup = self._popup
        if not words:
            popup.hide()
            return
        model = self._completer.model()
        assert isinstance(model, QStringListModel)
        model.setStringList(words)
        popup.setCurrentIndex(self._completer.completionModel().index(0, 0))
        rect = self.cursorRect().translated(self.numbers_width(), 0)
        rect.setWidth(popup.sizeHintForColumn(0) + popup.verticalScrollBar().sizeHint().width() + 4 * _ROOM_PX)
        self._completer.complete(rect)

    def completions(self) -> list[str]:
        """Return what is offered now; empty when nothing is."""
        if not self._popup.isVisible():
            return []
        return [c.text for c in self._completion.candidates]

    def _make_completer(self) -> QCompleter:
        made = QCompleter(QStringListModel(self), self)
        made.setWidget(self)
        made.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        self._popup.setObjectName("flowCompletions")
        made.setPopup(self._popup)
        made.activated[str].connect(self._on_completion_chosen)  # type: ignore[index]
        return made

    def _complete_while_typing(self, typed: str) -> None:
        if typed[-1].isalnum() or typed in ("_", ".", " "):
            before = self.textCursor().block().text()[: self.textCursor().positionInBlock()]
            if typed == " " and not before.endswith((": ", "- ", "{ ")):
                self._popup.hide()
                return
            self.offer_completion()
        else:
            self._popup.hide()

    def _on_completion_chosen(self, text: str) -> None:
        chosen = next((c for c in self._completion.candidates if c.text == text), None)
        if chosen is None:
            return
        cursor = self.textCursor()
        cursor.beginEditBlock()
        units = to_utf16(self._completion.prefix, len(self._completion.prefix) + 1)
        cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, units)
        cursor.insertText(chosen.insert)
        cursor.endEditBlock()
        self.setTextCursor(cursor)


def _uncommented(line: str) -> str:
    lead, mark, rest = line.partition("#")
    return lead + rest.removeprefix(" ") if mark and not lead.strip() else line
