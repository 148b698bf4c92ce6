"""Payloads of tools, flows and rails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from orchestrator.contracts.payload import Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Payload):
    """A tool or action with an effect begins."""

    TYPE: ClassVar[str] = "tool:call"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("args",)
    name: str
    args: Mapping[str, Any]
    effect: str
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Payload):
    """A tool ended. `disposition`: used, quarantined, dropped; `value` is what it returned."""

    TYPE: ClassVar[str] = "tool:result"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("value",)
    ok: bool
    disposition: str
    duration_s: float
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowCommanded(Payload):
    """A command was handed to the flow engine. `by`: rule, embedding, llm."""

    TYPE: ClassVar[str] = "flow:command"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("command",)
    command: Mapping[str, Any]
    accepted: bool
    reason: str | None = None
    by: str = "rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStateChanged(Payload):
    """Where the tasks are after a turn."""

    TYPE: ClassVar[str] = "flow:state"
    active_task: str | None
    step: str | None
    system_flow: str | None
    paused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSlotChanged(Payload):
    """A slot value was offered. `provenance`: said, inferred, focused, action, default."""

    TYPE: ClassVar[str] = "flow:slot"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("old", "new")
    slot: str
    old: Any
    new: Any
    provenance: str
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowActionRan(Payload):
    """An action ran. `outcome`: ok, failed, timeout, skipped."""

    TYPE: ClassVar[str] = "flow:action"
    name: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RailIntentFound(Payload):
    """The meaning of a user sentence. `by`: exact, embedding, llm, rule."""

    TYPE: ClassVar[str] = "rail:intent"
    intent: str
    score: float | None
    margin: float | None
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RailStateChanged(Payload):
    """A rail moved."""

    TYPE: ClassVar[str] = "rail:state"
    rail: str
    status: str
    head: int
    bot_intent: str | None = None
