from __future__ import annotations

from typing import Any

import pytest

from desktop.ui.avatar.lipsync import LipSync
from orchestrator.contracts.ids import GenerationId, IntentId

SHAPES = {"aa": (1.0, 1.0), "oh": (0.7, 0.8), "ee": (0.4, 1.1), "mbp": (0.0, 1.0)}
G1, I1, I2 = GenerationId("g-1"), IntentId("i-1"), IntentId("i-2")


@pytest.fixture
def lipsync() -> LipSync:
    return LipSync(SHAPES)


def test_the_mouth_is_closed_in_silence_and_open_inside_a_vowel(lipsync: LipSync, spoken: Any) -> None:
    assert lipsync.mouth(9.0).opening == 0.0
    lipsync.start(spoken.started(10.0))
    inside = {9.99: 0.0, 10.02: 0.0, 10.15: 0.7, 10.6: 1.0, 11.25: 0.0, 11.65: 0.4, 11.9: 0.0, 12.0: 0.0, 60.0: 0.0}
    assert {at_s: lipsync.mouth(at_s).opening for at_s in inside} == pytest.approx(inside)


def test_every_change_is_drawn_within_40_ms(lipsync: LipSync, spoken: Any) -> None:
    lipsync.start(spoken.started(10.0))
    for before, after in zip(spoken.visemes, spoken.visemes[1:], strict=False):
        change_s = 10.0 + after.start_s
        goal = SHAPES.get(after.shape, (0.0, 1.0))[0]
        start = SHAPES.get(before.shape, (0.0, 1.0))[0]
        assert lipsync.mouth(change_s - 0.04).opening == pytest.approx(start)
        assert lipsync.mouth(change_s + 0.04).opening == pytest.approx(goal)


def test_a_stop_closes_the_mouth_at_its_moment(lipsync: LipSync, spoken: Any) -> None:
    lipsync.start(spoken.started(10.0))
    lipsync.stop(I1, 10.5)
    assert lipsync.mouth(10.49).opening > 0.0
    assert lipsync.mouth(10.5).opening == 0.0
    assert not lipsync.is_busy(10.5)


def test_a_resume_goes_on_inside_the_timeline(lipsync: LipSync, spoken: Any) -> None:
    lipsync.start(spoken.started(10.0))
    lipsync.stop(I1, 10.5)
    lipsync.start(spoken.started(20.0, offset_s=0.2))
    assert lipsync.mouth(19.9).opening == 0.0
    assert lipsync.mouth(20.1).shape == "aa"
    assert lipsync.mouth(21.4).shape == "ee"
    assert lipsync.mouth(21.85).shape == "rest"


def test_a_sentence_announced_early_leaves_the_present_one_alone(lipsync: LipSync, spoken: Any) -> None:
    lipsync.start(spoken.started(10.0))
    lipsync.start(spoken.started(12.0, intent=I2))
    assert lipsync.mouth(10.6).shape == "aa"
    assert lipsync.mouth(12.6).shape == "aa"
    lipsync.forget(G1)
    assert lipsync.mouth(12.6).opening == 0.0


def test_a_shape_the_pack_does_not_know_still_moves_the_mouth(spoken: Any) -> None:
    lipsync = LipSync({})
    lipsync.start(spoken.started(10.0))
    assert lipsync.mouth(10.6).opening == 0.5
