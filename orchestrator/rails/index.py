"""Exact cosine search over normalised vectors. The only module of the orchestrator that calculates with numpy."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.rails.embedder import EmbeddingFailed, EmbeddingProvider, normalise

_LOG = logging.getLogger(__name__)
_RECENT = 256
_BATCH = 32
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
    """The best label for a text. `margin` is the distance to the best other label, `is_exact` identical wording."""

    label: str
    score: float
    margin: float
    text: str
    is_exact: bool = False


class VectorStore:
    """Vectors by content: kept on disk per model, made only for texts never seen, query vectors remembered.

    Belongs to one event loop.
    """

    def __init__(self, provider: EmbeddingProvider, cache_dir: Path | None = None) -> None:
        self.provider = provider
        self._cache_dir = cache_dir
        self._known: dict[str, Matrix] = {}
        self._loaded: str | None = None
        self._recent: OrderedDict[str, Matrix] = OrderedDict()
        self.made = 0

    async def items(self, texts: Sequence[str]) -> Matrix:
        """Return float32 unit rows for the texts of an index. Raises `EmbeddingFailed`."""
        self._load()
        missing = list(dict.fromkeys(t for t in texts if _key(t) not in self._known))
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            rows = _unit(await self.provider.embed(batch))
            self._load()
            self.made += len(batch)
            for text, row in zip(batch, rows, strict=True):
                self._known[_key(text)] = row
        if missing:
            self._save()
        if any(_key(t) not in self._known for t in texts):
            # The provider was replaced on the way: everything anew with the new one.
            return await self.items(texts)
        return np.stack([self._known[_key(t)] for t in texts]) if texts else np.zeros((0, 1), np.float32)

    async def query(self, text: str) -> Matrix:
        """Return the unit vector of one sentence."""
        key = f"{self.provider.name}\0{text}"
        found = self._recent.get(key)
        if found is None:
            found = _unit(await self.provider.embed([text]))[0]
            self._recent[f"{self.provider.name}\0{text}"] = found
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        return found

    def _path(self) -> Path | None:
        if self._cache_dir is None or self.provider.is_exact:
            return None
        return self._cache_dir / f"vectors-{hashlib.sha256(self.provider.name.encode()).hexdigest()[:12]}.npz"

    def _load(self) -> None:
        if self._loaded == self.provider.name:
            return
        self._known = {}
        self._loaded = self.provider.name
        path = self._path()
        if path is None or not path.exists():
            return
        try:
            with np.load(path, allow_pickle=False) as data:
                keys, rows = data["keys"], data["rows"]
                self._known = {str(k): np.asarray(r, np.float32) for k, r in zip(keys, rows, strict=True)}
        except (OSError, ValueError, KeyError, EOFError) as error:
            _LOG.warning("embedding cache unreadable, made anew (%s)", type(error).__name__)

    def _save(self) -> None:
        path = self._path()
        if path is None or not self._known:
            return
        temporary = path.with_name(f"{path.stem}.{os.getpid()}.tmp.npz")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                np.savez(file, keys=np.array(list(self._known)), rows=np.stack(list(self._known.values())))
            temporary.replace(path)
        except OSError as error:
            _LOG.warning("embedding cache not written (%s)", type(error).__name__)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _unit(rows: Any) -> Matrix:
    matrix = np.asarray(rows, dtype=np.float32)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise EmbeddingFailed("the provider returned no usable vectors")
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(norms == 0, 1, norms), dtype=np.float32)


def to_scale(cosine: Any, scale: str) -> Any:
    """Convert cosines to the scale of the settings; `angular` = 1 - sqrt(2 - 2cos)/2."""
    if scale != "angular":
        return cosine
    return 1.0 - np.sqrt(np.maximum(0.0, 2.0 - 2.0 * np.minimum(cosine, 1.0))) / 2.0


class MatchIndex:
    """Texts with labels, searched by meaning. Immutable once built; `build` again after a reload is cheap."""

    def __init__(
        self, store: VectorStore, texts: Sequence[str], labels: Sequence[str], matrix: Matrix, scale: str
    ) -> None:
        self._store = store
        self.texts = tuple(texts)
        self.labels = tuple(labels)
        self._matrix = matrix
        self.scale = scale
        self._provider = store.provider.name
        names = list(dict.fromkeys(labels))
        self._names = names
        self._ids = np.array([names.index(label) for label in labels], dtype=np.int64)
        self._exact: dict[str, list[int]] = {}
        for i, text in enumerate(texts):
            self._exact.setdefault(self._fold(text), []).append(i)

    @classmethod
    async def build(cls, items: Sequence[tuple[str, str]], store: VectorStore, *, scale: str = "cosine") -> MatchIndex:
        """Build from (text, label) pairs. Raises `EmbeddingFailed`."""
        texts = [text for text, _ in items]
        return cls(store, texts, [label for _, label in items], await store.items(texts), scale)

    def _fold(self, text: str) -> str:
        return text.strip() if self._store.provider.is_exact else normalise(text)

    def __len__(self) -> int:
        """Number of items."""
        return len(self.texts)

    async def scores(self, text: str) -> npt.NDArray[np.float32]:
        """Return the score of every item."""
        vector = await self._store.query(text)
        if self._store.provider.name != self._provider:
            self._matrix = await self._store.items(self.texts)
            self._provider = self._store.provider.name
        return self._scored(text, vector)

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
        best = self._by_label(scores)
        allowed = [i for i, name in enumerate(self._names) if labels is None or name in labels]
        if not allowed:
            return None
        winner = max(allowed, key=lambda i: (best[i], -i))
        others = np.delete(best, winner)
        margin = float(best[winner] - others.max()) if others.size else 1.0
        at = int(np.flatnonzero((self._ids == winner) & (scores == best[winner]))[0])
        same = self._exact.get(self._fold(text), ())
        exact = at in same and len({self.labels[i] for i in same}) == 1
        return Match(
            label=self._names[winner], score=float(best[winner]), margin=margin, text=self.texts[at], is_exact=exact
        )

    def leave_one_out(self) -> list[tuple[str, str, float, str, float]]:
        """Return per item (text, label, best score within its label, best other label, its score), itself left out."""
        if len(self._names) < 2:
            return []
        cosine = self._matrix @ self._matrix.T
        scores = np.asarray(to_scale(cosine, self.scale), dtype=np.float32)
        np.fill_diagonal(scores, -np.inf)
        found = []
        for i, (text, label) in enumerate(zip(self.texts, self.labels, strict=True)):
            best = self._by_label(scores[i])
            own = int(self._ids[i])
            others = best.copy()
            others[own] = -np.inf
            rival = int(others.argmax())
            found.append((text, label, float(best[own]), self._names[rival], float(others[rival])))
        return found


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
