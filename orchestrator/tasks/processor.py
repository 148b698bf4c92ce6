"""Applies commands to a state. Pure: no speech, no storage, no model; the caller hands in a copy and swaps it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from orchestrator.flows.model import CollectStep, Flow, FlowConfig, Step
from orchestrator.flows.slot_values import shown
from orchestrator.tasks.commands import Command, Dropped
from orchestrator.tasks.state import (
    FINISHED_S,
    FINISHED_TURNS,
    MAX_PAUSED,
    PAUSED_HOURS,
    SlotValue,
    State,
    SystemRun,
    Task,
)

MAX_TRAIL = 200
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?: [ap]m)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotChange:
    """A slot value that was offered."""

    slot: str
    old: Any
    new: Any
    by: str
    accepted: bool


@dataclass(slots=True)
class Applied:
    """What applying commands came to.

    `nothing_to_cancel`: a cancel met nothing. `cannot_handle`: a resume met nothing. `offer_due`: a task went away.
    `untouched_start`: a start named the task that is active already.
    """

    accepted: list[Command] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    changes: list[SlotChange] = field(default_factory=list)
    nothing_to_cancel: bool = False
    cannot_handle: bool = False
    offer_due: bool = False
    untouched_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the processor has to know of the turn. `names` gives the names of guards.

    `label` names what a task did at a place (flow/step), in the user's language.
    """

    config: FlowConfig
    now: datetime
    generation: str
    language: str | None
    names: Callable[[], Mapping[str, Any]]
    label: Callable[[Task, str], str]


def system_run(setting: Setting, flow_id: str, context: dict[str, Any], ask: str | None = None) -> SystemRun | None:
    """Return a system flow at its start, or None when the configuration has no sound one."""
    flow = setting.config.flow(flow_id)
    return SystemRun(flow=flow_id, step=flow.start, context=context, ask=ask) if flow is not None else None


def name_of(setting: Setting, flow_id: str) -> str:
    """Return a flow's name for people."""
    flow = setting.config.flow(flow_id)
    return flow.name_in(setting.language) if flow is not None else flow_id.replace("_", " ")


def expire(state: State, now: datetime) -> list[str]:
    """Forget tasks that were paused or finished too long ago; returns the flows of the paused ones."""
    kept: list[Task] = []
    gone: list[Task] = []
    for task in state.paused:
        (gone if _age(task.paused_at, now) > timedelta(hours=PAUSED_HOURS) else kept).append(task)
    state.paused = kept
    state.finished = correctable(state, now)
    return [t.root for t in gone]


def correctable(state: State, now: datetime) -> Task | None:
    """Return the task that ended last as long as it can be corrected."""
    over = state.finished
    if over is None or state.turn - over.ended_turn > FINISHED_TURNS:
        return None
    return over if _age(over.ended_at, now) <= timedelta(seconds=FINISHED_S) else None


def _age(moment: str | None, now: datetime) -> timedelta:
    try:
        then = datetime.fromisoformat(moment) if moment else now
        if (then.tzinfo is None) != (now.tzinfo is None):
            then = then.replace(tzinfo=now.tzinfo)
    except ValueError:
        then = now
    return now - then


def finish(state: State, task: Task, now: datetime) -> None:
    """Keep a task that has ended for corrections; one without a word of the user leaves the one before it."""
    if any(slot.by != "default" and slot.by != "action" for slot in task.slots.values()):
        task.ended_at = now.isoformat()
        task.ended_turn = state.turn
        state.finished = task


def apply(state: State, commands: tuple[Command, ...], setting: Setting) -> Applied:
    """Apply acting commands in their order; talk commands are the brain's."""
    applied = Applied()
    worker = _Processor(state, setting, applied)
    if any(c.name in ("cancel_flow", "resume_flow", "start_flow") for c in commands):
        worker.end_system_flow()
    for command in commands:
        handler = getattr(worker, f"_{command.name}", None)
        if handler is not None:
            handler(command)
    return applied


