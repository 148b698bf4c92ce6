"""Runs test conversations over the same brain as the app."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import HistoryEntry, LlmUnavailable, Message, TurnHeard, TurnInput
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import ObjectRef, RailStateChanged
from orchestrator.dialogue.brain import FlowBrain, PersonaRequest
from orchestrator.dialogue.brain_report import TurnReport
from orchestrator.dialogue.interruption import Decision, Situation, Verdict, decide
from orchestrator.dialogue.phrase_book import PhraseBook, phrase_book
from orchestrator.dialogue.rails_port import MatcherFactory, RailsPort
from orchestrator.flows.loader import Layer, Loaded, load_config
from orchestrator.flows.model import FlowConfig
from orchestrator.flows.source import Document, parse_source, read_source
from orchestrator.flows.testing.expecting import Failure, check_turn
from orchestrator.flows.testing.format import Interrupt, TestCase, TestTurn
from orchestrator.flows.testing.host import MemoryHost, MemoryReply, ScriptedLlm, StubAction, heard_until
from orchestrator.tasks.actions.builtin import builtin_actions
from orchestrator.tasks.actions.registry import ActionRegistry

log = logging.getLogger(__name__)

TURN_LIMIT_S = 60.0
RailsFactory = Callable[[FlowConfig, str], tuple[RailsPort, MatcherFactory]]
"""From a configuration and `exact` or `real` to its rails and the matcher of flow starts."""


@dataclass(slots=True)
class TurnOutcome:
    """What a turn came to."""

    replies: list[str] = field(default_factory=list)
    heard: str = ""
    report: TurnReport = field(default_factory=TurnReport)
    llm: ScriptedLlm = field(default_factory=ScriptedLlm)
    failed: str | None = None


@dataclass(slots=True)
class TestResult:
    """One test's result; `visited` and `rails` are for coverage."""

    __test__ = False

    name: str
    failures: list[Failure] = field(default_factory=list)
    visited: list[tuple[str, str, str | None]] = field(default_factory=list)
    rails: dict[str, set[int]] = field(default_factory=dict)
    config: FlowConfig | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures


