"""Output intents: what the character is to say, show or do."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.lanes import Behaviour

CUE_SLOT = "cue"
"""Slot of what is said to fill a wait: it belongs to an answer and is no part of its text."""
APOLOGY_SLOT = "apology"
"""Slot of what is said of a failure: beside the answer, and no part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechIntent:
    """One sentence or clause to be spoken.

    `generation_order` rises with each new generation; `expires_at_s` is on the monotonic clock; `language` is
    a hint (`en`, `zh`) for normalisation and the choice of voice; `is_last` marks the end of the generation's speech
    (an empty `text` with `is_last` is allowed and only ends it).
    """

    intent_id: IntentId
    generation_id: GenerationId
    generation_order: int
    text: str
    behaviour: Behaviour = Behaviour.QUEUE
    slot: str | None = None
    priority: int = 0
    expires_at_s: float | None = None
    voice: str | None = None
    language: str | None = None
    interruptible: bool = True
    is_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionIntent:
    """A gesture or expression of the character."""

    intent_id: IntentId
    generation_id: GenerationId
    cue: str
    behaviour: Behaviour = Behaviour.REPLACE
    slot: str | None = "expression"
    expires_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtitleIntent:
    """Text to show; `spoken_by` ties it to the speech intent that lights its words."""

    intent_id: IntentId
    generation_id: GenerationId
    text: str
    spoken_by: IntentId | None = None
    behaviour: Behaviour = Behaviour.QUEUE
    slot: str | None = None
    expires_at_s: float | None = None
