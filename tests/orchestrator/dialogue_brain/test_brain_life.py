"""The brain over reloads and restarts; actions from files; the command-line of tests."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import asyncio
import json
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest
from orchestrator_flow_support import SYSTEM, conversation, runner, say, sound

from desktop.flows_cli import flows_main
from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import TurnInput
from orchestrator.contracts.events import FlowCommanded, FlowSlotChanged, FlowStateChanged
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.dialogue.brain_loading import load_folders
from orchestrator.flows.testing.format import TestTurn
from orchestrator.tasks.actions.custom import scan_actions

FLOW = """
slots:
  a: {type: text, label: first}
  n: {type: integer, label: number}
flows:
  f:
    name: the thing
    examples: [begin]
    steps:
      - {id: start, type: start, next: ask_a}
      - {id: ask_a, type: collect, slot_name: a, response: "a?", next: ask_n}
      - {id: ask_n, type: collect, slot_name: n, response: "n?", next: say}
      - {id: say, type: action, action: action_response, args: {text: "{{ slots.a }}{{ slots.n }}"}, next: end}
      - {id: end, type: end}
"""


def test_a_conversation_goes_on_after_a_restart() -> None:
    talk = conversation(FLOW)
    say(talk, "begin")
    say(talk, "x")
    stored = json.loads(json.dumps(talk.brain.dump_state()))
    again = conversation(FLOW)
    again.brain.load_state(stored)
    assert say(again, "4").replies == ["x4"]


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"tasks": 3},
        {"tasks": {"version": 99}},
        {"tasks": {"version": 1, "active": {"uid": 1}}, "rails": []},
        {"tasks": {"version": 1, "paused": "x", "slots": {"a": 4}}},
    ],
)
def test_a_broken_state_is_no_obstacle(stored: dict[str, object]) -> None:
    talk = conversation(FLOW)
    talk.brain.load_state(stored)
    assert say(talk, "begin").replies[-1] == "a?"


def test_a_reload_keeps_a_running_task() -> None:
    talk = conversation(FLOW)
    say(talk, "begin")
    say(talk, "x")
    talk.brain.reload(sound(FLOW.replace('"n?"', '"number?"')).config)
    assert say(talk, "purple").replies == ["number?"]
    assert say(talk, "4").replies == ["x4"]


def test_a_step_that_vanished_leads_to_the_nearest_valid_one() -> None:
    talk = conversation(FLOW)
    say(talk, "begin")
    say(talk, "x")
    talk.brain.reload(sound(FLOW.replace("id: ask_n", "id: ask_num").replace("next: ask_n}", "next: ask_num}")).config)
    task = talk.brain.state.active
    assert task is not None
    assert task.step in talk.brain.config.flows["f"].steps
    assert say(talk, "where were we").replies[-1] == "n?"
    assert say(talk, "4").replies == ["x4"]


def test_a_flow_that_vanished_is_cancelled_with_a_sentence() -> None:
    talk = conversation(FLOW)
    say(talk, "begin")
    talk.brain.reload(sound(FLOW.replace("  f:\n", "  g:\n")).config)
    assert talk.brain.state.active is None
    assert any("changed meanwhile" in r for r in say(talk, "hello").replies)


def test_a_slot_whose_type_changed_is_asked_again() -> None:
    talk = conversation(FLOW)
    say(talk, "begin")
    say(talk, "x")
    talk.brain.reload(sound(FLOW.replace("a: {type: text", "a: {type: integer")).config)
    assert "a" not in talk.brain.state.values()


def test_facts_are_put_into_the_events() -> None:
    talk = conversation(FLOW)
    say(talk, "begin")
    say(talk, "x")
    kinds = [type(e) for e in talk.host.events]
    assert {FlowCommanded, FlowSlotChanged, FlowStateChanged} <= set(kinds)
    states = [e for e in talk.host.events if isinstance(e, FlowStateChanged)]
    assert (states[-1].active_task, states[-1].step, states[-1].system_flow) == (
        "f",
        "ask_n",
        "system_collect_information",
    )
    slots = [e for e in talk.host.events if isinstance(e, FlowSlotChanged)]
    assert (slots[-1].slot, slots[-1].new, slots[-1].provenance, slots[-1].accepted) == ("a", "x", "said", True)


def test_what_was_said_is_stored_at_once() -> None:
    talk = conversation(FLOW)
    say(talk, "begin")
    say(talk, "x")
    assert talk.host.stored is not None
    assert talk.host.stored["tasks"]["active"]["slots"]["a"]["value"] == "x"


def test_silence_is_timed_only_while_a_question_is_open() -> None:
    talk = conversation(FLOW)
    assert talk.brain.silence_timeout_s() is None
    say(talk, "begin")
    assert talk.brain.silence_timeout_s() == 6.0


# --- custom actions --------------------------------------------------------------------------------------

ACTION = """
from orchestrator.tasks.actions.base import Action, ActionResult
from orchestrator.tasks.actions.builtin import Now

