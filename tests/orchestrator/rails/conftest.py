"""A conversation with rails alone: scripted model, scripted actions, everything said is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.contracts.dialogue import LlmRequest, LlmUnavailable, MessageHeard, TurnHeard, TurnInput
from orchestrator.dialogue.rails_port import ActionOutcome
from orchestrator.flows.source import parse_source
from orchestrator.rails.embedder import ExactEmbedder
from orchestrator.rails.env import ExpressionRules
from orchestrator.rails.index import VectorStore
from orchestrator.rails.runtime import Rails
from orchestrator.rails.validate import load_rails


class ScriptedLlm:
    """Answers in order; a call that is not in the script fails the test."""

    can_plan = False

    def __init__(self, script: Sequence[tuple[str, str | None]] | None) -> None:
        self.script = list(script or ())
        self.is_configured = script is not None
        self.requests: list[LlmRequest] = []
        self.open_streams = 0

    def _next(self, request: LlmRequest) -> str:
        self.requests.append(request)
        assert self.script, f"unexpected call {request.task}"
        task, text = self.script.pop(0)
        assert task == request.task, f"{request.task} was asked where {task} was to come"
        if text is None:
            raise LlmUnavailable("down")
        return text

    async def complete(self, request: LlmRequest) -> str:
        return self._next(request)

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        text = self._next(request)
        self.open_streams += 1
        try:
            for start in range(0, len(text), 3):
                yield text[start : start + 3]
        finally:
            self.open_streams -= 1

    def prompt(self, number: int) -> str:
        return "\n".join(m.content for m in self.requests[number].messages)


@dataclass
class Turn:
    """What one turn did."""

    replies: list[str] = field(default_factory=list)
    user_intent: str | None = None
    bot_intents: list[str] = field(default_factory=list)
    actions: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    error: str | None = None
    answered: bool = False
    events: list[Any] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    protected: list[str] = field(default_factory=list)


class Host:
    """Implements `RailsHost`."""

    def __init__(self, talk: Talk, user: TurnInput, llm: ScriptedLlm) -> None:
        self.talk = talk
        self.user = user
        self.language = None
        self.result = Turn()
        self.turn = SimpleNamespace(
            llm=llm, history=(), now=talk.now, check=lambda: None, emit=lambda p: self.result.events.append(p)
        )

    def names(self) -> Mapping[str, Any]:
        return {"slots": self.talk.slots, "now": self.talk.now, "world": {}, "context": {}, "user": {}}

    async def say(
        self, text: str, *, bot_intent: str | None = None, source: str = "rail", interruptible: bool = True
    ) -> None:
        self.result.replies.append(text)
        self.result.protected.extend([] if interruptible else [text])

    async def speak(
        self,
        chunks: AsyncIterator[str],
        *,
        bot_intent: str | None = None,
        source: str = "rail",
        guard: Callable[[str], Awaitable[str | None]] | None = None,
        interruptible: bool = True,
    ) -> str:
        at = len(self.result.replies)
        self.result.replies.append("")
        self.result.protected.extend([] if interruptible else [bot_intent or ""])
        text = ""
        if guard is None:
            async for chunk in chunks:
                text += chunk
                self.result.replies[at] = text
            return text
        whole = "".join([c async for c in chunks])
        for sentence in whole.replace(". ", ".|").split("|"):
            allowed = await guard(sentence)
            if allowed is None:
                break
            text = f"{text} {allowed}".strip()
            self.result.replies[at] = text
        if not text:
            del self.result.replies[at]
        return text

    async def run_action(
        self, name: str, args: Mapping[str, Any], *, key: str, timeout_s: float = 10.0
    ) -> ActionOutcome:
        self.result.actions.append((name, dict(args)))
        if name not in self.talk.actions:
            return ActionOutcome(ok=False, error="not registered")
        found = self.talk.actions[name]
        if isinstance(found, Exception):
            return ActionOutcome(ok=False, error=str(found))
        return ActionOutcome(ok=True, value=found(args) if callable(found) else found)

    def fail(self, part: str, message: str) -> None:
        self.result.error = message

    def note_bot_intent(self, name: str) -> None:
        self.result.bot_intents.append(name)

    def note_user_intent(self, name: str) -> None:
        self.result.user_intent = name


class Talk:
    """One conversation. The order of calls is the brain's: screen, always, match, decide."""

    def __init__(self, text: str, actions: Mapping[str, Any] | None = None, store: VectorStore | None = None) -> None:
        self.config, problems = load_rails([parse_source(text)], expressions=ExpressionRules())
        assert not [p for p in problems if p.severity == "error"], [str(p) for p in problems]
        self.store = store or VectorStore(ExactEmbedder())
        self.rails = Rails(self.config, self.store)
        self.actions = dict(actions or {})
        self.slots: dict[str, Any] = {}
        self.now = datetime(2026, 12, 1, 9, tzinfo=UTC)
        self.state: Mapping[str, Any] = {}
        self.llm = ScriptedLlm(None)

    @property
    def vars(self) -> dict[str, Any]:
        return dict(self.state.get("vars", {}))

    def running(self) -> dict[str, str]:
        return {r["rail"]: r["status"] for r in self.state.get("rails", ())}

    async def user(
        self,
        text: str,
        llm: Sequence[tuple[str, str | None]] | None = None,
        variables: Mapping[str, Any] | None = None,
        heard: TurnHeard | None = None,
        sounded: int | None = None,
    ) -> Turn:
        self.llm = ScriptedLlm(llm)
        host = Host(self, TurnInput(text=text), self.llm)
        turn = self.rails.begin(self.state, host)
        turn.set_vars(variables or {})
        screened = await turn.screen_input(text)
        if screened.is_blocked:
            host.result.answered = True
        else:
            text = screened.text
            answered = await turn.run_always(text) or await turn.match(text) or await turn.decide(text)
            host.result.answered = answered
        assert not self.llm.script, f"calls that did not come: {self.llm.script}"
        assert self.llm.open_streams == 0
        if heard is None:
            count = len(host.result.replies) if sounded is None else sounded
            messages = tuple(
                MessageHeard(key=None, text=t, heard=t if i < count else "", sounded=i < count, completed=i < count)
                for i, t in enumerate(host.result.replies)
            )
            heard = TurnHeard(outcome="completed" if sounded is None else "interrupted", messages=messages)
        self.state = turn.settle(heard)
        host.result.prompts = [self.llm.prompt(i) for i in range(len(self.llm.requests))]
        host.result.tasks = [str(r.task) for r in self.llm.requests]
        return host.result

    def start(self, text: str, llm: Any) -> tuple[Any, Host]:
        """Begin a turn without running it."""
        host = Host(self, TurnInput(text=text), llm)
        return self.rails.begin(self.state, host), host

    async def event(self, kind: str, **payload: Any) -> Turn:
        host = Host(self, TurnInput(kind="event", event_type=kind, event_payload=payload), ScriptedLlm(None))
        turn = self.rails.begin(self.state, host)
        host.result.answered = await turn.handle_event(kind, payload)
        self.state = turn.settle(TurnHeard(outcome="completed"))
        return host.result


@pytest.fixture
def talk() -> type[Talk]:
    return Talk
