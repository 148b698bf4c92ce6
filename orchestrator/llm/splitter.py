"""Cuts speakable text into sentences while it streams; the first piece is short, so that sound starts early.

Nothing is lost: the pieces joined are the text. A cut depends on the text before it and a few characters behind it,
never on where a chunk ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.llm.tokens import is_wide

_TITLES = frozenset((
    "mr", "mrs", "ms", "mx", "dr", "prof", "rev", "fr", "sr", "jr", "st", "mt", "gen", "col", "sgt", "capt", "lt",
    "cmdr", "sen", "rep", "gov", "hon", "messrs", "mme", "vs", "v", "cf", "ca", "approx", "fig", "figs", "no",
    "nos", "vol", "pp", "p", "ed", "eds", "al", "viz", "art", "sec", "ch", "dept", "univ", "est", "e.g", "i.e",
    "eg", "ie", "a.k.a", "tel", "ext",
))
# These often end a sentence, too; a capital letter behind them decides.
_ABBREVIATIONS = frozenset((
    "etc", "inc", "ltd", "co", "corp", "bros", "a.m", "p.m", "u.s", "u.k", "u.n", "e.u", "d.c", "ph.d", "b.a",
    "m.a", "m.d", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon", "tue",
    "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun", "min", "max", "hr", "hrs", "sec", "secs", "in",
    "ft", "oz", "lb", "lbs", "kg", "km", "cm", "mm", "ave", "blvd", "rd",
))
_LATIN_ENDS = ".!?…"
_WIDE_ENDS = "。！？；…"
_CLOSERS = "\"'”’」』）)]】》"
_CLAUSE_WIDE = "，、：；—"
_CLAUSE_LATIN = ",;:–—"
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
# A first piece without punctuation may end before one of these: speakers take a breath there, too.
_BREATHS = frozenset((
    "and", "but", "because", "which", "who", "where", "while", "when", "if", "although", "since", "until", "unless",
    "from", "into", "with", "without", "through", "during", "between", "behind", "across", "around", "against",
))
# A first piece that opens with one of these is over where the sentence proper begins: "In the morning the people …".
_OPENERS = frozenset((
    "in", "on", "at", "after", "before", "for", "from", "with", "without", "during", "by", "since", "until", "under",
    "near", "behind", "once", "some", "one", "last", "next", "every", "this", "all",
))
_SUBJECTS = frozenset((
    "the", "a", "an", "i", "you", "he", "she", "it", "we", "they", "there", "my", "your", "his", "her", "our", "their",
    "nobody", "somebody", "everybody", "people",
))
_NEED_MORE = _OPENERS | _SUBJECTS | frozenset((
    "of", "to", "as", "than", "and", "or", "but", "not", "is", "are", "was", "were", "be", "has", "have", "had", "do",
    "does", "did", "can", "could", "will", "would", "about", "into", "over", "between", "through", "like", "that",
    "these", "those", "very", "so", "too", "no", "if", "when", "let", "give", "make",
))
_WIDE_BREATHS = (
    "但是", "因为", "所以", "而且", "如果", "然后", "虽然", "不过", "或者", "并且", "可是", "只要", "直到", "为了",
    "除了", "以及", "还有", "同时", "其中",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLimits:
    """Lengths in characters: one wide character (Chinese) weighs as much as `max_chars / max_wide_chars` others.

    The first piece may end at a clause of `first_words` words or `first_wide_chars` wide characters; without
    punctuation, behind an opening phrase of `opening_words` words, or before a word that joins what follows, from
    `breath_words` words or `breath_wide_chars` characters on.
    """

    max_chars: int = 220
    max_wide_chars: int = 60
    first_words: int = 3
    first_wide_chars: int = 6
    first_max_chars: int = 110
    opening_words: int = 3
    breath_words: int = 5
    breath_wide_chars: int = 8


WHOLE_TEXT = SplitLimits(first_words=2, first_wide_chars=4)
"""For a text that is there as a whole: what follows a short first piece is not waited for."""


class SentenceSplitter:
    """Streaming splitter; `feed` text, then `flush` once. A piece may be blank only at the very end."""

    def __init__(self, limits: SplitLimits | None = None) -> None:
        """Start before the first piece."""
        self._limits = limits or SplitLimits()
        self._buffer = ""
        self._position = 0
        self._is_first = True
        self._reset()

    def feed(self, text: str) -> list[str]:
        """Return the pieces that are complete with `text`."""
        self._buffer += text
        return self._pieces(is_final=False)

    def flush(self) -> list[str]:
        """Return the rest at the end of the text."""
        pieces = self._pieces(is_final=True)
        if self._buffer:
            pieces.append(self._buffer)
            self._buffer = ""
        return pieces

    def _reset(self) -> None:
        self._position = 0
        self._weight = 0
        self._words = 0
        self._wide = 0
        self._has_sound = False
        self._is_in_word = False
        self._clause_end = 0
        self._space_end = 0

    def _pieces(self, *, is_final: bool) -> list[str]:
        pieces: list[str] = []
        while self._position < len(self._buffer):
            cut = self._advance(is_final)
            if cut is None:
                break
            if cut:
                pieces.append(self._buffer[:cut])
                self._buffer = self._buffer[cut:]
                self._is_first = False
                self._reset()
        return pieces

    def _advance(self, is_final: bool) -> int | None:
        """Look at the next character: a cut behind it, 0 for none, None if more text is needed."""
        text, at = self._buffer, self._position
        char = text[at]
        cut: int | None = 0
        if self._has_sound:
            if char == "\n":
                cut = at + 1
            elif char in _LATIN_ENDS or char in _WIDE_ENDS:
                cut = self._sentence_end(at, is_final)
            elif char in _CLAUSE_WIDE or char in _CLAUSE_LATIN:
                cut = self._clause(at, is_final)
            elif self._is_first:
                cut = self._breath(at, is_final)
        if cut is None:
            return None
        if cut:
            return cut
        self._count(char, at)
        self._position += 1
        return self._overflow()

    def _count(self, char: str, at: int) -> None:
        limits = self._limits
        if is_wide(char):
            self._weight += limits.max_chars
            if char.isalnum():
                self._wide += 1
                self._has_sound = True
            self._is_in_word = False
            return
        self._weight += limits.max_wide_chars
        if char.isalnum():
            self._has_sound = True
            self._words += 0 if self._is_in_word else 1
            self._is_in_word = True
        elif char not in "'’-.":
            self._is_in_word = False
        if char == " " and self._has_sound:
            self._space_end = at + 1

    def _breath(self, at: int, is_final: bool) -> int | None:
        """Look whether the first piece can end before the word or character at `at`; None if more text is needed."""
        text, limits = self._buffer, self._limits
        if is_wide(text[at]):
            if self._words or self._wide < limits.breath_wide_chars:
                return 0
            ahead = text[at : at + 2]
            is_open = len(text) < at + 4 and not is_final
            if is_open and any(word.startswith(ahead) for word in _WIDE_BREATHS):
                return None
            return at if ahead in _WIDE_BREATHS and _goes_on(text[at + 2 : at + 4]) else 0
        least = min(limits.breath_words, limits.opening_words)
        if self._wide or self._words < least or at == 0 or text[at - 1] != " " or not text[at].isalpha():
            return 0
        end = at
        while end < len(text) and text[end].isalpha():
            end += 1
        word = text[at:end]
        joints = _BREATHS if self._words >= limits.breath_words else frozenset()
        if self._words >= limits.opening_words and _is_opening(text[:at]):
            joints = joints | _SUBJECTS
        if end == len(text) and not is_final:
            return None if any(known.startswith(word) for known in joints) else 0
        if word not in joints or text[end : end + 1] != " ":
            return 0
        following = text[end + 1 :].split(" ", 1)
        if len(following) == 1 and not is_final:
            return None
        # What follows must be more than one word, or the rest would sound chopped off.
        return at if len(following) == 2 and _goes_on(following[0]) else 0

    def _overflow(self) -> int:
        """Return where to cut a piece that has become too long; 0 while it has not."""
        limit = self._limits.first_max_chars if self._is_first else self._limits.max_chars
        if self._weight < limit * self._limits.max_wide_chars or not self._has_sound:
            return 0
        return self._clause_end or self._space_end or self._position

    def _sentence_end(self, at: int, is_final: bool) -> int | None:
        text = self._buffer
        end = at + 1
        while end < len(text) and (text[end] in _LATIN_ENDS or text[end] in _WIDE_ENDS):
            end += 1
        marks = text[at:end]
        while end < len(text) and text[end] in _CLOSERS:
            end += 1
        if end == len(text) and not is_final:
            return None
        if any(mark in _WIDE_ENDS and mark != "…" for mark in marks):
            return _with_space(text, end)
        if end == len(text):
            return end
        if is_wide(text[end]):
            # A Latin full stop inside Chinese: "你好.我在" ends, "GPT.四" does too; a decimal has a digit behind it.
            return end
        if not text[end].isspace():
            return self._skip(at, end)
        if text[end] == "\n":
            return end + 1
        return self._before_space(at, end, marks, is_final)

    def _before_space(self, at: int, end: int, marks: str, is_final: bool) -> int | None:
        """Decide on a Latin end with a space behind it by the word before and the letter after."""
        text = self._buffer
        behind = end
        while behind < len(text) and text[behind] == " ":
            behind += 1
        if behind == len(text) and not is_final:
            return None
        following = text[behind : behind + 1]
        if following.islower():
            return self._skip(at, end)
        if marks == "." and self._is_abbreviation(at, following):
            return self._skip(at, end)
        return _with_space(text, end)

    def _is_abbreviation(self, at: int, following: str) -> bool:
        before = self._buffer[:at]
        word = before[max(before.rfind(" "), before.rfind("\n")) + 1 :].lstrip("\"'“‘([（「『")
        lowered = word.lower()
        if lowered in _TITLES:
            # "No." is a number's sign before a digit, an answer elsewhere.
            return lowered not in ("no", "nos", "p", "v", "ch", "art", "ed", "al") or following.isdigit()
        if lowered in _ABBREVIATIONS:
            is_month_or_unit = "." not in lowered and lowered not in ("etc", "inc", "ltd", "co", "corp", "bros")
            return following.isdigit() if is_month_or_unit else not (following.isupper() or is_wide(following or " "))
        if len(word) == 1 and word.isupper() and word != "I":
            return following.isupper()  # an initial
        is_list_number = word.isdigit() and len(word) <= 2 and not before[: len(before) - len(word)].strip()
        return is_list_number

    def _skip(self, at: int, end: int) -> int:
        """Pass over marks that don't end a sentence; the last of them is counted by the caller."""
        for index in range(at, end - 1):
            self._count(self._buffer[index], index)
        self._position = end - 1
        return 0

    def _clause(self, at: int, is_final: bool) -> int | None:
        """Note a clause boundary; for the first piece it may be the cut."""
        text = self._buffer
        char = text[at]
        end = at + 1
        if char in _CLAUSE_WIDE and char not in _CLAUSE_LATIN:
            is_boundary = True
        else:
            if end == len(text) and not is_final:
                return None
            is_boundary = end == len(text) or text[end].isspace() or is_wide(text[end])
        if not is_boundary:
            return 0
        while end < len(text) and text[end] in _CLOSERS:
            end += 1
        if end == len(text) and not is_final:
            return None
        cut = _with_space(text, end)
        limits = self._limits
        is_enough = self._words + self._wide * limits.first_words / limits.first_wide_chars >= limits.first_words
        if self._is_first and is_enough and char != "、":
            return cut
        self._clause_end = cut
        return 0


def _is_opening(text: str) -> bool:
    """Whether `text` is a phrase that a sentence may open with, and complete: "in the morning", not "in front of"."""
    words = text.lower().split()
    return words[0] in _OPENERS and words[-1] not in _NEED_MORE


def _goes_on(text: str) -> bool:
    """Whether the words `text` end neither a sentence nor a clause."""
    return bool(text) and not any(char in _LATIN_ENDS + _WIDE_ENDS + _CLAUSE_WIDE + _CLAUSE_LATIN for char in text)


def _with_space(text: str, end: int) -> int:
    """Return `end` moved behind one following space or newline."""
    return end + 1 if end < len(text) and text[end].isspace() else end
