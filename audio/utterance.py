"""The utterance that the ears have open."""

from __future__ import annotations

from dataclasses import dataclass, field

from audio.ports import Samples
from orchestrator.contracts.ids import UtteranceId


@dataclass(slots=True)
class OpenUtterance:
    """From its onset to the end of the turn. `frames` are 10 ms each at 16 kHz, echo-cancelled."""

    id: UtteranceId
    begin_s: float
    during_output: bool
    frames: list[Samples] = field(default_factory=list)
    revision: int = 0
    is_decoding: bool = False
    is_told: bool = False
    next_partial_s: float = float("-inf")
