"""Whether and when a notification is said. Program rules only."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestrator.bus.bus import Bus
from orchestrator.bus.envelope import Envelope
from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import ChatMessage, Message, TurnInput
from orchestrator.contracts.events import Event, NotifyRequested, NotifyStateChanged
from orchestrator.contracts.lanes import GenerationState
from orchestrator.dialogue.conversation import Conversation
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.generation import Generation
from orchestrator.notify.wording import Wording, word

DEFER_S = 60.0
_DEFER_MARGIN_S = 5.0
"""One that was put off is said this long before it expires, if there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """`not_before_s` is when one that was put off is due again; it is put off only once."""

    request: NotifyRequested
    expires_at_s: float | None
    score: int
    not_before_s: float = 0.0
    was_deferred: bool = False


class NotificationGate:
    """Holds due notifications until neither side speaks; an urgent one does not wait for the character.

    A normal one also waits for the end of the quiet that a stop has begun; it may be worded by a capable model, which
    may also put it off once, for `DEFER_S` at most and never past its expiry. An urgent one holds the answer in
    progress, is said as it came, and lets the answer go on. Two with the same id or the same words are one. Lives on
    the core loop; at most 32 wait, the oldest normal one gives way.
    """

    _MOST = 32

    def __init__(
        self, *, bus: Bus, clock: Clock, turns: TurnLoop, conversation: Conversation, on_spoken: Callable[[str], None]
    ) -> None:
        """Subscribe; `on_spoken` is told the id of what was said."""
        self._bus = bus
        self._clock = clock
        self._turns = turns
        self._conversation = conversation
        self._on_spoken = on_spoken
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._expiry: asyncio.TimerHandle | None = None
        self._deferral: asyncio.TimerHandle | None = None
        self._quiet_end: asyncio.TimerHandle | None = None
        self._held: set[str] = set()
        self._is_closed = False
        bus.subscribe(NotifyRequested, self._on_notify)
        conversation.idle_hooks.append(self.try_to_speak)

    def _on_notify(self, envelope: Envelope) -> None:
        request = envelope.event.payload
        if not isinstance(request, NotifyRequested):
            return
        self._say_state(request.id, "due", None)
        twin = next(
            (key for key, item in self._waiting.items() if key == request.id or item.request.text == request.text), None
        )
        if twin is not None:
            self._say_state(twin, "coalesced", "same" if twin == request.id else f"twin of {request.id}")
            del self._waiting[twin]
        self._held.discard(request.id)
        self._waiting[request.id] = _Waiting(
            request=request, expires_at_s=envelope.expires_at_s, score=envelope.priority_score
        )
        if len(self._waiting) > self._MOST:
            victim = min(self._waiting, key=lambda key: self._waiting[key].score)
            del self._waiting[victim]
            self._say_state(victim, "expired", "too many")
        self.try_to_speak()

    def try_to_speak(self) -> None:
        """Say the most important waiting notification if there is room for it."""
        self._expire()
        now_s = self._clock.monotonic_s()
        ready = [key for key, item in self._waiting.items() if item.not_before_s <= now_s]
        quiet_s = self._conversation.quiet.left_s
        if quiet_s > 0 and any(not self._waiting[key].request.urgent for key in ready):
            ready = [key for key in ready if self._waiting[key].request.urgent]
            self._wait_for_quiet_end(quiet_s)
            if not ready:
                self._hold("after_stop")
        if not ready:
            return
        key = max(ready, key=lambda k: (self._waiting[k].score, -ready.index(k)))
        item = self._waiting[key]
        if self._conversation.is_user_busy:
            self._hold("user_speaking")
            return
        active = self._turns.active
        if active is not None and not (item.request.urgent and self._may_hold(active)):
            self._hold("output_busy")
            return
        del self._waiting[key]
        self._say(item, active)

    def _hold(self, because: str) -> None:
        """Say of each that waits, once, that it is held."""
        for key in self._waiting:
            if key not in self._held:
                self._say_state(key, "held", because)
        self._held = set(self._waiting)
        self._arm_expiry()

    def _wait_for_quiet_end(self, quiet_s: float) -> None:
        if self._quiet_end is not None:
            self._quiet_end.cancel()
        if not self._is_closed:
            self._quiet_end = asyncio.get_running_loop().call_later(quiet_s, self.try_to_speak)

    @staticmethod
    def _may_hold(active: Generation) -> bool:
        return not active.is_protected and active.state in (GenerationState.STREAMING, GenerationState.PREPARING)

    def _say(self, item: _Waiting, held: Generation | None) -> None:
        request = item.request
        put_off_until_s: float | None = None

        async def script(turn: CoreTurn) -> None:
            nonlocal put_off_until_s
            said = Wording(text=request.text)
            if not request.urgent:
                until_s = self._may_defer_until(item)
                said = await word(request.text, turn.llm, recent=_recent(turn), may_defer=until_s is not None)
                if said.is_later:
                    put_off_until_s = until_s
                    return
            await turn.reply.say(Message(text=said.text, source="notification", key=request.id))

        def on_end(generation: Generation) -> None:
            if put_off_until_s is not None and not self._is_closed and request.id not in self._waiting:
                self._waiting[request.id] = replace(item, not_before_s=put_off_until_s, was_deferred=True)
                self._held.add(request.id)
                self._say_state(request.id, "held", "deferred")
                self._arm_expiry()
                self._arm_deferral()
            elif generation.state is GenerationState.COMPLETED or generation.sounded:
                self._say_state(request.id, "spoken", None)
                self._on_spoken(request.id)
            elif self._is_closed:
                self._say_state(request.id, "expired", "shutdown")
            elif request.id in self._waiting:
                self._say_state(request.id, "coalesced", "same")
            else:
                # The user came first; nobody heard any of it, so it is still to be said.
                self._waiting[request.id] = item
                self._waiting.move_to_end(request.id, last=False)
                self._say_state(request.id, "held", "cut")
                self._arm_expiry()
            self._conversation.after_notification(generation)

        if held is not None:
            self._conversation.held.stand_aside(held)
        self._turns.start(TurnInput(kind="event", event_type="notify"), script=script, on_end=on_end)

    def _may_defer_until(self, item: _Waiting) -> float | None:
        """Return when it would be due again if it were put off now; None if it may not be."""
        if item.was_deferred:
            return None
        now_s = self._clock.monotonic_s()
        until_s = now_s + DEFER_S
        if item.expires_at_s is not None:
            until_s = min(until_s, item.expires_at_s - _DEFER_MARGIN_S)
        return until_s if until_s > now_s else None

    def _arm_deferral(self) -> None:
        if self._deferral is not None:
            self._deferral.cancel()
        now_s = self._clock.monotonic_s()
        due = [item.not_before_s for item in self._waiting.values() if item.not_before_s > now_s]
        if due:
            self._deferral = asyncio.get_running_loop().call_later(min(due) - now_s, self._on_deferral)

    def _on_deferral(self) -> None:
        self._arm_deferral()
        self.try_to_speak()

    def close(self) -> None:
        """Say nothing more; what waits counts as expired (a reminder stays in the store and is due again)."""
        self._is_closed = True
        for timer in (self._expiry, self._deferral, self._quiet_end):
            if timer is not None:
                timer.cancel()
        for key in list(self._waiting):
            del self._waiting[key]
            self._say_state(key, "expired", "shutdown")

    def _expire(self) -> None:
        now_s = self._clock.monotonic_s()
        for key in [
            k for k, item in self._waiting.items() if item.expires_at_s is not None and item.expires_at_s <= now_s
        ]:
            del self._waiting[key]
            self._say_state(key, "expired", "too late")

    def _arm_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        due = [item.expires_at_s for item in self._waiting.values() if item.expires_at_s is not None]
        if due:
            delay_s = max(0.0, min(due) - self._clock.monotonic_s())
            self._expiry = asyncio.get_running_loop().call_later(delay_s, self._on_expiry)

    def _on_expiry(self) -> None:
        self._expire()
        self._arm_expiry()

    def _say_state(self, key: str, state: str, because: str | None) -> None:
        self._bus.trace(
            Event(
                payload=NotifyStateChanged(id=key, state=state, because=because),
                source="notify",
                session_id=self._turns.session_id,
            )
        )


def _recent(turn: CoreTurn) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(role=entry.role, content=entry.text) for entry in turn.history[-4:] if entry.text)
