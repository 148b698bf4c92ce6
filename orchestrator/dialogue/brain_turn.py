"""One turn of the brain: the cascade from the input rails down to the persona, on a copy of the state."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.contracts.dialogue import LlmUnavailable, Message, TurnContext, TurnHeard, TurnInput
from orchestrator.contracts.events import FlowActionRan, FlowCommanded, FlowSlotChanged, FlowStateChanged, Payload
from orchestrator.dialogue.brain_report import TurnReport
from orchestrator.dialogue.example_patterns import inferred
from orchestrator.dialogue.rails_port import ActionOutcome, NoRailsTurn, RailsTurn
from orchestrator.dialogue.sentences import sentence
from orchestrator.dialogue.understanding import Decision, Understander, open_question
from orchestrator.flows.model import ActionStep, CollectStep, Response
from orchestrator.flows.texts import language_of
from orchestrator.tasks.actions.base import ActionContext, ActionResult
from orchestrator.tasks.actions.registry import run_action
from orchestrator.tasks.actions.response import generate_request, history_text, prompt_names, rephrase_request, survives
from orchestrator.tasks.commands import Command, Dropped, Parsed, parse_commands, parse_plan
from orchestrator.tasks.executor import Executor
from orchestrator.tasks.extraction.words import is_question
from orchestrator.tasks.planning import plan_request
from orchestrator.tasks.processor import Applied, Setting, apply, current_step, expire, name_of, put_slot, system_run
from orchestrator.tasks.settling import Spoken, fold_cut, keep_what_was_said
from orchestrator.tasks.speech import RunResult, Speech
from orchestrator.tasks.state import FOCUS_TURNS, State, Task

if TYPE_CHECKING:
    from orchestrator.dialogue.brain import FlowBrain

log = logging.getLogger(__name__)


class FlowTurn:
    """A `PendingTurn`: decides and speaks; also what the executor and the rails see of the turn."""

    def __init__(self, brain: FlowBrain, turn: TurnContext, user: TurnInput) -> None:
        """Start from the brain's committed state."""
        self._brain = brain
        self._config = brain.config
        self._turn = turn
        self._user = user
        self._base = brain.state
        if not self._base.origin:
            self._base.origin = str(turn.generation_id)
        self._state = self._base.copy()
        self._state.turn += 1
        if user.kind != "silence":
            spoken_language = language_of(user.text, user.language) if user.text else user.language
            self._state.language = spoken_language or self._state.language
        self._messages: list[Spoken] = []
        self._executor: Executor | None = None
        self._effects = 0
        self._text = user.text
        self._last_said = ""
        self._was_open = self._base.active is not None and self._base.active.open
        self._is_offer_due = False
        self._silent_exit = False
        self.report = TurnReport()
        # rails ask for the names while they begin
        self._rails: RailsTurn = NoRailsTurn()
        self._rails = brain.rails.begin(brain.rails_state, self)
        if brain.host_vars:
            self._rails.set_vars(brain.take_host_vars())

    # --- what others see --------------------------------------------------------------------------------

    @property
    def turn(self) -> TurnContext:
        """The turn's context."""
        return self._turn

    @property
    def user(self) -> TurnInput:
        """The input."""
        return self._user

    @property
    def language(self) -> str | None:
        """The language to talk in."""
        return self._state.language

    @property
    def state(self) -> State:
        """The working state."""
        return self._state

    def names(self, context: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return the names of conditions and texts."""
        world = dict(self._turn.world)
        told = world.get("user")
        return {
            "slots": self._state.values(), "context": dict(context or {}), "world": world, "vars": dict(self._rails.vars),
            "user": {"text": self._text, "language": self.language, **(told if isinstance(told, Mapping) else {})},
            "now": self._turn.now, "__language__": self.language,
        }  # fmt: skip

    def emit(self, payload: Payload) -> None:
        """Put a fact into the events file."""
        self._turn.emit(payload)

    def trace(self, text: str) -> None:
        """Note something for the author."""
        self.report.traces.append(text)

    def visited(self, flow: str, step: str, target: str | None) -> None:
        """Record a step for coverage."""
        self.report.visited.append((flow, step, target))

    def fail(self, part: str, message: str) -> None:
        """Mark the turn as failed with a spoken error."""
        self.report.error = f"{part}: {message}"

    def note_bot_intent(self, name: str) -> None:
        """Record a bot intent."""
        self.report.bot_intents.append(name)

    def note_user_intent(self, name: str) -> None:
        """Record the user intent."""
        self.report.user_intent = name

    # --- running ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Decide and speak."""
        for flow in expire(self._state, self._turn.now):
            self.trace(f"{flow} was paused too long and is forgotten")
        self._age_focus()
        self._take_object()
        await self._tell_untold()
        self._finish_listening()
        if self._user.kind == "silence":
            await self._silence()
        elif self._user.kind == "event":
            await self._event()
        else:
            await self._hear()
        self._emit_state()

    def _age_focus(self) -> None:
        state = self._state
        if state.focus is not None and state.turn - state.focus_turn > FOCUS_TURNS:
            state.focus = None

    def _take_object(self) -> None:
        thing = self._user.object
        if thing is not None:
            self._state.focus = {
                "type": thing.type, "id": thing.id, "title": thing.title, "attributes": dict(thing.attributes), "tried": [],
            }  # fmt: skip
            self._state.focus_turn = self._state.turn

    async def _tell_untold(self) -> None:
        while self._state.untold:
            text = self._state.untold[0]
            await self.say_text(text, source="system", after_effect=True)
            self._state.untold.pop(0)

    def _finish_listening(self) -> None:
        """What a system flow listened for has come: it goes on behind its listening."""
        run = self._state.system
        if run is None:
            return
        flow = self._config.flow(run.flow)
        step = flow.steps.get(run.step) if flow is not None else None
        if flow is None or step is None or (not run.waiting and run.ask is not None):
            self._state.system = None
            return
        if not run.waiting:
            return
        run.waiting = False
        target = None
        for condition, then in step.links.branches:
            if condition.holds(self.names(run.context)):
                target = then
                break
        target = target or step.links.otherwise
        self.visited(flow.id, step.id, target)
        if target is None or target not in flow.steps or flow.steps[target].type == "end":
            self._state.system = None
        else:
            run.step = target

    async def _hear(self) -> None:
        text = self._text.strip()
        if not text:
            if self._user.object is not None and (self._state.active is not None or self._state.system is not None):
                await self._execute()
            return
        screened = await self._rails.screen_input(text)
        self._text = text = screened.text.strip()
        if screened.is_blocked:
            await self._execute()
            return
        if not text:
            return
        if await self._rails.run_always(text):
            await self._after_talk()
            return
        await self._understand(text)

    async def _understand(self, text: str) -> None:
        understander = self._understander()
        decision = understander.rules(text)
        if decision is not None:
            self._state.confusions = 0
            await self._act(decision)
            return
        if self._state.pending is not None and self._state.pending.get("kind") != "confirm_action":
            self._state.pending = None
        decision = understander.typed(text)
        if decision is not None:
            await self._act(decision)
            return
        if await self._rails.match(text):
            await self._after_talk()
            return
        decision = await self._flow_start(understander, text)
        # "not that" is no answer to what was asked, however free the question
        if decision is None and self._user.interrupt_hint != "objection":
            decision = self._understander().free(text)
        if decision is not None:
            await self._act(decision)
            return
        await self._ask_model(text)

    async def _flow_start(self, understander: Understander, text: str) -> Decision | None:
        filled = self._brain.patterns.match(text, self._turn.now)
        if filled is not None:
            start = Command(name="start_flow", flow=filled.flow)
            return Decision(commands=(start, Command(name="set_slots", slots=filled.slots)))
        decision = await understander.start(text, await self._brain.flow_matcher())
        flow = self._config.flow(decision.commands[0].flow or "") if decision is not None else None
        if decision is None or flow is None:
            return None
        values = inferred(self._config, flow, text, self._turn.now)
        if not values:
            return decision
        extra = Command(name="set_slots", slots=values, provenance="inferred")
        return replace(decision, commands=(*decision.commands, extra))

    def _understander(self) -> Understander:
        return Understander(self._config, self._state, self._turn.now, self.language)

    async def _after_talk(self) -> None:
        """Something else was talked about; the open question comes again, once."""
        self._state.confusions = 0
        await self._execute()

    # --- decisions --------------------------------------------------------------------------------------

    async def _act(self, decision: Decision) -> None:
        if decision.note:
            self.trace(decision.note)
        if decision.answer is not None:
            await self._answer_pending(decision.answer)
            if decision.rest:
                await self._talk(decision.rest)
            await self._execute()
            return
        parsed = Parsed(commands=decision.commands, dropped=())
        await self._obey(parsed, rest=decision.rest)

    async def _obey(self, parsed: Parsed, *, rest: str = "", intent: str | None = None) -> None:
        """Apply commands, answer what was asked besides, and let the flows go on."""
        self._note_dropped(parsed.dropped)
        for note in parsed.notes:
            self.trace(note)
        commands = parsed.commands
        if len(commands) == 1 and commands[0].name not in (
            "start_flow",
            "set_slots",
            "cancel_flow",
            "resume_flow",
            "correct_slots",
        ):
            await self._talk_command(commands[0])
            return
        applied = self._apply(commands)
        if not applied.accepted:
            guarded = any("guard" in d.reason for d in applied.dropped)
            if intent is not None and await self._rails.take_intent(intent, self._text):
                await self._after_talk()
            elif guarded:
                await self.say_sentence("guard")
                await self._execute()
            else:
                await self._cannot_handle("nothing_accepted")
            return
        self._state.confusions = 0
        await self._commit_said(applied)
        if applied.nothing_to_cancel:
            await self.say_sentence("nothing_to_cancel")
        self._is_offer_due = self._is_offer_due or applied.offer_due
        if intent is not None:
            await self._rails.take_intent(intent, self._text)
        if rest:
            await self._talk(rest)
        await self._execute()

    def _setting(self) -> Setting:
        return Setting(
            config=self._config, now=self._turn.now, generation=str(self._turn.generation_id), language=self.language,
            names=self.names,
        )  # fmt: skip

    def _apply(self, commands: tuple[Command, ...]) -> Applied:
        """Apply to a copy and swap: all or nothing."""
        copy = self._state.copy()
        before, self._state = self._state, copy
        try:
            applied = apply(copy, commands, self._setting())
        except BaseException:
            self._state = before
            raise
        if not applied.accepted:
            self._state = before
        self._note_dropped(tuple(applied.dropped))
        for command in applied.accepted:
            self.report.commands.append(command.to_json())
            self.emit(FlowCommanded(command=command.to_json(), accepted=True, by=command.by))
        for change in applied.changes:
            self.emit(FlowSlotChanged(
                slot=change.slot, old=change.old, new=change.new, provenance=change.by, accepted=change.accepted
            ))  # fmt: skip
        return applied

    def _note_dropped(self, dropped: tuple[Dropped, ...]) -> None:
        for item in dropped:
            self.report.dropped.append(item.to_json())
            shown = item.command if isinstance(item.command, Mapping) else {"command": item.command}
            self.emit(FlowCommanded(command=shown, accepted=False, reason=item.reason, by="llm"))

    def _note_talk(self, command: Command) -> None:
        self.report.commands.append(command.to_json())
        self.emit(FlowCommanded(command=command.to_json(), accepted=True, by=command.by))

    async def _commit_said(self, applied: Applied) -> None:
        if any(change.accepted and change.by == "said" for change in applied.changes):
            await self.commit_effects()

    async def commit_effects(self) -> None:
        """Store now what must not wait: slots said, effects done."""
        kept = keep_what_was_said(self._base, self._state)
        await self._turn.commit_early(self._brain.pack(kept, self._brain.rails_state))

    async def _answer_pending(self, answer: str) -> None:
        pending = self._state.pending or {}
        kind = pending.get("kind")
        self._state.pending = None
        self._state.system = None
        if kind == "confirm_action":
            task = self._state.active
            if task is not None:
                task.rerun[str(pending.get("place"))] = "yes" if answer == "yes" else "no"
        elif kind == "confirm_interrupt":
            if answer == "yes":
                self._start_anyway(str(pending.get("flow")), pending.get("slots") or {})
            else:
                await self.say_sentence("kept")
        elif kind == "stop":
            if answer == "yes" and self._state.active is not None:
                applied = self._apply((Command(name="cancel_flow"),))
                self._is_offer_due = self._is_offer_due or applied.offer_due
        elif kind == "resume":
            self._answer_resume(answer, list(pending.get("flows") or ()))
            if answer == "no":
                await self.say_sentence("dropped")
        elif kind == "clarify":
            flows = list(pending.get("flows") or ())
            flow = flows[0] if answer == "yes" and len(flows) == 1 else answer
            if flow in flows:
                self._apply((Command(name="start_flow", flow=flow),))
            elif answer == "no":
                await self.say_sentence("dropped")
            else:
                await self._clarify(tuple(flows))

    def _answer_resume(self, answer: str, flows: list[str]) -> None:
        if answer == "no":
            self._state.paused.clear()
            return
        flow = flows[0] if answer == "yes" and flows else answer
        self._apply((Command(name="resume_flow", flow=flow),))

    def _start_anyway(self, flow_id: str, slots: Mapping[str, Any]) -> None:
        from orchestrator.tasks.processor import _Processor  # the one caller that starts without asking again

        flow = self._config.flow(flow_id)
        if flow is None:
            return
        applied = Applied()
        worker = _Processor(self._state, self._setting(), applied)
        worker.end_system_flow()
        paused = next((t for t in self._state.paused if t.root == flow_id), None)
        if paused is not None:
            worker._resume(paused)
        else:
            worker.start(flow)
        self._note_talk(Command(name="start_flow", flow=flow_id))
        if slots:
            self._apply((Command(name="set_slots", slots=dict(slots)),))

    async def _talk_command(self, command: Command) -> None:
        question = open_question(self._state, self._config)
        if command.name == "clarify":
            self._note_talk(command)
            await self._clarify(command.flows)
        elif command.name == "repeat" and question is not None:
            self._note_talk(command)
            self._queue_about("system_repeat", question)
            await self._execute()
        elif command.name == "skip" and question is not None:
            self._note_talk(command)
            await self._skip(question)
        elif command.name == "chitchat":
            self._note_talk(command)
            if not await self._persona(self._text):
                await self._cannot_handle("no_model")
                return
            await self._after_talk()
        else:
            await self._cannot_handle(command.name)

    def _queue_about(self, flow_id: str, question: CollectStep, **extra: Any) -> None:
        names = self.names()
        text = question.response.text.render(names, self.language).value if question.response.text is not None else ""
        slot = self._config.slots[question.slot]
        context: dict[str, Any] = {
            "slot_name": slot.id, "slot_label": slot.label_in(self.language), "response": {"mode": "static", "text": text}, **extra,
        }  # fmt: skip
        run = system_run(self._setting(), flow_id, context)
        if run is not None:
            self._state.system = None
            self._state.queue.append(run)

    async def _skip(self, question: CollectStep) -> None:
        slot = self._config.slots[question.slot]
        executor = self._new_executor()
        task = self._state.active
        assert task is not None
        skipped = True
        if slot.default is not None:
            executor.write(slot.id, slot.default, "default")
            task.answered = True
        elif question.skippable:
            task.attempts.pop(task.place, None)
            await executor.move(task, question)
        else:
            skipped = False
        self._queue_about("system_skip", question, skipped=skipped)
        await self._execute()

    async def _clarify(self, flows: tuple[str, ...]) -> None:
        options = [{"flow_id": f, "flow_name": name_of(self._setting(), f)} for f in flows]
        run = system_run(self._setting(), "system_clarify", {"flows": options})
        if run is not None:
            self._state.system = run
        self._state.pending = {"kind": "clarify", "flows": list(flows)}
        await self._execute(halted=True)

    async def _cannot_handle(self, reason: str) -> None:
        state = self._state
        self._note_talk(Command(name="cannot_handle"))
        state.confusions += 1
        attempt = min(state.confusions, 3)
        options = [f.name_in(self.language) for f in list(self._config.user_flows().values())[:4]]
        run = system_run(
            self._setting(), "system_cannot_handle", {"attempt": attempt, "reason": reason, "options": options}
        )
        offers_stop = attempt == 3 and state.active is not None
        if attempt == 3:
            state.confusions = 0
        if run is not None:
            state.system = run
            if offers_stop:
                state.pending = {"kind": "stop"}
        else:
            await self.say_sentence("cannot_handle")
        await self._execute(halted=offers_stop)

    # --- silence and events -----------------------------------------------------------------------------

    async def _silence(self) -> None:
        question = open_question(self._state, self._config)
        task = self._state.active
        if question is None or task is None:
            return
        task.silences += 1
        self.trace(f"silence {task.silences}")
        if task.silences == 1:
            await self._execute(ask="silence")
        elif task.silences == 2:
            self._queue_about("system_silence", question, count=2)
            await self._execute(halted=True)
        else:
            from orchestrator.tasks.processor import _Processor  # pausing is the processor's

            self._state.system = None
            task.silences = 0
            _Processor(self._state, self._setting(), Applied()).pause_active()

    async def _event(self) -> None:
        handled = await self._rails.handle_event(self._user.event_type or "", self._user.event_payload)
        if handled:
            await self._execute()

    # --- the model --------------------------------------------------------------------------------------

    async def _ask_model(self, text: str) -> None:
        llm = self._turn.llm
        question = open_question(self._state, self._config)
        if not self._config.embeddings_only and llm.is_configured and llm.can_plan:
            if self._config.user_flows():
                await self._plan(text, question)
                return
            if await self._rails.decide(text):
                await self._after_talk()
                return
        elif await self._rails.decide(text):
            await self._after_talk()
            return
        if question is not None and (not llm.is_configured or (not llm.can_plan and _is_failed_answer(text))):
            await self._execute(ask="unrecognized")
            return
        if await self._persona(text):
            await self._after_talk()
            return
        if self._state.active is not None and question is None:
            await self._execute()
            return
        await self._cannot_handle("no_match")

    async def _plan(self, text: str, question: CollectStep | None) -> None:
        request = plan_request(
            self._config, self._state, text=text, names=self.names(), history=self._turn.history, language=self.language,
            question=question, intents=self._brain.rails.user_intents(),
        )  # fmt: skip
        try:
            answer = await self._turn.llm.complete(request)
        except LlmUnavailable as error:
            self.trace(f"plan failed: {error}")
            await self._cannot_handle("plan_failed")
            return
        plan = parse_plan(answer)
        if plan is None or (not plan.commands and plan.user_intent is None):
            self.trace("plan: nothing readable" if plan is None else "plan: no commands")
            await self._cannot_handle("plan_empty")
            return
        parsed = parse_commands(plan.commands, self._config)
        if not parsed.commands:
            self._note_dropped(parsed.dropped)
            if plan.user_intent is not None and await self._rails.take_intent(plan.user_intent, text):
                await self._after_talk()
                return
            await self._cannot_handle("nothing_left")
            return
        await self._obey(parsed, intent=plan.user_intent)

    async def _talk(self, text: str) -> None:
        """Answer what was asked besides an answer."""
        if await self._rails.match(text):
            return
        if is_question(text):
            await self._persona(text)

    async def _persona(self, text: str) -> bool:
        make = self._brain.persona_request
        if make is None or not self._turn.llm.is_configured:
            return False
        request = make(self._turn, replace(self._user, text=text))
        try:
            if self._brain.rails.reply_scope:
                await self._say_guarded(await self._turn.llm.complete(request), "persona")
            else:
                await self.speak(self._turn.llm.stream(request), source="persona", guard=self._guard())
        except LlmUnavailable as error:
            self.trace(f"persona failed: {error}")
            if self._state.active is None:
                raise
            return False
        return True

    async def _say_guarded(self, text: str, source: str) -> None:
        """Say a whole reply that an output rail wants to see first."""
        passed = await self._rails.guard(text.strip())
        if passed is not None:
            await self.say_text(passed, source=source)

    def _guard(self) -> Callable[[str], Awaitable[str | None]] | None:
        return self._rails.guard if self._brain.rails.has_output_rails else None

    # --- flows ------------------------------------------------------------------------------------------

    def _new_executor(self, ask: str = "repeat") -> Executor:
        return Executor(self._state, self._setting(), self, ask=ask, offer_due=self._is_offer_due)

    async def _execute(self, *, ask: str = "repeat", halted: bool = False) -> None:
        self._executor = self._new_executor(ask)
        self._executor.halted = halted
        self._brain.work_count += 1
        await self._executor.run()
        self.report.steps += self._executor.steps
        self._is_offer_due = False

    def _emit_state(self) -> None:
        state = self._state
        self.emit(FlowStateChanged(
            active_task=state.active.root if state.active is not None else None,
            step=state.active.step if state.active is not None else None,
            system_flow=state.system.flow if state.system is not None else None,
            paused=tuple(t.root for t in state.paused),
        ))  # fmt: skip

    # --- speaking ---------------------------------------------------------------------------------------

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
        bot_intent: str | None = None, after_effect: bool | None = None,
    ) -> None:  # fmt: skip
        """Speak a finished text; an empty one is nothing to say."""
        if not text.strip():
            return
        message = self._message(text, source, asks=asks, place=place, interruptible=interruptible,
                                bot_intent=bot_intent, after_effect=after_effect)  # fmt: skip
        self._last_said = text
        await self._turn.reply.say(message)
        self._rails.note_bot_text(text, source)

    async def say(self, text: str, *, bot_intent: str | None = None, source: str = "rail") -> None:
        """Speak a finished text of a rail."""
        await self.say_text(text, source=source, bot_intent=bot_intent)

    async def say_sentence(self, key: str, **values: Any) -> None:
        """Say one of the engine's own sentences."""
        if key in ("bounds", "nowhere", "gone", "errors", "error"):
            self.report.error = self.report.error or key
        await self.say_text(sentence(key, self.language, **values), source="system")

    async def speak(
        self, chunks: AsyncIterator[str], *, bot_intent: str | None = None, source: str = "rail",
        guard: Callable[[str], Awaitable[str | None]] | None = None,
    ) -> str:  # fmt: skip
        """Speak a text while it is generated."""
        message = self._message("", source, bot_intent=bot_intent)
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
                            interruptible=speech.interruptible)  # fmt: skip
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
        if not text or not survives(rendered, text, self._state.values().values()):
            self.trace("rephrase lost something; the text itself is spoken")
            return rendered
        guard = self._guard()
        if guard is not None:
            passed = await guard(text)
            return passed if passed is not None else rendered
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

    # --- actions ----------------------------------------------------------------------------------------

    async def _perform(
        self, name: str, args: Mapping[str, Any], key: str, timeout_s: float, place: tuple[str, str]
    ) -> tuple[ActionOutcome, ActionResult]:
        action = self._brain.actions.get(name)
        self.report.actions.append({"name": name, "args": dict(args)})
        if action is None:
            self.emit(FlowActionRan(name=name, outcome="failed"))
            return ActionOutcome(ok=False, error=f"there is no action {name}"), ActionResult()
        context = ActionContext(
            turn=self._turn, slots=self._state.values(), vars=dict(self._rails.vars), world=dict(self._turn.world),
            now=self._turn.now, language=self.language, key=key, timeout_s=timeout_s, flow=place[0], step=place[1],
        )  # fmt: skip
        outcome, result = await run_action(action, context, args)
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
        return RunResult(ok=outcome.ok, slot_updates=result.slot_updates, label=label, error=outcome.error)

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

    # --- the end ----------------------------------------------------------------------------------------

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Fold the turn into the brain's state."""
        self._brain.note_settled(self)
        rails_state = self._rails.settle(heard)
        sounded = frozenset(m.key for m in heard.messages if m.sounded and m.key is not None)
        state = self._state
        if heard.joined:
            state = keep_what_was_said(self._base, state)
        elif heard.outcome != "completed":
            self._advance_heard(sounded)
            opened = state.active is not None and state.active.open and not self._opened_before(state.active)
            fold_cut(state, self._messages, sounded, opened)
        return self._brain.commit(state, rails_state)

    def _opened_before(self, task: Task) -> bool:
        before = self._base.active
        return before is not None and before.uid == task.uid and before.place == task.place and before.open

    def _advance_heard(self, sounded: frozenset[str]) -> None:
        """A message step that was cut while it sounded is done: it is not said again from its beginning."""
        executor, task = self._executor, self._state.active
        if executor is None or executor.in_flight is None or task is None or not self._messages:
            return
        if executor.in_flight != (task.uid, task.place) or self._messages[-1].key not in sounded:
            return
        step = current_step(self._state, self._config)
        target = executor.follow(step.links, self.names()) if step is not None else None
        flow = self._config.flow(task.flow)
        if flow is not None and target in flow.steps:
            task.step, task.open = str(target), False


def _is_failed_answer(text: str) -> bool:
    """Whether a text without question marks is short enough to be a misunderstood answer."""
    if is_question(text):
        return False
    chinese = language_of(text) == "zh"
    return len(text) <= 8 if chinese else len(text.split()) <= 4
