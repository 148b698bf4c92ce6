"""The action step of a task: run once per visit, ask before a repetition, say, fail, try again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.contracts.events import FlowActionRan
from orchestrator.flows.model import ActionStep
from orchestrator.tasks.speech import RunResult, Speech
from orchestrator.tasks.state import Task

if TYPE_CHECKING:
    from orchestrator.tasks.executor import Executor

MAX_RETRIES = 2


class Acting:
    """Action steps of one executor run."""

    def __init__(self, executor: Executor) -> None:
        self._ex = executor

    async def run(self, task: Task, step: ActionStep) -> bool:
        """Do an action step; True when it is time to listen."""
        names = self._ex.host.names()
        if step.action == "action_listen":
            if self._ex.asked == task.place:
                return True
            if task.answered:
                await self._ex.move(task, step)
                return False
            self._ex.asked = task.place
            task.open = True
            return True
        if step.action == "action_response":
            return await self._respond(task, step, names)
        place = task.place
        args = self._ex.args_of(step, names)
        if self._was_done_otherwise(task, args):
            task.runs[place] = 1
            # the user went on talking, so what was done is not what was said: where it can be, it is replaced
            task.rerun[place] = "again" if self._can_undo(task, step) else "ask"
        allowed = task.rerun.get(place)
        if allowed == "no":
            task.rerun.pop(place, None)
            self._ex.host.emit(FlowActionRan(name=step.action, outcome="skipped"))
            self._restore(task, step)
            declined = place not in task.done and step.on_error is not None
            await self._ex.move(task, step, step.on_error if declined else None)
            return False
        if allowed not in ("yes", "again") and self._must_ask(task, step, args, allowed):
            return False
        result = await self._ex.host.run_task_action(step, args, f"{task.uid}:{place}:{task.runs.get(place, 0)}")
        if not result.ok:
            await self._failed(task, step, result)
            return False
        task.runs[place] = task.runs.get(place, 0) + 1
        task.failures.pop(place, None)
        task.rerun.pop(place, None)
        if allowed == "again" and self._can_undo(task, step):
            await self._replace(task, step)
        if result.label is not None:
            task.done[place] = result.label
            task.done_args[place] = args
            task.done_slots[place] = {name: slot.value for name, slot in task.slots.items()}
            task.done_values[place] = result.value
        self._ex.take_updates(result.slot_updates)
        await self._ex.move(task, step)
        if result.label is not None:
            await self._ex.host.commit_effects()
        return False

    def _can_undo(self, task: Task, step: ActionStep) -> bool:
        return task.place in task.done_values and self._ex.host.can_undo(step.action)

    async def _replace(self, task: Task, step: ActionStep) -> None:
        """Take back what the step did before: it has just been done anew."""
        place = task.place
        args, value = task.done_args.get(place, {}), task.done_values.pop(place)
        key = f"{task.uid}:{place}:{task.runs.get(place, 0)}:undo"
        if not await self._ex.host.undo_task_action(step, args, value, key):
            await self._ex.host.say_sentence("not_undone", name=self._ex.setting.label(task, place))

    def _restore(self, task: Task, step: ActionStep) -> None:
        """Give the slots a step reads the values it was done with, where what was done stands in place of them."""
        given = task.done_slots.get(task.place)
        stands = task.ended_at is not None or self._can_undo(task, step)
        if not stands or not isinstance(given, Mapping):
            return
        read = {r.field for r in step.reads() if r.namespace == "slots"}
        for slot_id in read & task.slots.keys() & given.keys():
            if task.slots[slot_id].value != given[slot_id]:
                self._ex.write(slot_id, given[slot_id], "said")

    def _was_done_otherwise(self, task: Task, args: Mapping[str, Any]) -> bool:
        """Whether a turn that was undone, because the user went on talking, did this with other arguments."""
        place = task.place
        undone = place in task.done and not task.runs.get(place) and place not in task.rerun
        return undone and task.done_args.get(place, args) != args

    def _must_ask(self, task: Task, step: ActionStep, args: Mapping[str, Any], allowed: str | None) -> bool:
        """Ask before an action runs again after a correction, or before one that wants a yes."""
        place = task.place
        if allowed == "ask":
            context = {
                "done": self._ex.setting.label(task, place),
                "slot_name": None,
                "slot_label": None,
                "replaces": self._can_undo(task, step),
            }
            if self._ex.enter_system("system_confirm_again", context):
                self._ex.state.pending = {"kind": "confirm_action", "place": place, "is_again": True}
                return True
            return False
        question = self._ex.host.confirmation_for(step.action, args)
        if question is not None and self._ex.enter_system(
            "system_confirm_action", {"action": step.action, "question": question}
        ):
            self._ex.state.pending = {"kind": "confirm_action", "place": place}
            return True
        return False

    async def _respond(self, task: Task, step: ActionStep, names: Mapping[str, Any]) -> bool:
        if step.response is not None:
            speech: Speech | None = Speech(response=step.response, interruptible=step.response.interruptible)
        else:
            value = step.reference.evaluate(names).value if step.reference is not None else None
            speech = self._ex.asking.speech_of(value, None, None)
        self._ex.in_flight = (task.uid, task.place)
        ok = speech is not None and await self._ex.host.speak_response(speech, names)
        self._ex.in_flight = None
        self._ex.host.emit(FlowActionRan(name=step.action, outcome="ok" if ok else "failed"))
        if ok:
            task.failures.pop(task.place, None)
            await self._ex.move(task, step)
        else:
            await self._failed(task, step, RunResult(ok=False, slot_updates={}, error="no text"))
        return False

    async def _failed(self, task: Task, step: ActionStep, result: RunResult) -> None:
        self._ex.host.trace(f"{task.place}: {step.action} failed: {result.error}")
        if step.on_error is not None:
            task.failures.pop(task.place, None)
            await self._ex.move(task, step, step.on_error)
            return
        count = task.failures.get(task.place, 0) + 1
        task.failures[task.place] = count
        if count > MAX_RETRIES:
            await self._ex.cancel("errors")
            return
        self._ex.halted = True
        self._ex.host.fail(step.action, result.error or "failed")
        if not self._ex.enter_system("system_internal_error", {"part": step.action, "recoverable": True}):
            await self._ex.host.say_sentence("error", name=step.action)
