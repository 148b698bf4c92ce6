"""The dialogue state of tasks: plain data that is copied for every turn and stored as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

VERSION = 1
MAX_PAUSED = 5
PAUSED_HOURS = 24
FOCUS_TURNS = 10
FINISHED_TURNS = 3
FINISHED_S = 120.0
"""How long a finished task can be corrected: for so many turns of the user, and not longer than this."""

PROVENANCES = ("said", "inferred", "focused", "action", "default")


@dataclass(slots=True)
class SlotValue:
    """A slot's value and where it came from. `previous` is the last valid value before it (None: unset)."""

    value: Any
    by: str = "said"
    turn: int = 0
    generation: str = ""
    previous: Any = None
    is_checked: bool = False


@dataclass(slots=True)
class Task:
    """A flow in progress.

    `stack` holds (flow, step) of callers, outermost first; `flow` and `step` are where the pointer is. `root` is the
    flow that was started. `open`: the question at the step was asked. `answered`: it was answered since it was asked.
    `trail` lists the steps visited, each once: [flow, step, stack]. `runs` counts successful runs of an action
    step, `done` names the side effects that took place, `done_args` has what they were given. `rerun` says for a
    step whether it may run (again): ask, yes, again (in place of what it did), no. `done_slots` and `done_values` are
    the slots a side effect was given and what its action returned, for taking it back. `names` is the flow's name by
    language when it began, for the case that the flow is gone when it is needed. `ended_at` and `ended_turn` say when
    it was finished; `is_undone`: in a turn that was taken back, because the user went on talking. `days`: for a slot
    that waits for a moment, the day (ISO) that was said without a time.
    """

    uid: str
    root: str
    flow: str
    step: str
    stack: list[list[str]] = field(default_factory=list)
    slots: dict[str, SlotValue] = field(default_factory=dict)
    open: bool = False
    answered: bool = False
    attempts: dict[str, int] = field(default_factory=dict)
    questions: dict[str, int] = field(default_factory=dict)
    silences: int = 0
    trail: list[list[Any]] = field(default_factory=list)
    runs: dict[str, int] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    rerun: dict[str, str] = field(default_factory=dict)
    done_args: dict[str, Any] = field(default_factory=dict)
    done_slots: dict[str, Any] = field(default_factory=dict)
    done_values: dict[str, Any] = field(default_factory=dict)
    completed_once: bool = False
    paused_at: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    ended_at: str | None = None
    ended_turn: int = 0
    is_undone: bool = False
    days: dict[str, str] = field(default_factory=dict)

    @property
    def asks_to_redo(self) -> bool:
        """Whether all its work is done and only its question is open whether to do a step again after a correction."""
        return self.rerun.get(self.place) == "ask"

    @property
    def place(self) -> str:
        """The step with its flow, as a key."""
        return f"{self.flow}/{self.step}"


@dataclass(slots=True)
class SystemRun:
    """A system flow in progress. `ask`: for `system_collect_information`, what kind of asking it is."""

    flow: str
    step: str
    context: dict[str, Any] = field(default_factory=dict)
    ask: str | None = None
    waiting: bool = False


@dataclass(slots=True)
class State:
    """Everything tasks remember of a conversation.

    `pending` is a question of the engine itself (resume offer, clarify, confirmation): `{"kind": …, …}`. `carried` are
    slot values said for a flow whose start was undone (`joined`). `untold` are texts about side effects nobody heard.
    `finished` is the task that ended last and can still be corrected.
    """

    version: int = VERSION
    turn: int = 0
    origin: str = ""
    sequence: int = 0
    active: Task | None = None
    paused: list[Task] = field(default_factory=list)
    system: SystemRun | None = None
    queue: list[SystemRun] = field(default_factory=list)
    pending: dict[str, Any] | None = None
    slots: dict[str, SlotValue] = field(default_factory=dict)
    focus: dict[str, Any] | None = None
    focus_turn: int = 0
    confusions: int = 0
    language: str | None = None
    carried: dict[str, dict[str, Any]] = field(default_factory=dict)
    untold: list[str] = field(default_factory=list)
    finished: Task | None = None

    def copy(self) -> State:
        """Return an independent copy."""
        copied: State = _copied(self)
        return copied

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def values(self) -> dict[str, Any]:
        """Return the slot values conditions and texts see: the active task's, then those that persist."""
        found = {name: slot.value for name, slot in self.slots.items()}
        if self.active is not None:
            found.update({name: slot.value for name, slot in self.active.slots.items()})
        return found


def _copied(value: Any) -> Any:
    """Copy plain data and the classes above: much cheaper than `copy.deepcopy`, which looks for cycles."""
    kind = type(value)
    if kind is dict:
        return {k: _copied(v) for k, v in value.items()}
    if kind is list:
        return [_copied(v) for v in value]
    names = _FIELDS.get(kind)
    return value if names is None else kind(*[_copied(getattr(value, name)) for name in names])


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {k: _plain(v) for k, v in value.items()}
    if kind is list:
        return [_plain(v) for v in value]
    names = _FIELDS.get(kind)
    return value if names is None else {name: _plain(getattr(value, name)) for name in names}


_FIELDS: dict[type, tuple[str, ...]] = {
    cls: tuple(f.name for f in fields(cls)) for cls in (SlotValue, Task, SystemRun, State)
}


def _build(cls: Any, data: Any, **nested: Any) -> Any:
    if not isinstance(data, Mapping):
        return None
    values = {f.name: data[f.name] for f in fields(cls) if f.name in data and _is_sound(f, data[f.name])}
    values.update(nested)
    return cls(**values)


def _is_sound(item: Field[Any], value: Any) -> bool:
    """Whether a stored value is of the kind its field has; one that is not gives way to the default."""
    if item.default_factory is not MISSING:
        return isinstance(value, type(item.default_factory()))
    if item.default is MISSING or item.default is None:
        return True
    return isinstance(value, type(item.default))


def _slots(data: Any) -> dict[str, SlotValue]:
    if not isinstance(data, Mapping):
        return {}
    built = {str(k): _build(SlotValue, v) for k, v in data.items() if isinstance(v, Mapping) and "value" in v}
    return {k: v for k, v in built.items() if v is not None}


def _task(data: Any) -> Task | None:
    if not isinstance(data, Mapping) or not all(isinstance(data.get(k), str) for k in ("uid", "root", "flow", "step")):
        return None
    task: Task = _build(Task, data, slots=_slots(data.get("slots")))
    return task


def _system(data: Any) -> SystemRun | None:
    if not isinstance(data, Mapping) or not all(isinstance(data.get(k), str) for k in ("flow", "step")):
        return None
    run: SystemRun = _build(SystemRun, data)
    return run


def state_from_json(data: Mapping[str, Any]) -> State:
    """Read a stored state; of another version or a broken one only what is sound is kept."""
    if data.get("version") != VERSION:
        return State()
    try:
        state: State = _build(
            State, data, active=_task(data.get("active")), finished=_task(data.get("finished")),
            slots=_slots(data.get("slots")),
            paused=[t for t in map(_task, data.get("paused") or ()) if t is not None],
            system=_system(data.get("system")),
            queue=[r for r in map(_system, data.get("queue") or ()) if r is not None],
        )  # fmt: skip
    except (TypeError, AttributeError):
        return State()
    return state.copy()
