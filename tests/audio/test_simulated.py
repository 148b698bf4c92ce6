"""The simulated room: what the microphone hears of user, echo and noise."""

from __future__ import annotations

import numpy as np
import pytest

from audio.ports import Samples
from audio.simulated import MIC_BLOCK, MIC_RATE_HZ, OUT_BLOCK, OUT_RATE_HZ, RoomConfig, SimulatedRoom, active_rms


def tone(seconds: float, rate_hz: int, level: float, hertz: float = 440.0) -> Samples:
    at_s = np.arange(int(seconds * rate_hz)) / rate_hz
    return (level * np.sqrt(2) * np.sin(2 * np.pi * hertz * at_s)).astype(np.float32)


def run(room: SimulatedRoom, far: Samples) -> Samples:
    heard = []
    for block in range(len(far) // OUT_BLOCK):
        room.play(far[block * OUT_BLOCK : (block + 1) * OUT_BLOCK])
        heard.append(room.listen())
    return np.concatenate(heard)


def test_the_user_is_heard_sample_for_sample_without_echo_and_noise() -> None:
    user = tone(1.0, MIC_RATE_HZ, 0.1)
    room = SimulatedRoom(user, RoomConfig(), voice_rms=0.1)
    heard = run(room, np.zeros(OUT_RATE_HZ * 2, np.float32))
    assert np.array_equal(heard[: len(user)], user)
    assert not heard[len(user) :].any()
    assert room.is_user_over


@pytest.mark.parametrize("delay_s", [0.0, 0.12])
@pytest.mark.parametrize("echo_db", [-6.0, 0.0])
def test_the_echo_has_its_level_and_its_delay(echo_db: float, delay_s: float) -> None:
    user = tone(0.5, MIC_RATE_HZ, 0.1)
    far = np.concatenate([np.zeros(OUT_RATE_HZ, np.float32), tone(1.0, OUT_RATE_HZ, 0.3, 1000.0)])
    room = SimulatedRoom(user, RoomConfig(echo_db=echo_db, delay_s=delay_s), voice_rms=0.3)
    heard = run(room, far)[int(0.9 * MIC_RATE_HZ) :]
    level = active_rms(heard[int(0.4 * MIC_RATE_HZ) : int(0.9 * MIC_RATE_HZ)], MIC_RATE_HZ)
    assert 20 * np.log10(level / 0.1) == pytest.approx(echo_db, abs=0.3)
    begins_s = 0.9 + float(np.flatnonzero(np.abs(heard) > 0.02)[0]) / MIC_RATE_HZ
    assert begins_s == pytest.approx(1.0 + max(delay_s, 0.0125), abs=0.015)


def test_noise_comes_at_its_ratio_and_goes_on() -> None:
    user = tone(1.0, MIC_RATE_HZ, 0.1)
    noise = np.random.default_rng(1).standard_normal(MIC_RATE_HZ // 3).astype(np.float32)
    room = SimulatedRoom(user, RoomConfig(noise=noise, snr_db=10.0), voice_rms=0.1)
    heard = run(room, np.zeros(OUT_RATE_HZ * 3, np.float32))
    level = float(np.sqrt(np.mean(np.square(heard[-MIC_RATE_HZ:]))))
    assert 20 * np.log10(0.1 / level) == pytest.approx(10.0, abs=0.5)
    assert len(heard) % MIC_BLOCK == 0
