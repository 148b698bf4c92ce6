"""Side effects that run at most once per key, also over a crash, and whose late results are set aside."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import EffectUncertain
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.dialogue.tool_results import OpenToolCall, ToolResults
from orchestrator.generation import Generation
from orchestrator.store import records
from orchestrator.store.database import Database

log = logging.getLogger(__name__)


def stored_key(key: str, args: Mapping[str, Any]) -> str:
    """Return `key` made distinct by its arguments; what JSON can't say counts by its text."""
    plain = json.dumps(args, ensure_ascii=False, sort_keys=True, default=str)
    return f"{key}#{hashlib.sha256(plain.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


class TurnEffects:
    """The `Effects` of one generation.

    Nothing begins while the answer is suspended or speculative, and nothing at all once it is stale. An effect that is
    already running when the answer is cancelled runs to its end, because half an effect is worse than an unwanted
    one; its result is quarantined. The key that is stored is the caller's and a digest of the arguments: two
    calls that differ never share one.
    """

    def __init__(self, *, generation: Generation, database: Database, clock: Clock, results: ToolResults) -> None:
        """Bind to `generation`; calls are announced to `results` and their results come back from there."""
        self._generation = generation
        self._database = database
        self._clock = clock
        self._results = results
        self.done = 0
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_running(self) -> bool:
        """Whether an effect is under way."""
        return bool(self._running)

    async def run(
        self, *, key: str, name: str, args: Mapping[str, Any], effect: Callable[[], Awaitable[Any]], timeout_s: float
    ) -> Any:
        """Run `effect` once for `key`; see `contracts.dialogue.Effects.run`."""
        key = stored_key(key, args)
        await self._may_begin()
        known = await self._database.transact(lambda db: records.effect_state(db, key))
        if known is not None and known[0] == "done":
            return known[1]
        if known is not None and known[0] == "started":
            raise EffectUncertain(key)
        await self._may_begin()
        now = self._clock.wall()
        try:
            await self._database.transact(lambda db: records.start_effect(db, key=key, name=name, args=args, at=now))
        except asyncio.CancelledError:
            # The store finishes what it has begun; what has not run must not look as if it might have.
            await self._database.transact(lambda db: records.end_effect(db, key=key, ok=False, result=None))
            raise
        call = self._results.begin(self._generation, name=name, args=args, effect="write", idempotency_key=key)
        task = asyncio.get_running_loop().create_task(
            self._run_to_end(key=key, effect=effect, timeout_s=timeout_s, call=call), name=f"effect:{name}"
        )
        self._running.add(task)
        task.add_done_callback(lambda task: self._on_effect_done(task, call))
        return await call.answer

    async def _may_begin(self) -> None:
        self._generation.check()
        await self._generation.confirmed.wait()
        while not self._generation.running.is_set():
            await self._generation.running.wait()
        self._generation.check()

    async def close(self, timeout_s: float) -> None:
        """Wait for what still runs, then break it off: its key stays as one whose outcome nobody knows."""
        if not self._running:
            return
        _, late = await asyncio.wait(set(self._running), timeout=timeout_s)
        for task in late:
            task.cancel("shutdown")
        if late:
            await asyncio.wait(late, timeout=timeout_s)

    async def _run_to_end(
        self, *, key: str, effect: Callable[[], Awaitable[Any]], timeout_s: float, call: OpenToolCall
    ) -> None:
        try:
            await self._may_begin()
            result = await asyncio.wait_for(effect(), timeout_s)
        except GenerationCancelled:
            await self._database.transact(lambda db: records.end_effect(db, key=key, ok=False, result=None))
            raise
        except Exception as error:
            await self._database.transact(lambda db: records.end_effect(db, key=key, ok=False, result=None))
            self._results.finish(call, ok=False, error=error)
            raise
        await self._database.transact(lambda db: records.end_effect(db, key=key, ok=True, result=result))
        self.done += 1
        self._results.finish(call, ok=True, value=result)

    def _on_effect_done(self, task: asyncio.Task[None], call: OpenToolCall) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.debug("an effect failed: %s", type(error).__name__)
        if task.cancelled() or error is not None:
            self._results.give_up(call, error if isinstance(error, Exception) else None)
