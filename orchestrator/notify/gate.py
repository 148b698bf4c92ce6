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
from orchestrator.contracts.lanes import GenerationState, InterruptReason
from orchestrator.dialogue.conversation import Conversation
from orchestrator.dialogue.phrase_book import normalise
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.generation import Generation
from orchestrator.notify.wording import Wording, word

DEFER_S = 60.0
_DEFER_MARGIN_S = 5.0
"""One that was put off is said this long before it expires, if there is room."""
TWIN_S = 10.0
"""The same words that come again while they are said, or this soon after, are not said again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """`not_before_s` is when one that was put off is due again; it is put off only once.

    `twins` are the ids of those that were the same: what becomes of this one becomes of them.
    """

    request: NotifyRequested
    expires_at_s: float | None
    score: int
    not_before_s: float = 0.0
    was_deferred: bool = False
    twins: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class _Speaking:
    """One that is being said, and what has become of it so far. `expiry` ends it if it has not sounded by then."""

    item: _Waiting
    notice: Generation | None = None
    put_off_until_s: float | None = None
    is_late: bool = False
    expiry: asyncio.TimerHandle | None = None


class NotificationGate:
    """Holds due notifications until neither side speaks; an urgent one does not wait for the character.

    A normal one also waits for the end of the quiet that a stop has begun; it may be worded by a capable model, which
    may also put it off once, for `DEFER_S` at most and never past its expiry. An urgent one holds the answer in
    progress, is said as it came, and lets the answer go on. Two that wait with the same id or the same words are one;
    the same words are not said again while they are said and for `TWIN_S` after. One that expires before its first
    sound is not said. Lives on the core loop; at most 32 wait, the oldest normal one gives way.
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
        self._speaking: list[_Speaking] = []
        self._said: OrderedDict[str, float] = OrderedDict()
        self._is_closed = False
        bus.subscribe(NotifyRequested, self._on_notify)
        conversation.idle_hooks.append(self.try_to_speak)

    def _on_notify(self, envelope: Envelope) -> None:
        request = envelope.event.payload
        if not isinstance(request, NotifyRequested):
            return
        self._say_state(request.id, "due", None)
        new = _Waiting(request=request, expires_at_s=envelope.expires_at_s, score=envelope.priority_score)
        if self._is_said_already(new):
            return
        for key in [
            k for k, item in self._waiting.items() if k == request.id or _words(item.request) == _words(request)
        ]:
            new = _merged(self._waiting.pop(key), new)
            self._say_state(key, "coalesced", "same" if key == request.id else f"twin of {request.id}")
        self._held.discard(request.id)
        self._waiting[request.id] = new
        if len(self._waiting) > self._MOST:
            victim = min(self._waiting, key=lambda key: self._waiting[key].score)
            del self._waiting[victim]
            self._say_state(victim, "expired", "too many")
        self.try_to_speak()

    def _is_said_already(self, new: _Waiting) -> bool:
        """Let one be the twin of what is being said or was said just now; False if it says something else."""
        request, now_s = new.request, self._clock.monotonic_s()
        words = _words(request)
        while self._said and next(iter(self._said.values())) <= now_s - TWIN_S:
            self._said.popitem(last=False)
        for speaking in self._speaking:
            if _words(speaking.item.request) == words:
                limits = [limit for limit in (speaking.item.expires_at_s, new.expires_at_s) if limit is not None]
                until_s = max(limits) if len(limits) == 2 else None
                speaking.item = replace(_merged(new, speaking.item), expires_at_s=until_s)
                self._arm_late(speaking)
                self._say_state(request.id, "coalesced", "being said")
                return True
        if words in self._said:
            self._say_state(request.id, "coalesced", "said just now")
            self._on_spoken(request.id)
            return True
        return False

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
        speaking = _Speaking(item=item)
        self._speaking.append(speaking)

        async def script(turn: CoreTurn) -> None:
            request = item.request
            said = Wording(text=request.text)
            if not request.urgent:
                until_s = self._may_defer_until(item)
                said = await word(request.text, turn.llm, recent=_recent(turn), may_defer=until_s is not None)
                if said.is_later:
                    speaking.put_off_until_s = until_s
                    return
            await turn.reply.say(Message(text=said.text, source="notification", key=request.id))

        if held is not None:
            self._conversation.held.stand_aside(held)
        start = TurnInput(kind="event", event_type="notify")
        speaking.notice = self._turns.start(
            start, script=script, on_end=lambda generation: self._on_end(speaking, generation)
        )
        self._arm_late(speaking)

    def _arm_late(self, speaking: _Speaking) -> None:
        if speaking.expiry is not None:
            speaking.expiry.cancel()
        if speaking.item.expires_at_s is not None:
            left_s = speaking.item.expires_at_s - self._clock.monotonic_s()
            speaking.expiry = asyncio.get_running_loop().call_later(left_s, self._on_late, speaking)

    def _on_late(self, speaking: _Speaking) -> None:
        """Say nothing of one that expired before its first sound."""
        notice = speaking.notice
        if notice is not None and notice.is_active and not notice.sounded:
            speaking.is_late = True
            self._turns.cancel(notice, InterruptReason.SYSTEM_TIMEOUT)

    def _on_end(self, speaking: _Speaking, generation: Generation) -> None:
        self._speaking.remove(speaking)
        if speaking.expiry is not None:
            speaking.expiry.cancel()
        item = speaking.item
        key = item.request.id
        if speaking.is_late:
            self._say_state(key, "expired", "too late")
        elif speaking.put_off_until_s is not None and not self._is_closed and key not in self._waiting:
            self._waiting[key] = replace(item, not_before_s=speaking.put_off_until_s, was_deferred=True)
            self._held.add(key)
            self._say_state(key, "held", "deferred")
            self._arm_expiry()
            self._arm_deferral()
        elif generation.state is GenerationState.COMPLETED or generation.sounded:
            self._say_state(key, "spoken", None)
            self._said.pop(_words(item.request), None)
            self._said[_words(item.request)] = self._clock.monotonic_s()
            for one in (key, *item.twins):
                self._on_spoken(one)
        elif self._is_closed:
            self._say_state(key, "expired", "shutdown")
        elif key in self._waiting:
            self._say_state(key, "coalesced", "same")
        else:
            # The user came first; nobody heard any of it, so it is still to be said.
            self._waiting[key] = item
            self._waiting.move_to_end(key, last=False)
            self._say_state(key, "held", "cut")
            self._arm_expiry()
        self._conversation.after_notification(generation)

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


def _words(request: NotifyRequested) -> str:
    """Return what tells two notifications apart; one of signs alone is its signs."""
    return normalise(request.text) or request.text.strip()


def _merged(old: _Waiting, new: _Waiting) -> _Waiting:
    """Return the newer one of two that are one; where the words are the same it is as urgent as either was."""
    key = old.request.id
    twins = tuple(dict.fromkeys((*old.twins, *((key,) if key != new.request.id else ()), *new.twins)))
    if _words(old.request) != _words(new.request):
        return replace(new, twins=twins)
    request = replace(new.request, urgent=old.request.urgent or new.request.urgent)
    return replace(new, request=request, score=max(old.score, new.score), twins=twins)


def _recent(turn: CoreTurn) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(role=entry.role, content=entry.text) for entry in turn.history[-4:] if entry.text)
