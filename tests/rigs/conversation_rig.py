"""The real thinking side and the real loudspeaker side on a virtual clock; only models and devices are scripted.

Every word of every sentence has a sound level of its own, so what was audible is read from the samples: which
answer, which sentence, which word, and whether it came to its end. `problems` collects what must never happen.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
from rigs.conversation_acts import BLOCK_S, Acts, OpenUtterance
from rigs.conversation_parts import (
    RATE_HZ,
    Levels,
    LevelVoice,
    ModelCall,
    ModelHost,
    NamingWorker,
    RunningTool,
    ScriptedBrain,
    SpeechSpy,
    SpyBus,
    SpyGenerations,
    Step,
    Views,
)
from rigs.conversation_watch import BLOCK, Record, Watch, letters

from audio.playback import Player
from audio.tts.speech_worker import SpeechWorker
from audio.workers import VirtualScheduler
from orchestrator.bus.event_checker import EventChecker
from orchestrator.bus.event_log import EventLog
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.dialogue import LlmUnavailable, TurnHeard, TurnInput
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import (
    AppExit,
    Event,
    LogOpen,
    payload_classes,
)
from orchestrator.contracts.ids import GenerationId, IdFactory, IntentId
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.core import Core, CoreParts
from orchestrator.llm.reply_text import ReplyText
from orchestrator.policy_file import Policy
from orchestrator.store.database import Database
from orchestrator.virtual_loop import VirtualTimeLoop

LATENCY_S = 0.02
DUCK_DB = 20 * math.log10(0.125)
SYNTH_S = 0.06

_START_S = 1000.0
_WALL = datetime(2026, 12, 1, 9, 0, tzinfo=timezone(timedelta(hours=1)))


class ConversationRig(Acts, Watch):
    """One program over one store. All methods are called from outside the loop."""

    def __init__(self, path: Path, *, policy: Policy | None = None, session_idle_s: float = 0.0) -> None:
        self.path = path
        self.policy = policy or Policy()
        self._session_idle_s = session_idle_s
        self.problems: list[str] = []
        self.records: list[Record] = []
        self.plans: deque[tuple[Step, ...]] = deque()
        self.inputs: list[TurnInput] = []
        self.calls: list[ModelCall] = []
        self.tools: list[RunningTool] = []
        self.effects_run: Counter[str] = Counter()
        self.intents: dict[IntentId, SpeechIntent] = {}
        self.heard: dict[GenerationId, TurnHeard] = {}
        self.levels = Levels()
        self.clock = VirtualClock(_START_S, _WALL)
        self._starts = itertools.count(1)
        self._begin_s = self.clock.monotonic_s()
        self._blocks = 0
        self._words = itertools.count(1)
        self.track: list[np.ndarray[Any, Any]] = []
        self.run_frames: list[list[Any]] = []
        self._ramped = (0, 0)
        self._block_credits: set[tuple[IntentId, int]] = set()
        self._maybe_heard: set[tuple[IntentId, int]] = set()
        self._said_again: Counter[GenerationId] = Counter()
        self._unclear: set[GenerationId] = set()
        self.complete_words: list[tuple[IntentId, int]] = []
        self._silent_speaking_s = self._showing_s = 0.0
        self.has_device = True
        self.utterance: OpenUtterance | None = None
        self.open()

    # --- life -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Build the program and open it."""
        self._is_dead = False
        # A loop for each program: the timers of a killed one die with it.
        self.loop = VirtualTimeLoop(self.clock, SystemClock(), lambda: False, is_frozen=True)
        self.records = []
        self.checker = EventChecker()
        self.ids = IdFactory(f"{next(self._starts)}")
        self.log = EventLog(self.clock, None, is_threaded=False)
        self.log.add_tap(self._on_record)
        self.bus = SpyBus(self.clock, self.ids, self.log, self.policy.table)
        self.generations = SpyGenerations(self.ids, self.clock, self.bus.trace)
        self.database = Database(self.path, is_inline=True)
        self.scheduler = VirtualScheduler(self.clock)
        self.worker = NamingWorker("tts", self.scheduler, SystemClock())
        self.voice = LevelVoice(self.levels)
        self.worker.voice = self.voice
        self.player = Player(rate_hz=RATE_HZ, clock=self.clock, events=self.bus)
        self.speech = SpeechWorker(
            clock=self.clock,
            events=self.bus,
            staleness=self.generations,
            player=self.player,
            worker=self.worker,
            voices=[self.voice],
            cost_clock=self.clock,
            synth_cost_s=lambda text: SYNTH_S,
        )
        self.views = Views(self)
        self.brain: Any = self.make_brain()
        self.utterance = None
        self.has_device = True
        self._last_order = 0
        self._orders: list[tuple[int, int, bool]] = []
        self._committed: list[str] = []
        self._playing: set[str] = set()
        self._shown_before: set[str] = set()
        self._silent_speaking_s = self._showing_s = 0.0
        self.log.record(
            Event(
                payload=LogOpen(
                    schema=1, wall="", monotonic_origin=0.0, rates={}, in_latency_s=0.0, out_latency_s=LATENCY_S
                ),
                source="app",
            )
        )
        # First of all consumers, so that what the others post in turn has not come yet.
        for payload in payload_classes().values():
            if payload.TYPE:
                self.bus.subscribe(payload, self._on_handled)
        parts = CoreParts(
            clock=self.clock,
            ids=self.ids,
            event_log=self.log,
            database=self.database,
            speech=SpeechSpy(self.speech, self),
            views=self.views,
            llm=ModelHost(self),
            make_brain=lambda: self.brain,
            remake_brain=self.remake_brain,
            make_pipe=ReplyText,
            policy=self.policy,
            apology=lambda code, language: "sorry that did not work.",
            session_idle_s=self._session_idle_s,
            load_policy=lambda: self.policy,
            fault_words=lambda code: f"{code.replace('_', ' ')} and lost.",
        )
        self.core = Core(parts, self.bus, self.generations)
        self._run(self.core.open())
        self._committed = [
            entry.text for entry in self.core.history.entries if entry.role == "assistant" and entry.text
        ]
        self.settle()

    def make_brain(self) -> Any:
        """Return the brain of the program; here one that says what it is told."""
        return ScriptedBrain(self)

    def remake_brain(self) -> Any:
        """Return the brain after a reload; here the same one."""
        return self.brain

    def close(self, *, must_be_clean: bool = True) -> None:
        """End the program in order and check its record."""
        self.speech.set_output(True)
        if self.utterance is not None:
            self.finish_utterance("", rejected=True)
        closing = self.loop.create_task(self.core.close())
        self._run(self._while_running(closing))
        self._run(self._advance(2))
        self.log.record(Event(payload=AppExit(code=0, counters={}), source="app"))
        found = self.checker.finish()
        if must_be_clean:
            self.problems.extend(found)
            self._check_nothing_lost()
        self._end()

    def kill(self) -> None:
        """End the program at once, as a crash would: nothing is stored any more."""
        self._end()

    def dispose(self) -> None:
        """Leave nothing behind: a program that still runs is killed."""
        if not self._is_dead:
            self._end()

    def _end(self) -> None:
        self._is_dead = True

        async def drop_tasks() -> None:
            # The end of one may begin another (what was kept is answered next): until none is left.
            for _ in range(20):
                tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
                if not tasks:
                    return
                # A task that is cancelled before its first step never enters its coroutine.
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        self.database.close()
        with suppress(Exception):
            self._run(drop_tasks())
        self.calls.clear()
        self.tools.clear()
        self.plans.clear()
        self.worker.stop(0)
        self._run(self.loop.shutdown_asyncgens())
        self.loop.close()

    async def _while_running(self, task: asyncio.Task[None]) -> None:
        while not task.done():
            await self._advance(1)
        await task

    # --- time -------------------------------------------------------------------------------------------

    def _run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)  # type: ignore[arg-type]

    def do(self, call: Callable[[], Any]) -> Any:
        """Call something on the loop and let what follows at once happen."""

        async def run() -> Any:
            result = call()
            await self._settle()
            return result

        return self._run(run())

    def settle(self) -> None:
        """Let everything happen that needs no time."""
        self._run(self._settle())

    @staticmethod
    async def _settle() -> None:
        for _ in range(25):
            await asyncio.sleep(0)

    def advance(self, blocks: int) -> None:
        """Let `blocks` of 20 ms pass."""
        self._run(self._advance(blocks))

    def seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.advance(max(1, round(seconds / BLOCK_S)))

    def until(self, is_so: Callable[[], bool], limit_s: float = 30.0) -> bool:
        """Let time pass until something is so; False if it never came."""
        for _ in range(round(limit_s / BLOCK_S)):
            if is_so():
                return True
            self.advance(1)
        return is_so()

    async def _advance(self, blocks: int) -> None:
        for _ in range(blocks):
            due_s = self._begin_s + (self._blocks + 1) * BLOCK_S
            while True:
                pending_s = self.scheduler.next_s()
                wake_s = due_s if pending_s is None else min(due_s, pending_s)
                await asyncio.sleep(max(0.0, wake_s - self.clock.monotonic_s()))
                self.scheduler.run_due()
                if self.clock.monotonic_s() >= due_s - 1e-9:
                    break
            self._render()
            self.speech.poll(self.clock.monotonic_s())
            await asyncio.sleep(0)

    def _render(self) -> None:
        begin_s = self._begin_s + self._blocks * BLOCK_S
        self._blocks += 1
        out = np.zeros(BLOCK, np.float32)
        if self.has_device:
            self.player.render(out, begin_s + LATENCY_S)
        self._look_at(out)


__all__ = [
    "BLOCK_S",
    "ConversationRig",
    "GenerationCancelled",
    "LlmUnavailable",
    "ModelCall",
    "OpenUtterance",
    "ScriptedBrain",
    "letters",
]


def checked_rig(folder: Path) -> Iterator[ConversationRig]:
    """Yield a conversation; then let it end, close it, and check it before and after."""
    rig = ConversationRig(folder / "r.db")
    yield rig
    rig.finish_everything()
    rig.check()
    rig.close()
    rig.check()
    rig.dispose()
