"""Puts interrupts and their verdicts on the bus and into the record."""

from __future__ import annotations

from orchestrator.bus.bus import Bus
from orchestrator.contracts.events import Event, InputInterrupt, InterruptConfirm
from orchestrator.contracts.ids import UtteranceId
from orchestrator.contracts.lanes import InterruptReason
from orchestrator.dialogue.interruption import Verdict
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.generation import Generation


class InterruptRecord:
    """What the conversation says of its interrupts. Lives on the core loop."""

    def __init__(self, bus: Bus, turns: TurnLoop) -> None:
        """Use `bus`; the session is that of `turns`."""
        self._bus = bus
        self._turns = turns

    def confirm(
        self, generation: Generation, verdict: Verdict, because: str, text: str | None, utterance_id: UtteranceId | None
    ) -> None:
        """Record what becomes of an answer that was held or cut."""
        self._bus.trace(
            Event(
                payload=InterruptConfirm(verdict=verdict.value, because=because, text=text),
                source="dialogue",
                session_id=generation.session_id,
                utterance_id=utterance_id,
                generation_id=generation.generation_id,
            )
        )

    def post(self, target: Generation, utterance_id: UtteranceId | None, *, by: str, text: str | None) -> None:
        """Interrupt `target` for the user's voice; it comes back through the control lane."""
        self._bus.post(self._event(target, utterance_id, InterruptReason.USER_BARGE_IN, by=by, text=text))

    def note(self, target: Generation, utterance_id: UtteranceId | None, *, by: str) -> None:
        """Record that new words took the place of `target`, which is cancelled by whoever calls this."""
        self._bus.trace(self._event(target, utterance_id, InterruptReason.TOPIC_CHANGE, by=by, text=None))

    def _event(
        self,
        target: Generation,
        utterance_id: UtteranceId | None,
        reason: InterruptReason,
        *,
        by: str,
        text: str | None,
    ) -> Event:
        return Event(
            payload=InputInterrupt(reason=reason, by=by, text=text),
            source="dialogue",
            session_id=self._turns.session_id,
            utterance_id=utterance_id,
            target_generation_id=target.generation_id,
            interrupt_reason=reason,
        )
