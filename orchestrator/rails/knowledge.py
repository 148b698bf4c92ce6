"""What is searched by meaning: intents by their examples, bot messages by intent and text, rails by their lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.rails.background import shipped
from orchestrator.rails.index import Hit, MatchIndex, VectorStore
from orchestrator.rails.index import Match as Found
from orchestrator.rails.lazy_index import LazyIndex
from orchestrator.rails.model import RailsConfig

_SAFETY_EASE = 0.03
"""How much less lift over small talk a safety intent needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentMatch:
    """A user intent taken without a model call. `by` is exact or embedding."""

    intent: str
    score: float
    margin: float
    by: str


class Knowledge:
    """The indexes of one configuration, built at first use (or by `prepare`) and shared by all turns.

    `rivals` are sentences that mean something else; `patience_s` as in `LazyIndex`.
    """

    def __init__(
        self,
        config: RailsConfig,
        store: VectorStore,
        rivals: Sequence[str] = (),
        *,
        patience_s: float | None = None,
    ) -> None:
        self.config = config
        is_exact = store.provider.is_exact
        examples = [(text, name) for name, texts in config.user_intents.items() for text in texts]
        is_bare = is_exact or not examples
        background = () if is_bare else shipped().ordinary
        others = () if is_bare else tuple(dict.fromkeys((*shipped().rivals, *rivals)))
        messages = [(f"{name}: {v.text}", name) for name, vs in config.bot_messages.items() for v in vs[:3]]
        lines = [(line, name) for name, found in config.rail_lines.items() for line in found]
        scale = config.settings.similarity_scale
        self._intents = LazyIndex(
            store, examples, background=background, rivals=others, scale=scale, patience_s=patience_s, name="intents"
        )
        self._messages = LazyIndex(store, messages, scale=scale, patience_s=patience_s, name="bot messages")
        self._rails = LazyIndex(store, lines, scale=scale, patience_s=patience_s, name="rails")

    async def prepare(self) -> None:
        """Build the index of the intents now. Raises `EmbeddingFailed`."""
        await self._intents.wait()

    async def stop(self) -> None:
        """End whatever is being built."""
        for index in (self._intents, self._messages, self._rails):
            await index.stop()

    async def intents(self) -> MatchIndex:
        """Return the index of the examples."""
        return await self._intents.get()

    async def find_intent(self, text: str) -> IntentMatch | None:
        """Return the intent that is beyond threshold and margin."""
        return await self._found(text, self.config.settings.margin, 0.0)

    async def find_safety_intent(self, text: str) -> IntentMatch | None:
        """Return the intent of a safety rail if it is the nearest: rather once too often, so without a margin."""
        safety = self.config.always_intents
        if not safety:
            return None
        found = await self._found(text, 0.0, _SAFETY_EASE)
        return found if found is not None and found.intent in safety else None

    async def _found(self, text: str, margin: float, ease: float) -> IntentMatch | None:
        index = await self.intents()
        threshold = self.config.settings.similarity_threshold
        if threshold is None:
            found = await index.match_auto(text, margin=margin, ease=ease)
        else:
            found = await index.match_at(text, threshold=threshold, margin=margin)
        return _as_intent(found) if found is not None else None

    async def examples(self, text: str, count: int = 5) -> list[Hit]:
        """Return the nearest examples, most similar last, whatever their score."""
        return list(reversed(await (await self.intents()).top(text, count)))

    async def near_messages(self, intent: str, count: int = 5) -> list[str]:
        """Return the names of the bot messages nearest to a bot intent, most similar last."""
        return list(reversed(await (await self._messages.get()).top_labels(intent, count)))

    async def near_rails(self, intent: str, count: int = 5, among: Collection[str] | None = None) -> list[str]:
        """Return the names of the rails whose lines are nearest to a user intent, most similar last."""
        names = await (await self._rails.get()).top_labels(f"user {intent}", count if among is None else 1000)
        chosen = [n for n in names if among is None or n in among][:count]
        return list(reversed(chosen))


def _as_intent(found: Found) -> IntentMatch:
    return IntentMatch(
        intent=found.label, score=found.score, margin=found.margin, by="exact" if found.is_exact else "embedding"
    )
