"""How loud the user usually talks: plain frames in, a level out."""

import numpy as np
import pytest

from audio.evidence import UserLevel
from audio.ports import Samples


def frames(level: float, count: int = 80) -> list[Samples]:
    return [np.full(160, level, np.float32)] * count


def test_known_after_two_utterances() -> None:
    user = UserLevel()
    user.utterance(frames(0.1))
    assert user.level_db is None
    user.utterance(frames(0.1))
    assert user.level_db == pytest.approx(-20.0)


def test_pauses_and_scraps_do_not_count() -> None:
    user = UserLevel()
    for _ in range(3):
        user.utterance(frames(0.1) + frames(0.001))
        user.utterance(frames(0.5, count=20))
    assert user.level_db == pytest.approx(-20.0)


def test_a_television_that_runs_along_does_not_make_the_user_quieter() -> None:
    user = UserLevel()
    for _ in range(6):
        user.utterance(frames(0.1))
        user.utterance(frames(0.02))
    assert user.level_db == pytest.approx(-20.0)


def test_another_microphone_begins_anew() -> None:
    user = UserLevel()
    for _ in range(2):
        user.utterance(frames(0.1))
    user.reset()
    assert user.level_db is None
