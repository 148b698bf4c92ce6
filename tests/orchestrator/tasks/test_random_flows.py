"""Random flows, sound by check, and random people: nothing raises, loops or falls silent, and no task gets stuck."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from orchestrator_flow_support import dumped, load, runner

from orchestrator.clock import VirtualClock
from orchestrator.dialogue.understanding import open_question
from orchestrator.flows.model import FlowConfig
from orchestrator.flows.testing.format import Interrupt, TestTurn
from orchestrator.flows.testing.runner import Conversation

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
SLOTS: dict[str, dict[str, Any]] = {
    "n": {"type": "integer"},
    "b": {"type": "boolean"},
    "c": {"type": "choice", "choices": ["red", "取消", "cancel"]},
    "t": {"type": "text", "default": "nothing"},
    "w": {"type": "datetime"},
    "d": {"type": "duration", "persist": True},
    "k": {"type": "text", "pattern": "[A-Z]\\d+"},
    "a": {"type": "any", "filled_by": "action"},
}
CONDITIONS = [
    "slots.n > 3", "slots.b", "slots.c == 'red'", "slots.t | length > 2", "slots.w > now.isoformat()", "slots.d >= 60", "slots.a == none",
    "not slots.n", "slots.n / 0 == 1", "slots.n and slots.t", "'a' in slots.t", "slots.n < slots.t", "world.x == 1", "user.text != ''", "1 == 1", "1 == 2",
]  # fmt: skip
TEXTS: list[Any] = [
    "{{ slots.n }}?", {"en": "Well, {{ slots.t }}?", "zh": "嗯，{{ slots.t }}？"}, "{% if slots.b %}Yes{% else %}No{% endif %}?", "{{ slots.d | spoken('duration') }}?",
    "{{ slots.w | spoken }}?", {"zh": "只有中文？"}, "{{ slots.n / 0 }} and more", "{{ slots.t }}", "Plain.",
]  # fmt: skip
SAID = [
    "yes", "no", "three", "七", "red", "cancel", "取消", "tomorrow at five", "明天五点", "ten minutes", "半小时", "A12", "算了", "skip", "跳过", "what?", "再说一遍",
    "actually four", "不对，是五", "change n to nine", "resume", "继续", "blah blah", "随便说说", "", "   ", "…", "f0", "f1", "f2", "好", "不要", "mm-hm", "嗯", "0", "x" * 3000,
    "\u202e\u0000\U0001f600", "cancel f1", "第二个", "the last one", "{{ slots.n }}", "{% for x in range(9**9) %}", "go on", "wait",
]  # fmt: skip
STUBS: dict[str, dict[str, Any]] = {
    "good": {"returns": 1, "slots": {"a": [1, 2]}},
    "bad": {"raises": "broken"},
    "slow": {"delay_s": 60},
    "odd": {"slots": {"n": "many", "nowhere": 1, "t": None}, "messages": ["{{ 1 }}"]},
}


def random_links(chaos: random.Random, goals: list[str]) -> Any:
    if chaos.random() < 0.4:
        return chaos.choice(goals)
    found = [{"if": chaos.choice(CONDITIONS), "then": chaos.choice(goals)} for _ in range(chaos.randint(1, 3))]
    return [*found, {"else": chaos.choice(goals)}]


def random_collect(chaos: random.Random, goals: list[str]) -> dict[str, Any]:
    step: dict[str, Any] = {
        "slot_name": chaos.choice(["n", "b", "c", "t", "w", "d", "k"]),
        "response": chaos.choice(TEXTS),
    }
    if chaos.random() < 0.4:
        step["validation"] = {"condition": chaos.choice(CONDITIONS), "failure_response": chaos.choice(TEXTS)}
    if chaos.random() < 0.3:
        step["on_give_up"] = chaos.choice(["cancel", {"next": chaos.choice(goals)}])
    for key in ("ask_even_if_known", "skippable"):
        if chaos.random() < 0.2:
            step[key] = True
    if chaos.random() < 0.3:
        step["from_object"] = {"type": "file", "field": chaos.choice(["title", "pages"])}
    return step


def random_action(chaos: random.Random, goals: list[str]) -> dict[str, Any]:
    step: dict[str, Any] = {"action": chaos.choice(["action_response", *STUBS, "action_listen"])}
    if step["action"] == "action_response":
        step["args"] = {"text": chaos.choice(TEXTS)}
    elif chaos.random() < 0.5:
        step["on_error"] = chaos.choice(goals)
    return step


def random_flow(chaos: random.Random, name: str, others: list[str]) -> dict[str, Any]:
    ids = [f"s{i}" for i in range(chaos.randint(2, 7))]
    steps: dict[str, dict[str, Any]] = {"start": {"type": "start", "next": ids[0]}, "end": {"type": "end"}}
    for index, step_id in enumerate(ids):
        kind = chaos.choice(
            ["collect", "collect", "collect", "action", "action", "set_slots", *(["call"] if others else [])]
        )
        # only what listens may lead back: other circles are refused by check
        goals = [*ids, "end"] if kind == "collect" else [*ids[index + 1 :], "end"]
        step: dict[str, Any] = {"type": kind, "next": random_links(chaos, goals)}
        if kind == "collect":
            step |= random_collect(chaos, goals)
        elif kind == "action":
            step |= random_action(chaos, goals)
        elif kind == "set_slots":
            step["slots"] = {
                chaos.choice(["n", "b", "t"]): chaos.choice(
                    [None, "{{ slots.n }}", "{{ slots.n + 1 }}", "{{ 0 }}", "{{ '' }}"]
                )
            }
        else:
            step["flow"] = chaos.choice(others)
        steps[step_id] = step
    flow: dict[str, Any] = {"name": chaos.choice([name, {"en": name, "zh": f"任务{name}"}]), "examples": [name]}
    flow["steps"] = [{"id": i, **step} for i, step in steps.items() if i in reached(steps)]
    if chaos.random() < 0.2:
        flow["confirm_interrupt"] = True
    if others and chaos.random() < 0.3:
        flow["on_complete"] = chaos.choice(others)
    if chaos.random() < 0.1:
        flow["if"] = chaos.choice(CONDITIONS)
    return flow


def reached(steps: dict[str, dict[str, Any]]) -> set[str]:
    """Return the steps that can be reached from the start."""
    found, todo = {"end"}, ["start"]
    while todo:
        step_id = todo.pop()
        if step_id in found:
            continue
        found.add(step_id)
        step = steps[step_id]
        links = step.get("next")
        todo += (
            [links] if isinstance(links, str) else [str(link.get("then") or link.get("else")) for link in links or ()]
        )
        given_up = step.get("on_give_up")
        todo += [given_up["next"]] if isinstance(given_up, dict) else []
        todo += [step["on_error"]] if "on_error" in step else []
    return found


def random_config(chaos: random.Random) -> FlowConfig:
    """Return the sound flows of three random ones; what check refuses is left out, as in the app."""
    names = ["f0", "f1", "f2"]
    flows = {name: random_flow(chaos, name, names[index + 1 :]) for index, name in enumerate(names)}
    if chaos.random() < 0.5:
        flows["f2"]["on_complete"] = "f0"
    return load(dumped({"slots": SLOTS, "flows": flows})).config


def check(talk: Conversation, said: str) -> None:
    brain = talk.brain
    task = brain.state.active
    for item in [*([task] if task else []), *brain.state.paused]:
        assert item.step in brain.config.flows[item.flow].steps
        assert len(item.trail) <= 200
        assert all(count <= 20 for count in item.attempts.values()), said
    stored = json.dumps(brain.dump_state())
    assert len(stored) < 60_000


async def talk_at_random(chaos: random.Random) -> None:
    talk = runner().conversation(random_config(chaos), VirtualClock(0.0, NOW), stubs=STUBS)
    for _ in range(25):
        said = chaos.choice(SAID)
        turn = TestTurn(user=said)
        draw = chaos.random()
        if draw < 0.1:
            turn = TestTurn(silence_s=chaos.choice([1.0, 7.0, 90_000.0]))
        elif draw < 0.2:
            turn = TestTurn(
                user=said,
                thing={"type": "file", "id": "1", "title": "T", "attributes": {"pages": chaos.choice([3, None, "x"])}},
            )
        elif draw < 0.4:
            turn = TestTurn(user=said, interrupt=Interrupt(after_words=chaos.randint(0, 6), text=chaos.choice(SAID)))
        outcome = await talk.take(turn)
        assert outcome.failed is None, (said, outcome.failed)
        assert outcome.report.steps <= 400
        check(talk, said)
    for _ in range(12):
        if talk.brain.state.active is None and talk.brain.state.pending is None:
            return
        outcome = await talk.take(TestTurn(user="cancel"))
        assert outcome.replies, "a cancel is never silent"
        check(talk, "cancel")
        question = open_question(talk.brain.state, talk.brain.config)
        if question is not None and talk.brain.config.slots[question.slot].type == "choice":
            # a choice of that name is chosen; the task is ended by other words
            await talk.take(TestTurn(user="never mind"))
    raise AssertionError(f"stuck: {talk.brain.state.active} {talk.brain.state.paused} {talk.brain.state.pending}")


def test_most_random_flows_are_sound() -> None:
    counts = [len(random_config(random.Random(seed)).user_flows()) for seed in range(40)]
    assert sum(counts) >= 60


@pytest.mark.parametrize("seed", range(25))
async def test_random_flows_and_random_people(seed: int) -> None:
    await talk_at_random(random.Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1060))
async def test_many_random_flows_and_random_people(seed: int) -> None:
    chaos = random.Random(seed)
    for _ in range(20):
        await talk_at_random(chaos)
