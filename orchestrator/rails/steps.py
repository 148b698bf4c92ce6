"""Carries out single steps: words, actions, extracted values. What it did comes back as the machine's next event."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.contracts.dialogue import LlmRequest, LlmUnavailable
from orchestrator.dialogue.rails_port import RailsHost
from orchestrator.rails.answers import Unparsable, clean_message, clean_stream, parse_value
from orchestrator.rails.env import BoundEvaluator
from orchestrator.rails.model import RailsConfig
from orchestrator.rails.phrases import MODEL_FAILED, NOT_SURE, STEP_FAILED, phrase
from orchestrator.rails.program import Actionable, Bot, Do, Extract, Say, Stop
from orchestrator.rails.prompts import Prompts
from orchestrator.rails.state import EvalFailed, EventKind, NextStep, RailEvent
from orchestrator.rails.words import Peeked, SingleCall, one_chunk, predefined, variable_text

_LOG = logging.getLogger(__name__)


class TurnFailed(Exception):  # noqa: N818 - ends a turn, with a sentence
    """The turn can't go on. `table` is what is said about it."""

    def __init__(self, reason: str, table: dict[str, str], *, part: str = "rails") -> None:
        super().__init__(reason)
        self.reason = reason
        self.table = table
        self.part = part


class StepFailed(Exception):  # noqa: N818 - the step takes its error branch
    """A step could not be done; `table` is what is said about it where there is no error branch."""

    def __init__(self, reason: str, table: dict[str, str] = STEP_FAILED, *, part: str = "rails") -> None:
        super().__init__(reason)
        self.table = table
        self.part = part


@dataclass(slots=True)
class Spoken:
    """A message of this turn: which event of the machine it stands for. `text` None while it streams."""

    event: RailEvent | None
    text: str | None = None


Guard = Callable[[str], Awaitable[str | None]]


