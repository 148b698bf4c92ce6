"""What short utterances mean for the sound: stop, object, go on, repeat, or only "mm-hm". Pure text rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from orchestrator.dialogue.default_phrases import DEFAULT_PHRASES, Phrases

_BOUNDARY = re.compile(r"[,.!?;:，。！？；：、…—\n]+")
_NOT_WORD = re.compile(r"[^\w\s'\-]+", re.UNICODE)
_CJK = re.compile(r"[\u3400-\u9fff]")

_HUMS = frozenset(
    ("mm", "mmm", "mhm", "hm", "hmm", "uh", "um", "er", "ah", "嗯", "恩", "唔", "呃", "额", "啊", "哦", "诶", "欸")
)


def normalise(text: str) -> str:
    """Fold case, width and hyphens; drop marks and doubled spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("-", " ")
    return " ".join(_NOT_WORD.sub(" ", folded).split())


def clauses(text: str) -> list[tuple[str, int]]:
    """Split at punctuation; returns each non-empty clause, normalised, with where the text after it begins."""
    found: list[tuple[str, int]] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if (
            match.group() in ".:"
            and match.start() > 0
            and text[match.start() - 1].isdigit()
            and text[match.end() : match.end() + 1].isdigit()
        ):
            continue
        clause = normalise(text[start : match.start()])
        if clause:
            found.append((clause, match.end()))
        elif found:
            found[-1] = (found[-1][0], match.end())
        start = match.end()
    clause = normalise(text[start:])
    if clause:
        found.append((clause, len(text)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseMatch:
    """What was found. `kind`: pause, objection; `rest` is what the user said after it, "" for nothing."""

    kind: str
    phrase: str
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseBook:
    """The phrases of `policy.yml`, all languages together, since people mix them.

    `fillers` may stand before a phrase (interjections, "no", "please"), `softeners` after it. `names` are those the
    character answers to.
    """

    pause: Phrases
    objection: Phrases
    backchannel: Phrases
    go_on: Phrases
    repeat: Phrases
    fillers: Phrases
    softeners: Phrases
    hold_turn: Phrases
    names: tuple[str, ...] = ()
    _sets: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    def _set(self, name: str) -> frozenset[str]:
        if name not in self._sets:
            phrases: Phrases = getattr(self, name)
            self._sets[name] = frozenset(normalise(p) for group in phrases.values() for p in group)
        return self._sets[name]

    def stop_phrase(self, text: str) -> PhraseMatch | None:
        """Match a stop phrase: the whole text, or its beginning up to a clause boundary."""
        parts = clauses(text)
        kind: str | None = None
        phrase = ""
        end = 0
        for clause, after in parts:
            if kind is None and self._is_filler_only(clause):
                continue
            found, core = self._kind_of_any(clause)
            if found is None:
                if kind is not None and self._is_filler_only(clause):
                    end = after
                    continue
                break
            if kind is None or (kind == "pause" and found == "objection"):
                kind, phrase = found, core
            end = after
        if kind is None:
            return None
        return PhraseMatch(kind=kind, phrase=phrase, rest=text[end:].strip())

    def is_backchannel(self, text: str) -> bool:
        """Whether the text is nothing but listening sounds and words ("mm-hm", "yeah, right", 「嗯，对」)."""
        parts = clauses(text)
        return bool(parts) and all(self._is_made_of(clause, self._set("backchannel")) for clause, _ in parts)

    def is_hum(self, text: str) -> bool:
        """Whether the text is nothing but sounds without meaning ("mm", "uh", 「呃」)."""
        parts = clauses(text)
        return bool(parts) and all(self._is_made_of(clause, _HUMS) for clause, _ in parts)

    def is_names_only(self, text: str) -> bool:
        """Whether the text is nothing but the character's name, twice or more."""
        words = normalise(text).split()
        names = {normalise(name) for name in self.names}
        return len(words) >= 2 and all(word in names for word in words)

    def is_go_on(self, text: str) -> bool:
        """Whether the whole text asks to continue."""
        return self._is_whole(text, "go_on")

    def is_repeat(self, text: str) -> bool:
        """Whether the whole text asks to hear the last answer again."""
        return self._is_whole(text, "repeat")

    def holds_turn(self, text: str) -> bool:
        """Whether the text ends by asking for time ("one moment", 「等我想想」)."""
        parts = clauses(text)
        wanted = self._set("hold_turn")
        return bool(parts) and any(core in wanted for core in self._cores(parts[-1][0]))

    def _is_whole(self, text: str, name: str) -> bool:
        parts = [clause for clause, _ in clauses(text) if not self._is_filler_only(clause)]
        wanted = self._set(name)
        return bool(parts) and all(any(core in wanted for core in self._cores(clause)) for clause in parts)

    def _kind_of(self, core: str) -> str | None:
        for kind in ("objection", "pause"):
            if self._is_made_of(core, self._set(kind)):
                return kind
        return None

    def _kind_of_any(self, clause: str) -> tuple[str | None, str]:
        for core in self._cores(clause):
            kind = self._kind_of(core)
            if kind is not None:
                return kind, core
        return None, clause

    def _cores(self, clause: str) -> Iterator[str]:
        """Yield the clause, then what is left as fillers and names go from its start and softeners from its end."""
        names = tuple(normalise(name) for name in self.names)
        before = sorted((*self._set("fillers"), *names), key=len, reverse=True)
        after = sorted((*self._set("softeners"), *names), key=len, reverse=True)
        head: str | None = clause
        while head:
            tail: str | None = head
            while tail:
                yield tail
                tail = _take_off(tail, after, at_start=False)
            head = _take_off(head, before, at_start=True)

    def _is_filler_only(self, clause: str) -> bool:
        words = self._set("fillers") | {normalise(n) for n in self.names}
        return self._is_made_of(clause, words) and self._kind_of(clause) is None

    @staticmethod
    def _is_made_of(clause: str, phrases: Iterable[str]) -> bool:
        """Whether the clause is one of the phrases, or several of them in a row."""
        ordered = sorted(phrases, key=len, reverse=True)
        compact = clause.replace(" ", "") if _CJK.search(clause) else None
        rest = clause
        while rest:
            for phrase in ordered:
                if _starts_with(rest, phrase):
                    rest = rest[len(phrase) :].lstrip()
                    break
            else:
                if compact is not None and compact != clause:
                    return PhraseBook._is_made_of(compact, ordered)
                return False
        return bool(clause)


def _starts_with(text: str, phrase: str) -> bool:
    if not phrase or not text.startswith(phrase):
        return False
    if _CJK.search(phrase[-1]):
        return True
    return (
        len(text) == len(phrase)
        or not (text[len(phrase)].isalnum() or text[len(phrase)] == "'")
        or bool(_CJK.match(text[len(phrase)]))
    )


def _ends_with(text: str, phrase: str) -> bool:
    if not phrase or not text.endswith(phrase):
        return False
    if _CJK.search(phrase[0]):
        return True
    at = len(text) - len(phrase)
    return at == 0 or not text[at - 1].isalnum()


def _take_off(clause: str, phrases: list[str], *, at_start: bool) -> str | None:
    """Return the clause without the longest phrase at that end, None if there is none or nothing would be left."""
    for phrase in phrases:
        if len(phrase) >= len(clause):
            continue
        if at_start and _starts_with(clause, phrase):
            return clause[len(phrase) :].lstrip()
        if not at_start and _ends_with(clause, phrase):
            return clause[: -len(phrase)].rstrip()
    return None


def phrase_book(phrases: Mapping[str, Phrases] | None = None, names: tuple[str, ...] = ()) -> PhraseBook:
    """Return a book from `phrases`, the shipped ones for what is absent."""
    merged = {**DEFAULT_PHRASES, **(phrases or {})}
    return PhraseBook(
        pause=merged["pause"],
        objection=merged["objection"],
        backchannel=merged["backchannel"],
        go_on=merged["go_on"],
        repeat=merged["repeat"],
        fillers=merged["fillers"],
        softeners=merged["softeners"],
        hold_turn=merged["hold_turn"],
        names=names,
    )
