"""A model that knows no Chinese is not asked in Chinese."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from desktop.english_only import EnglishOnlyLlm
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask


class Model:
    """Remembers what it was asked."""

    is_configured = True
    can_plan = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        self.asked.append(request.messages[-1].content)
        yield "A real answer."

    async def complete(self, request: LlmRequest) -> str:
        return "".join([piece async for piece in self.stream(request)])


def ask(text: str, task: LlmTask = LlmTask.PERSONA) -> LlmRequest:
    return LlmRequest(task=task, messages=(ChatMessage(role="user", content=text),))


@pytest.mark.parametrize("turn", [0, 1])
async def test_chinese_gets_an_honest_line_and_the_model_no_call(turn: int) -> None:
    model = Model()
    llm = EnglishOnlyLlm(model, turn)
    assert "英语" in await llm.complete(ask("你最喜欢哪个季节？"))
    assert "英语" in "".join([piece async for piece in llm.stream(ask("你最喜欢哪个季节？"))])
    assert model.asked == []


async def test_english_and_other_tasks_pass() -> None:
    model = Model()
    llm = EnglishOnlyLlm(model, 0)
    assert await llm.complete(ask("What is your favourite season?")) == "A real answer."
    assert await llm.complete(ask("总结一下", LlmTask.SUMMARISE)) == "A real answer."
    assert len(model.asked) == 2
