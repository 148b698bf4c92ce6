"""The two stages, scripted and real."""

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from rigs.ears_rig import at_level

from audio.ears_config import FRAME_SAMPLES, RATE_HZ, WINDOW_SAMPLES, VadConfig
from audio.pcm import Samples, read_wav, resample
from audio.vad import SileroVad, TwoStageVad, VadWindow, WebRtcVad


class FrameScript:
    """VAD 1 that passes the frames with the given numbers."""

    def __init__(self, passes: Iterable[int]) -> None:
        self.passes = set(passes)
        self.seen = 0

    def is_speech(self, frame: Samples) -> bool:
        self.seen += 1
        return self.seen - 1 in self.passes


class WindowScript:
    """VAD 2 that remembers what it was asked; probability is the mean of the window."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.resets = 0

    def probability(self, window: Samples) -> float:
        assert len(window) == WINDOW_SAMPLES
        self.asked.append(float(window.mean()))
        return float(window.mean())

    def reset(self) -> None:
        self.resets += 1


def run(vad: TwoStageVad, samples: Samples) -> list[VadWindow]:
    found = []
    for begin in range(0, len(samples) - FRAME_SAMPLES + 1, FRAME_SAMPLES):
        found += vad.push(samples[begin : begin + FRAME_SAMPLES])
    return found


def test_the_second_sleeps_until_the_first_passes() -> None:
    second = WindowScript()
    vad = TwoStageVad(VadConfig(), FrameScript([]), second)
    assert run(vad, np.zeros(RATE_HZ, np.float32)) == []
    assert second.asked == []
    assert vad.stats() == {"vad1_seen": 100, "vad1_passed": 0, "vad2_seen": 0, "vad2_passed": 0}


def test_no_onset_is_lost_when_the_first_is_late() -> None:
    second = WindowScript()
    vad = TwoStageVad(VadConfig(warm_up_windows=8), FrameScript(range(50, 60)), second)
    samples = np.zeros(RATE_HZ, np.float32)
    samples[40 * FRAME_SAMPLES :] = 1.0  # speech began 100 ms before VAD 1 noticed
    windows = run(vad, samples)
    assert windows[0].start <= 40 * FRAME_SAMPLES - 4 * WINDOW_SAMPLES
    first_voiced = next(each for each in windows if each.probability > 0.9)
    assert abs(first_voiced.start - 40 * FRAME_SAMPLES) < WINDOW_SAMPLES


def test_windows_come_in_order_and_none_twice() -> None:
    passes = [*range(10, 20), *range(75, 80), *range(140, 150)]
    vad = TwoStageVad(VadConfig(gate_hold_s=0.3), FrameScript(passes), WindowScript())
    windows = run(vad, np.zeros(2 * RATE_HZ, np.float32))
    assert len(windows) > 10
    for earlier, later in itertools.pairwise(windows):
        assert later.start >= earlier.end
        assert (later.start - earlier.end) % WINDOW_SAMPLES == 0
    assert all(each.end - each.start == WINDOW_SAMPLES for each in windows)


def test_the_second_starts_fresh_after_a_sleep() -> None:
    second = WindowScript()
    vad = TwoStageVad(VadConfig(gate_hold_s=0.1), FrameScript([0, 100]), second)
    run(vad, np.zeros(2 * RATE_HZ, np.float32))
    assert second.resets == 2


def test_onset_goes_back_over_what_the_first_passed() -> None:
    vad = TwoStageVad(VadConfig(), FrameScript(range(30, 60)), WindowScript())
    run(vad, np.zeros(60 * FRAME_SAMPLES, np.float32))
    voiced = 40 * FRAME_SAMPLES
    assert vad.onset_before(voiced, RATE_HZ) == 30 * FRAME_SAMPLES
    assert vad.onset_before(voiced, 5 * FRAME_SAMPLES) == 35 * FRAME_SAMPLES
    assert vad.onset_before(20 * FRAME_SAMPLES, RATE_HZ) == 20 * FRAME_SAMPLES


def test_reset_counts_samples_anew() -> None:
    vad = TwoStageVad(VadConfig(), FrameScript(range(1000)), WindowScript())
    run(vad, np.zeros(RATE_HZ, np.float32))
    vad.reset()
    windows = run(vad, np.zeros(RATE_HZ, np.float32))
    assert (windows[0].start, vad.samples) == (0, RATE_HZ)


@pytest.mark.models
@pytest.mark.parametrize("name", ["en_jfk", "en_az_weather", "zh_wenet_mid", "zh_azmix_1"])
def test_real_speech_passes_both(speech_dir, name: str) -> None:
    samples, rate_hz = read_wav(speech_dir / f"{name}.wav")
    speech = at_level(resample(samples, rate_hz, RATE_HZ), -26.0)
    vad = TwoStageVad(VadConfig(), WebRtcVad(2), SileroVad())
    windows = run(vad, np.concatenate([np.zeros(RATE_HZ, np.float32), speech]))
    voiced = sum(each.probability >= 0.5 for each in windows) * WINDOW_SAMPLES
    assert voiced > 0.5 * len(speech)


@pytest.mark.models
@pytest.mark.parametrize("name", ["nz_gl_clap", "nz_pc_office1", "nz_sb_noise3", "nz_sb_diffuse"])
def test_real_noise_stops_at_the_second(speech_dir, name: str) -> None:
    samples, rate_hz = read_wav(speech_dir / f"{name}.wav")
    vad = TwoStageVad(VadConfig(), WebRtcVad(2), SileroVad())
    windows = run(vad, resample(samples, rate_hz, RATE_HZ))
    assert sum(each.probability >= 0.5 for each in windows) <= 2


@pytest.mark.models
def test_the_gate_saves_most_of_the_work_in_silence(speech_dir) -> None:
    samples, rate_hz = read_wav(speech_dir / "en_az_weather.wav")
    speech = resample(samples, rate_hz, RATE_HZ)
    hiss = np.random.default_rng(5).normal(0.0, 1e-4, 20 * RATE_HZ).astype(np.float32)
    hiss[RATE_HZ : RATE_HZ + len(speech)] += speech
    vad = TwoStageVad(VadConfig(), WebRtcVad(2), SileroVad())
    run(vad, hiss)
    assert vad.stats()["vad2_seen"] < 0.4 * 20 * RATE_HZ / WINDOW_SAMPLES
