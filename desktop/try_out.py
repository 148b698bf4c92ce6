"""Trying unsaved flows: a conversation with the runtime's own brain, in memory, on a thread of its own.

Nothing of it reaches the real conversation: history, reminders and effects live in memory, and an action that acts on
the world (opening a page, the user's own Python) is only noted.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desktop.faults import Fault, fault_of
from desktop.flow_check import Checked, FlowCheck, kind_of, layer_names
from desktop.flow_folders import FlowFolders
from desktop.meaning_vectors import meaning_rails
from orchestrator.clock import Clock, SystemClock, VirtualClock
from orchestrator.contracts.dialogue import LlmRequest, TurnContext, TurnInput
from orchestrator.contracts.errors import MynahError
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.flows.source import Problem, Report, read_source
from orchestrator.flows.testing.coverage import coverage_of
from orchestrator.flows.testing.format import TestCase, TestTurn, read_tests
from orchestrator.flows.testing.host import StubAction
from orchestrator.flows.testing.runner import Conversation, Runner, TestResult, TurnOutcome
from orchestrator.llm.persona import Persona, language_of, load_persona_layers
from orchestrator.llm.prompts import persona_request
from orchestrator.tasks.actions.registry import ActionRegistry

log = logging.getLogger(__name__)

_Job = Callable[[], Awaitable[None]]

_STOP_LIMIT_S = 2.0
_SAFE_ACTIONS = frozenset(
    {"action_listen", "action_response", "start_flow", "action_set_reminder", "action_list_reminders", "action_now"}
)
"""Actions that reach nothing but the conversation's memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One thing a turn did. `kind`: intent, command, dropped, step, action, slot, model, note or error."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedTurn:
    """A turn of the try-out.

    `needs_model`: the answer would have come from the language model; `is_broken`: the turn failed inside.
    """

    number: int
    text: str
    replies: tuple[str, ...] = ()
    trace: tuple[TraceLine, ...] = ()
    active_flow: str | None = None
    step: str | None = None
    slots: Mapping[str, Any] = field(default_factory=dict)
    needs_model: bool = False
    is_broken: bool = False
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedTest:
    """One test's result; `failures` are lines for people."""

    name: str
    passed: bool
    failures: tuple[str, ...] = ()
    file: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """All results. `problems`: faults of the test files; `coverage`: per flow (visited, steps, taken, branches)."""

    __test__ = False

    tests: tuple[TriedTest, ...] = ()
    problems: tuple[Problem, ...] = ()
    coverage: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOutListener:
    """Where results go; called on the try-out's thread.

    `on_begun` gets the problems that leave parts out, `on_fault` what went wrong, `on_progress` how many sentences of
    how many new ones are learnt before the first answer, `on_cancelled` that what ran or waited was given up.
    """

    on_begun: Callable[[Sequence[Problem]], None]
    on_turn: Callable[[TriedTurn], None]
    on_tests: Callable[[TestRun], None]
    on_fault: Callable[[Fault], None]
    on_progress: Callable[[int, int], None] = lambda _done, _all: None
    on_cancelled: Callable[[], None] = lambda: None


