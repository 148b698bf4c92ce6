"""Removes the thoughts some models put in front of their answer, while the text streams."""

from __future__ import annotations

import re

_NAMES = ("think", "thinking", "thought", "reasoning")
_OPEN = tuple(f"<{name}>" for name in _NAMES)
_CLOSE = tuple(f"</{name}>" for name in _NAMES)
_ANY = re.compile("|".join(_OPEN + _CLOSE), re.IGNORECASE)
_ANY_CLOSE = re.compile("|".join(_CLOSE), re.IGNORECASE)


def _held(text: str, tags: tuple[str, ...]) -> int:
    """Return how many characters at the end of `text` may be the beginning of a tag."""
    start = text.rfind("<")
    if start < 0:
        return 0
    tail = text[start:].lower()
    return len(tail) if any(tag.startswith(tail) for tag in tags) else 0


class ThinkStripper:
    """Drops `<think>…</think>` and its kin; a stray closing tag is dropped, an open thought swallows the rest.

    The result does not depend on how the text is cut into chunks.
    """

    def __init__(self) -> None:
        """Start outside a thought."""
        self._buffer = ""
        self._is_inside = False
        self._starts_text = True

    def feed(self, chunk: str) -> str:
        """Return what of the text so far is surely no thought and was not returned before."""
        self._buffer += chunk
        out: list[str] = []
        while True:
            pattern, tags = (_ANY_CLOSE, _CLOSE) if self._is_inside else (_ANY, _OPEN + _CLOSE)
            match = pattern.search(self._buffer)
            if match is None:
                keep = _held(self._buffer, tags)
                ready = self._buffer[: len(self._buffer) - keep]
                self._buffer = self._buffer[len(self._buffer) - keep :]
                if not self._is_inside:
                    out.append(self._trimmed(ready))
                return "".join(out)
            if not self._is_inside:
                out.append(self._trimmed(self._buffer[: match.start()]))
            self._is_inside = not match.group().startswith("</")
            self._buffer = self._buffer[match.end() :]

    def flush(self) -> str:
        """Return the rest at the end of the text."""
        rest = "" if self._is_inside else self._trimmed(self._buffer)
        self._buffer = ""
        return rest

    def _trimmed(self, text: str) -> str:
        if not self._starts_text:
            return text
        text = text.lstrip()
        self._starts_text = not text
        return text
