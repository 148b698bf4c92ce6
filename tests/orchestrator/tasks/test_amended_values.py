"""What a correction does not say anew stays: the day, the time of day, the unit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.amend import amended

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
WHEN = Slot(id="when", type="datetime")
LENGTH = Slot(id="length", type="duration")


@pytest.mark.parametrize(
    ("text", "old", "value"),
    [
        ("at ten", "2026-12-02T09:00", "2026-12-02T10:00"),
        ("at ten", "2026-12-01T21:00", "2026-12-01T22:00"),
        ("at one", "2026-12-02T11:00", "2026-12-02T13:00"),
        ("at eight", "2026-12-01T10:00", "2026-12-01T20:00"),
        ("half past ten", "2026-12-02T09:00", "2026-12-02T10:30"),
        ("tomorrow", "2026-12-01T21:00", "2026-12-02T21:00"),
        ("Friday", "2026-12-01T09:10:30", "2026-12-04T09:10"),
        ("twenty minutes", "2026-12-01T09:10:30", "2026-12-01T09:20"),
        ("十点", "2026-12-02T08:00", "2026-12-02T10:00"),
        ("下午三点", "2026-12-02T08:00", "2026-12-02T15:00"),
        ("后天", "2026-12-02T08:00", "2026-12-03T08:00"),
        ("二十分钟", "2026-12-01T09:10:30", "2026-12-01T09:20"),
    ],
)
def test_a_part_of_a_moment_changes_that_part(text: str, old: str, value: str) -> None:
    assert amended(WHEN, text, old, now=NOW) == value


@pytest.mark.parametrize(
    "text",
    [
        "Friday at ten am",
        "in twenty minutes",
        "thanks",
        "not today",
        "now",
        "a reminder",
        "周五上午十点",
        "现在",
        "谢谢",
    ],
)
def test_a_whole_moment_and_what_is_none_are_left_alone(text: str) -> None:
    assert amended(WHEN, text, "2026-12-01T21:00", now=NOW) is None
    assert amended(WHEN, text, None, now=NOW) is None


@pytest.mark.parametrize(
    ("text", "old", "value"),
    [
        ("ten", 300, 600),
        ("10", 7200, 36_000),
        ("十", 300, 600),
        ("二十", 10, 20),
        ("ten minutes", 7200, None),
        ("at ten", 300, None),
    ],
)
def test_a_number_alone_is_in_the_unit_of_before(text: str, old: int, value: int | None) -> None:
    assert amended(LENGTH, text, old, now=NOW) == value
