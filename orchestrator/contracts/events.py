"""Every fact and request that travels on the bus, as one frozen payload class per event type.

`TYPE` is the public name in the events file. Times ending in `at_s` are on the monotonic clock and are
corrected for device latency: the moment the sound was at the microphone or the loudspeaker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from orchestrator.contracts.ids import (
    CorrelationId,
    GenerationId,
    IntentId,
    SessionId,
    UtteranceId,
)
from orchestrator.contracts.lanes import InterruptReason
from orchestrator.contracts.listening_events import AttentionChanged as AttentionChanged
from orchestrator.contracts.listening_events import InputContinued as InputContinued
from orchestrator.contracts.listening_events import InputIgnored as InputIgnored
from orchestrator.contracts.listening_events import SpeculationChanged as SpeculationChanged
from orchestrator.contracts.output_events import AvatarPainted as AvatarPainted
from orchestrator.contracts.output_events import GenerationStateChanged as GenerationStateChanged
from orchestrator.contracts.output_events import IntentStateChanged as IntentStateChanged
from orchestrator.contracts.output_events import InterruptConfirm as InterruptConfirm
from orchestrator.contracts.output_events import LlmCallStarted as LlmCallStarted
from orchestrator.contracts.output_events import LlmEnded as LlmEnded
from orchestrator.contracts.output_events import LlmFirstToken as LlmFirstToken
from orchestrator.contracts.output_events import OutputCut as OutputCut
from orchestrator.contracts.output_events import OutputDuck as OutputDuck
from orchestrator.contracts.output_events import OutputFirstSound as OutputFirstSound
from orchestrator.contracts.output_events import OutputResume as OutputResume
from orchestrator.contracts.output_events import OutputStateChanged as OutputStateChanged
from orchestrator.contracts.output_events import OutputUnduck as OutputUnduck
from orchestrator.contracts.output_events import OutputWord as OutputWord
from orchestrator.contracts.output_events import SubtitlePainted as SubtitlePainted
from orchestrator.contracts.output_events import TimedViseme as TimedViseme
from orchestrator.contracts.output_events import TimedWord as TimedWord
from orchestrator.contracts.output_events import TtsFirstPcm as TtsFirstPcm
from orchestrator.contracts.payload import Payload as Payload
from orchestrator.contracts.payload import json_name as json_name
from orchestrator.contracts.payload import payload_classes as payload_classes
from orchestrator.contracts.payload import to_json as to_json
from orchestrator.contracts.task_events import FlowActionRan as FlowActionRan
from orchestrator.contracts.task_events import FlowCommanded as FlowCommanded
from orchestrator.contracts.task_events import FlowSlotChanged as FlowSlotChanged
from orchestrator.contracts.task_events import FlowStateChanged as FlowStateChanged
from orchestrator.contracts.task_events import RailIntentFound as RailIntentFound
from orchestrator.contracts.task_events import RailStateChanged as RailStateChanged
from orchestrator.contracts.task_events import ToolCalled as ToolCalled
from orchestrator.contracts.task_events import ToolResult as ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What a producer posts; the bus adds id, time and place in the order."""

    payload: Payload
    source: str
    session_id: SessionId | None = None
    utterance_id: UtteranceId | None = None
    generation_id: GenerationId | None = None
    target_generation_id: GenerationId | None = None
    intent_id: IntentId | None = None
    correlation_id: CorrelationId | None = None
    expires_at_s: float | None = None
    coalesce_key: str | None = None
    dedupe_key: str | None = None
    preemptible: bool = False
    interrupt_reason: InterruptReason | None = None


# --- application -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOpen(Payload):
    """First record of an events file."""

    TYPE: ClassVar[str] = "log:open"
    schema: int
    wall: str
    monotonic_origin: float
    rates: Mapping[str, int]
    in_latency_s: float | None
    out_latency_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppReady(Payload):
    """Everything is loaded and listening."""

    TYPE: ClassVar[str] = "app:ready"
    devices: Mapping[str, str | None]
    models: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppError(Payload):
    """A part failed; `message` is for the user, in their language."""

    TYPE: ClassVar[str] = "app:error"
    code: str
    part: str
    recoverable: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppExit(Payload):
    """Last record of an events file."""

    TYPE: ClassVar[str] = "app:exit"
    code: int
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlAck(Payload):
    """Answer to a line on the control channel."""

    TYPE: ClassVar[str] = "control:ack"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("result",)
    cmd: str
    ok: bool
    error: str | None = None
    result: Mapping[str, Any] | None = None


