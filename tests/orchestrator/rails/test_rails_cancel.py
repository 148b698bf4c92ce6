"""A cancelled turn closes its model call, whatever it is doing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.contracts.dialogue import LlmRequest, MessageHeard, TurnHeard

CONFIG = """
user_intents: {x: [hello], y: [other], no rail: [third], agree: ["yes"]}
bot_messages: {done: [Done.]}
rails:
  r: {steps: [{user: x}, {bot: free}, {user: agree}, {bot: done}]}
  s: {steps: [{user: y}, {extract: {var: v, instruction: what}}]}
settings: {embeddings_only: false%s}
"""


class HangingLlm:
    """Says a little and never ends."""

    is_configured = True
    can_plan = False

    def __init__(self, begin: str) -> None:
        self.begin = begin
        self.open = 0
        self.asked = asyncio.Event()

    async def complete(self, request: LlmRequest) -> str:
        return "".join([c async for c in self.stream(request)])

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        self.open += 1
        try:
            for char in self.begin:
                yield char
            self.asked.set()
            await asyncio.Event().wait()
        finally:
            self.open -= 1


@pytest.mark.parametrize(
    "text, begin, extra",
    [
        ("hello", "Some words that ", ""),
        ("hello", "", ""),
        ("other", "va", ""),
        ("unknown", "us", ""),
        ("third", "bot fr", ""),
        ("third", "bot free\nbot mo", ", multi_step: true"),
        ("unknown", "user x\nbo", ", single_call: true"),
        ("unknown", "user x\nbot free\nSome words that go ", ", single_call: true"),
    ],
)
async def test_cancelling_closes_the_call(talk: Any, text: str, begin: str, extra: str) -> None:
    t = talk(CONFIG % extra)
    llm = HangingLlm(begin)
    turn, _host = t.start(text, llm)

    async def run() -> None:
        await turn.screen_input(text)
        await turn.match(text) or await turn.decide(text)

    task = asyncio.create_task(run())
    await llm.asked.wait()
    assert llm.open == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert llm.open == 0
    state = turn.settle(TurnHeard(outcome="interrupted"))
    assert state["rails"] == []


async def test_question_cut_while_the_model_was_still_writing_it_is_open(talk: Any) -> None:
    t = talk(CONFIG % "")
    llm = HangingLlm("Shall I go on with ")
    turn, host = t.start("hello", llm)
    await turn.screen_input("hello")
    task = asyncio.create_task(turn.match("hello"))
    await llm.asked.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    said = host.result.replies[0]
    heard = MessageHeard(key=None, text=said, heard="Shall I", sounded=True, completed=False)
    t.state = turn.settle(TurnHeard(outcome="interrupted", messages=(heard,)))
    assert (await t.user("yes")).replies == ["Done."]
