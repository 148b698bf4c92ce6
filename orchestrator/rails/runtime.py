"""The rails of one configuration, as the brain uses them; and matchers for anything else that has examples."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.dialogue.rails_port import Match, RailsHost
from orchestrator.rails.background import shipped
from orchestrator.rails.embedder import EmbeddingFailed
from orchestrator.rails.env import Expressions
from orchestrator.rails.index import Match as Found
from orchestrator.rails.index import VectorStore
from orchestrator.rails.knowledge import Knowledge
from orchestrator.rails.lazy_index import LazyIndex
from orchestrator.rails.model import RailsConfig
from orchestrator.rails.persist import load_state
from orchestrator.rails.prompts import Prompts
from orchestrator.rails.state import RailSet
from orchestrator.rails.turn import RailsTurn, is_awaited

_LOG = logging.getLogger(__name__)


class Rails:
    """Implements `dialogue.rails_port.RailsPort`. Lives on the core loop.

    `store` outlives a reload, so that only new sentences are embedded. Without a `chooser` the first wording of a bot
    message is taken, as in tests. `persona` tells the model who speaks. `rivals` are sentences that mean something
    else, such as the examples of flows: an intent has to be nearer than they are. `patience_s`: how long a turn waits
    for vectors that are still being made, before it goes by characters (None: as long as it takes).
    """

    def __init__(
        self,
        config: RailsConfig,
        store: VectorStore,
        *,
        persona: str = "",
        chooser: random.Random | None = None,
        rivals: Sequence[str] = (),
        patience_s: float | None = None,
    ) -> None:
        self.config = config
        self.knowledge = Knowledge(config, store, rivals, patience_s=patience_s)
        self._rails = config.rail_set()
        self._screens = RailSet(config.rails, can_start=False)
        self._prompts = Prompts(self.knowledge, persona)
        self._expressions = Expressions()
        self._chooser = chooser

    @property
    def has_user_intents(self) -> bool:
        """Whether there are user intents at all."""
        return bool(self.config.user_intents)

    @property
    def has_output_rails(self) -> bool:
        """Whether model text must pass `guard`."""
        return bool(self.config.output_rails)

    @property
    def reply_scope(self) -> bool:
        """Whether an output rail needs the whole reply."""
        return any(output.scope == "reply" for output in self.config.output_rails)

    def begin(self, state: Mapping[str, Any], host: RailsHost) -> RailsTurn:
        """Start a turn on a copy of `state`."""
        return RailsTurn(
            config=self.config,
            rails=self._rails,
            screens=self._screens,
            knowledge=self.knowledge,
            prompts=self._prompts,
            expressions=self._expressions,
            state=load_state(self._rails, state),
            host=host,
            chooser=self._chooser,
        )

    def accepts(self, state: Mapping[str, Any], text: str) -> bool:
        """Whether a safety rail, or a rail that waits in `state`, takes these very words."""
        return is_awaited(self.config, self._rails, load_state(self._rails, state), text)

    def user_intents(self) -> Mapping[str, Sequence[str]]:
        """Return the intents with their examples."""
        return self.config.user_intents

    async def stop(self) -> None:
        """End what is being built in the background."""
        await self.knowledge.stop()

    async def prepare(self) -> None:
        """Embed the examples now, so that the first turn does not wait; without a provider nothing happens."""
        try:
            await self.knowledge.prepare()
        except EmbeddingFailed as error:
            _LOG.warning("intents can't be embedded (%s)", error)


class IndexMatcher:
    """Implements `dialogue.rails_port.ExampleMatcher` over the embedding index, built at first use."""

    def __init__(
        self,
        store: VectorStore,
        examples: Mapping[str, Sequence[str]],
        *,
        threshold: float | None,
        margin: float,
        scale: str,
        patience_s: float | None = None,
    ) -> None:
        self._items = [(text, name) for name, texts in examples.items() for text in texts if text.strip()]
        self._threshold = threshold
        self._margin = margin
        is_bare = store.provider.is_exact or not self._items
        background, rivals = ((), ()) if is_bare else (shipped().ordinary, shipped().near_misses)
        self._index = LazyIndex(
            store,
            self._items,
            background=background,
            rivals=rivals,
            scale=scale,
            patience_s=patience_s,
            name="flow examples",
        )

    async def stop(self) -> None:
        """End what is being built in the background."""
        await self._index.stop()

    async def match(self, text: str) -> Match | None:
        """Return the best group if it is above threshold and margin, else None; also None without a provider."""
        if not self._items or not text.strip():
            return None
        if not any(char.isalpha() for char in text) and all(text.strip() != example for example, _ in self._items):
            # A bare number is an answer to something; for the embedding it is merely near to times and counts.
            return None
        try:
            index = await self._index.get()
            if self._threshold is None:
                found = await index.match_auto(text, margin=self._margin)
            else:
                found = await index.match_at(text, threshold=self._threshold, margin=self._margin)
        except EmbeddingFailed as error:
            _LOG.warning("no embedding for this sentence (%s)", error)
            return None
        return _as_match(found) if found is not None else None

    async def nearest(self, text: str, count: int) -> Sequence[Match]:
        """Return the `count` best groups, best first, whatever their score."""
        if not self._items or not text.strip():
            return ()
        try:
            index = await self._index.get()
            names = await index.top_labels(text, count)
            found = [await index.match(text, {name}) for name in names]
        except EmbeddingFailed:
            return ()
        return [_as_match(f) for f in found if f is not None]


def _as_match(found: Found) -> Match:
    return Match(
        name=found.label, score=found.score, margin=found.margin, by="exact" if found.is_exact else "embedding"
    )


class IndexMatcherFactory:
    """Implements `dialogue.rails_port.MatcherFactory`: all matchers share one store of vectors."""

    def __init__(self, store: VectorStore, *, patience_s: float | None = None) -> None:
        self._store = store
        self._patience_s = patience_s

    def __call__(
        self,
        examples: Mapping[str, Sequence[str]],
        *,
        threshold: float | None = None,
        margin: float = 0.03,
        scale: str = "cosine",
    ) -> IndexMatcher:
        """Build a matcher; a threshold of None is calibrated against small talk."""
        return IndexMatcher(
            self._store, examples, threshold=threshold, margin=margin, scale=scale, patience_s=self._patience_s
        )