# --- input -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpeech(Payload):
    """The user began or ceased to make voiced sound. `phase` is `onset` or `end`."""

    TYPE: ClassVar[str] = "input:speech"
    phase: str
    at_s: float
    vad: float
    during_output: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTurnEnd(Payload):
    """The user's turn is over. `by` is silence, semantic, ptt or limit."""

    TYPE: ClassVar[str] = "input:turn_end"
    at_s: float
    silence_s: float
    by: str
    speculative_hit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTranscript(Payload):
    """What the recogniser understood. `rejected` names the rule that found it not to be speech.

    `provisional` marks a partial that is the whole of what was said before a short silence: it becomes the final one if
    the turn ends there. `end_chance` is how sure the recogniser is that a sentence ends where the text does (0 where it
    wrote no end), none if it can't tell.
    """

    TYPE: ClassVar[str] = "input:transcript"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    final: bool
    text: str
    language: str | None
    audio_s: float
    decode_s: float
    context: str
    retried: bool
    avg_logprob: float | None
    no_speech: float | None
    vad_fraction: float | None
    rejected: str | None
    provisional: bool = False
    end_chance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """A thing the user points at: a dropped file or link, a picked reminder."""

    type: str
    id: str
    title: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputUser(Payload):
    """The user said or typed something. `via` is voice, typed, ptt or control.

    `interrupt_hint` is set when it came while the character spoke: `interrupted` or `objection`. `corrects` is what was
    heard in place of `text`, `corrects_turn` the answer that was begun with it: that turn is taken again.
    """

    TYPE: ClassVar[str] = "input:user"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text", "corrects")
    text: str
    via: str
    language: str | None = None
    interrupt_hint: str | None = None
    object: ObjectRef | None = None
    corrects: str | None = None
    corrects_turn: GenerationId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputInterrupt(Payload):
    """The output must stop. `by` is vad, phrase, button, ptt, typed or system."""

    TYPE: ClassVar[str] = "input:interrupt"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    reason: InterruptReason
    by: str
    text: str | None = None


# --- history, notifications, bus, devices ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCommitted(Payload):
    """A message was stored. `status`: completed, interrupted, failed."""

    TYPE: ClassVar[str] = "history:commit"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    role: str
    status: str
    text: str
    heard_chars: int
    full_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCommitted(Payload):
    """A commit of the dialogue state."""

    TYPE: ClassVar[str] = "turn:commit"
    effects: int
    state_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyStateChanged(Payload):
    """A notification went on in its life: due, held, spoken, expired, coalesced."""

    TYPE: ClassVar[str] = "notify:state"
    id: str
    state: str
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyRequested(Payload):
    """Something wants to be said by itself: a due reminder, a suggestion."""

    TYPE: ClassVar[str] = "notify"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    id: str
    text: str
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdated(Payload):
    """News about the world from one source."""

    TYPE: ClassVar[str] = "context:update"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("values",)
    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalEvent(Payload):
    """An event from outside that rails may wait for."""

    TYPE: ClassVar[str] = "external:event"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("data",)
    name: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFocused(Payload):
    """A thing came into focus without a sentence."""

    TYPE: ClassVar[str] = "input:object"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("object",)
    object: ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWrite(Payload):
    """A fact worth remembering."""

    TYPE: ClassVar[str] = "memory:write"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BusDropped(Payload):
    """The bus dropped something. `reason`: expired, duplicate, coalesced, stale, overflow, malformed."""

    TYPE: ClassVar[str] = "bus:dropped"
    dropped_type: str
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BusHandled(Payload):
    """How long an event waited."""

    TYPE: ClassVar[str] = "bus:handled"
    handled_type: str
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStateChanged(Payload):
    """A device was opened, lost, replaced or changed; `latency_s` is what it reports while it is open."""

    TYPE: ClassVar[str] = "device:state"
    direction: str
    device: str | None
    rate: int | None
    state: str
    reason: str | None = None
    latency_s: float | None = None
