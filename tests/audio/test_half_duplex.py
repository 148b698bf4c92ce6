"""When a device counts as untamed: frames of plain levels in, the mode out."""

import numpy as np
import pytest

from audio.ears_config import FRAME_SAMPLES, EchoConfig
from audio.echo import EchoFrame
from audio.half_duplex import DuplexGuard


class Echo:
    """Frames of 10 ms in which some echo was heard."""

    def __init__(self) -> None:
        self.guard = DuplexGuard(EchoConfig())
        self.heard_s = 0.0
        self.changes: list[tuple[float, bool]] = []

    def feed(self, seconds: float, loss_db: float | None, *, is_loud: bool = True) -> "Echo":
        for _ in range(round(seconds * 100)):
            self.heard_s += 0.01 * is_loud
            frame = EchoFrame(
                samples=np.zeros(FRAME_SAMPLES, np.float32),
                near_db=-30.0,
                clean_db=-50.0,
                removed_db=-30.0,
                echo_db=-30.0,
                is_far_active=True,
                is_warm=True,
                loss_db=loss_db,
                heard_s=self.heard_s,
            )
            if self.guard.frame(frame):
                self.changes.append((round(self.heard_s, 1), self.guard.is_half))
        return self


def test_a_canceller_that_works_is_listened_to() -> None:
    assert Echo().feed(60.0, 25.0).changes == []


@pytest.mark.parametrize("loss_db", [0.0, 4.0])
def test_echo_that_stays_ends_listening_while_output_sounds(loss_db: float) -> None:
    assert Echo().feed(20.0, loss_db).changes == [(pytest.approx(4.0, abs=0.1), True)]


def test_it_listens_again_once_the_echo_is_taken_out() -> None:
    echo = Echo().feed(6.0, 1.0).feed(1.9, 20.0)
    assert echo.guard.is_half
    echo.feed(0.2, 20.0)
    assert [is_half for _, is_half in echo.changes] == [True, False]


def test_a_middling_loss_changes_nothing() -> None:
    assert Echo().feed(30.0, 8.0).changes == []
    assert [each for _, each in Echo().feed(6.0, 1.0).feed(30.0, 8.0).changes] == [True]


def test_silence_and_the_unknown_say_nothing() -> None:
    echo = Echo().feed(30.0, 1.0, is_loud=False).feed(30.0, None)
    assert echo.changes == []


def test_user_speech_over_the_echo_is_too_short_to_count() -> None:
    echo = Echo()
    for _ in range(20):
        echo.feed(3.0, 2.0).feed(1.0, 20.0)
    assert echo.changes == []


def test_another_device_gets_another_chance() -> None:
    echo = Echo().feed(6.0, 1.0)
    assert echo.guard.reset()
    assert not echo.guard.is_half
    assert not echo.guard.reset()
