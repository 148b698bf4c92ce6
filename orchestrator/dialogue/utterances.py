"""What is known of each stretch of user speech until it has been decided on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.contracts.dialogue import TurnInput
from orchestrator.contracts.events import InputTranscript, InputTurnEnd, InputUser
from orchestrator.contracts.ids import GenerationId, UtteranceId
from orchestrator.dialogue.misheard import TYPED
from orchestrator.dialogue.phrase_book import PhraseBook
from orchestrator.dialogue.phrases import match_correction, match_phrase
from orchestrator.speech.turn_text import Ending, ending_of
from orchestrator.tasks.extraction.words import CJK, is_question

_GOES_ON_EN = re.compile(
    r"(?:and|or|but|because|since|unless|except|plus|with|without|to|for|at|in|on|from|about|by|of|until|as well"
    r"|instead|too|please|preferably|especially"
    r"|(?:oh |ah )?(?:no|nope|not|sorry|actually|rather|oops|correction|scratch that|i mean|i meant|make (?:that|it)))"
    r"\b",
    re.IGNORECASE,
)
_GOES_ON_ZH = re.compile(
    r"还有(?!谁|什么|多)|以及|或者|但是|可是|不过|因为|而且|并且|除了|比如|例如|关于|尤其|最好|[和跟与](?!我|你)"
    r"|(?:哦|啊)?(?:不对|不是|不(?=[，,。\s]|$))|不好意思|对不起|我是说|我是想说|我的意思是|我?(?:说|弄|搞|记)错了"
    r"|改成|改为|改到|换成|应该是"
)


@dataclass(slots=True)
class Utterance:
    """One stretch of user speech. `holds` is the answer that was held because of it."""

    utterance_id: UtteranceId
    onset_at_s: float
    during_output: bool
    over_generation: GenerationId | None = None
    holds: GenerationId | None = None
    end_at_s: float | None = None
    turn_end: InputTurnEnd | None = None
    final: InputTranscript | None = None
    partial: str = ""
    by_ptt: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether it can be decided on."""
        return self.turn_end is not None and self.final is not None


class Utterances:
    """The utterances that are not decided yet, oldest first; bounded, the oldest is given up beyond eight."""

    _MOST = 8

    def __init__(self) -> None:
        """Start empty."""
        self._open: dict[UtteranceId, Utterance] = {}

    def begin(self, utterance: Utterance) -> None:
        """Remember a new one."""
        self._open[utterance.utterance_id] = utterance
        while len(self._open) > self._MOST:
            del self._open[next(iter(self._open))]

    def get(self, utterance_id: UtteranceId | None) -> Utterance | None:
        """Return an undecided one."""
        return self._open.get(utterance_id) if utterance_id is not None else None

    def newest(self) -> Utterance | None:
        """Return the newest undecided one."""
        return next(reversed(self._open.values()), None)

    def only(self) -> Utterance | None:
        """Return the undecided one, if there is just one."""
        return self.newest() if len(self._open) == 1 else None

    def speaking(self) -> Utterance | None:
        """Return the newest one whose turn has not ended."""
        return next((utterance for utterance in reversed(self._open.values()) if utterance.turn_end is None), None)

    def close(self, utterance_id: UtteranceId) -> Utterance | None:
        """Forget one, decided."""
        return self._open.pop(utterance_id, None)

    @property
    def is_user_speaking(self) -> bool:
        """Whether any utterance has not come to its end of turn."""
        return any(utterance.turn_end is None for utterance in self._open.values())

    @property
    def is_undecided(self) -> bool:
        """Whether any utterance waits for its end or its transcript."""
        return bool(self._open)

    def holding(self, generation_id: GenerationId) -> bool:
        """Whether an undecided utterance holds `generation_id`."""
        return any(utterance.holds == generation_id for utterance in self._open.values())


def voiced_s(utterance: Utterance, heard: InputTranscript) -> float:
    """Return how long the voice lasted; the recogniser's audio has some silence around it."""
    if utterance.end_at_s is None:
        return heard.audio_s
    return max(0.0, utterance.end_at_s - utterance.onset_at_s)


class Standing(StrEnum):
    """How an input stands to the one whose answer is being made and has not sounded."""

    JOINED = "joined"
    """It goes on with it: both are one input."""
    INSTEAD = "instead"
    """It is answered in its place."""
    AFTER = "after"
    """It is a request of its own, answered when the other one has been."""


def standing_of(user: InputUser, before: str, book: PhraseBook) -> Standing:
    """Return how `user` stands to the input `before`.

    What is spoken may be cut in two by a breath, so it is joined. A typed line was sent as a whole: it is joined only
    where its first words, or the last ones before, say that one sentence goes on.
    """
    text = user.text
    if book.is_go_on(text) or book.is_repeat(text):
        return Standing.INSTEAD
    if user.via not in TYPED:
        return Standing.JOINED
    command = match_phrase(text)
    if command is not None and command.kind == "cancel":
        return Standing.INSTEAD
    is_continued = is_left_open(before) or (not is_question(text) and goes_on(text))
    if user.interrupt_hint is not None:
        # "Wait, ..." is said to the line before.
        return Standing.INSTEAD if is_question(text) and not is_continued else Standing.JOINED
    return Standing.JOINED if is_continued else Standing.AFTER


def goes_on(text: str) -> bool:
    """Whether a line begins like the second part of a sentence, or puts right what was said before."""
    begins = (_GOES_ON_ZH if CJK.search(text) else _GOES_ON_EN).match(text.strip())
    return begins is not None or match_correction(text) is not None


def is_left_open(text: str) -> bool:
    """Whether a line that was sent ends in the middle of a sentence; a word that may end one does."""
    stripped = text.strip()
    if not stripped or (stripped[-1] in ".!?。！？" and not stripped.endswith(("...", "。。。"))):
        return False
    return ending_of(stripped) is Ending.OPEN and (
        not stripped[-1].isalnum() or ending_of(f"{stripped}.") is Ending.OPEN
    )


def turn_input(user: InputUser, utterance_id: UtteranceId | None) -> TurnInput:
    """Return what a turn is begun with."""
    return TurnInput(
        text=user.text,
        language=user.language,
        via=user.via,
        utterance_id=utterance_id,
        interrupt_hint=user.interrupt_hint,
        object=user.object,
    )
