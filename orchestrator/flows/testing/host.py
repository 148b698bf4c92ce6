"""A turn's world in memory: scripted model, stubbed actions, virtual clock, everything recorded."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import (
    HistoryEntry,
    LlmRequest,
    LlmTask,
    LlmUnavailable,
    Message,
    MessageHeard,
    Reminder,
)
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import Payload
from orchestrator.contracts.ids import CorrelationId, GenerationId
from orchestrator.tasks.actions.base import Action, ActionContext, ActionResult

_UNIT = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]*\w[^\s\u3400-\u9fff]*")
_SENTENCE = re.compile(r"[^.!?。！？]+(?:[.!?](?=\s|$|[\"'”’)])[\"'”’)]*|[。！？]+[”’）]*|[.!?]|$)\s*")


def word_ends(text: str) -> list[int]:
    """Return where each word ends; a Chinese character is a word."""
    return [m.end() for m in _UNIT.finditer(text)]


def sentences_of(text: str) -> list[str]:
    """Split a text into sentences, spaces kept, so that joining gives the text again."""
    found = [m[0] for m in _SENTENCE.finditer(text) if m[0]]
    joined: list[str] = []
    for piece in found:
        if joined and not re.search(r"\w", piece):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


@dataclass(slots=True)
class Call:
    """One model call that was made."""

    task: str
    prompt: str


@dataclass(slots=True)
class ScriptedLlm:
    """A model that answers from a script, in order; any other call fails and is noted."""

    script: list[Mapping[str, Any]] = field(default_factory=list)
    configured: bool = False
    planner: bool = True
    calls: list[Call] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def is_configured(self) -> bool:
        """Whether the turn has a script."""
        return self.configured

    @property
    def can_plan(self) -> bool:
        """The script plans."""
        return self.planner

    def _next(self, request: LlmRequest) -> str:
        task = LlmTask(request.task).value
        self.calls.append(Call(task=task, prompt="\n".join(m.content for m in request.messages)))
        if not self.script:
            self.faults.append(f"a call for {task} that is not in the script")
            raise LlmUnavailable("not_in_script")
        if self.script[0].get("task") != task:
            self.faults.append(f"a call for {task} where the script has {self.script[0].get('task')}")
            raise LlmUnavailable("not_in_script")
        entry = self.script.pop(0)
        if entry.get("fails"):
            raise LlmUnavailable("scripted")
        completion = entry.get("completion", "")
        return completion if isinstance(completion, str) else json.dumps(completion, ensure_ascii=False)

    async def complete(self, request: LlmRequest) -> str:
        """Return the next completion."""
        text = self._next(request)
        await asyncio.sleep(0)
        return text

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Yield the next completion in pieces."""
        text = self._next(request)
        for piece in re.findall(r"\S+\s*|\s+", text):
            await asyncio.sleep(0)
            yield piece


@dataclass(slots=True)
class MemoryReply:
    """Collects utterances. `cancel_at`: the message number at which the generation is cancelled."""

    messages: list[Message] = field(default_factory=list)
    cancel_at: int | None = None
    stale: bool = False

    def _check(self) -> None:
        if self.stale or (self.cancel_at is not None and len(self.messages) >= self.cancel_at):
            self.stale = True
            raise GenerationCancelled("test")

    async def say(self, message: Message) -> None:
        """Take a finished message."""
        await asyncio.sleep(0)
        self._check()
        self.messages.append(message)

    async def stream(
        self, chunks: AsyncIterator[str], message: Message, guard: Callable[[str], Awaitable[str | None]] | None = None
    ) -> str:
        """Take a message while it is generated, sentence by sentence through the guard."""
        index: int | None = None
        said = ""
        pending = ""

        async def take(sentence: str) -> bool:
            nonlocal index, said
            passed: str | None = sentence
            if guard is not None:
                core = sentence.strip()
                checked = await guard(core)
                passed = None if checked is None else checked + sentence[len(sentence.rstrip()) :]
            if passed is None:
                return False
            if not passed.strip():
                return True
            self._check()
            said += passed
            if index is None:
                index = len(self.messages)
                self.messages.append(message)
            self.messages[index] = replace(message, text=said.strip())
            return True

        self._check()
        async for chunk in chunks:
            pending += chunk
            parts = sentences_of(pending)
            while len(parts) > 1:
                pending = "".join(parts[1:])
                if parts[0].strip() and not await take(parts[0]):
                    return said.strip()
                parts = sentences_of(pending)
        if pending.strip():
            await take(pending)
        return said.strip()


@dataclass
class MemoryEffects:
    """Effects at most once per key."""

    results: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    async def run(
        self, *, key: str, name: str, args: Mapping[str, Any], effect: Callable[[], Awaitable[Any]], timeout_s: float
    ) -> Any:
        """Run the effect unless its key is done."""
        if key in self.results:
            return self.results[key]
        result = await effect()
        self.results[key] = result
        self.ran.append(key)
        return result


