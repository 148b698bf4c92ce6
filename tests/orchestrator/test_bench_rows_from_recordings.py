"""Times read from recordings: on mixes made here, where the truth is known to the sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench.scorer import (
    Track,
    find_sound,
    first_sound,
    is_sounding,
    reply_after,
    speech_level_db,
    voiced_span,
    yielding,
)
from bench.stimuli import (
    BACKCHANNELS,
    MAKERS,
    RATE_HZ,
    Recordings,
    Samples,
    Stimulus,
    spoken,
    synthetic,
    with_inner_pause,
)

ONSET_S = 2.0
START_S = 500.0


def talk(seconds: float, *, seed: int = 1, level: float = 0.1) -> Samples:
    """Noise with the rhythm of speech: syllables, and a pause of 0.25 s now and then."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    rhythm = 0.3 + np.abs(np.sin(2 * np.pi * 2.2 * time_s))
    pauses = (time_s % 1.7) < 1.45
    return (level * rhythm * pauses * rng.standard_normal(len(time_s))).astype(np.float32)


def track(samples: Samples) -> Track:
    return Track(samples=samples, rate_hz=RATE_HZ, start_s=START_S)


def stimulus_at(at_s: float, known: Samples, *, under: Samples) -> Samples:
    mixed = under.copy()
    begin = round(at_s * RATE_HZ)
    mixed[begin : begin + len(known)] += known
    return mixed


def known_sound(seed: int = 5) -> Samples:
    """A sound whose voice begins at 0.2 s and ends at 1.2 s."""
    voice = talk(1.0, seed=seed)
    silence = np.zeros(int(0.2 * RATE_HZ), np.float32)
    return np.concatenate([silence, voice, silence])


@pytest.mark.parametrize("echo_db", [None, -6.0, 0.0])
def test_a_known_sound_is_found_to_the_sample_under_other_speech(echo_db: float | None) -> None:
    under = np.zeros(int(6 * RATE_HZ), np.float32) if echo_db is None else talk(6, seed=2) * 10 ** (echo_db / 20)
    known = known_sound()
    heard = find_sound(known, track(stimulus_at(2.3456, known, under=under)), after_s=START_S + 1)
    assert heard.begin_at_s == pytest.approx(START_S + 2.3456, abs=1.5 / RATE_HZ)
    assert heard.onset_at_s == pytest.approx(START_S + 2.5456, abs=0.02)
    assert heard.end_at_s == pytest.approx(START_S + 3.5456, abs=0.3), "the last syllable ends in its own pause"


def test_a_sound_that_was_not_played_is_not_found() -> None:
    with pytest.raises(ValueError, match="not in the recording"):
        find_sound(known_sound(), track(talk(6, seed=2)))
    with pytest.raises(ValueError, match="too short"):
        find_sound(known_sound(), track(talk(1, seed=2)))


def test_the_second_of_two_equal_sounds_is_found_after_a_moment() -> None:
    known = known_sound()
    both = stimulus_at(4.0, known, under=stimulus_at(1.0, known, under=np.zeros(int(7 * RATE_HZ), np.float32)))
    found = find_sound(known, track(both), after_s=START_S + 2.0)
    assert found.begin_at_s == pytest.approx(START_S + 4.0, abs=0.001)


def test_voice_is_told_from_the_noise_of_its_recording() -> None:
    sound = known_sound() + 0.003 * np.random.default_rng(3).standard_normal(int(1.4 * RATE_HZ)).astype(np.float32)
    span = voiced_span(sound, RATE_HZ)
    assert span.begin_s == pytest.approx(0.2, abs=0.03)
    assert 1.0 < span.end_s < 1.25
    with pytest.raises(ValueError, match="silent"):
        voiced_span(np.zeros(RATE_HZ, np.float32), RATE_HZ)


def lowered_and_cut(*, duck_s: float | None, cut_s: float | None) -> Track:
    """Speech without pauses around the onset, lowered by 18 dB and cut so long after it."""
    rng = np.random.default_rng(4)
    sound = (0.1 * rng.standard_normal(int(6 * RATE_HZ))).astype(np.float32)
    if duck_s is not None:
        sound[round((ONSET_S + duck_s) * RATE_HZ) :] *= 10 ** (-18 / 20)
    if cut_s is not None:
        sound[round((ONSET_S + cut_s) * RATE_HZ) :] = 0
    return track(sound)


def test_the_moments_of_lowering_and_cutting_are_measured() -> None:
    made = lowered_and_cut(duck_s=0.1, cut_s=0.24)
    level_db = speech_level_db(made, START_S, START_S + ONSET_S)
    assert level_db == pytest.approx(-20, abs=1)
    gave = yielding(made, START_S + ONSET_S, reference_db=level_db)
    assert gave.down_s == pytest.approx(0.1, abs=0.006)
    assert gave.silent_s == pytest.approx(0.24, abs=0.006)


