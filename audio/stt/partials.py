"""Keeps the words of a growing transcript still once they were shown. Pure."""

from __future__ import annotations

from audio.stt.text import split_pieces, unit_key


class StablePartial:
    """What is shown of one utterance while it is spoken.

    A word (a character in Chinese) that was shown stays until two decodings in a row disagree with it; the last one
    is free to change, since it may have been cut in the middle.
    """

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._shown: list[str] = []
        self._doubt: tuple[str, ...] | None = None

    @property
    def text(self) -> str:
        """The text as shown now."""
        return "".join(self._shown).strip()

    def update(self, decoded: str) -> str:
        """Take the text of the newest decoding of the whole utterance so far; returns what to show now."""
        pieces = split_pieces(decoded)
        kept = self._shown[:-1]
        at = _common(kept, pieces)
        if at == len(kept):
            self._shown = pieces if pieces else self._shown
            self._doubt = None
        elif self._doubt is not None:
            self._shown = pieces
            self._doubt = None
        else:
            self._doubt = tuple(pieces)
        return self.text


def _common(first: list[str], second: list[str]) -> int:
    """Return how many units the two have in common from the start."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if unit_key(one) != unit_key(other):
            break
        count += 1
    return count
