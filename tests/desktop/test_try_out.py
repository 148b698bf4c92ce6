"""Trying unsaved flows on a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from desktop import paths
from desktop.flow_folders import FlowFolders
from desktop.try_out import TestRun, TriedTurn, TryOut, TryOutListener

FLOW = """\
slots:
  parcel_number: {type: integer}
flows:
  find_parcel:
    name: a parcel
    examples: [where is my parcel, 我的包裹在哪]
    steps:
      - {id: start, type: start, next: ask}
      - {id: ask, type: collect, slot_name: parcel_number, response: {text: "Which number?"}, next: look}
      - {id: look, type: action, action: action_open_url, args: {url: "https://example.org/"}, next: tell}
      - {id: tell, type: action, action: action_response, args: {text: "It is {{ slots.parcel_number }}."}, next: end}
      - {id: end, type: end}
"""


@dataclass
class Talk:
    """A try-out whose results are waited for in order."""

    session: TryOut
    results: queue.Queue[Any] = field(default_factory=queue.Queue)

    def next(self) -> Any:
        return self.results.get(timeout=60)

    def say(self, text: str) -> TriedTurn:
        self.session.say(text)
        found = self.next()
        assert isinstance(found, TriedTurn), found
        return found


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    results: queue.Queue[Any] = queue.Queue()
    folders = FlowFolders(shipped=paths.flow_config(), user=tmp_path / "flows")
    listener = TryOutListener(
        on_begun=results.put, on_turn=results.put, on_tests=results.put, on_fault=lambda text: results.put(text)
    )
    made = Talk(TryOut(folders, listener, embedding="exact"), results)
    yield made
    made.session.stop()
    assert "try-out" not in [t.name for t in threading.enumerate()]


def test_a_flow_that_was_never_saved_runs_with_its_trace(talk: Talk, tmp_path: Path) -> None:
    talk.session.begin({"parcel.yml": FLOW})
    assert talk.next() == ()
    first = talk.say("where is my parcel")
    assert first.replies[-1] == "Which number?"
    assert (first.active_flow, first.step) == ("find_parcel", "ask")
    assert ("command", "start_flow flow=find_parcel") in [(line.kind, line.text) for line in first.trace]
    second = talk.say("forty two")
    assert "It is 42." in second.replies
    kinds = {line.kind for line in second.trace}
    assert {"command", "step", "action"} <= kinds
    assert second.active_flow is None
    assert not (tmp_path / "flows").exists()


def test_a_change_of_the_text_goes_on_with_the_conversation(talk: Talk) -> None:
    talk.session.begin({"parcel.yml": FLOW})
    talk.next()
    talk.say("我的包裹在哪")
    talk.session.reload({"parcel.yml": FLOW.replace("It is", "Parcel")})
    assert talk.next() == ()
    assert "Parcel 42." in talk.say("42").replies


def test_faulty_parts_are_left_out_and_named(talk: Talk) -> None:
    talk.session.begin({"parcel.yml": FLOW.replace("next: tell", "next: tel")})
    (problem,) = [p for p in talk.next() if p.code == "unknown_target"]
    assert (problem.file, problem.suggestion) == ("parcel.yml", "tell")
    assert talk.say("where is my parcel").active_flow is None


def test_without_a_model_the_persona_is_only_announced(talk: Talk) -> None:
    turn = talk.say("what do you think of the moon tonight")
    assert turn.needs_model or turn.replies
    assert all("language model is not available" not in reply for reply in turn.replies)


def test_tests_run_on_unsaved_texts(talk: Talk) -> None:
    tests = """\
tests:
  - name: good
    turns: [{user: where is my parcel, expect: {active_flow: find_parcel, step: ask}}]
  - name: bad
    turns: [{user: where is my parcel, expect: {step: tell}}]
"""
    talk.session.run_tests({"parcel.yml": FLOW, "tests/parcel.yml": tests})
    run = talk.next()
    assert isinstance(run, TestRun)
    assert [(t.name, t.passed, t.line) for t in run.tests] == [("good", True, 2), ("bad", False, 4)]
    assert "tell" in run.tests[1].failures[0]
    assert run.coverage["find_parcel"][1] == 5


def test_a_broken_persona_is_one_line(talk: Talk, tmp_path: Path) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "persona.yml").write_text("nam: x\n", encoding="utf-8")
    talk.session.begin({})
    found = talk.next()
    assert isinstance(found, str) and "persona.yml" in found and "\n" not in found


def test_stopping_twice_and_before_the_start_is_fine(talk: Talk) -> None:
    talk.session.stop()
    talk.session.stop()
    talk.session.say("hello")
    assert talk.results.empty()
