"""Side effects that run at most once per key, also over a crash, and whose late results are set aside."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import EffectUncertain
from orchestrator.contracts.events import Event, ToolCalled, ToolResult
from orchestrator.contracts.ids import CorrelationId, IdFactory
from orchestrator.generation import Generation
from orchestrator.store import records
from orchestrator.store.database import Database

log = logging.getLogger(__name__)

Trace = Callable[[Event], None]


class TurnEffects:
    """The `Effects` of one generation.

    Nothing starts while the answer is suspended or speculative, and nothing at all once it is stale. An effect that is
    already running when the answer is cancelled runs to its end, because half an effect is worse than an unwanted
    one; its
    result is quarantined.
    """

    def __init__(
        self, *, generation: Generation, database: Database, clock: Clock, ids: IdFactory, trace: Trace
    ) -> None:
        """Bind to `generation`."""
        self._generation = generation
        self._database = database
        self._clock = clock
        self._ids = ids
        self._trace = trace
        self.done = 0
        self._running: set[asyncio.Task[Any]] = set()

    async def run(
        self, *, key: str, name: str, args: Mapping[str, Any], effect: Callable[[], Awaitable[Any]], timeout_s: float
    ) -> Any:
        """Run `effect` once for `key`; see `contracts.dialogue.Effects.run`."""
        await self._may_start()
        known = await self._database.transact(lambda db: records.effect_state(db, key))
        if known is not None and known[0] == "done":
            return known[1]
        if known is not None and known[0] == "started":
            raise EffectUncertain(key)
        self._generation.check()
        now = self._clock.wall()
        await self._database.transact(lambda db: records.start_effect(db, key=key, name=name, args=args, at=now))
        correlation_id = self._ids.correlation()
        self._emit(ToolCalled(name=name, args=dict(args), effect="write", idempotency_key=key), correlation_id)
        task = asyncio.get_running_loop().create_task(
            self._run_to_end(key=key, name=name, effect=effect, timeout_s=timeout_s, correlation_id=correlation_id),
            name=f"effect:{name}",
        )
        self._running.add(task)
        task.add_done_callback(self._on_effect_done)
        return await asyncio.shield(task)

    async def _may_start(self) -> None:
        self._generation.check()
        await self._generation.running.wait()
        self._generation.check()

    async def _run_to_end(
        self,
        *,
        key: str,
        name: str,
        effect: Callable[[], Awaitable[Any]],
        timeout_s: float,
        correlation_id: CorrelationId,
    ) -> Any:
        began_s = self._clock.monotonic_s()
        ok = False
        result: Any = None
        try:
            result = await asyncio.wait_for(effect(), timeout_s)
            ok = True
            return result
        finally:
            outcome = result if ok else None
            await self._database.transact(lambda db: records.end_effect(db, key=key, ok=ok, result=outcome))
            await self._finish(name, ok, outcome, correlation_id, began_s)

    async def _finish(self, name: str, ok: bool, result: Any, correlation_id: CorrelationId, began_s: float) -> None:
        self.done += 1 if ok else 0
        is_late = self._generation.is_stale
        if is_late:
            now = self._clock.wall()
            await self._database.transact(
                lambda db: records.quarantine(
                    db,
                    correlation_id=correlation_id,
                    generation_id=self._generation.generation_id,
                    name=name,
                    result=result,
                    at=now,
                )
            )
        self._emit(
            ToolResult(
                ok=ok,
                disposition="quarantined" if is_late else "used",
                duration_s=self._clock.monotonic_s() - began_s,
                value=result,
            ),
            correlation_id,
        )

    def _on_effect_done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.debug("an effect failed: %s", type(task.exception()).__name__)

    def _emit(self, payload: ToolCalled | ToolResult, correlation_id: CorrelationId) -> None:
        self._trace(
            Event(
                payload=payload,
                source="core",
                session_id=self._generation.session_id,
                generation_id=self._generation.generation_id,
                correlation_id=correlation_id,
            )
        )
