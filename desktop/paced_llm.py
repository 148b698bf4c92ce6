"""A model in virtual time: the clock knows when it is waited for, and a seeded run gives it fixed costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeVar, cast

from orchestrator.contracts.dialogue import Llm, LlmRequest, ToolCallingLlm, ToolUse
from orchestrator.llm.wrapped import WrappedLlm

T = TypeVar("T")

FIRST_TOKEN_S = 0.15
TOKEN_S = 0.02


class WaitCounter:
    """How many model calls are being waited for right now."""

    def __init__(self) -> None:
        """Start with none."""
        self.open = 0

    def __enter__(self) -> None:
        """Begin to wait."""
        self.open += 1

    def __exit__(self, *_: object) -> None:
        """Have waited."""
        self.open -= 1


class PacedLlm(WrappedLlm[Llm]):
    """An `Llm` whose waiting is counted; with `has_fixed_costs` every token costs the same in every run."""

    def __init__(self, inner: Llm, waits: WaitCounter, *, has_fixed_costs: bool) -> None:
        """Wrap `inner`."""
        super().__init__(inner)
        self._waits = waits
        self._has_fixed_costs = has_fixed_costs

    @property
    def can_call_tools(self) -> bool:
        """Whether the model may be offered tools."""
        return bool(getattr(self._inner, "can_call_tools", False))

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Yield the pieces of `inner`, each after its cost."""
        async with aclosing(self._paced(self._inner.stream(request))) as pieces:
            async for piece in pieces:
                yield piece

    async def converse(self, request: LlmRequest) -> AsyncIterator[str | ToolUse]:
        """Yield the pieces and tool calls of `inner`, each after its cost."""
        inner = cast(ToolCallingLlm, self._inner)
        async with aclosing(self._paced(inner.converse(request))) as pieces:
            async for piece in pieces:
                yield piece

    async def _paced(self, pieces: AsyncIterator[T]) -> AsyncGenerator[T]:
        cost_s = FIRST_TOKEN_S
        close = getattr(pieces, "aclose", None)
        try:
            while True:
                with self._waits:
                    try:
                        piece = await anext(pieces)
                    except StopAsyncIteration:
                        return
                if self._has_fixed_costs:
                    await asyncio.sleep(cost_s)
                    cost_s = TOKEN_S
                yield piece
        finally:
            if close is not None:
                with self._waits:
                    await close()

    async def complete(self, request: LlmRequest) -> str:
        """Return the whole text of `inner` after its cost."""
        with self._waits:
            text = await self._inner.complete(request)
        if self._has_fixed_costs:
            await asyncio.sleep(FIRST_TOKEN_S + TOKEN_S * len(text) / 4)
        return text
