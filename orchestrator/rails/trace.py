"""Trace mode of the test files: the state machine alone, `after` an event comes `next`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orchestrator.rails.env import BoundEvaluator, Expressions
from orchestrator.rails.machine import matches, step
from orchestrator.rails.model import RailsConfig
from orchestrator.rails.program import Bot, Do, Extract, Say, Stop
from orchestrator.rails.state import (
    FALLBACK_PRIORITY,
    EventKind,
    Failure,
    MachineState,
    NextStep,
    RailEvent,
)

AFTER_KEYS = ("user", "bot", "say", "action_done", "action_failed", "extract", "stop", "event", "vars")
NEXT_KEYS = ("bot", "say", "do", "action", "extract", "stop", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMismatch:
    """A step of a trace that came out otherwise. `number` counts from 0."""

    number: int
    expected: Any
    got: Any


class TraceError(ValueError):
    """A trace says something that is no event."""


class Tracer:
    """Feeds events to the machine and says what comes next, as the test files write it."""

    def __init__(
        self,
        config: RailsConfig,
        *,
        variables: Mapping[str, Any] | None = None,
        slots: Mapping[str, Any] | None = None,
        now: datetime | None = None,
    ) -> None:
        self._rails = config.rail_set()
        names = {"slots": dict(slots or {}), "context": {}, "world": {}, "user": {}, "now": now}
        self._evaluator = BoundEvaluator(Expressions(), lambda: names)
        self._last: NextStep | None = None
        self.state = MachineState(vars=dict(variables or {}))

    def after(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """Feed one event; returns the next step, None for listening or for what the model would decide.

        Raises `TraceError`.
        """
        if set(event) == {"vars"}:
            self.state = replace(self.state, vars={**self.state.vars, **dict(event["vars"])})
            return described(self._last)
        found = self._with_owner(to_event(event))
        if found.kind is EventKind.USER:
            spoken = {"user_message": found.name, "last_user_message": found.name}
            self.state = replace(self.state, vars={**self.state.vars, **spoken})
        transition = step(self._rails, self.state, found, self._evaluator)
        self.state = transition.state
        self._last = transition.next
        if found.kind is EventKind.USER and self._last is not None and self._last.priority < FALLBACK_PRIORITY:
            return None
        return described(self._last)

    def _with_owner(self, event: RailEvent) -> RailEvent:
        """Say whose step it was, when it is the one that was to come."""
        last = self._last
        if last is None or event.kind in (EventKind.USER, EventKind.EXTERNAL):
            return event
        if event.kind is EventKind.FAILED:
            is_own = not isinstance(last.step, Failure) and (not event.name or _name(last) == event.name)
        else:
            is_own = not isinstance(last.step, Failure) and matches(last.step, event) is not None
        return replace(event, uid=last.uid) if is_own else event


def to_event(after: Mapping[str, Any]) -> RailEvent:
    """Return the event an `after` names. Raises `TraceError`."""
    keys = [key for key in after if key in AFTER_KEYS]
    if len(keys) != 1:
        raise TraceError(f"after needs exactly one of {', '.join(AFTER_KEYS)}")
    kind, value = keys[0], after[keys[0]]
    result = after.get("returns", after.get("result", after.get("value")))
    if kind == "event":
        fields = dict(value) if isinstance(value, Mapping) else {"type": value}
        name = str(fields.pop("type", ""))
        return RailEvent(kind=EventKind.EXTERNAL, name=name, payload=fields)
    if kind in ("action_done", "action_failed", "extract"):
        if isinstance(value, Mapping):
            result = value.get("returns", value.get("result", value.get("value", result)))
            value = value.get("name", value.get("action", value.get("var", "")))
        kinds = {"action_done": EventKind.DONE, "action_failed": EventKind.FAILED, "extract": EventKind.EXTRACTED}
        return RailEvent(kind=kinds[kind], name=str(value), value=result)
    if kind == "stop":
        return RailEvent(kind=EventKind.STOPPED)
    return RailEvent(kind=EventKind(kind), name=str(value))


def _name(found: NextStep) -> str:
    return found.step.action if isinstance(found.step, Do) else ""


def described(found: NextStep | None) -> dict[str, Any] | None:
    """Return a next step as test files write it."""
    if found is None:
        return None
    match found.step:
        case Bot():
            return {"bot": found.step.intent}
        case Say():
            return {"say": found.step.text}
        case Do():
            return {"do": {"action": found.step.action, "args": dict(found.step.args)}}
        case Extract():
            return {"extract": found.step.var}
        case Stop():
            return {"stop": True}
        case Failure():
            return {"error": found.step.reason}


def same_step(expected: Any, got: Mapping[str, Any] | None) -> bool:
    """Whether what came is what was expected; `do: name` and `action: name` leave the arguments open."""
    if expected is None or got is None:
        return expected is None and got is None
    if isinstance(expected, str):
        return expected in (next(iter(got)), _plain_name(got))
    if not isinstance(expected, Mapping) or len(expected) != 1:
        return False
    ((kind, value),) = expected.items()
    if kind in ("do", "action") and "do" in got:
        done = got["do"]
        if isinstance(value, Mapping):
            name = value.get("action", value.get("name"))
            return bool(name == done["action"] and ("args" not in value or value["args"] == done["args"]))
        return bool(value == done["action"])
    if kind == "extract" and isinstance(value, Mapping):
        value = value.get("var")
    if kind == "error" and "error" in got:
        return value is True or str(value) in str(got["error"])
    return kind in got and str(got[kind]) == str(value)


def _plain_name(got: Mapping[str, Any]) -> str:
    value = next(iter(got.values()))
    return str(value["action"]) if isinstance(value, Mapping) else str(value)


def run_trace(
    config: RailsConfig, steps: Sequence[Mapping[str, Any]], **more: Any
) -> tuple[list[TraceMismatch], MachineState]:
    """Run the `trace` of a test. `more` goes to `Tracer`. Raises `TraceError`."""
    tracer = Tracer(config, **more)
    found: list[TraceMismatch] = []
    for number, entry in enumerate(steps):
        got = tracer.after(entry["after"])
        if "next" in entry and not same_step(entry["next"], got):
            found.append(TraceMismatch(number=number, expected=entry["next"], got=got))
    return found, tracer.state
