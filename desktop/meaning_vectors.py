"""Where vectors of sentences are kept: those that ship and the user's cache, the same for everything that understands.

Whoever understands without what ships embeds some thousand sentences before its first answer, so nobody makes a store
of the program's any other way.
"""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

from desktop.paths import assets, cache_dir
from orchestrator.dialogue.brain_loading import TestRails, make_store
from orchestrator.rails.index import VectorStore


def _places() -> tuple[Path, Path]:
    return cache_dir() / "vectors", assets() / "embeddings.npz"


def meaning_store(executor: Executor | None = None) -> VectorStore:
    """Return a store with the vectors that ship, over the user's cache."""
    cache, shipped = _places()
    return make_store(cache, executor, seed=shipped)


def meaning_rails() -> TestRails:
    """Return the maker of rails and matchers of test conversations, on the same vectors."""
    return TestRails(*_places())
