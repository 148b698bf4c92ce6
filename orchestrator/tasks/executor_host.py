"""What the executor needs of the turn it runs in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from orchestrator.contracts.events import Payload
from orchestrator.flows.model import ActionStep
from orchestrator.tasks.speech import RunResult, Speech


class ExecutorHost(Protocol):
    """What the executor needs of the turn."""

    @property
    def language(self) -> str | None:
        """The language to talk in."""
        ...

    @property
    def has_spoken(self) -> bool:
        """Whether anything was said in this turn."""
        ...

    def names(self, context: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return the names of conditions and texts."""
        ...

    async def speak_response(self, speech: Speech, names: Mapping[str, Any]) -> bool:
        """Say it; False when it could not be said (a model is missing and there is no text)."""
        ...

    async def say_sentence(self, key: str, **values: Any) -> None:
        """Say one of the engine's own sentences."""
        ...

    def own_sentence(self, key: str) -> str:
        """Return one of the engine's own sentences in the user's language."""
        ...

    async def run_task_action(self, step: ActionStep, args: Mapping[str, Any], key: str) -> RunResult:
        """Run an action."""
        ...

    def can_undo(self, action: str) -> bool:
        """Whether what an action did can be taken back."""
        ...

    async def undo_task_action(self, step: ActionStep, args: Mapping[str, Any], value: Any, key: str) -> bool:
        """Take back what a step's action did with `args`, when it returned `value`; False when that failed."""
        ...

    def confirmation_for(self, action: str, args: Mapping[str, Any]) -> str | None:
        """Return the question to ask before an action, None when it needs none."""
        ...

    def emit(self, payload: Payload) -> None:
        """Put a fact into the events file."""
        ...

    def trace(self, text: str) -> None:
        """Note something for the author."""
        ...

    async def commit_effects(self) -> None:
        """Store what must not wait for the end of the answer."""
        ...

    def fail(self, part: str, message: str) -> None:
        """Mark the turn as failed with a spoken error."""
        ...

    def visited(self, flow: str, step: str, target: str | None) -> None:
        """Record a step and the way out of it, for coverage."""
        ...
