"""Which actions there are, and how one is run."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from orchestrator.contracts.dialogue import EffectUncertain
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.wellformed import mend
from orchestrator.dialogue.rails_port import ActionOutcome
from orchestrator.flows.fuel import Refused, weigh
from orchestrator.tasks.actions.base import Action, ActionContext, ActionResult

log = logging.getLogger(__name__)

SPECIAL = ("action_listen", "action_response", "start_flow")
"""Actions the engine itself performs."""


class ActionRegistry:
    """Actions by name."""

    def __init__(self, actions: Iterable[Action] = ()) -> None:
        """Start with `actions`."""
        self._actions: dict[str, Action] = {}
        for action in actions:
            self._actions[action.name] = action

    def get(self, name: str) -> Action | None:
        """Return an action, or None."""
        return self._actions.get(name)

    def __contains__(self, name: object) -> bool:
        """Whether an action of this name can be run."""
        return name in self._actions or name in SPECIAL

    def __iter__(self) -> Iterator[str]:
        """Iterate over all names."""
        return iter([*SPECIAL, *self._actions])

    def with_actions(self, actions: Iterable[Action]) -> ActionRegistry:
        """Return a registry in which `actions` come before those of the same name."""
        return ActionRegistry([*self._actions.values(), *actions])


def _pack(result: ActionResult) -> dict[str, Any]:
    packed = {
        "messages": [str(m) for m in result.messages], "slots": dict(result.slot_updates), "value": result.value,
        "vars": dict(result.var_updates),
    }  # fmt: skip
    weigh(packed, limit=200_000)
    plain: dict[str, Any] = mend(json.loads(json.dumps(packed, ensure_ascii=False, default=str)))
    return plain


async def run_action(
    action: Action, context: ActionContext, args: Mapping[str, Any]
) -> tuple[ActionOutcome, ActionResult]:
    """Run an action within its time; a failure is an outcome, never an exception (except a cancelled generation)."""

    async def effect() -> dict[str, Any]:
        return _pack(await action.run(context, args))

    return await _within_time(action, context, args, effect)


async def undo_action(action: Action, context: ActionContext, args: Mapping[str, Any], value: Any) -> ActionOutcome:
    """Take back what an action did; like running it, at most once per key and never an exception."""

    async def effect() -> dict[str, Any]:
        await action.undo(context, args, value)
        return {}

    outcome, _ = await _within_time(action, context, args, effect)
    return outcome


async def _within_time(
    action: Action, context: ActionContext, args: Mapping[str, Any], effect: Callable[[], Awaitable[dict[str, Any]]]
) -> tuple[ActionOutcome, ActionResult]:
    empty = ActionResult()
    try:
        await context.turn.confirmed()
        if action.effect == "write":
            packed = await context.turn.effects.run(
                key=context.key, name=action.name, args=args, effect=effect, timeout_s=context.timeout_s
            )
        else:
            async with asyncio.timeout(context.timeout_s):
                packed = await effect()
    except (asyncio.CancelledError, GenerationCancelled):
        raise
    except TimeoutError:
        return ActionOutcome(ok=False, error="timeout"), empty
    except EffectUncertain:
        return ActionOutcome(ok=False, error="uncertain"), empty
    except (Refused, Exception) as error:
        log.warning("the action %s failed: %s", action.name, type(error).__name__)
        return ActionOutcome(ok=False, error=str(error) or type(error).__name__), empty
    packed = packed if isinstance(packed, Mapping) else {}
    result = ActionResult(
        messages=tuple(packed.get("messages") or ()), slot_updates=packed.get("slots") or {}, value=packed.get("value"),
        var_updates=packed.get("vars") or {},
    )  # fmt: skip
    return ActionOutcome(ok=True, value=result.value), result
