"""Figures of parts in this process: the bus under load, the steps of a rail and of a flow."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from bench.plan import Setting
from bench.rows import Budget, Row

from orchestrator.bus.bus import Bus
from orchestrator.bus.event_log import EventLog
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.events import (
    ContextUpdated,
    Event,
    InputInterrupt,
    LlmFirstToken,
    Payload,
    ToolResult,
)
from orchestrator.contracts.ids import CallId, CorrelationId, IdFactory
from orchestrator.contracts.lanes import InterruptReason
from orchestrator.flows.source import parse_source
from orchestrator.flows.testing.format import TestTurn
from orchestrator.flows.testing.runner import Conversation, RailsFactory, Runner

CONTEXT_PER_S = 1000
STREAM_PER_S = 200
CONTROL_PER_S = 25
STEP_BUDGET_MS = 2.0
LATE_TURN = 1000

_RAIL = """
user_intents: {ask about salary: ["how much do you pay"]}
bot_messages: {refuse to discuss salary: ["I can't discuss salary here."]}
rails:
  salary:
    kind: rail
    steps: [{user: ask about salary}, {bot: refuse to discuss salary}]
"""
_FLOW = """
slots:
  bench_city: {type: text, label: city, description: where to}
  bench_day: {type: text, label: day, description: when}
flows:
  bench_trip:
    name: bench trip
    description: plan a trip
    slots: [bench_city, bench_day]
    steps:
      - {id: start, type: start, next: ask_city}
      - {id: ask_city, type: collect, slot_name: bench_city, response: {mode: static, text: "Where to?"}, next: ask_day}
      - {id: ask_day, type: collect, slot_name: bench_day, response: {mode: static, text: "When?"}, next: done}
      - {id: done, type: action, action: action_response, args: {mode: static, text: "Fine."}, next: end}
      - {id: end, type: end, next: []}
