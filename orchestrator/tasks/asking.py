"""The collect step: when to ask, with which words, when a value counts, and when to give up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.flows.model import CollectStep, Response
from orchestrator.tasks.speech import Speech
from orchestrator.tasks.state import SlotValue, Task

if TYPE_CHECKING:
    from orchestrator.tasks.executor import Executor

MAX_QUESTIONS = 50
"""How often one step of a task may ask altogether, whatever loop leads back to it."""

COUNTED = frozenset({"first", "unrecognized", "failure"})
"""Kinds of asking that count as attempts; repeating after small talk and silence do not."""


class Asking:
    """Collect steps of one executor run."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._responses: dict[int, Response] = {}

    def speech_of(self, value: Any, asks: str | None, place: str | None) -> Speech | None:
        """Return the speech a reference such as `context.response` stands for."""
        if isinstance(value, str):
            return Speech(response=Response(), literal=value, asks=asks, place=place, source="system")
        if not isinstance(value, Mapping):
            return None
        known = self._responses.get(int(value.get("ref", -1)) if isinstance(value.get("ref"), int) else -1)
        text = value.get("text")
        literal = text if isinstance(text, str) else ""
        response = known or Response()
        return Speech(response=response, literal=literal, asks=asks, place=place, interruptible=response.interruptible)

    async def collect(self, task: Task, step: CollectStep) -> bool:
        """Do a collect step; True when it is time to listen."""
        ex = self._executor
        home = self._home(step)
        value = home.get(step.slot)
        if step.ask_even_if_known and not task.answered:
            return await self.ask(task, step, self._kind(task))
        if value is None:
            value = self._from_object(task, step)
        if value is None:
            return await self.ask(task, step, self._kind(task))
        if self._is_valid(step):
            value.is_checked = True
            task.attempts.pop(task.place, None)
            await ex.move(task, step)
            return False
        self._restore(home, step.slot, value)
        if value.by == "focused":
            return await self.ask(task, step, self._kind(task))
        if value.by == "default":
            await ex.give_up(task)
            return False
        return await self.ask(task, step, "failure")

    def _home(self, step: CollectStep) -> dict[str, SlotValue]:
        state = self._executor.state
        slot = self._executor.setting.config.slots.get(step.slot)
        task = state.active
        return state.slots if task is None or (slot is not None and slot.persist) else task.slots

    def _is_valid(self, step: CollectStep) -> bool:
        if step.condition is None:
            return True
        names = self._executor.host.names()
        outcome = step.condition.evaluate(names)
        for trace in outcome.traces:
            self._executor.host.trace(f"{step.id}: {trace}")
        return bool(outcome.value)

    def _restore(self, home: dict[str, SlotValue], slot: str, value: SlotValue) -> None:
        if value.previous is None:
            home.pop(slot, None)
        else:
            home[slot] = SlotValue(
                value=value.previous, by=value.by, turn=value.turn, generation=value.generation, is_checked=True
            )

    def _from_object(self, task: Task, step: CollectStep) -> SlotValue | None:
        ex = self._executor
        focus = ex.state.focus
        wanted = step.from_object
        if wanted is None or focus is None or focus.get("type") != wanted.type:
            return None
        used = focus.setdefault("tried", [])
        if task.place in used:
            return None
        used.append(task.place)
        attributes = focus.get("attributes")
        found = focus.get(wanted.field) if wanted.field in ("id", "title", "type") else None
        if found is None and isinstance(attributes, Mapping):
            found = attributes.get(wanted.field, attributes.get(wanted.field.removeprefix("attributes.")))
        if found is None or found == "" or not ex.write(step.slot, found, "focused"):
            return None
        return self._home(step).get(step.slot)

    def _kind(self, task: Task) -> str:
        if not task.open:
            return "first"
        return self._executor.ask if self._executor.ask_place == task.place else "repeat"

    async def ask(self, task: Task, step: CollectStep, kind: str) -> bool:
        """Ask, or give up when it was asked often enough."""
        ex = self._executor
        place = task.place
        count = task.attempts.get(place, 0)
        if kind in COUNTED:
            if count >= step.max_attempts:
                return await self._give_up(task, step)
            count += 1
            task.attempts[place] = count
            task.questions[place] = task.questions.get(place, 0) + 1
            if task.questions[place] > MAX_QUESTIONS:
                await ex.give_up(task)
                return False
        response = self._wording(step, kind, is_last=kind in COUNTED and count >= step.max_attempts)
        task.open = True
        task.answered = False
        ex.asked = place
        ex.ask_place = None
        names = ex.host.names()
        rendered = response.text.render(names, ex.host.language) if response.text is not None else None
        for trace in rendered.traces if rendered is not None else ():
            ex.host.trace(f"{step.id}: {trace}")
        if not step.interruptible:
            response = replace(response, interruptible=False)
        reference = len(self._responses)
        self._responses[reference] = response
        slot = ex.setting.config.slots[step.slot]
        text = rendered.value if rendered is not None else None
        if step.slot in task.days and slot.type == "datetime" and kind in ("first", "repeat"):
            text = ex.host.own_sentence("at_what_time")
        if text is not None and not text.strip():
            # a question that came out empty would leave the user in silence
            text = f"{slot.label_in(ex.host.language)}{'？' if ex.host.language == 'zh' else '?'}"
            ex.host.trace(f"{step.id}: the question is empty, its label is asked")
        shown: dict[str, Any] = {"mode": response.mode, "text": text, "ref": reference}
        context = {
            "slot_name": step.slot, "slot_label": slot.label_in(ex.host.language), "response": shown, "attempt": count,
            "place": place,
        }  # fmt: skip
        if ex.enter_system("system_collect_information", context, kind):
            return False
        speech = self.speech_of(shown, kind, place)
        if speech is not None:
            await ex.host.speak_response(speech, names)
        return True

    def _wording(self, step: CollectStep, kind: str, *, is_last: bool) -> Response:
        if is_last and step.last_attempt is not None:
            return step.last_attempt
        special = {"failure": step.failure, "unrecognized": step.unrecognized, "silence": step.silence}.get(kind)
        return special or step.response

    async def _give_up(self, task: Task, step: CollectStep) -> bool:
        ex = self._executor
        slot = ex.setting.config.slots.get(step.slot)
        give_up = step.give_up
        task.attempts.pop(task.place, None)
        value = give_up.value if give_up.has_value else None
        if value is None and not give_up.is_explicit and slot is not None:
            value = slot.default
        if value is not None and ex.write(step.slot, value, "default"):
            task.answered = True
            return False
        if give_up.step is not None:
            await ex.move(task, step, give_up.step)
            return False
        await ex.give_up(task)
        return False
