"""The one state of the character: idle, listening, thinking, speaking, interrupted, waiting or asleep."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.bus.bus import Bus
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.lanes import GenerationState
from orchestrator.contracts.ports import ViewSink
from orchestrator.contracts.views import StateView
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.dialogue.utterances import Utterances
from orchestrator.generation import Generation


class StateLine:
    """Works out the state from who has what going on. Lives on the core loop.

    `audible` returns the answer that sounds or is shown right now, None for none; `attention` whom the character heeds:
    always, awake, waiting (to be called by name) or asleep.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        views: ViewSink,
        turns: TurnLoop,
        utterances: Utterances,
        audible: Callable[[], GenerationId | None],
        attention: Callable[[], str] = lambda: "always",
    ) -> None:
        """Begin without a state; the first `refresh` tells one."""
        self._bus = bus
        self._views = views
        self._turns = turns
        self._utterances = utterances
        self._audible = audible
        self._attention = attention
        self._state = ""

    def refresh(self) -> None:
        """Tell the state if it has changed."""
        active = self._turns.active
        state = self._work_out(active)
        self._bus.output_is_speaking = (
            active is not None and active.sounded and active.state is GenerationState.STREAMING
        )
        self._bus.is_busy = active is not None
        if state != self._state:
            self._state = state
            self._views.show(StateView(state=state, generation_id=active.generation_id if active is not None else None))

    def _work_out(self, active: Generation | None) -> str:
        if active is not None and active.state is GenerationState.SUSPENDED and active.sounded:
            return "interrupted"
        if active is None and self._attention() == "asleep":
            return "asleep"
        if self._utterances.is_user_speaking:
            return "listening"
        if active is not None:
            return "speaking" if active.sounded and self._audible() == active.generation_id else "thinking"
        if self._utterances.is_undecided:
            return "thinking"
        return "waiting" if self._attention() == "waiting" else "idle"
