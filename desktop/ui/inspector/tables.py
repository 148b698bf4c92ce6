"""Answers, outputs, slots and commands as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidget, QTreeWidgetItem

from desktop.event_view import Answer, EventView
from desktop.ui.empty_hint import EmptyHint
from desktop.ui.i18n import Translator

_MOST_ROWS = 100


class InspectorTable(QTreeWidget):
    """A table that keeps its place while it is refreshed; newest row first."""

    def __init__(self, name: str, columns: Sequence[str], translator: Translator) -> None:
        """Head the columns by `inspector.column.<column>`."""
        super().__init__()
        self.setObjectName(name)
        self._columns = tuple(columns)
        self._translator = translator
        self._shown: list[tuple[str, ...]] = []
        self._is_reworded = False
        self.setColumnCount(len(columns))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.header().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.header().setStretchLastSection(True)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._empty = EmptyHint(self, f"inspector.{name.removeprefix('inspector').lower()}.empty", translator)
        translator.changed.connect(self._head)
        self._head()

    def show_rows(self, rows: Iterable[tuple[str, ...]]) -> None:
        """Show `rows`, at most the first hundred."""
        wanted = [row for row, _ in zip(rows, range(_MOST_ROWS), strict=False)]
        if wanted == self._shown:
            return
        is_first = not self._shown or self._is_reworded
        self._is_reworded = False
        self._shown = wanted
        place = self.verticalScrollBar().value()
        chosen = self.currentItem()
        key = chosen.text(0) if chosen is not None else None
        self.clear()
        for row in wanted:
            item = QTreeWidgetItem(list(row))
            for column, text in enumerate(row):
                item.setToolTip(column, text)
            self.addTopLevelItem(item)
            if key is not None and row[0] == key:
                self.setCurrentItem(item)
        self.verticalScrollBar().setValue(place)
        if is_first:
            self._fit_columns()

    def showEvent(self, event: QShowEvent) -> None:
        """Give every heading its room: only now is the style known."""
        super().showEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        for column in range(len(self._columns)):
            self.resizeColumnToContents(column)

    def _head(self) -> None:
        self.setHeaderLabels([self._translator.text(f"inspector.column.{column}") for column in self._columns])
        self._is_reworded = True
        self._fit_columns()


ANSWER_COLUMNS = ("answer", "state", "transcript", "first_token", "first_sound", "why", "said")
OUTPUT_COLUMNS = ("output", "answer", "kind", "state", "why", "text")
SLOT_COLUMNS = ("slot", "value", "provenance", "accepted", "at")
COMMAND_COLUMNS = ("at", "command", "by", "accepted", "why")


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value * 1000:.0f} ms"


def answer_rows(view: EventView, translator: Translator) -> Iterable[tuple[str, ...]]:
    """Return a row for each answer, newest first."""
    for answer in reversed(view.answers.values()):
        waits = answer.waits()
        yield (
            answer.id,
            _state(answer, translator),
            _seconds(waits["transcript"]),
            _seconds(waits["first_token"]),
            _seconds(waits["first_sound"]),
            _known("reason", answer.reason, translator),
            answer.user_text,
        )


def _state(answer: Answer, translator: Translator) -> str:
    state = translator.text(f"inspector.state.{answer.state}") if answer.state else ""
    if not answer.began_early:
        return state
    key = "used" if not answer.is_speculative else "thrown_away" if answer.end_s is not None else "waiting"
    return f"{state} ({translator.text(f'inspector.early.{key}')})"


def output_rows(view: EventView, translator: Translator) -> Iterable[tuple[str, ...]]:
    """Return a row for each output intent, newest first."""
    for output in reversed(view.outputs.values()):
        kind, state = _known("kind", output.kind, translator), _known("output", output.state, translator)
        yield output.id, output.answer_id, kind, state, _known("reason", output.reason, translator), output.text


def slot_rows(view: EventView, translator: Translator) -> Iterable[tuple[str, ...]]:
    """Return a row for each slot, newest first."""
    for slot in reversed(view.slots.values()):
        value = json.dumps(slot.value, ensure_ascii=False)
        yield slot.name, value, slot.provenance, _yes(slot.is_accepted, translator), f"{slot.at_s:.2f}"


def command_rows(view: EventView, translator: Translator) -> Iterable[tuple[str, ...]]:
    """Return a row for each command, newest first."""
    for one in reversed(view.commands):
        yield f"{one.at_s:.2f}", one.text, one.by, _yes(one.is_accepted, translator), one.reason


def _known(group: str, code: str, translator: Translator) -> str:
    """Return the words for `code`, the code itself where there are none: another version's, a failure's."""
    key = f"inspector.{group}.{code}"
    return translator.text(key) if translator.has(key) else code


def _yes(is_so: bool, translator: Translator) -> str:
    return translator.text("inspector.yes" if is_so else "inspector.no")
