"""A barge-in at every word and every await of every turn: no task gets stuck, nothing the user said is lost."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import pytest
from orchestrator_flow_support import FLOWS, runner, sound

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import TurnHeard, TurnInput
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.dialogue.understanding import open_question
from orchestrator.flows.model import FlowConfig
from orchestrator.flows.testing.format import Interrupt, TestTurn
from orchestrator.flows.testing.host import MemoryReply, ScriptedLlm, heard_until, word_ends
from orchestrator.flows.testing.runner import Conversation

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
MIXED = """
slots:
  day: {type: date, label: day}
  people: {type: integer, label: people}
  note: {type: text, label: note}
  code: {type: text, filled_by: action}
flows:
  table:
    name: a table
    examples: [book a table]
    steps:
      - {id: start, type: start, next: hello}
      - {id: hello, type: action, action: action_response, args: {text: "Gladly. One moment please."}, next: ask_day}
      - {id: ask_day, type: collect, slot_name: day, response: "For which day?", next: ask_people}
      - id: ask_people
        type: collect
        slot_name: people
        response: "For how many people?"
        validation: {condition: "slots.people < 9", failure_response: "We have room for eight at most."}
        next: reserve
      - {id: reserve, type: action, action: reserve, args: {day: "{{ slots.day }}", people: "{{ slots.people }}"}, next: confirm}
      - {id: confirm, type: action, action: action_response, args: {text: "Reserved for {{ slots.people }} under {{ slots.code }}."}, next: more}
      - {id: more, type: call, flow: extras, next: bye}
      - {id: bye, type: action, action: action_response, args: {text: "See you then."}, next: end}
      - {id: end, type: end}
  extras:
    name: extras
    steps:
      - {id: start, type: start, next: ask}
      - {id: ask, type: collect, slot_name: note, response: "Any special wishes?", next: end}
      - {id: end, type: end}