@dataclass(slots=True)
class MemoryReminders:
    """Reminders in a list."""

    items: list[Reminder] = field(default_factory=list)

    async def add(self, *, text: str, due: datetime) -> Reminder:
        """Store a reminder."""
        reminder = Reminder(id=f"r{len(self.items) + 1}", text=text, due=due)
        self.items.append(reminder)
        return reminder

    async def list(self) -> Sequence[Reminder]:
        """Return the waiting ones, soonest first."""
        return sorted((r for r in self.items if r.state == "waiting"), key=lambda r: r.due)

    async def cancel(self, reminder_id: str) -> bool:
        """Cancel one."""
        for index, reminder in enumerate(self.items):
            if reminder.id == reminder_id and reminder.state == "waiting":
                self.items[index] = replace(reminder, state="cancelled")
                return True
        return False


class StubAction(Action):
    """An action of a test file."""

    def __init__(self, name: str, spec: Mapping[str, Any], clock: VirtualClock) -> None:
        """Take the stub's description."""
        self.name = name  # type: ignore[misc] # of the instance: a stub is made per test
        self._spec = spec
        self._clock = clock

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Do what the stub says: wait, fail, return, count."""
        spec = dict(self._spec)
        for case in spec.pop("by_args", None) or ():
            wanted = case.get("args") or {}
            if all(args.get(k) == v for k, v in wanted.items()):
                spec = {**spec, **{k: v for k, v in case.items() if k != "args"}}
                if "returns" in case and "raises" not in case:
                    spec.pop("raises", None)
                break
        delay_s = float(spec.get("delay_s") or 0)
        self._clock.advance(min(delay_s, context.timeout_s))
        if delay_s > context.timeout_s:
            raise TimeoutError
        if spec.get("raises"):
            raise RuntimeError(str(spec["raises"]))
        counter = spec.get("increment")
        counted = {str(counter): (context.vars.get(str(counter)) or 0) + 1} if counter else {}
        messages = spec.get("messages")
        messages = messages if isinstance(messages, list) else [] if messages is None else [messages]
        return ActionResult(
            value=spec.get("returns"),
            slot_updates=spec.get("slots") or {},
            var_updates=counted,
            messages=[str(m) for m in messages],
        )


@dataclass(slots=True)
class MemoryHost:
    """What lives through a conversation: clock, history, effects, reminders."""

    clock: VirtualClock
    history: list[HistoryEntry] = field(default_factory=list)
    effects: MemoryEffects = field(default_factory=MemoryEffects)
    reminders: MemoryReminders = field(default_factory=MemoryReminders)
    world: dict[str, Any] = field(default_factory=dict)
    stored: Mapping[str, Any] | None = None
    events: list[Payload] = field(default_factory=list)
    count: int = 0

    def turn(self, llm: ScriptedLlm | None = None, reply: MemoryReply | None = None) -> MemoryTurn:
        """Start a turn's context."""
        self.count += 1
        return MemoryTurn(
            host=self, llm=llm or ScriptedLlm(), reply=reply or MemoryReply(), number=self.count, now=self.clock.wall()
        )


@dataclass(slots=True)
class MemoryTurn:
    """A `TurnContext` in memory."""

    host: MemoryHost
    llm: ScriptedLlm
    reply: MemoryReply
    number: int
    now: datetime
    early: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def generation_id(self) -> GenerationId:
        """The turn's answer."""
        return GenerationId(f"g-{self.number}")

    @property
    def history(self) -> Sequence[HistoryEntry]:
        """The conversation so far."""
        return tuple(self.host.history)

    @property
    def world(self) -> Mapping[str, Any]:
        """Context values."""
        return self.host.world

    @property
    def effects(self) -> MemoryEffects:
        """Side effects."""
        return self.host.effects

    @property
    def reminders(self) -> MemoryReminders:
        """Reminders."""
        return self.host.reminders

    def check(self) -> None:
        """Raise when the generation was cancelled."""
        if self.reply.stale:
            raise GenerationCancelled("test")

    def emit(self, payload: Payload, *, correlation_id: CorrelationId | None = None) -> None:
        """Record a fact."""
        self.host.events.append(payload)

    @property
    def is_speculative(self) -> bool:
        """A test's turn is always wanted."""
        return False

    async def confirmed(self) -> None:
        """Raise when the generation was cancelled."""
        self.check()

    async def commit_early(self, state: Mapping[str, Any]) -> None:
        """Store the early state; it must be JSON."""
        await asyncio.sleep(0)
        self.check()
        self.host.stored = json.loads(json.dumps(state, ensure_ascii=False))
        self.early.append(self.host.stored or {})


def heard_until(messages: Sequence[Message], words: int | None) -> tuple[tuple[MessageHeard, ...], str, str]:
    """Cut messages after so many words (None: not at all).

    Returns what was heard of each, the heard and the unheard text.
    """
    left = words
    found: list[MessageHeard] = []
    heard_parts: list[str] = []
    unheard_parts: list[str] = []
    for message in messages:
        ends = word_ends(message.text)
        if left is None or left >= len(ends):
            sounded = left is None or left > 0 or not ends
            heard = message.text if sounded else ""
            if left is not None:
                left -= len(ends)
        else:
            heard = message.text[: ends[left - 1]] if left > 0 else ""
            sounded, left = left > 0, 0
        found.append(
            MessageHeard(
                key=message.key,
                text=message.text,
                heard=heard,
                sounded=sounded and bool(heard),
                completed=heard == message.text,
            )
        )
        if heard:
            heard_parts.append(heard)
        rest = message.text[len(heard) :].strip()
        if rest:
            unheard_parts.append(rest)
    return tuple(found), " ".join(heard_parts), " ".join(unheard_parts)
