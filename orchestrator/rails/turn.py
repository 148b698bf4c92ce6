"""Rails in one turn, on a copy of their state: the loop until nothing is left to do but listen."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any

from orchestrator.contracts.dialogue import LlmUnavailable, TurnHeard
from orchestrator.contracts.events import RailIntentFound, RailStateChanged
from orchestrator.dialogue.rails_port import RailsHost, Screened
from orchestrator.rails.answers import parse_bot_intent, parse_small_rail, parse_user_intent
from orchestrator.rails.embedder import EmbeddingFailed
from orchestrator.rails.env import BoundEvaluator, Expressions
from orchestrator.rails.knowledge import IntentMatch, Knowledge
from orchestrator.rails.language import language_of
from orchestrator.rails.machine import accepts, awaited_intents, end_turn, enter, start_lines, step
from orchestrator.rails.model import UNKNOWN_INTENT, RailsConfig
from orchestrator.rails.persist import dump_state
from orchestrator.rails.phrases import MODEL_FAILED, STEP_FAILED, TOO_LONG
from orchestrator.rails.program import Bot, Stop
from orchestrator.rails.prompts import Prompts
from orchestrator.rails.state import (
    FALLBACK_PRIORITY,
    EvalFailed,
    EventKind,
    Failure,
    MachineState,
    NextStep,
    RailEvent,
    RailSet,
    Transition,
)
from orchestrator.rails.steps import StepFailed, Stepper, TurnFailed, failed_event
from orchestrator.rails.words import SingleCall

_LOG = logging.getLogger(__name__)


class RailsTurn:
    """Implements `dialogue.rails_port.RailsTurn`."""

    def __init__(
        self,
        *,
        config: RailsConfig,
        rails: RailSet,
        screens: RailSet,
        knowledge: Knowledge,
        prompts: Prompts,
        expressions: Expressions,
        state: MachineState,
        host: RailsHost,
        chooser: random.Random | None,
    ) -> None:
        self._config = config
        self._rails = rails
        self._screens = screens
        self._knowledge = knowledge
        self._host = host
        text = host.user.text
        language = host.language or language_of(text)
        built_in: dict[str, Any] = {"language": language}
        if text:
            built_in |= {"user_message": text, "last_user_message": text}
        self._before = state
        self._state = replace(state, vars={**state.vars, **built_in})
        sentence = any(o.scope == "sentence" for o in config.output_rails)
        reply = any(o.scope == "reply" for o in config.output_rails)
        self._stepper = Stepper(
            host=host,
            config=config,
            prompts=prompts,
            evaluator=BoundEvaluator(expressions, host.names),
            language=language,
            chooser=chooser,
            guard=self.guard_sentence if sentence else None,
            guard_reply=self.guard_reply if reply else None,
            text=text,
        )
        self._prompts = prompts
        self._events = 0
        self._is_blocked = False
        self._is_screening = False
        self._failure = TurnFailed("a step failed", STEP_FAILED)
        self._trace: list[str] = []
        self._fed: str | None = None
        self._marks: list[MachineState] = []
        self._matched: dict[str, IntentMatch | None] = {}

    # --- variables -------------------------------------------------------------------------------------

    @property
    def vars(self) -> Mapping[str, Any]:
        """The rail variables as they are now."""
        return self._state.vars

    def set_vars(self, values: Mapping[str, Any]) -> None:
        """Set variables from outside."""
        self._state = replace(self._state, vars={**self._state.vars, **values})

    def note_bot_text(self, text: str, source: str) -> None:
        """Remember what others said; what an output rail says meanwhile does not replace what it looks at."""
        if not self._is_screening:
            self.set_vars({"bot_message": text})

    def accepts(self, text: str) -> bool:
        """Whether a safety rail or a rail that waits now takes these very words."""
        return is_awaited(self._config, self._rails, self._state, text)

    # --- what the brain calls, in the order of a turn --------------------------------------------------

    async def screen_input(self, text: str) -> Screened:
        """Run the input rails; a failing one blocks."""
        self.set_vars({"user_message": text, "last_user_message": text})
        self._stepper.text = text
        for name in self._config.input_rails:
            if await self._screen(name):
                return Screened(text=str(self.vars.get("user_message") or ""), is_blocked=True)
        text = str(self.vars.get("user_message") or "")
        self._stepper.text = text
        return Screened(text=text)

    async def run_always(self, text: str) -> bool:
        """Let a safety rail answer."""
        if not text.strip():
            return False
        found = await self._find(text, always=True)
        if found is None:
            return False
        return await self._closing(self._answer_found(found, is_safety=True))

    async def match(self, text: str) -> bool:
        """Answer what is recognised without a model call."""
        if not text.strip() or self._fed is not None:
            return False
        found = await self._find(text)
        if found is not None:
            return await self._closing(self._answer_found(found))
        unknown = RailEvent(kind=EventKind.USER, name=UNKNOWN_INTENT)
        if not self._may_ask() and accepts(self._rails, self._state, unknown):
            return await self._closing(self._take(UNKNOWN_INTENT))
        return False

    async def decide(self, text: str) -> bool:
        """Find the intent with the model, or take the fallback intent, and answer."""
        if not self._config.user_intents and not self._config.rails:
            return False
        return await self._closing(self._decide(text))

    async def take_intent(self, intent: str, text: str) -> bool:
        """Answer an intent found elsewhere."""
        name = self._named(intent)
        if name == self._fed:
            return False
        self._emit_intent(IntentMatch(intent=name, score=0.0, margin=0.0, by="llm"), scored=False)
        return await self._closing(self._take_or_ask(name, text))

    async def handle_event(self, event_type: str, payload: Mapping[str, Any]) -> bool:
        """Give rails an event that is no speech."""
        self.set_vars({"event": {"type": event_type, **payload}})
        return await self._closing(self._external(event_type, payload))

    async def guard(self, sentence: str) -> str | None:
        """Run the output rails over a sentence; with a reply-scope rail the caller passes the whole reply."""
        allowed: str | None = sentence
        for scope in ("reply", "sentence"):
            if allowed:
                allowed = await self._screen_output(allowed, scope)
        return allowed

    async def guard_sentence(self, sentence: str) -> str | None:
        """Run the output rails of sentence scope."""
        return await self._screen_output(sentence, "sentence")

    async def guard_reply(self, reply: str) -> str | None:
        """Run the output rails of reply scope."""
        return await self._screen_output(reply, "reply")

    # --- intents ---------------------------------------------------------------------------------------

    async def _find(self, text: str, *, always: bool = False) -> IntentMatch | None:
        key = f"{always}{text}"
        if key not in self._matched:
            try:
                search = self._knowledge.find_safety_intent if always else self._knowledge.find_intent
                self._matched[key] = await search(text)
            except EmbeddingFailed as error:
                _LOG.warning("no embedding for this turn (%s)", error)
                self._matched[key] = None
        return self._matched[key]

    def _may_ask(self) -> bool:
        return not self._config.settings.embeddings_only and self._host.turn.llm.is_configured

    def _named(self, intent: str) -> str:
        known = self._config.known_intent(intent)
        if known is not None:
            return known
        settings = self._config.settings
        if settings.closed_intents and intent != UNKNOWN_INTENT:
            return settings.fallback_intent or UNKNOWN_INTENT
        return intent

    def _emit_intent(self, found: IntentMatch, *, scored: bool = True) -> None:
        self._host.note_user_intent(found.intent)
        score, margin = (round(found.score, 4), round(found.margin, 4)) if scored else (None, None)
        self._host.turn.emit(RailIntentFound(intent=found.intent, score=score, margin=margin, by=found.by))

    async def _answer_found(self, found: IntentMatch, *, is_safety: bool = False) -> bool:
        self._emit_intent(found)
        return await self._take(found.intent, is_safety=is_safety)

    async def _take_or_ask(self, intent: str, text: str) -> bool:
        if await self._take(intent):
            return True
        return self._config.known_intent(intent) is not None and await self._next_by_model(text)

    async def _decide(self, text: str) -> bool:
        if self._fed is None:
            intent = await self._intent_by_model(text) if self._may_ask() else self._config.settings.fallback_intent
            if intent is not None:
                by = "llm" if self._may_ask() else "rule"
                self._emit_intent(IntentMatch(intent=intent, score=0.0, margin=0.0, by=by), scored=False)
            if await self._take(intent or UNKNOWN_INTENT):
                return True
            if intent is None:
                return False
        return await self._next_by_model(text)

    async def _intent_by_model(self, text: str) -> str | None:
        if not self._config.user_intents:
            return None
        history = self._host.turn.history
        if self._config.settings.single_call:
            intent = await self._single_call(text)
            if intent is not None:
                return self._named(intent)
            if not self._config.settings.fallback_to_multiple_calls:
                raise TurnFailed("the single call can't be parsed", STEP_FAILED)
        answer = await self._stepper.ask(await self._prompts.user_intent(text, history))
        return self._named(parse_user_intent(answer))

    async def _single_call(self, text: str) -> str | None:
        request = await self._prompts.combined(text, self._host.turn.history, self._stepper.language)
        call = SingleCall(self._host.turn.llm.stream(request))
        self._stepper.single_call = call
        try:
            head = await call.read_head()
        except LlmUnavailable as error:
            raise TurnFailed(str(error), MODEL_FAILED, part="llm") from error
        if head is None:
            await self._close_call()
            return None
        return head.intent

    async def _close_call(self) -> None:
        call, self._stepper.single_call = self._stepper.single_call, None
        if call is not None:
            await call.aclose()

    # --- the loop --------------------------------------------------------------------------------------

    async def _take(self, intent: str, *, is_safety: bool = False) -> bool:
        """Feed the user's intent; True if a rail decides what comes next."""
        transition = self._feed(RailEvent(kind=EventKind.USER, name=intent, is_safety=is_safety))
        self._fed = intent
        best = transition.next
        if best is None:
            return False
        if best.priority < FALLBACK_PRIORITY and self._host.turn.llm.is_configured:
            return False
        await self._loop(best)
        return True

    async def _next_by_model(self, text: str) -> bool:
        """Let the model decide the next step; False if there is no model and no rail to do it."""
        if not self._host.turn.llm.is_configured:
            return False
        intent = self._fed or UNKNOWN_INTENT
        call = self._stepper.single_call
        if call is not None and call.head is not None:
            lines = [f"bot {call.head.bot_intent}"]
        else:
            request = await self._prompts.next_step(intent, text, self._host.turn.history)
            answer = await self._stepper.ask(request)
            if self._config.settings.multi_step:
                lines = parse_small_rail(answer)
            else:
                lines = [f"bot {parse_bot_intent(answer)}"]
        if len(lines) == 1:
            found = NextStep(uid=0, rail="model", step=Bot(intent=lines[0][4:]), priority=FALLBACK_PRIORITY)
        else:
            self._state, found = start_lines(self._state, lines)
        await self._loop(found)
        return True

    async def _external(self, event_type: str, payload: Mapping[str, Any]) -> bool:
        transition = self._feed(RailEvent(kind=EventKind.EXTERNAL, name=event_type, payload=payload))
        if transition.next is not None:
            await self._loop(transition.next)
        return transition.moved

    async def _loop(self, found: NextStep | None) -> None:
        while found is not None:
            if isinstance(found.step, Stop):
                self._feed(RailEvent(kind=EventKind.STOPPED, uid=found.uid))
                return
            event = await self._perform(found)
            transition = self._feed(event)
            if event.kind is EventKind.FAILED and not transition.moved:
                raise self._failure
            if self._is_blocked:
                return
            found = transition.next

    async def _perform(self, found: NextStep) -> RailEvent:
        if isinstance(found.step, Failure):
            return self._note_failure(found, EvalFailed(found.step.reason))
        said = len(self._stepper.spoken)
        self._marks.extend([self._state] * (said - len(self._marks)))
        self._marks.append(self._state)
        try:
            event = await self._stepper.perform(found, self._state.vars)
        except (EvalFailed, StepFailed) as error:
            event = self._note_failure(found, error)
        del self._marks[len(self._stepper.spoken) :]
        if self._stepper.last_text is not None:
            self.set_vars({"bot_message": self._stepper.last_text})
            self._stepper.last_text = None
        return event

    def _note_failure(self, found: NextStep, error: EvalFailed | StepFailed) -> RailEvent:
        """Return the event of a failed step, and keep what to say should it have no error branch."""
        _LOG.info("rail %s: %s", found.rail, error)
        table, part = (error.table, error.part) if isinstance(error, StepFailed) else (STEP_FAILED, "rails")
        self._failure = TurnFailed(f"{found.rail}: {error}", table, part=part)
        return failed_event(found)

    def _feed(self, event: RailEvent) -> Transition:
        self._events += 1
        # A model may have made an intent of the user's own words, which belong in no log.
        is_open = event.kind is EventKind.USER and self._config.known_intent(event.name) is None
        self._trace.append(f"{event.kind} {'…' if is_open else event.name}")
        if self._events > self._config.settings.max_events:
            _LOG.warning("more than %d events in one turn: … %s", self._events - 1, "; ".join(self._trace[-12:]))
            raise TurnFailed("too many events in one turn", TOO_LONG)
        transition = step(self._rails, self._state, event, self._stepper.evaluator)
        self._state = transition.state
        for changed in transition.changed:
            bot = transition.next.step if transition.next is not None and transition.next.uid == changed.uid else None
            payload = RailStateChanged(
                rail=changed.rail,
                status=changed.status.value,
                head=changed.head,
                bot_intent=bot.intent if isinstance(bot, Bot) else None,
            )
            self._host.turn.emit(payload)
        return transition

    async def _closing(self, work: Awaitable[bool]) -> bool:
        """Run one of the brain's calls; a failure is spoken, and the single call's stream is closed."""
        answered = False
        try:
            answered = await work
        except TurnFailed as failure:
            await self._failed(failure)
            answered = True
        finally:
            if self._stepper.single_call is not None:
                await self._close_call()
        return answered

    async def _failed(self, failure: TurnFailed) -> None:
        _LOG.warning("turn failed in %s: %s", failure.part, failure.reason)
        self._host.fail(failure.part, failure.reason)
        await self._stepper.say_error(failure.table)

    # --- rails on what is said -------------------------------------------------------------------------

    async def _screen_output(self, text: str, scope: str) -> str | None:
        for output in self._config.output_rails:
            if output.scope != scope:
                continue
            self.set_vars({"bot_message": text})
            if await self._screen(output.rail):
                self._is_blocked = True
                return None
            text = str(self.vars.get("bot_message") or "")
            if not text.strip():
                return ""
        return text

    async def _screen(self, name: str) -> bool:
        """Run a subrail from its first step to its end; True when it stopped the processing (or failed)."""
        before = self._stepper.last_text
        self._is_screening = True
        try:
            return await self._screen_loop(name)
        except TurnFailed as failure:
            await self._failed(failure)
            return True
        finally:
            self._is_screening = False
            self._stepper.last_text = before

    async def _screen_loop(self, name: str) -> bool:
        evaluator = self._stepper.evaluator
        transition = enter(self._screens, name, self._state.vars, evaluator)
        events = 0
        while True:
            self._state = replace(self._state, vars=transition.state.vars)
            found = transition.next
            if found is None:
                return False
            if isinstance(found.step, Stop):
                return True
            events += 1
            if events > self._config.settings.max_events:
                raise TurnFailed(f"too many events in {name}", TOO_LONG)
            event = await self._screen_step(found)
            state = replace(transition.state, vars={**transition.state.vars, **self._state.vars})
            transition = step(self._screens, state, event, evaluator)
            if event.kind is EventKind.FAILED and not transition.moved:
                raise self._failure

    async def _screen_step(self, found: NextStep) -> RailEvent:
        if isinstance(found.step, Failure):
            return self._note_failure(found, EvalFailed(found.step.reason))
        try:
            return await self._stepper.perform(found, self._state.vars, guarded=False)
        except (EvalFailed, StepFailed) as error:
            return self._note_failure(found, error)

    # --- the end ---------------------------------------------------------------------------------------

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Return the state after the turn, by what of it was heard."""
        return dump_state(self._rails, end_turn(self._rails, self._state_as_heard(heard)))

    def _state_as_heard(self, heard: TurnHeard) -> MachineState:
        spoken = self._stepper.spoken
        sounded = any(message.sounded for message in heard.messages)
        if heard.joined or (heard.outcome != "completed" and not sounded):
            return replace(self._before, vars={**self._before.vars, **self._stepper.kept})
        if heard.outcome == "completed" or not spoken:
            return self._state
        last = _last_sounded(self._stepper.spoken_texts(), heard)
        if last is None:
            return replace(self._before, vars=self._state.vars)
        if last + 1 < len(self._marks):
            return replace(self._marks[last + 1], vars=self._state.vars)
        return self._after_cut(last)

    def _after_cut(self, last: int) -> MachineState:
        """Return the state when the last message sounded but was cut while it was still being made."""
        message = self._stepper.spoken[last]
        if message.text is not None or message.event is None:
            return self._state
        return step(self._rails, self._state, message.event, self._stepper.evaluator).state


def is_awaited(config: RailsConfig, rails: RailSet, state: MachineState, text: str) -> bool:
    """Whether `text` is literally an example of what starts a safety rail or of what a running rail waits for."""
    if not config.user_intents:
        return False
    return config.has_literal_example(text, config.always_intents | awaited_intents(rails, state))


def _last_sounded(texts: list[str | None], heard: TurnHeard) -> int | None:
    """Return which of our messages was the last to sound, going through both lists in order."""
    found: int | None = None
    at = 0
    for message in heard.messages:
        while at < len(texts) and not _same(texts[at], message.text):
            at += 1
        if at >= len(texts):
            at = found + 1 if found is not None else 0
            continue
        if message.sounded:
            found = at
        at += 1
    return found


def _same(own: str | None, other: str) -> bool:
    return own is None or own.strip() == other.strip()