"""
SCRIPTS: dict[str, tuple[str, list[str]]] = {
    "mixed": (MIXED, ["book a table", "tomorrow", "twelve", "four", "by the window"]),
    "refund": ((FLOWS / "examples" / "refund.yml").read_text(encoding="utf-8"), ["退款申请", "10001", "质量不好"]),
    "reminder": ((FLOWS / "user_flows.yml").read_text(encoding="utf-8"), ["set a reminder", "water the plants", "purple", "in ten minutes"]),
    "mood": ((FLOWS / "user_flows.yml").read_text(encoding="utf-8"), ["心情打卡", "三分", "工作太累", "好"]),
    "game": ((FLOWS / "user_flows.yml").read_text(encoding="utf-8"), ["let's play a game", "yes", "no", "yes", "yes"]),
}  # fmt: skip
RUNNER = runner()
STUBS = {"reserve": {"returns": 1, "slots": {"code": "K7"}}}
_ANSWERS = {"date": "tomorrow", "integer": "four", "text": "by the window", "datetime": "in ten minutes", "duration": "ten minutes", "boolean": "no"}  # fmt: skip


@lru_cache
def config_of(name: str) -> FlowConfig:
    return sound(SCRIPTS[name][0]).config


def fresh(name: str) -> Conversation:
    return RUNNER.conversation(config_of(name), VirtualClock(0.0, NOW), stubs=STUBS)


def check_sound(brain: FlowBrain) -> None:
    """The state is plain data, survives storing, and dangles nowhere."""
    stored = json.loads(json.dumps(brain.dump_state()))
    task = brain.state.active
    for item in [*([task] if task else []), *brain.state.paused]:
        flow = brain.config.flow(item.flow)
        assert flow is not None
        assert item.step in flow.steps
    again = FlowBrain(brain.config)
    again.load_state(stored)
    assert again.dump_state()["tasks"] == brain.dump_state()["tasks"]


async def finish(talk: Conversation) -> int:
    """Answer what is asked until no task is left; returns how many turns it took."""
    brain = talk.brain
    for count in range(40):
        if brain.state.active is None:
            return count
        question = open_question(brain.state, brain.config)
        if brain.state.pending is not None:
            answer = "yes"
        elif question is None:
            answer = "go ahead then"
        else:
            answer = _ANSWERS[brain.config.slots[question.slot].type]
        await talk.take(TestTurn(user=answer))
        check_sound(brain)
    task = brain.state.active
    raise AssertionError(f"stuck at {task.place if task else None}: {task}")


async def said_before(name: str, upto: int) -> tuple[Conversation, list[str]]:
    talk = fresh(name)
    script = SCRIPTS[name][1]
    for text in script[:upto]:
        await talk.take(TestTurn(user=text))
    return talk, script


def said_slots(brain: FlowBrain) -> dict[str, Any]:
    task = brain.state.active
    return {k: v.value for k, v in task.slots.items() if v.by == "said"} if task is not None else {}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_cut_after_every_word_of_every_turn(name: str) -> None:
    for index in range(len(SCRIPTS[name][1])):
        uncut, script = await said_before(name, index + 1)
        length = sum(len(word_ends(text)) for text in uncut.host.history[-1].text.split("\n"))
        for words in range(length + 1):
            talk, _ = await said_before(name, index)
            await talk.take(TestTurn(user=script[index], interrupt=Interrupt(after_words=words, text="wait")))
            check_sound(talk.brain)
            if uncut.brain.state.active is not None:
                assert said_slots(talk.brain) == said_slots(uncut.brain), f"turn {index} after {words} words"
            await finish(talk)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_the_answer_to_a_cut_question_is_taken(name: str) -> None:
    """From the first sound of the turn that asks, an answer counts."""
    for index in range(len(SCRIPTS[name][1]) - 1):
        talk, script = await said_before(name, index)
        uncut, _ = await said_before(name, index + 2)
        await talk.take(TestTurn(user=script[index], interrupt=Interrupt(after_words=1, text=script[index + 1])))
        check_sound(talk.brain)
        expected = uncut.brain.state.active
        got = talk.brain.state.active
        assert (got.place if got else None) == (expected.place if expected else None)
        assert talk.brain.state.values() == uncut.brain.state.values()


@pytest.mark.parametrize("name", SCRIPTS)
async def test_before_the_first_sound_both_utterances_are_one(name: str) -> None:
    for index in range(len(SCRIPTS[name][1]) - 1):
        talk, script = await said_before(name, index)
        before = talk.brain.dump_state()["tasks"]
        turn = talk.host.turn(ScriptedLlm(), MemoryReply())
        pending = talk.brain.begin(turn, TurnInput(text=script[index], via="typed"))
        await pending.run()
        pending.settle(TurnHeard(outcome="interrupted", messages=heard_until(turn.reply.messages, 0)[0], joined=True))
        after = talk.brain.state
        was = before["active"]
        assert (after.active.step if after.active else None) == (was["step"] if was else None)
        if was and after.active:
            assert (after.active.attempts, after.active.open) == (was["attempts"], was["open"])
        await finish(talk)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_cancelled_at_every_await_of_every_turn(name: str) -> None:
    for index in range(len(SCRIPTS[name][1])):
        for steps in range(60):
            talk, script = await said_before(name, index)
            turn = talk.host.turn(ScriptedLlm(), MemoryReply())
            pending = talk.brain.begin(turn, TurnInput(text=script[index], via="typed"))
            task = asyncio.get_running_loop().create_task(pending.run())
            for _ in range(steps):
                await asyncio.sleep(0)
            done = task.done()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            heard = heard_until(turn.reply.messages, None)[0]
            pending.settle(TurnHeard(outcome="completed" if done else "interrupted", messages=heard))
            check_sound(talk.brain)
            await finish(talk)
            if done:
                break
        else:
            raise AssertionError("the turn never ended")


async def test_a_side_effect_runs_once_and_is_told_on_the_next_turn() -> None:
    talk, _ = await said_before("mixed", 2)
    outcome = await talk.take(TestTurn(user="four", interrupt=Interrupt(after_words=0, text="wait")))
    assert [a["name"] for a in outcome.report.actions] == ["reserve"]
    assert talk.brain.state.values()["people"] == 4
    later = await talk.take(TestTurn(user="hello again"))
    assert "Reserved for 4 under K7." in later.replies
    assert talk.host.effects.ran.count(talk.host.effects.ran[0]) == 1
    assert len(talk.host.effects.ran) == 1


async def test_a_redone_turn_does_not_run_its_effect_twice() -> None:
    talk, _ = await said_before("mixed", 2)
    outcome = await talk.take(TestTurn(user="four", interrupt=Interrupt(after_words=0, text="people")))
    assert len(talk.host.effects.ran) == 1
    assert "Reserved for 4 under K7." in outcome.replies


async def test_an_unheard_failure_text_is_no_attempt() -> None:
    talk, _ = await said_before("mixed", 2)
    assert talk.brain.state.active is not None
    attempts = dict(talk.brain.state.active.attempts)
    await talk.take(TestTurn(user="twelve", interrupt=Interrupt(after_words=0, text="wait")))
    assert talk.brain.state.active is not None
    assert talk.brain.state.active.attempts == attempts
    await talk.take(TestTurn(user="twelve"))
    assert talk.brain.state.active.attempts != attempts


async def test_a_question_that_is_being_asked_takes_a_backchannel_as_its_answer() -> None:
    talk = fresh("game")
    turn = talk.host.turn(ScriptedLlm(), MemoryReply())
    pending = talk.brain.begin(turn, TurnInput(text="let's play a game", via="typed"))
    await pending.run()
    assert talk.brain.accepts_as_answer("yeah", "en")
    assert talk.brain.accepts_as_answer("嗯", "zh")
    assert not talk.brain.accepts_as_answer("the weather", "en")
    pending.settle(TurnHeard(outcome="completed", messages=heard_until(turn.reply.messages, None)[0]))
    assert talk.brain.accepts_as_answer("yeah", "en")


def test_the_scripts_cover_every_kind_of_step() -> None:
    kinds = {s.type for name in SCRIPTS for f in config_of(name).user_flows().values() for s in f.steps.values()}
    assert kinds == {"start", "collect", "action", "set_slots", "call", "end"}


STORY = """
slots:
  a: {type: text}
