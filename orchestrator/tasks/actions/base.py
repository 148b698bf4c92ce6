"""The `Action` base and what it is given and gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from orchestrator.contracts.dialogue import TurnContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionContext:
    """What an action may look at and use. `slots`, `vars` and `world` are copies."""

    turn: TurnContext
    slots: Mapping[str, Any]
    vars: Mapping[str, Any]
    world: Mapping[str, Any]
    now: datetime
    language: str | None
    key: str
    timeout_s: float
    flow: str | None = None
    step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """What an action came to. `value` goes to `save_to` of a rail; all of it must be plain JSON data."""

    messages: Sequence[str] = ()
    slot_updates: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    var_updates: Mapping[str, Any] = field(default_factory=dict)


class Action(ABC):
    """Something a flow can do. Custom ones are constructed without arguments.

    `effect`: `write` runs at most once per idempotency key, also over a crash; `read` and `none` run freely.
    `needs_confirmation`: the user is asked first. `can_undo`: `undo` takes back what a run did, so that a corrected
    run replaces the one before it.
    """

    name: ClassVar[str] = ""
    effect: ClassVar[str] = "write"
    needs_confirmation: ClassVar[bool] = False
    arguments: ClassVar[tuple[str, ...]] = ()
    """Names that `args` may hold, for editors to offer; nothing is checked by them."""
    can_undo: ClassVar[bool] = False

    @abstractmethod
    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Do it. Whatever this raises makes the step fail."""

    async def undo(self, context: ActionContext, args: Mapping[str, Any], value: Any) -> None:
        """Take back a run with `args` that gave `value`; what is gone already is no failure. Raises where it fails."""
        raise NotImplementedError

    def label(self, args: Mapping[str, Any], language: str | None) -> str:
        """Return what was done, for people: used when a correction comes after it."""
        words = self.name.removeprefix("action_").replace("_", " ")
        return words

    def question(self, args: Mapping[str, Any], language: str | None) -> str:
        """Return what to ask before running it."""
        label = self.label(args, language)
        return f"要{label}吗？" if language == "zh" else f"Shall I {label}?"
