"""Texts with labels, searched by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.rails.embedder import normalise
from orchestrator.rails.index.contrast import Contrast
from orchestrator.rails.index.scores import Groups, Matrix, best_places, mean_of_best, to_scale
from orchestrator.rails.index.vectors import VectorStore
from orchestrator.rails.language import language_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One item found. `score` is on the index's scale, `position` the item's place in the order given."""

    text: str
    label: str
    score: float
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The best label for a text.

    `score` is the cosine to its best example on the index's scale, `margin` the distance to the best other label,
    `lift` that to small talk (0 where it was not asked for), `is_exact` identical wording.
    """

    label: str
    score: float
    margin: float
    text: str
    is_exact: bool = False
    lift: float = 0.0


class MatchIndex:
    """Plain cosines, and contrast to small talk. Immutable once built; `build` again after a reload is cheap."""

    def __init__(
        self,
        store: VectorStore,
        items: Sequence[tuple[str, str]],
        background: Sequence[str],
        rivals: Sequence[str],
        vectors: tuple[Matrix, Matrix],
        scale: str,
    ) -> None:
        self._store = store
        self.texts = tuple(text for text, _ in items)
        self.labels = tuple(label for _, label in items)
        self.background = (*background, *rivals)
        self._ordinary = len(background)
        self.scale = scale
        self._groups = Groups(self.labels)
        self._exact: dict[str, list[int]] = {}
        for i, text in enumerate(self.texts):
            self._exact.setdefault(self._fold(text), []).append(i)
        self._take(vectors)

    @classmethod
    async def build(
        cls,
        items: Sequence[tuple[str, str]],
        store: VectorStore,
        *,
        scale: str = "cosine",
        background: Sequence[str] = (),
        rivals: Sequence[str] = (),
    ) -> MatchIndex:
        """Build from (text, label) pairs.

        A label has to beat `background` and `rivals` alike; only `background` calibrates the threshold. Raises
        `EmbeddingFailed`.
        """
        vectors = await _both(store, [text for text, _ in items], (*background, *rivals))
        if store.provider.is_exact:
            return cls(store, items, background, rivals, vectors, scale)
        return await asyncio.to_thread(cls, store, items, background, rivals, vectors, scale)

    def _take(self, vectors: tuple[Matrix, Matrix]) -> None:
        self._provider = self._store.provider.name
        self._last: tuple[str, Match | None] | None = None
        self._matrix, self._small_talk = vectors
        languages = ([language_of(text) for text in self.texts], [language_of(text) for text in self.background])
        self._contrast = Contrast(
            self._groups,
            *vectors,
            languages,
            ordinary=self._ordinary,
            is_raw=self._store.provider.is_exact,
        )

    @property
    def thresholds(self) -> dict[str, float]:
        """The calibrated lifts over small talk by language."""
        return self._contrast.thresholds

    def __len__(self) -> int:
        """Number of items."""
        return len(self.texts)

    async def match_auto(
        self, text: str, *, margin: float, labels: Collection[str] | None = None, ease: float = 0.0
    ) -> Match | None:
        """Return the label that is beyond the calibrated threshold and `margin`, or worded identically; else None.

        `ease` lowers the threshold for those who would rather fire once too often.
        """
        found = await self.match_contrast(text, labels)
        if found is None or found.is_exact:
            return found
        if self._store.provider.is_exact:
            return None
        return found if found.lift >= self.thresholds[language_of(text)] - ease and found.margin >= margin else None

    async def match_contrast(self, text: str, labels: Collection[str] | None = None) -> Match | None:
        """Return the best label by contrast whatever its score; None without items."""
        if not self.texts:
            return None
        vector = await self._query(text)
        if labels is not None:
            return self._contrasted(text, vector, labels)
        if self._last is None or self._last[0] != text:
            self._last = (text, self._contrasted(text, vector))
        return self._last[1]

    def _contrasted(self, text: str, vector: Matrix, labels: Collection[str] | None = None) -> Match | None:
        best, talk = self._contrast.of(vector, language_of(text))
        return self._chosen(text, best, self._scored(text, vector), labels, talk)

    async def match_at(
        self, text: str, *, threshold: float, margin: float, labels: Collection[str] | None = None
    ) -> Match | None:
        """Return the label whose best cosine is beyond `threshold` and `margin`, or that is worded identically."""
        found = await self.match(text, labels)
        if found is None or found.is_exact:
            return found
        return found if found.score >= threshold and found.margin >= margin else None

    async def match(self, text: str, labels: Collection[str] | None = None) -> Match | None:
        """Return the best label (of `labels`, if given) with its margin over all others; None without items."""
        if not self.texts:
            return None
        scores = await self.scores(text)
        return self._chosen(text, self._groups.best(scores), scores, labels, 0.0)

    async def scores(self, text: str) -> Matrix:
        """Return the score of every item."""
        return self._scored(text, await self._query(text))

    async def top(self, text: str, k: int = 5) -> list[Hit]:
        """Return the `k` best items, best first; equal scores in the order given."""
        if not self.texts:
            return []
        scores = await self.scores(text)
        return [
            Hit(text=self.texts[i], label=self.labels[i], score=float(scores[i]), position=i)
            for i in best_places(scores, k)
        ]

    async def top_labels(self, text: str, k: int = 5) -> list[str]:
        """Return the `k` best labels, best first, each once."""
        if not self.texts:
            return []
        best = self._groups.best(await self.scores(text))
        return [self._groups.names[i] for i in best_places(best, k)]

    def leave_one_out(self, *, by_contrast: bool = True) -> list[Match]:
        """Return for each item how it would be matched without itself (`label` may be another than its own).

        `score` is the label's by contrast, else the best cosine on the scale.
        """
        if not self.texts:
            return []
        if by_contrast:
            return self._judged(*self._contrast.items_left_out(), self.texts)
        among = self._matrix @ self._matrix.T
        np.fill_diagonal(among, -np.inf)
        return self._judged(self._plain(among), mean_of_best(self._matrix @ self._small_talk.T), self.texts)

    def small_talk_left_out(self, *, by_contrast: bool = True) -> list[Match]:
        """Return for each sentence of the background how it would be matched if it did not stand there."""
        if not self.background or not self.texts:
            return []
        if by_contrast:
            return self._judged(*self._contrast.talk_left_out(), self.background)
        among = self._small_talk @ self._small_talk.T
        np.fill_diagonal(among, -np.inf)
        return self._judged(self._plain(self._small_talk @ self._matrix.T), mean_of_best(among), self.background)

    def _plain(self, cosines: Matrix) -> Matrix:
        best = np.asarray(to_scale(self._groups.best_of_rows(cosines), self.scale), dtype=np.float32)
        return np.where(np.isfinite(best), best, np.float32(-1.0))

    def _judged(self, best: Matrix, talk: Matrix, texts: Sequence[str]) -> list[Match]:
        found = []
        for text, scores, beside in zip(texts, best, talk, strict=True):
            winner = int(scores.argmax())
            others = np.delete(scores, winner)
            top = float(scores[winner])
            margin = top - float(others.max()) if others.size else 1.0
            name = self._groups.names[winner]
            found.append(Match(label=name, score=top, margin=margin, text=text, lift=top - float(beside)))
        return found

    def _fold(self, text: str) -> str:
        return text.strip() if self._store.provider.is_exact else normalise(text)

    async def _query(self, text: str) -> Matrix:
        vector = await self._store.query(text)
        if self._store.provider.name != self._provider:
            self._take(await _both(self._store, self.texts, self.background))
        return vector

    def _scored(self, text: str, vector: Matrix) -> Matrix:
        cosine = self._matrix @ vector
        if self._store.provider.is_exact:
            cosine = np.clip(cosine, 0.0, 1.0) * 0.5
        scores = np.asarray(to_scale(cosine, self.scale), dtype=np.float32)
        identical = self._exact.get(self._fold(text))
        if identical:
            scores[identical] = 1.0
        return scores

    def _chosen(
        self, text: str, best: Matrix, scores: Matrix, labels: Collection[str] | None, talk: float
    ) -> Match | None:
        names = self._groups.names
        allowed = [i for i, name in enumerate(names) if labels is None or name in labels]
        if not allowed:
            return None
        same = [i for i in self._exact.get(self._fold(text), ()) if labels is None or self.labels[i] in labels]
        exact = len({self.labels[i] for i in same}) == 1
        winner = int(self._groups.ids[same[0]]) if exact else max(allowed, key=lambda i: (best[i], -i))
        others = np.delete(best, winner)
        margin = float(best[winner] - others.max()) if others.size else 1.0
        group = self._groups.members[winner]
        at = int(group[scores[group].argmax()])
        return Match(
            label=names[winner],
            score=float(scores[at]),
            margin=margin,
            text=self.texts[at],
            is_exact=exact,
            lift=float(best[winner]) - talk,
        )


async def _both(store: VectorStore, texts: Sequence[str], background: Sequence[str]) -> tuple[Matrix, Matrix]:
    """Return the vectors of both lists, from one provider."""
    rows = await store.items([*texts, *background])
    return rows[: len(texts)], rows[len(texts) :]
