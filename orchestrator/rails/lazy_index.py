"""An index that is built once, at first use, and never keeps a turn waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from orchestrator.rails.embedder import LexicalEmbedder
from orchestrator.rails.index import MatchIndex, VectorStore

_LOG = logging.getLogger(__name__)


class LazyIndex:
    """Builds a `MatchIndex` in a task of its own, which outlives the turn that asked first.

    With `patience_s` a turn that comes before it is ready gets one over character n-grams instead; None waits.
    Belongs to one event loop; `stop` ends the task.
    """

    def __init__(
        self,
        store: VectorStore,
        items: Sequence[tuple[str, str]],
        *,
        background: Sequence[str] = (),
        rivals: Sequence[str] = (),
        scale: str = "cosine",
        patience_s: float | None = None,
        name: str = "index",
    ) -> None:
        self._store = store
        self._items = items
        self._background = background
        self._rivals = rivals
        self._scale = scale
        self._patience_s = patience_s
        self._name = name
        self._index: MatchIndex | None = None
        self._task: asyncio.Task[MatchIndex] | None = None
        self._stand_in: MatchIndex | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the index itself is there."""
        return self._index is not None

    async def get(self) -> MatchIndex:
        """Return the index, or its stand-in. Raises `EmbeddingFailed`."""
        if self._index is not None:
            return self._index
        task = self._building()
        if not self._items or self._patience_s is None:
            return await self._built(task)
        await asyncio.wait({task}, timeout=self._patience_s)
        if task.done():
            return await self._built(task)
        if self._stand_in is None:
            _LOG.info("%s is not ready yet; characters are compared meanwhile", self._name)
            store = VectorStore(LexicalEmbedder())
            self._stand_in = await MatchIndex.build(self._items, store, background=self._background, scale=self._scale)
        return self._stand_in

    async def wait(self) -> MatchIndex:
        """Return the index itself. Raises `EmbeddingFailed`."""
        return self._index if self._index is not None else await self._built(self._building())

    def _building(self) -> asyncio.Task[MatchIndex]:
        if self._task is None:
            self._task = asyncio.create_task(self._build(self._store), name=f"build {self._name}")
        return self._task

    async def _build(self, store: VectorStore) -> MatchIndex:
        return await MatchIndex.build(
            self._items, store, background=self._background, rivals=self._rivals, scale=self._scale
        )

    async def _built(self, task: asyncio.Task[MatchIndex]) -> MatchIndex:
        try:
            self._index = await asyncio.shield(task)
        except asyncio.CancelledError:
            raise
        except Exception:
            self._task = None
            raise
        self._stand_in = None
        self._task = None
        return self._index

    async def stop(self) -> None:
        """Cancel the task and wait for its end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