class TryOut:
    """Owns the thread “try-out”. The methods return at once and may be called from any thread."""

    def __init__(
        self, folders: FlowFolders, listener: TryOutListener, *, clock: Clock | None = None, embedding: str = "real"
    ) -> None:
        """Start nothing yet; `embedding` is real or exact, as in tests."""
        self._folders = folders
        self._listener = listener
        self._clock = clock or SystemClock()
        self._embedding = embedding
        self._jobs: queue.SimpleQueue[tuple[int, _Job] | None] = queue.SimpleQueue()
        self._number = 0
        self._given_up = 0
        self._thread: threading.Thread | None = None
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._lock = threading.Lock()
        self._is_stopped = False
        self._work = _Work(folders, embedding, self._clock, listener.on_progress)

    def begin(self, texts: Mapping[str, str]) -> None:
        """Begin a new conversation on these unsaved texts over what is on disk."""
        kept = dict(texts)

        async def job() -> None:
            self._listener.on_begun(self._work.begin(kept))

        self._put(job)

    def reload(self, texts: Mapping[str, str]) -> None:
        """Use changed texts; the conversation goes on, as after a hot reload."""
        kept = dict(texts)

        async def job() -> None:
            self._listener.on_begun(self._work.reload(kept))

        self._put(job)

    def say(self, text: str) -> None:
        """Say something; begins a conversation on what is on disk if there is none."""

        async def job() -> None:
            self._listener.on_turn(await self._work.say(text))

        self._put(job)

    def run_tests(self, texts: Mapping[str, str]) -> None:
        """Run all test files of the user's layer, these unsaved texts included."""
        kept = dict(texts)

        async def job() -> None:
            self._listener.on_tests(await self._work.run_tests(kept))

        self._put(job)

    def cancel(self) -> None:
        """Give up what runs and what waits; the conversation stays as it was. `on_cancelled` follows for each."""
        with self._lock:
            running, self._given_up = self._running, self._number
        if running is not None:
            running[0].call_soon_threadsafe(running[1].cancel)

    def stop(self) -> None:
        """End the thread; what runs is cancelled. Idempotent."""
        with self._lock:
            self._is_stopped = True
            running, thread = self._running, self._thread
        self._jobs.put(None)
        if running is not None:
            running[0].call_soon_threadsafe(running[1].cancel)
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_LIMIT_S)

    def _put(self, job: _Job) -> None:
        with self._lock:
            if self._is_stopped:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="try-out", daemon=True)
                self._thread.start()
            self._number += 1
            self._jobs.put((self._number, job))

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while (found := self._jobs.get()) is not None:
                try:
                    runner.run(self._guarded(*found))
                except asyncio.CancelledError:
                    if self._is_stopped:
                        break
                    self._listener.on_cancelled()
                except MynahError as error:
                    self._listener.on_fault(fault_of(error))
                except Exception as error:
                    log.exception("the try-out failed")
                    self._listener.on_fault(fault_of(error))

    async def _guarded(self, number: int, job: _Job) -> None:
        task = asyncio.current_task()
        with self._lock:
            if self._is_stopped or task is None or number <= self._given_up:
                raise asyncio.CancelledError
            self._running = asyncio.get_running_loop(), task
        try:
            await job()
        finally:
            with self._lock:
                self._running = None


class _Work:
    """The conversation and the test runs; belongs to the try-out's thread."""

    def __init__(
        self, folders: FlowFolders, embedding: str, clock: Clock, on_progress: Callable[[int, int], None]
    ) -> None:
        self._folders = folders
        self._embedding = embedding
        self._clock = clock
        self._rails = meaning_rails()
        if embedding == "real":
            self._rails.store.on_made = on_progress
        self._talk: Conversation | None = None
        self._talk_clock: VirtualClock | None = None
        self._began_s = 0.0
        self._number = 0

    def begin(self, texts: Mapping[str, str]) -> tuple[Problem, ...]:
        checked = FlowCheck(self._folders).run(texts)
        self._talk_clock = VirtualClock(0.0, self._clock.wall())
        self._began_s = self._clock.monotonic_s()
        self._number = 0
        rails, matcher = self._rails(checked.config, self._embedding)
        brain = FlowBrain(
            checked.config, rails=rails, actions=_harmless(checked, self._talk_clock), matcher=matcher,
            persona_request=_persona_requests(self._folders), clock=self._talk_clock,
        )  # fmt: skip
        self._talk = Conversation(brain, self._talk_clock)
        return checked.errors()

    def reload(self, texts: Mapping[str, str]) -> tuple[Problem, ...]:
        talk, clock = self._talk, self._talk_clock
        if talk is None or clock is None:
            return self.begin(texts)
        checked = FlowCheck(self._folders).run(texts)
        rails, _ = self._rails(checked.config, self._embedding)
        talk.brain.reload(checked.config, rails=rails, actions=_harmless(checked, clock))
        return checked.errors()

    async def say(self, text: str) -> TriedTurn:
        if self._talk is None:
            self.begin({})
        talk, clock = self._talk, self._talk_clock
        assert talk is not None and clock is not None
        clock.advance_to(max(clock.monotonic_s(), self._clock.monotonic_s() - self._began_s))
        before = dict(talk.brain.state.values())
        talk.language = language_of(text)
        await talk.prepare()
        began_s = self._clock.monotonic_s()
        outcome = await talk.take(TestTurn(user=text))
        self._number += 1
        return self._tell(text, outcome, before, self._clock.monotonic_s() - began_s)

    def _tell(self, text: str, outcome: TurnOutcome, before: Mapping[str, Any], duration_s: float) -> TriedTurn:
        assert self._talk is not None
        state = self._talk.brain.state
        task = state.active
        slots = state.values()
        needs_model = bool(outcome.failed and outcome.failed.startswith("llm:"))
        is_broken = bool(outcome.failed) and not needs_model
        # What the program would say of the failure is no words of the flow.
        replies = outcome.replies[:-1] if outcome.failed else outcome.replies
        return TriedTurn(
            number=self._number, text=text, replies=tuple(replies),
            trace=tuple(trace_of(outcome, before, slots, needs_model=needs_model)),
            active_flow=task.root if task is not None else None, step=task.step if task is not None else None,
            slots=slots, needs_model=needs_model, is_broken=is_broken, duration_s=duration_s,
        )  # fmt: skip

    async def run_tests(self, texts: Mapping[str, str]) -> TestRun:
        shipped = (self._folders.shipped / "system_flows.yml").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="mynah-") as made:
            folder = Path(made)
            _copy_layer(self._folders.user, folder, texts)
            report = Report()
            names = [name for name in layer_names(folder) if kind_of(name) == "tests"]
            tests: list[TestCase] = []
            for name in names:
                tests += read_tests(read_source(folder / name, name), report)
            runner = Runner(
                folder=folder, shipped={"system_flows.yml": shipped}, make_rails=self._rails,
                persona_request=_persona_requests(self._folders), shown="flows",
            )  # fmt: skip
            results = [await runner.run(test) for test in tests]
        flows = coverage_of(results)["flows"]
        return TestRun(
            tests=tuple(_tell_test(r, t) for r, t in zip(results, tests, strict=True)),
            problems=tuple(report.sorted()),
            coverage={
                n: (f["visited"], f["steps"], f["taken"], f["branches"]) for n, f in flows.items() if f["visited"]
            },
        )


