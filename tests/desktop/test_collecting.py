"""Garbage is found, and what stays is looked at only once."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Iterator

import pytest

from desktop.collecting import Collecting

_MIDDLE_TICKS = 40
_OLD_TICKS = 1200


class Cycle:
    def __init__(self) -> None:
        self.itself = self


class Runs:
    """The collections that ran, by generation."""

    def __init__(self) -> None:
        self.generations: list[int] = []

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.generations.append(info["generation"])


@pytest.fixture
def runs() -> Iterator[Runs]:
    seen = Runs()
    gc.callbacks.append(seen)
    yield seen
    gc.callbacks.remove(seen)


@pytest.fixture
def collecting() -> Iterator[Collecting]:
    was_enabled = gc.isenabled()
    gc.collect()
    made = Collecting()
    yield made
    made.stop()
    gc.unfreeze()
    gc.collect()
    if not was_enabled:
        gc.disable()


def test_nothing_is_collected_but_by_a_tick(collecting: Collecting, runs: Runs) -> None:
    kept = [[place] for place in range(200_000)]
    assert runs.generations == []
    collecting.tick()
    assert runs.generations == [0]
    assert len(kept) == 200_000


def test_a_cycle_ends_within_ten_seconds(collecting: Collecting) -> None:
    ended = weakref.ref(Cycle())
    assert ended() is not None
    for _ in range(_MIDDLE_TICKS):
        collecting.tick()
    assert ended() is None


def test_a_cycle_that_lived_on_ends_with_the_old_ones(collecting: Collecting) -> None:
    cycle: Cycle | None = Cycle()
    ended = weakref.ref(cycle)
    for _ in range(2 * _MIDDLE_TICKS):
        collecting.tick()
    cycle = None
    for _ in range(_OLD_TICKS):
        collecting.tick()
    assert ended() is None


def test_what_an_import_brings_is_never_looked_at(
    collecting: Collecting, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [[place] for place in range(200_000)]
    monkeypatch.setitem(sys.modules, "test_collecting_new", types.ModuleType("test_collecting_new"))
    collecting.tick()
    assert runs.generations == []
    assert gc.get_freeze_count() >= len(kept)
    collecting.tick()
    assert gc.get_count()[0] < 2000


def test_while_it_settles_nothing_is_looked_at(collecting: Collecting, runs: Runs) -> None:
    collecting.settle()
    kept = []
    for _ in range(_MIDDLE_TICKS + 1):
        kept.append([[place] for place in range(5000)])
        collecting.tick()
    assert runs.generations == []
    assert gc.get_freeze_count() >= len(kept) * 5000
    for _ in range(_MIDDLE_TICKS):
        collecting.tick()
    ended = weakref.ref(Cycle())
    for _ in range(_MIDDLE_TICKS):
        collecting.tick()
    assert ended() is None


def test_what_outlives_a_full_collection_is_not_looked_at_again(collecting: Collecting) -> None:
    kept = [[place] for place in range(10_000)]
    for _ in range(_OLD_TICKS):
        collecting.tick()
    assert gc.get_freeze_count() >= len(kept)
    assert len(gc.get_objects(generation=2)) < 1000


def test_python_collects_by_itself_again_after_stop(collecting: Collecting) -> None:
    assert not gc.isenabled()
    collecting.stop()
    assert gc.isenabled()