class {cls}(Action):
    name = "{name}"
    async def run(self, context, args):
        return ActionResult(messages=["{name} ran"])
"""


def test_custom_actions_are_found_by_scan(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(ACTION.format(cls="Good", name="good"), encoding="utf-8")
    (tmp_path / "broken.py").write_text("x = 1\nraise ValueError('no')\n", encoding="utf-8")
    (tmp_path / "syntax.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "quits.py").write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    (tmp_path / "twice.py").write_text(ACTION.format(cls="Twice", name="good"), encoding="utf-8")
    (tmp_path / "nameless.py").write_text(ACTION.format(cls="Nameless", name=""), encoding="utf-8")
    (tmp_path / "needy.py").write_text(
        ACTION.format(cls="Needy", name="needy") + "    def __init__(self, x): pass\n", encoding="utf-8"
    )
    sub = tmp_path / "sub"
    sub.mkdir()
    (sub / "inner.py").write_text(ACTION.format(cls="Inner", name="inner"), encoding="utf-8")
    (sub / "__init__.py").write_text("", encoding="utf-8")
    actions, problems = scan_actions(tmp_path, {"action_now"})
    assert [a.name for a in actions] == ["good"]
    assert {(Path(p.file).name, p.line, p.code) for p in problems} == {
        ("broken.py", 2, "action_broken"),
        ("syntax.py", 1, "action_broken"),
        ("quits.py", 2, "action_broken"),
        ("twice.py", 5, "action_name_taken"),
        ("nameless.py", 5, "action_name_missing"),
        ("needy.py", 5, "action_broken"),
    }


def test_a_flow_pack_brings_no_python(tmp_path: Path) -> None:
    (tmp_path / "pack.py").write_text(ACTION.format(cls="Good", name="good"), encoding="utf-8")
    (tmp_path / "user_flows.yml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "system_flows.yml").write_text(SYSTEM["system_flows.yml"], encoding="utf-8")
    loaded = load_folders([tmp_path], actions_folder=tmp_path / "actions")
    assert "good" not in loaded.actions
    assert not loaded.errors


def test_a_custom_action_runs_in_a_flow(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(ACTION.format(cls="Good", name="good"), encoding="utf-8")
    (tmp_path / "flows").mkdir()
    text = "flows:\n  f: {name: f, steps: [{id: start, type: start, next: a}, {id: a, type: action, action: good, next: end}, {id: end, type: end}]}\n"
    (tmp_path / "flows" / "f.yml").write_text(text, encoding="utf-8")
    loaded = load_folders([tmp_path / "flows"], actions_folder=tmp_path)
    assert not loaded.errors, loaded.errors
    brain = FlowBrain(loaded.config, actions=loaded.actions)
    clock = VirtualClock(0.0, datetime(2026, 12, 1, tzinfo=UTC))
    talk = runner().conversation(loaded.config, clock)
    talk.brain = brain
    assert asyncio.run(talk.take(TestTurn(user="f"))).replies == ["good ran"]


# --- mynah flows test ------------------------------------------------------------------------------------

TESTS = """
tests:
  - name: good
    config: &c
      slots: {a: {type: text}}
      flows:
        f: {name: f, steps: [{id: start, type: start, next: ask}, {id: ask, type: collect, slot_name: a, response: "a?", next: end}, {id: end, type: end}]}
    files: []
    turns:
      - {user: f, expect: {active_flow: f, step: ask}}
  - name: bad
    files: []
    config: *c
    turns:
      - user: f
        expect: {step: nowhere, replies: [x], reply_matches: [zzz], slots: {a: 1}, paused: [q], actions: [w], commands: [], error: true, llm_calls: 2, user_intent: u, bot_intents: [b], heard: h, dropped: [d], active_flow: g, vars: {v: 1}}
      - user: hm
        llm: [{task: persona, completion: unused}]
  - name: a call that is not allowed
    files: []
    config: *c
    turns:
      - user: how are you
        llm: [{task: plan, completion: "[]"}]
