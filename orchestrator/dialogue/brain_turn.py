"""One turn of the brain: the cascade from the input rails down to the persona, on a copy of the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.contracts.dialogue import LlmUnavailable, TurnContext, TurnHeard, TurnInput
from orchestrator.contracts.events import FlowStateChanged
from orchestrator.dialogue import offers
from orchestrator.dialogue.decision import Decision
from orchestrator.dialogue.example_patterns import Filled, inferred
from orchestrator.dialogue.phrases import match_phrase, shares_word, what_to_stop
from orchestrator.dialogue.self_corrections import corrected, splits
from orchestrator.dialogue.understanding import Understander, open_question
from orchestrator.flows.model import ActionStep, CollectStep
from orchestrator.flows.texts import language_of
from orchestrator.tasks.actions.companion import CancelReminder, likeness
from orchestrator.tasks.commands import Command, parse_commands, parse_plan
from orchestrator.tasks.extraction.words import is_question
from orchestrator.tasks.planning import plan_request
from orchestrator.tasks.processor import Applied, current_step, expire
from orchestrator.tasks.settling import fold_cut, keep_what_was_said
from orchestrator.tasks.state import FOCUS_TURNS, Task

if TYPE_CHECKING:
    from orchestrator.dialogue.brain import FlowBrain

from orchestrator.dialogue.brain_decisions import TurnDecisions

SAME_THING = 0.5
"""How much of what is to be cancelled has to be in a reminder."""


class FlowTurn(TurnDecisions):
    """A `PendingTurn`: decides and speaks; also what the executor and the rails see of the turn."""

    def __init__(self, brain: FlowBrain, turn: TurnContext, user: TurnInput) -> None:
        """Start from the brain's committed state."""
        super().__init__(brain, turn, user)
        # rails ask for the names while they begin
        self._rails = brain.rails.begin(brain.rails_state, self)
        if brain.host_vars:
            self._rails.set_vars(brain.take_host_vars())

    def rails_accept(self, text: str) -> bool:
        """Whether a safety rail or a rail that waits now takes these very words."""
        return self._rails.accepts(text)

    async def run(self) -> None:
        """Decide and speak."""
        for flow in expire(self._state, self._turn.now):
            self.trace(f"{flow} was paused too long and is forgotten")
        self._age_focus()
        self._take_object()
        await self._tell_untold()
        await self._tell_gone()
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
                "type": thing.type,
                "id": thing.id,
                "title": thing.title,
                "attributes": dict(thing.attributes),
                "tried": [],
            }
            self._state.focus_turn = self._state.turn

    async def _tell_untold(self) -> None:
        while self._state.untold:
            text = self._state.untold[0]
            await self.say_text(text, source="system", after_effect=True)
            self._state.untold.pop(0)

    async def _tell_gone(self) -> None:
        """Say first of all that a task has ended because its flow is gone: whatever comes now, it is not the answer."""
        if any(run.context.get("reason") == "gone" for run in self._state.queue):
            await self._execute(halted=True)

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
        if self._state.pending is not None and self._state.pending.get("kind") not in ("confirm_action", "resume"):
            self._state.pending = None
        decision = understander.typed(text) or offers.typed_answer(understander, text)
        if decision is not None:
            await self._act(decision)
            return
        # words that fit an example of a flow to the letter are meant for it; a rail is only like them
        filled = None if self.rails_accept(text) else self._filled(understander, text)
        if filled is None and await self._rails.match(text):
            await self._after_talk()
            return
        decision = await self._flow_start(understander, text)
        # "not that" is no answer to what was asked, however free the question
        if decision is None and self._user.interrupt_hint != "objection":
            now_known = self._understander()
            decision = now_known.free(text) or offers.free_answer(now_known, text)
        if decision is not None:
            await self._act(decision)
            return
        await self._ask_model(text)

    async def _flow_start(self, understander: Understander, text: str) -> Decision | None:
        filled = self._filled(understander, text)
        if filled is not None:
            start = Command(name="start_flow", flow=filled.flow)
            return Decision(commands=(start, Command(name="set_slots", slots=filled.slots)))
        what = what_to_stop(text)
        if what and not self._is_about_flows(what):
            return await self._cancel_by_words(what)
        decision = await understander.start(text, await self._brain.flow_matcher())
        flow = self._config.flow(decision.commands[0].flow or "") if decision is not None else None
        if decision is None or flow is None:
            return None
        if _names_what_to_cancel(text) and not any(_names_what_to_cancel(example) for example in flow.examples):
            # "cancel the mood check" is like what starts one, and there is none to cancel
            return Decision(commands=(Command(name="cancel_flow", flow=flow.id),))
        values = inferred(self._config, flow, text, self._turn.now)
        if not values:
            return decision
        extra = Command(name="set_slots", slots=values, provenance="inferred")
        return replace(decision, commands=(*decision.commands, extra))

    def _is_about_flows(self, what: str) -> bool:
        """Whether what is to be cancelled is named in anything people say to the flows that there are."""
        flows = self._config.user_flows().values()
        return any(
            shares_word(what, (*flow.examples, *flow.name.all_raw(), flow.id.replace("_", " "))) for flow in flows
        )

    async def _cancel_by_words(self, what: str) -> Decision | None:
        """Cancel the reminder that has the named thing in it: "cancel the meeting" with one about a meeting."""
        if not any(likeness(what, r.text) >= SAME_THING for r in await self._turn.reminders.list()):
            return None
        for flow in self._config.user_flows().values():
            asked = [s.slot for s in flow.steps.values() if isinstance(s, CollectStep)]
            cancels = any(isinstance(s, ActionStep) and s.action == CancelReminder.name for s in flow.steps.values())
            if cancels and asked and self._config.slots[asked[0]].is_free_text:
                start = Command(name="start_flow", flow=flow.id)
                return Decision(commands=(start, Command(name="set_slots", slots={asked[0]: what})))
        return None

    def _filled(self, understander: Understander, text: str) -> Filled | None:
        """Fit an example with places, perhaps to what stands before a correction of it."""
        patterns, now = self._brain.patterns, self._turn.now
        for split in splits(text):
            first = patterns.match(split.head, now)
            meant = corrected(understander, first.flow, first.slots, split) if first is not None else None
            if first is not None and meant:
                return replace(first, slots=meant)
        return patterns.match(text, now)

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
        if not llm.is_configured and what_to_stop(text):
            await self.say_sentence("nothing_like_that")
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
            self._config,
            self._state,
            text=text,
            names=self.names(),
            history=self._turn.history,
            language=self.language,
            question=question,
            intents=self._brain.rails.user_intents(),
        )
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

    def _emit_state(self) -> None:
        state = self._state
        self.emit(
            FlowStateChanged(
                active_task=state.active.root if state.active is not None else None,
                step=state.active.step if state.active is not None else None,
                system_flow=state.system.flow if state.system is not None else None,
                paused=tuple(t.root for t in state.paused),
            )
        )

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Fold the turn into the brain's state."""
        self._brain.note_settled(self)
        rails_state = self._rails.settle(heard)
        sounded = frozenset(m.key for m in heard.messages if m.sounded and m.key is not None)
        state = self._state
        if heard.joined:
            state = keep_what_was_said(self._base, state, at=self._turn.now.isoformat(), is_undone=True)
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


def _names_what_to_cancel(text: str) -> bool:
    phrase = match_phrase(text)
    return phrase is not None and phrase.kind == "cancel_named"


def _is_failed_answer(text: str) -> bool:
    """Whether a text without question marks is short enough to be a misunderstood answer."""
    if is_question(text):
        return False
    chinese = language_of(text) == "zh"
    return len(text) <= 8 if chinese else len(text.split()) <= 4
