"""Follows what the output did: into the ledger, to the window, and to the answer it belongs to."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.bus.bus import Bus
from orchestrator.bus.envelope import Envelope
from orchestrator.clock import Clock
from orchestrator.contracts.events import (
    Event,
    IntentStateChanged,
    OutputCut,
    OutputFirstSound,
    OutputStateChanged,
    OutputWord,
)
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.ports import ViewSink
from orchestrator.contracts.views import CharacterTextView, ExpressionView, SpeechStoppedView, SpeechTimelineView
from orchestrator.dialogue.heard import HeardLedger
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.generation import Generations


class OutputWatch:
    """Subscribes to the reports of player and voice. Lives on the core loop; handlers never wait.

    `audible` is the answer that sounds or is shown right now; `on_change` hears that it may have changed, `on_silence`
    that all there was to say has sounded.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        clock: Clock,
        generations: Generations,
        ledger: HeardLedger,
        turns: TurnLoop,
        views: ViewSink,
        on_change: Callable[[], None],
        on_silence: Callable[[], None],
    ) -> None:
        """Wire the handlers."""
        self._clock = clock
        self._generations = generations
        self._ledger = ledger
        self._turns = turns
        self._views = views
        self._on_change = on_change
        self._on_silence = on_silence
        self.audible: GenerationId | None = None
        bus.subscribe(OutputCut, self._on_cut)
        bus.subscribe(OutputFirstSound, self._on_first_sound)
        bus.subscribe(OutputWord, self._on_word)
        bus.subscribe(IntentStateChanged, self._on_intent_state)
        bus.subscribe(OutputStateChanged, self._on_output_state)

    def _on_cut(self, envelope: Envelope) -> None:
        event, payload = envelope.event, envelope.event.payload
        if not isinstance(payload, OutputCut) or event.generation_id is None:
            return
        if event.intent_id is not None:
            self._views.show(
                SpeechStoppedView(
                    generation_id=event.generation_id,
                    intent_id=event.intent_id,
                    at_s=payload.last_sample_at_s,
                    cut_at=payload.char_offset,
                    held=True,
                )
            )
        self._on_change()

    def _on_first_sound(self, envelope: Envelope) -> None:
        event, payload = envelope.event, envelope.event.payload
        generation = self._generations.get(event.generation_id)
        if not isinstance(payload, OutputFirstSound) or generation is None or event.intent_id is None:
            return
        generation.sounded |= event.intent_id not in generation.cue_intents
        self.audible = generation.generation_id
        self._ledger.on_playing(event.intent_id)
        if not generation.is_stale:
            self._views.show(
                SpeechTimelineView(
                    generation_id=generation.generation_id,
                    intent_id=event.intent_id,
                    at_s=payload.at_s,
                    start_offset_s=payload.start_offset_s,
                    duration_s=payload.duration_s,
                    words=payload.words,
                    visemes=payload.visemes,
                )
            )
        self._on_change()

    def _on_word(self, envelope: Envelope) -> None:
        event, payload = envelope.event, envelope.event.payload
        if isinstance(payload, OutputWord) and event.intent_id is not None:
            self._ledger.on_word(event.intent_id, payload)
            generation = self._generations.get(event.generation_id)
            if generation is not None:
                generation.sounded |= event.intent_id not in generation.cue_intents

    def _on_intent_state(self, envelope: Envelope) -> None:
        event, payload = envelope.event, envelope.event.payload
        if not isinstance(payload, IntentStateChanged) or event.intent_id is None or event.generation_id is None:
            return
        if payload.state == "playing":
            self._on_playing(event.generation_id, event, payload)
        elif payload.state == "played":
            self._ledger.on_played(event.intent_id)
            self._views.show(
                SpeechStoppedView(
                    generation_id=event.generation_id,
                    intent_id=event.intent_id,
                    at_s=self._clock.monotonic_s(),
                    cut_at=None,
                )
            )
        elif payload.state == "dropped":
            self._ledger.on_dropped(event.intent_id, payload.reason)
        if payload.state in ("played", "dropped"):
            generation = self._generations.get(event.generation_id)
            if generation is not None:
                generation.protected_intents.discard(event.intent_id)
            self._turns.note_output_progress(event.generation_id)

    def _on_playing(self, generation_id: GenerationId, event: Event, payload: IntentStateChanged) -> None:
        generation = self._generations.get(generation_id)
        if generation is None or generation.is_stale or event.intent_id is None:
            return
        if event.intent_id in generation.cue_intents:
            self.audible = generation_id
            self._on_change()
            return
        generation.sounded = True
        # Text that is only shown has no first sound; it is said all the same.
        self.audible = generation_id
        self._ledger.on_playing(event.intent_id)
        self._views.show(
            CharacterTextView(
                generation_id=generation_id, intent_id=event.intent_id, text=payload.text, spoken=payload.reason is None
            )
        )
        piece = self._ledger.piece(event.intent_id)
        if piece is not None and piece.expression is not None:
            self._views.show(ExpressionView(generation_id=generation_id, expression=piece.expression))
        self._on_change()

    def _on_output_state(self, envelope: Envelope) -> None:
        event, payload = envelope.event, envelope.event.payload
        if not isinstance(payload, OutputStateChanged):
            return
        if payload.state == "stopped":
            self._turns.note_stopped(event.generation_id)
        if payload.state in ("stopped", "queue_empty", "held") and self.audible is not None:
            self.audible = None
        elif payload.state == "speaking" and event.generation_id is not None:
            self.audible = event.generation_id
        if payload.state == "queue_empty":
            self._on_silence()
        self._on_change()
