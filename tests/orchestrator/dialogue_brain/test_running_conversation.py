"""Changed flow files and long pauses in the middle of a conversation: real core, turn loop, player and store."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rigs.conversation_rig import ConversationRig

from desktop.paths import flow_config
from orchestrator.contracts.commands import Reload
from orchestrator.contracts.errors import InputError
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.dialogue.brain_loading import load_folders
from orchestrator.speech.words import word_spans
from orchestrator.store import records

FLOW = """
slots:
  guest: {type: text, label: {en: guest, zh: 客人}}
  seats: {type: integer, label: {en: seats, zh: 座位}}
flows:
  table:
    name: {en: the table, zh: 订桌}
    examples: [book a table, 我要订桌]
    steps:
      - {id: start, type: start, next: ask_guest}
      - {id: ask_guest, type: collect, slot_name: guest, response: {text: {en: "For whom?", zh: "谁来吃饭？"}}, next: ask_seats}
      - {id: ask_seats, type: collect, slot_name: seats, response: {text: {en: "How many seats?", zh: "几个座位？"}}, next: say}
      - {id: say, type: action, action: action_response, args: {text: {en: "{{ slots.seats }} seats for {{ slots.guest }}.", zh: "{{ slots.guest }}，{{ slots.seats }}个座位。"}}, next: end}
      - {id: end, type: end}
"""
CASES = {
    "en": ("book a table", "Anna", "four", "4 seats for Anna."),
    "zh": ("我要订桌", "小李", "四个", "小李，4个座位。"),
}
SEATS = {"en": "How many seats?", "zh": "几个座位？"}


class FileRig(ConversationRig):
    """The rig with a brain that is read from a folder of the user over the shipped one."""

    folder: Path

    def make_brain(self) -> Any:
        return self._read()

    def remake_brain(self) -> Any:
        self.brain = self._read()
        return self.brain

    def _read(self) -> FlowBrain:
        loaded = load_folders([flow_config(), self.folder])
        if loaded.errors:
            raise InputError("flows_invalid", str(loaded.errors[0]), part="flows")
        return FlowBrain(loaded.config, actions=loaded.actions, clock=self.clock)

    def write(self, text: str) -> None:
        """Change the user's file and reload, as saving in the editor does."""
        (self.folder / "mine.yml").write_text(text, encoding="utf-8")
        self.do(lambda: self.core.handle(Reload()))

    def sleep(self, hours: float) -> None:
        """Let the computer sleep: the clock goes on, the sound does not."""
        self.clock.advance(hours * 3600.0)
        self._begin_s += hours * 3600.0

    def told(self, text: str) -> str:
        """Type something and return everything that sounded for it."""
        before = len(self.complete_words)
        self.type(text)
        self.finish_everything()
        return " ".join(word_spans(self.intents[i].text)[n].text for i, n in self.complete_words[before:])


def plain(text: str) -> str:
    return "".join(c for c in text if c.isalnum()).casefold()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[FileRig]:
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "mine.yml").write_text(FLOW, encoding="utf-8")
    made: FileRig = type("Rig", (FileRig,), {"folder": folder})(tmp_path / "mynah.db")
    yield made
    if not made._is_dead:
        made.finish_everything()
        made.close()
    made.check()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_task_goes_on_at_its_step_with_the_new_words(rig: FileRig, language: str) -> None:
    start, guest, seats, done = CASES[language]
    rig.told(start)
    rig.told(guest)
    rig.write(FLOW.replace("How many seats?", "Number of seats?").replace("几个座位？", "要多少座位？"))
    assert rig.brain.state.active.step == "ask_seats"
    asked = rig.told({"en": "purple", "zh": "紫色"}[language])
    assert plain({"en": "Number of seats", "zh": "要多少座位"}[language]) in plain(asked)
    assert plain(rig.told(seats)) == plain(done)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_task_whose_step_is_gone_goes_to_the_nearest_one_and_keeps_what_was_said(rig: FileRig, language: str) -> None:
    start, guest, seats, done = CASES[language]
    rig.told(start)
    rig.told(guest)
    rig.write(FLOW.replace("id: ask_seats", "id: ask_number").replace("next: ask_seats", "next: ask_number"))
    assert rig.brain.state.active.step in rig.brain.config.flows["table"].steps
    said = rig.told({"en": "where were we", "zh": "刚才说到哪了"}[language])
    assert plain(SEATS[language]) in plain(said)
    assert plain(rig.told(seats)) == plain(done)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_task_whose_flow_is_gone_ends_with_a_sentence(rig: FileRig, language: str) -> None:
    start, guest, *_ = CASES[language]
    rig.told(start)
    rig.told(guest)
    rig.write("flows: {}\n")
    assert rig.brain.state.active is None
    said = rig.told({"en": "four", "zh": "四个"}[language])
    assert plain({"en": "changed meanwhile", "zh": "改"}[language]) in plain(said)
    assert rig.told(start) is not None
    assert rig.brain.state.active is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_is_said_first_and_by_name_that_a_task_is_gone_whatever_comes_then(rig: FileRig, language: str) -> None:
    start, guest, *_ = CASES[language]
    rig.told(start)
    rig.told(guest)
    rig.write("flows: {}\n")
    said = plain(rig.told({"en": "what time is it", "zh": "现在几点"}[language]))
    gone = plain({"en": "The table has been changed meanwhile", "zh": "订桌已经改动过了"}[language])
    assert said.startswith(gone) and len(said) > len(gone) + 20, "and then comes what was asked"
    assert not plain(rig.told({"en": "what time is it", "zh": "现在几点"}[language])).startswith(gone)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_file_with_errors_leaves_the_running_version(rig: FileRig, language: str) -> None:
    start, guest, seats, done = CASES[language]
    rig.told(start)
    rig.told(guest)
    running = rig.brain
    rig.write(FLOW.replace("next: say", "next: nowhere"))
    assert rig.brain is running
    assert rig.core._brain is running
    assert plain(rig.told(seats)) == plain(done)