class _Processor:
    def __init__(self, state: State, setting: Setting, applied: Applied) -> None:
        self.state = state
        self.setting = setting
        self.applied = applied
        self.started: set[str] = set()

    def end_system_flow(self) -> None:
        self.state.system = None
        self.state.queue.clear()
        self.state.pending = None

    def announce(self, flow_id: str, context: dict[str, Any]) -> None:
        run = system_run(self.setting, flow_id, context)
        if run is not None:
            self.state.queue.append(run)

    def drop(self, command: Command, reason: str) -> None:
        self.applied.dropped.append(Dropped(command=command.to_json(), reason=reason))

    # --- tasks ------------------------------------------------------------------------------------------

    def _cancel_flow(self, command: Command) -> None:
        state = self.state
        self.applied.accepted.append(command)
        if state.active is not None and command.flow in (None, state.active.root):
            task = state.active
            state.active = None
        else:
            found = next((t for t in state.paused if t.root == command.flow), None)
            if found is None:
                self.applied.nothing_to_cancel = True
                return
            task = found
            state.paused.remove(found)
        self.applied.offer_due = True
        name = name_of(self.setting, task.root)
        self.announce(
            "system_task_canceled", {"canceled_flow_id": task.root, "canceled_flow_name": name, "reason": "user"}
        )

    def _resume_flow(self, command: Command) -> None:
        task = next((t for t in self.state.paused if t.root == command.flow), None)
        if task is None:
            if self.state.active is not None and self.state.active.root == command.flow:
                self.drop(command, f"{command.flow} is running")
            else:
                self.drop(command, f"{command.flow} is not paused")
            self.applied.cannot_handle = True
            return
        self.applied.accepted.append(command)
        self._resume(task)

    def _resume(self, task: Task) -> None:
        self.state.paused.remove(task)
        self.pause_active()
        task.paused_at = None
        task.silences = 0
        self.state.active = task
        self.announce(
            "system_task_resumed", {"resumed_flow_id": task.root, "resumed_flow_name": name_of(self.setting, task.root)}
        )

    def pause_active(self) -> Task | None:
        state = self.state
        task = state.active
        if task is None:
            return None
        task.paused_at = self.setting.now.isoformat()
        state.active = None
        state.paused.insert(0, task)
        del state.paused[MAX_PAUSED:]
        return task

    def _start_flow(self, command: Command) -> None:
        state, flow = self.state, self.setting.config.flow(command.flow or "")
        if flow is None or flow.is_system:
            self.drop(command, f"unknown flow {command.flow!r}")
            return
        active = state.active
        if active is not None and active.root == flow.id and active.asks_to_redo:
            # what it did stands, and this is another request
            state.active = active = None
        if active is not None and active.root == flow.id:
            self.applied.accepted.append(command)
            self.applied.untouched_start = True
            return
        paused = next((t for t in state.paused if t.root == flow.id), None)
        if paused is not None and paused.asks_to_redo:
            state.paused.remove(paused)
        elif paused is not None:
            self.applied.accepted.append(command)
            self._resume(paused)
            return
        if flow.guard is not None and not flow.guard.holds(self.setting.names()):
            self.drop(command, f"the guard of {flow.id} is false")
            return
        self.applied.accepted.append(command)
        running = self.setting.config.flow(state.active.root) if state.active is not None else None
        if running is not None and running.confirm_interrupt and running.id not in self.started:
            self._ask_before_interrupt(running, flow)
            return
        self.start(flow)

    def _ask_before_interrupt(self, running: Flow, flow: Flow) -> None:
        self.state.pending = {"kind": "confirm_interrupt", "flow": flow.id, "slots": {}}
        self.announce(
            "system_confirm_interrupt",
            {
                "running_flow_id": running.id,
                "running_flow_name": name_of(self.setting, running.id),
                "started_flow_id": flow.id,
                "started_flow_name": name_of(self.setting, flow.id),
            },
        )

    def start(self, flow: Flow) -> None:
        state = self.state
        paused = self.pause_active()
        if paused is not None and paused.root in self.started:
            # the announcement of a start in the same turn gives way to that of the interruption, which names both
            state.queue = [r for r in state.queue if r.context.get("started_flow_id") != paused.root]
        state.active = new_task(state, flow, self.setting)
        self.started.add(flow.id)
        context: dict[str, Any] = {"started_flow_id": flow.id, "started_flow_name": name_of(self.setting, flow.id)}
        if paused is None or paused.asks_to_redo:
            self.announce("system_task_started", context)
        else:
            self.announce(
                "system_task_interrupted",
                {
                    "interrupted_flow_id": paused.root,
                    "interrupted_flow_name": name_of(self.setting, paused.root),
                    **context,
                },
            )

    # --- slots ------------------------------------------------------------------------------------------

    def _set_slots(self, command: Command) -> None:
        good: dict[str, Any] = {}
        pending = self.state.pending
        if pending is not None and pending.get("kind") == "confirm_interrupt" and pending["flow"] not in self.started:
            target = self.setting.config.slots_of(str(pending["flow"]))
            if command.slots and all(s in target for s in command.slots) and self._said_with_start(pending):
                pending["slots"] = dict(command.slots)
                self.applied.accepted.append(command)
                return
        for slot_id, value in command.slots.items():
            reason = self._why_not(slot_id)
            if reason is None and self._is_day(slot_id, value):
                self._keep_day(slot_id, value)
                good[slot_id] = value
            elif reason is None:
                self.put(slot_id, value, command.provenance)
                good[slot_id] = value
            else:
                old = self.state.values().get(slot_id)
                self.applied.changes.append(
                    SlotChange(slot=slot_id, old=old, new=value, by=command.provenance, accepted=False)
                )
                dropped = {"command": "set_slots", "slots": {slot_id: value}}
                self.applied.dropped.append(Dropped(command=dropped, reason=reason))
        if good:
            self.applied.accepted.append(
                Command(name="set_slots", slots=good, by=command.by, provenance=command.provenance)
            )
            self._revalidate(tuple(good))

    def _is_day(self, slot_id: str, value: Any) -> bool:
        """Whether a day is given to a slot that waits for a moment."""
        return self.setting.config.slots[slot_id].type == "datetime" and is_day(value)

    def _keep_day(self, slot_id: str, day: str) -> None:
        task = self.state.active
        if task is not None:
            task.days[slot_id] = day
            task.silences = 0

    def _revalidate(self, slots: tuple[str, ...]) -> None:
        """Go back to a question that was passed with another value and would not let this one pass."""
        task, config = self.state.active, self.setting.config
        for flow_id, step_id, _ in task.trail if task is not None else ():
            flow = config.flow(flow_id)
            step = flow.steps.get(step_id) if flow is not None else None
            if not isinstance(step, CollectStep) or step.slot not in slots or step.condition is None:
                continue
            if task is None or (flow_id, step_id) == (task.flow, task.step):
                continue
            if not step.condition.holds(self.setting.names()):
                self._go_back(task, (step.slot,))
                return
            home = self.state.slots if step.slot in self.state.slots else task.slots
            home[step.slot].is_checked = True

    def _said_with_start(self, pending: Mapping[str, Any]) -> bool:
        return any(c.name == "start_flow" and c.flow == pending["flow"] for c in self.applied.accepted)

    def _why_not(self, slot_id: str) -> str | None:
        slot = self.setting.config.slots.get(slot_id)
        if slot is None:
            return f"unknown slot {slot_id!r}"
        if slot.persist:
            return None
        active = self.state.active
        if active is None:
            return f"no task is running that has the slot {slot_id}"
        if slot_id not in self.setting.config.slots_of(active.root):
            return f"{slot_id} is no slot of {active.root}"
        return None

    def put(self, slot_id: str, value: Any, by: str) -> None:
        """Give a slot a value; None unsets it."""
        change = put_slot(self.state, self.setting, slot_id, value, by)
        self.applied.changes.append(change)
        task = self.state.active
        step = current_step(self.state, self.setting.config)
        if task is not None and isinstance(step, CollectStep) and step.slot == slot_id and value is not None:
            task.answered = True
        if task is not None and value is not None:
            task.silences = 0

    def _reopen(self, command: Command) -> None:
        """Take up the task that ended last where the correction is about it."""
        state, task = self.state, self.state.finished
        if state.active is None and task is not None and any(s in task.slots for s in command.slots):
            state.active, state.finished = task, None
            task.is_undone = False
            task.open = task.answered = False
            self.end_system_flow()

    def _correct_slots(self, command: Command) -> None:
        self._reopen(command)
        if (self.state.pending or {}).get("kind") == "confirm_action":
            self.end_system_flow()
        task = self.state.active
        good: dict[str, Any] = {}
        for slot_id, value in command.slots.items():
            reason = self._why_not(slot_id)
            if reason is not None:
                dropped = {"command": "correct_slots", "slots": {slot_id: value}}
                self.applied.dropped.append(Dropped(command=dropped, reason=reason))
            else:
                good[slot_id] = value
        if not good:
            return
        old = {slot_id: self.state.values().get(slot_id) for slot_id in good}
        for slot_id, value in good.items():
            self.put(slot_id, value, command.provenance)
        self.applied.accepted.append(
            Command(name="correct_slots", slots=good, by=command.by, provenance=command.provenance)
        )
        done = self._go_back(task, tuple(good)) if task is not None else []
        labels = [self.setting.config.slots[s].label_in(self.setting.language) for s in good]
        first = next(iter(good))
        self.announce(
            "system_correction",
            {
                "slot_name": first,
                "slot_label": labels[0],
                "slot_names": list(good),
                "slot_labels": labels,
                "old": shown(self.setting.config.slots[first], old[first]),
                "new": shown(self.setting.config.slots[first], good[first]),
                "done": done,
            },
        )

    def _go_back(self, task: Task, slots: tuple[str, ...]) -> list[str]:
        """Move to the earliest visited step that depends on one of the slots; returns the side effects already done."""
        config = self.setting.config
        for index, (flow_id, step_id, stack) in enumerate(task.trail):
            flow = config.flow(flow_id)
            step = flow.steps.get(step_id) if flow is not None else None
            if step is None or not depends_on(step, slots):
                continue
            later = {f"{f}/{s}" for f, s, _ in task.trail[index:]}
            done = [self.setting.label(task, place) for place in task.done if place in later]
            for place in task.done:
                if place in later:
                    task.rerun[place] = "ask"
            if (flow_id, step_id) != (task.flow, task.step):
                if task.open:
                    # the question that is open comes again, which is no attempt
                    task.attempts[task.place] = max(0, task.attempts.get(task.place, 0) - 1)
                task.flow, task.step, task.stack = flow_id, step_id, [list(s) for s in stack]
                task.open = False
                task.answered = True
                del task.trail[index:]
            task.attempts.pop(f"{flow_id}/{step_id}", None)
            return done
        return [self.setting.label(task, place) for place in task.done]


