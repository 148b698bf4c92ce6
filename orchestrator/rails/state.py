"""What the rail machine works on: rails, their running instances, events and results. All pure data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from orchestrator.rails.program import ANY_INTENT, Actionable, Bot, Do, Op, Program, WaitEvent, WaitUser

FALLBACK_PRIORITY = 0.9
UNMOVED_FACTOR = 0.9
BY_FALLBACK = 0
"""`interrupted_by` of a rail that no rail interrupted: the model or the persona took the turn."""


class RailStatus(StrEnum):
    """Where a rail is. Aborted ones are kept only while the extension that aborted them lives."""

    ACTIVE = "active"
    INTERRUPTED = "interrupted"
    ABORTED = "aborted"
    COMPLETED = "completed"


class EventKind(StrEnum):
    """What can move a rail."""

    USER = "user"
    BOT = "bot"
    SAY = "say"
    DONE = "action_done"
    FAILED = "failed"
    EXTRACTED = "extracted"
    STOPPED = "stopped"
    EXTERNAL = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class RailEvent:
    """Something that happened. `uid` is the instance whose step it was, None when nobody's in particular.

    `value` is an action's result or an extracted value, `payload` what an external event carries. `is_safety`: only
    rails marked `always` may take it, for all others it is an interruption.
    """

    kind: EventKind
    name: str = ""
    uid: int | None = None
    value: Any = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    is_safety: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    """A compiled rail. `index` is its place in file order."""

    id: str
    program: Program
    kind: str = "rail"
    priority: float = 1.0
    interruptible: bool = True
    allow_multiple: bool = False
    always: bool = False
    index: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One run of a rail. `frames` are (rail, head) from the rail itself to the innermost subrail."""

    uid: int
    rail: str
    frames: tuple[tuple[str, int], ...]
    status: RailStatus = RailStatus.ACTIVE
    interrupted_by: int | None = None
    aborted_by: int | None = None
    error: str | None = None
    lines: tuple[str, ...] = ()

    @property
    def head(self) -> int:
        """The step it stands at, in its innermost subrail."""
        return self.frames[-1][1] if self.frames else -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """All that is remembered between two events."""

    instances: tuple[Instance, ...] = ()
    vars: Mapping[str, Any] = field(default_factory=dict)
    next_uid: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A step that can't be done; spoken as an error."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """What to do now, and for which instance. `priority` is after all modifiers."""

    uid: int
    rail: str
    step: Actionable | Failure
    priority: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """Result of one event. `changed` are instances that moved or ended, `moved` whether any rail took the event.

    `work` counts ops looked at: the cost of the step, independent of the machine it runs on.
    """

    state: MachineState
    next: NextStep | None
    changed: tuple[Instance, ...] = ()
    moved: bool = False
    work: int = 0


class EvalFailed(Exception):  # noqa: N818 - the step failed, not the program
    """An expression or template can't be evaluated: an unset variable in a text or in arithmetic."""


class Evaluator(Protocol):
    """Conditions and expressions over the rail's variables. Must not raise anything but `EvalFailed`."""

    def condition(self, source: Any, variables: Mapping[str, Any]) -> bool:
        """Whether it holds; unset equals none, nothing raises."""
        ...

    def value(self, source: Any, variables: Mapping[str, Any]) -> Any:
        """The value of a `set` expression."""
        ...


class RailSet:
    """The rails of one configuration, with an index of who starts on what.

    Without `can_start` no rail begins by itself: for the rails run on what is said.
    """

    def __init__(self, rails: Sequence[Rail], *, can_start: bool = True) -> None:
        self.by_id: dict[str, Rail] = {rail.id: rail for rail in rails}
        self._on_user: dict[str, list[Rail]] = {}
        self._on_other: dict[tuple[EventKind, str], list[Rail]] = {}
        self._with_logic: list[Rail] = []
        for rail in rails:
            if can_start and rail.kind != "subrail" and rail.program.ops:
                self._register(rail, rail.program.ops[0])

    def _register(self, rail: Rail, first: Op) -> None:
        match first:
            case WaitUser():
                self._on_user.setdefault(first.intent, []).append(rail)
            case WaitEvent():
                self._on_other.setdefault((EventKind.EXTERNAL, first.type), []).append(rail)
            case Bot():
                self._on_other.setdefault((EventKind.BOT, first.intent), []).append(rail)
            case Do():
                self._on_other.setdefault((EventKind.DONE, first.action), []).append(rail)
            case _:
                self._with_logic.append(rail)

    def candidates(self, event: RailEvent) -> list[Rail]:
        """Return rails that may start on `event`, in file order."""
        if event.kind is EventKind.USER:
            found = [*self._on_user.get(event.name, ()), *self._with_logic]
            if event.name != ANY_INTENT:
                found += self._on_user.get(ANY_INTENT, ())
        else:
            found = [*self._on_other.get((event.kind, event.name), ()), *self._with_logic]
        return sorted(found, key=lambda rail: rail.index)

    def program(self, instance: Instance, rail_id: str) -> Program | None:
        """Return the program of one of an instance's frames."""
        if rail_id == instance.rail and instance.lines:
            return compile_lines(instance.lines)
        rail = self.by_id.get(rail_id)
        return rail.program if rail is not None else None

    def rail_of(self, instance: Instance) -> Rail:
        """Return the rail of an instance; rails the model wrote get plain defaults, after all others in order."""
        rail = self.by_id.get(instance.rail)
        if rail is not None:
            return rail
        return Rail(id=instance.rail, program=Program(ops=(), paths=()), index=1_000_000 + instance.uid)


def compile_lines(lines: Sequence[str]) -> Program:
    """Compile a small rail the model wrote: `bot X`, `user X` and `do X` lines."""
    ops: list[Op] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "bot":
            ops.append(Bot(intent=rest))
        else:
            ops.append(WaitUser(intent=rest) if word == "user" else Do(action=rest))
    return Program(ops=tuple(ops), paths=tuple(f"line {i + 1}" for i in range(len(ops))))
