"""A misheard line is put right by click: the real panel and subtitles over the real core, on the core's virtual clock."""

# ruff: noqa: E501 - the inline flow is read line by line

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot
from rigs.conversation_rig import ConversationRig

from desktop.event_view import EventInbox
from desktop.history_service import HistoryService
from desktop.paths import flow_config
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings
from desktop.settings_service import SettingsService
from desktop.ui.panels import Panels
from orchestrator.contracts.commands import Command
from orchestrator.contracts.views import MisheardView, UserTextView, View
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.dialogue.brain_loading import load_folders

TABLE = """
slots:
  guest: {type: text, label: guest}
  seats: {type: integer, label: seats}
flows:
  table:
    name: a table
    examples: [book a table]
    steps:
      - {id: start, type: start, next: ask_guest}
      - {id: ask_guest, type: collect, slot_name: guest, response: {text: "For whom?"}, next: ask_seats}
      - {id: ask_seats, type: collect, slot_name: seats, response: {text: "How many seats?"}, next: say}
      - {id: say, type: action, action: action_response, args: {text: "{{ slots.seats }} seats for {{ slots.guest }}."}, next: end}
      - {id: end, type: end}
"""


class FlowRig(ConversationRig):
    """The rig with the brain of the program and one more flow."""

    folder: Path

    def make_brain(self) -> Any:
        loaded = load_folders([flow_config(), self.folder])
        assert not loaded.errors
        return FlowBrain(loaded.config, actions=loaded.actions, clock=self.clock)


