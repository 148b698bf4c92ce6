"""Moments counted from now are exact to the second, and are spoken as people say them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from orchestrator.flows.model import Slot
from orchestrator.flows.slot_values import coerce
from orchestrator.flows.spoken import spoken
from orchestrator.tasks.actions.response import survives
from orchestrator.tasks.extraction.extract import extract
from orchestrator.tasks.state import State, Task, state_from_json

NOW = datetime(2026, 12, 1, 14, 36, 50, 700_000, tzinfo=timezone(timedelta(hours=1)))
WHEN = Slot(id="when", type="datetime")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("in 30 seconds", "2026-12-01T14:37:21"),
        ("in one minute", "2026-12-01T14:37:51"),
        ("in nine seconds", "2026-12-01T14:37"),
        ("in half an hour", "2026-12-01T15:06:51"),
        ("in an hour and a half", "2026-12-01T16:06:51"),
        ("at three", "2026-12-01T15:00"),
        ("tomorrow at nine", "2026-12-02T09:00"),
        ("in two days", "2026-12-03T14:36"),
        ("三十秒后", "2026-12-01T14:37:21"),
        ("一分钟后", "2026-12-01T14:37:51"),
        ("九秒钟以后", "2026-12-01T14:37"),
        ("半小时后", "2026-12-01T15:06:51"),
        ("下午三点", "2026-12-01T15:00"),
        ("明天上午九点", "2026-12-02T09:00"),
        ("两天后", "2026-12-03T14:36"),
    ],
)
def test_seconds_of_now_count_for_lengths_and_not_for_clock_times(text: str, value: str) -> None:
    found = extract(WHEN, text, now=NOW)
    assert found is not None and found.value == value


@pytest.mark.parametrize("micros", [0, 1, 400_000, 999_999])
@pytest.mark.parametrize("text", ["in 30 seconds", "三十秒后"])
def test_no_length_from_now_ends_early_or_more_than_a_second_late(text: str, micros: int) -> None:
    now = NOW.replace(microsecond=micros)
    found = extract(WHEN, text, now=now)
    assert found is not None
    length = datetime.fromisoformat(str(found.value)) - now.replace(tzinfo=None)
    assert timedelta(seconds=30) <= length < timedelta(seconds=31)
    assert spoken(found.value, language="en", now=now) == "in 30 seconds"


def test_a_time_of_day_has_no_seconds_and_is_rather_later_than_sooner() -> None:
    found = extract(Slot(id="when", type="time"), "in one minute", now=NOW)
    assert found is not None and found.value == "14:38"


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ("2026-12-01T14:37:20", "2026-12-01T14:37:20"),
        ("2026-12-01 14:37:20.5", "2026-12-01T14:37:20"),
        ("2026-12-01T14:37:00", "2026-12-01T14:37"),
        ("2026-12-01T14:37:20+01:00", "2026-12-01T14:37:20"),
        ("2026-12-01T14:37", "2026-12-01T14:37"),
    ],
)
def test_a_slot_keeps_the_seconds_it_is_given(given: str, held: str) -> None:
    result = coerce(WHEN, given)
    assert result.ok and result.value == held
    again = coerce(WHEN, held)
    assert again.value == held


@pytest.mark.parametrize(
    ("left_s", "english", "chinese"),
    [
        (1, "in 1 second", "1秒后"),
        (45, "in 45 seconds", "45秒后"),
        (60, "in 1 minute", "1分钟后"),
        (90, "in 1 minute and 30 seconds", "1分钟30秒后"),
        (592, "in 10 minutes", "10分钟后"),
        (1800, "in 30 minutes", "30分钟后"),
        (3601, "today at 3:37 pm", "今天下午3点37分"),
        (86_401, "tomorrow at 2:37 pm", "明天下午2点37分"),
        (34_000, "tomorrow at 12:04 am", "明天凌晨0点04分"),
        (-30, "today at 2:36 pm", "今天下午2点36分"),
    ],
)
def test_nobody_hears_the_seconds_of_a_clock(left_s: int, english: str, chinese: str) -> None:
    moment = NOW + timedelta(seconds=left_s)
    stored = (moment + timedelta(microseconds=999_999)).strftime("%Y-%m-%dT%H:%M:%S")
    for value in (moment, stored):
        assert spoken(value, language="en", now=NOW) == english
        assert spoken(value, language="zh", now=NOW) == chinese


def test_without_a_now_the_clock_is_rounded() -> None:
    assert spoken("2026-12-01T14:59:45") == "Tuesday, December 1, 2026 at 3 pm"


def test_a_rephrased_moment_with_seconds_must_still_be_that_moment() -> None:
    at = "2026-12-01T14:37:51"
    assert survives(f"I remind you at {at}.", "I'll remind you in one minute.", [at], NOW)
    assert not survives(f"I remind you at {at}.", "I'll remind you in two minutes.", [at], NOW)


def test_a_task_stored_before_flows_names_were_kept_is_loaded() -> None:
    state = State(active=Task(uid="g:1", root="table", flow="table", step="ask_seats"))
    data = state.to_json()
    del data["active"]["names"]
    loaded = state_from_json(data)
    assert loaded.active is not None and loaded.active.step == "ask_seats" and loaded.active.names == {}
    data["active"]["names"] = None
    odd = state_from_json(data)
    assert odd.active is None or odd.active.names == {}, "a broken one never breaks a later turn"