flows:
  f:
    name: f
    steps:
      - {id: start, type: start, next: tell}
      - {id: tell, type: action, action: action_response, args: {mode: generate, prompt: "Tell a story"}, on_error: sorry, next: ask}
      - {id: sorry, type: action, action: action_response, args: {text: "No story."}, next: ask}
      - {id: ask, type: collect, slot_name: a, response: "And you?", next: end}
      - {id: end, type: end}
"""


async def cut_story(*, sounded: bool) -> Conversation:
    talk = RUNNER.conversation(sound(STORY).config, VirtualClock(0.0, NOW))
    story = {"task": "generate", "completion": "Once upon a time there was a bird. It sang. " * 20}
    turn = talk.host.turn(ScriptedLlm(script=[story], configured=True), MemoryReply())
    pending = talk.brain.begin(turn, TurnInput(text="f", via="typed"))
    task = asyncio.get_running_loop().create_task(pending.run())
    for _ in range(500):
        if any("Once" in m.text for m in turn.reply.messages):
            break
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    heard = heard_until(turn.reply.messages, 6 if sounded else 1)[0]
    pending.settle(TurnHeard(outcome="interrupted", messages=heard))
    return talk


async def test_a_generated_text_that_was_cut_while_it_sounded_is_not_told_again() -> None:
    talk = await cut_story(sounded=True)
    later = await talk.take(TestTurn(user="go ahead then"))
    assert later.replies == ["And you?"]


async def test_a_generated_text_that_never_sounded_is_told_on_the_next_turn() -> None:
    talk = await cut_story(sounded=False)
    again = ({"task": "generate", "completion": "Another story."},)
    later = await talk.take(
        TestTurn(user="what is the weather", llm=({"task": "persona", "completion": "Fine."}, *again))
    )
    assert later.llm.faults == [] or later.replies[-1] == "And you?"
    assert "No story." not in later.replies


async def test_trying_again_uses_the_same_key() -> None:
    stub: dict[str, Any] = {"raises": "broken"}
    talk = RUNNER.conversation(config_of("mixed"), VirtualClock(0.0, NOW), stubs={"reserve": stub})
    keys: list[str] = []
    run = talk.host.effects.run

    async def noted(**more: Any) -> Any:
        keys.append(more["key"])
        return await run(**more)

    talk.host.effects.run = noted  # type: ignore[method-assign]
    for text in ("book a table", "tomorrow", "four", "try it once more"):
        await talk.take(TestTurn(user=text))
    assert len(keys) == 2
    assert keys[0] == keys[1]
