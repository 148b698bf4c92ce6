from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from orchestrator.bus.bus import Bus
from orchestrator.bus.envelope import Envelope
from orchestrator.bus.event_log import EventLog
from orchestrator.bus.policy import DEFAULT_ROWS, PolicyRow, PolicyTable
from orchestrator.clock import VirtualClock
from orchestrator.contracts.events import (
    ContextUpdated,
    Event,
    InputInterrupt,
    InputUser,
    MemoryWrite,
    NotifyRequested,
    OutputDuck,
    Payload,
    payload_classes,
)
from orchestrator.contracts.ids import GenerationId, IdFactory
from orchestrator.contracts.lanes import InterruptReason, Lane, PriorityClass


class Watched:
    """A bus with one consumer that remembers everything."""

    def __init__(self, **rows: PolicyRow) -> None:
        self.clock = VirtualClock(100.0)
        self.log = EventLog(self.clock, None, is_threaded=False)
        self.records: list[dict[str, object]] = []
        self.log.add_tap(self.records.append)
        table = PolicyTable(rows={**DEFAULT_ROWS, **{key.replace("__", ":"): row for key, row in rows.items()}})
        self.bus = Bus(self.clock, IdFactory(), self.log, table)
        self.handled: list[Envelope] = []
        for payload in payload_classes().values():
            if payload.TYPE:
                self.bus.subscribe(payload, self.handled.append)

    def post(self, payload: Payload, **fields: object) -> bool:
        return self.bus.post(Event(payload=payload, source="test", **fields))  # type: ignore[arg-type]

    async def run(self, call: Callable[[], object] | None = None) -> list[str]:
        self.bus.attach(asyncio.get_running_loop())
        if call is not None:
            call()
        for _ in range(20):
            await asyncio.sleep(0)
        return [envelope.type for envelope in self.handled]


def context(origin: str, value: int) -> ContextUpdated:
    return ContextUpdated(origin=origin, values={"v": value})


DUCK = OutputDuck(at_s=0, gain_db=-20, ramp_s=0.02)
STOP = InputInterrupt(reason=InterruptReason.USER_STOP, by="button")


async def test_lane_then_score_then_arrival() -> None:
    watched = Watched()
    for payload in (
        MemoryWrite(text="m"),
        context("a", 1),
        NotifyRequested(id="n", text="normal"),
        NotifyRequested(id="u", text="urgent", urgent=True),
        InputUser(text="first", via="typed"),
        DUCK,
        InputUser(text="second", via="typed"),
        STOP,
    ):
        assert watched.post(payload)
    assert await watched.run() == [
        "input:interrupt",
        "output:duck",
        "input:user",
        "input:user",
        "notify",
        "notify",
        "context:update",
        "memory:write",
    ]
    texts = [e.event.payload.text for e in watched.handled if isinstance(e.event.payload, (InputUser, NotifyRequested))]
    assert texts == ["first", "second", "urgent", "normal"]


async def test_the_same_event_always_gets_the_same_place_and_says_why() -> None:
    watched = Watched()
    for _ in range(3):
        watched.post(InputUser(text="x", via="typed"))
    watched.bus.output_is_speaking = True
    watched.post(InputUser(text="y", via="typed"))
    await watched.run()
    places = [(e.lane, e.priority_score, e.priority_class, e.policy_reason) for e in watched.handled]
    assert places[0] == (Lane.CONTROL, 930, PriorityClass.HIGH, "input:user/speaking")
    assert set(places[1:]) == {(Lane.DIALOGUE, 800, PriorityClass.HIGH, "input:user")}


async def test_what_has_expired_is_dropped_and_counted() -> None:
    watched = Watched()
    watched.post(STOP)
    watched.post(DUCK, expires_at_s=100.5)
    watched.post(DUCK, expires_at_s=104.0)
    watched.clock.advance(3.0)
    assert await watched.run() == ["output:duck"]
    assert watched.bus.counters["dropped:expired"] == 2


async def test_identical_interrupts_coalesce_but_not_over_targets() -> None:
    watched = Watched()
    for target in ("g1", "g1", "g2"):
        watched.post(STOP, target_generation_id=GenerationId(target))
    await watched.run()
    assert [e.event.target_generation_id for e in watched.handled] == ["g1", "g2"]
    assert watched.bus.counters["dropped:coalesced"] == 1