def trace_of(
    outcome: TurnOutcome, before: Mapping[str, Any], slots: Mapping[str, Any], *, needs_model: bool
) -> list[TraceLine]:
    """Return what a turn did, in the order an author asks for it."""
    report = outcome.report
    lines = [TraceLine(kind="intent", text=report.user_intent)] if report.user_intent else []
    lines += [TraceLine(kind="command", text=_command(c)) for c in report.commands]
    for dropped in report.dropped:
        lines.append(TraceLine(kind="dropped", text=f"{_command(dropped['command'])}: {dropped['reason']}"))
    steps = dict.fromkeys(f"{flow} · {step}" for flow, step, _ in report.visited)
    lines += [TraceLine(kind="step", text=step) for step in steps]
    for action in report.actions:
        if action["name"] not in ("action_response", "action_listen"):
            lines.append(TraceLine(kind="action", text=f"{action['name']} {action.get('args') or ''}".strip()))
    for name in dict.fromkeys([*slots, *before]):
        if slots.get(name) != before.get(name):
            lines.append(TraceLine(kind="slot", text=f"{name} = {slots.get(name)!r}"))
    lines += [TraceLine(kind="model", text=call.task) for call in outcome.llm.calls]
    if needs_model and not outcome.llm.calls:
        lines.append(TraceLine(kind="model", text="persona"))
    lines += [TraceLine(kind="note", text=text) for text in report.traces]
    failed = report.error or (None if needs_model else outcome.failed)
    return [*lines, *([TraceLine(kind="error", text=str(failed))] if failed else [])]


def _command(command: Any) -> str:
    if not isinstance(command, Mapping):
        return str(command)
    rest = [f"{key}={value}" for key, value in command.items() if key != "command"]
    return " ".join([str(command.get("command", "?")), *rest])


def _harmless(checked: Checked, clock: VirtualClock) -> ActionRegistry:
    risky = [name for name in checked.actions if name not in _SAFE_ACTIONS]
    return checked.actions.with_actions(StubAction(name, {}, clock) for name in risky)


def _persona_requests(folders: FlowFolders) -> Callable[[TurnContext, TurnInput], LlmRequest]:
    persona: Persona = load_persona_layers([folders.shipped / "persona.yml", folders.user / "persona.yml"])

    def make(turn: TurnContext, user: TurnInput) -> LlmRequest:
        now = turn.now if turn.now.tzinfo is not None else turn.now.astimezone()
        return persona_request(persona, history=turn.history, user=user, world=turn.world, now=now)

    return make


def _copy_layer(user: Path, to: Path, texts: Mapping[str, str]) -> None:
    for name in layer_names(user) if user.is_dir() else ():
        (to / name).parent.mkdir(exist_ok=True)
        (to / name).write_bytes((user / name).read_bytes())
    for name, text in texts.items():
        (to / name).parent.mkdir(exist_ok=True)
        (to / name).write_text(text, encoding="utf-8")


def _tell_test(result: TestResult, test: TestCase) -> TriedTest:
    failures = tuple(str(failure) for failure in result.failures)
    return TriedTest(name=result.name, passed=result.passed, failures=failures, file=test.file, line=test.line)
