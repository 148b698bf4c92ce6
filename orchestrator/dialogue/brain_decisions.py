"""From decisions to effects: commands, questions of the engine, small talk, the executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.contracts.dialogue import LlmUnavailable
from orchestrator.dialogue.decision import Decision
from orchestrator.dialogue.understanding import Understander, open_question
from orchestrator.flows.model import ActionStep, CollectStep
from orchestrator.tasks.commands import Command, Parsed
from orchestrator.tasks.executor import Executor
from orchestrator.tasks.extraction.words import is_question
from orchestrator.tasks.processor import Applied, name_of, system_run
from orchestrator.tasks.state import Task

if TYPE_CHECKING:
    pass

from orchestrator.dialogue.brain_voice import TurnVoice

MAX_OFFERS_AGAIN = 2


class TurnDecisions(TurnVoice):
    """Carries out what was understood."""

    def _understander(self) -> Understander:
        cut_in = self._user.interrupt_hint is not None
        return Understander(self._config, self._state, self._turn.now, self.language, cut_in=cut_in)

    async def _after_talk(self) -> None:
        """Something else was talked about; the open question comes again, once."""
        self._state.confusions = 0
        self._offer_again()
        await self._execute()

    def _offer_again(self) -> None:
        """Have a paused task offered again behind what was no answer to the offer: twice, then it only waits."""
        pending = self._state.pending
        if pending is None or pending.get("kind") != "resume" or self._state.active is not None:
            return
        if int(pending.get("times", 0)) < MAX_OFFERS_AGAIN:
            self._is_offer_due = True
        else:
            self._state.pending = None

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
                self._note_talk(Command(name="cannot_handle"))
                await self.say_sentence("guard")
                await self._execute()
            else:
                await self._cannot_handle("nothing_accepted")
            return
        self._state.confusions = 0
        await self._commit_said(applied)
        if applied.nothing_to_cancel and not (commands[0].flow is None and await self._offer_undo()):
            await self.say_sentence("nothing_to_cancel")
        self._is_offer_due = self._is_offer_due or applied.offer_due
        if intent is not None:
            await self._rails.take_intent(intent, self._text)
        if rest:
            await self._talk(rest)
        await self._execute()

    def _undoable(self) -> list[tuple[ActionStep, str]]:
        """Return what the task that ended last did and can take back: the steps with their places."""
        over = self._state.finished
        found: list[tuple[ActionStep, str]] = []
        for place in over.done_values if over is not None else ():
            flow_id, _, step_id = place.partition("/")
            flow = self._config.flow(flow_id)
            step = flow.steps.get(step_id) if flow is not None else None
            if isinstance(step, ActionStep) and self.can_undo(step.action):
                found.append((step, place))
        return found

    async def _offer_undo(self) -> bool:
        """Ask whether to take back what was just done: "cancel that" with nothing running can only mean this."""
        over, found = self._state.finished, self._undoable()
        if over is None or not found:
            return False
        self._state.pending = {"kind": "undo"}
        over.ended_turn = self._state.turn
        await self.say_sentence("undo_offer", name=self._named(over, found))
        return True

    async def _undo(self) -> None:
        over, found = self._state.finished, self._undoable()
        if over is None:
            return
        undone = []
        for step, place in found:
            key = f"{over.uid}:{place}:{over.runs.get(place, 0)}:taken_back"
            if await self.undo_task_action(step, over.done_args.get(place, {}), over.done_values[place], key):
                undone.append((step, place))
        self._state.finished = None
        await self.say_sentence("undone" if undone else "not_undone", name=self._named(over, undone or found))
        await self.commit_effects()

    def _named(self, task: Task, found: list[tuple[ActionStep, str]]) -> str:
        labels = [self._done_label(task, place) for _, place in found]
        return ("；" if self.language == "zh" else "; ").join(labels)

    async def _answer_pending(self, answer: str) -> None:
        pending = self._state.pending or {}
        kind = pending.get("kind")
        self._state.pending = None
        self._state.system = None
        if kind == "confirm_action":
            task = self._state.active
            if task is not None:
                allowed = "again" if pending.get("is_again") else "yes"
                task.rerun[str(pending.get("place"))] = allowed if answer == "yes" else "no"
        elif kind == "confirm_interrupt":
            if answer == "yes":
                self._start_anyway(str(pending.get("flow")), pending.get("slots") or {})
            else:
                await self.say_sentence("kept")
        elif kind == "undo":
            await (self._undo() if answer == "yes" else self.say_sentence("stays"))
        elif kind == "stop":
            if answer == "yes" and self._state.active is not None:
                applied = self._apply((Command(name="cancel_flow"),))
                self._is_offer_due = self._is_offer_due or applied.offer_due
        elif kind == "resume":
            self._answer_resume(answer, list(pending.get("flows") or ()))
            if answer == "no":
                await self.say_sentence("dropped")
        elif kind == "clarify":
            await self._answer_clarify(answer, list(pending.get("flows") or ()))
        else:
            # "never mind" with nothing going on
            await self.say_sentence("dropped")

    async def _answer_clarify(self, answer: str, flows: list[str]) -> None:
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
            "slot_name": slot.id,
            "slot_label": slot.label_in(self.language),
            "response": {"mode": "static", "text": text},
            **extra,
        }
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
        self._offer_again()
        await self._execute(halted=offers_stop)

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

    def _new_executor(self, ask: str = "repeat") -> Executor:
        return Executor(self._state, self._setting(), self, ask=ask, offer_due=self._is_offer_due)

    async def _execute(self, *, ask: str = "repeat", halted: bool = False) -> None:
        self._executor = self._new_executor(ask)
        self._executor.halted = halted
        self._brain.work_count += 1
        await self._executor.run()
        self.report.steps += self._executor.steps
        self._is_offer_due = False
