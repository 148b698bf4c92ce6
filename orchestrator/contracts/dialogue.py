"""Between the turn loop (which owns generations, output and storage) and the brain (which decides what to say).

The turn loop makes a `TurnContext` and asks the brain for a `PendingTurn`; it runs it in the generation's task
group and settles it once, when the generation has reached its final state, also when `run` was cancelled on the way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from orchestrator.contracts.events import ObjectRef, Payload
from orchestrator.contracts.ids import CorrelationId, GenerationId, UtteranceId


class LlmTask(StrEnum):
    """What a model call is for; the closed list of `mynah flows test`."""

    USER_INTENT = "user_intent"
    NEXT_STEP = "next_step"
    BOT_MESSAGE = "bot_message"
    VALUE = "value"
    COMBINED = "combined"
    GENERAL = "general"
    PLAN = "plan"
    REPHRASE = "rephrase"
    GENERATE = "generate"
    PERSONA = "persona"
    SUMMARISE = "summarise"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool the model wants called. `arguments` is the text it wrote, JSON or not; `id` is the model's own."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """A tool as it is described to the model. `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a prompt. `role` is system, user, assistant or tool.

    `tool_uses` are the calls an assistant message asked for; `tool_use_id` says which of them a tool message answers.
    """

    role: str
    content: str
    tool_uses: tuple[ToolUse, ...] = ()
    tool_use_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRequest:
    """A model call. `schema` asks for JSON of that shape; `max_tokens` none leaves it to the model.

    `tools` are offered to a model that can call them; with `may_call_tools` off it may read of them but not call.
    """

    task: LlmTask
    messages: tuple[ChatMessage, ...]
    temperature: float = 0.7
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    tools: tuple[ToolOffer, ...] = ()
    may_call_tools: bool = True


CUT_SHORT = "cut_short"
"""In `LlmUnavailable.args[0]`: the model broke off; what it has said stays said and can be gone on with."""


class LlmUnavailable(Exception):  # noqa: N818 - the field's word
    """No model is configured, or it can't be reached or failed; `args[0]` says which."""


class Llm(Protocol):
    """Any OpenAI-compatible model. Each call belongs to the turn's generation and dies with it."""

    @property
    def is_configured(self) -> bool:
        """Whether there is a model to ask at all."""
        ...

    @property
    def can_plan(self) -> bool:
        """Whether the model is capable of structured planning (the small offline ones are not)."""
        ...

    def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Yield text pieces as they come; closing the iterator closes the connection. Raises `LlmUnavailable`."""
        ...

    async def complete(self, request: LlmRequest) -> str:
        """Return the whole text. Raises `LlmUnavailable`."""
        ...


class ToolCallingLlm(Llm, Protocol):
    """A model that may be offered tools."""

    @property
    def can_call_tools(self) -> bool:
        """Whether the settings and the endpoint, as far as known, let it call tools."""
        ...

    def converse(self, request: LlmRequest) -> AsyncIterator[str | ToolUse]:
        """Yield text pieces as they come, then the tools it wants called; otherwise as `stream`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """What the user said or typed, or the event that makes a turn without words.

    `kind` is user, silence or event; `interrupt_hint` none, `interrupted` (came while the character spoke) or
    `objection`.
    """

    kind: str = "user"
    text: str = ""
    language: str | None = None
    via: str = "voice"
    utterance_id: UtteranceId | None = None
    interrupt_hint: str | None = None
    object: ObjectRef | None = None
    event_type: str | None = None
    event_payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One utterance of the character.

    `source` is rail, task, system, persona or safety; `key` is the brain's own mark, given back in `MessageHeard`.
    """

    text: str
    source: str
    key: str | None = None
    language: str | None = None
    interruptible: bool = True
    bot_intent: str | None = None
    object: ObjectRef | None = None
    expression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHeard:
    """What became of a message. `heard` is the text that was played or shown; `sounded` whether any of it was."""

    key: str | None
    text: str
    heard: str
    sounded: bool
    completed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHeard:
    """How a turn ended: `outcome` completed, interrupted or failed.

    `joined` means that nothing sounded and the user's next words are joined to this turn's: the turn is redone, so
    step pointers, asked-flags and counters must be as if it had not been; said slots and done effects stay.
    """

    outcome: str
    messages: tuple[MessageHeard, ...] = ()
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One message of the conversation as heard.

    `unheard` is the rest that was cut; `status` completed, interrupted or failed.
    """

    role: str
    text: str
    status: str = "completed"
    unheard: str = ""
    object: ObjectRef | None = None


class Reply(Protocol):
    """Where a turn's utterances go."""

    async def say(self, message: Message) -> None:
        """Speak a finished message; returns when it is queued. Raises `GenerationCancelled` when stale."""
        ...

    async def stream(
        self, chunks: AsyncIterator[str], message: Message, guard: Callable[[str], Awaitable[str | None]] | None = None
    ) -> str:
        """Speak text while it is generated and return all of it (filtered); `message.text` is ignored.

        `guard` gets each finished sentence before it becomes an intent and returns what to say instead (the same
        text to pass it); None blocks it and drops the rest.
        """
        ...


class Effects(Protocol):
    """Side effects that run at most once per key, also over a crash."""

    async def run(
        self, *, key: str, name: str, args: Mapping[str, Any], effect: Callable[[], Awaitable[Any]], timeout_s: float
    ) -> Any:
        """Store `key` as started, run `effect`, store and return its result (JSON-able).

        A key that is already done returns the stored result without running; one that was started and never ended
        (a crash) raises `EffectUncertain`. Raises `TimeoutError`, or whatever the effect raised.
        When the generation is cancelled meanwhile, the late result is quarantined under its correlation id.
        """
        ...


class EffectUncertain(Exception):  # noqa: N818 - names a state, not a fault
    """The program stopped while this effect ran; nobody knows whether it took place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """A stored reminder. `due` carries its UTC offset; `state` is waiting, fired, cancelled."""

    id: str
    text: str
    due: datetime
    state: str = "waiting"


class Reminders(Protocol):
    """The reminders that survive restarts."""

    async def add(self, *, text: str, due: datetime) -> Reminder:
        """Store a reminder that fires through the notification lane."""
        ...

    async def list(self) -> Sequence[Reminder]:
        """Return the waiting ones, soonest first."""
        ...

    async def cancel(self, reminder_id: str) -> bool:
        """Cancel one; False if it was not waiting."""
        ...


class TurnContext(Protocol):
    """What a turn may use. All of it belongs to one generation."""

    @property
    def generation_id(self) -> GenerationId:
        """The answer this turn makes."""
        ...

    @property
    def now(self) -> datetime:
        """Wall time of the turn, with UTC offset."""
        ...

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """The conversation as heard, oldest first, without the current input."""
        ...

    @property
    def world(self) -> Mapping[str, Any]:
        """Newest context values by source."""
        ...

    @property
    def reply(self) -> Reply:
        """Where utterances go."""
        ...

    @property
    def llm(self) -> Llm:
        """The model."""
        ...

    @property
    def effects(self) -> Effects:
        """Side effects."""
        ...

    @property
    def reminders(self) -> Reminders:
        """Reminders."""
        ...

    def check(self) -> None:
        """Raise `GenerationCancelled` if the answer is no longer wanted; call it before every irreversible act."""
        ...

    def emit(self, payload: Payload, *, correlation_id: CorrelationId | None = None) -> None:
        """Put a fact (`flow:*`, `rail:*`) with the turn's ids into the events file."""
        ...

    @property
    def is_speculative(self) -> bool:
        """Whether the end of the user's turn is not confirmed yet, so that nothing may leave the turn."""
        ...

    async def confirmed(self) -> None:
        """Wait until the answer is wanted for certain. Raises `GenerationCancelled` if it is not any more."""
        ...

    async def commit_early(self, state: Mapping[str, Any]) -> None:
        """Store the dialogue state that must not wait for the end of the answer: what the user said, effects done."""
        ...


class PendingTurn(Protocol):
    """One turn in the making, on a copy of the dialogue state."""

    async def run(self) -> None:
        """Decide and speak. Cancellation may come at any await."""
        ...

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Fold the turn into the dialogue state and return it for storing. Called once, `run` finished or not."""
        ...


class Brain(Protocol):
    """Decides what to say. Used by the app, by `mynah flows test` and by the editor's try-out alike."""

    def begin(self, turn: TurnContext, user: TurnInput) -> PendingTurn:
        """Start a turn from the committed state."""
        ...

    def accepts_as_answer(self, text: str, language: str | None) -> bool:
        """Whether a running question takes `text` as its answer (so "yeah", 「嗯」 is no backchannel)."""
        ...

    def expected_answer(self) -> str | None:
        """What the open question wants, as a slot type (boolean, number, text …); None without an open question."""
        ...

    def silence_timeout_s(self) -> float | None:
        """After how much silence since the end of the last answer a `silence` turn is due; None: never."""
        ...

    def dump_state(self) -> Mapping[str, Any]:
        """Return the committed dialogue state, JSON-able."""
        ...

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take a stored dialogue state; parts that no longer exist are dropped or moved to the nearest valid step."""
        ...
