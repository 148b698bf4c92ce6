"""Colours YAML: keys, texts, numbers, comments, and templates inside texts."""

from __future__ import annotations

import re

from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from desktop.ui.theme import Palette

_KEY = re.compile(
    r"(?:^|(?<=[\s{,\[]))(\"[^\"]*\"|'[^']*'|[^\s#\"'{}\[\],&*!|>%@`\-][^#:{}\[\],\"']*|-?[\w.]+)(?=\s*:(?:\s|$))"
)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|(?<![\w])'(?:[^']|'')*'?")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
_TEMPLATE = re.compile(r"\{\{.*?(?:\}\}|$)|\{%.*?(?:%\}|$)")
_WORD = re.compile(r"(?<![\w.\"'])(?:true|false|null|~|-?\d+(?:\.\d+)?)(?![\w.:\"'])")
_DASH = re.compile(r"^\s*(-)(?=\s|$)")
_BLOCK = re.compile(r"[|>][+-]?\d?\s*(?:#.*)?$")


class YamlHighlighter(QSyntaxHighlighter):
    """Colours one document. The block state is the indent of a block text's key plus one; -1 outside of one."""

    def __init__(self, document: QTextDocument, palette: Palette) -> None:
        """Take the colours from `palette`."""
        super().__init__(document)
        self._formats: dict[str, QTextCharFormat] = {}
        self.set_palette(palette, is_repaint=False)

    def set_palette(self, palette: Palette, *, is_repaint: bool = True) -> None:
        """Use other colours."""
        colours = {
            "key": palette.primary, "string": palette.good, "comment": palette.muted, "word": palette.warning,
            "template": palette.danger, "dash": palette.muted,
        }  # fmt: skip
        for name, colour in colours.items():
            made = QTextCharFormat()
            made.setForeground(QColor(colour))
            if name == "key":
                made.setFontWeight(QFont.Weight.DemiBold)
            if name == "comment":
                made.setFontItalic(True)
            self._formats[name] = made
        if is_repaint:
            self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        """Colour one line."""
        formats = self._formats
        before = self.previousBlockState()
        indent = len(text) - len(text.lstrip(" "))
        if before > 0 and (not text.strip() or indent >= before):
            self.setFormat(0, len(text), formats["string"])
            self._paint(_TEMPLATE, text, "template")
            self.setCurrentBlockState(before)
            return
        self.setCurrentBlockState(-1)
        self._paint(_WORD, text, "word")
        self._paint(_KEY, text, "key", group=1)
        dash = _DASH.match(text)
        if dash is not None:
            self.setFormat(dash.start(1), 1, formats["dash"])
        strings = [m.span() for m in _STRING.finditer(text)]
        keys = {m.span(1) for m in _KEY.finditer(text)}
        for start, end in strings:
            if (start, end) not in keys:
                self.setFormat(start, end - start, formats["string"])
        self._paint(_TEMPLATE, text, "template")
        for found in _COMMENT.finditer(text):
            if not any(start < found.start() < end for start, end in strings):
                self.setFormat(found.start(), found.end() - found.start(), formats["comment"])
                text = text[: found.start()]
                break
        if _BLOCK.search(text.rstrip()) and ":" in text:
            lead = text.lstrip(" ")
            self.setCurrentBlockState(indent + 1 + (2 if lead.startswith("- ") else 0))

    def _paint(self, pattern: re.Pattern[str], text: str, name: str, group: int = 0) -> None:
        for found in pattern.finditer(text):
            self.setFormat(found.start(group), found.end(group) - found.start(group), self._formats[name])
