"""What the window is told. Views are facts to paint; each that belongs to an answer carries its generation."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.contracts.events import TimedViseme, TimedWord
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Base of all views."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView(View):
    """The character's one state.

    It is starting, idle, listening, thinking, speaking, interrupted, muted, error, asleep or waiting.
    Waiting is idle where a name is needed: talk that is not addressed to the character is not answered.

    `detail` says more while starting: a key of the UI catalogue's `progress.` or words to show as they are.
    """

    state: str
    generation_id: GenerationId | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTextView(View):
    """The user's words, live (`final` False) or settled. An empty final text removes the line."""

    utterance_id: UtteranceId | None
    text: str
    final: bool
    via: str = "voice"


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterTextView(View):
    """A sentence of the answer appears, unlit. `spoken` is False when it is only shown (muted, no sound)."""

    generation_id: GenerationId
    intent_id: IntentId
    text: str
    spoken: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechTimelineView(View):
    """A sentence begins to sound at `at_s` (monotonic, at the loudspeaker), `start_offset_s` into its timeline."""

    generation_id: GenerationId
    intent_id: IntentId
    at_s: float
    start_offset_s: float
    duration_s: float
    words: tuple[TimedWord, ...]
    visemes: tuple[TimedViseme, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStoppedView(View):
    """The sound of a sentence stopped at `at_s`.

    `cut_at` is the character offset of a cut, none when it was played out.

    `held` says it may still be resumed.
    """

    generation_id: GenerationId
    intent_id: IntentId
    at_s: float
    cut_at: int | None
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationEndedView(View):
    """An answer is over. `outcome` is completed, cancelled or failed."""

    generation_id: GenerationId
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionView(View):
    """The character's expression: neutral, happy, sad, surprised, thinking, listening."""

    generation_id: GenerationId | None
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeView(View):
    """Something the user should know, in words of the UI catalogue (`code`) or `text`.

    `severity`: info, warning, error.
    """

    code: str
    text: str
    severity: str = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView(View):
    """A device's state as in `device:state`."""

    direction: str
    device: str | None
    state: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MisheardView(View):
    """The user said that `heard` was wrong and `said` was meant: a lesson for the recogniser."""

    heard: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteView(View):
    """The microphone (`direction` input) or the voice (output) was muted or unmuted, by whomever."""

    direction: str
    on: bool