"""


class ComponentSection:
    """The parts that need no sound."""

    name = "components"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self._waits: list[float] = []
        self._posted = 0
        self._steps: dict[str, list[float]] = defaultdict(list)
        self._notes: dict[str, str] = {}

    def run(self) -> None:
        """Measure the bus, then the steps."""
        # One loop for all: being cancelled while a loop is made leaves complaints of a half-made one.
        asyncio.run(self._measure())

    async def _measure(self) -> None:
        self._set.tell.say(f"bus under load, {self._set.plan.bus_s:g} s")
        await self._bus(self._set.plan.bus_s)
        for kind in ("rail", "flow"):
            self._set.tell.say(f"steps of a {kind}, turns 1 to {LATE_TURN + 20}")
            try:
                await self._converse(kind)
            except Exception as error:
                # A part that is not there yet leaves its row unmeasured, not the whole bench.
                self._notes[kind] = f"{type(error).__name__}: {error}"
                self._set.tell.say(f"steps of a {kind}: no figure, {self._notes[kind]}")

    async def _bus(self, seconds: float) -> None:
        clock = SystemClock()
        log = EventLog(clock, self._set.folder / "bus-events.jsonl")
        log.add_tap(self._note)
        bus = Bus(clock, IdFactory(), log)
        world: dict[str, Any] = {}
        bus.subscribe(ContextUpdated, lambda envelope: world.update(_payload(envelope, ContextUpdated).values))
        bus.subscribe(InputInterrupt, lambda envelope: None)
        bus.subscribe(LlmFirstToken, lambda envelope: None)
        bus.subscribe(ToolResult, lambda envelope: None)
        bus.attach(asyncio.get_running_loop())
        stop = threading.Event()
        posters = [
            _poster("bench-context", CONTEXT_PER_S, stop, lambda n: bus.post(_context(n))),
            _poster("bench-stream", STREAM_PER_S, stop, lambda n: bus.post(_stream(n))),
            _poster("bench-control", CONTROL_PER_S, stop, lambda n: self._interrupt(bus, n)),
        ]
        for poster in posters:
            poster.start()
        try:
            await asyncio.sleep(seconds)
        finally:
            stop.set()
            for poster in posters:
                await asyncio.to_thread(poster.join, 5.0)
            await asyncio.sleep(0.05)
            log.close()

    def _interrupt(self, bus: Bus, number: int) -> None:
        reasons = list(InterruptReason)
        payload = InputInterrupt(reason=reasons[number % len(reasons)], by="button")
        self._posted += bus.post(Event(payload=payload, source="bench"))

    def _note(self, record: dict[str, Any]) -> None:
        if record["type"] == "bus:handled" and record["payload"]["handledType"] == InputInterrupt.TYPE:
            self._waits.append(1000 * record["payload"]["wait_s"])

    async def _converse(self, kind: str) -> None:
        texts = ("how much do you pay",) if kind == "rail" else ("bench trip", "Oslo", "Friday")
        conversation = _conversation(kind, self._set)
        for turn in range(1, LATE_TURN + 21):
            began_s = time.perf_counter()
            outcome = await conversation.take(TestTurn(user=texts[(turn - 1) % len(texts)]))
            took_ms = 1000 * (time.perf_counter() - began_s)
            if outcome.failed or not outcome.replies:
                raise RuntimeError(f"turn {turn} gave no reply: {outcome.failed}")
            if turn <= 20:
                self._steps[f"{kind}, turns 1 to 20"].append(took_ms)
            elif turn > LATE_TURN:
                self._steps[f"{kind}, turns {LATE_TURN + 1} to {LATE_TURN + 20}"].append(took_ms)

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        lost = f"; {self._posted - len(self._waits)} of {self._posted} coalesced" if self._waits else ""
        rows = [
            Row(
                name="control event: wait until it is dispatched",
                condition=f"{CONTEXT_PER_S} context updates/s, {STREAM_PER_S} token and tool events/s",
                values=tuple(self._waits),
                unit="ms",
                budget=Budget(p99=5.0),
                source="component",
                stimuli="synthetic",
                note=f"p99 {_p99(self._waits)} ms{lost}" if self._waits else "",
            )
        ]
        for kind in ("rail", "flow"):
            for turns in ("turns 1 to 20", f"turns {LATE_TURN + 1} to {LATE_TURN + 20}"):
                key = f"{kind}, {turns}"
                rows.append(
                    Row(
                        name="step without a language model",
                        condition=f"{key}, without embedding",
                        values=tuple(self._steps[key]),
                        unit="ms",
                        budget=Budget(p50=STEP_BUDGET_MS),
                        source="component",
                        stimuli="synthetic",
                        note=self._notes.get(kind, ""),
                    )
                )
        return rows


def _conversation(kind: str, setting: Setting) -> Conversation:
    from desktop.paths import flow_config
    from orchestrator.dialogue.brain_loading import TestRails
    from orchestrator.flows.loader import Layer, load_config

    name = "rails.yml" if kind == "rail" else "user_flows.yml"
    shipped = {path.name: path.read_text(encoding="utf-8") for path in flow_config().glob("system_flows.yml")}
    layers = [Layer.of_texts(shipped), Layer(documents=(parse_source(_RAIL if kind == "rail" else _FLOW, name),))]
    loaded = load_config(layers)
    if loaded.errors:
        raise RuntimeError("; ".join(str(problem) for problem in loaded.errors))
    make_rails: RailsFactory = TestRails()
    runner = Runner(folder=setting.folder, shipped=shipped, make_rails=make_rails)
    return runner.conversation(loaded.config, VirtualClock(0.0), language="en")


def _payload(envelope: Any, cls: type[Any]) -> Any:
    assert isinstance(envelope.event.payload, cls)
    return envelope.event.payload


def _context(number: int) -> Event:
    values = {"window": f"window {number}", "battery": number % 100}
    return Event(payload=ContextUpdated(origin=f"source {number % 8}", values=values), source="bench")


def _stream(number: int) -> Event:
    payload: Payload = (
        LlmFirstToken(call_id=CallId(f"call-{number}"))
        if number % 2
        else ToolResult(ok=True, disposition="used", duration_s=0.01, value={"text": "x" * 200})
    )
    return Event(payload=payload, source="bench", correlation_id=CorrelationId(f"c-{number}"))


def _poster(name: str, per_s: int, stop: threading.Event, post: Callable[[int], object]) -> threading.Thread:
    """Return a thread that posts `per_s` events a second until `stop`; what it missed it makes up for."""

    def run() -> None:
        began_s, number = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - began_s) * per_s)
            while number < due and not stop.is_set():
                post(number)
                number += 1
            stop.wait(min(0.002, 1 / per_s))

    return threading.Thread(target=run, name=name, daemon=True)


def _p99(values: Sequence[float]) -> str:
    from bench.rows import percentile

    return f"{percentile(values, 99):.2f}"
