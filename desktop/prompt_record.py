"""Remembers the last prompt, for the inspector; in memory alone."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass

from orchestrator.contracts.dialogue import Llm, LlmRequest, ToolUse
from orchestrator.llm.wrapped import WrappedLlm


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPrompt:
    """A prompt as it was sent. `number` counts the calls of the session."""

    number: int
    task: str
    messages: tuple[tuple[str, str], ...]


class PromptRecord:
    """Holds the newest prompt. Any thread."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._last: LastPrompt | None = None

    @property
    def last(self) -> LastPrompt | None:
        """The newest prompt, None before the first call."""
        with self._lock:
            return self._last

    def note(self, request: LlmRequest) -> None:
        """Remember `request`."""
        messages = tuple((message.role, message.content) for message in request.messages)
        with self._lock:
            number = self._last.number + 1 if self._last is not None else 1
            self._last = LastPrompt(number=number, task=request.task.value, messages=messages)

    def wrap(self, llm: Llm) -> Llm:
        """Return `llm`, watched."""
        return WatchedLlm(llm, self)


class WatchedLlm(WrappedLlm[Llm]):
    """A model whose prompts are noted; offers tools where the watched one does."""

    def __init__(self, inner: Llm, record: PromptRecord) -> None:
        """Watch `inner`."""
        super().__init__(inner)
        self._record = record

    @property
    def can_call_tools(self) -> bool:
        """Whether tools may be offered."""
        return bool(getattr(self._inner, "can_call_tools", False))

    def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Note the prompt and stream."""
        self._record.note(request)
        return self._inner.stream(request)

    def converse(self, request: LlmRequest) -> AsyncIterator[str | ToolUse]:
        """Note the prompt and converse; a model without tools streams its text."""
        self._record.note(request)
        converse = getattr(self._inner, "converse", None)
        found: AsyncIterator[str | ToolUse] = self._inner.stream(request) if converse is None else converse(request)
        return found

    async def complete(self, request: LlmRequest) -> str:
        """Note the prompt and complete."""
        self._record.note(request)
        return await self._inner.complete(request)

    def abort(self) -> None:
        """End the call that is open, if the model knows how."""
        abort = getattr(self._inner, "abort", None)
        if abort is not None:
            abort()
