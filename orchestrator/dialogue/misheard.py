"""“I said …” / 「我说的是…」: the user puts right what was misheard; the turn is taken again with the right words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from orchestrator.contracts.dialogue import Brain
from orchestrator.contracts.events import InputUser
from orchestrator.contracts.ids import GenerationId, UtteranceId
from orchestrator.contracts.ports import ViewSink
from orchestrator.contracts.views import MisheardView, UserTextView

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


class Corrections:
    """Watches for words that put the last input right, and tells the window of them."""

    def __init__(self, views: ViewSink, turn_of: Callable[[str], GenerationId | None] = lambda heard: None) -> None:
        """Begin with nothing heard; `turn_of` finds the answer to a line that is older than the newest."""
        self._views = views
        self._turn_of = turn_of
        self._last_input: str | None = None
        self._last_turn: GenerationId | None = None
        self._replaced: GenerationId | None = None

    def note(self, text: str, generation_id: GenerationId) -> None:
        """Remember what the newest answer was begun with."""
        self._last_input, self._last_turn = text, generation_id

    def take_replaced(self) -> GenerationId | None:
        """Return the misheard turn that the next one is in place of; asked once."""
        replaced, self._replaced = self._replaced, None
        return replaced

    def heed(self, payload: InputUser, utterance_id: UtteranceId | None, brain: Brain) -> str | None:
        """Return what was really said, None for words that correct nothing or answer a running question."""
        if payload.corrects is not None:
            is_last = self._last_input is not None and _bare(payload.corrects) == _bare(self._last_input)
            self._replaced = self._last_turn if is_last else self._turn_of(payload.corrects)
            self._views.show(MisheardView(heard=payload.corrects, said=payload.text))
            return payload.text
        said = said_instead(payload.text, self._last_input)
        if said is None or brain.accepts_as_answer(payload.text, payload.language):
            return None
        self._replaced = self._last_turn
        if payload.via not in TYPED:
            self._views.show(UserTextView(utterance_id=utterance_id, text=said, final=True, via=payload.via))
        self._views.show(MisheardView(heard=self._last_input or "", said=said))
        return said


def _bare(text: str) -> str:
    return "".join(_KEPT.findall(text.casefold()))


def _likeness(said: str, heard: str) -> float:
    """Return 0 to 1: how much of the shorter text is found in the other, in order."""
    one, other = _bare(said), _bare(heard)
    if not one or not other:
        return 0.0
    blocks = difflib.SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / min(len(one), len(other))
