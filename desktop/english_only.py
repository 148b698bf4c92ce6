"""An offline model that knows no Chinese: what it would make of it is worse than saying so."""

from __future__ import annotations

from collections.abc import AsyncIterator

from orchestrator.contracts.dialogue import Llm, LlmRequest, LlmTask
from orchestrator.llm.persona import language_of
from orchestrator.llm.wrapped import WrappedLlm

_LINES = (
    "我的离线语言模型只会英语，这个没法用中文聊。在设置里换一个会中文的模型就行。",
    "这个我用中文答不上来，因为离线模型只懂英语。提醒和计时我可以照样帮你。",
)


class EnglishOnlyLlm(WrappedLlm[Llm]):
    """Passes English on; a persona's answer to Chinese is an honest line."""

    def __init__(self, inner: Llm, turn: int) -> None:
        """Wrap `inner`; the lines take turns by the number of the answer, `turn`."""
        super().__init__(inner)
        self._line = _LINES[turn % len(_LINES)]

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Yield the model's pieces, or a line of its own for what it can't understand."""
        if _is_chinese(request):
            yield self._line
            return
        pieces = self._inner.stream(request)
        close = getattr(pieces, "aclose", None)
        try:
            async for piece in pieces:
                yield piece
        finally:
            if close is not None:
                await close()

    async def complete(self, request: LlmRequest) -> str:
        """Return the model's text, or a line of its own for what it can't understand."""
        return self._line if _is_chinese(request) else await self._inner.complete(request)


def _is_chinese(request: LlmRequest) -> bool:
    last = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
    return request.task is LlmTask.PERSONA and bool(last.strip()) and language_of(last) == "zh"
