"""Embeddings from an OpenAI-compatible endpoint, for those who prefer that to the built-in model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from orchestrator.llm.client import LlmClient
from orchestrator.llm.failures import FailureCode, LlmFailure

_BATCH = 64


class EmbeddingsClient:
    """Asks `/v1/embeddings`; shares connection, key and failure codes with the language model's client."""

    def __init__(self, client: LlmClient, *, model: str = "", timeout_s: float = 10.0) -> None:
        """Use `model`, or the client's own when empty; `timeout_s` bounds each batch of 64 texts."""
        self._client = client
        self._model = model
        self._timeout_s = timeout_s

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in their order.

        Raises:
            LlmFailure: the endpoint can't be reached, refuses, or answers with something else.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await self._batch(texts[start : start + _BATCH])
        return vectors

    async def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            connection = await self._client.connect()
            async with asyncio.timeout(self._timeout_s):
                return await connection.embed(model=self._model or self._client.model, texts=texts)
        except TimeoutError as error:
            raise LlmFailure(FailureCode.TIMEOUT, "no vectors in time") from error