def test_what_is_only_lowered_is_not_silent_and_what_goes_on_is_neither() -> None:
    gave = yielding(lowered_and_cut(duck_s=0.1, cut_s=None), START_S + ONSET_S, reference_db=-20)
    assert gave.down_s == pytest.approx(0.1, abs=0.006)
    assert gave.silent_s is None
    goes_on = yielding(lowered_and_cut(duck_s=None, cut_s=None), START_S + ONSET_S, reference_db=-20)
    assert (goes_on.down_s, goes_on.silent_s) == (None, None)


def test_a_pause_of_the_speech_itself_is_not_taken_for_giving_way() -> None:
    onset_s = 1.2  # 0.25 s before one of the pauses of 0.25 s
    gave = yielding(track(talk(6)), START_S + onset_s, reference_db=-20)
    assert gave.silent_s is None
    cut = talk(6)
    cut[round(2.5 * RATE_HZ) :] = 0
    assert yielding(track(cut), START_S + onset_s, reference_db=-20).silent_s == pytest.approx(1.3, abs=0.02)


def test_a_cut_that_comes_too_late_is_none() -> None:
    made = lowered_and_cut(duck_s=None, cut_s=2.5)
    assert yielding(made, START_S + ONSET_S, reference_db=-20, within_s=2.0).silent_s is None


def test_the_reply_is_the_first_sound_after_the_silence() -> None:
    sound = np.zeros(int(8 * RATE_HZ), np.float32)
    sound[: int(2.2 * RATE_HZ)] = talk(2.2)
    sound[int(4.5 * RATE_HZ) : int(6 * RATE_HZ)] = talk(1.5, seed=8)
    sound[int(3.3 * RATE_HZ) : int(3.3 * RATE_HZ) + 40] = 0.3  # a click of 2.5 ms is no reply
    made = track(sound)
    assert first_sound(made, START_S + 3.0) == pytest.approx(START_S + 4.5, abs=0.01)
    delay_s = reply_after(made, START_S + 4.0, onset_at_s=START_S + 2.0, silent_s=0.2)
    assert delay_s == pytest.approx(0.5, abs=0.01)
    early_s = reply_after(made, START_S + 5.0, onset_at_s=START_S + 2.3)
    assert early_s == pytest.approx(-0.5, abs=0.01), "an answer into the user's words is early"
    assert not is_sounding(made, START_S + 6.2, START_S + 7.9)


# --- stimuli -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_synthetic_noise_is_the_same_for_a_seed_audible_and_not_clipped(name: str) -> None:
    one, same, other = synthetic(name, 1), synthetic(name, 1), synthetic(name, 2)
    assert np.array_equal(one.samples, same.samples)
    assert len(one.samples) != len(other.samples) or not np.allclose(one.samples, other.samples)
    assert one.samples.dtype == np.float32
    assert 0.03 < float(np.abs(one.samples).max()) < 0.9
    assert 0.1 < one.seconds < 4.0
    assert (one.kind, one.language) == ("synthetic", "none")


def test_a_pause_is_spliced_into_a_gap_between_words() -> None:
    whole = np.concatenate([talk(1.4, seed=1), np.zeros(800, np.float32), talk(1.4, seed=2)])
    made = with_inner_pause(Stimulus(name="x", language="en", kind="recorded", samples=whole), 0.7)
    # 50 ms were silent already: the pause is 0.7 s in all.
    assert len(made.samples) == pytest.approx(len(whole) + 0.65 * RATE_HZ, abs=0.02 * RATE_HZ)
    pause = made.samples[int(1.5 * RATE_HZ) : int(2.05 * RATE_HZ)]
    assert 20 * np.log10(np.sqrt(np.mean(pause**2)) + 1e-9) < -50
    assert np.array_equal(made.samples[: int(1.0 * RATE_HZ)], whole[: int(1.0 * RATE_HZ)])
    assert np.array_equal(made.samples[-RATE_HZ:], whole[-RATE_HZ:])
    with pytest.raises(ValueError, match="too short"):
        with_inner_pause(Stimulus(name="x", language="en", kind="recorded", samples=talk(0.5)), 0.7)


def test_real_recordings_alternate_speakers_and_have_a_voice(speech_dir: Path) -> None:
    recordings = Recordings(folder=speech_dir)
    for language, few in (("en", 12), ("zh", 6)):
        names = recordings.utterances(language, shortest_s=1.2, longest_s=5.0)
        assert len(names) >= few
        speakers = [recordings.entries()[name]["speaker"] for name in names]
        distinct = len(set(speakers))
        assert len(set(speakers[:distinct])) == distinct, "every speaker comes once before one comes twice"
        for name in names[:6]:
            sound = recordings.load(name)
            span = voiced_span(sound.samples, RATE_HZ)
            assert sound.language == language
            assert span.end_s - span.begin_s > 0.4 * sound.seconds
    assert len(recordings.noises()) >= 5


@pytest.mark.parametrize(
    ("text", "language"), [(text, language) for language, texts in BACKCHANNELS.items() for text in texts.values()]
)
def test_espeak_says_backchannels_in_both_languages(text: str, language: str) -> None:
    sound = spoken(text, language)
    span = voiced_span(sound.samples, RATE_HZ)
    assert 0.1 < span.end_s - span.begin_s < 1.5
