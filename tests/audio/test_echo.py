"""The real canceller on real speech."""

import numpy as np
import pytest
from rigs.ears_rig import at_level

from audio.ears_config import FRAME_SAMPLES, RATE_HZ, EchoConfig
from audio.echo import EchoFrame, NoEchoCanceller, WebRtcEchoCanceller
from audio.pcm import Samples, power, power_db, read_wav, resample


@pytest.fixture(scope="module")
def far(speech_dir) -> Samples:
    samples, rate_hz = read_wav(speech_dir / "en_LJ001_0004.wav")
    return at_level(resample(samples, rate_hz, RATE_HZ), -20.0)


def run(canceller: WebRtcEchoCanceller, near: Samples, far: Samples | None) -> tuple[Samples, list[EchoFrame]]:
    frames = []
    for begin in range(0, len(near) - FRAME_SAMPLES + 1, FRAME_SAMPLES):
        part = slice(begin, begin + FRAME_SAMPLES)
        frames.append(canceller.process(near[part], None if far is None else far[part]))
    return np.concatenate([each.samples for each in frames]), frames


@pytest.mark.models
@pytest.mark.parametrize("delay_s", [0.02, 0.12, 0.25])
def test_takes_out_the_echo(far: Samples, delay_s: float) -> None:
    late = round(delay_s * RATE_HZ)
    near = np.concatenate([np.zeros(late, np.float32), far])[: len(far)] * np.float32(0.5)
    canceller = WebRtcEchoCanceller(EchoConfig())
    clean, frames = run(canceller, near, far)
    after = slice(2 * RATE_HZ, len(clean))
    assert power_db(power(near[after])) - power_db(power(clean[after])) > 20.0
    assert not frames[20].is_warm
    assert frames[-1].is_warm
    loud = [each for each in frames[200:] if each.near_db > -40.0]
    assert np.median([each.residual_db for each in loud]) < -18.0


@pytest.mark.models
def test_passes_speech_when_nothing_plays(far: Samples) -> None:
    canceller = WebRtcEchoCanceller(EchoConfig())
    clean, frames = run(canceller, far, None)
    assert all(each.residual_db is None for each in frames)
    assert power_db(power(clean)) == pytest.approx(power_db(power(far)), abs=1.5)
    # Levels, not waves: the canceller's filters turn phases.
    steps = {late: _level_match(clean, far, late) for late in range(0, 480, 16)}
    best = max(steps, key=lambda late: steps[late])
    assert best / RATE_HZ == pytest.approx(canceller.delay_s, abs=0.004)


def _level_match(clean: Samples, far: Samples, late: int) -> float:
    count = (len(clean) - late) // 80 * 80
    levels = [np.abs(each).reshape(-1, 80).mean(axis=1) for each in (clean[late : late + count], far[:count])]
    return float(np.corrcoef(levels)[0, 1])


@pytest.mark.models
def test_reset_counts_the_warm_up_anew(far: Samples) -> None:
    late = round(0.05 * RATE_HZ)
    near = np.concatenate([np.zeros(late, np.float32), far])[: len(far)] * np.float32(0.5)
    canceller = WebRtcEchoCanceller(EchoConfig())
    _, frames = run(canceller, near, far)
    assert frames[-1].is_warm
    assert frames[-1].loss_db is not None
    assert frames[-1].loss_db > 20.0
    canceller.reset()
    _, frames = run(canceller, far[: 10 * FRAME_SAMPLES], far)
    assert not frames[-1].is_warm
    assert canceller.stats()["echo_resets"] == 1


@pytest.mark.models
@pytest.mark.parametrize("count", [0, 159, 161, 320])
def test_refuses_other_frame_lengths(count: int) -> None:
    canceller = WebRtcEchoCanceller(EchoConfig())
    with pytest.raises(ValueError, match="160"):
        canceller.process(np.zeros(count, np.float32), None)
    with pytest.raises(ValueError, match="160"):
        canceller.process(np.zeros(FRAME_SAMPLES, np.float32), np.zeros(count, np.float32))


def test_without_a_canceller_levels_are_measured_all_the_same() -> None:
    canceller = NoEchoCanceller()
    near = np.full(FRAME_SAMPLES, 0.1, np.float32)
    for _ in range(50):
        frame = canceller.process(near, None)
    np.testing.assert_array_equal(frame.samples, near)
    assert frame.near_db == pytest.approx(-20.0, abs=0.1)
    assert frame.residual_db is None
    for _ in range(2):
        frame = canceller.process(near, near)
    assert frame.is_far_active
