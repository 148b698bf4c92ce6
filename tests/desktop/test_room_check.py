"""The check of the room, on levels and times that are made up."""

from __future__ import annotations

import pytest

from desktop.room_check import RoomCheck, RoomStep, judge


def run(check: RoomCheck, levels: dict[RoomStep, float], *, voice_s: float = 3.0) -> float:
    """Feed 20 levels a second until the check is over; returns how long it took."""
    now_s, voice_began_s = 100.0, 0.0
    check.start(now_s)
    while check.is_running:
        now_s += 0.05
        if check.step is RoomStep.VOICE:
            voice_began_s = voice_began_s or now_s
            is_quiet = not 0.5 < now_s - voice_began_s < 0.5 + voice_s
        else:
            is_quiet = True
        check.feed(now_s, levels[check.step], is_quiet=is_quiet)
    return now_s - 100.0


def test_it_measures_noise_echo_and_speech_one_after_the_other() -> None:
    check = RoomCheck()
    took_s = run(check, {RoomStep.QUIET: -62.0, RoomStep.VOICE: -44.0, RoomStep.SPEAK: -30.0})
    assert check.step is RoomStep.DONE
    result = check.result
    assert result is not None
    assert (result.noise_dbfs, result.echo_db, result.speech_db) == (-62.0, 18.0, 32.0)
    assert result.has_echo
    assert (result.sensitivity, result.because) == ("normal", "fine")
    assert 8.0 < took_s < 16.0


@pytest.mark.parametrize(
    ("noise_dbfs", "echo_db", "speech_db", "sensitivity", "because"),
    [
        (-60, 2, 30, "eager", "fine"),
        (-60, 15, 30, "normal", "fine"),
        (-60, 28, 40, "relaxed", "echo"),
        (-60, 24, 20, "relaxed", "echo"),
        (-40, 2, 25, "relaxed", "noise"),
        (-40, 2, 8, "relaxed", "noise"),
        (-60, 2, 8, "normal", "faint"),
    ],
)
def test_the_preset_follows_from_what_was_measured(
    noise_dbfs: float, echo_db: float, speech_db: float, sensitivity: str, because: str
) -> None:
    result = judge(noise_dbfs, echo_db, speech_db)
    assert (result.sensitivity, result.because) == (sensitivity, because)


def test_without_a_microphone_it_fails_and_can_begin_again() -> None:
    check = RoomCheck()
    check.start(0.0)
    assert check.feed(0.1, None, is_quiet=True) is RoomStep.FAILED
    assert check.result is None
    run(check, dict.fromkeys(RoomStep, -50.0))
    assert check.step is RoomStep.DONE


def test_a_voice_that_never_sounds_ends_the_step_all_the_same() -> None:
    check = RoomCheck()
    check.start(0.0)
    now_s = 0.0
    while check.is_running and now_s < 60:
        now_s += 0.1
        check.feed(now_s, -50.0, is_quiet=True)
    assert check.step is RoomStep.FAILED
    assert now_s < 20


def test_it_can_be_given_up() -> None:
    check = RoomCheck()
    check.start(0.0)
    check.cancel()
    assert not check.is_running
    assert check.feed(1.0, -50.0, is_quiet=True) is RoomStep.IDLE