def is_day(value: Any) -> bool:
    """Whether a value is a day, perhaps a half of it, as `days` of a task holds it."""
    return isinstance(value, str) and _DAY.fullmatch(value) is not None


def depends_on(step: Step, slots: tuple[str, ...]) -> bool:
    """Whether a step collects or reads one of the slots."""
    return any(read.namespace == "slots" and read.field in slots for read in step.reads())


def current_step(state: State, config: FlowConfig) -> Step | None:
    """Return the step at the pointer of the active task."""
    task = state.active
    flow = config.flow(task.flow) if task is not None else None
    return flow.steps.get(task.step) if flow is not None and task is not None else None


def new_task(state: State, flow: Flow, setting: Setting) -> Task:
    """Make a task at a flow's start; slot values given beforehand for it move in."""
    state.sequence += 1
    names = {language: flow.name_in(language) for language in ("en", "zh")}
    task = Task(uid=f"{state.origin}:{state.sequence}", root=flow.id, flow=flow.id, step=flow.start, names=names)
    for slot_id in setting.config.slots_of(flow.id):
        slot = setting.config.slots[slot_id]
        if not slot.persist and slot_id in state.slots:
            task.slots[slot_id] = state.slots.pop(slot_id)
    before = state.finished
    if before is not None and before.is_undone and before.root == flow.id and before.ended_turn == state.turn:
        # the user went on talking, and the turn is done over: what it did before is known to it
        for known, of_before in (
            (task.done, before.done),
            (task.done_args, before.done_args),
            (task.done_slots, before.done_slots),
            (task.done_values, before.done_values),
        ):
            known.update(of_before)
        state.finished = None
    carried = state.carried.pop(flow.id, {})
    for slot_id, value in carried.items():
        task.slots.setdefault(
            slot_id, SlotValue(value=value, by="said", turn=state.turn, generation=setting.generation)
        )
    return task


def put_slot(state: State, setting: Setting, slot_id: str, value: Any, by: str) -> SlotChange:
    """Write a slot where it belongs (the task, or beyond it for `persist`); None unsets it."""
    slot = setting.config.slots[slot_id]
    home = state.slots if slot.persist or state.active is None else state.active.slots
    before = home.get(slot_id)
    old = before.value if before is not None else None
    if value is None:
        home.pop(slot_id, None)
    else:
        previous = None
        if before is not None:
            previous = before.value if before.is_checked else before.previous
        home[slot_id] = SlotValue(value=value, by=by, turn=state.turn, generation=setting.generation, previous=previous)
    return SlotChange(slot=slot_id, old=old, new=value, by=by, accepted=True)