async def test_a_delayed_event_keeps_nobody_waiting_and_is_replaced_by_newer_ones() -> None:
    watched = Watched(
        context__update=PolicyRow(lane=Lane.CONTEXT, score=100, coalesce_key="origin", coalesce_window_s=0.05)
    )
    watched.bus.attach(asyncio.get_running_loop())
    watched.post(context("a", 1))
    await asyncio.sleep(0)
    watched.post(context("a", 2))
    watched.post(DUCK)
    for _ in range(5):
        await asyncio.sleep(0)
    assert [e.type for e in watched.handled] == ["output:duck"], "control came although something is delayed"
    watched.clock.advance(0.06)
    watched.post(DUCK)
    for _ in range(5):
        await asyncio.sleep(0)
    values = [e.event.payload.values for e in watched.handled if isinstance(e.event.payload, ContextUpdated)]
    assert values == [{"v": 2}]


async def test_a_consumer_that_raises_is_isolated(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    late: list[Envelope] = []

    def fail(envelope: Envelope) -> None:
        raise ArithmeticError("scripted")

    watched.bus.subscribe(OutputDuck, fail)
    watched.bus.subscribe(OutputDuck, late.append)
    watched.post(DUCK)
    watched.post(STOP)
    assert await watched.run() == ["input:interrupt", "output:duck"]
    assert len(late) == 1
    assert watched.bus.counters["handler_failed"] == 1
    assert "a consumer of output:duck failed" in caplog.text


async def test_a_check_or_a_watcher_that_raises_stops_nothing() -> None:
    watched = Watched(memory__write=PolicyRow(lane=Lane.BACKGROUND, score=20, max_waiting=1))

    def fail(*_: object) -> bool:
        raise ZeroDivisionError

    watched.bus.set_stale_check(fail)
    watched.bus.watch_drops(MemoryWrite, fail)
    for text in "abc":
        watched.post(MemoryWrite(text=text))
    assert await watched.run(lambda: watched.post(STOP)) == ["input:interrupt", "memory:write"]
    assert watched.post(DUCK)
    for _ in range(20):
        await asyncio.sleep(0)
    assert watched.handled[-1].type == "output:duck", "the bus goes on"
    assert watched.bus.counters["handler_failed"] == 5


@pytest.mark.parametrize("event", ["text", None, Event(payload="x", source="s"), Event(payload=Payload(), source="s")])  # type: ignore[arg-type]
def test_a_malformed_event_is_refused(event: object) -> None:
    watched = Watched()
    assert watched.bus.post(event) is False  # type: ignore[arg-type]
    assert watched.bus.counters["dropped:malformed"] == 1
    assert watched.records[-1]["type"] == "bus:dropped"


async def test_a_flood_from_many_threads_loses_nothing_uncounted_and_control_goes_first() -> None:
    watched = Watched()
    threads = [
        threading.Thread(
            target=lambda n=n: [watched.post(context(f"o{n}-{i % 30}", i)) for i in range(500)], name=f"flood-{n}"
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(50):
        watched.post(DUCK)
    order = await watched.run()
    assert order[:50] == ["output:duck"] * 50
    assert order.count("context:update") == 64
    counters = watched.bus.counters
    assert counters["dropped:coalesced"] + counters["dropped:overflow"] + 64 == 2000
    newest = {e.event.payload.origin: e.event.payload.values["v"] for e in watched.handled[50:]}  # type: ignore[attr-defined]
    assert all(value >= 470 for value in newest.values()), "what is left are the newest of their keys"


async def test_beyond_ten_thousand_only_control_is_taken() -> None:
    watched = Watched(memory__write=PolicyRow(lane=Lane.BACKGROUND, score=20))
    taken = sum(watched.post(MemoryWrite(text=str(n))) for n in range(10_050))
    assert taken == 10_000
    assert watched.post(DUCK)
    assert watched.bus.counters["dropped:overflow"] == 50


async def test_a_long_queue_does_not_keep_the_loop() -> None:
    watched = Watched(memory__write=PolicyRow(lane=Lane.BACKGROUND, score=20))
    turns = 0

    def slow(envelope: Envelope) -> None:
        watched.clock.advance(0.001)

    watched.bus.subscribe(MemoryWrite, slow)
    for number in range(20):
        watched.post(MemoryWrite(text=str(number)))
    watched.bus.attach(asyncio.get_running_loop())
    while len(watched.handled) < 20:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 5, "others had their turn in between"


def test_what_waits_at_the_end_is_handed_out() -> None:
    watched = Watched(
        context__update=PolicyRow(lane=Lane.CONTEXT, score=100, coalesce_key="origin", coalesce_window_s=30.0)
    )
    watched.post(context("a", 1))
    watched.post(DUCK)
    watched.bus.drain()
    assert [e.type for e in watched.handled] == ["output:duck", "context:update"]