class Talk:
    """A conversation and the window that shows it."""

    def __init__(self, qtbot: QtBot, stage: Any, folder: Path, rig: ConversationRig) -> None:
        self.qtbot, self.stage, self.rig = qtbot, stage, rig
        self.service = HistoryService(folder / "mynah.db", self._submit)
        stage.window.subtitles.corrected.connect(self.service.correct_text)
        stage.bridge.misheard.connect(lambda view: self.service.learn(view.heard, view.said))
        self.settings = SettingsService(folder, Settings(), stage.clock)
        panels = Panels(stage.window, stage.bridge, self.settings, EventInbox(), PromptRecord(), self.service)
        self.panel = panels.history
        self.panel.show()
        self.follow()

    def follow(self) -> None:
        """Show in the window what the core shows."""
        shown = self.rig.views.show

        def show(view: View) -> bool:
            if isinstance(view, (UserTextView, MisheardView)):
                self.stage.bridge.show(view)
            return shown(view)

        self.rig.views.show = show  # type: ignore[method-assign]

    def _submit(self, command: Command) -> bool:
        self.rig.do(lambda: self.rig.core.handle(command))
        return True

    def answer(self, text: str) -> None:
        """Say something and hear the answer out; what is said to it is the default plan's."""
        self.rig.type(text)
        self.hear_out()

    def hear_out(self) -> None:
        if self.rig.open_calls():
            self.rig.tokens("Fine.")
        self.rig.finish_everything()

    def correct(self, heard: str, said: str, *, row: int = -1) -> None:
        """Click a line that reads `heard` (the newest by default) and write over it."""
        self.panel.refresh()
        self.qtbot.waitUntil(lambda: any(line.text == heard for line in self.panel.model.lines))
        rows = [at for at, line in enumerate(self.panel.model.lines) if line.text == heard]
        index = self.panel.model.index(rows[row])
        self.panel.list.scrollTo(index)
        at: QPoint = self.panel.list.visualRect(index).center()
        QTest.mouseClick(self.panel.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
        assert self.panel.correct.isEnabled()
        QTest.mouseClick(self.panel.correct, Qt.MouseButton.LeftButton)
        self.panel.corrected.selectAll()
        QTest.keyClicks(self.panel.corrected, said)
        QTest.keyClick(self.panel.corrected, Qt.Key.Key_Return)
        assert not self.panel.corrected.isVisible()

    def lines(self) -> list[tuple[str, str, bool]]:
        """Return what the panel shows: role, text, struck out."""
        stored = [(row["role"], row["text"], row["replaced"]) for row in self.rig.stored()]
        self.panel.refresh()
        self.qtbot.waitUntil(
            lambda: [(one.role, one.text, one.is_replaced) for one in self.panel.model.lines] == stored
        )
        return stored

    def remembered(self) -> list[str]:
        """Return what the next answer is made from."""
        return [entry.text for entry in self.rig.core.history.entries]

    def close(self) -> None:
        self.service.close()
        self.settings.close()
        self.rig.close()
        # The rig does not reckon with answers that are taken back: what is remembered is looked at by the tests.
        self.rig.problems = [one for one in self.rig.problems if "has other answers than the store" not in one]
        self.rig.check()
        self.rig.dispose()


@pytest.fixture
def talk(qtbot: QtBot, stage: Any, tmp_path: Path) -> Iterator[Talk]:
    made = Talk(qtbot, stage, tmp_path, ConversationRig(tmp_path / "mynah.db"))
    yield made
    made.close()


def test_the_last_line(talk: Talk) -> None:
    talk.answer("weather in foo chow")
    talk.correct("weather in foo chow", "weather in Fuzhou")
    talk.hear_out()
    assert talk.lines() == [
        ("user", "weather in foo chow", True),
        ("assistant", "Fine.", True),
        ("user", "weather in Fuzhou", False),
        ("assistant", "Fine.", False),
    ]
    assert talk.remembered() == ["weather in Fuzhou", "Fine."]
    talk.qtbot.waitUntil(lambda: talk.service.learned() == ("Fuzhou",))


def test_a_line_that_was_put_right_can_not_be_put_right_again(talk: Talk) -> None:
    talk.answer("one")
    talk.correct("one", "won")
    talk.hear_out()
    talk.lines()
    index = talk.panel.model.index(0)
    at = talk.panel.list.visualRect(index).center()
    QTest.mouseClick(talk.panel.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert not talk.panel.correct.isEnabled()
    QTest.mouseDClick(talk.panel.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert not talk.panel.corrected.isVisible()


def test_an_older_line_among_equal_ones(talk: Talk) -> None:
    for text in ("tea please", "no sugar", "tea please"):
        talk.answer(text)
    talk.correct("tea please", "Thai tea please", row=0)
    talk.hear_out()
    told = [(text, is_replaced) for role, text, is_replaced in talk.lines() if role == "user"]
    assert told == [("tea please", True), ("no sugar", False), ("tea please", False), ("Thai tea please", False)]


def join_two(talk: Talk) -> None:
    """Speak, pause before the first sound of an answer, and go on."""
    talk.rig.say("what is the", cut=False)
    talk.rig.seconds(0.1)
    talk.rig.say("whether tomorrow", cut=False)
    talk.rig.until(lambda: talk.rig.core.turns.active is not None, 2.0)
    talk.hear_out()
    assert [text for role, text, _ in talk.lines() if role == "user"] == ["what is the whether tomorrow"]


def test_a_line_that_was_joined_from_two_utterances(talk: Talk) -> None:
    join_two(talk)
    talk.correct("what is the whether tomorrow", "what is the weather tomorrow")
    talk.hear_out()
    assert talk.lines() == [
        ("user", "what is the whether tomorrow", True),
        ("assistant", "Fine.", True),
        ("user", "what is the weather tomorrow", False),
        ("assistant", "Fine.", False),
    ]
    assert talk.remembered() == ["what is the weather tomorrow", "Fine."]


@pytest.mark.parametrize(
    ("heard", "said", "whole"),
    [
        ("whether tomorrow", "weather tomorrow", "what is the weather tomorrow"),
        ("what is the", "how is the", "how is the whether tomorrow"),
    ],
)
def test_one_half_of_a_joined_line_in_the_subtitles(talk: Talk, heard: str, said: str, whole: str) -> None:
    join_two(talk)
    subtitles = talk.stage.window.subtitles
    talk.qtbot.waitUntil(lambda: heard in [block.text for block in subtitles.model.blocks])
    placed = next(item for item in subtitles._place()[0] if item.block.text == heard)
    subtitles._open_editor(placed)
    QTest.keyClicks(subtitles.editor, said)
    QTest.keyClick(subtitles.editor, Qt.Key.Key_Return)
    talk.hear_out()
    assert talk.remembered() == [whole, "Fine."]
    assert ("user", "what is the whether tomorrow", True) in talk.lines()


def test_a_correction_that_is_joined_with_more_still_takes_back(talk: Talk) -> None:
    talk.answer("tea with milk")
    talk.correct("tea with milk", "tea with mint")
    talk.rig.type("and sugar")
    talk.rig.until(lambda: talk.rig.core.turns.active is not None, 2.0)
    talk.hear_out()
    assert talk.remembered() == ["tea with mint and sugar", "Fine."]
    assert ("user", "tea with milk", True) in talk.lines()


def test_while_the_answer_is_being_spoken(talk: Talk) -> None:
    talk.rig.plans.append((("say", "Milk is good for you and for me and for everybody else."),))
    talk.rig.type("tea with milk")
    assert talk.rig.until(lambda: talk.rig.player.audible() is not None)
    talk.rig.seconds(0.6)
    talk.correct("tea with milk", "tea with mint")
    assert talk.rig.until(lambda: bool(talk.rig.open_calls()), 5.0)
    talk.hear_out()
    told = talk.lines()
    assert [line for line in told if not line[2]] == [("user", "tea with mint", False), ("assistant", "Fine.", False)]
    assert talk.remembered() == ["tea with mint", "Fine."]
    assert told[1][0] == "assistant" and told[1][2] and told[1][1].startswith("Milk"), (
        "what was heard of it is struck out"
    )


def test_after_the_program_was_started_again(talk: Talk) -> None:
    talk.answer("tea with milk")
    talk.rig.close()
    talk.rig.open()
    talk.follow()
    talk.answer("hello")
    talk.correct("tea with milk", "tea with mint")
    talk.hear_out()
    assert [(text, is_replaced) for role, text, is_replaced in talk.lines() if role == "user"] == [
        ("tea with milk", True),
        ("hello", False),
        ("tea with mint", False),
    ]
    assert talk.remembered() == ["hello", "Fine.", "tea with mint", "Fine."]


def test_while_a_task_is_at_a_question(qtbot: QtBot, stage: Any, tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "mine.yml").write_text(TABLE, encoding="utf-8")
    rig = type("Rig", (FlowRig,), {"folder": flows})(tmp_path / "mynah.db")
    talk = Talk(qtbot, stage, tmp_path, rig)
    talk.answer("book a table")
    talk.answer("Hanna")
    talk.correct("Hanna", "Anna")
    talk.rig.finish_everything()
    task = rig.brain.state.active
    assert task.slots["guest"].value == "Anna" and task.place == "table/ask_seats", "it asks the same again"
    talk.answer("four")
    assert [line for line in talk.lines() if line[2]] == [
        ("user", "Hanna", True),
        ("assistant", "How many seats?", True),
    ]
    assert "4 seats for Anna." in talk.remembered()
    talk.close()


def test_the_button_says_when_nobody_takes_it(talk: Talk) -> None:
    talk.answer("one")
    talk.service._submit = lambda command: False
    talk.panel.refresh()
    talk.qtbot.waitUntil(lambda: len(talk.panel.model.lines) == 2)
    at = talk.panel.list.visualRect(talk.panel.model.index(0)).center()
    QTest.mouseClick(talk.panel.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseClick(talk.panel.correct, Qt.MouseButton.LeftButton)
    resend = talk.panel.findChild(QPushButton, "historyResendButton")
    assert resend is not None
    QTest.mouseClick(resend, Qt.MouseButton.LeftButton)
    assert talk.panel.corrected.isVisible() and not talk.service.learned()
