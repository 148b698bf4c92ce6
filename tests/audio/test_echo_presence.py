"""Headphones or loudspeakers: the decision on plain levels (dBFS), one per 10 ms."""

import pytest

from audio.ears_config import EchoConfig
from audio.echo_presence import EchoPresence

FLOOR, VOICE, QUIET = -65.0, -28.0, -120.0


def feed(presence: EchoPresence, seconds: float, near_db: float, far_db: float) -> bool:
    for _ in range(round(seconds * 100)):
        presence.frame(near_db, far_db)
    return presence.has_echo


def test_echo_is_presumed() -> None:
    presence = EchoPresence(EchoConfig())
    assert presence.has_echo
    assert feed(presence, 5.0, FLOOR, QUIET), "silence says nothing about the room"


def test_loud_output_and_a_still_microphone_are_headphones() -> None:
    presence = EchoPresence(EchoConfig())
    feed(presence, 1.0, FLOOR, QUIET)
    assert not feed(presence, 0.8, FLOOR, -20.0)


@pytest.mark.parametrize("echo_db", [-50.0, -40.0, -20.0])
def test_loudspeakers_are_never_taken_for_headphones(echo_db: float) -> None:
    presence = EchoPresence(EchoConfig())
    feed(presence, 1.0, FLOOR, QUIET)
    for _ in range(20):
        assert feed(presence, 0.6, echo_db, -20.0)
        assert feed(presence, 0.4, FLOOR, QUIET)


def test_quiet_passages_of_the_output_prove_nothing() -> None:
    presence = EchoPresence(EchoConfig())
    feed(presence, 1.0, FLOOR, QUIET)
    feed(presence, 1.0, -40.0, -18.0)
    assert feed(presence, 3.0, FLOOR, -44.0)


def test_the_user_over_headphones_does_not_bring_echo_back_at_once() -> None:
    presence = EchoPresence(EchoConfig())
    feed(presence, 1.0, FLOOR, QUIET)
    feed(presence, 2.0, FLOOR, -20.0)
    assert not feed(presence, 0.5, VOICE, -20.0)


def test_headphones_pulled_out_are_noticed() -> None:
    presence = EchoPresence(EchoConfig())
    feed(presence, 1.0, FLOOR, QUIET)
    assert not feed(presence, 2.0, FLOOR, -20.0)
    assert feed(presence, 1.5, -35.0, -20.0)


def test_a_noisy_room_has_a_higher_floor() -> None:
    presence = EchoPresence(EchoConfig())
    feed(presence, 1.0, -45.0, QUIET)
    assert not feed(presence, 0.8, -44.0, -20.0)


def test_echo_from_the_first_moment_is_not_taken_for_the_floor() -> None:
    presence = EchoPresence(EchoConfig())
    assert feed(presence, 3.0, -33.0, -20.0)
