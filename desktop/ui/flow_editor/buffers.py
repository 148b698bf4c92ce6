"""The open files: a document each, so that every one keeps its own history of changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QPlainTextDocumentLayout

from desktop.flow_check import SHIPPED_LABEL, kind_of
from desktop.flow_files import FileText
from desktop.ui.flow_editor.highlighter import YamlHighlighter
from desktop.ui.flow_editor.style import code_font
from desktop.ui.flow_editor.text_change import change_text

if TYPE_CHECKING:
    from desktop.ui.theme import Theme

Key = tuple[str, str]
"""Layer and name."""


@dataclass(slots=True)
class Buffer:
    """An open file. `stamp` is the state on disk that the text was made from; `place` the cursor's position."""

    layer: str
    name: str
    document: QTextDocument
    highlighter: YamlHighlighter
    stamp: str | None
    is_draft: bool = False
    is_forced: bool = False
    is_conflict: bool = False
    place: int = 0
    scroll: int = 0

    @property
    def key(self) -> Key:
        """Layer and name."""
        return self.layer, self.name

    @property
    def label(self) -> str:
        """What problems call the file."""
        return self.name if self.layer == "user" else f"{SHIPPED_LABEL}/{self.name}"

    @property
    def kind(self) -> str:
        """What the file holds: flows, tests, policy or persona."""
        return kind_of(self.name)

    @property
    def is_editable(self) -> bool:
        """Whether it is the user's own."""
        return self.layer == "user"

    @property
    def is_unsaved(self) -> bool:
        """Whether the text differs from what was saved or loaded."""
        return self.is_editable and self.document.isModified()

    @property
    def text(self) -> str:
        """The whole text."""
        return self.document.toPlainText()


class Buffers:
    """All open files by layer and name."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        """Start without any."""
        self._theme = theme
        self._parent = parent
        self._open: dict[Key, Buffer] = {}

    def get(self, key: Key) -> Buffer | None:
        """Return an open file, or None."""
        return self._open.get(key)

    def put(self, layer: str, name: str, text: FileText) -> Buffer:
        """Open a text; one that is open already is changed into it in one step, which can be undone."""
        found = self._open.get((layer, name))
        if found is None:
            document = QTextDocument(self._parent)
            document.setDocumentLayout(QPlainTextDocumentLayout(document))
            document.setDefaultFont(code_font())
            document.setPlainText(text.text)
            found = Buffer(layer, name, document, YamlHighlighter(document, self._theme.palette), text.stamp)
            self._open[layer, name] = found
        elif found.text != text.text:
            change_text(found.document, text.text)
        found.stamp, found.is_draft = text.stamp, text.is_draft
        found.is_forced = found.is_conflict = False
        found.document.setModified(False)
        return found

    def drop(self, key: Key) -> None:
        """Close a file."""
        found = self._open.pop(key, None)
        if found is not None:
            found.document.deleteLater()

    def unsaved(self) -> dict[str, str]:
        """Return the user's files whose text is not on disk as it is (drafts included), by name."""
        return {b.name: b.text for b in self._open.values() if b.is_editable and (b.is_unsaved or b.is_draft)}

    def modified(self) -> list[Buffer]:
        """Return the files with changes that were not saved in any way."""
        return [b for b in self._open.values() if b.is_unsaved]

    def restyle(self) -> None:
        """Take the theme's colours."""
        for found in self._open.values():
            modified = found.document.isModified()
            found.highlighter.set_palette(self._theme.palette)
            found.document.setModified(modified)