"""


def test_the_runner_reports_every_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some.yml"
    file.write_text(textwrap.dedent(TESTS), encoding="utf-8")
    assert flows_main(["test", str(file), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    good, bad, forbidden = report["tests"]
    assert (good["passed"], good["failures"]) == (True, [])
    assert not bad["passed"]
    keys = {f["key"] for f in bad["failures"]}
    assert keys == {
        "step",
        "replies",
        "reply_matches",
        "slots.a",
        "paused",
        "actions",
        "commands",
        "error",
        "llm_calls",
        "user_intent",
        "bot_intents",
        "heard",
        "dropped",
        "active_flow",
        "vars.v",
        "llm",
    }
    assert {"turn", "key", "expected", "got"} == set(bad["failures"][0])
    assert [f["key"] for f in forbidden["failures"]] == ["llm"]
    assert report["coverage"]["flows"]["f"]["steps"] == 3


def test_a_faulty_test_file_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some.yml"
    file.write_text("tests:\n  - name: x\n    turns:\n      - {user: a, expct: {}}\n", encoding="utf-8")
    assert flows_main(["test", str(file)]) == 2
    assert "did you mean expect?" in capsys.readouterr().out


def test_a_message_may_point_at_a_thing() -> None:
    text = """
slots: {n: {type: text}}
flows:
  f:
    name: f
    steps:
      - {id: start, type: start, next: ask}
      - {id: ask, type: collect, slot_name: n, response: "Which?", next: say}
      - {id: say, type: action, action: action_response, args: {text: "Here.", object: {type: file, id: "{{ slots.n }}"}}, next: end}
      - {id: end, type: end}
"""
    talk = conversation(text)
    say(talk, "f")
    turn = talk.host.turn()
    asyncio.run(talk.brain.begin(turn, TurnInput(text="a.txt", via="typed")).run())
    thing = turn.reply.messages[-1].object
    assert thing is not None
    assert (thing.type, thing.id) == ("file", "a.txt")


def test_files_of_a_test_lie_in_the_flow_folder_or_beside_the_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "tests").mkdir()
    (tmp_path / "flows" / "mine.yml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "flows" / "tests" / "beside.yml").write_text(FLOW.replace('"a?"', '"beside?"'), encoding="utf-8")
    cases = "".join(
        f"  - {{name: {name}, files: [{file}], turns: [{{user: begin, expect: {{reply_matches: ['{words}']}}}}]}}\n"
        for name, file, words in (
            ("the folder's", "mine.yml", "a"),
            ("by a path", "../mine.yml", "a"),
            ("beside", "beside.yml", "beside"),
            ("shipped", "system_flows.yml", "Sorry"),
        )
    )
    file = tmp_path / "flows" / "tests" / "some.yml"
    file.write_text("tests:\n" + cases.replace("the folder's", "of the folder"), encoding="utf-8")
    assert flows_main(["test", str(file)]) == 0, capsys.readouterr().out
    file.write_text("tests:\n  - {name: x, files: [nowhere.yml], turns: [{user: begin}]}\n", encoding="utf-8")
    assert flows_main(["test", str(file)]) == 1
    assert "nowhere.yml:1:1" in capsys.readouterr().out
