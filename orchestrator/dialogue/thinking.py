"""No dead air: an answer that takes long shows that it is being thought of, and says so if it is to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from orchestrator.contracts.ids import IdFactory
from orchestrator.contracts.intents import CUE_SLOT, SpeechIntent
from orchestrator.contracts.lanes import GenerationState
from orchestrator.contracts.ports import SpeechPort, ViewSink
from orchestrator.contracts.views import ExpressionView
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.generation import Generation

Cue = Callable[[str | None], str | None]


class Thinking:
    """Lives on the core loop. The cue belongs to the answer it waits for: what cancels the one silences the other.

    It is no part of the answer: the ledger does not know it, so it is neither shown nor stored.
    """

    def __init__(
        self, *, turns: TurnLoop, speech: SpeechPort, views: ViewSink, ids: IdFactory, cue: Cue = lambda language: None
    ) -> None:
        """Begin without anything to wait for; `cue` returns what is said in a language, None for a gesture alone."""
        self._turns = turns
        self._speech = speech
        self._views = views
        self._ids = ids
        self.cue = cue
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def expect(self, delay_s: float, language: str | None) -> None:
        """Think audibly or visibly if the active answer has not sounded after `delay_s`."""
        self.close()
        active = self._turns.active
        if active is not None:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_due, active, language)

    def _on_due(self, generation: Generation, language: str | None) -> None:
        self._timer = None
        if self._turns.active is not generation or generation.sounded or generation.is_stale:
            return
        self._views.show(ExpressionView(generation_id=generation.generation_id, expression="thinking"))
        text = self.cue(language)
        # Who has begun to speak is not spoken over, and an answer that has begun needs no cue.
        if not text or generation.state is not GenerationState.PREPARING:
            return
        intent_id = self._ids.intent()
        generation.cue_intents.add(intent_id)
        self._speech.submit(
            SpeechIntent(
                intent_id=intent_id,
                generation_id=generation.generation_id,
                generation_order=generation.order,
                text=text,
                slot=CUE_SLOT,
                language=language,
            )
        )
