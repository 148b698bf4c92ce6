"""How well the echo is taken out: plain levels (dBFS) in, one per 10 ms."""

import pytest

from audio.ears_config import EchoConfig
from audio.echo_convergence import Convergence

ECHO = -30.0


def feed(convergence: Convergence, seconds: float, loss_db: float, *, near_db: float = ECHO, **more: float) -> None:
    for _ in range(round(seconds * 100)):
        convergence.frame(near_db, near_db - loss_db, ECHO, **more)


def test_nothing_is_known_at_first() -> None:
    convergence = Convergence(EchoConfig())
    assert convergence.loss_db is None
    assert convergence.leak_db is None
    assert not convergence.is_warm


def test_warm_once_enough_is_taken_out_and_cold_again_far_below() -> None:
    convergence = Convergence(EchoConfig())
    feed(convergence, 1.0, 3.0)
    assert not convergence.is_warm
    feed(convergence, 3.0, 25.0)
    assert convergence.is_warm
    assert convergence.loss_db == pytest.approx(25.0)
    feed(convergence, 3.0, 8.0)
    assert convergence.is_warm, "over half of what made it warm"
    feed(convergence, 3.0, 2.0)
    assert not convergence.is_warm


def test_a_word_of_the_user_moves_nothing() -> None:
    convergence = Convergence(EchoConfig())
    feed(convergence, 5.0, 30.0)
    feed(convergence, 0.5, 0.0, near_db=-24.0)
    assert convergence.is_warm
    assert convergence.loss_db == pytest.approx(30.0)
    assert convergence.leak_db == pytest.approx(-30.0)


def test_quiet_moments_and_noise_do_not_count() -> None:
    convergence = Convergence(EchoConfig())
    feed(convergence, 5.0, 0.0, near_db=ECHO - 20.0)
    feed(convergence, 5.0, 0.0, floor_db=ECHO - 5.0)
    assert convergence.heard_s == 0.0
    assert convergence.loss_db is None


def test_the_leak_is_known_after_three_seconds() -> None:
    convergence = Convergence(EchoConfig())
    feed(convergence, 2.8, 15.0)
    assert convergence.leak_db is None
    feed(convergence, 0.4, 15.0)
    assert convergence.leak_db == pytest.approx(-15.0)


def test_reset_forgets() -> None:
    convergence = Convergence(EchoConfig())
    feed(convergence, 5.0, 30.0)
    convergence.reset()
    assert (convergence.loss_db, convergence.leak_db, convergence.heard_s) == (None, None, 0.0)
    assert not convergence.is_warm
