"""Every command in every state, against a small model of the specification's table; then random sequences of them."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from orchestrator_flow_support import dumped, runner, sound

from orchestrator.clock import VirtualClock
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.flows.testing.format import TestTurn
from orchestrator.flows.testing.runner import Conversation, TurnOutcome

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
FLOWS = ("tea", "cake", "milk")
Command = dict[str, Any]


def _flow(name: str) -> dict[str, Any]:
    steps = [
        {"id": "start", "type": "start", "next": "ask_one"},
        {"id": "ask_one", "type": "collect", "slot_name": f"{name}_one", "response": f"One of {name}?", "next": "ask_two"},
        {"id": "ask_two", "type": "collect", "slot_name": f"{name}_two", "response": f"Two of {name}?", "next": "end"},
        {"id": "end", "type": "end"},
    ]  # fmt: skip
    return {"name": name, "steps": steps}


CONFIG = sound(
    dumped(
        {
            "slots": {
                **{f"{n}_{s}": {"type": "integer"} for n in FLOWS for s in ("one", "two")},
                "secret": {"type": "integer", "filled_by": "action"},
            },
            "flows": {name: _flow(name) for name in FLOWS},
            "settings": {"embeddings_only": False},
        }
    )
).config


@dataclass
class Model:
    """What the table says: which task is active, which are paused, newest first, and their filled slots."""

    active: str | None = None
    paused: list[str] = field(default_factory=list)
    slots: dict[str, set[str]] = field(default_factory=dict)

    def start(self, flow: str) -> None:
        if self.active == flow:
            return
        if flow in self.paused:
            self.paused.remove(flow)
        else:
            self.slots[flow] = set()
        if self.active is not None:
            self.paused.insert(0, self.active)
        self.active = flow

    def cancel(self, flow: str | None) -> None:
        if self.active is not None and flow in (None, self.active):
            self.active = None
        elif flow in self.paused:
            self.paused.remove(flow)

    def resume(self, flow: str) -> None:
        if flow in self.paused:
            self.start(flow)

    def give(self, slots: dict[str, Any]) -> None:
        for name, value in slots.items():
            flow = name.split("_")[0]
            if self.active == flow and value is not None:
                self.slots[flow].add(name)
        if self.active is not None and len(self.slots[self.active]) == 2:
            self.active = None

    def correct(self, slots: dict[str, Any]) -> None:
        for name, value in slots.items():
            if self.active == name.split("_")[0] and value is None:
                self.slots[self.active].discard(name)
        self.give(slots)

    def take(self, commands: Sequence[Command]) -> None:
        """Apply the good commands in canonical order."""
        rank = ["cancel_flow", "resume_flow", "start_flow", "correct_slots", "set_slots"]
        for command in sorted((c for c in commands if c["command"] in rank), key=lambda c: rank.index(c["command"])):
            match command["command"]:
                case "cancel_flow":
                    self.cancel(command.get("flow"))
                case "resume_flow":
                    self.resume(command["flow"])
                case "start_flow":
                    self.start(command["flow"])
                case "correct_slots":
                    self.correct(command["slots"])
                case "set_slots":
                    self.give(command["slots"])


def one(name: str, **more: Any) -> Command:
    return {"command": name, **more}


COMMANDS: dict[str, list[Command]] = {
    "start the active one": [one("start_flow", flow="tea")],
    "start another": [one("start_flow", flow="cake")],
    "start a third": [one("start_flow", flow="milk")],
    "two starts": [one("start_flow", flow="cake"), one("start_flow", flow="milk")],
    "the same start twice": [one("start_flow", flow="milk"), one("start_flow", flow="milk")],
    "a start with a slot of it": [one("set_slots", slots={"milk_one": 3}), one("start_flow", flow="milk")],
    "a slot": [one("set_slots", slots={"tea_one": 3})],
    "zero": [one("set_slots", slots={"tea_one": 0})],
    "both slots": [one("set_slots", slots={"tea_one": 3, "tea_two": "4"})],
    "a slot of another flow": [one("set_slots", slots={"cake_one": 3})],
    "cancel": [one("cancel_flow")],
    "cancel by name": [one("cancel_flow", flow="cake")],
    "cancel one that is not there": [one("cancel_flow", flow="milk")],
    "cancel and start": [one("start_flow", flow="milk"), one("cancel_flow")],
    "resume": [one("resume_flow", flow="cake")],
    "resume one that is not paused": [one("resume_flow", flow="milk")],
    "correct": [one("correct_slots", slots={"tea_one": 9})],
    "correct to nothing": [one("correct_slots", slots={"tea_one": None})],
    "clarify": [one("clarify", flows=["cake", "milk"])],
    "repeat": [one("repeat")],
    "skip": [one("skip")],
    "chitchat": [one("chitchat")],
    "cannot handle": [one("cannot_handle")],
}
BAD: dict[str, Any] = {
    "an unknown command": [{"command": "strat_flow", "flow": "tea"}],
    "an unknown flow": [one("start_flow", flow="coffee")],
    "a system flow": [one("start_flow", flow="system_silence")],
    "an unknown slot": [one("set_slots", slots={"tea_three": 3})],
    "a wrong type": [one("set_slots", slots={"tea_one": "many"})],
    "an action's slot": [one("set_slots", slots={"secret": 3})],
    "an extra key": [one("cancel_flow", why="so")],
    "a missing key": [one("start_flow")],
    "no mapping": ["cancel_flow", 3, None],
    "no list of flows": [one("clarify", flows="tea")],
    "four flows": [one("clarify", flows=["tea", "cake", "milk", "tea"])],
    "nothing": [],
}
STATES: dict[str, list[list[Command]]] = {
    "idle": [],
    "active": [[one("start_flow", flow="tea")]],
    "active at its second question": [[one("start_flow", flow="tea")], [one("set_slots", slots={"tea_one": 1})]],
    "one paused": [[one("start_flow", flow="cake")], [one("start_flow", flow="tea")]],
    "two paused": [[one("start_flow", flow=f)] for f in ("milk", "cake", "tea")],
    "asked whether to resume": [[one("start_flow", flow="cake")], [one("start_flow", flow="tea")], [one("cancel_flow")]],
    "asked which one": [[one("start_flow", flow="tea")], [one("clarify", flows=["cake", "milk"])]],
    "asked whether to stop": [[one("start_flow", flow="tea")], *[[one("cannot_handle")]] * 3],
    "not understood": [[one("start_flow", flow="tea")], [one("cannot_handle")]],
}  # fmt: skip


def fresh() -> Conversation:
    return runner().conversation(CONFIG, VirtualClock(0.0, NOW))


async def plan(talk: Conversation, commands: Any) -> TurnOutcome:
    """Let the model hand over these commands for words no rule knows."""
    answer = {"task": "plan", "completion": json.dumps(commands)}
    chat = [{"task": "persona", "completion": "Fine."}] if commands == COMMANDS["chitchat"] else []
    outcome = await talk.take(TestTurn(user="hmhm blah", llm=(answer, *chat)))
    assert outcome.llm.faults == []
    assert outcome.failed is None
    return outcome


async def at(state: str) -> tuple[Conversation, Model]:
    talk, model = fresh(), Model()
    for commands in STATES[state]:
        await plan(talk, commands)
        model.take(commands)
    assert_is(talk.brain, model)
    return talk, model


def assert_is(brain: FlowBrain, model: Model) -> None:
    state = brain.state
    assert (state.active.root if state.active else None) == model.active
    assert [t.root for t in state.paused] == model.paused
    for task in [*([state.active] if state.active else []), *state.paused]:
        assert set(task.slots) == model.slots[task.root]
        # one that was paused in the turn it was started in has not begun yet
        wanted = "ask_two" if f"{task.root}_one" in task.slots else "ask_one"
        assert task.step == wanted or (task.step == "start" and task is not state.active)
    again = FlowBrain(brain.config)
    again.load_state(json.loads(json.dumps(brain.dump_state())))
    assert again.dump_state()["tasks"] == brain.dump_state()["tasks"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", COMMANDS)
async def test_every_command_in_every_state(state: str, name: str) -> None:
    talk, model = await at(state)
    outcome = await plan(talk, COMMANDS[name])
    model.take(COMMANDS[name])
    assert_is(talk.brain, model)
    assert outcome.replies, "a turn is never silent"
    if model.active is not None and talk.brain.state.pending is None:
        asked = "Two" if f"{model.active}_one" in model.slots[model.active] else "One"
        assert any(f"{asked} of {model.active}?" in reply for reply in outcome.replies), "the open question is heard"
    accepted = {c["command"] for c in outcome.report.commands}
    assert accepted or outcome.report.dropped


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", BAD)
async def test_a_bad_command_changes_nothing_in_any_state(state: str, name: str) -> None:
    talk, model = await at(state)
    outcome = await plan(talk, BAD[name])
    assert_is(talk.brain, model)
    assert [c["command"] for c in outcome.report.commands] == ["cannot_handle"], "nothing left: one cannot_handle"
    assert len(outcome.report.dropped) == len(BAD[name])
    assert all(d["reason"] for d in outcome.report.dropped)
    assert outcome.replies


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("good", ["start another", "a slot", "cancel"])
async def test_good_commands_beside_bad_ones_are_applied(state: str, good: str) -> None:
    talk, model = await at(state)
    outcome = await plan(talk, [*BAD["an unknown flow"], *COMMANDS[good], *BAD["an extra key"], *COMMANDS["repeat"]])
    model.take(COMMANDS[good])
    assert_is(talk.brain, model)
    assert len(outcome.report.dropped) >= 2


async def test_random_commands_keep_to_the_table() -> None:
    chaos = random.Random(7)
    for _ in range(60):
        talk, model = fresh(), Model()
        for _ in range(12):
            commands = chaos.choice(list(COMMANDS.values()))
            await plan(talk, commands)
            model.take(commands)
            assert_is(talk.brain, model)
