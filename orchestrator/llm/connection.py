"""What the client needs of a connection to an endpoint, and how the adapter behind it is loaded."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.llm.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPart:
    """A part of a tool call on its way: what it adds to the call with this `index`; any of the texts may be empty."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPiece:
    """A part of a streamed answer. `text` may be empty (a thought, a sign of life); `tokens` is 0 when not told.

    `is_end`: the endpoint says with it that the answer is whole; a stream that closes before was cut off.
    """

    text: str
    tokens: int = 0
    tool_parts: tuple[ToolPart, ...] = ()
    is_end: bool = False


class Connection(Protocol):
    """A connection to one endpoint. Errors are `LlmFailure`."""

    async def list_models(self) -> tuple[str, ...]:
        """Return the listed names; empty if the endpoint has no list."""
        ...

    def chat(self, arguments: Mapping[str, Any]) -> AbstractAsyncContextManager[AsyncIterator[ChatPiece]]:
        """Send a streamed chat call; leaving the context closes the response."""
        ...

    async def embed(self, *, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in their order."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


def load_adapter() -> Any:
    """Import the adapter; takes a second the first time. Any thread."""
    return importlib.import_module("orchestrator.llm.openai_adapter")


async def connect_to(endpoint: Endpoint, *, connect_s: float, answer_s: float) -> Connection:
    """Return a connection to `endpoint`; the first call loads the adapter, in a thread, since that takes a second."""

    def load() -> Connection:
        connection: Connection = load_adapter().OpenAiConnection(endpoint, connect_s=connect_s, answer_s=answer_s)
        return connection

    return await asyncio.to_thread(load)
