"""The character on loudspeakers, in virtual time: real voice, player, canceller and VADs, rooms by image sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bench.own_voice import HEADPHONES, SCENES, Found, OwnVoice, character_speech
from bench.stimuli import Recordings
from rigs.acoustics import Path as SoundPath
from rigs.acoustics import Place, image_source_response
from rigs.loudspeaker_rig import LoudspeakerRig, Tap, names

from audio.ports import Samples

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
