"""Units of recognised text: words where words are spaced, characters in Chinese."""

from __future__ import annotations

import re
import unicodedata

CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
"""Character class (without brackets) of Chinese characters."""

_PIECE = re.compile(rf"\s*(?:[{CJK}]|[^\s{CJK}]+)")
_CJK_CHAR = re.compile(rf"[{CJK}]")


def has_cjk(text: str) -> bool:
    """Whether `text` holds a Chinese character."""
    return _CJK_CHAR.search(text) is not None


def unit_key(piece: str) -> str:
    """Return what two pieces have in common when they are the same word: no case, punctuation or spaces."""
    folded = unicodedata.normalize("NFKC", piece).casefold()
    return "".join(char for char in folded if char.isalnum())


def split_pieces(text: str) -> list[str]:
    """Split `text` into words and Chinese characters, with the spaces before and the punctuation after them.

    The pieces joined give `text` again, but for spaces at its end; only the first one may be mere punctuation.
    """
    pieces: list[str] = []
    for piece in _PIECE.findall(text):
        if pieces and not unit_key(piece):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces


def units(text: str) -> list[str]:
    """Return the words and Chinese characters of `text` in comparable form."""
    return [key for key in map(unit_key, split_pieces(text)) if key]


def join_texts(texts: list[str]) -> str:
    """Join texts that follow each other, with a space unless both sides of the seam are Chinese."""
    joined = ""
    for text in (text.strip() for text in texts):
        if not text:
            continue
        if joined and not (_is_wide(joined[-1]) and _is_wide(text[0])):
            joined += " "
        joined += text
    return joined


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in ("W", "F")
