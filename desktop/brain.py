"""Makes the brain of the running program from the layers of configuration."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from desktop.meaning_vectors import meaning_store
from desktop.settings import Settings
from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Brain, ChatMessage, LlmRequest, TurnContext, TurnInput
from orchestrator.contracts.errors import InputError
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.dialogue.brain_loading import LoadedBrain, load_folders, make_brain
from orchestrator.flows.source import Problem
from orchestrator.llm.persona import Persona, load_persona_layers
from orchestrator.llm.prompts import CAPABLE_BUDGET, SMALL_BUDGET, persona_request, system_text, warm_up_messages

_PATIENCE_S = 0.3
"""How long a turn waits for the index of examples right after the start, before it makes do with character n-grams."""


_USUAL_CUE = {"en": "Let me think.", "zh": "我想想。"}


def raise_all(faults: Sequence[InputError]) -> None:
    """Raise one error that has all faults as its details, its message the first and how many more; nothing without."""
    details = tuple(line for fault in faults for line in (fault.details or tuple(fault.message.splitlines())))
    if details:
        more = f" (and {len(details) - 1} more: mynah flows check)" if len(details) > 1 else ""
        raise InputError(faults[0].code, f"{details[0]}{more}", part=faults[0].part, details=details)


class BrainFactory:
    """Reads flows, rails and persona; `make` reads them again, for a reload.

    The vectors of examples outlive a reload, so only what is new is embedded.
    """

    def __init__(
        self,
        layers: Sequence[Path],
        settings: Settings,
        clock: Clock,
        data: Path,
        *,
        seed: int | None,
        executor: Executor | None = None,
    ) -> None:
        """Read everything once. Raises `InputError` for a broken persona."""
        self._layers = tuple(layers)
        self._settings = settings
        self._clock = clock
        self._actions = data / "actions"
        self._seed = seed
        self._store = meaning_store(executor)
        self.persona = self._read_persona()
        self.loaded = self._load()

    @property
    def names(self) -> tuple[str, ...]:
        """The names the character answers to."""
        return self.persona.names

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What is wrong in the flows and rails; the faulty parts are left out."""
        return self.loaded.errors

    def use(self, settings: Settings) -> None:
        """Take other settings; the brain made next goes by them."""
        self._settings = settings

    def require_valid(self) -> None:
        """Raise `InputError` flows_invalid, naming the first fault and how many there are."""
        errors = self.errors
        if errors:
            more = f" (and {len(errors) - 1} more: mynah flows check)" if len(errors) > 1 else ""
            details = tuple(str(error) for error in errors)
            raise InputError("flows_invalid", f"{errors[0]}{more}", part="flows", details=details)

    def display_name(self, ui_language: str) -> str:
        """Return the character's name in the window's language."""
        return self.persona.name.get(ui_language if ui_language in ("en", "zh") else self._settings.languages[0])

    def thinking_cue(self, language: str | None, *, is_wanted: bool) -> str | None:
        """Return what is said when an answer takes long: the persona's cue, else the usual one if it `is_wanted`."""
        answered_in = self.persona.reply_language(language)
        own = self.persona.thinking_cue
        if own.by_language:
            return own.get(answered_in) or None
        return _USUAL_CUE[answered_in] if is_wanted else None

    def hotwords(self) -> tuple[str, ...]:
        """Return words the recogniser is to expect: the name, in every language that has one of its own."""
        return tuple(dict.fromkeys(self.persona.name.by_language.values()))

    def examples(self) -> tuple[str, ...]:
        """Return what users say to start flows and rails, in all languages."""
        config = self.loaded.config
        flows = (example for flow in config.user_flows().values() for example in flow.examples)
        intents = config.rails.user_intents.values() if config.rails is not None else ()
        return (*flows, *(example for group in intents for example in group))

    def warm_messages(self) -> Sequence[ChatMessage]:
        """Return the prompt the offline model evaluates before the first turn."""
        return warm_up_messages(self.persona, self._settings.languages[0])

    def make(self) -> Brain:
        """Make a brain from what was read last."""
        brain = make_brain(
            self.loaded,
            self._store,
            persona_request=self._persona_request,
            persona=system_text(self.persona, self._settings.languages[0], CAPABLE_BUDGET),
            clock=self._clock,
            seed=self._seed,
            # A simulation waits: the same run must find the same meanings every time.
            patience_s=_PATIENCE_S if self._seed is None else None,
        )
        brain.set_vars({"character_name": self.persona.name.get(self._settings.languages[0])})
        return brain

    async def warm(self, brain: Brain) -> None:
        """Embed the examples and load what understanding needs, so that the first turn does not wait for it."""
        if isinstance(brain, FlowBrain):
            prepare = getattr(brain.rails, "prepare", None)
            if prepare is not None:
                await prepare()
            matcher = await brain.flow_matcher()
            await matcher.match("hello")

    def remake(self) -> Brain:
        """Read the files again and make a brain.

        Raises `InputError` with all faults of persona, flows and rails; then all stays as it was.
        """
        before = self.persona, self.loaded
        faults: list[InputError] = []
        try:
            for read in (self._reread_persona, self._reread_flows):
                try:
                    read()
                except InputError as error:
                    faults.append(error)
            raise_all(faults)
            return self.make()
        except BaseException:
            self.persona, self.loaded = before
            raise

    def _reread_persona(self) -> None:
        self.persona = self._read_persona()

    def _reread_flows(self) -> None:
        self.loaded = self._load()
        self.require_valid()

    def _load(self) -> LoadedBrain:
        return load_folders(self._layers, actions_folder=self._actions if self._actions.is_dir() else None)

    def _read_persona(self) -> Persona:
        return load_persona_layers([layer / "persona.yml" for layer in self._layers])

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
