"""Puts another text into a document as one step that can be undone, touching only the lines that differ.

What is not touched keeps its place, so that the cursor and the view stay where one was reading.
"""

from __future__ import annotations

import difflib

from PySide6.QtGui import QTextCursor, QTextDocument

_MOST_LINES = 600
"""Longer differing stretches are replaced whole: comparing them line by line would hold up the window."""

Change = tuple[int, int, str]
"""Characters from, to (not included), and what stands there instead."""


def changes(old: str, new: str) -> list[Change]:
    """Return what turns `old` into `new`, from the beginning to the end."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    rest_old, rest_new = before[first : len(before) - last], after[first : len(after) - last]
    starts = [sum(len(line) for line in before[:first])]
    for line in rest_old:
        starts.append(starts[-1] + len(line))
    spans = [(0, len(rest_old), 0, len(rest_new))]
    if max(len(rest_old), len(rest_new)) <= _MOST_LINES:
        codes = difflib.SequenceMatcher(None, rest_old, rest_new, autojunk=False).get_opcodes()
        spans = [(i, j, k, n) for tag, i, j, k, n in codes if tag != "equal"]
    return [
        _narrowed(starts[i], "".join(rest_old[i:j]), "".join(rest_new[k:n])) for i, j, k, n in spans if i < j or k < n
    ]


def change_text(document: QTextDocument, text: str) -> None:
    """Make `text` the document's, as one step to undo; nothing happens if it is already."""
    old = document.toPlainText()
    found = changes(old, text)
    if not found:
        return
    cursor = QTextCursor(document)
    cursor.beginEditBlock()
    for start, end, words in reversed(found):
        cursor.setPosition(_units(old[:start]))
        cursor.setPosition(_units(old[:end]), QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(words)
    cursor.endEditBlock()


def _narrowed(start: int, old: str, new: str) -> Change:
    """Leave out what both begin and end with."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return start + head, start + len(old) - tail, new[head : len(new) - tail]


def _units(text: str) -> int:
    """Return the length in Qt's units of a text, which count some characters twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
