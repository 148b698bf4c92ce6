"""The character on loudspeakers, in virtual time: real voice, player, canceller and VADs, rooms by image sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bench.own_voice import (
    ECHO_DB,
    HALLS,
    HEADPHONES,
    LOUD_DB,
    QUIET_DB,
    SCENES,
    Found,
    OwnVoice,
    character_speech,
    clear_utterances,
)
from bench.scorer import voiced_span
from bench.stimuli import Recordings
from rigs.acoustics import Path as SoundPath
from rigs.acoustics import Place, image_source_response
from rigs.loudspeaker_rig import LoudspeakerRig, Said, Tap, first_s, names

from audio.echo_path import EchoPath
from audio.pcm import db_to_gain
from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ, OUT_RATE_HZ, active_rms

pytestmark = pytest.mark.models

LONG_S = 1800.0
MUTANTS = [Tap.LATE, Tap.ZERO, Tap.BEFORE_GAIN]


@pytest.fixture(scope="module")
def sentences(model_path: Callable[[str], Path]) -> list[Samples]:
    return character_speech(model_path("piper-en_US-joe-medium") / "voice.onnx", 6)


@pytest.fixture(scope="module")
def recordings(speech_dir: Path) -> Recordings:
    return Recordings(folder=speech_dir)


def faults(found: Found) -> list[str]:
    """What is wrong with a run, by the budgets of own voice and of interruptions at −6 dB."""
    wrong = []
    if found.own_cuts or found.own_utterances or found.half_duplex:
        wrong.append(f"own voice: {found.own_cuts} cuts, {found.own_utterances} utterances, {found.half_duplex} half")
    if found.users:
        down_s, silent_s = found.all_down_s(), found.all_silent_s()
        if len(found.unnoticed) > 0.02 * found.users:
            wrong.append(f"unnoticed: {found.unnoticed}")
        figures = [
            ("down p50", np.percentile(down_s, 50), 0.3),
            ("silent p50", np.percentile(silent_s, 50), 0.42),
            ("silent p95", np.percentile(silent_s, 95), 0.6),
        ]
        wrong += [f"{name} {value:.3f} s > {limit}" for name, value, limit in figures if value > limit]
    return wrong


def run(sentences: list[Samples], recordings: Recordings, seconds: float, **more: object) -> Found:
    found = OwnVoice(sentences=sentences, recordings=recordings, seconds=seconds, tell=print, **more).run()  # type: ignore[arg-type]
    print(found)  # noqa: T201
    return found


def test_a_minute_of_its_own_voice(sentences: list[Samples], recordings: Recordings) -> None:
    found = run(sentences, recordings, 40.0, scenes=SCENES[:2], has_users=False)
    assert faults(found) == []
    assert found.own_ducks <= 1


@pytest.mark.parametrize(("tap", "seconds"), [(Tap.LATE, 12.0), (Tap.ZERO, 12.0), (Tap.BEFORE_GAIN, 40.0)])
def test_the_short_run_notices_a_wrong_reference(
    sentences: list[Samples], recordings: Recordings, tap: Tap, seconds: float
) -> None:
    assert faults(run(sentences, recordings, seconds, scenes=SCENES[:1], has_users=False, tap=tap)) != []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_half_an_hour_on_loudspeakers(sentences: list[Samples], recordings: Recordings) -> None:
    assert faults(run(sentences, recordings, LONG_S)) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("tap", MUTANTS)
def test_a_wrong_reference_fails_the_half_hour(sentences: list[Samples], recordings: Recordings, tap: Tap) -> None:
    # A mutant that is caught in a sixth of the time is caught in all of it.
    assert faults(run(sentences, recordings, LONG_S / 6, tap=tap)) != []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_users_with_headphones_are_within_budget(sentences: list[Samples], recordings: Recordings) -> None:
    found = run(sentences, recordings, 300.0, scenes=[HEADPHONES])
    assert found.own_cuts == 0
    assert found.unnoticed == []
    assert np.percentile(found.all_down_s(), 50) <= 0.15
    assert np.percentile(found.all_silent_s(), 50) <= 0.27
    assert np.percentile(found.all_silent_s(), 95) <= 0.38


def test_a_device_that_can_not_be_tamed_is_half_duplex(sentences: list[Samples]) -> None:
    """With an echo that comes too late to be cancelled, nobody is listened to while the character talks."""
    path = SoundPath(response=image_source_response(Place()), delay_s=0.9, gain_db=-8.0)
    rig = LoudspeakerRig(sentences=sentences, path=path)
    rig.is_talking = False
    rig.run(1.0)
    rig.is_talking = True
    happened = rig.run(40.0)
    assert "half_duplex" in names(happened)
    at_s = next(each.at_s for each in happened if each.what == "half_duplex")
    assert names([each for each in happened if each.at_s > at_s]) == []


# --- the first seconds after a start ------------------------------------------------------------------------

STUDY = Place(rt60_s=0.35)
BEDROOM = Place(rt60_s=0.2, microphone_m=(1.6, 1.5, 0.8))
LEAD_S = 0.018
"""How much later than the path's own delay the echo comes for the canceller: the reference is read ahead."""


