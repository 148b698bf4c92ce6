"""Tool calls and the way their results come back: over the bus, and only to the answer that asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from orchestrator.bus.bus import Bus
from orchestrator.bus.envelope import Envelope
from orchestrator.clock import Clock
from orchestrator.contracts.events import Event, Payload, ToolCalled, ToolResult
from orchestrator.contracts.ids import CorrelationId, IdFactory
from orchestrator.generation import Generation
from orchestrator.store import records
from orchestrator.store.database import Database

log = logging.getLogger(__name__)

_CLOSE_LIMIT_S = 0.3
"""How long the program's end waits for the store."""


class ToolResultLost(Exception):  # noqa: N818 - names what happened to the result
    """The result of a tool was dropped on its way: expired, or too much was waiting."""


class OpenToolCall:
    """One call whose result has not come back yet. `answer` raises what the tool raised, or `ToolResultLost`."""

    def __init__(self, *, correlation_id: CorrelationId, generation: Generation, name: str, began_s: float) -> None:
        """Begin to wait."""
        self.correlation_id = correlation_id
        self.generation = generation
        self.name = name
        self.began_s = began_s
        self.error: BaseException | None = None
        self.is_sent = False
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class ToolResults:
    """Announces tool calls and hands results to whoever waits. Lives on the core loop.

    A result travels as a `tool:result` event, so the policy table governs it. It reaches the waiting call by its
    correlation id while the call's generation is valid; the result of a cancelled answer is stored and marked as
    quarantined. Every call ends with exactly one `tool:result`.
    """

    def __init__(self, *, bus: Bus, database: Database, clock: Clock, ids: IdFactory) -> None:
        """Subscribe to results, and to what becomes of those the bus drops."""
        self._bus = bus
        self._database = database
        self._clock = clock
        self._ids = ids
        self._open: dict[CorrelationId, OpenToolCall] = {}
        self._storing: set[asyncio.Task[None]] = set()
        bus.subscribe(ToolResult, self._on_result)
        bus.watch_drops(ToolResult, self._on_drop)

    def begin(
        self,
        generation: Generation,
        *,
        name: str,
        args: Mapping[str, Any],
        effect: str,
        idempotency_key: str | None = None,
    ) -> OpenToolCall:
        """Announce a call; it must be ended by `finish` or `give_up`."""
        call = OpenToolCall(
            correlation_id=self._ids.correlation(),
            generation=generation,
            name=name,
            began_s=self._clock.monotonic_s(),
        )
        self._open[call.correlation_id] = call
        self._trace(call, ToolCalled(name=name, args=dict(args), effect=effect, idempotency_key=idempotency_key))
        return call

    def finish(self, call: OpenToolCall, *, ok: bool, value: Any = None, error: BaseException | None = None) -> None:
        """Send the result on its way; the second time, and after `give_up`, nothing happens."""
        if call.is_sent or call.correlation_id not in self._open:
            return
        call.is_sent = True
        call.error = error
        self._bus.post(self._event(call, self._result(call, ok=ok, disposition="used", value=value)))

    def give_up(self, call: OpenToolCall, error: Exception | None = None) -> None:
        """End a call that has no result and will have none; whoever waits gets `error`, or is cancelled."""
        if call.is_sent or self._take(call.correlation_id) is None:
            return
        self._trace(call, self._result(call, ok=False, disposition="dropped"))
        if error is None:
            call.answer.cancel()
        elif not call.answer.done():
            call.answer.set_exception(error)

    async def close(self) -> None:
        """End every open call, and wait a bounded time until what was set aside is stored."""
        for call in list(self._open.values()):
            call.is_sent = False
            self.give_up(call)
        if self._storing:
            await asyncio.wait(set(self._storing), timeout=_CLOSE_LIMIT_S)

    # --- the way back -----------------------------------------------------------------------------------

    def _on_result(self, envelope: Envelope) -> None:
        event = envelope.event
        call = self._take(event.correlation_id)
        if call is None or not isinstance(event.payload, ToolResult) or call.answer.done():
            return
        if event.payload.ok:
            call.answer.set_result(event.payload.value)
        else:
            call.answer.set_exception(call.error or ToolResultLost("failed"))

    def _on_drop(self, event: Event, reason: str) -> None:
        call = self._take(event.correlation_id)
        if call is None or not isinstance(event.payload, ToolResult):
            return
        result = event.payload
        if call.generation.is_stale:
            self._trace(call, self._result(call, ok=result.ok, disposition="quarantined", value=result.value))
            task = asyncio.get_running_loop().create_task(
                self._set_aside(call, result.value), name=f"quarantine:{call.correlation_id}"
            )
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)
            call.answer.cancel()
            return
        self._trace(call, self._result(call, ok=result.ok, disposition="dropped", value=result.value))
        if not call.answer.done():
            call.answer.set_exception(ToolResultLost(reason))

    async def _set_aside(self, call: OpenToolCall, value: Any) -> None:
        now = self._clock.wall()
        try:
            await self._database.transact(
                lambda db: records.quarantine(
                    db,
                    correlation_id=call.correlation_id,
                    generation_id=call.generation.generation_id,
                    name=call.name,
                    result=value,
                    at=now,
                )
            )
        except Exception:
            log.exception("a late result could not be stored")

    # --- small things -----------------------------------------------------------------------------------

    def _take(self, correlation_id: CorrelationId | None) -> OpenToolCall | None:
        return self._open.pop(correlation_id, None) if correlation_id is not None else None

    def _result(self, call: OpenToolCall, *, ok: bool, disposition: str, value: Any = None) -> ToolResult:
        duration_s = self._clock.monotonic_s() - call.began_s
        return ToolResult(ok=ok, disposition=disposition, duration_s=duration_s, value=value)

    def _event(self, call: OpenToolCall, payload: Payload) -> Event:
        return Event(
            payload=payload,
            source="core",
            session_id=call.generation.session_id,
            generation_id=call.generation.generation_id,
            correlation_id=call.correlation_id,
        )

    def _trace(self, call: OpenToolCall, payload: Payload) -> None:
        self._bus.trace(self._event(call, payload))
