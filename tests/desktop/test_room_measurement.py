"""What the measure of the room advises."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rigs.room_figures import FINE

from audio.room_measure import RoomFigures
from desktop.room_measurement import advise
from desktop.settings import Settings


@pytest.mark.parametrize(
    ("figures", "because", "sensitivity"),
    [
        (FINE, "fine", "normal"),
        (replace(FINE, noise_db=-40.0), "noise", "relaxed"),
        (replace(FINE, coupling_db=None, delay_s=None, loss_db=None), "headphones", "eager"),
        (replace(FINE, coupling_db=-3.0), "echo", "normal"),
        (replace(FINE, cuts=1), "stumbles", "relaxed"),
        (replace(FINE, ducks=1), "stumbles", "relaxed"),
        (replace(FINE, is_half_duplex=True, cuts=3), "half_duplex", "relaxed"),
    ],
)
def test_the_dial_follows_what_was_measured(figures: RoomFigures, because: str, sensitivity: str) -> None:
    advice = advise(figures, Settings())
    assert (advice.because, advice.sensitivity) == (because, sensitivity)


def test_a_late_loudspeaker_is_reckoned_with_and_a_punctual_one_no_more() -> None:
    late = advise(replace(FINE, delay_s=0.213), Settings())
    assert late.changes(Settings()) == {"extra_output_delay_ms": 213.0}
    assert advise(FINE, Settings(extra_output_delay_ms=213.0)).changes(Settings(extra_output_delay_ms=213.0)) == {
        "extra_output_delay_ms": 0.0
    }
    unknown = advise(replace(FINE, delay_s=None), Settings(extra_output_delay_ms=90.0))
    assert unknown.extra_output_delay_ms == 90.0
    assert advise(replace(FINE, delay_s=5.0), Settings()).extra_output_delay_ms == 2000.0
