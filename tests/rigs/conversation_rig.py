"""The real thinking side and the real loudspeaker side on a virtual clock; only models and devices are scripted.

Every word of every sentence has a sound level of its own, so what was audible is read from the samples: which
answer, which sentence, which word, and whether it came to its end. `problems` collects what must never happen.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
from rigs.conversation_parts import (
    RATE_HZ,
    WORD_FRAMES,
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

from audio.playback import Player
from audio.tts.speech_worker import SpeechWorker
from audio.workers import VirtualScheduler
from orchestrator.bus.envelope import Envelope
from orchestrator.bus.event_checker import EventChecker
from orchestrator.bus.event_log import EventLog
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.commands import SendText, Stop
from orchestrator.contracts.dialogue import LlmUnavailable, TurnHeard, TurnInput
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import (
    AppExit,
    Event,
    InputInterrupt,
    InputSpeech,
    InputTranscript,
    InputTurnEnd,
    LogOpen,
    Payload,
    payload_classes,
)
from orchestrator.contracts.ids import GenerationId, IdFactory, IntentId, UtteranceId
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.lanes import GenerationState, InterruptReason, Lane
from orchestrator.core import Core, CoreParts
from orchestrator.llm.reply_text import ReplyText
from orchestrator.policy_file import Policy
from orchestrator.speech.words import word_spans
from orchestrator.store import records
from orchestrator.store.database import Database
from orchestrator.virtual_loop import VirtualTimeLoop

BLOCK = 160
BLOCK_S = BLOCK / RATE_HZ
FADE_FRAMES = 48
LATENCY_S = 0.02
DUCK_DB = 20 * math.log10(0.125)
SYNTH_S = 0.06
SILENT_SPEAKING_S = 1.2
SILENT_SHOWING_S = 12.0
"""How long the window may show that the character speaks without any sound, and while a text is shown instead."""

_START_S = 1000.0
_WALL = datetime(2026, 12, 1, 9, 0, tzinfo=timezone(timedelta(hours=1)))

Record = dict[str, Any]


def letters(text: str) -> str:
    """Return only what can be heard of a text."""
    return "".join(char for char in text if char.isalnum())


# --- the rig ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class OpenUtterance:
    """What the ears still owe of an utterance."""

    utterance_id: UtteranceId
    ended: bool = False
    turn_ended: bool = False
    transcribed: bool = False
    cut: bool = False


class ConversationRig:
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
        self._said_again: Counter[GenerationId] = Counter()
        self._unclear: set[GenerationId] = set()
        self.complete_words: list[tuple[IntentId, int]] = []
        self._silent_speaking_s = 0.0
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
        self._silent_speaking_s = 0.0
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

    def _look_at(self, out: np.ndarray[Any, Any]) -> None:
        """Read from the samples whose words sound, and whether they may."""
        is_loud = bool(np.any(out))
        self._silent_speaking_s = (
            0.0 if is_loud or self.views.state != "speaking" else self._silent_speaking_s + BLOCK_S
        )
        if self._silent_speaking_s > (SILENT_SHOWING_S if self._playing else SILENT_SPEAKING_S):
            self.note("the character is shown as speaking without a sound")
            self._silent_speaking_s = 0.0
        if not is_loud:
            return
        steady = out[1:][(np.abs(np.diff(out)) < 1e-8) & (out[1:] != 0.0)]
        if not len(steady) and bool(np.all(out != 0.0)):
            self._credit_ramp()
            return
        steady = out[1:][(np.abs(np.diff(out)) < 1e-8) & (out[1:] != 0.0)]
        values, places = np.unique(steady, return_index=True)
        for index in np.argsort(places):
            value = float(values[index])
            owner = self.levels.owner(value)
            if owner is None:
                self.note(f"a sound that is no word: {value}")
                continue
            self._hear(owner, int(np.count_nonzero(steady == values[index])) + 1)

    def _credit_ramp(self) -> None:
        """A block whose volume changes throughout belongs to the word before it, or to the one that begins with it."""
        run = self.run_frames[-1] if self.run_frames else None
        if run is not None and run[2] == self._blocks - 1 and run[1] < WORD_FRAMES - FADE_FRAMES - 12:
            self._hear(run[0], BLOCK)
        else:
            self._ramped = (self._blocks, self._ramped[1] + BLOCK if self._ramped[0] == self._blocks - 1 else BLOCK)

    def _hear(self, owner: tuple[IntentId, int], frames: int) -> None:
        intent = self.intents[owner[0]]
        generation = self.generations.get(intent.generation_id)
        if generation is None:
            self.note(f"{intent.generation_id} of an earlier program sounds")
            return
        if generation.is_stale:
            self.note(f"{intent.generation_id} sounds after it was over")
        if generation.state is GenerationState.SUSPENDED:
            self.note(f"{intent.generation_id} sounds while it is held")
        if self.run_frames and self.run_frames[-1][0] == owner and self.run_frames[-1][2] == self._blocks - 1:
            self.run_frames[-1][1] += frames
            self.run_frames[-1][2] = self._blocks
        else:
            ramped = self._ramped[1] if self._ramped[0] == self._blocks - 1 else 0
            self.run_frames.append([owner, frames + ramped, self._blocks, False])
        run = self.run_frames[-1]
        if run[1] >= WORD_FRAMES - FADE_FRAMES - 12 and not run[3]:
            run[3] = True
            if owner in self.complete_words:
                self._said_again[intent.generation_id] += 1
            else:
                self.complete_words.append(owner)

    # --- what must never happen -------------------------------------------------------------------------

    def note(self, problem: str) -> None:
        """Remember something that must not happen."""
        if not self._is_dead:
            self.problems.append(problem)

    def _on_record(self, record: Record) -> None:
        if self._is_dead:
            return
        self.records.append(record)
        self.checker.feed(record)
        if record["type"] == "intent:state":
            is_playing = record["payload"]["state"] == "playing"
            (self._playing.add if is_playing else self._playing.discard)(record.get("intentId", ""))
        if record["type"] == "history:commit" and record["payload"]["role"] == "assistant":
            payload = record["payload"]
            if payload["status"] != "failed":
                self._committed.append(payload["text"])
                self._check_heard(GenerationId(record["generationId"]), payload["text"])

    def _check_heard(self, generation_id: GenerationId, text: str) -> None:
        """Compare what is stored with what was in the samples; shown sentences count as the player says."""
        errors = {
            piece.intent_id
            for message in self.core.ledger.messages(generation_id)
            for piece in message.pieces
            if message.source == "error"
        }
        mine = [
            intent
            for intent in self.intents.values()
            if intent.generation_id == generation_id and intent.intent_id not in errors
        ]
        whole = letters("".join(intent.text for intent in mine))
        if not whole.startswith(letters(text)):
            self.note(f"what is stored of {generation_id} is no beginning of its text")
        if generation_id in self._unclear or any(self._was_shown(intent.intent_id) for intent in mine):
            return
        ids = {intent.intent_id for intent in mine}
        said = sorted((owner for owner in self.complete_words if owner[0] in ids), key=lambda o: (_number(o[0]), o[1]))
        heard = "".join(word_spans(self.intents[i].text)[n].text for i, n in said)
        if letters(heard) != letters(text):
            self.note(f"stored of {generation_id}: {text!r}; in the samples: {heard!r}")

    def _was_shown(self, intent_id: IntentId) -> bool:
        return any(
            record["type"] == "output:word" and record.get("intentId") == intent_id and record["payload"]["estimated"]
            for record in self.records
        )

    def note_snapshot(self, turn: Any) -> None:
        """Check what an answer is begun from."""
        for generation in self.generations.all:
            if generation.state.is_final and not generation.settled.is_set():
                self.note(f"{turn.generation_id} was begun before {generation.generation_id} was stored")
        known = [entry.text for entry in turn.history if entry.role == "assistant"]
        if known[-3:] != self._committed[-3:]:
            self.note(f"the snapshot of {turn.generation_id} has other answers than the store")

    def _on_handled(self, envelope: Envelope) -> None:
        is_control = envelope.lane is Lane.CONTROL
        if is_control:
            late = [order for order, seen, control in self._orders[-64:] if not control and seen >= envelope.order]
            if late:
                self.note(f"{envelope.type} of the control lane was handled after events that came no earlier")
        self._orders.append((envelope.order, self.bus.taken, is_control))

    def _check_nothing_lost(self) -> None:
        ended: Counter[str] = Counter()
        for record in self.records:
            if "lane" in record:
                ended[record["type"]] += 1
            elif record["type"] == "bus:dropped":
                ended[record["payload"]["droppedType"]] += record["payload"]["count"]
        for kind, count in self.bus.asked.items():
            if ended[kind] != count:
                self.note(f"{count} events {kind} were posted, {ended[kind]} were handled or counted as dropped")
        allowed: Counter[str] = Counter()
        for record in self.of("output:resume"):
            allowed[record["generationId"]] += record["payload"]["repeatedWords"]
        for generation_id, count in self._said_again.items():
            if count > allowed[generation_id] and self.generations.get(generation_id) is not None:
                self.note(f"{count} words of {generation_id} were said twice, {allowed[generation_id]} may be")
        for key, count in self.effects_run.items():
            if count > 1:
                self.note(f"the effect {key} ran {count} times")

    # --- the user -----------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Send a typed line."""
        self.do(lambda: self.core.handle(SendText(text=text)))

    def stop_button(self) -> None:
        """Press stop: the player hears of it directly, too."""

        def press() -> None:
            self.player.cut()
            self.core.handle(Stop())

        self.do(press)

    def post(self, payload: Payload, **fields: Any) -> bool:
        """Post an event from outside."""
        return bool(self.do(lambda: self.bus.post(Event(payload=payload, source="rig", **fields))))

    def begin_to_speak(self) -> OpenUtterance:
        """The user begins; whoever was speaking before has to be finished."""
        assert self.utterance is None
        self.utterance = OpenUtterance(self.ids.utterance())
        during = self.player.audible() is not None
        self.post(
            InputSpeech(phase="onset", at_s=self.clock.monotonic_s(), vad=0.9, during_output=during),
            utterance_id=self.utterance.utterance_id,
        )
        return self.utterance

    def vad_cut(self, by: str = "vad") -> GenerationId | None:
        """The ears are sure: the player is cut at once, the core is told."""
        utterance = self.utterance
        audible = self.player.audible()
        if audible is None or not audible.interruptible:
            return None

        def cut() -> GenerationId | None:
            generation_id = self.player.cut()
            self.bus.post(
                Event(
                    payload=InputInterrupt(reason=InterruptReason.USER_BARGE_IN, by=by),
                    source="ears",
                    utterance_id=utterance.utterance_id if utterance is not None else None,
                    target_generation_id=generation_id,
                    interrupt_reason=InterruptReason.USER_BARGE_IN,
                )
            )
            return generation_id

        found: GenerationId | None = self.do(cut)
        return found

    def partial(self, text: str) -> None:
        """Some words are known."""
        self._transcript(text, final=False, rejected=False)

    def cease_to_speak(self) -> None:
        """The voice ended."""
        assert self.utterance is not None
        self.utterance.ended = True
        self.post(
            InputSpeech(phase="end", at_s=self.clock.monotonic_s(), vad=0.1, during_output=False),
            utterance_id=self.utterance.utterance_id,
        )

    def end_turn(self) -> None:
        """The turn is over."""
        assert self.utterance is not None
        if not self.utterance.ended:
            self.cease_to_speak()
        self.utterance.turn_ended = True
        self.post(
            InputTurnEnd(at_s=self.clock.monotonic_s(), silence_s=0.5, by="silence"),
            utterance_id=self.utterance.utterance_id,
        )
        self._close_utterance()

    def transcribe(self, text: str, *, rejected: bool = False) -> None:
        """The final words are known."""
        assert self.utterance is not None
        self.utterance.transcribed = True
        self._transcript(text, final=True, rejected=rejected)
        self._close_utterance()

    def finish_utterance(self, text: str, *, rejected: bool = False) -> None:
        """End what is open of the utterance, with these words."""
        utterance = self.utterance
        if utterance is not None and not utterance.turn_ended:
            self.end_turn()
        if self.utterance is not None and not self.utterance.transcribed:
            self.transcribe(text, rejected=rejected)

    def say(self, text: str, *, cut: bool = True, rejected: bool = False, during_s: float = 0.2) -> None:
        """Speak a whole utterance, over the answer if there is one."""
        self.begin_to_speak()
        if cut:
            self.vad_cut()
        self.seconds(during_s)
        self.cease_to_speak()
        self.seconds(0.1)
        self.finish_utterance(text, rejected=rejected)
        self.advance(1)

    def _transcript(self, text: str, *, final: bool, rejected: bool) -> None:
        assert self.utterance is not None
        self.post(
            InputTranscript(
                final=final,
                text=text,
                language="zh" if any("\u4e00" <= char <= "\u9fff" for char in text) else "en",
                audio_s=1.0,
                decode_s=0.1,
                context="short",
                retried=False,
                avg_logprob=-0.3,
                no_speech=0.1,
                vad_fraction=0.8,
                rejected="noise" if rejected else None,
            ),
            utterance_id=self.utterance.utterance_id,
        )

    def _close_utterance(self) -> None:
        if self.utterance is not None and self.utterance.turn_ended and self.utterance.transcribed:
            self.utterance = None

    # --- model, tools, devices ------------------------------------------------------------------------------

    def open_calls(self) -> list[ModelCall]:
        """Return the model calls that are not over."""
        self.calls = [call for call in self.calls if not call.is_over]
        return self.calls

    def tokens(self, text: str) -> None:
        """Let the newest open model call say something more."""
        calls = self.open_calls()
        if calls:
            self.do(lambda: calls[-1].pieces.put_nowait(text))

    def end_model(self, error: Exception | None = None) -> None:
        """Let the newest open model call end."""
        calls = self.open_calls()
        if calls:
            calls[-1].is_over = True
            self.do(lambda: calls[-1].pieces.put_nowait(error))

    def end_tool(self, *, ok: bool = True) -> None:
        """Let the oldest running side effect end."""
        if self.tools:
            result = self.tools.pop(0).result
            if not result.done():
                self.do(lambda: result.set_result("done") if ok else result.set_exception(ArithmeticError("tool")))

    def ask(self, text: str, *answer: str, begin: bool = True) -> None:
        """Type a question and let the model answer it whole."""
        self.type(text)
        self.until(lambda: bool(self.open_calls()), 5.0)
        for part in answer:
            self.tokens(part)
        self.end_model()
        if begin:
            self.until(lambda: self.core.turns.active is not None and self.core.turns.active.sounded, 10.0)

    def sentence(self, count: int = 5) -> str:
        """Return a sentence whose words occur nowhere else."""
        return " ".join(_spell(next(self._words)) for _ in range(count)).capitalize() + ". "

    def is_quiet(self) -> bool:
        """Whether nothing is going on."""
        return (
            self.core.conversation.is_quiet
            and self.speech.is_idle()
            and all(generation.settled.is_set() for generation in self.generations.all)
        )

    def finish_everything(self, limit_s: float = 60.0) -> None:
        """End all that is open and let it become quiet."""
        if not self.has_device:
            self.give_device()
        if self.utterance is not None:
            self.finish_utterance("", rejected=True)
        for _ in range(round(limit_s / 0.2)):
            while self.open_calls():
                self.end_model()
            while self.tools:
                self.end_tool()
            if self.is_quiet():
                self.seconds(0.3)
                if self.is_quiet() and not self.open_calls() and not self.tools:
                    return
            self.seconds(0.2)
        active = self.core.turns.active
        self.note(f"it does not become quiet: {active.generation_id if active else None} {active and active.state}")

    def mute(self, on: bool) -> None:
        """Mute the voice; what the samples say of answers under way is no longer clear."""
        self._unclear.update(g.generation_id for g in self.generations.all if not g.settled.is_set())
        self.do(lambda: self.speech.set_muted(on))

    def lose_device(self) -> None:
        """The loudspeaker goes away."""
        self.has_device = False
        self.player.detach()
        self.do(lambda: self.speech.set_output(False))

    def give_device(self) -> None:
        """The loudspeaker comes back."""
        self.player.attach(RATE_HZ)
        self.has_device = True
        self.do(lambda: self.speech.set_output(True))

    # --- looking ------------------------------------------------------------------------------------------

    def of(self, kind: str) -> list[Record]:
        """Return the records of one kind of this program."""
        return [record for record in self.records if record["type"] == kind]

    def payloads(self, kind: str) -> list[Record]:
        """Return their payloads."""
        return [record["payload"] for record in self.of(kind)]

    def states(self, generation_id: str) -> list[str]:
        """Return the states of an answer in order."""
        return [r["payload"]["to"] for r in self.of("generation:state") if r.get("generationId") == generation_id]

    def answers(self) -> list[Record]:
        """Return what was stored of the character's answers."""
        return [p for p in self.payloads("history:commit") if p["role"] == "assistant"]

    def stored(self) -> list[dict[str, Any]]:
        """Return all stored messages."""
        found: list[dict[str, Any]] = self.database.transact_now(records.list_messages)
        return found

    def words_sounded(self) -> str:
        """Return the words that sounded whole, in the order they first did."""
        return " ".join(word_spans(self.intents[i].text)[n].text for i, n in self.complete_words)

    def check(self) -> None:
        """Raise if something happened that must not."""
        assert not self.problems, "\n".join(dict.fromkeys(self.problems))


def _number(intent_id: IntentId) -> tuple[int, ...]:
    return tuple(int(part) for part in intent_id.removeprefix("i").split("-"))


def _spell(number: int) -> str:
    letters_of = "bcdfghklmnprstvw"
    vowels = "aeiou"
    parts = []
    while True:
        number, rest = divmod(number, 80)
        parts.append(letters_of[rest // 5] + vowels[rest % 5])
        if not number:
            return "mo" + "".join(reversed(parts))


def by_generation(pairs: list[tuple[IntentId, int]], intents: Mapping[IntentId, SpeechIntent]) -> dict[str, list[Any]]:
    """Group heard words by answer."""
    found: dict[str, list[Any]] = defaultdict(list)
    for intent_id, index in pairs:
        found[intents[intent_id].generation_id].append((intent_id, index))
    return found


__all__ = ["ConversationRig", "GenerationCancelled", "LlmUnavailable", "ModelCall", "ScriptedBrain"]