class Conversation:
    """One conversation with a brain, in memory: what `mynah flows test` and the editor's try-out drive."""

    def __init__(
        self, brain: FlowBrain, clock: VirtualClock, *, language: str | None = None, book: PhraseBook | None = None
    ) -> None:
        """Start at the clock's time; `language` is what a recogniser would have reported."""
        self.brain = brain
        self.host = MemoryHost(clock=clock)
        self.clock = clock
        self.language = language
        self.book = book or phrase_book()
        self.unheard = ""
        self.last_answer = ""

    async def prepare(self) -> None:
        """Build the indexes of meaning, so that the first turn's time limit is for the turn alone."""
        prepare = getattr(self.brain.rails, "prepare", None)
        if prepare is not None:
            await prepare()
        matcher = await self.brain.flow_matcher()
        await matcher.match("hello")

    async def take(self, turn: TestTurn) -> TurnOutcome:
        """Do one turn, its interruption included."""
        llm = ScriptedLlm(script=list(turn.llm), configured=bool(turn.llm))
        outcome = TurnOutcome(llm=llm)
        if turn.vars:
            self.brain.set_vars(turn.vars)
        if turn.silence_s is not None:
            due_s = self.brain.silence_timeout_s()
            self.clock.advance(turn.silence_s)
            if due_s is None or turn.silence_s < due_s:
                return outcome
            await self._run(TurnInput(kind="silence", via="voice"), outcome, turn.interrupt)
        elif turn.event is not None:
            payload = {k: v for k, v in turn.event.items() if k != "type"}
            user = TurnInput(kind="event", event_type=str(turn.event.get("type", "")), event_payload=payload)
            await self._run(user, outcome, turn.interrupt)
        else:
            await self._say(turn.user or "", outcome, turn.interrupt, thing=turn.thing)
        return outcome

    async def _say(
        self,
        text: str,
        outcome: TurnOutcome,
        interrupt: Interrupt | None = None,
        *,
        thing: Mapping[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        if thing is None and hint is None:
            verdict = self._verdict(text, has_answer=False, sounded=False)
            if verdict.input_text is None:
                return
            text, hint = verdict.input_text, verdict.hint
        if thing is None and await self._scripted(text, outcome):
            return
        focus = None
        if thing is not None:
            focus = ObjectRef(
                type=str(thing.get("type", "")),
                id=str(thing.get("id", "")),
                title=str(thing.get("title") or ""),
                attributes=thing.get("attributes") or {},
            )
        user = TurnInput(text=text, via="typed", language=self.language, object=focus, interrupt_hint=hint)
        await self._run(user, outcome, interrupt)

    async def _scripted(self, text: str, outcome: TurnOutcome) -> bool:
        """What the turn loop does without the brain: go on, say that again."""
        if self.unheard and self.book.is_go_on(text):
            spoken = self.unheard
        elif self.last_answer and self.book.is_repeat(text) and not self._asks():
            spoken = self.last_answer
        else:
            return False
        self.unheard = ""
        outcome.replies.append(spoken)
        outcome.heard = spoken
        self.host.history += [HistoryEntry(role="user", text=text), HistoryEntry(role="assistant", text=spoken)]
        return True

    def _asks(self) -> bool:
        return self.brain.silence_timeout_s() is not None

    def _verdict(self, text: str, *, has_answer: bool, sounded: bool) -> Decision:
        """Decide, with the app's own rules, what an utterance means for the answer it came into."""
        situation = Situation(
            has_answer=has_answer,
            is_held=has_answer,
            sounded=sounded,
            during_output=False,
            recent_text="",
            is_answer=self.brain.accepts_as_answer(text, self.language),
        )
        return decide(text, rejected=False, situation=situation, book=self.book)

    async def _run(self, user: TurnInput, outcome: TurnOutcome, interrupt: Interrupt | None) -> None:
        reply = MemoryReply()
        context = self.host.turn(outcome.llm, reply)
        pending = self.brain.begin(context, user)
        kind = "completed"
        try:
            async with asyncio.timeout(TURN_LIMIT_S):
                await pending.run()
        except LlmUnavailable as error:
            outcome.failed = f"llm: {error}"
            kind = "failed"
            reply.messages.append(Message(text="The language model is not available.", source="error"))
        except asyncio.CancelledError:
            # Whoever gave the turn up may go on with the conversation.
            pending.settle(TurnHeard(outcome="interrupted", joined=True))
            raise
        except GenerationCancelled:
            kind = "interrupted"
        except Exception as error:
            # the test's result tells it; the trace back is for whoever asks for it
            log.debug("a turn failed", exc_info=True)
            outcome.failed = f"internal: {error!r}"
            kind = "failed"
            reply.messages.append(Message(text="Something went wrong inside.", source="error"))
        messages = [m for m in reply.messages if m.text.strip()]
        outcome.replies += [m.text for m in messages]
        _merge_report(outcome.report, pending.report)
        sounded = interrupt is not None and interrupt.after_words > 0 and bool(messages)
        verdict = self._verdict(interrupt.text, has_answer=True, sounded=sounded) if interrupt is not None else None
        if interrupt is None or verdict is None or verdict.verdict is Verdict.RESUME:
            self._settle(pending, user, messages, None, kind)
            outcome.heard = " ".join(m.text for m in messages)
            return
        joined = verdict.is_joined and verdict.input_text is not None
        heard = self._settle(pending, user, messages, interrupt.after_words, "interrupted", joined=joined)
        text = verdict.input_text
        if joined:
            text = f"{user.text} {text}".strip()
        if text is not None and text.strip():
            await self._say(text, outcome, hint=verdict.hint or "interrupted")
        outcome.heard = heard

    def _settle(
        self,
        pending: Any,
        user: TurnInput,
        messages: list[Message],
        words: int | None,
        kind: str,
        *,
        joined: bool = False,
    ) -> str:
        heard, text, rest = heard_until(messages, words)
        pending.settle(TurnHeard(outcome=kind, messages=heard, joined=joined))
        if joined:
            return text
        if user.kind == "user" and (user.text or user.object is not None):
            self.host.history.append(HistoryEntry(role="user", text=user.text, object=user.object))
        if text and kind != "failed":
            status = "completed" if not rest else "interrupted"
            self.host.history.append(HistoryEntry(role="assistant", text=text, status=status, unheard=rest))
            self.last_answer = " ".join(m.text for m in messages)
        self.unheard = rest
        return text


def _merge_report(into: TurnReport, more: TurnReport) -> None:
    into.commands += more.commands
    into.dropped += more.dropped
    into.actions += more.actions
    into.bot_intents += more.bot_intents
    into.traces += more.traces
    into.visited += more.visited
    into.user_intent = more.user_intent if more.user_intent is not None else into.user_intent
    into.error = into.error or more.error
    into.steps += more.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs tests. `folder` is the flow folder, `shipped` the text of the shipped system flows by file name.

    A file named by a test is looked for in `folder`, beside the test file, and in `fallback`.
    """

    folder: Path
    shipped: Mapping[str, str]
    make_rails: RailsFactory
    persona_request: PersonaRequest | None = None
    shown: str | None = None
    fallback: Path | None = None

    def load(self, test: TestCase) -> Loaded:
        """Load a test's configuration."""
        layers = [Layer.of_texts(self.shipped)]
        if test.files is None:
            layers.append(Layer.of_folder(self.folder, shown=self.shown))
        elif test.files:
            layers.append(Layer(documents=tuple(self._document(name, test.file) for name in test.files)))
        if test.config is not None:
            layers.append(Layer.of_node(test.config))
        return load_config(layers)

    def _document(self, name: str, test_file: str) -> Document:
        if not (self.folder / name).is_file():
            beside = Path(test_file).parent / name
            if test_file and beside.is_file():
                return read_source(beside, str(beside))
            if name in self.shipped:
                return parse_source(self.shipped[name], name)
            if self.fallback is not None and (self.fallback / name).is_file():
                return read_source(self.fallback / name, name)
        return read_source(self.folder / name, f"{self.shown}/{name}" if self.shown else str(self.folder / name))

    async def run(self, test: TestCase) -> TestResult:
        """Run one test."""
        result = TestResult(name=test.name)
        loaded = self.load(test)
        result.config = loaded.config
        if loaded.errors:
            result.failures.append(Failure(turn=0, key="config", expected=[], got=[str(p) for p in loaded.errors]))
            return result
        if test.trace:
            _run_trace(test, loaded.config, result)
        if test.turns:
            await self._converse(test, loaded.config, result)
        return result

    async def _converse(self, test: TestCase, config: FlowConfig, result: TestResult) -> None:
        clock = VirtualClock(0.0, test.now.replace(tzinfo=UTC))
        conversation = self.conversation(
            config, clock, stubs=test.actions, embedding=test.embedding, language=test.language
        )
        brain = conversation.brain
        if test.vars:
            brain.set_vars(test.vars)
        brain.put_slots(test.slots)
        if test.embedding == "real":
            await conversation.prepare()
        for number, turn in enumerate(test.turns, start=1):
            outcome = await conversation.take(turn)
            result.visited += outcome.report.visited
            result.failures += check_turn(number, turn, outcome, brain)
        for payload in conversation.host.events:
            if isinstance(payload, RailStateChanged):
                result.rails.setdefault(payload.rail, set()).add(payload.head)

    def conversation(
        self,
        config: FlowConfig,
        clock: VirtualClock,
        *,
        stubs: Mapping[str, Mapping[str, Any]] | None = None,
        embedding: str = "exact",
        language: str | None = None,
    ) -> Conversation:
        """Make a conversation with a configuration; also for the editor's try-out."""
        rails, matcher = self.make_rails(config, embedding)
        actions = ActionRegistry([*builtin_actions(), *(StubAction(n, s, clock) for n, s in (stubs or {}).items())])
        brain = FlowBrain(
            config, rails=rails, actions=actions, matcher=matcher, persona_request=self.persona_request, clock=clock
        )
        return Conversation(brain, clock, language=language)


def _run_trace(test: TestCase, config: FlowConfig, result: TestResult) -> None:
    from orchestrator.rails.trace import TraceError, run_trace

    try:
        mismatches, _ = run_trace(config.rails, test.trace, variables=test.vars, slots=test.slots, now=test.now)
    except TraceError as error:
        result.failures.append(Failure(turn=0, key="trace", expected="events", got=str(error)))
        return
    for mismatch in mismatches:
        result.failures.append(
            Failure(turn=mismatch.number + 1, key="trace", expected=mismatch.expected, got=mismatch.got)
        )


async def run_tests(runner: Runner, tests: Sequence[TestCase], only: str | None = None) -> list[TestResult]:
    """Run tests in order; `only` is a regular expression on names."""
    chosen = [t for t in tests if only is None or re.search(only, t.name)]
    return [await runner.run(test) for test in chosen]
