"""Words of a text as they are counted everywhere: one per Chinese character, else between spaces."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CJK_RANGES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3007\U00020000-\U0002fa1f"
_CJK = re.compile(f"[{_CJK_RANGES}]")
# Full-width punctuation ends a word like a space does, except between digits (15：30).
_WIDE_MARKS = "，。！？；、：）」』”’"
_PIECE = re.compile(
    f"[{_CJK_RANGES}]|(?:[^\\s{_CJK_RANGES}{_WIDE_MARKS}]|(?<=\\d)：(?=\\d))+[{_WIDE_MARKS}]*|[{_WIDE_MARKS}]+"
)
_SPOKEN_SYMBOLS = frozenset("+=&%@×÷<>°#")
_CLAUSE_END = re.compile(r"[,;:.!?，；：。！？、…—]+[\"'”’」』）)\]]*$")
_SENTENCE_END = re.compile(r"[.!?。！？…]+[\"'”’」』）)\]]*$")
_OPENING = frozenset("\"'“‘「『（([《<¿¡")

CJK_CHARS_PER_S = 5.0
LATIN_CHARS_PER_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSpan:
    """A word and the characters it covers, with the punctuation attached to it: `text[char_start:char_end]`."""

    text: str
    char_start: int
    char_end: int


def has_cjk(text: str) -> bool:
    """Whether `text` has a Chinese character."""
    return _CJK.search(text) is not None


def ends_clause(word: str) -> bool:
    """Whether a clause ends with `word`, its punctuation included. A comma inside a number does not count."""
    return _CLAUSE_END.search(word) is not None


def ends_sentence(word: str) -> bool:
    """Whether a sentence ends with `word`, its punctuation included."""
    return _SENTENCE_END.search(word) is not None


def is_pronounced(piece: str) -> bool:
    """Whether something in `piece` is said: a letter, a digit or a symbol with a name."""
    return any(char.isalnum() for char in piece) or (bool(piece) and all(char in _SPOKEN_SYMBOLS for char in piece))


def word_spans(text: str) -> tuple[WordSpan, ...]:
    """Split `text` into its words; punctuation and emoji join the word before them (opening ones the word after)."""
    bounds: list[tuple[int, int]] = []
    pending_start: int | None = None
    for match in _PIECE.finditer(text):
        start, end = match.span()
        piece = match.group()
        if not is_pronounced(piece):
            if bounds and not _opens(piece, text, end):
                bounds[-1] = (bounds[-1][0], end)
            elif pending_start is None:
                pending_start = start
            continue
        # Closing punctuation glued to the front of a piece after a Chinese character (好,ok) belongs to that character.
        if pending_start is None and bounds and bounds[-1][1] == start:
            lead = next((at for at, char in enumerate(piece) if _begins_word(char)), len(piece))
            if lead:
                bounds[-1] = (bounds[-1][0], start + lead)
                start += lead
        bounds.append((pending_start if pending_start is not None else start, end))
        pending_start = None
    return tuple(WordSpan(text=text[start:end], char_start=start, char_end=end) for start, end in bounds)


def _begins_word(char: str) -> bool:
    return is_pronounced(char) or char in _OPENING or char in "$￥¥€£-−+"


def _opens(piece: str, text: str, end: int) -> bool:
    """Whether `piece` is an opening mark that touches the word after it."""
    return piece[-1] in _OPENING and end < len(text) and not text[end].isspace()


def speaking_weight(word: str) -> float:
    """Return about how long `word` takes to say, in seconds at a calm pace; the basis of every estimated time."""
    weight = 0.0
    for char in word:
        if _CJK.match(char):
            weight += 1.0 / CJK_CHARS_PER_S
        elif char.isdigit():
            weight += 0.22
        elif char.isalpha():
            weight += 1.0 / LATIN_CHARS_PER_S
    if ends_sentence(word):
        weight += 0.25
    elif ends_clause(word):
        weight += 0.15
    return max(weight, 0.08)


def reading_duration_s(text: str) -> float:
    """Return how long `text` is shown before it counts as read."""
    return sum(speaking_weight(span.text) + 0.05 for span in word_spans(text))
