"""What a tool is: its description for the model, what it may use, and what it gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.contracts.dialogue import Reminders, ToolOffer
from orchestrator.contracts.events import Payload
from orchestrator.contracts.ids import GenerationId


class ToolRefused(Exception):  # noqa: N818 - the model made a mistake, not the program
    """The call makes no sense; the text tells the model why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScope:
    """What a tool may use in one answer. `now` is the wall time; `post` puts an event on the bus, False if refused."""

    generation_id: GenerationId
    now: Callable[[], datetime]
    reminders: Reminders
    post: Callable[[Payload], bool]
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What came of a call. `value` is for the model, JSON-able.

    `spoken` is what to say if the model then says nothing; with `ends_answer` it is said at once and the model is not
    asked again.
    """

    value: Any
    spoken: str = ""
    ends_answer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `effect` write runs at most once for the same arguments in one answer; read runs freely.

    `run` raises `ToolRefused` for what makes no sense; whatever else it raises is told to the model as a failure.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[ToolScope, Mapping[str, Any]], Awaitable[ToolAnswer]]
    effect: str = "read"
    timeout_s: float = 10.0

    @property
    def offer(self) -> ToolOffer:
        """How the tool is described to the model."""
        return ToolOffer(name=self.name, description=self.description, parameters=self.parameters)


def arguments_schema(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in properties.items()},
        "required": list(required),
        "additionalProperties": False,
    }
