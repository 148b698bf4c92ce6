"""Vectors by content: those that ship with the program, those kept on disk, those made anew."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrator.rails.embedder import EmbeddingFailed, EmbeddingProvider
from orchestrator.rails.index.scores import Matrix, unit

_LOG = logging.getLogger(__name__)
_RECENT = 256
_BATCH = 8
"""Texts per call to the provider; a sentence of the user waits for at most one such call."""


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
        self.on_made: Callable[[int, int], None] | None = None
        """Called on the loop with how many vectors of an index are made, and how many had to be."""

    async def items(self, texts: Sequence[str]) -> Matrix:
        """Return float32 unit rows for the texts of an index. Raises `EmbeddingFailed`."""
        await self._load()
        missing = list(dict.fromkeys(t for t in texts if _key(t) not in self._known))
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            rows = _usable(await self.provider.embed(batch), len(batch))
            await self._load()
            self.made += len(batch)
            for text, row in zip(batch, rows, strict=True):
                self._known[_key(text)] = row
            if self.on_made is not None:
                self.on_made(min(start + _BATCH, len(missing)), len(missing))
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
            found = _usable(await self.provider.embed([text]), 1)[0]
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
        """Write the vectors of `texts` as a seed, in 8 bits a number. Raises `EmbeddingFailed`.

        Each row has its own step, which need not be kept: reading makes rows unit again.
        """
        rows = await self.items(texts)
        largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-12)
        small = np.round(rows / largest * 127).astype(np.int8)
        known = {_key(text): row for text, row in zip(texts, small, strict=True)}
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
            keys, rows = data["keys"], _usable(data["rows"])
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


def _usable(rows: Any, count: int | None = None) -> Matrix:
    try:
        matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed("the provider returned no vectors") from error
    if matrix.ndim != 2 or count not in (None, len(matrix)) or not np.isfinite(matrix).all():
        raise EmbeddingFailed("the provider returned no usable vectors")
    return unit(matrix)
