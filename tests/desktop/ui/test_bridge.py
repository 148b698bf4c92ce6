from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from desktop.bridge import Bridge
from orchestrator.contracts.commands import SendText
from orchestrator.contracts.events import AvatarPainted
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.views import (
    CharacterTextView,
    ExpressionView,
    GenerationEndedView,
    SpeechStoppedView,
    StateView,
    UserTextView,
    View,
)

G1 = GenerationId("g-1")


def heard(bridge: Bridge) -> list[View]:
    found: list[View] = []
    for signal in (
        bridge.state_changed,
        bridge.user_text_changed,
        bridge.character_text_added,
        bridge.speech_stopped,
        bridge.generation_ended,
        bridge.expression_changed,
    ):
        signal.connect(found.append)
    return found


def test_views_from_another_thread_arrive_in_order_on_the_gui_thread(qtbot: QtBot, bridge: Bridge) -> None:
    found = heard(bridge)
    threads: set[bool] = set()
    bridge.state_changed.connect(lambda _: threads.add(QThread.isMainThread()))
    texts = [str(number) for number in range(300)]

    def produce() -> None:
        for text in texts:
            bridge.show(StateView(state=text))

    producer = threading.Thread(target=produce, name="test-core")
    producer.start()
    producer.join(5)
    assert not producer.is_alive(), "showing a view must not wait for the window"
    qtbot.waitUntil(lambda: len(found) == 300, timeout=5000)
    assert [view.state for view in found if isinstance(view, StateView)] == texts
    assert threads == {True}


def test_a_full_queue_refuses_and_counts(qapp: object, clock: object) -> None:
    bridge = Bridge(clock, capacity=2)  # type: ignore[arg-type]
    answers = [bridge.show(StateView(state=state)) for state in ("idle", "listening", "thinking")]
    assert answers == [True, True, False]
    assert bridge.counters().overflow == 1
    bridge.close()


def test_live_words_of_one_utterance_replace_each_other_while_they_wait(qtbot: QtBot, bridge: Bridge) -> None:
    found = heard(bridge)
    one, other = UtteranceId("u-1"), UtteranceId("u-2")
    for utterance, text, is_final in (
        (one, "a", False),
        (one, "a b", False),
        (one, "a b c", True),
        (other, "x", False),
    ):
        bridge.show(UserTextView(utterance_id=utterance, text=text, final=is_final))
    qtbot.waitUntil(lambda: len(found) == 2, timeout=2000)
    assert [view.text for view in found if isinstance(view, UserTextView)] == ["a b c", "x"]
    assert bridge.counters().coalesced == 2


@pytest.mark.parametrize("goes_stale_while_waiting", [False, True])
def test_what_a_stale_answer_adds_is_not_painted_but_its_end_is(
    qtbot: QtBot, bridge: Bridge, outside: object, goes_stale_while_waiting: bool
) -> None:
    found = heard(bridge)
    stale: set[GenerationId] = outside.stale  # type: ignore[attr-defined]
    if not goes_stale_while_waiting:
        stale.add(G1)
    intent = IntentId("i-1")
    bridge.show(StateView(state="speaking", generation_id=G1))
    bridge.show(CharacterTextView(generation_id=G1, intent_id=intent, text="old"))
    bridge.show(ExpressionView(generation_id=G1, expression="happy"))
    bridge.show(SpeechStoppedView(generation_id=G1, intent_id=intent, at_s=1.0, cut_at=2))
    bridge.show(GenerationEndedView(generation_id=G1, outcome="cancelled"))
    bridge.show(StateView(state="interrupted", generation_id=G1))
    stale.add(G1)
    qtbot.waitUntil(lambda: len(found) == 3, timeout=2000)
    assert [type(view) for view in found] == [SpeechStoppedView, GenerationEndedView, StateView]
    assert bridge.counters().stale == 3


def test_a_closed_bridge_refuses_views_and_calls(bridge: Bridge) -> None:
    bridge.close()
    assert not bridge.show(StateView(state="idle"))
    assert not bridge.call(lambda: None)


def test_a_function_from_another_thread_runs_on_the_gui_thread(qtbot: QtBot, bridge: Bridge) -> None:
    ran: list[bool] = []
    worker = threading.Thread(
        target=lambda: bridge.call(lambda: ran.append(QThread.isMainThread())), name="test-control"
    )
    worker.start()
    worker.join(5)
    qtbot.waitUntil(lambda: ran == [True], timeout=2000)


def test_a_command_nobody_takes_is_refused_and_said(qtbot: QtBot, qapp: object, clock: object) -> None:
    bridge = Bridge(clock)  # type: ignore[arg-type]
    command = SendText(text="hello")
    with qtbot.waitSignal(bridge.command_refused, timeout=1000) as refused:
        assert not bridge.submit(command)
    assert refused.args == [command]
    assert bridge.counters().refused_commands == 1


def test_doors_can_be_attached_later(qapp: object, clock: object, outside: object) -> None:
    bridge = Bridge(clock)  # type: ignore[arg-type]
    assert bridge.level_db() is None
    bridge.report_painted(AvatarPainted(state="idle", mouth="rest", expression="neutral"))
    bridge.attach(commands=outside, events=outside, level_db=lambda: -20.0)  # type: ignore[arg-type]
    assert bridge.submit(SendText(text="hello"))
    assert bridge.level_db() == -20.0
    bridge.report_painted(AvatarPainted(state="idle", mouth="rest", expression="neutral"), generation_id=G1)
    assert [event.generation_id for event in outside.events] == [G1]  # type: ignore[attr-defined]
