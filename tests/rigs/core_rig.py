"""The real thinking side with a real model client on a real loop; only the loudspeaker is quick and silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.bus.bus import Bus
from orchestrator.bus.event_checker import EventChecker
from orchestrator.bus.event_log import EventLog
from orchestrator.clock import Clock, SystemClock
from orchestrator.contracts.commands import SendText, Stop
from orchestrator.contracts.dialogue import Brain, Llm, LlmRequest, TurnContext, TurnInput
from orchestrator.contracts.events import (
    AppExit,
    Event,
    IntentStateChanged,
    LogOpen,
    OutputStateChanged,
    OutputWord,
    Payload,
)
from orchestrator.contracts.ids import GenerationId, IdFactory
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.ports import PageOpener
from orchestrator.contracts.views import View
from orchestrator.core import Core, CoreParts
from orchestrator.dialogue.persona_brain import PersonaBrain
from orchestrator.generation import Generations
from orchestrator.llm.client import LlmClient
from orchestrator.llm.endpoint import Endpoint, FixedEndpoint
from orchestrator.llm.persona import load_persona_layers
from orchestrator.llm.prompts import CAPABLE_BUDGET, persona_request
from orchestrator.llm.reply_text import ReplyText
from orchestrator.policy_file import Policy
from orchestrator.speech.words import word_spans
from orchestrator.store.database import Database

ROOT = Path(__file__).resolve().parent.parent.parent
Record = dict[str, Any]


class QuickSpeech:
    """A `SpeechPort` that plays every sentence at once; while `is_paused` sentences wait unheard."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: list[SpeechIntent] = []
        self.is_paused = False
        self.said: list[str] = []

    def submit(self, intent: SpeechIntent) -> bool:
        self._state(intent, "queued")
        self._waiting.append(intent)
        self.go_on()
        return True

    def go_on(self) -> None:
        """Play what waits, unless paused."""
        while self._waiting and not self.is_paused:
            intent = self._waiting.pop(0)
            self.said.append(intent.text.strip())
            self._state(intent, "playing")
            for index, span in enumerate(word_spans(intent.text)):
                word = OutputWord(
                    index=index,
                    text=span.text,
                    char_start=span.char_start,
                    char_end=span.char_end,
                    at_s=0.0,
                    end_s=0.0,
                    cut=False,
                    estimated=True,
                )
                self._post(intent, word)
            self._state(intent, "played")

    def prepare(self, intent: SpeechIntent) -> None:
        pass

    def hold(self, generation_id: GenerationId) -> None:
        self.is_paused = True

    def resume(self, generation_id: GenerationId) -> None:
        self.is_paused = False
        self.go_on()

    def purge(self, generation_id: GenerationId, reason: str) -> None:
        mine = [intent for intent in self._waiting if intent.generation_id == generation_id]
        self._waiting = [intent for intent in self._waiting if intent.generation_id != generation_id]
        for intent in mine:
            self._state(intent, "dropped", reason)
        self._bus.post(Event(payload=OutputStateChanged(state="stopped"), source="player", generation_id=generation_id))

    def set_muted(self, on: bool) -> None:
        pass

    def _state(self, intent: SpeechIntent, state: str, reason: str | None = None) -> None:
        changed = IntentStateChanged(
            kind="speech", behaviour="queue", slot=None, text=intent.text, state=state, reason=reason
        )
        self._post(intent, changed)

    def _post(self, intent: SpeechIntent, payload: Payload) -> None:
        self._bus.post(
            Event(
                payload=payload,
                source="player",
                generation_id=intent.generation_id,
                intent_id=intent.intent_id,
            )
        )


class NoViews:
    """Takes views and forgets them."""

    def show(self, view: View) -> bool:
        return True


class ClientHost:
    """The core's model side: a real client of one endpoint."""

    def __init__(self, url: str, clock: Clock, ids: IdFactory, *, offers_tools: bool) -> None:
        source = FixedEndpoint(Endpoint(base_url=url, model="scripted"))
        self.client = LlmClient(source, clock=clock, ids=ids, offers_tools=offers_tools)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        await self.client.aclose()

    def for_turn(self, generation_id: GenerationId, emit: Callable[[Payload], None]) -> Llm:
        return self.client.bind(generation_id, emit)


