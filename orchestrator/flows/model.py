"""The validated model of flows: frozen, compiled, free of text positions except where a message needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.flows.expressions import Condition, Read
from orchestrator.flows.texts import Text, Value

SLOT_TYPES = ("text", "integer", "number", "boolean", "choice", "date", "time", "datetime", "duration", "any")
STEP_TYPES = ("start", "collect", "action", "set_slots", "call", "end")
MODES = ("static", "rephrase", "generate")

DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_SILENCE_TIMEOUT_S = 6.0
DEFAULT_ACTION_TIMEOUT_S = 15.0

CONTEXT_FIELDS: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "system_task_started": "started_flow_id started_flow_name",
        "system_task_interrupted": "interrupted_flow_id interrupted_flow_name started_flow_id started_flow_name",
        "system_task_canceled": "canceled_flow_id canceled_flow_name reason",
        "system_task_resumed": "resumed_flow_id resumed_flow_name",
        "system_task_completed": "completed_flow_id completed_flow_name silent",
        "system_collect_information": "slot_name slot_label response attempt",
        "system_correction": "slot_name slot_label slot_names slot_labels old new done",
        "system_clarify": "flows",
        "system_repeat": "slot_name slot_label response",
        "system_skip": "slot_name slot_label skipped",
        "system_silence": "slot_name slot_label response count",
        "system_cannot_handle": "attempt reason options",
        "system_internal_error": "part recoverable",
        "system_resume_offer": "paused",
        "system_confirm_interrupt": "running_flow_id running_flow_name started_flow_id started_flow_name",
        "system_confirm_again": "done slot_name slot_label replaces",
        "system_confirm_action": "action question",
    }.items()
}
"""System flows and the fields of their `context`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a choice slot and what people call it."""

    value: Any
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot's definition. `filled_by`: user or action."""

    id: str
    type: str = "text"
    label: Text | None = None
    description: Text | None = None
    pattern: str | None = None
    default: Any = None
    persist: bool = False
    filled_by: str = "user"
    choices: tuple[Choice, ...] = ()

    @property
    def is_free_text(self) -> bool:
        """Whether any sentence can be its value."""
        return self.type in ("text", "any") and self.pattern is None

    def label_in(self, language: str | None) -> str:
        """Return the label for people."""
        return self.label.raw(language) if self.label is not None else self.id.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What `action_response` says. `text` may be missing only in mode generate; `thing` is an object it points at."""

    mode: str = "static"
    text: Text | None = None
    prompt: Text | None = None
    interruptible: bool = True
    thing: Value | None = None

    @property
    def reads(self) -> tuple[Read, ...]:
        """What its texts read."""
        return (*(self.text.reads if self.text else ()), *(self.prompt.reads if self.prompt else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where a step goes: the first condition that holds, else `otherwise` (None: nowhere)."""

    branches: tuple[tuple[Condition, str], ...] = ()
    otherwise: str | None = None

    def targets(self) -> tuple[str, ...]:
        """Return every step named."""
        named = [target for _, target in self.branches]
        return (*named, *((self.otherwise,) if self.otherwise is not None else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Base of steps."""

    id: str
    description: str = ""
    links: Links = field(default_factory=Links)
    type: str = ""

    def reads(self) -> Iterator[Read]:
        """Yield what its conditions and texts read."""
        for condition, _ in self.links.branches:
            yield from condition.reads


@dataclass(frozen=True, slots=True, kw_only=True)
class StartStep(Step):
    """The entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndStep(Step):
    """The end of the flow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """What happens when a question was asked often enough: take `value`, go to `step`, or cancel.

    Without `on_give_up` a slot's own default is taken, and without that the task is cancelled (`is_explicit` false).
    """

    has_value: bool = False
    value: Any = None
    step: str | None = None
    is_explicit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FromObject:
    """A focused object's field that may fill the slot: `id`, `title` or the name of an attribute."""

    type: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStep(Step):
    """Ask for a slot until its value is valid."""

    slot: str
    response: Response
    condition: Condition | None = None
    failure: Response | None = None
    unrecognized: Response | None = None
    last_attempt: Response | None = None
    silence: Response | None = None
    silence_timeout_s: float = DEFAULT_SILENCE_TIMEOUT_S
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    give_up: GiveUp = field(default_factory=GiveUp)
    ask_even_if_known: bool = False
    interruptible: bool = True
    skippable: bool = False
    from_object: FromObject | None = None

    def reads(self) -> Iterator[Read]:
        """Yield what its conditions and texts read."""
        yield Read(namespace="slots", field=self.slot, offset=0)
        if self.condition is not None:
            yield from self.condition.reads
        for response in (self.response, self.failure, self.unrecognized, self.last_attempt, self.silence):
            if response is not None:
                yield from response.reads
        yield from Step.reads(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStep(Step):
    """Run an action with `args`, or with what the expression `reference` yields; `response` is for action_response."""

    action: str
    args: Value | None = None
    reference: Condition | None = None
    response: Response | None = None
    timeout_s: float = DEFAULT_ACTION_TIMEOUT_S
    on_error: str | None = None

    def reads(self) -> Iterator[Read]:
        """Yield what its arguments and conditions read."""
        if self.args is not None:
            yield from self.args.reads
        if self.reference is not None:
            yield from self.reference.reads
        if self.response is not None:
            yield from self.response.reads
        yield from Step.reads(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSlotsStep(Step):
    """Give slots values; none unsets."""

    values: Mapping[str, Value]

    def reads(self) -> Iterator[Read]:
        """Yield what its values and conditions read."""
        for value in self.values.values():
            yield from value.reads
        yield from Step.reads(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStep(Step):
    """Run another flow's steps with the same slots, then come back."""

    flow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow. `slots` are its own and those it collects."""

    id: str
    name: Text
    description: Text | None
    slots: tuple[str, ...]
    steps: Mapping[str, Step]
    start: str
    examples: tuple[str, ...] = ()
    guard: Condition | None = None
    confirm_interrupt: bool = False
    on_complete_flow: str | None = None
    on_complete_step: str | None = None

    @property
    def is_system(self) -> bool:
        """Whether it is one of the engine's own flows."""
        return self.id.startswith("system_")

    def name_in(self, language: str | None) -> str:
        """Return the name for people."""
        return self.name.raw(language)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowConfig:
    """Everything a configuration says. Faulty flows are left out, so that a running program goes on with the rest.

    `rails` is what the rails' reader built (None without rails), `settings` its settings.
    """

    slots: Mapping[str, Slot]
    flows: Mapping[str, Flow]
    rails: Any = None
    embeddings_only: bool = True
    similarity_threshold: float | None = None
    similarity_scale: str = "cosine"
    margin: float = 0.03

    def user_flows(self) -> dict[str, Flow]:
        """Return the flows a user can start."""
        return {k: f for k, f in self.flows.items() if not f.is_system}

    def flow(self, flow_id: str) -> Flow | None:
        """Return a flow, or None."""
        return self.flows.get(flow_id)

    def slots_of(self, flow_id: str) -> frozenset[str]:
        """Return the slots of a flow and of all flows it calls."""
        found: set[str] = set()
        pending, seen = [flow_id], set()
        while pending:
            flow = self.flows.get(pending.pop())
            if flow is None or flow.id in seen:
                continue
            seen.add(flow.id)
            found.update(flow.slots)
            pending.extend(s.flow for s in flow.steps.values() if isinstance(s, CallStep))
        return frozenset(found)
