"""From folders of configuration to a brain: the one place where flows, rails, actions and matchers come together."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from orchestrator.clock import Clock
from orchestrator.dialogue.brain import FlowBrain, PersonaRequest, flow_examples
from orchestrator.dialogue.matching import ExactMatcher
from orchestrator.dialogue.rails_port import MatcherFactory, NoRails, RailsPort
from orchestrator.flows.loader import Layer, Loaded, load_config
from orchestrator.flows.model import FlowConfig
from orchestrator.flows.source import Problem
from orchestrator.rails.embedder import EmbeddingProvider, ExactEmbedder, default_embedder
from orchestrator.rails.index import VectorStore
from orchestrator.rails.runtime import IndexMatcherFactory, Rails
from orchestrator.tasks.actions.builtin import builtin_actions
from orchestrator.tasks.actions.custom import scan_actions
from orchestrator.tasks.actions.registry import ActionRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedBrain:
    """What the folders came to. `problems` name every fault; faulty flows, rails and actions are left out."""

    config: FlowConfig
    actions: ActionRegistry
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that are errors."""
        return tuple(p for p in self.problems if p.severity == "error")


def load_folders(
    folders: Sequence[Path], *, actions_folder: Path | None = None, texts: Mapping[str, str] | None = None
) -> LoadedBrain:
    """Load layers of folders (the shipped one first) and custom actions.

    `texts` replaces files of the last folder by name: what an editor has not saved yet. Only `actions_folder`, the
    user's own, is searched for Python.
    """
    builtin = builtin_actions()
    custom, action_problems = (
        scan_actions(actions_folder, {a.name for a in builtin}) if actions_folder is not None else ([], [])
    )
    actions = ActionRegistry([*builtin, *custom])
    layers = [Layer.of_folder(f, texts=texts if f == folders[-1] else None) for f in folders]
    loaded: Loaded = load_config(layers, actions=actions)
    return LoadedBrain(config=loaded.config, actions=actions, problems=(*action_problems, *loaded.problems))


def make_store(
    cache_dir: Path | None = None,
    executor: Executor | None = None,
    provider: EmbeddingProvider | None = None,
    seed: Path | None = None,
) -> VectorStore:
    """Return the store of vectors; it outlives reloads.

    `provider` defaults to the best local one; `seed` is a file of vectors that ship.
    """
    return VectorStore(provider or default_embedder(executor), cache_dir, seed=seed)


def rails_of(
    config: FlowConfig,
    store: VectorStore,
    *,
    persona: str = "",
    seed: int | None = None,
    is_test: bool = False,
    patience_s: float | None = None,
) -> RailsPort:
    """Return the rails of a configuration, or none. `patience_s`: how long a turn waits for the index at first."""
    if config.rails is None:
        return NoRails()
    rivals = tuple(e for examples in flow_examples(config).values() for e in examples)
    chooser = None if is_test else random.Random(seed)
    return Rails(config.rails, store, persona=persona, chooser=chooser, rivals=rivals, patience_s=patience_s)


def make_brain(
    loaded: LoadedBrain,
    store: VectorStore,
    *,
    persona_request: PersonaRequest | None,
    persona: str = "",
    clock: Clock | None = None,
    seed: int | None = None,
    patience_s: float | None = None,
) -> FlowBrain:
    """Return the brain of the running program."""
    return FlowBrain(
        loaded.config,
        rails=rails_of(loaded.config, store, persona=persona, seed=seed, patience_s=patience_s),
        actions=loaded.actions,
        matcher=IndexMatcherFactory(store, patience_s=patience_s),
        persona_request=persona_request,
        clock=clock,
    )


class TestRails:
    """Rails and matchers of test conversations; `real` embeddings share one store of vectors."""

    __test__ = False

    def __init__(self, cache_dir: Path | None = None, seed: Path | None = None) -> None:
        """Keep real vectors in `cache_dir`; `seed` is a file of vectors that ship."""
        self._cache_dir = cache_dir
        self._seed = seed
        self._real: VectorStore | None = None

    @property
    def store(self) -> VectorStore:
        """The store of real vectors, made at first use."""
        if self._real is None:
            self._real = make_store(self._cache_dir, seed=self._seed)
        return self._real

    def __call__(self, config: FlowConfig, embedding: str) -> tuple[RailsPort, MatcherFactory]:
        """Return the rails and the matcher for `exact` or `real`."""
        if embedding == "real":
            return rails_of(config, self.store, is_test=True), IndexMatcherFactory(self.store)
        return rails_of(config, VectorStore(ExactEmbedder()), is_test=True), ExactMatcher
