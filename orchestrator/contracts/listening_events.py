"""Payloads of listening: going on after a silence, answers begun before the turn is over, attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from orchestrator.contracts.payload import Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class InputContinued(Payload):
    """The user goes on after a short silence: what was understood provisionally is not the whole. `at_s` is when."""

    TYPE: ClassVar[str] = "input:continued"
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationChanged(Payload):
    """An answer begun before the end of the turn. `state` is started, confirmed or discarded.

    `because` says why it was thrown away: continued, text, turn, nothing or shutdown. `gained_s` of a confirmed one is
    how much of its work was done before the turn was over; `first_piece_s` how long after its start the first piece was
    ready to be said, None if it was not by then.
    """

    TYPE: ClassVar[str] = "speculation:state"
    state: str
    because: str | None = None
    gained_s: float | None = None
    first_piece_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionChanged(Payload):
    """Whom the character listens to. `state` is always, awake, waiting or asleep; `because` what changed it."""

    TYPE: ClassVar[str] = "attention:state"
    state: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputIgnored(Payload):
    """Words that were not meant for the character. `because` is asleep or not_addressed."""

    TYPE: ClassVar[str] = "input:ignored"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    text: str
    because: str
