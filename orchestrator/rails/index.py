"""Exact cosine search over normalised vectors. The only module of the orchestrator that calculates with numpy."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.rails.embedder import EmbeddingFailed, EmbeddingProvider, normalise
from orchestrator.rails.language import language_of

_LOG = logging.getLogger(__name__)
_RECENT = 256
_BATCH = 8
"""Texts per call to the provider; a sentence of the user waits for at most one such call."""
TOLERATED = 0.02
"""Share of small talk that a calibrated threshold lets through."""
MIN_LIFT, MAX_LIFT = 0.03, 0.25
Matrix: TypeAlias = npt.NDArray[np.float32]


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


class VectorStore:
    """Vectors by content: kept on disk per model, made only for texts never seen, query vectors remembered.

    `seed` is a read-only file of vectors that ship with the program, so that its own sentences are known at the first
    start. Belongs to one event loop.
    """

    def __init__(self, provider: EmbeddingProvider, cache_dir: Path | None = None, *, seed: Path | None = None) -> None:
        self.provider = provider
        self._cache_dir = cache_dir
        self._seed = seed
        self._known: dict[str, Matrix] = {}
        self._loaded: str | None = None
        self._loading = asyncio.Lock()
        self._recent: OrderedDict[str, Matrix] = OrderedDict()
        self.made = 0

    async def items(self, texts: Sequence[str]) -> Matrix:
        """Return float32 unit rows for the texts of an index. Raises `EmbeddingFailed`."""
        await self._load()
        missing = list(dict.fromkeys(t for t in texts if _key(t) not in self._known))
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            rows = _unit(await self.provider.embed(batch), len(batch))
            await self._load()
            self.made += len(batch)
            for text, row in zip(batch, rows, strict=True):
                self._known[_key(text)] = row
        if missing:
            await self._save()
        if any(_key(t) not in self._known for t in texts):
            # The provider was replaced on the way: everything anew with the new one.
            return await self.items(texts)
        return np.stack([self._known[_key(t)] for t in texts]) if texts else np.zeros((0, 1), np.float32)

    async def query(self, text: str) -> Matrix:
        """Return the unit vector of one sentence."""
        key = f"{self.provider.name}\0{text}"
        found = self._recent.get(key)
        if found is None:
            found = _unit(await self.provider.embed([text]), 1)[0]
            self._recent[f"{self.provider.name}\0{text}"] = found
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        return found

    def _path(self) -> Path | None:
        if self._cache_dir is None or self.provider.is_exact:
            return None
        return self._cache_dir / f"vectors-{hashlib.sha256(self.provider.name.encode()).hexdigest()[:12]}.npz"

    async def _load(self) -> None:
        if self._loaded == self.provider.name:
            return
        async with self._loading:
            name, path = self.provider.name, self._path()
            if self._loaded != name:
                known: dict[str, Matrix] = {}
                for file in (self._seed, path):
                    if file is not None and not self.provider.is_exact:
                        known.update(await asyncio.to_thread(_read_vectors, file, name))
                self._known = known
                self._loaded = name

    async def _save(self) -> None:
        path = self._path()
        if path is not None and self._known:
            await asyncio.to_thread(_write_vectors, path, dict(self._known), self.provider.name)

    async def write_seed(self, path: Path, texts: Sequence[str]) -> None:
        """Write the vectors of `texts` as a seed, at half precision. Raises `EmbeddingFailed`."""
        rows = await self.items(texts)
        known = {_key(text): row.astype(np.float16) for text, row in zip(texts, rows, strict=True)}
        await asyncio.to_thread(_write_vectors, path, known, self.provider.name)

    async def seed_misses(self, texts: Sequence[str]) -> list[str]:
        """Return the texts whose vectors are neither in the seed nor in the cache."""
        await self._load()
        return [text for text in dict.fromkeys(texts) if _key(text) not in self._known]


def _read_vectors(path: Path, provider: str) -> dict[str, Matrix]:
    if not path.exists():
        return {}
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            if str(data["provider"]) != provider:
                return {}
            keys, rows = data["keys"], _unit(data["rows"])
            return {str(k): r for k, r in zip(keys, rows, strict=True)}
    except Exception as error:  # a damaged file may raise nearly anything
        _LOG.warning("embedding cache unreadable, made anew (%s)", type(error).__name__)
        return {}


def _write_vectors(path: Path, known: Mapping[str, npt.NDArray[Any]], provider: str) -> None:
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.{threading.get_ident()}.tmp.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            rows = np.stack(list(known.values()))
            np.savez_compressed(file, provider=np.array(provider), keys=np.array(list(known)), rows=rows)
        temporary.replace(path)
    except OSError as error:
        _LOG.warning("embedding cache not written (%s)", type(error).__name__)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _unit(rows: Any, count: int | None = None) -> Matrix:
    try:
        matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed("the provider returned no vectors") from error
    if matrix.ndim != 2 or count not in (None, len(matrix)) or not np.isfinite(matrix).all():
        raise EmbeddingFailed("the provider returned no usable vectors")
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(norms == 0, 1, norms), dtype=np.float32)


def to_scale(cosine: Any, scale: str) -> Any:
    """Convert cosines to the scale of the settings; `angular` = 1 - sqrt(2 - 2cos)/2."""
    if scale != "angular":
        return cosine
    return 1.0 - np.sqrt(np.maximum(0.0, 2.0 - 2.0 * np.minimum(cosine, 1.0))) / 2.0


class MatchIndex:
    """Texts with labels, searched by meaning. Immutable once built; `build` again after a reload is cheap.

    Beside plain cosines it knows *contrast*: small models squeeze all cosines of one language into a narrow band, so
    the mean of that language is taken out first; a label's score is the mean of its two best examples, and it has to
    beat small talk (`background`) as well as other labels.
    """

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
        self._names = list(dict.fromkeys(self.labels))
        places = {name: i for i, name in enumerate(self._names)}
        self._ids = np.array([places[label] for label in self.labels], dtype=np.int64)
        self._groups = [np.flatnonzero(self._ids == i) for i in range(len(self._names))]
        self._by_group = np.concatenate(self._groups) if self._groups else np.zeros(0, dtype=np.int64)
        self._sizes = np.array([len(group) for group in self._groups], dtype=np.int64)
        self._starts = np.concatenate(([0], np.cumsum(self._sizes)[:-1])).astype(np.int64)
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
        self.thresholds: dict[str, float] = {}
        languages = [language_of(text) for text in self.texts]
        others = [language_of(text) for text in self.background]
        self._means: dict[str, Matrix] = {}
        for language in ("en", "zh"):
            rows = [r for r, name in zip(self._matrix, languages, strict=True) if name == language]
            rows += [r for r, name in zip(self._small_talk, others, strict=True) if name == language]
            if rows:
                self._means[language] = np.mean(np.stack(rows), axis=0)
        self._centred = self._centre(self._matrix, languages)
        self._centred_talk = self._centre(self._small_talk, others)
        for language in ("en", "zh"):
            self.thresholds[language] = self._calibrated(language, others)

    def _centre(self, rows: Matrix, languages: Sequence[str]) -> Matrix:
        if self._store.provider.is_exact or not len(rows) or not self.background:
            return rows
        default = next(iter(self._means.values()))
        return _unit(rows - np.stack([self._means.get(name, default) for name in languages]))

    def _calibrated(self, language: str, languages: Sequence[str]) -> float:
        """Return the lift over small talk that all but a few per cent of the small talk itself stays below."""
        own = [i for i, name in enumerate(languages) if name == language and i < self._ordinary]
        if len(own) < 10 or not self.texts:
            return MIN_LIFT
        rows = self._centred_talk[own]
        among = rows @ self._centred_talk.T
        among[np.arange(len(own)), own] = -np.inf
        lifts = self._label_scores(rows @ self._centred.T).max(axis=1) - _mean_of_best(among)
        return float(np.clip(np.quantile(lifts, 1 - TOLERATED), MIN_LIFT, MAX_LIFT))

    def _label_scores(self, scores: Matrix) -> Matrix:
        return np.stack([_mean_of_best(scores[:, group]) for group in self._groups], axis=1)

    def contrast(self, text: str, vector: Matrix, labels: Collection[str] | None = None) -> Match | None:
        """Return the best label by contrast; `lift` is its distance to small talk."""
        v = self._centre_one(vector, language_of(text))
        best = self._best_two_of_one(self._centred @ v)
        talk = float(_mean_of_best((self._centred_talk @ v)[None, :])[0]) if self.background else 0.0
        return self._chosen(text, best, self._scored(text, vector), labels, talk)

    def _best_two_of_one(self, scores: Matrix) -> Matrix:
        """Return per label the mean of its two best of one sentence's scores."""
        ordered = scores[self._by_group]
        first = np.maximum.reduceat(ordered, self._starts)
        at = np.repeat(first, self._sizes) == ordered
        # Of equal best ones only the first is taken out, so that the second is the same again.
        hits = np.flatnonzero(at)
        owner = np.repeat(np.arange(len(self._sizes)), self._sizes)[hits]
        _, firsts = np.unique(owner, return_index=True)
        rest = ordered.copy()
        rest[hits[firsts]] = -np.inf
        second = np.maximum.reduceat(rest, self._starts)
        return np.asarray(np.where(np.isfinite(second), (first + second) / 2, first), dtype=np.float32)

    def _centre_one(self, vector: Matrix, language: str) -> Matrix:
        if self._store.provider.is_exact or not self.background:
            return vector
        mean = self._means.get(language)
        centred = vector - (mean if mean is not None else next(iter(self._means.values())))
        norm = float(np.linalg.norm(centred))
        return np.asarray(centred / norm if norm else centred, dtype=np.float32)

    async def match_auto(
        self, text: str, *, margin: float, labels: Collection[str] | None = None, ease: float = 1.0
    ) -> Match | None:
        """Return the label that is beyond the calibrated threshold and `margin`, or worded identically; else None.

        `ease` below 1 lowers the threshold for those who would rather fire once too often.
        """
        found = await self.match_contrast(text, labels)
        if found is None or found.is_exact:
            return found
        if self._store.provider.is_exact:
            return None
        return found if found.lift >= ease * self.thresholds[language_of(text)] and found.margin >= margin else None

    async def match_contrast(self, text: str, labels: Collection[str] | None = None) -> Match | None:
        """Return the best label by contrast whatever its score; None without items."""
        if not self.texts:
            return None
        vector = await self._query(text)
        if labels is not None:
            return self.contrast(text, vector, labels)
        if self._last is None or self._last[0] != text:
            self._last = (text, self.contrast(text, vector))
        return self._last[1]

    async def match_at(
        self, text: str, *, threshold: float, margin: float, labels: Collection[str] | None = None
    ) -> Match | None:
        """Return the label whose best cosine is beyond `threshold` and `margin`, or that is worded identically."""
        found = await self.match(text, labels)
        if found is None or found.is_exact:
            return found
        return found if found.score >= threshold and found.margin >= margin else None

    def _fold(self, text: str) -> str:
        return text.strip() if self._store.provider.is_exact else normalise(text)

    def __len__(self) -> int:
        """Number of items."""
        return len(self.texts)

    async def _query(self, text: str) -> Matrix:
        vector = await self._store.query(text)
        if self._store.provider.name != self._provider:
            self._take(await _both(self._store, self.texts, self.background))
        return vector

    async def scores(self, text: str) -> npt.NDArray[np.float32]:
        """Return the score of every item."""
        return self._scored(text, await self._query(text))

    def _scored(self, text: str, vector: Matrix) -> npt.NDArray[np.float32]:
        cosine = self._matrix @ vector
        if self._store.provider.is_exact:
            cosine = np.clip(cosine, 0.0, 1.0) * 0.5
        scores = np.asarray(to_scale(cosine, self.scale), dtype=np.float32)
        identical = self._exact.get(self._fold(text))
        if identical:
            scores[identical] = 1.0
        return scores

    async def top(self, text: str, k: int = 5) -> list[Hit]:
        """Return the `k` best items, best first; equal scores in the order given."""
        if not self.texts:
            return []
        scores = await self.scores(text)
        return [self._hit(int(i), scores) for i in _best(scores, k)]

    def _hit(self, i: int, scores: npt.NDArray[np.float32]) -> Hit:
        return Hit(text=self.texts[i], label=self.labels[i], score=float(scores[i]), position=i)

    async def top_labels(self, text: str, k: int = 5) -> list[str]:
        """Return the `k` best labels, best first, each once."""
        if not self.texts:
            return []
        best = self._by_label(await self.scores(text))
        return [self._names[int(i)] for i in _best(best, k)]

    def _by_label(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        best = np.full(len(self._names), -np.inf, dtype=np.float32)
        np.maximum.at(best, self._ids, scores)
        return best

    async def match(self, text: str, labels: Collection[str] | None = None) -> Match | None:
        """Return the best label (of `labels`, if given) with its margin over all others; None without items."""
        if not self.texts:
            return None
        return self.judge(text, await self.scores(text), labels)

    def judge(self, text: str, scores: npt.NDArray[np.float32], labels: Collection[str] | None = None) -> Match | None:
        """Return the best label for scores already made."""
        return self._chosen(text, self._by_label(scores), scores, labels, 0.0)

    def _chosen(
        self,
        text: str,
        best: npt.NDArray[np.float32],
        scores: npt.NDArray[np.float32],
        labels: Collection[str] | None,
        talk: float,
    ) -> Match | None:
        allowed = [i for i, name in enumerate(self._names) if labels is None or name in labels]
        if not allowed:
            return None
        same = [i for i in self._exact.get(self._fold(text), ()) if labels is None or self.labels[i] in labels]
        exact = len({self.labels[i] for i in same}) == 1
        winner = int(self._ids[same[0]]) if exact else max(allowed, key=lambda i: (best[i], -i))
        others = np.delete(best, winner)
        margin = float(best[winner] - others.max()) if others.size else 1.0
        group = self._groups[winner]
        at = int(group[scores[group].argmax()])
        return Match(
            label=self._names[winner],
            score=float(scores[at]),
            margin=margin,
            text=self.texts[at],
            is_exact=exact,
            lift=float(best[winner]) - talk,
        )

    def leave_one_out(self, *, by_contrast: bool = True) -> list[Match]:
        """Return for each item how it would be matched without itself (`label` may be another than its own).

        `score` is the mean of the two best by contrast, else the best cosine on the scale.
        """
        rows = self._centred if by_contrast else self._matrix
        if not len(rows):
            return []
        talk = self._centred_talk if by_contrast else self._small_talk
        among = rows @ rows.T
        np.fill_diagonal(among, -np.inf)
        return self._judged(among, rows @ talk.T, self.texts, by_contrast)

    def small_talk_left_out(self, *, by_contrast: bool = True) -> list[Match]:
        """Return for each sentence of the background how it would be matched if it did not stand there."""
        rows = self._centred_talk if by_contrast else self._small_talk
        if not len(rows) or not self.texts:
            return []
        among = rows @ rows.T
        np.fill_diagonal(among, -np.inf)
        items = self._centred if by_contrast else self._matrix
        return self._judged(rows @ items.T, among, self.background, by_contrast)

    def _judged(self, scores: Matrix, talk: Matrix, texts: Sequence[str], by_contrast: bool) -> list[Match]:
        if by_contrast:
            best = self._label_scores(scores)
        else:
            best = to_scale(np.stack([scores[:, group].max(axis=1) for group in self._groups], axis=1), self.scale)
        best = np.where(np.isfinite(best), best, -1.0)
        lifts = _mean_of_best(talk) if talk.shape[1] else np.zeros(len(texts), dtype=np.float32)
        found = []
        for i, text in enumerate(texts):
            winner = int(best[i].argmax())
            others = np.delete(best[i], winner)
            top = float(best[i, winner])
            margin = top - float(others.max()) if others.size else 1.0
            lift = top - float(lifts[i])
            found.append(Match(label=self._names[winner], score=top, margin=margin, text=text, lift=lift))
        return found


async def _both(store: VectorStore, texts: Sequence[str], background: Sequence[str]) -> tuple[Matrix, Matrix]:
    """Return the vectors of both lists, from one provider."""
    rows = await store.items([*texts, *background])
    return rows[: len(texts)], rows[len(texts) :]


def _mean_of_best(scores: Matrix) -> Matrix:
    """Return per row the mean of its two highest values (of one, if there is only one)."""
    if scores.shape[1] < 2:
        return np.asarray(scores[:, 0] if scores.shape[1] else np.zeros(len(scores)), dtype=np.float32)
    two = np.partition(scores, scores.shape[1] - 2, axis=1)[:, -2:]
    mean = two.mean(axis=1)
    return np.asarray(np.where(np.isfinite(mean), mean, two.max(axis=1)), dtype=np.float32)


def _best(scores: npt.NDArray[np.float32], k: int) -> list[int]:
    count = min(k, scores.size)
    if count <= 0:
        return []
    if count < scores.size:
        edge = np.partition(scores, scores.size - count)[scores.size - count]
        candidates = np.flatnonzero(scores >= edge)
    else:
        candidates = np.arange(scores.size)
    return sorted((int(i) for i in candidates), key=lambda i: (-float(scores[i]), i))[:count]
