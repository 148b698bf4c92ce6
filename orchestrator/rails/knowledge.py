"""What is searched by meaning: intents by their examples, bot messages by intent and text, rails by their lines."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.rails.background import BACKGROUND
from orchestrator.rails.index import Hit, MatchIndex, VectorStore
from orchestrator.rails.index import Match as Found
from orchestrator.rails.model import RailsConfig

_SAFETY_EASE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentMatch:
    """A user intent taken without a model call. `by` is exact or embedding."""

    intent: str
    score: float
    margin: float
    by: str


class Knowledge:
    """The indexes of one configuration, built at first use (or by `prepare`) and shared by all turns."""

    def __init__(self, config: RailsConfig, store: VectorStore, rivals: Sequence[str] = ()) -> None:
        self.config = config
        self._rivals = tuple(rivals)
        self._store = store
        self._intents: MatchIndex | None = None
        self._messages: MatchIndex | None = None
        self._rails: MatchIndex | None = None
        self._lock = asyncio.Lock()

    async def prepare(self) -> None:
        """Build the index of the intents now. Raises `EmbeddingFailed`."""
        await self.intents()

    async def intents(self) -> MatchIndex:
        """Return the index of the examples."""
        async with self._lock:
            if self._intents is None:
                items = [(text, name) for name, texts in self.config.user_intents.items() for text in texts]
                self._intents = await self._build(items, with_background=bool(items))
            return self._intents

    async def messages(self) -> MatchIndex:
        """Return the index of the bot messages."""
        async with self._lock:
            if self._messages is None:
                items = [(f"{name}: {v.text}", name) for name, vs in self.config.bot_messages.items() for v in vs[:3]]
                self._messages = await self._build(items)
            return self._messages

    async def rails(self) -> MatchIndex:
        """Return the index of the rails' lines."""
        async with self._lock:
            if self._rails is None:
                items = [(line, name) for name, lines in self.config.rail_lines.items() for line in lines]
                self._rails = await self._build(items)
            return self._rails

    async def _build(self, items: list[tuple[str, str]], *, with_background: bool = False) -> MatchIndex:
        with_background = with_background and not self._store.provider.is_exact
        background = tuple(dict.fromkeys((*BACKGROUND, *self._rivals))) if with_background else ()
        scale = self.config.settings.similarity_scale
        return await MatchIndex.build(items, self._store, scale=scale, background=background)

    async def find_intent(self, text: str) -> IntentMatch | None:
        """Return the intent that is beyond threshold and margin."""
        return await self._found(text, self.config.settings.margin, 1.0)

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
        return list(reversed(await (await self.messages()).top_labels(intent, count)))

    async def near_rails(self, intent: str, count: int = 5, among: Collection[str] | None = None) -> list[str]:
        """Return the names of the rails whose lines are nearest to a user intent, most similar last."""
        names = await (await self.rails()).top_labels(f"user {intent}", count if among is None else 1000)
        chosen = [n for n in names if among is None or n in among][:count]
        return list(reversed(chosen))


def _as_intent(found: Found) -> IntentMatch:
    return IntentMatch(
        intent=found.label, score=found.score, margin=found.margin, by="exact" if found.is_exact else "embedding"
    )