def start(
    sentences: list[Samples],
    place: Place,
    *,
    delay_s: float,
    user_db: float = LOUD_DB,
    known: EchoPath | None = None,
    number: int = 0,
) -> tuple[LoudspeakerRig, float]:
    """Return a character that has just begun to talk, for the first time on this device, and its echo's level."""
    voice_db = 20 * float(np.log10(active_rms(np.concatenate(sentences), OUT_RATE_HZ)))
    gain_db = user_db + ECHO_DB - voice_db
    turn = number % len(sentences)
    rig = LoudspeakerRig(
        sentences=[*sentences[turn:], *sentences[:turn]],
        path=SoundPath(response=image_source_response(place), delay_s=delay_s, gain_db=gain_db),
        noise_db=user_db - 42.0,
        known=known,
        seed=number,
    )
    rig.is_talking = False
    rig.run(1.0)
    rig.is_talking = True
    return rig, gain_db


def own(rig: LoudspeakerRig, seconds: float) -> list[str]:
    """Return what it took its own voice for while nobody spoke."""
    return [what for what in names(rig.run(seconds)) if what in ("interrupt", "onset", "half_duplex")]


@pytest.mark.parametrize("hall", range(len(HALLS)))
def test_a_hall_does_not_cut_it_at_the_start(sentences: list[Samples], hall: int) -> None:
    """Where sound hangs for most of a second, what a canceller leaves in the beginning is as loud as the echo."""
    for number in range(6):
        rig, _ = start(
            sentences,
            HALLS[hall],
            delay_s=0.02 + 0.03 * (number % 4),
            user_db=(LOUD_DB, QUIET_DB)[number % 2],
            number=number,
        )
        assert own(rig, 6.0) == [], f"start {number}"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("hall", range(len(HALLS)))
def test_halls_for_longer(sentences: list[Samples], hall: int) -> None:
    for number in range(24):
        loudness_db = (LOUD_DB, QUIET_DB)[number % 2]
        rig, _ = start(sentences, HALLS[hall], delay_s=0.02 + 0.03 * (number % 4), user_db=loudness_db, number=number)
        assert own(rig, 15.0) == [], f"start {number}"


def interrupted(
    sentences: list[Samples], recordings: Recordings, *, is_known: bool, users: int
) -> tuple[list[float], int]:
    """Interrupt in the first second after a start; returns the seconds until there was silence, and who was missed."""
    times: list[float] = []
    missed = 0
    for number in range(users):
        place, delay_s = ((STUDY, 0.02), (BEDROOM, 0.25))[number % 2]
        chosen = clear_utterances(recordings, ("en", "zh")[number // 2 % 2])
        stimulus = recordings.load(chosen[number // 4 % len(chosen)], longest_s=1.6).samples
        loud = db_to_gain(LOUD_DB - 20 * float(np.log10(active_rms(stimulus, MIC_RATE_HZ))))
        _, gain_db = start(sentences, place, delay_s=delay_s)
        path = EchoPath(delay_s=delay_s + LEAD_S, coupling_db=gain_db - 2.0, loss_db=30.0, leak_db=-25.0)
        rig, _ = start(sentences, place, delay_s=delay_s, known=path if is_known else None, number=number)
        onset_s = rig.now_s + 0.5
        at_s = onset_s - voiced_span(stimulus, MIC_RATE_HZ).begin_s
        happened = rig.run(2.7, [Said(at_s=at_s, samples=stimulus * np.float32(loud))])
        silent_s = first_s(happened, "silent", "interrupt", after_s=onset_s)
        if silent_s is None:
            missed += 1
        else:
            times.append(silent_s - onset_s)
    return times, missed


def test_who_interrupts_right_after_a_start_is_heard_sooner_on_a_known_loudspeaker(
    sentences: list[Samples], recordings: Recordings
) -> None:
    known, missed = interrupted(sentences, recordings, is_known=True, users=8)
    unknown, _ = interrupted(sentences, recordings, is_known=False, users=8)
    assert missed == 0
    assert np.median(known) <= 0.42
    assert max(known) <= 0.6
    assert np.median(known) < np.median(unknown)


@pytest.mark.parametrize(
    ("delay_off_s", "gain_off_db"),
    [(0.0, 0.0), (0.15, 0.0), (-0.15, 0.0), (0.0, -12.0), (0.0, 12.0), (0.1, -12.0), (-0.1, -12.0)],
    ids=["same", "nearer", "farther", "louder amplifier", "softer", "nearer and louder", "farther and louder"],
)
def test_a_room_that_changed_since_it_was_learned_does_not_cut_it(
    sentences: list[Samples], delay_off_s: float, gain_off_db: float
) -> None:
    """What is remembered is tried on the first of the real echo, and forgotten if it is wrong."""
    wrong = 0
    for number in range(4):
        place, delay_s = ((STUDY, 0.12), (BEDROOM, 0.25))[number % 2]
        _, gain_db = start(sentences, place, delay_s=delay_s)
        path = EchoPath(
            delay_s=max(0.0, delay_s + LEAD_S + delay_off_s),
            coupling_db=gain_db - 2.0 + gain_off_db,
            loss_db=35.0,
            leak_db=-35.0,
        )
        rig, _ = start(sentences, place, delay_s=delay_s, known=path, number=number)
        assert own(rig, 5.0) == [], f"start {number}"
        wrong += rig.ears.stats()["echo_rehearsals_wrong"]
    if delay_off_s == gain_off_db == 0.0:
        assert wrong == 0
    if delay_off_s > 0.0:
        assert wrong > 0