@dataclass(slots=True)
class Stepper:
    """The means of one turn. `guard` runs the output rails of a sentence, `guard_reply` those of a whole reply."""

    host: RailsHost
    config: RailsConfig
    prompts: Prompts
    evaluator: BoundEvaluator
    language: str
    chooser: random.Random | None
    guard: Guard | None
    guard_reply: Guard | None
    text: str = ""
    single_call: SingleCall | None = None
    spoken: list[Spoken] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    last_text: str | None = None
    _rounds: dict[str, int] = field(default_factory=dict)
    _interruptible: bool = True

    def spoken_texts(self) -> list[str | None]:
        """Return the texts of this turn's messages; None for one whose stream did not end."""
        return [message.text for message in self.spoken]

    async def perform(self, step: NextStep, variables: Mapping[str, Any], *, guarded: bool = True) -> RailEvent:
        """Do one step. Raises `StepFailed`, `EvalFailed` or `TurnFailed`."""
        self.host.turn.check()
        uid = step.uid or None
        doing: Actionable = step.step  # type: ignore[assignment]
        self._interruptible = doing.interruptible if isinstance(doing, Bot | Say) else True
        match doing:
            case Bot():
                return await self._bot(doing, uid, variables, guarded)
            case Say():
                event = RailEvent(kind=EventKind.SAY, name=doing.text, uid=uid)
                await self._say(self.evaluator.render(doing.text, variables), None, event)
                return event
            case Do():
                return await self._do(doing, step, variables)
            case Extract():
                return await self._extract(doing, uid)
            case Stop():
                return RailEvent(kind=EventKind.STOPPED, uid=uid)

    # --- words -----------------------------------------------------------------------------------------

    async def _bot(self, step: Bot, uid: int | None, variables: Mapping[str, Any], guarded: bool) -> RailEvent:
        event = RailEvent(kind=EventKind.BOT, name=step.intent, uid=uid)
        self.host.note_bot_intent(step.intent)
        variants = self.config.bot_messages.get(step.intent)
        if variants:
            text = predefined(variants, self.language, self.evaluator, variables, self.chooser)
            await self._say(text, step.intent, event)
            return event
        known = variable_text(step.intent, variables)
        if known is not None:
            await self._stream(one_chunk(known), step.intent, event, guarded)
            return event
        await self._model_words(step.intent, event, guarded)
        return event

    async def _model_words(self, intent: str, event: RailEvent, guarded: bool) -> None:
        if not self.host.turn.llm.is_configured:
            raise StepFailed("no language model for these words", MODEL_FAILED, part="llm")
        call = self.single_call
        if call is not None and call.has_words_for(intent):
            if await self._speak_model(call.words(), intent, event, guarded):
                return
            if not self.config.settings.fallback_to_multiple_calls:
                await self._say(phrase(NOT_SURE, self.language), intent, event)
                return
        request = await self.prompts.bot_message(intent, self.text, self.host.turn.history, self.language)
        if not await self._speak_model(clean_stream(self.host.turn.llm.stream(request)), intent, event, guarded):
            await self._say(phrase(NOT_SURE, self.language), intent, event)

    async def _speak_model(self, chunks: AsyncIterator[str], intent: str, event: RailEvent, guarded: bool) -> bool:
        """Speak what the model writes; False when it writes nothing."""
        words = Peeked(chunks)
        try:
            if not await words.has_text():
                return False
            await self._stream(words.stream(), intent, event, guarded)
        except LlmUnavailable as error:
            raise StepFailed(str(error), MODEL_FAILED, part="llm") from error
        finally:
            await words.aclose()
        return True

    async def say_error(self, table: dict[str, str]) -> None:
        """Speak a sentence of our own about something that went wrong."""
        self._interruptible = True
        await self._say(phrase(table, self.language), None, None, source="system")

    async def _say(self, text: str, intent: str | None, event: RailEvent | None, source: str = "rail") -> None:
        self.spoken.append(Spoken(event=event, text=text))
        await self.host.say(text, bot_intent=intent, source=source, interruptible=self._interruptible)
        self.last_text = text

    async def _stream(self, chunks: AsyncIterator[str], intent: str, event: RailEvent, guarded: bool) -> None:
        guard = self.guard if guarded else None
        if guarded and self.guard_reply is not None:
            whole = clean_message("".join([chunk async for chunk in chunks]))
            allowed = await self.guard_reply(whole)
            if not allowed:
                return
            chunks = one_chunk(allowed)
        message = Spoken(event=event)
        self.spoken.append(message)
        message.text = await self.host.speak(chunks, bot_intent=intent, guard=guard, interruptible=self._interruptible)
        self.last_text = message.text

    # --- actions and values ----------------------------------------------------------------------------

    async def _do(self, step: Do, next_step: NextStep, variables: Mapping[str, Any]) -> RailEvent:
        args = self.evaluator.argument(dict(step.args), variables)
        place = f"{next_step.rail}/{step.action}"
        self._rounds[place] = self._rounds.get(place, 0) + 1
        key = f"{next_step.uid}:{place}:{self._rounds[place]}"
        outcome = await self.host.run_action(step.action, args, key=key)
        if not outcome.ok:
            _LOG.info("action %s of rail %s failed", step.action, next_step.rail)
            raise StepFailed(outcome.error or f"{step.action} failed")
        if step.save_to:
            self.kept[step.save_to] = outcome.value
        return RailEvent(kind=EventKind.DONE, name=step.action, uid=next_step.uid or None, value=outcome.value)

    async def _extract(self, step: Extract, uid: int | None) -> RailEvent:
        request = self.prompts.value(step.instruction, step.type, self.text, self.host.turn.history)
        try:
            answer = await self.ask(request)
        except TurnFailed as error:
            raise StepFailed(error.reason, error.table, part=error.part) from error
        try:
            value = parse_value(answer, step.type)
        except Unparsable as error:
            raise StepFailed(f"{step.var}: {error}") from error
        return RailEvent(kind=EventKind.EXTRACTED, name=step.var, uid=uid, value=value)

    async def ask(self, request: LlmRequest) -> str:
        """Return a whole answer. Raises `TurnFailed` when the model can't be asked."""
        try:
            return await self.host.turn.llm.complete(request)
        except LlmUnavailable as error:
            raise TurnFailed(str(error), MODEL_FAILED, part="llm") from error


def failed_event(step: NextStep) -> RailEvent:
    """Return the event of a step that could not be done."""
    name = step.step.action if isinstance(step.step, Do) else ""
    return RailEvent(kind=EventKind.FAILED, name=name, uid=step.uid or None)


__all__ = ["EvalFailed", "Spoken", "StepFailed", "Stepper", "TurnFailed", "failed_event"]
