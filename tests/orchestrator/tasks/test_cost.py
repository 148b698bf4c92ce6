"""The cost of a step is the same at turn 1 and at turn 1,000, and nothing in the state grows with the conversation."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from orchestrator_flow_support import FLOWS, runner, sound

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import TurnHeard, TurnInput
from orchestrator.flows.testing.host import MemoryReply, ScriptedLlm, heard_until
from orchestrator.flows.testing.runner import Conversation

ROUND = ["set a reminder", "water the plants", "purple", "in ten minutes"]


async def one_turn(talk: Conversation, text: str) -> int:
    """Do a turn and return how many executor steps it took."""
    turn = talk.host.turn(ScriptedLlm(), MemoryReply())
    pending = talk.brain.begin(turn, TurnInput(text=text, via="typed"))
    await pending.run()
    pending.settle(TurnHeard(outcome="completed", messages=heard_until(turn.reply.messages, None)[0]))
    talk.host.events.clear()
    return pending.report.steps


async def counted(talk: Conversation, text: str) -> int:
    """Do a turn and return how many Python calls it made."""
    calls = 0

    def count(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(count)
    try:
        await one_turn(talk, text)
    finally:
        sys.setprofile(before)
    return calls


def fresh() -> Conversation:
    config = sound((FLOWS / "user_flows.yml").read_text(encoding="utf-8")).config
    return runner().conversation(config, VirtualClock(0.0, datetime(2026, 12, 1, 9, 0, tzinfo=UTC)))


async def test_work_per_turn_is_the_same_at_turn_1_and_turn_1000() -> None:
    talk = fresh()
    for text in ROUND:
        await one_turn(talk, text)
    early_steps, early_calls, early_size = [], [], []
    for text in ROUND:
        early_calls.append(await counted(talk, text))
        early_size.append(len(json.dumps(talk.brain.dump_state())))
    for text in ROUND:
        early_steps.append(await one_turn(talk, text))
    while talk.brain.state.turn < 1_000:
        for text in ROUND:
            await one_turn(talk, text)
    late_steps, late_calls, late_size = [], [], []
    for text in ROUND:
        late_calls.append(await counted(talk, text))
        late_size.append(len(json.dumps(talk.brain.dump_state())))
    for text in ROUND:
        late_steps.append(await one_turn(talk, text))
    assert late_steps == early_steps
    # digits of counters are the only thing that may differ
    assert all(abs(a - b) <= 60 for a, b in zip(early_size, late_size, strict=True)), (early_size, late_size)
    assert all(late <= early * 1.02 + 20 for early, late in zip(early_calls, late_calls, strict=True)), (
        early_calls,
        late_calls,
    )