def test_a_reload_while_an_answer_sounds_waits_for_its_end(rig: FileRig) -> None:
    rig.told("book a table")
    rig.type("Anna")
    rig.until(lambda: rig.core.turns.active is not None and rig.player.audible() is not None, 5.0)
    rig.write(FLOW.replace("How many seats?", "Number of seats?"))
    rig.finish_everything()
    assert plain("Number of seats") in plain(rig.told("purple"))


@pytest.mark.parametrize(("hours", "is_kept"), [(23, True), (25, False)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_paused_task_is_kept_a_day(rig: FileRig, language: str, hours: int, is_kept: bool) -> None:
    start, guest, *_ = CASES[language]
    rig.told(start)
    rig.told(guest)
    rig.told({"en": "set a timer", "zh": "开始计时"}[language])
    assert [t.root for t in rig.brain.state.paused] == ["table"]
    rig.told({"en": "cancel", "zh": "取消"}[language])
    rig.told({"en": "set a timer", "zh": "开始计时"}[language])
    paused = rig.brain.state.paused
    assert [t.root for t in paused] == ["table"]
    rig.sleep(hours)
    said = rig.told({"en": "five minutes", "zh": "五分钟"}[language])
    offered = plain({"en": "go on with the table", "zh": "要继续订桌"}[language]) in plain(said)
    assert offered is is_kept
    assert [t.root for t in rig.brain.state.paused] == (["table"] if is_kept else [])


def test_a_paused_task_survives_a_restart_and_expires_by_the_wall_clock(rig: FileRig) -> None:
    rig.told("book a table")
    rig.told("set a timer")
    rig.kill()
    rig.open()
    assert [t.root for t in rig.brain.state.paused] == ["table"]
    rig.sleep(25)
    said = rig.told("five minutes")
    assert "table" not in said
    assert rig.brain.state.paused == []


@pytest.mark.parametrize(
    ("language", "misheard", "correction", "done"),
    [
        ("en", "Hammer", "No, I said Hannah", "4 seats for Hannah."),
        ("zh", "小栗", "不对，我说的是小李", "小李，4个座位。"),
    ],
)
def test_a_misheard_answer_to_a_task_is_put_right(
    rig: FileRig, language: str, misheard: str, correction: str, done: str
) -> None:
    start, _, seats, _ = CASES[language]
    rig.told(start)
    rig.told(misheard)
    assert plain(SEATS[language]) in plain(rig.told(correction)), "the question after it is asked again"
    assert plain(rig.told(seats)) == plain(done)


@pytest.mark.parametrize(
    ("language", "misheard", "correction"),
    [("en", "book a table", "No, I said cook a table"), ("zh", "我要订桌", "不对，我说的是我要擦桌子")],
)
def test_a_task_begun_by_misheard_words_is_gone(rig: FileRig, language: str, misheard: str, correction: str) -> None:
    rig.told(misheard)
    assert rig.brain.state.active is not None
    rig.told(correction)
    assert rig.brain.state.active is None


@pytest.mark.parametrize("length_s", [30, 60])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_reminder_counted_from_now_is_said_at_its_second(rig: FileRig, language: str, length_s: int) -> None:
    rig.sleep(50.7 / 3600.0)
    asked_s = rig.clock.monotonic_s()
    words = {
        ("en", 30): "remind me to drink water in 30 seconds",
        ("en", 60): "remind me in one minute to drink water",
        ("zh", 30): "三十秒后提醒我喝水",
        ("zh", 60): "一分钟后提醒我喝水",
    }[language, length_s]
    said = plain(rig.told(words))
    promised = {("en", 30): "in 30 seconds", ("en", 60): "in 1 minute", ("zh", 30): "30秒后", ("zh", 60): "1分钟后"}
    assert plain(promised[language, length_s]) in said
    due = [p for p in rig.payloads("notify:state") if p["state"] == "due"]
    assert not due
    assert rig.until(lambda: any(p["state"] == "due" for p in rig.payloads("notify:state")), 90.0)
    late_s = rig.clock.monotonic_s() - asked_s - length_s
    assert 0.0 <= late_s < 1.1, "never early; late by the rest of the second in which it was said, no more"


REMIND = {
    "en": ("remind me to buy milk tomorrow at nine", "no, at ten", "wait, at ten", "yes", 4),
    "zh": ("明天早上九点提醒我买牛奶", "不对，是十点", "等一下，改成十点", "好的", 5),
}
CHANGE = {"en": "Shall I change it", "zh": "要改过来吗"}


def waiting(rig: FileRig) -> list[tuple[int, int]]:
    """Return day and hour of the reminders that wait."""
    found = rig.database.transact_now(records.waiting_reminders)
    return [(r.due.day, r.due.hour) for r in found]


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_reminder_that_was_just_set_is_moved_by_voice(rig: FileRig, language: str, words: int, over: bool) -> None:
    start, *corrections, yes, heard = REMIND[language]
    rig.type(start)
    if over:
        assert rig.until(lambda: len(rig.complete_words) >= heard), "its words are being said"
    else:
        rig.finish_everything()
    assert waiting(rig) == [(2, 9)]
    before = len(rig.complete_words)
    rig.say(corrections[words - 1], cut=over)
    rig.finish_everything()
    said = plain(" ".join(word_spans(rig.intents[i].text)[n].text for i, n in rig.complete_words[before:]))
    assert plain(CHANGE[language]) in said
    assert waiting(rig) == [(2, 9)], "nothing is done without a yes"
    rig.told(yes)
    assert waiting(rig) == [(2, 10)], "one reminder, at the new time"


@pytest.mark.parametrize("language", ["en"])
def test_words_before_the_first_sound_join_and_leave_one_reminder(rig: FileRig, language: str) -> None:
    start, correction, *_ = REMIND[language]
    rig.type(start)
    assert rig.until(lambda: bool(waiting(rig)), 5.0)
    rig.type(correction)
    rig.finish_everything()
    assert waiting(rig) == [(2, 10)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_finished_task_can_be_corrected_after_a_reload_and_a_crash(rig: FileRig, language: str) -> None:
    start, correction, _, yes, _ = REMIND[language]
    rig.told(start)
    rig.write(FLOW + "\n# changed\n")
    rig.kill()
    rig.open()
    assert plain(CHANGE[language]) in plain(rig.told(correction))
    rig.told(yes)
    assert waiting(rig) == [(2, 10)]


LONG = {
    "en": ("what is the news", "go on", "say that again", "One two three four five six seven eight nine ten eleven."),
    "zh": ("有什么消息", "继续", "再说一遍", "从前有座山，山里有座庙，庙里有个老和尚在讲故事。"),
}
NEWS = """
flows:
  news:
    name: {en: the news, zh: 消息}
    examples: [what is the news, 有什么消息]
    steps:
      - {id: start, type: start, next: say}
      - {id: say, type: action, action: action_response, args: {text: {en: "EN", zh: "ZH"}}, next: end}
      - {id: end, type: end}
  system_task_started:
    steps:
      - {id: start, type: start, next: end}
      - {id: end, type: end}
""".replace("EN", LONG["en"][3]).replace("ZH", LONG["zh"][3])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_say_that_again_after_a_cut_go_on_says_the_whole_answer_as_it_was(rig: FileRig, language: str) -> None:
    ask, go_on, again, whole = LONG[language]
    rig.write(NEWS)
    for words in (ask, go_on):
        before = len(rig.complete_words)
        rig.type(words)
        assert rig.until(lambda before=before: len(rig.complete_words) >= before + 3, 20.0)
        rig.stop_button()
        rig.finish_everything()
    assert plain(rig.told(again)) == plain(whole)
    assert rig.stored()[-1]["text"] == whole
