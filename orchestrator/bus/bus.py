"""Takes, places, dispatches. Never searches memory, builds a prompt, calls a model or synthesises."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable

from orchestrator.bus.envelope import Envelope
from orchestrator.bus.event_log import EventLog
from orchestrator.bus.lane_queue import LaneQueue
from orchestrator.bus.policy import PolicyTable, class_of, coalesce_key_of
from orchestrator.clock import Clock
from orchestrator.contracts.events import BusDropped, BusHandled, Event, Payload
from orchestrator.contracts.ids import IdFactory
from orchestrator.contracts.lanes import Lane

log = logging.getLogger(__name__)

Handler = Callable[[Envelope], None]
DropHandler = Callable[[Event, str], None]

_SLICE_S = 0.002
"""How long the bus keeps the loop before others get a turn; well below the 5 ms a control event may wait."""
_DEDUPE_MEMORY = 1024
_MAX_WAITING = 10_000
_SAMPLE_EVERY = 50


class Bus:
    """The one queue of the core thread; the core is its reader.

    `post` may be called from any thread except device callbacks. Handlers run on the core loop, synchronously, and must
    not wait; one that raises is reported and isolated. Overflow: beyond a type's `max_waiting` its oldest event of
    the lowest score is
    dropped; beyond 10,000 waiting events only control events are taken. All drops are counted in `counters`.
    """

    def __init__(self, clock: Clock, ids: IdFactory, event_log: EventLog, policy: PolicyTable | None = None) -> None:
        """Start unattached; call `attach` on the loop that will dispatch."""
        self._clock = clock
        self._ids = ids
        self._log = event_log
        self._policy = policy or PolicyTable()
        self._lock = threading.Lock()
        self._queue = LaneQueue()
        self._order = 0
        self._is_scheduled = False
        self._delay_timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handlers: dict[str, list[Handler]] = {}
        self._drop_handlers: dict[str, list[DropHandler]] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._gate: Callable[[Envelope], bool] | None = None
        self.output_is_speaking = False
        self.is_busy = False
        self.counters: Counter[str] = Counter()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Dispatch on `loop` from now on, beginning with what already waits."""
        with self._lock:
            self._loop = loop
            self._is_scheduled = True
        loop.call_soon_threadsafe(self._dispatch)

    def set_policy(self, policy: PolicyTable) -> None:
        """Use `policy` for what is posted from now on."""
        self._policy = policy

    def set_stale_check(self, is_stale: Callable[[Envelope], bool]) -> None:
        """Ask `is_stale` right before an event is handed out; a stale one is dropped and counted."""
        self._gate = is_stale

    def subscribe(self, payload_type: type[Payload], handler: Handler) -> None:
        """Hand every event of `payload_type` to `handler`, in order of subscription."""
        self._handlers.setdefault(payload_type.TYPE, []).append(handler)

    def watch_drops(self, payload_type: type[Payload], handler: DropHandler) -> None:
        """Tell `handler` every event of `payload_type` that is dropped, with the reason; in the thread that dropped it.

        For producers whose events must end exactly once.
        """
        self._drop_handlers.setdefault(payload_type.TYPE, []).append(handler)

    def post(self, event: Event) -> bool:
        """Take `event`; False if it was malformed, a duplicate, or dropped for load."""
        if not isinstance(event, Event) or not isinstance(event.payload, Payload) or not event.payload.TYPE:
            self._drop_unplaced(str(getattr(getattr(event, "payload", None), "TYPE", "") or "unknown"), "malformed")
            return False
        now_s = self._clock.monotonic_s()
        dropped: list[tuple[str, str, Event | None]] = []
        with self._lock:
            is_taken = self._take(event, now_s, dropped)
            loop = self._loop
            must_wake = is_taken and loop is not None and not self._is_scheduled
            if must_wake:
                self._is_scheduled = True
        for kind, reason, source in dropped:
            self._note_drop(kind, reason, source)
        if must_wake and loop is not None:
            try:
                loop.call_soon_threadsafe(self._dispatch)
            except RuntimeError:
                return False
        return is_taken

    def drain(self) -> None:
        """Hand out everything that waits now, on the calling loop's thread; for the end of the program."""
        while True:
            with self._lock:
                self._queue.release_delayed(float("inf"))
                envelope = self._queue.pop()
            if envelope is None:
                return
            self._hand_out(envelope, self._clock.monotonic_s())

    def trace(self, event: Event) -> None:
        """Write a fact into the events file without sending it to anyone."""
        self._log.record(event)

    def _take(self, event: Event, now_s: float, dropped: list[tuple[str, str, Event | None]]) -> bool:
        kind = event.payload.TYPE
        if event.dedupe_key is not None:
            key = f"{kind}:{event.dedupe_key}"
            if key in self._seen:
                dropped.append((kind, "duplicate", event))
                return False
            self._seen[key] = None
            if len(self._seen) > _DEDUPE_MEMORY:
                self._seen.popitem(last=False)
        row, reason = self._policy.place(event, output_is_speaking=self.output_is_speaking)
        if row.drop_when_busy and self.is_busy:
            dropped.append((kind, "overflow", event))
            return False
        if len(self._queue) >= _MAX_WAITING and row.lane is not Lane.CONTROL:
            dropped.append((kind, "overflow", event))
            return False
        expires_at_s = event.expires_at_s
        if row.expires_after_s is not None:
            limit_s = now_s + row.expires_after_s
            expires_at_s = limit_s if expires_at_s is None else min(limit_s, expires_at_s)
        self._order += 1
        envelope = Envelope(
            event=event,
            event_id=self._ids.event(),
            lane=row.lane,
            priority_class=row.priority_class if row.priority_class is not None else class_of(row.lane, row.score),
            priority_score=row.score,
            policy_reason=reason,
            created_at_s=now_s,
            expires_at_s=expires_at_s,
            coalesce_key=coalesce_key_of(row, event),
            order=self._order,
        )
        delay_until_s = now_s + row.coalesce_window_s if row.coalesce_window_s > 0 and envelope.coalesce_key else 0.0
        replaced = self._queue.push(envelope, delay_until_s=delay_until_s)
        if replaced is not None:
            dropped.append((kind, "coalesced", replaced.event))
        if row.max_waiting is not None and self._queue.waiting(kind) > row.max_waiting:
            victim = self._queue.evict_oldest(kind)
            if victim is not None:
                dropped.append((kind, "overflow", victim.event))
        return True

    def _dispatch(self) -> None:
        loop = self._loop
        if loop is None:
            return
        began_s = self._clock.monotonic_s()
        while True:
            with self._lock:
                now_s = self._clock.monotonic_s()
                next_due_s = self._queue.release_delayed(now_s)
                envelope = self._queue.pop()
                if envelope is None:
                    # Not scheduled: what comes before the next delayed event is due must not wait for it.
                    self._is_scheduled = False
                    self._wait_for_delayed(loop, next_due_s, now_s)
                    return
            self._hand_out(envelope, now_s)
            if self._clock.monotonic_s() - began_s > _SLICE_S:
                loop.call_soon(self._dispatch)
                return

    def _wait_for_delayed(self, loop: asyncio.AbstractEventLoop, due_s: float | None, now_s: float) -> None:
        if self._delay_timer is not None:
            self._delay_timer.cancel()
            self._delay_timer = None
        if due_s is not None:
            self._delay_timer = loop.call_later(max(0.0, due_s - now_s), self._dispatch)

    def _hand_out(self, envelope: Envelope, now_s: float) -> None:
        if envelope.expires_at_s is not None and now_s > envelope.expires_at_s:
            self._note_drop(envelope.type, "expired", envelope.event)
            return
        if self._is_stale(envelope):
            self._note_drop(envelope.type, "stale", envelope.event)
            return
        self._log.record_envelope(envelope)
        self.counters[f"handled:{envelope.type}"] += 1
        for handler in self._handlers.get(envelope.type, ()):
            try:
                handler(envelope)
            except Exception:
                self.counters["handler_failed"] += 1
                log.exception("a consumer of %s failed", envelope.type)
        if envelope.lane is Lane.CONTROL or envelope.order % _SAMPLE_EVERY == 0:
            self._log.record(
                Event(
                    payload=BusHandled(handled_type=envelope.type, wait_s=now_s - envelope.created_at_s),
                    source="bus",
                    generation_id=envelope.event.generation_id,
                )
            )

    def _is_stale(self, envelope: Envelope) -> bool:
        """Ask the gate; one that fails lets the event through, for an interrupt must not be lost with it."""
        try:
            return self._gate is not None and self._gate(envelope)
        except Exception:
            self.counters["handler_failed"] += 1
            log.exception("the check of %s failed", envelope.type)
            return False

    def _note_drop(self, kind: str, reason: str, event: Event | None) -> None:
        self.counters[f"dropped:{reason}"] += 1
        self._log.record(
            Event(
                payload=BusDropped(dropped_type=kind, reason=reason),
                source="bus",
                generation_id=event.generation_id if event else None,
                target_generation_id=event.target_generation_id if event else None,
                intent_id=event.intent_id if event else None,
                correlation_id=event.correlation_id if event else None,
            )
        )

        if event is not None:
            for handler in self._drop_handlers.get(kind, ()):
                try:
                    handler(event, reason)
                except Exception:
                    self.counters["handler_failed"] += 1
                    log.exception("who watches dropped %s failed", kind)

    def _drop_unplaced(self, kind: str, reason: str) -> None:
        self._note_drop(kind, reason, None)
