"""What is known of each stretch of user speech until it has been decided on."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.contracts.dialogue import TurnInput
from orchestrator.contracts.events import InputTranscript, InputTurnEnd, InputUser
from orchestrator.contracts.ids import GenerationId, UtteranceId
from orchestrator.dialogue.misheard import TYPED
from orchestrator.dialogue.phrase_book import PhraseBook
from orchestrator.tasks.extraction.words import is_question


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


def stands_alone(user: InputUser, book: PhraseBook) -> bool:
    """Whether words that come before the first sound of an answer do not go on with what it answers.

    A typed line was sent as a whole: a question is another one. What is spoken may be cut in two by a breath.
    """
    if book.is_go_on(user.text) or book.is_repeat(user.text):
        return True
    return user.via in TYPED and is_question(user.text)


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
