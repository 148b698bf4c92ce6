"""Every fact and request that travels on the bus, as one frozen payload class per event type.

`TYPE` is the public name in the events file. Times ending in `at_s` are on the monotonic clock and are
corrected for device latency: the moment the sound was at the microphone or the loudspeaker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from orchestrator.contracts.ids import (
    CallId,
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

    `interrupt_hint` is set when it came while the character spoke: `interrupted` or `objection`.
    """

    TYPE: ClassVar[str] = "input:user"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    text: str
    via: str
    language: str | None = None
    interrupt_hint: str | None = None
    object: ObjectRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputInterrupt(Payload):
    """The output must stop. `by` is vad, phrase, button, ptt, typed or system."""

    TYPE: ClassVar[str] = "input:interrupt"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    reason: InterruptReason
    by: str
    text: str | None = None


# --- output ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDuck(Payload):
    """The character's voice was lowered."""

    TYPE: ClassVar[str] = "output:duck"
    at_s: float
    gain_db: float
    ramp_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputUnduck(Payload):
    """The character's voice came back to full level."""

    TYPE: ClassVar[str] = "output:unduck"
    at_s: float
    gain_db: float
    ramp_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCut(Payload):
    """The sound stopped inside an answer. `char_offset` counts in the intent's text; `held_s` is unplayed PCM."""

    TYPE: ClassVar[str] = "output:cut"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("word",)
    at_s: float
    last_sample_at_s: float
    word: str | None
    char_offset: int
    held_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptConfirm(Payload):
    """What a cut turned out to be.

    `verdict`: cancel, stop_only, resume; `because`: words, backchannel, nothing, echo, timeout.
    """

    TYPE: ClassVar[str] = "interrupt:confirm"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    verdict: str
    because: str
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputResume(Payload):
    """A held answer goes on."""

    TYPE: ClassVar[str] = "output:resume"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("from_word",)
    at_s: float
    from_word: str | None
    repeated_words: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStateChanged(Payload):
    """A generation went from one state to another; `from_state` is none for a new one."""

    TYPE: ClassVar[str] = "generation:state"
    from_state: str | None
    to_state: str
    reason: str | None = None
    speculative: bool = False
    snapshot_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallStarted(Payload):
    """A model call was sent."""

    TYPE: ClassVar[str] = "llm:call"
    call_id: CallId
    task: str
    model: str
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmFirstToken(Payload):
    """The first token of a model call arrived."""

    TYPE: ClassVar[str] = "llm:first_token"
    call_id: CallId


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmEnded(Payload):
    """A model call ended. `outcome`: ok, cancelled, failed; `closed_s`: cancel → connection closed."""

    TYPE: ClassVar[str] = "llm:end"
    call_id: CallId
    outcome: str
    tokens: int
    closed_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentStateChanged(Payload):
    """An output intent went on in its life."""

    TYPE: ClassVar[str] = "intent:state"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    kind: str
    behaviour: str
    slot: str | None
    text: str
    state: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TtsFirstPcm(Payload):
    """A sentence was synthesised (or its first chunk). `frames` at the voice's rate."""

    TYPE: ClassVar[str] = "tts:first_pcm"
    synth_s: float
    frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedWord:
    """One word of an intent's text and when it sounds, relative to the intent's first sample."""

    index: int
    text: str
    char_start: int
    char_end: int
    start_s: float
    end_s: float
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedViseme:
    """A mouth shape from `start_s` on, relative to the intent's first sample; see `audio.tts.visemes`."""

    shape: str
    start_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFirstSound(Payload):
    """The first sample of an intent was at the loudspeaker. The timeline is for lip-sync and subtitles.

    On a resume it is posted again, with the words that will still sound and `start_offset_s` saying where in the
    intent the sound begins (0 for the start).
    """

    TYPE: ClassVar[str] = "output:first_sound"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("words",)
    at_s: float
    start_offset_s: float = 0.0
    duration_s: float = 0.0
    words: tuple[TimedWord, ...] = ()
    visemes: tuple[TimedViseme, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputWord(Payload):
    """A word was played to its end, or was cut inside (`cut`). Posted after the fact, from the played clock."""

    TYPE: ClassVar[str] = "output:word"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    index: int
    text: str
    char_start: int
    char_end: int
    at_s: float
    end_s: float
    cut: bool
    estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStateChanged(Payload):
    """What the output does: speaking, ducked, held, stopped, subtitle_cleared, queue_empty, listening, muted.

    `stopped` with a generation id acknowledges a cut or purge of that generation.
    """

    TYPE: ClassVar[str] = "output:state"
    state: str
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtitlePainted(Payload):
    """A subtitle line was painted. `lit_to` and `cut_at` are character offsets."""

    TYPE: ClassVar[str] = "subtitle:painted"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    role: str
    text: str
    lit_to: int
    cut_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AvatarPainted(Payload):
    """The avatar was painted in a new state, mouth shape or expression."""

    TYPE: ClassVar[str] = "avatar:painted"
    state: str
    mouth: str
    expression: str


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
