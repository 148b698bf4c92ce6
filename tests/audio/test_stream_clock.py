from __future__ import annotations

import itertools
import random

import pytest

from audio.stream_clock import StreamClock

RATE, BLOCK, STEP = 48_000, 480, 0.01


def test_input_time_is_steady_under_late_and_bunched_callbacks():
    rng = random.Random(3)
    clock = StreamClock(RATE, 0.02)
    times = []
    for index in range(1000):
        late = rng.choice([0.0, 0.001, 0.008, 0.045, 0.09])
        times.append(clock.input_at_s(10.0 + (index + 1) * STEP + 0.01 + late, 0.02, BLOCK))
    steps = [b - a for a, b in itertools.pairwise(times[100:])]
    assert all(0.004 < step < 0.012 for step in steps)
    assert times[-1] == pytest.approx(10.0 + 999 * STEP, abs=0.02)
    assert clock.jumps == 0


def test_a_hole_is_followed_once_it_has_lasted():
    clock = StreamClock(RATE, 0.02)
    for index in range(100):
        clock.output_at_s(index * STEP, 0.02, BLOCK)
    at = [clock.output_at_s(0.5 + index * STEP, 0.02, BLOCK) for index in range(100, 200)]
    assert at[-1] == pytest.approx(0.5 + 199 * STEP + 0.02, abs=1e-6)
    assert clock.jumps == 1


@pytest.mark.parametrize(("claimed", "expected"), [(0.015, 0.015), (3.0, 0.02), (0.0, 0.02), (-1e9, 0.02)])
def test_a_claimed_output_delay_is_clamped_to_the_reported_latency(claimed, expected):
    assert StreamClock(RATE, 0.02).output_at_s(5.0, claimed, BLOCK) == pytest.approx(5.0 + expected)


def test_a_microphone_block_began_at_least_its_own_length_ago():
    assert StreamClock(RATE, 0.005).input_at_s(5.0, 0.0, BLOCK) == pytest.approx(5.0 - 0.01)


def test_a_hole_the_device_reports_is_followed_at_once():
    clock = StreamClock(RATE, 0.02)
    for index in range(100):
        clock.output_at_s(index * STEP, 0.02, BLOCK)
    assert clock.output_at_s(1.1, 0.02, BLOCK, is_hole=True) == pytest.approx(1.12)
