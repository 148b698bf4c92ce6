"""A few rounds of every fuzz target, and that a fault is found, kept and told."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from pathlib import Path

import pytest
from fuzz.__main__ import attempt, fuzz, main
from fuzz.targets import Target, targets

from audio.tts.normalise import normalise
from orchestrator.bus.event_checker import check_records
from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.extract import extract

TARGETS = {target.name: target for target in targets()}
# Those that read whole files or converse take some 50 ms a round.
SLOW = 12
QUICK = 150


@pytest.mark.parametrize("name", TARGETS)
def test_odd_input_raises_nothing(name: str) -> None:
    target = TARGETS[name]
    is_slow = name.endswith((".yml", ".yaml")) or name in ("conversation", "avatar")
    rounds = SLOW if is_slow else QUICK
    result = fuzz(target, 7, lambda done: done < rounds)
    assert not result.faults, [trace for _, trace in result.faults.values()]
    assert result.rounds >= rounds
    assert result.words.total() == result.rounds


@pytest.mark.parametrize("name", TARGETS)
def test_what_it_begins_with_is_sound(name: str) -> None:
    odd = ("unreadable", "refused", "faulty", "problems", "pack_broken", "card_broken", "some fail")
    for seed in TARGETS[name].seeds[:20]:
        words = {TARGETS[name].run(seed)}
        assert not words & set(odd), words


def _explode(data: bytes) -> str:
    if b"{{" in data:
        raise KeyError("planted")
    return "fine"


def test_a_fault_is_found_with_its_input_and_place_once() -> None:
    planted = Target(name="planted", seeds=(b"some text",), run=_explode)
    result = fuzz(planted, 1, lambda done: done < 3_000)
    assert len(result.faults) == 1
    data, trace = next(iter(result.faults.values()))
    assert b"{{" in data
    assert "planted" in trace
    assert result.words["fine"] > 0


def test_the_same_seed_makes_the_same_inputs() -> None:
    seen: list[list[bytes]] = [[], [], []]
    for run, seed in zip(seen, (1, 1, 2), strict=True):
        target = Target(name="x", seeds=(b"a: 1\nb: [2]",), run=lambda data, run=run: str(run.append(data)))  # type: ignore[misc]
        fuzz(target, seed, lambda done: done < 60)
    assert seen[0] == seen[1] != seen[2]


def test_what_does_not_come_back_is_a_fault() -> None:
    def hang(_: bytes) -> str:
        while True:
            time.monotonic()

    fault = attempt(
        Target(name="x", seeds=(b"",), run=hang), b"", fuzz(TARGETS["control"], 1, lambda _: False).words, 0.05
    )
    assert fault is not None
    assert "TooLong" in fault[0]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["--only", "nothing"]) == 2
    assert "there are" in capsys.readouterr().err
    planted = Target(name="control", seeds=(b"{{",), run=_explode)
    monkeypatch.setattr("fuzz.__main__.targets", lambda: (planted,))
    assert main(["--seconds", "0.05", "--only", "control", "--keep", str(tmp_path / "found")]) == 1
    told = capsys.readouterr().out
    kept = tmp_path / "found" / "control~0"
    assert f"FAULT {kept}" in told
    assert kept.read_bytes() == b"{{"
    assert main(["--again", str(kept)]) == 1
    assert "KeyError: 'planted'" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["--again", str(kept)]) == 0
    assert logging.root.manager.disable == logging.NOTSET
    assert main(["--again", str(tmp_path / "other")]) == 2


# --- what the fuzzer has found ---------------------------------------------------------------------------------

NOW = datetime(2026, 12, 1, 9, 0)


@pytest.mark.parametrize(
    "text",
    ["20-1", "twenty -one", "一百" + "9" * 300, "9" * 300 + " point 5000", "half a " + "9" * 300 + "000", "² hundred",
     "5" + "亿" * 60, "9" * 300 + "分之" + "9" * 300, "1块" + "9" * 300, "in " + "9" * 300 + " hours",
     "\ue000\ue100一百"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["integer", "number", "duration", "datetime"])
def test_numbers_that_nobody_says_are_no_values(text: str, kind: str) -> None:
    found = extract(Slot(id="x", type=kind), text, now=NOW)
    assert found is None or len(str(found.value)) < 25


def test_a_code_is_not_cut_to_a_number() -> None:
    assert extract(Slot(id="x", type="integer"), "12345678901234567890", now=NOW) is None
    found = extract(Slot(id="x", type="integer"), "123456789012345", now=NOW)
    assert found is not None
    assert found.value == 123456789012345


def test_grouped_digits_that_begin_with_nought_are_read_in_chinese() -> None:
    assert "".join(word.spoken for word in normalise("编号0,000号", "zh"))


def test_the_checker_tells_of_fields_of_the_wrong_kind() -> None:
    records = [
        {"t": 10**400, "seq": 1, "type": "log:open", "payload": {}},
        {"seq": 2, "type": "generation:state", "generationId": "g", "payload": {"from": None, "to": "CANCELLED"}},
        {"t": 1, "seq": 3, "type": "output:first_sound", "generationId": "g", "payload": {}},
    ]
    problems = check_records(records)
    assert sum("wrong kind" in problem for problem in problems) == 3
