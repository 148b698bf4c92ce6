"""What the words of an open turn, and the tone they end in, say about its end, with what only the dialogue knows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from audio.ears_config import EndpointConfig
from orchestrator.speech.turn_text import Ending, is_short_answer, judged_ending

_END_WEIGHT = 0.68
_TONE_WEIGHT = 0.36
_LOGPROB_WEIGHT = 4.1
_BIAS = -2.1
"""A logistic regression on recorded English pauses and ends (docs/ears.md); Chinese ones were only tested with it."""

_END_BOUND = 0.02
_TONE_BOUND = 0.01
"""How sure one sign can be at most: a chance beyond says nothing more."""

_LOWEST_LOGPROB = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What was found out about a pause beside its words.

    `end_chance` is how sure the recogniser is that a sentence ends there, `avg_logprob` how sure of the words (mean
    log chance of a token); `tone_chance` how likely the turn is over by its sound. None: can't be told. `is_tone_due`:
    the tone is still being listened to.
    """

    end_chance: float | None = None
    avg_logprob: float | None = None
    tone_chance: float | None = None
    is_tone_due: bool = False


def turn_chance(end_chance: float, tone_chance: float, avg_logprob: float) -> float:
    """Return how likely the turn is over, by three signs together: 0 to 1."""
    score = (
        _END_WEIGHT * _logit(end_chance, _END_BOUND)
        + _TONE_WEIGHT * _logit(tone_chance, _TONE_BOUND)
        + _LOGPROB_WEIGHT * min(0.0, max(_LOWEST_LOGPROB, avg_logprob))
        + _BIAS
    )
    return 1.0 / (1.0 + math.exp(-score))


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
        self, text: str, signs: Signs, *, is_whole: bool, config: EndpointConfig, is_over_output: bool = False
    ) -> Ending:
        """Return how `text` ends; `is_whole`: it is all that was said before the present pause.

        `is_over_output`: it was said into what the character says.
        """
        if not text.strip():
            # A noise over an answer: the answer waits to go on. Into silence it may be half a sentence that was not
            # understood yet, and nobody waits.
            return Ending.CLOSED if is_whole and is_over_output else Ending.UNSURE
        if self.holds_turn(text):
            return Ending.HOLD
        if is_whole and self.is_complete(text):
            return Ending.CLOSED
        if self.is_short_answer_due and is_short_answer(text):
            return Ending.ANSWER
        return judged_with_tone(text, signs, config)


def judged_with_tone(text: str, signs: Signs, config: EndpointConfig) -> Ending:
    """Return how `text` ends by its words, the recogniser and the tone; without a tone by the first two."""
    end, tone = signs.end_chance, signs.tone_chance
    if end is not None and signs.avg_logprob is not None:
        if signs.is_tone_due:
            # A sentence that looks finished is believed once the tone is known, a moment later.
            return judged_ending(text, 0.0, sure_end_chance=config.sure_end_chance)
        if tone is not None:
            chance = turn_chance(end, tone, signs.avg_logprob)
            return judged_ending(text, chance, sure_end_chance=config.sure_turn_chance)
    return judged_ending(text, end, sure_end_chance=config.sure_end_chance)


def _logit(chance: float, bound: float) -> float:
    bounded = min(1.0 - bound, max(bound, chance))
    return math.log(bounded / (1.0 - bounded))
