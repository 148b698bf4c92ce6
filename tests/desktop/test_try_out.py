"""Trying unsaved flows on a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from desktop import paths
from desktop.faults import Fault
from desktop.flow_folders import FlowFolders
from desktop.try_out import TestRun, TriedTurn, TryOut, TryOutListener
from orchestrator.dialogue import brain_loading
from orchestrator.rails.embedder import LocalEmbedder

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
    listener = TryOutListener(on_begun=results.put, on_turn=results.put, on_tests=results.put, on_fault=results.put)
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
    assert isinstance(found, Fault) and "persona.yml" in found.message and "\n" not in found.message


def test_stopping_twice_and_before_the_start_is_fine(talk: Talk) -> None:
    talk.session.stop()
    talk.session.stop()
    talk.session.say("hello")
    assert talk.results.empty()


# --- a fresh installation ----------------------------------------------------------------------------------


_FEW = 300
"""Far below the thousands of sentences that ship."""


class Model:
    """A model of meaning with vectors of its own for what ships; `gate` holds it back, `asked` is what it embedded."""

    is_exact = False
    name = LocalEmbedder.name

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.gate.set()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        self.entered.set()
        await asyncio.to_thread(self.gate.wait, 60)
        return [[1.0, *[(zlib.crc32(t.encode()) >> n) % 2 for n in range(383)]] for t in texts]


@dataclass
class Fresh(Talk):
    model: Model = field(default_factory=Model)
    progress: list[tuple[int, int]] = field(default_factory=list)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fresh]:
    """A try-out as the window makes it, on a machine that has no cache, with a counted model of meaning."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MYNAH_CACHE", str(tmp_path / "cache"))
    model = Model()
    monkeypatch.setattr(brain_loading, "default_embedder", lambda *_: model)
    results: queue.Queue[Any] = queue.Queue()
    progress: list[tuple[int, int]] = []
    listener = TryOutListener(
        on_begun=results.put, on_turn=results.put, on_tests=results.put, on_fault=results.put,
        on_progress=lambda done, total: progress.append((done, total)), on_cancelled=lambda: results.put("cancelled"),
    )  # fmt: skip
    folders = FlowFolders(shipped=paths.flow_config(), user=tmp_path / "flows")
    made = Fresh(TryOut(folders, listener), results, model, progress)
    yield made
    model.gate.set()
    made.session.stop()


def test_at_the_first_start_only_sentences_of_the_users_own_are_learnt(fresh: Fresh) -> None:
    fresh.session.begin({"parcel.yml": FLOW})
    fresh.next()
    assert fresh.say("where is my parcel").active_flow == "find_parcel"
    own = {"where is my parcel", "我的包裹在哪"}
    asked = set(fresh.model.asked)
    # Beside them stand what was said, a greeting to warm up, and what was written since the vectors were made.
    assert own <= asked and len(asked) < _FEW, sorted(asked)[:20]


def test_a_long_first_answer_tells_how_far_it_is_and_can_be_given_up(fresh: Fresh) -> None:
    many = [f"sentence number {n} of the parcel" for n in range(100)]
    flow = FLOW.replace("examples: [where is my parcel", f"examples: [where is my parcel, {', '.join(many)}")
    fresh.model.gate.clear()
    fresh.session.begin({"parcel.yml": flow})
    assert fresh.next() == ()
    fresh.session.say("where is my parcel")
    fresh.session.run_tests({})
    assert fresh.model.entered.wait(20)
    fresh.session.cancel()
    assert [fresh.next(), fresh.next()] == ["cancelled", "cancelled"]
    fresh.model.gate.set()
    turn = fresh.say("where is my parcel")
    assert (turn.active_flow, turn.number) == ("find_parcel", 1)
    assert fresh.progress == sorted(fresh.progress)
    done, total = fresh.progress[-1]
    assert done == total and len(many) < total < len(many) + _FEW


def test_the_time_limit_of_a_turn_does_not_count_the_learning(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.flows.testing.runner.TURN_LIMIT_S", 0.0)
    fresh.session.begin({"parcel.yml": FLOW})
    fresh.next()
    turn = fresh.say("where is my parcel")
    # A limit of nothing breaks the turn itself, which is told as what it is, and not as words of the character.
    assert turn.is_broken and turn.replies == ()
    assert "我的包裹在哪" in fresh.model.asked


def test_a_turn_given_up_leaves_the_conversation_as_it_was(fresh: Fresh) -> None:
    fresh.session.begin({"parcel.yml": FLOW})
    fresh.next()
    assert fresh.say("where is my parcel").step == "ask"
    fresh.model.entered.clear()
    fresh.model.gate.clear()
    fresh.session.say("what a lovely morning it is today in the garden")
    assert fresh.model.entered.wait(20)
    fresh.session.cancel()
    assert fresh.next() == "cancelled"
    fresh.model.gate.set()
    assert "It is 42." in fresh.say("forty two").replies
