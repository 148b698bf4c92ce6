"""The events file takes whatever is recorded, and goes on after whatever happens to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bus.event_log import EventLog
from orchestrator.clock import VirtualClock
from orchestrator.contracts.events import ControlAck, Event, InputUser, OutputStateChanged

FULL = Path("/dev/full")


def said(text: Any) -> Event:
    return Event(payload=InputUser(text=text, via="typed"), source="test")


def tree(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


class Unprintable:
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize("is_threaded", [True, False])
def test_nothing_recorded_ends_the_file(tmp_path: Path, is_threaded: bool) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(VirtualClock(), path, is_threaded=is_threaded)
    told: list[str] = []
    log.on_failure = lambda kind, _: told.append(kind)
    log.record(said("\ud800 hi"))
    log.record(Event(payload=OutputStateChanged(state="speaking", at_s=float("nan")), source="test"))
    for odd in (tree(100_000), Unprintable(), {"a": {Unprintable(): 1}}):
        log.record(Event(payload=ControlAck(cmd="dump", ok=True, result={"odd": odd}), source="test"))
    log.record(said("the last"))
    log.close()

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    records = [json.loads(line, parse_constant=refuse) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [record["seq"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert records[0]["payload"]["text"] == "\ud800 hi"
    assert records[1]["payload"] == {"state": "speaking", "at_s": None}
    for record in records[2:5]:
        assert record["payload"] == {"cmd": "dump", "ok": True, "error": None, "result": None}, "the rest is kept"
    assert records[-1]["payload"]["text"] == "the last"
    assert log.failures == {"field": 3} and told == ["field"]


def test_a_tap_that_raises_is_passed_over(tmp_path: Path) -> None:
    log = EventLog(VirtualClock(), tmp_path / "events.jsonl", is_threaded=False)
    seen: list[int] = []

    def bad(record: dict[str, Any]) -> None:
        raise KeyError(record["seq"])

    log.add_tap(bad)
    log.add_tap(lambda record: seen.append(record["seq"]))
    log.record(said("a"))
    log.record(said("b"))
    log.close()
    assert seen == [1, 2] and log.failures == {"tap": 2}


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full here")
def test_a_full_disk_is_reported_once_and_the_log_goes_on() -> None:
    log = EventLog(VirtualClock(), FULL)
    told: list[tuple[str, str]] = []
    log.on_failure = lambda kind, error: told.append((kind, type(error).__name__))
    seen: list[int] = []
    log.add_tap(lambda record: seen.append(record["seq"]))
    for _ in range(50):
        log.record(said("x" * 10_000))
    log.close()
    assert seen == list(range(1, 51))
    assert told == [("disk", "OSError")]


def test_who_hears_of_a_failure_may_record_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(VirtualClock(), path, is_threaded=False)
    log.on_failure = lambda kind, _: log.record(said(f"failed: {kind}"))
    log.record(said(Unprintable()))
    log.close()
    assert [json.loads(line)["payload"]["text"] for line in path.read_text().splitlines()] == [None, "failed: field"]