class FakeOpener:
    """A `PageOpener` that remembers; `gate` keeps a page from coming up until it is set."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.opened: list[str] = []
        self.asked = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def open(self, url: str) -> bool:
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        self.opened.append(url)
        return self.works


class CoreRig:
    """One program; an async context manager. Its record is checked at the end."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        opener: PageOpener | None = None,
        offers_tools: bool = True,
        policy: Policy | None = None,
        brain: Brain | None = None,
    ) -> None:
        self.records: list[Record] = []
        self.clock = SystemClock()
        self.ids = IdFactory()
        self.log = EventLog(self.clock, None, is_threaded=False)
        self.log.add_tap(self._on_record)
        self.checker = EventChecker()
        self._changed = asyncio.Event()
        self.log.record(
            Event(
                payload=LogOpen(schema=1, wall="", monotonic_origin=0.0, rates={}, in_latency_s=0.0, out_latency_s=0.0),
                source="app",
            )
        )
        policy = policy or Policy()
        self.bus = Bus(self.clock, self.ids, self.log, policy.table)
        self.generations = Generations(self.ids, self.clock, self.bus.trace)
        self.database = Database(folder / "mynah.db")
        self.speech = QuickSpeech(self.bus)
        self.host = ClientHost(url, self.clock, self.ids, offers_tools=offers_tools)
        self._persona = load_persona_layers([ROOT / "flow_config" / "persona.yml"])
        used: Brain = brain or PersonaBrain(self._request)
        self.core = Core(
            CoreParts(
                clock=self.clock,
                ids=self.ids,
                event_log=self.log,
                database=self.database,
                speech=self.speech,
                views=NoViews(),
                llm=self.host,
                make_brain=lambda: used,
                remake_brain=lambda: used,
                make_pipe=ReplyText,
                policy=policy,
                apology=lambda code, language: f"sorry, {code}.",
                session_idle_s=0.0,
                page_opener=opener,
            ),
            self.bus,
            self.generations,
        )

    def _request(self, turn: TurnContext, user: TurnInput) -> LlmRequest:
        return persona_request(
            self._persona,
            history=turn.history,
            user=user,
            world=turn.world,
            memory=tuple(getattr(turn, "facts", ())),
            now=turn.now,
            budget=CAPABLE_BUDGET,
        )

    async def __aenter__(self) -> CoreRig:
        await self.core.open()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self.core.close()
        self.database.close()
        self.log.record(Event(payload=AppExit(code=0, counters={}), source="app"))
        problems = self.checker.finish()
        if kind is None:
            assert not problems, "\n".join(problems)

    def _on_record(self, record: Record) -> None:
        self.records.append(record)
        self.checker.feed(record)
        self._changed.set()

    async def wait_for(
        self, kind: str, matches: Callable[[Record], bool] = lambda _: True, *, after: int = 0, timeout_s: float = 10.0
    ) -> Record:
        """Return the first record of `kind` that matches, beyond seq `after`."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    for record in self.records:
                        if record["type"] == kind and record["seq"] > after and matches(record):
                            return record
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            tail = [(r["type"], r["payload"]) for r in self.records if r["type"] != "bus:handled"][-12:]
            raise AssertionError(f"no {kind} within {timeout_s} s; the last: {tail}") from None

    @property
    def last_seq(self) -> int:
        return int(self.records[-1]["seq"])

    def of(self, kind: str) -> list[Record]:
        """Return all records of `kind`."""
        return [record for record in self.records if record["type"] == kind]

    def type(self, text: str) -> None:
        """Send a typed line."""
        self.core.handle(SendText(text=text))

    def stop(self) -> None:
        """Press stop."""
        self.core.handle(Stop())

    async def ask(self, text: str) -> list[str]:
        """Type a line, wait until its answer is stored, and return the sentences said meanwhile."""
        before, seq = len(self.speech.said), self.last_seq
        self.type(text)
        ended = await self.wait_for(
            "generation:state", lambda r: r["payload"]["to"] in ("COMPLETED", "FAILED", "CANCELLED"), after=seq
        )
        await self.wait_for("turn:commit", lambda r: r["generationId"] == ended["generationId"], after=ended["seq"])
        return self.speech.said[before:]
