"""The checker is checked: it accepts a good file and names each way a file can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rigs.conversation_rig import ConversationRig

from orchestrator.bus.event_checker import check_file, check_records, main

Record = dict[str, Any]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """A conversation with a resume, a cancel, a late tool result and a notice."""
    from orchestrator.contracts.commands import Notify

    rig = ConversationRig(tmp_path_factory.mktemp("good") / "g.db")
    rig.ask("tell me", rig.sentence(), rig.sentence())
    rig.until(lambda: len(rig.complete_words) >= 2)
    rig.say("mm-hm")
    rig.until(lambda: len(rig.complete_words) >= 4)
    rig.plans.append((("say", rig.sentence(3)), ("tool", "k")))
    rig.say("what about trains")
    rig.until(lambda: bool(rig.tools))
    rig.type("no")
    rig.end_tool()
    rig.do(lambda: rig.core.handle(Notify(id="n", text="the kettle boils.")))
    rig.finish_everything()
    rig.close()
    rig.dispose()
    return json.loads(json.dumps(rig.records))  # type: ignore[no-any-return]


def first(records: list[Record], kind: str, **payload: Any) -> int:
    return next(
        i
        for i, r in enumerate(records)
        if r["type"] == kind and all(r["payload"].get(k) == v for k, v in payload.items())
    )


def test_a_good_file_is_accepted(good: list[Record]) -> None:
    assert check_records(good) == []


def _append(records: list[Record], index: int, **changes: Any) -> None:
    record = json.loads(json.dumps(records[index]))
    record.update(changes)
    records.insert(len(records) - 1, record)


def _renumber(records: list[Record]) -> None:
    last = 0.0
    for seq, record in enumerate(records, start=1):
        record["seq"] = seq
        record["t"] = last = max(last, record["t"])


SPOIL: dict[str, tuple[Callable[[list[Record]], None], str]] = {}


def spoil(words: str) -> Callable[[Callable[[list[Record]], None]], Callable[[list[Record]], None]]:
    def add(change: Callable[[list[Record]], None]) -> Callable[[list[Record]], None]:
        SPOIL[change.__name__] = (change, words)
        return change

    return add


def _stale(records: list[Record]) -> str:
    return str(records[first(records, "generation:state", to="CANCELLED")]["generationId"])


@spoil("does not end with app:exit")
def no_exit(records: list[Record]) -> None:
    records.pop()


@spoil("has 0 final states")
def an_answer_without_an_end(records: list[Record]) -> None:
    del records[first(records, "generation:state", to="CANCELLED")]


@spoil("can't be followed by")
def an_end_twice(records: list[Record]) -> None:
    _append(records, first(records, "generation:state", to="CANCELLED"), payload={
        "from": "CANCELLED", "to": "COMPLETED", "reason": None, "speculative": False, "snapshotId": None})  # fmt: skip


@spoil("after it was over")
def a_late_word(records: list[Record]) -> None:
    index = first(records, "output:word")
    payload = {**records[index]["payload"], "at_s": 1e6, "end_s": 1e6 + 1}
    _append(records, index, generationId=_stale(records), payload=payload, t=1e6)


@spoil("after it was over")
def a_late_model_call(records: list[Record]) -> None:
    _append(records, first(records, "llm:call"), generationId=_stale(records))


@spoil("of a speculative generation")
def what_leaves_a_speculative_answer(records: list[Record]) -> None:
    for record in records:
        if record["type"] == "generation:state":
            record["payload"]["speculative"] = True


@spoil("a used tool result")
def a_late_result_used(records: list[Record]) -> None:
    records[first(records, "tool:result")]["payload"]["disposition"] = "used"


@spoil("did not end exactly once")
def a_result_is_missing(records: list[Record]) -> None:
    del records[first(records, "tool:result")]


@spoil("did not end exactly once")
def a_model_call_has_no_end(records: list[Record]) -> None:
    del records[first(records, "llm:end")]


@spoil("after played")
def an_intent_ends_twice(records: list[Record]) -> None:
    _append(records, first(records, "intent:state", state="played"))


@spoil("is not what the player says was heard")
def history_says_more_than_was_heard(records: list[Record]) -> None:
    index = next(
        i for i, r in enumerate(records) if r["type"] == "history:commit" and r["payload"]["role"] == "assistant"
    )
    records[index]["payload"]["text"] += " and more"


@spoil("a second assistant message")
def an_answer_is_stored_twice(records: list[Record]) -> None:
    _append(
        records,
        next(i for i, r in enumerate(records) if r["type"] == "history:commit" and r["payload"]["role"] == "assistant"),
    )


@spoil("times final")
def an_utterance_without_a_transcript(records: list[Record]) -> None:
    del records[first(records, "input:transcript", final=True)]


@spoil("was due 1 times and ended 0 times")
def a_notice_is_lost(records: list[Record]) -> None:
    del records[first(records, "notify:state", state="spoken")]


@pytest.mark.parametrize("name", SPOIL)
def test_a_wrong_file_is_refused(good: list[Record], name: str) -> None:
    change, words = SPOIL[name]
    records = json.loads(json.dumps(good))
    change(records)
    _renumber(records)
    problems = check_records(records)
    assert any(words in problem for problem in problems), problems


def test_a_gap_and_a_step_back_in_time(good: list[Record]) -> None:
    records = json.loads(json.dumps(good))
    records[5]["seq"] += 7
    records[9]["t"] -= 50.0
    problems = check_records(records)
    assert any("follows" in problem for problem in problems)
    assert any("time goes back" in problem for problem in problems)


def test_the_command(tmp_path: Path, good: list[Record], capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in good), encoding="utf-8")
    assert main([str(file)]) == 0
    file.write_text("{}\nnot json\n", encoding="utf-8")
    assert main([str(file)]) == 1
    assert check_file(tmp_path / "nowhere")
    assert main([]) == 2
    assert "ok" in capsys.readouterr().out
