"""Answers that are held: by a sound that may be words, or because something urgent is said in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from orchestrator.contracts.lanes import GenerationState, InterruptReason
from orchestrator.contracts.ports import SpeechPort
from orchestrator.dialogue.interrupt_record import InterruptRecord
from orchestrator.dialogue.interruption import InterruptionTimes, Verdict
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.generation import Generation

_EXPIRED = str(InterruptReason.SYSTEM_TIMEOUT)


class HeldAnswers:
    """Lets held answers go on, or ends them. Lives on the core loop.

    At most one answer is held as the active one; what stands aside for a notification is not active, and nobody else
    ends it.
    """

    def __init__(
        self,
        *,
        turns: TurnLoop,
        speech: SpeechPort,
        record: InterruptRecord,
        times: Callable[[], InterruptionTimes],
        is_undecided: Callable[[], bool],
        on_change: Callable[[], None],
    ) -> None:
        """Use `is_undecided` to ask whether an utterance still waits for its verdict."""
        self._turns = turns
        self._speech = speech
        self._record = record
        self._times = times
        self._is_undecided = is_undecided
        self._on_change = on_change
        self._timer: asyncio.TimerHandle | None = None
        self.aside: list[Generation] = []

    def resume(self, generation: Generation, because: str) -> None:
        """Let the answer go on from the held sound."""
        self.disarm()
        if generation.resume(because):
            self._speech.resume(generation.generation_id)
            self._turns.recheck(generation)

    def stand_aside(self, generation: Generation) -> None:
        """Hold the answer in progress so that something urgent can be said; `come_back` lets it go on."""
        if generation.suspend("urgent_notification"):
            self._speech.hold(generation.generation_id)
        self.aside.append(generation)
        self._turns.active = None

    def come_back(self, notification: Generation) -> None:
        """Let the answer go on that stood aside, or end it if the notification was cut off by words."""
        while self.aside:
            generation = self.aside.pop()
            if not generation.is_active:
                continue
            was_cut = notification.state is GenerationState.CANCELLED and notification.reason != _EXPIRED
            if self._turns.active is None and not was_cut:
                self._turns.active = generation
                self.resume(generation, "urgent_notification_over")
            else:
                self._turns.cancel(generation, InterruptReason.TOPIC_CHANGE)

    def cancel_aside(self, reason: InterruptReason) -> None:
        """End what stands aside."""
        while self.aside:
            self._turns.cancel(self.aside.pop(), reason)

    def arm(self) -> None:
        """A held answer that hears nothing goes on by itself, unless an utterance still waits for its verdict."""
        self.disarm()
        active = self._turns.active
        if active is None or active.state is not GenerationState.SUSPENDED:
            return
        self._timer = asyncio.get_running_loop().call_later(self._times().confirm_timeout_s, self._on_due, active)

    def disarm(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def _on_due(self, generation: Generation) -> None:
        if self._turns.active is not generation or generation.state is not GenerationState.SUSPENDED:
            return
        if self._is_undecided():
            self.arm()
            return
        self._record.confirm(generation, Verdict.RESUME, "timeout", None, None)
        self.resume(generation, "timeout")
        self._on_change()
