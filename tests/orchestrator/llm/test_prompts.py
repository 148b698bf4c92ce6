"""The prompt of a free answer: order, languages, what was heard, and its bounds."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.contracts.dialogue import HistoryEntry, LlmTask, TurnInput
from orchestrator.contracts.events import ObjectRef
from orchestrator.llm.persona import load_persona_layers
from orchestrator.llm.prompts import (
    CAPABLE_BUDGET,
    SMALL_BUDGET,
    PromptBudget,
    persona_messages,
    persona_request,
    warm_up_messages,
    without_stop_marks,
)
from orchestrator.llm.tokens import estimate_messages

PERSONA = load_persona_layers([Path(__file__).resolve().parents[3] / "flow_config" / "persona.yml"])


def turns(count: int, text: str = "words number {n}") -> list[HistoryEntry]:
    return [
        HistoryEntry(role="user" if n % 2 == 0 else "assistant", text=text.format(n=n)) for n in range(count)
    ]


def build(text: str, **fields):
    return persona_messages(PERSONA, **({"history": (), "user": TurnInput(text=text)} | fields))


@pytest.mark.parametrize("budget", [SMALL_BUDGET, CAPABLE_BUDGET])
def test_the_users_language_decides(budget):
    english = build("How are you?", budget=budget)
    chinese = build("你好吗？", budget=budget)
    assert english[0].role == "system"
    assert english[0].content.startswith("You are Mynah.")
    assert "Answer in English." in english[0].content
    assert "你" not in english[0].content
    assert "请用中文回答" in chinese[0].content
    assert "小八" in chinese[0].content
    assert "You are" not in chinese[0].content
    assert (english[-1].role, english[-1].content) == ("user", "How are you?")


def test_history_is_as_heard_and_failures_are_left_out():
    history = [
        HistoryEntry(role="user", text="Tell me about whales."),
        HistoryEntry(role="assistant", text="Whales are", status="interrupted", unheard=" the largest animals."),
        HistoryEntry(role="user", text="And dogs?"),
        HistoryEntry(role="assistant", text="broken", status="failed"),
    ]
    prompt = build("Go on.", history=history)
    text = "\n".join(message.content for message in prompt)
    assert "Whales are" in text
    assert "largest" not in text
    assert "broken" not in text
    assert [message.role for message in prompt] == ["system", "user", "assistant", "user"]
    assert prompt[-1].content == "And dogs?\nGo on."


@pytest.mark.parametrize(
    ("text", "heard", "language"),
    [
        ("Whales are the...", "Whales are the", "en"),
        ("Well — you see, whales…", "Well, you see, whales", "en"),
        ("鲸鱼……是最大的——", "鲸鱼，是最大的", "zh"),
    ],
)
@pytest.mark.parametrize("budget", [SMALL_BUDGET, CAPABLE_BUDGET])
def test_an_interrupted_answer_is_told_without_stop_marks(text, heard, language, budget):
    history = [
        HistoryEntry(role="user", text="whales" if language == "en" else "鲸鱼"),
        HistoryEntry(role="assistant", text=text, status="interrupted", unheard=" rest"),
    ]
    user = TurnInput(text="wait" if language == "en" else "等等", interrupt_hint="interrupted")
    prompt = build("", history=history, user=user, budget=budget)
    note = prompt[-2]
    assert note.role == "system"
    assert heard in note.content
    assert ("interrupted" if language == "en" else "打断") in note.content
    for message in prompt:
        assert not any(mark in message.content for mark in ("...", "…", "—", "rest"))


def test_an_older_interruption_needs_no_note():
    history = [
        HistoryEntry(role="user", text="a"),
        HistoryEntry(role="assistant", text="Whales are", status="interrupted"),
        HistoryEntry(role="user", text="b"),
        HistoryEntry(role="assistant", text="Dogs bark."),
    ]
    assert "interrupted" not in "".join(message.content for message in build("c", history=history, budget=SMALL_BUDGET))


def test_notes_come_last_so_that_the_cached_part_stays():
    now = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
    first = build("Hi", history=turns(4), world={"screen": {"app": "Editor"}}, memory=["Likes tea"], now=now)
    later = build("Hi again", history=turns(6), world={"screen": {"app": "Game"}}, now=now.replace(hour=10))
    assert later[: len(first) - 2] == first[:-2]
    note = first[-2].content
    assert "Tuesday, 2026-12-01 09:30" in note
    assert "Editor" in note
    assert "Likes tea" in note
    assert "not instructions" in note


def test_a_small_model_gets_no_world():
    now = datetime(2026, 12, 1, tzinfo=UTC)
    text = "".join(m.content for m in build("Hi", world={"a": "Editor"}, now=now, budget=SMALL_BUDGET))
    assert "Editor" not in text
    assert "2026" not in text


def test_objects_objections_silence_and_events():
    thing = ObjectRef(type="file", id="1", title="报告 final.pdf")
    assert "报告 final.pdf" in build("", user=TurnInput(text="Read this", object=thing))[-2].content
    objection = build("", user=TurnInput(text="不是这个", interrupt_hint="objection"))
    assert "不是他想要的" in objection[-2].content
    silence = build("", user=TurnInput(kind="silence"), history=[HistoryEntry(role="user", text="再见")])
    assert "没说话" in silence[-2].content
    event = build("", user=TurnInput(kind="event", event_type="doorbell", event_payload={"who": "Ann"}))
    assert "doorbell" in event[-2].content
    assert event[-1].role == "user"
    assert event[-1].content


def test_history_leaves_in_steps():
    budget = PromptBudget(history_messages=8, history_step=4)
    starts = []
    for count in range(2, 30, 2):
        prompt = build("now", history=turns(count), budget=budget)
        shown = [message.content for message in prompt if message.content.startswith("words number")]
        assert len(shown) <= 8
        assert shown[-1] == f"words number {count - 1}"
        starts.append(int(shown[0].rsplit(" ", 1)[1]))
    assert sorted(set(starts)) == [0, 4, 8, 12, 16, 20]
    assert starts == sorted(starts)


@given(
    st.integers(0, 60), st.sampled_from(["word " * 40, "很长的话" * 60, "x"]), st.text(max_size=4000), st.booleans()
)
def test_the_prompt_always_fits_and_ends_with_the_user(count, text, words, is_small):
    budget = SMALL_BUDGET if is_small else PromptBudget(context_tokens=2500)
    world = {"page": "text " * 3000}
    prompt = build("", history=turns(count, text), user=TurnInput(text=words), world=world, budget=budget)
    assert estimate_messages(prompt) + budget.answer_tokens <= budget.context_tokens
    assert prompt[-1].role == "user"
    assert prompt[-1].content
    roles = [message.role for message in prompt]
    assert all(a != b for a, b in itertools.pairwise(roles))


@given(st.text(alphabet="ab .…—–,。，、你好-", max_size=60))
def test_no_stop_mark_survives(text):
    clean = without_stop_marks(text)
    assert not any(mark in clean for mark in ("..", "…", "—", "–", "。。"))


def test_the_call_is_bounded():
    call = persona_request(PERSONA, history=(), user=TurnInput(text="Hi"), budget=SMALL_BUDGET)
    assert call.task is LlmTask.PERSONA
    assert call.max_tokens == SMALL_BUDGET.answer_tokens
    assert "\nUser:" in call.stop


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_warm_up_is_the_beginning_of_every_prompt(language):
    warm = warm_up_messages(PERSONA, language)
    real = build("Hello there" if language == "en" else "天气怎么样", history=turns(2), budget=SMALL_BUDGET)
    assert tuple(warm[:-1]) == real[: len(warm) - 1]
