"""Makes the brain of the running program from the layers of configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from desktop.settings import Settings
from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Brain, ChatMessage, LlmRequest, TurnContext, TurnInput
from orchestrator.dialogue.persona_brain import PersonaBrain
from orchestrator.llm.persona import Persona, load_persona_layers
from orchestrator.llm.prompts import CAPABLE_BUDGET, SMALL_BUDGET, persona_request, warm_up_messages


class BrainFactory:
    """Reads flows, rails and persona; `make` reads them again, for a reload. Raises `InputError` for broken files."""

    def __init__(
        self, layers: Sequence[Path], settings: Settings, clock: Clock, data: Path, *, seed: int | None
    ) -> None:
        """Read the persona now; the rest when a brain is made."""
        self._layers = tuple(layers)
        self._settings = settings
        self._clock = clock
        self._data = data
        self._seed = seed
        self.persona = self._read_persona()

    def _read_persona(self) -> Persona:
        return load_persona_layers([layer / "persona.yml" for layer in self._layers])

    @property
    def names(self) -> tuple[str, ...]:
        """The names the character answers to."""
        return self.persona.names

    def display_name(self, ui_language: str) -> str:
        """Return the character's name in the window's language."""
        return self.persona.name.get(ui_language if ui_language in ("en", "zh") else self._settings.languages[0])

    def hotwords(self) -> tuple[str, ...]:
        """Return words the recogniser is to expect."""
        return self.persona.names[:4]

    def warm_messages(self) -> Sequence[ChatMessage]:
        """Return the prompt the offline model evaluates before the first turn."""
        return warm_up_messages(self.persona, self._settings.languages[0])

    def make(self) -> Brain:
        """Make a brain from the files as they are now."""
        self.persona = self._read_persona()
        return PersonaBrain(self._persona_request)

    def _persona_request(self, turn: TurnContext, user: TurnInput) -> LlmRequest:
        budget = SMALL_BUDGET if self._settings.llm == "local" else CAPABLE_BUDGET
        return persona_request(
            self.persona,
            history=turn.history,
            user=user,
            world=turn.world,
            memory=tuple(getattr(turn, "facts", ())),
            now=turn.now,
            budget=budget,
        )
