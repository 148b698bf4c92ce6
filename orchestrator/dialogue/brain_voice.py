"""Speaking and acting in a turn: messages, `action_response`, actions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from orchestrator.contracts.dialogue import LlmUnavailable, Message
from orchestrator.contracts.events import FlowActionRan, ObjectRef
from orchestrator.dialogue.brain_base import TurnBase
from orchestrator.dialogue.rails_port import ActionOutcome
from orchestrator.dialogue.sentences import sentence
from orchestrator.flows.model import ActionStep, Response
from orchestrator.flows.texts import language_of
from orchestrator.tasks.actions.base import ActionContext, ActionResult
from orchestrator.tasks.actions.registry import run_action, undo_action
from orchestrator.tasks.actions.response import generate_request, history_text, prompt_names, rephrase_request, survives
from orchestrator.tasks.commands import Command, parse_commands
from orchestrator.tasks.processor import put_slot
from orchestrator.tasks.settling import Spoken
from orchestrator.tasks.speech import RunResult, Speech


class TurnVoice(TurnBase):
    """What a turn says and does."""

    def _guard(self) -> Callable[[str], Awaitable[str | None]] | None:
        return self._rails.guard if self._brain.rails.has_output_rails else None

    async def _say_guarded(self, text: str, source: str) -> None:
        """Say a whole reply that an output rail wants to see first."""
        passed = await self._rails.guard(text.strip())
        if passed is not None:
            await self.say_text(passed, source=source)

    def _message(
        self, text: str, source: str, *, asks: str | None = None, place: str | None = None, interruptible: bool = True,
        bot_intent: str | None = None, after_effect: bool | None = None,
    ) -> Message:  # fmt: skip
        key = f"m{len(self._messages) + 1}"
        task = self._state.active
        tells = self._effects > 0 and asks is None if after_effect is None else after_effect
        self._messages.append(Spoken(
            key=key, text=text, asks=asks, uid=task.uid if task is not None else None,
            place=place if asks is not None else None, after_effect=tells,
        ))  # fmt: skip
        return Message(
            text=text, source=source, key=key, language=language_of(text, self.language), interruptible=interruptible,
            bot_intent=bot_intent,
        )  # fmt: skip

    async def say_text(
        self, text: str, *, source: str, asks: str | None = None, place: str | None = None, interruptible: bool = True,
        bot_intent: str | None = None, after_effect: bool | None = None, thing: ObjectRef | None = None,
    ) -> None:  # fmt: skip
        """Speak a finished text, perhaps pointing at a thing; an empty one is nothing to say."""
        if not text.strip():
            return
        message = self._message(text, source, asks=asks, place=place, interruptible=interruptible,
                                bot_intent=bot_intent, after_effect=after_effect)  # fmt: skip
        self._last_said = text
        await self._turn.reply.say(message if thing is None else replace(message, object=thing))
        self._rails.note_bot_text(text, source)

    async def say(
        self, text: str, *, bot_intent: str | None = None, source: str = "rail", interruptible: bool = True
    ) -> None:
        """Speak a finished text of a rail."""
        await self.say_text(text, source=source, bot_intent=bot_intent, interruptible=interruptible)

    def own_sentence(self, key: str) -> str:
        """Return one of the engine's own sentences in the user's language."""
        return sentence(key, self.language)

    async def say_sentence(self, key: str, **values: Any) -> None:
        """Say one of the engine's own sentences."""
        if key in ("bounds", "nowhere", "gone", "errors", "error"):
            self.report.error = self.report.error or key
        await self.say_text(sentence(key, self.language, **values), source="system")

    async def speak(
        self, chunks: AsyncIterator[str], *, bot_intent: str | None = None, source: str = "rail",
        guard: Callable[[str], Awaitable[str | None]] | None = None, interruptible: bool = True,
    ) -> str:  # fmt: skip
        """Speak a text while it is generated."""
        message = self._message("", source, bot_intent=bot_intent, interruptible=interruptible)
        text = await self._turn.reply.stream(chunks, message, guard)
        self._messages[-1] = replace(self._messages[-1], text=text)
        self._last_said = text
        self._rails.note_bot_text(text, source)
        return text

    async def _speak_task_stream(self, chunks: AsyncIterator[str], speech: Speech) -> str:
        message = self._message(
            "", speech.source, asks=speech.asks, place=speech.place, interruptible=speech.interruptible
        )
        text = await self._turn.reply.stream(chunks, message, self._guard())
        index = next(i for i, m in enumerate(self._messages) if m.key == message.key)
        self._messages[index] = replace(self._messages[index], text=text)
        self._last_said = text
        self._rails.note_bot_text(text, speech.source)
        return text

    async def speak_response(self, speech: Speech, names: Mapping[str, Any]) -> bool:
        """Do an `action_response`."""
        response = speech.response
        rendered = speech.literal
        if rendered is None and response.text is not None:
            outcome = response.text.render(names, self.language)
            for note in (*outcome.traces, *(f"{u} is unset in a text" for u in outcome.unset)):
                self.trace(note)
            rendered = outcome.value
        rendered = rendered or ""
        if response.mode == "rephrase":
            rendered = await self._rephrased(response, rendered, names)
        elif response.mode == "generate":
            done = await self._generated(speech, response, rendered, names)
            if done:
                return True
            if not rendered:
                return False
        await self.say_text(rendered, source=speech.source, asks=speech.asks, place=speech.place,
                            interruptible=speech.interruptible, thing=_object_of(response, names))  # fmt: skip
        return True

    async def _rephrased(self, response: Response, rendered: str, names: Mapping[str, Any]) -> str:
        if not self._turn.llm.is_configured or not rendered.strip():
            return rendered
        request = rephrase_request(self._prompt(response, rendered, names), rendered, self.language)
        try:
            text = (await self._turn.llm.complete(request)).strip().strip('"“”')
        except LlmUnavailable as error:
            self.trace(f"rephrase failed: {error}")
            return rendered
        if not text or not survives(rendered, text, self._state.values().values(), self._turn.now):
            self.trace("rephrase lost something; the text itself is spoken")
            return rendered
        guard = self._guard()
        if guard is not None:
            passed = await guard(text)
            # what an output rail made of it must still say something, and the same
            if passed is None or not survives(rendered, passed, self._state.values().values(), self._turn.now):
                return rendered
            return passed if passed.strip() else rendered
        return text

    def _prompt(self, response: Response, rendered: str, names: Mapping[str, Any]) -> str:
        if response.prompt is None:
            return ""
        known = prompt_names(
            names,
            history=history_text(self._turn.history, self.language),
            user_message=self._text,
            current_response=rendered,
        )
        return str(response.prompt.render(known, self.language).value)

    async def _generated(self, speech: Speech, response: Response, rendered: str, names: Mapping[str, Any]) -> bool:
        if not self._turn.llm.is_configured:
            return False
        request = generate_request(self._prompt(response, rendered, names), self._text)
        try:
            if self._brain.rails.reply_scope:
                text = await self._turn.llm.complete(request)
                await self._say_guarded(text, speech.source)
            else:
                text = await self._speak_task_stream(self._turn.llm.stream(request), speech)
        except LlmUnavailable as error:
            self.trace(f"generate failed: {error}")
            return False
        return bool(text.strip())

    def _action_context(self, key: str, timeout_s: float, place: tuple[str, str]) -> ActionContext:
        return ActionContext(
            turn=self._turn, slots=self._state.values(), vars=dict(self._rails.vars), world=dict(self._turn.world),
            now=self._turn.now, language=self.language, key=key, timeout_s=timeout_s, flow=place[0], step=place[1],
        )  # fmt: skip

    async def _perform(
        self, name: str, args: Mapping[str, Any], key: str, timeout_s: float, place: tuple[str, str]
    ) -> tuple[ActionOutcome, ActionResult]:
        action = self._brain.actions.get(name)
        self.report.actions.append({"name": name, "args": dict(args)})
        if action is None:
            self.emit(FlowActionRan(name=name, outcome="failed"))
            return ActionOutcome(ok=False, error=f"there is no action {name}"), ActionResult()
        outcome, result = await run_action(action, self._action_context(key, timeout_s, place), args)
        self.emit(
            FlowActionRan(
                name=name, outcome="ok" if outcome.ok else "timeout" if outcome.error == "timeout" else "failed"
            )
        )
        if outcome.ok:
            if action.effect == "write":
                self._effects += 1
            if result.var_updates:
                self._rails.set_vars(result.var_updates)
            for message in result.messages:
                await self.say_text(str(message), source="task")
        else:
            self.trace(f"{name}: {outcome.error}")
        return outcome, result

    async def run_task_action(self, step: ActionStep, args: Mapping[str, Any], key: str) -> RunResult:
        """Run an action of a flow."""
        task = self._state.active
        place = (task.flow, task.step) if task is not None else ("", step.id)
        if step.action == "start_flow":
            applied = self._apply((Command(name="start_flow", flow=str(args.get("flow", ""))),))
            return RunResult(ok=bool(applied.accepted), slot_updates={})
        outcome, result = await self._perform(step.action, args, key, step.timeout_s, place)
        action = self._brain.actions.get(step.action)
        label = (
            action.label(args, self.language)
            if outcome.ok and action is not None and action.effect == "write"
            else None
        )
        return RunResult(
            ok=outcome.ok, slot_updates=result.slot_updates, label=label, value=result.value, error=outcome.error
        )

    def can_undo(self, action: str) -> bool:
        """Whether what an action did can be taken back."""
        found = self._brain.actions.get(action)
        return found is not None and found.can_undo

    async def undo_task_action(self, step: ActionStep, args: Mapping[str, Any], value: Any, key: str) -> bool:
        """Take back what an action of a flow did."""
        action = self._brain.actions.get(step.action)
        if action is None or not action.can_undo:
            return False
        task = self._state.active
        place = (task.flow, task.step) if task is not None else ("", step.id)
        context = self._action_context(key, step.timeout_s, place)
        outcome = await undo_action(action, context, args, value)
        self.emit(FlowActionRan(name=step.action, outcome="undone" if outcome.ok else "failed"))
        if not outcome.ok:
            self.trace(f"{step.action} could not be taken back: {outcome.error}")
        return outcome.ok

    async def run_action(
        self, name: str, args: Mapping[str, Any], *, key: str, timeout_s: float = 10.0
    ) -> ActionOutcome:
        """Run an action of a rail."""
        if name == "start_flow":
            self.report.actions.append({"name": name, "args": dict(args)})
            parsed = parse_commands([{"command": "start_flow", "flow": args.get("flow")}], self._config, by="rule")
            self._note_dropped(parsed.dropped)
            if not parsed.commands or not self._apply(parsed.commands).accepted:
                return ActionOutcome(ok=False, error="the flow can't be started")
            return ActionOutcome(ok=True)
        full_key = f"{self._base.origin}:rail:{self._state.turn}:{key}"
        outcome, result = await self._perform(name, args, full_key, timeout_s, ("", ""))
        for slot_id, value in result.slot_updates.items():
            if slot_id in self._config.slots:
                put_slot(self._state, self._setting(), slot_id, value, "action")
        return outcome

    def confirmation_for(self, action: str, args: Mapping[str, Any]) -> str | None:
        """Return the question to ask before an action."""
        found = self._brain.actions.get(action)
        return found.question(args, self.language) if found is not None and found.needs_confirmation else None


def _object_of(response: Response, names: Mapping[str, Any]) -> ObjectRef | None:
    """Return the thing a response points at."""
    found = response.thing.evaluate(names)[0] if response.thing is not None else None
    if not isinstance(found, Mapping):
        return None
    attributes = found.get("attributes")
    return ObjectRef(
        type=str(found.get("type") or ""),
        id=str(found.get("id") or ""),
        title=str(found.get("title") or ""),
        attributes=attributes if isinstance(attributes, Mapping) else {},
    )
