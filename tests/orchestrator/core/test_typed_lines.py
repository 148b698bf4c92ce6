"""Lines typed while an answer is being made: each is a request of its own, unless it goes on with the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig, checked_rig

from orchestrator.contracts.lanes import GenerationState
from orchestrator.contracts.views import UserTextView
from orchestrator.dialogue.waiting_lines import MAX_WAITING


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


def send(rig: ConversationRig, *lines: str, wait_s: float = 0.0) -> None:
    """Send a line, wait until its answer is being made, then send the others."""
    rig.type(lines[0])
    assert rig.until(lambda: bool(rig.open_calls()))
    for line in lines[1:]:
        if wait_s:
            rig.seconds(wait_s)
        rig.type(line)


def answer_all(rig: ConversationRig, count: int) -> list[str]:
    """Let the model answer `count` times; returns what it said, in order."""
    said = []
    for _ in range(count):
        assert rig.until(lambda: bool(rig.open_calls()))
        said.append(rig.sentence().strip())
        rig.tokens(said[-1])
        rig.end_model()
        assert rig.until(lambda: not rig.open_calls())
    assert rig.until(rig.is_quiet)
    return said


def kept(rig: ConversationRig, role: str) -> list[str]:
    return [entry["text"] for entry in rig.stored() if entry["role"] == role]


def shown(rig: ConversationRig) -> list[str]:
    return [view.text for view in rig.views.shown if isinstance(view, UserTextView) and view.final]


OWN: Sequence[tuple[str, ...]] = (
    ("My name is Ann", "Tell me a joke"),
    ("tell me about Rome", "what is a whale"),
    ("Turn it on", "I live in Rome"),
    ("My name is Ann.", "I live in Rome.", "Remind me to sleep."),
    ("我叫小安", "给我讲个笑话"),
    ("罗马怎么样", "鲸鱼是什么"),
    ("我叫小安。", "我住在罗马。", "提醒我睡觉。"),
)


@pytest.mark.parametrize("wait_s", [0.0, 4.0])
@pytest.mark.parametrize("lines", OWN)
def test_lines_are_answered_one_after_the_other(rig: ConversationRig, lines: tuple[str, ...], wait_s: float) -> None:
    send(rig, *lines, wait_s=wait_s)
    assert shown(rig) == list(lines), "what was sent is on the screen before it is answered"
    said = answer_all(rig, len(lines))
    assert [one.text for one in rig.inputs] == list(lines)
    assert kept(rig, "user") == list(lines) and kept(rig, "assistant") == said
    assert shown(rig) == list(lines)
    assert {p["status"] for p in rig.payloads("history:commit")} == {"completed"}


def test_three_lines_at_the_same_moment(rig: ConversationRig) -> None:
    lines = ["My name is Ann.", "我住在罗马。", "What is a whale?"]
    for line in lines:
        rig.type(line)
    said = answer_all(rig, 3)
    assert kept(rig, "user") == lines and kept(rig, "assistant") == said


@pytest.mark.parametrize("wait_s", [0.0, 4.0])
@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("tell me about Rome", "and Paris", "tell me about Rome and Paris"),
        ("wake me at seven", "no, at eight", "wake me at seven no, at eight"),
        ("write to Ann about the", "old garden", "write to Ann about the old garden"),
        ("a table for two,", "by the window", "a table for two, by the window"),
        ("给我讲讲罗马", "还有巴黎", "给我讲讲罗马还有巴黎"),
        ("七点叫我", "不对，八点", "七点叫我不对，八点"),
        ("我想知道关于", "罗马的历史", "我想知道关于罗马的历史"),
    ],
)
def test_a_line_that_goes_on_is_joined(
    rig: ConversationRig, first: str, second: str, whole: str, wait_s: float
) -> None:
    send(rig, first, second, wait_s=wait_s)
    said = answer_all(rig, 1)
    assert rig.inputs[-1].text == whole
    assert kept(rig, "user") == [whole] and kept(rig, "assistant") == said


@pytest.mark.parametrize(
    ("lines", "whole"),
    [(("I like tea.", "Tell me a joke", "about cats"), "Tell me a joke about cats"),
     (("我喜欢茶。", "讲个笑话", "关于猫的"), "讲个笑话关于猫的")],
)  # fmt: skip
def test_a_line_goes_on_with_the_one_that_waits(rig: ConversationRig, lines: tuple[str, ...], whole: str) -> None:
    send(rig, *lines)
    answer_all(rig, 2)
    assert kept(rig, "user") == [lines[0], whole]


@pytest.mark.parametrize(("first", "second"), [("remind me to sleep", "never mind"), ("提醒我睡觉", "算了")])
def test_taking_a_request_back_ends_its_answer(rig: ConversationRig, first: str, second: str) -> None:
    send(rig, first)
    active = rig.core.turns.active
    rig.type(second)
    rig.advance(2)
    assert active is not None and active.state is GenerationState.CANCELLED
    answer_all(rig, 1)
    assert rig.inputs[-1].text == second


@pytest.mark.parametrize("stop", ["stop", "停一下", None])
def test_a_stop_answers_none_of_what_waits(rig: ConversationRig, stop: str | None) -> None:
    send(rig, "My name is Ann", "Tell me a joke", "I live in Rome")
    if stop is None:
        rig.stop_button()
    else:
        rig.type(stop)
    rig.seconds(3.0)
    assert rig.is_quiet() and [one.text for one in rig.inputs] == ["My name is Ann"]
    assert rig.bus.counters["stopped:input:user"] == 2
    send(rig, "What is a whale?")
    answer_all(rig, 1)


def test_a_line_over_the_voice_cuts_it_and_comes_after_those_that_wait(rig: ConversationRig) -> None:
    send(rig, "My name is Ann", "I live in Rome")
    rig.tokens(rig.sentence(12))
    rig.end_model()
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    active = rig.core.turns.active
    rig.type("What is a whale?")
    assert active is not None and active.state is GenerationState.CANCELLED
    answer_all(rig, 2)
    assert [one.text for one in rig.inputs] == ["My name is Ann", "I live in Rome", "What is a whale?"]


def test_spoken_words_go_before_what_waits_and_lose_none_of_it(rig: ConversationRig) -> None:
    send(rig, "My name is Ann", "I live in Rome")
    rig.tokens(rig.sentence(12))
    rig.end_model()
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    rig.say("what is a whale")
    answer_all(rig, 2)
    assert [one.text for one in rig.inputs] == ["My name is Ann", "what is a whale", "I live in Rome"]


def test_a_flood_of_lines_is_held_off_and_counted(rig: ConversationRig) -> None:
    send(rig, *(f"Tell me of place {number}." for number in range(MAX_WAITING + 11)))
    assert rig.until(lambda: rig.core.bus.counters["overflow:input:user"] == 10)
    rig.stop_button()
    assert rig.until(rig.is_quiet)
    assert rig.core.bus.counters["stopped:input:user"] == MAX_WAITING
    rig.type("Tell me of Rome.")
    assert len(answer_all(rig, 1)) == 1
