"""Moves flows forward until they listen. A pointer moves only after its step succeeded; every loop is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.contracts.events import FlowActionRan, FlowSlotChanged
from orchestrator.flows.model import ActionStep, CallStep, CollectStep, Flow, Links, Response, SetSlotsStep, Step
from orchestrator.flows.slot_values import coerce
from orchestrator.tasks.acting import Acting
from orchestrator.tasks.asking import Asking
from orchestrator.tasks.executor_host import ExecutorHost
from orchestrator.tasks.processor import (
    MAX_TRAIL,
    Setting,
    SlotChange,
    current_step,
    finish,
    name_of,
    new_task,
    put_slot,
    system_run,
)
from orchestrator.tasks.speech import Speech
from orchestrator.tasks.state import State, SystemRun, Task

MAX_STEPS = 100
MAX_VISITS = 10


class Executor:
    """Runs one turn's share of the flows on a working state."""

    def __init__(
        self, state: State, setting: Setting, host: ExecutorHost, *, ask: str = "repeat", offer_due: bool = False
    ) -> None:
        """`ask` says how the question that is open at the start is asked again: repeat, unrecognized, silence."""
        self.state = state
        self.setting = setting
        self.host = host
        self.offer_due = offer_due
        self.asking = Asking(self)
        self.acting = Acting(self)
        self.ask = ask
        self.ask_place = state.active.place if state.active is not None and ask != "repeat" else None
        self.visits: dict[str, int] = {}
        self.asked: str | None = None
        self.halted = False
        self.steps = 0
        self.in_flight: tuple[str, str] | None = None

    async def run(self) -> None:
        """Advance until something listens or nothing is left to do."""
        while True:
            if self.steps >= MAX_STEPS:
                await self._stop_spinning()
                return
            self.steps += 1
            if self.state.system is None and self.state.queue:
                self.state.system = self.state.queue.pop(0)
            if self.state.system is not None:
                if await self._system_step(self.state.system):
                    return
            elif self.halted:
                return
            elif self.state.active is not None:
                if await self._task_step(self.state.active):
                    return
            elif not self._offer_resume():
                return

    async def _stop_spinning(self) -> None:
        self.state.system = None
        self.state.queue.clear()
        if self.state.active is not None:
            await self.cancel("bounds")
            self.state.queue.clear()
        else:
            await self.host.say_sentence("bounds")

    # --- system flows -----------------------------------------------------------------------------------

    async def _system_step(self, run: SystemRun) -> bool:
        flow = self.setting.config.flow(run.flow)
        step = flow.steps.get(run.step) if flow is not None else None
        if flow is None or step is None or step.type == "end":
            self.state.system = None
            if flow is not None and step is not None:
                self.host.visited(flow.id, step.id, None)
            return False
        if self._too_often(f"{flow.id}/{step.id}/{id(run)}"):
            self.state.system = None
            return False
        names = self.host.names(run.context)
        if isinstance(step, ActionStep) and step.action == "action_listen":
            run.waiting = True
            return True
        if isinstance(step, ActionStep):
            await self._system_action(run, flow, step, names)
            return False
        if isinstance(step, SetSlotsStep):
            self._write_slots(step, names)
        self._move_system(run, flow, step, names)
        return False

    async def _system_action(self, run: SystemRun, flow: Flow, step: ActionStep, names: Mapping[str, Any]) -> None:
        if step.action == "action_response":
            speech = self._speech(step, run, names)
            ok = speech is None or await self.host.speak_response(speech, names)
            self.host.emit(FlowActionRan(name=step.action, outcome="ok" if ok else "failed"))
        else:
            args = self.args_of(step, names)
            result = await self.host.run_task_action(
                step, args, f"{self.state.origin}:{run.flow}:{self.state.turn}:{step.id}"
            )
            ok = result.ok
            self.take_updates(result.slot_updates)
        if not ok:
            self.state.system = None if step.on_error is None else run
            if step.on_error is not None:
                run.step = step.on_error
            return
        self._move_system(run, flow, step, names)

    def _speech(self, step: ActionStep, run: SystemRun, names: Mapping[str, Any]) -> Speech | None:
        place = run.context.get("place") if run.ask else None
        if step.reference is None:
            return Speech(response=step.response or Response(), source="system") if step.response else None
        value = step.reference.evaluate(names).value
        return self.asking.speech_of(value, run.ask, place)

    def _move_system(self, run: SystemRun, flow: Flow, step: Step, names: Mapping[str, Any]) -> None:
        target = self.follow(step.links, names)
        self.host.visited(flow.id, step.id, target)
        if target is None or target not in flow.steps:
            self.state.system = None
        else:
            run.step = target

    # --- tasks ------------------------------------------------------------------------------------------

    async def _task_step(self, task: Task) -> bool:
        step = current_step(self.state, self.setting.config)
        if step is None:
            await self.cancel("gone")
            return False
        if self.asked == task.place and isinstance(step, CollectStep):
            return True
        if self._too_often(task.place):
            await self.cancel("bounds")
            return False
        self._note_trail(task)
        if isinstance(step, CollectStep):
            return await self.asking.collect(task, step)
        if isinstance(step, ActionStep):
            return await self.acting.run(task, step)
        if isinstance(step, SetSlotsStep):
            self._write_slots(step, self.host.names())
            await self.move(task, step)
        elif isinstance(step, CallStep):
            await self._call(task, step)
        elif step.type == "end":
            await self._end(task)
        else:
            await self.move(task, step)
        return False

    def _too_often(self, place: str) -> bool:
        self.visits[place] = self.visits.get(place, 0) + 1
        return self.visits[place] > MAX_VISITS

    def _note_trail(self, task: Task) -> None:
        if len(task.trail) < MAX_TRAIL and not any(f == task.flow and s == task.step for f, s, _ in task.trail):
            task.trail.append([task.flow, task.step, [list(frame) for frame in task.stack]])

    async def move(self, task: Task, step: Step, target: str | None = None) -> None:
        """Move the pointer over the step's links (or to `target`); nowhere to go cancels the task aloud."""
        flow = self.setting.config.flow(task.flow)
        goal = target if target is not None else self.follow(step.links, self.host.names())
        self.host.visited(task.flow, step.id, goal)
        if flow is None or goal is None or goal not in flow.steps:
            await self.cancel("nowhere")
            return
        task.step = goal
        task.open = False
        task.answered = False
        task.silences = 0
        if task.place != self.ask_place:
            self.ask_place = None
        self.asked = None

    def follow(self, links: Links, names: Mapping[str, Any]) -> str | None:
        """Return where the links lead now."""
        for condition, target in links.branches:
            outcome = condition.evaluate(names)
            for trace in outcome.traces:
                self.host.trace(f"{condition.source}: {trace}")
            if outcome.value:
                return target
        return links.otherwise

    async def _call(self, task: Task, step: CallStep) -> None:
        flow = self.setting.config.flow(step.flow)
        if flow is None or len(task.stack) >= 10:
            await self.cancel("nowhere")
            return
        self.host.visited(task.flow, step.id, None)
        task.stack.append([task.flow, task.step])
        task.flow, task.step = flow.id, flow.start
        task.open = False
        self.asked = None

    async def _end(self, task: Task) -> None:
        self.host.visited(task.flow, task.step, None)
        if task.stack:
            task.flow, task.step = task.stack.pop()
            step = current_step(self.state, self.setting.config)
            if step is None:
                await self.cancel("gone")
            else:
                await self.move(task, step)
            return
        flow = self.setting.config.flow(task.root)
        if flow is not None and flow.on_complete_step is not None and not task.completed_once:
            task.completed_once = True
            task.step = flow.on_complete_step
            return
        finish(self.state, task, self.setting.now)
        self.state.active = None
        self.offer_due = True
        following = (
            self.setting.config.flow(flow.on_complete_flow) if flow is not None and flow.on_complete_flow else None
        )
        if following is not None and not self._may_follow(following):
            following = None
        context = {
            "completed_flow_id": task.root,
            "completed_flow_name": name_of(self.setting, task.root),
            "silent": following is None and not self.state.paused and not self.host.has_spoken,
        }
        self._queue("system_task_completed", context)
        if following is not None:
            self._start_following(following)

    def _may_follow(self, flow: Flow) -> bool:
        # a chain of flows that complete into each other without listening is cut by the visits of its first step
        return flow.guard is None or flow.guard.holds(self.host.names())

    def _start_following(self, flow: Flow) -> None:
        paused = next((t for t in self.state.paused if t.root == flow.id), None)
        if paused is not None:
            self.state.paused.remove(paused)
            paused.paused_at = None
            self.state.active = paused
            self._queue(
                "system_task_resumed", {"resumed_flow_id": flow.id, "resumed_flow_name": name_of(self.setting, flow.id)}
            )
            return
        self.state.active = new_task(self.state, flow, self.setting)
        self._queue(
            "system_task_started", {"started_flow_id": flow.id, "started_flow_name": name_of(self.setting, flow.id)}
        )

    async def cancel(self, reason: str) -> None:
        """Cancel the active task with a spoken sentence."""
        task = self.state.active
        if task is None:
            return
        self.state.active = None
        self.offer_due = True
        self.asked = None
        self.host.trace(f"{task.root} is cancelled: {reason}")
        await self.host.say_sentence(reason, name=name_of(self.setting, task.root))

    async def give_up(self, task: Task) -> None:
        """Cancel after too many attempts, announced by the system flow."""
        self.state.active = None
        self.offer_due = True
        self.asked = None
        name = name_of(self.setting, task.root)
        context = {"canceled_flow_id": task.root, "canceled_flow_name": name, "reason": "attempts"}
        if not self._queue("system_task_canceled", context):
            await self.host.say_sentence("attempts", name=name)

    def _queue(self, flow_id: str, context: dict[str, Any], ask: str | None = None) -> bool:
        run = system_run(self.setting, flow_id, context, ask)
        if run is not None:
            self.state.queue.append(run)
        return run is not None

    def enter_system(self, flow_id: str, context: dict[str, Any], ask: str | None = None) -> bool:
        """Start a system flow at once."""
        run = system_run(self.setting, flow_id, context, ask)
        if run is not None:
            self.state.system = run
        return run is not None

    def _offer_resume(self) -> bool:
        if not self.offer_due or not self.state.paused:
            return False
        self.offer_due = False
        if self._ask_to_redo_again():
            return True
        flows = [{"flow_id": t.root, "flow_name": name_of(self.setting, t.root)} for t in self.state.paused]
        if not self.enter_system("system_resume_offer", {"paused": flows}):
            return False
        before = self.state.pending or {}
        times = int(before.get("times", 0)) + 1 if before.get("kind") == "resume" else 0
        self.state.pending = {"kind": "resume", "flows": [f["flow_id"] for f in flows], "times": times}
        return True

    def _ask_to_redo_again(self) -> bool:
        """Go back to the newest paused task where only its question is open whether to do something again.

        It is asked once more, then what was done stands.
        """
        task = self.state.paused[0]
        if not task.asks_to_redo:
            return False
        del self.state.paused[0]
        if task.attempts.get(task.place, 0) == 0:
            task.attempts[task.place] = 1
            task.paused_at = None
            self.state.active = task
        else:
            self.offer_due = bool(self.state.paused)
        return True

    # --- slots and actions ------------------------------------------------------------------------------

    def _write_slots(self, step: SetSlotsStep, names: Mapping[str, Any]) -> None:
        for slot_id, value in step.values.items():
            found, traces, ok = value.evaluate(names)
            for trace in traces:
                self.host.trace(f"{step.id}: {trace}")
            self.write(slot_id, found if ok else None, "action", clears=ok and found is None)

    def write(self, slot_id: str, value: Any, by: str, *, clears: bool = False) -> bool:
        """Give a slot a value of any provenance; a value that does not fit keeps the old one."""
        slot = self.setting.config.slots.get(slot_id)
        if slot is None or (value is None and not clears):
            return False
        result = coerce(slot, value) if value is not None else None
        if result is not None and not result.ok:
            self.host.trace(f"{slot_id}: {result.reason}")
            old = self.state.values().get(slot_id)
            self.emit_change(SlotChange(slot=slot_id, old=old, new=value, by=by, accepted=False))
            return False
        if result is not None and result.note:
            self.host.trace(f"{slot_id}: {result.note}")
        self.emit_change(put_slot(self.state, self.setting, slot_id, result.value if result is not None else None, by))
        return True

    def emit_change(self, change: SlotChange) -> None:
        """Put a slot change into the events file."""
        self.host.emit(
            FlowSlotChanged(
                slot=change.slot, old=change.old, new=change.new, provenance=change.by, accepted=change.accepted
            )
        )

    def take_updates(self, updates: Mapping[str, Any]) -> None:
        """Write the slots an action set."""
        for slot_id, value in updates.items():
            if slot_id not in self.setting.config.slots:
                self.host.trace(f"an action set {slot_id!r}, which is no slot")
            else:
                self.write(slot_id, value, "action", clears=value is None)

    def args_of(self, step: ActionStep, names: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a step gives its action."""
        if step.reference is not None:
            value = step.reference.evaluate(names).value
            return dict(value) if isinstance(value, Mapping) else {}
        if step.args is None:
            return {}
        value, traces, _ = step.args.evaluate(names)
        for trace in traces:
            self.host.trace(f"{step.id}: {trace}")
        return dict(value) if isinstance(value, Mapping) else {}
