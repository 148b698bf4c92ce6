"""Answers that begin while the end of the user's turn is still being judged.

After a short silence the recogniser tells provisionally what was said. If the turn ends there, that is the final text,
so the answer is begun at once: it thinks and lets its first piece be synthesised, but nothing leaves it before the end
of the turn is confirmed. When the user goes on, or the final text differs, it is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import TurnInput
from orchestrator.contracts.events import Event, SpeculationChanged
from orchestrator.contracts.ids import UtteranceId
from orchestrator.dialogue.phrase_book import normalise
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.dialogue.turn_work import Script
from orchestrator.generation import Generation


@dataclass(slots=True)
class _Attempt:
    """The answer that is being made ahead."""

    generation: Generation
    user: TurnInput
    began_s: float
    first_piece_s: float | None = None


class Speculation:
    """Begins, keeps and ends answers made ahead; at most one at a time. Lives on the core loop."""

    def __init__(
        self,
        *,
        clock: Clock,
        turns: TurnLoop,
        trace: Callable[[Event], None],
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        """Use `turns` for the work; `may_begin` tells whether an answer may be made ahead at all just now."""
        self._clock = clock
        self._turns = turns
        self._trace = trace
        self._may_begin = may_begin
        self._attempt: _Attempt | None = None
        self.started = 0
        self.confirmed = 0
        self.discarded = 0
        turns.on_discarded = self._on_discarded

    def begin(self, user: TurnInput, *, script: Script | None = None) -> bool:
        """Begin an answer to `user`, words that may be the whole turn; one to other words is thrown away.

        False where nothing new was begun: there is such an answer already, or none may be made ahead now.
        """
        attempt = self._attempt
        if attempt is not None:
            if _is_same(attempt.user, user):
                return False
            self.discard("text")
        if not self._turns.may_speculate or not self._may_begin():
            return False
        generation = self._turns.start(user, script=script, is_speculative=True)
        attempt = self._attempt = _Attempt(generation=generation, user=user, began_s=self._clock.monotonic_s())
        self._turns.on_first_piece(generation, self._note_first_piece)
        self.started += 1
        self._tell(generation, SpeculationChanged(state="started"))
        return True

    def take(self, user: TurnInput, *, on_end: Callable[[Generation], None] | None = None) -> Generation | None:
        """Return the answer to exactly `user`, from now on the active one; None if there is none."""
        attempt = self._attempt
        if attempt is None:
            return None
        if not _is_same(attempt.user, user):
            self.discard("text")
            return None
        self._attempt = None
        elapsed_s = self._clock.monotonic_s() - attempt.began_s
        if not self._turns.confirm(attempt.generation, on_end=on_end):
            return None
        self.confirmed += 1
        gained_s = elapsed_s if attempt.first_piece_s is None else min(elapsed_s, attempt.first_piece_s)
        self._tell(
            attempt.generation,
            SpeculationChanged(state="confirmed", gained_s=gained_s, first_piece_s=attempt.first_piece_s),
        )
        return attempt.generation

    def discard(self, because: str, utterance_id: UtteranceId | None = None) -> None:
        """Throw away what is being made ahead, if there is anything (of `utterance_id`, if given)."""
        attempt = self._attempt
        if attempt is not None and utterance_id in (None, attempt.user.utterance_id):
            self._turns.discard(attempt.generation, because)

    def _on_discarded(self, generation: Generation, because: str) -> None:
        if self._attempt is not None and self._attempt.generation is generation:
            self._attempt = None
        self.discarded += 1
        self._tell(generation, SpeculationChanged(state="discarded", because=because))

    def _note_first_piece(self) -> None:
        if self._attempt is not None:
            self._attempt.first_piece_s = self._clock.monotonic_s() - self._attempt.began_s

    def _tell(self, generation: Generation, payload: SpeculationChanged) -> None:
        self._trace(
            Event(
                payload=payload,
                source="dialogue",
                session_id=generation.session_id,
                utterance_id=generation.utterance_id,
                generation_id=generation.generation_id,
            )
        )


def _is_same(made: TurnInput, wanted: TurnInput) -> bool:
    return (
        made.kind == wanted.kind
        and made.utterance_id == wanted.utterance_id
        and made.language == wanted.language
        and made.interrupt_hint == wanted.interrupt_hint
        and made.object == wanted.object
        and normalise(made.text) == normalise(wanted.text)
    )
