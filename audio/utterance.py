"""The utterance that the ears have open."""

from __future__ import annotations

from dataclasses import dataclass, field

from audio.ports import Samples
from audio.turn_words import Signs
from orchestrator.contracts.ids import UtteranceId


@dataclass(slots=True)
class OpenUtterance:
    """From its onset to the end of the turn. `frames` are 10 ms each at 16 kHz, echo-cancelled.

    `whole` is all that was said before the present pause, once it is known, with what the recogniser tells of its end.
    """

    id: UtteranceId
    begin_s: float
    during_output: bool
    frames: list[Samples] = field(default_factory=list)
    revision: int = 0
    is_decoding: bool = False
    is_told: bool = False
    whole: tuple[str, Signs] | None = None
    next_partial_s: float = float("-inf")
