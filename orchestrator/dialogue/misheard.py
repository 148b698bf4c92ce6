"""“I said …” / 「我说的是…」: the user puts right what was misheard; the turn is taken again with the right words."""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.contracts.dialogue import Brain
from orchestrator.contracts.events import InputUser
from orchestrator.contracts.ids import GenerationId, UtteranceId
from orchestrator.contracts.ports import ViewSink
from orchestrator.contracts.views import MisheardView, UserTextView
from orchestrator.dialogue.glue import glued

_ENGLISH = re.compile(
    r"^(?:(?:no|nope|sorry|oh|wait|um)[,.!]?\s+)*"
    r"(?:i said|what i said was|i was saying|i actually said|i did ?n[o']t say .{1,60}?,? i said|not .{1,60}?, i said)"
    r"[\s,:;]+(?P<said>.+)$",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"^(?:(?:不对|不是|不|哎|诶|抱歉|等等)[，,。！\s]*)*(?:我刚才说的是|我刚刚说的是|我刚说的是|我说的是|我说的不是.{1,20}?[，,]\s*(?:我说的)?是)"
    r"[，,：:\s]*(?P<said>.+)$"
)
_OBJECTION = re.compile(r"^(?:no|nope|不对|不是|i did ?n[o']t say|not )", re.IGNORECASE)
TYPED = ("typed", "control")
"""Ways of writing: what was written is shown when it is answered."""

_KEPT = re.compile(r"[^\W_]")
_ALIKE, _ALIKE_AFTER_NO = 0.45, 0.2
_SHORTEST, _LONGEST = 1, 300
_REMEMBERED = 100


def said_instead(text: str, heard: str | None) -> str | None:
    """Return what was really said, if `text` puts `heard` right; None if it is a sentence of its own.

    "I said hello to him" is no correction of "what is the time": the words must sound like what was heard, less so
    after a "no".
    """
    if not heard or len(text) > _LONGEST:
        return None
    plain = text.strip().replace("’", "'")
    match = _ENGLISH.match(plain) or _CHINESE.match(plain)
    if match is None:
        return None
    said = match["said"].strip().strip("\"'“”「」").strip()
    if len(_KEPT.findall(said)) < _SHORTEST or _bare(said) == _bare(heard):
        return None
    limit = _ALIKE_AFTER_NO if _OBJECTION.match(plain) else _ALIKE
    return said if _likeness(said, heard) >= limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """What was really said, and the misheard turn that is taken again; None where that is not known."""

    text: str
    turn: GenerationId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """What an answer was begun with: one utterance, or several that were joined."""

    turn: GenerationId
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return glued(self.parts)


class Corrections:
    """Watches for words that put an earlier input right, and tells the window of them."""

    def __init__(self, views: ViewSink, turn_of: Callable[[str], GenerationId | None] = lambda heard: None) -> None:
        """Begin with nothing heard; `turn_of` finds the answer to a line that is forgotten here."""
        self._views = views
        self._turn_of = turn_of
        self._heard: deque[_Heard] = deque(maxlen=_REMEMBERED)

    def note(self, text: str, generation_id: GenerationId, *, is_joined: bool = False) -> None:
        """Remember what the newest answer was begun with; `is_joined`: the input of the one before, and more."""
        before = self._heard[-1] if is_joined and self._heard else None
        if before is not None and text.startswith(before.text) and text != before.text:
            self._heard.pop()
            parts = (*before.parts, text[len(before.text) :].strip())
        else:
            parts = (text,)
        self._heard.append(_Heard(turn=generation_id, parts=parts))

    def heed(self, payload: InputUser, utterance_id: UtteranceId | None, brain: Brain) -> Corrected | None:
        """Return what was really said, None for words that correct nothing or answer a running question."""
        if payload.corrects is not None:
            self._views.show(MisheardView(heard=payload.corrects, said=payload.text))
            return self._clicked(payload.corrects, payload.corrects_turn, payload.text)
        last = self._heard[-1] if self._heard else None
        if last is None or payload.corrects_turn is not None:
            return None
        said = said_instead(payload.text, last.text)
        if said is None or brain.accepts_as_answer(payload.text, payload.language):
            return None
        if payload.via not in TYPED:
            self._views.show(UserTextView(utterance_id=utterance_id, text=said, final=True, via=payload.via))
        self._views.show(MisheardView(heard=last.text, said=said))
        return Corrected(text=said, turn=last.turn)

    def _clicked(self, heard: str, turn: GenerationId | None, said: str) -> Corrected:
        """Find the turn that a line belongs to; a line that was joined with others is put right among them."""
        wanted = _bare(heard)
        for one in reversed(self._heard):
            if turn not in (None, one.turn):
                continue
            if _bare(one.text) == wanted:
                return Corrected(text=said, turn=one.turn)
            for place in reversed(range(len(one.parts))):
                if _bare(one.parts[place]) == wanted:
                    parts = (*one.parts[:place], said, *one.parts[place + 1 :])
                    return Corrected(text=glued(parts), turn=one.turn)
        return Corrected(text=said, turn=turn if turn is not None else self._turn_of(heard))


def _bare(text: str) -> str:
    return "".join(_KEPT.findall(text.casefold()))


def _likeness(said: str, heard: str) -> float:
    """Return 0 to 1: how much of the shorter text is found in the other, in order."""
    one, other = _bare(said), _bare(heard)
    if not one or not other:
        return 0.0
    blocks = difflib.SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / min(len(one), len(other))
