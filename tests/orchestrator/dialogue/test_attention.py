"""Whom the character answers: rules on texts, and the running conversation on a virtual clock, in both languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig, checked_rig

from orchestrator.contracts.commands import SetAsleep
from orchestrator.dialogue.attention import AttentionSettings, is_addressed, is_only_called, sends_to_sleep

NAMES = ("Mynah", "米娜")
WINDOW_S = 20.0


@pytest.mark.parametrize(
    ("text", "is_meant", "is_call"),
    [
        ("Mynah, what time is it?", True, False),
        ("What time is it, Mynah?", True, False),
        ("Hey Mynah", True, True),
        ("Myna.", True, True),
        ("米娜，几点了？", True, False),
        ("你好米娜", True, True),
        ("现在几点了，米娜？", True, False),
        ("I told her that Mynah is a bird that talks.", False, False),
        ("Dinner is ready, come down.", False, False),
        ("饭好了，下来吃吧。", False, False),
        ("我妹妹叫米娜丽莎的朋友来了。", False, False),
        ("", False, False),
    ],
)
def test_who_is_addressed(text: str, is_meant: bool, is_call: bool) -> None:
    assert is_addressed(text, NAMES) is is_meant
    assert is_only_called(text, NAMES) is is_call


@pytest.mark.parametrize(
    ("text", "sleeps"),
    [
        ("Go to sleep.", True),
        ("Mynah, go to sleep now, please.", True),
        ("睡吧。", True),
        ("米娜，去睡吧", True),
        ("I want to go to sleep early today.", False),
        ("我昨天睡觉睡得很晚。", False),
        ("Did you go to sleep?", False),
    ],
)
def test_what_sends_it_to_sleep(text: str, sleeps: bool) -> None:
    assert sends_to_sleep(text, NAMES) is sleeps


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


def needs_name(rig: ConversationRig) -> None:
    settings = AttentionSettings(window_s=WINDOW_S, names=NAMES)
    rig.do(lambda: rig.core.conversation.attention.configure(settings))


def hear(rig: ConversationRig, text: str) -> bool:
    """Say something in silence; returns whether it was answered."""
    before = len(rig.inputs)
    rig.plans.append((("say", rig.sentence(2)),))
    rig.begin_to_speak()
    rig.seconds(0.5)
    rig.provisional(text)
    rig.seconds(0.2)
    rig.finish_utterance(text)
    rig.until(rig.is_quiet, 10.0)
    rig.plans.clear()
    return len(rig.inputs) > before


@pytest.mark.parametrize(
    ("call", "other", "follow"),
    [
        ("Mynah, what is a whale?", "Dinner is ready, come down.", "And where does it live?"),
        ("米娜，鲸鱼是什么？", "饭好了，下来吃吧。", "它住在哪里？"),
    ],
    ids=["en", "zh"],
)
def test_only_who_calls_or_has_just_talked_is_answered(
    rig: ConversationRig, call: str, other: str, follow: str
) -> None:
    needs_name(rig)
    assert not hear(rig, other)
    assert [p["because"] for p in rig.payloads("input:ignored")] == ["not_addressed"]
    assert not rig.stored() and not rig.of("speculation:state")
    assert hear(rig, call)
    rig.seconds(WINDOW_S / 2)
    assert hear(rig, follow)
    rig.seconds(WINDOW_S + 1.0)
    assert not hear(rig, other)
    assert [p["state"] for p in rig.payloads("attention:state")][:3] == ["waiting", "awake", "waiting"]


@pytest.mark.parametrize(
    ("sleep", "other", "wake"),
    [("Go to sleep.", "What is a whale?", "Mynah, what is a whale?"), ("睡吧。", "鲸鱼是什么？", "米娜，鲸鱼是什么？")],
    ids=["en", "zh"],
)
def test_sleep_and_wake_by_voice(rig: ConversationRig, sleep: str, other: str, wake: str) -> None:
    rig.do(lambda: rig.core.conversation.attention.configure(AttentionSettings(names=NAMES)))
    assert hear(rig, other)
    hear(rig, sleep)
    assert rig.views.state == "asleep" and rig.core.conversation.attention.is_asleep
    assert rig.answers()[-1]["text"] in ("Good night. Call me when you need me.", "晚安，需要我的时候叫我。")
    assert not hear(rig, other)
    assert rig.views.state == "asleep"
    assert hear(rig, wake)
    assert rig.views.state == "idle"
    assert [p["state"] for p in rig.payloads("attention:state")] == ["asleep", "always"]


@pytest.mark.parametrize(("call", "said"), [("Mynah?", "Yes?"), ("米娜", "我在。")])
def test_the_bare_name_is_answered(rig: ConversationRig, call: str, said: str) -> None:
    needs_name(rig)
    hear(rig, call)
    assert rig.answers()[-1]["text"] == said
    assert hear(rig, "What is a whale?")


def test_sleep_by_command_and_waking_by_typing(rig: ConversationRig) -> None:
    rig.do(lambda: rig.core.handle(SetAsleep(on=True)))
    assert rig.views.state == "asleep"
    rig.plans.append((("say", rig.sentence()),))
    rig.type("hello")
    assert rig.until(rig.is_quiet)
    assert rig.views.state == "idle" and len(rig.answers()) == 1


def test_everyone_is_answered_by_default(rig: ConversationRig) -> None:
    assert hear(rig, "Dinner is ready, come down.")
    rig.seconds(600.0)
    assert hear(rig, "饭好了，下来吃吧。")
    assert not rig.of("input:ignored")


def test_where_a_name_is_needed_the_state_says_so(rig: ConversationRig) -> None:
    needs_name(rig)
    assert rig.views.state == "waiting"
    assert hear(rig, "Mynah, what is a whale?")
    assert rig.views.state == "idle"
    rig.seconds(WINDOW_S + 1.0)
    assert rig.views.state == "waiting"
    rig.do(lambda: rig.core.handle(SetAsleep(on=True)))
    assert rig.views.state == "asleep"
