"""What the words of an open turn say about its end, with what only the dialogue knows."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.speech.turn_text import Ending, is_short_answer, judged_ending


class TurnWords:
    """Judges the words so far. Its questions are asked on the ears thread; they may be set from any thread.

    `holds_turn` tells whether words ask for time ("let me think"), `is_complete` whether they are all of a known
    sentence ("say that again"); `is_short_answer_due`: the character has just asked for a yes or no or for a number.
    """

    def __init__(self) -> None:
        """Know nothing but language."""
        self.holds_turn: Callable[[str], bool] = lambda text: False
        self.is_complete: Callable[[str], bool] = lambda text: False
        self.is_short_answer_due = False

    def ending(
        self,
        text: str,
        end_chance: float | None,
        *,
        is_whole: bool,
        sure_end_chance: float,
        is_over_output: bool = False,
    ) -> Ending:
        """Return how `text` ends; `is_whole`: it is all that was said before the present pause.

        `is_over_output`: it was said into what the character says.
        """
        if not text.strip():
            # A noise over an answer: the answer waits to go on. Into silence it may be the beginning of a sentence that
            # was not understood yet, and nobody waits.
            return Ending.CLOSED if is_whole and is_over_output else Ending.UNSURE
        if self.holds_turn(text):
            return Ending.HOLD
        if is_whole and self.is_complete(text):
            return Ending.CLOSED
        if self.is_short_answer_due and is_short_answer(text):
            return Ending.ANSWER
        return judged_ending(text, end_chance, sure_end_chance=sure_end_chance)
