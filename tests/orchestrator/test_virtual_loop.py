"""Time in a simulation: it jumps while nothing works, runs while something does, stands still when frozen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.virtual_loop import VirtualTimeLoop


def run(make: Callable[[VirtualClock, dict[str, bool]], Coroutine[Any, Any, Any]], *, frozen: bool = False) -> Any:
    clock = VirtualClock(100.0)
    work = {"on": False}
    loop = VirtualTimeLoop(clock, SystemClock(), lambda: work["on"], is_frozen=frozen)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(make(clock, work))


def test_an_hour_of_waiting_takes_no_time_and_timers_keep_their_order() -> None:
    async def main(clock: VirtualClock, work: dict[str, bool]) -> list[float]:
        seen: list[float] = []

        async def at(delay_s: float) -> None:
            await asyncio.sleep(delay_s)
            seen.append(round(clock.monotonic_s(), 3))

        await asyncio.gather(at(3600), at(1), at(0.5), at(7200))
        return seen

    assert run(main) == [100.5, 101.0, 3700.0, 7300.0]


def test_work_in_an_executor_costs_its_time_only_when_not_frozen() -> None:
    async def main(clock: VirtualClock, work: dict[str, bool]) -> float:
        began_s = clock.monotonic_s()
        assert await asyncio.to_thread(sum, range(200_000)) > 0
        return clock.monotonic_s() - began_s

    assert run(main, frozen=True) == 0.0
    assert 0.0 < run(main) < 5.0


@pytest.mark.parametrize("frozen", [False, True])
def test_a_socket_answer_is_waited_for_while_work_is_under_way(frozen: bool) -> None:
    async def main(clock: VirtualClock, work: dict[str, bool]) -> float:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        work["on"] = True
        began_s = clock.monotonic_s()
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        took_s = clock.monotonic_s() - began_s
        work["on"] = False
        writer.close()
        server.close()
        return took_s

    took_s = run(main, frozen=frozen)
    assert took_s == 0.0 if frozen else took_s < 5.0
