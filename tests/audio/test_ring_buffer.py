import threading

import numpy as np
import pytest

from audio.ring_buffer import RingBuffer

RATE = 1000


def ramp(begin: int, count: int) -> np.ndarray:
    return np.arange(begin, begin + count, dtype=np.float32)


def test_reads_what_was_written_with_its_time() -> None:
    ring = RingBuffer(capacity_frames=100, rate_hz=RATE)
    assert ring.read(10) is None
    assert ring.newest_at_s() is None
    ring.write(ramp(0, 30), 5.0)
    span = ring.read(20)
    assert span is not None
    np.testing.assert_array_equal(span.samples, ramp(0, 20))
    assert (span.first_frame, span.at_s) == (0, 5.0)
    rest = ring.read(20)
    assert rest is not None
    np.testing.assert_array_equal(rest.samples, ramp(20, 10))
    assert rest.at_s == pytest.approx(5.02)
    assert ring.newest_at_s() == pytest.approx(5.03)


def test_waits_for_whole_blocks() -> None:
    ring = RingBuffer(capacity_frames=100, rate_hz=RATE)
    ring.write(ramp(0, 9), 0.0)
    assert ring.read(10, min_frames=10) is None
    ring.write(ramp(9, 1), 0.009)
    span = ring.read(10, min_frames=10)
    assert span is not None
    np.testing.assert_array_equal(span.samples, ramp(0, 10))


def test_wraps_round_without_a_seam() -> None:
    ring = RingBuffer(capacity_frames=64, rate_hz=RATE)
    got = []
    for block in range(40):
        ring.write(ramp(block * 25, 25), block * 0.025)
        span = ring.read(1000)
        assert span is not None
        assert span.at_s == pytest.approx(block * 0.025)
        got.append(span.samples)
    np.testing.assert_array_equal(np.concatenate(got), ramp(0, 1000))
    assert ring.lost_frames == 0


def test_overflow_keeps_the_newest_and_counts_the_rest() -> None:
    ring = RingBuffer(capacity_frames=50, rate_hz=RATE)
    for block in range(10):
        ring.write(ramp(block * 20, 20), block * 0.02)
    assert ring.available_frames == 50
    span = ring.read(500)
    assert span is not None
    np.testing.assert_array_equal(span.samples, ramp(150, 50))
    assert span.at_s == pytest.approx(0.15)
    assert ring.lost_frames == 150


def test_a_block_longer_than_the_ring_leaves_its_end() -> None:
    ring = RingBuffer(capacity_frames=50, rate_hz=RATE)
    ring.write(ramp(0, 120), 1.0)
    span = ring.read(500)
    assert span is not None
    np.testing.assert_array_equal(span.samples, ramp(70, 50))
    assert span.at_s == pytest.approx(1.07)


def test_a_hole_in_time_ends_the_span() -> None:
    ring = RingBuffer(capacity_frames=500, rate_hz=RATE)
    ring.write(ramp(0, 20), 1.0)
    ring.write(ramp(20, 20), 1.021)  # jitter is no hole
    ring.write(ramp(40, 20), 2.0)
    first, second = ring.read(500), ring.read(500)
    assert first is not None
    assert second is not None
    assert (len(first.samples), first.at_s) == (40, 1.0)
    assert (len(second.samples), second.at_s) == (20, 2.0)
    assert ring.time_of(30) == pytest.approx(1.031)


def test_seek_stays_within_what_is_held() -> None:
    ring = RingBuffer(capacity_frames=50, rate_hz=RATE)
    ring.write(ramp(0, 50), 0.0)
    ring.write(ramp(50, 20), 0.05)
    ring.seek(0)
    assert ring.read_frames == 20
    ring.seek(1000)
    assert ring.read_frames == 70
    ring.seek(40)
    span = ring.read(3)
    assert span is not None
    np.testing.assert_array_equal(span.samples, ramp(40, 3))
    ring.clear()
    assert ring.read(1) is None


def test_two_threads_never_see_a_mixture() -> None:
    ring = RingBuffer(capacity_frames=4096, rate_hz=RATE)
    blocks = 3000

    def write() -> None:
        for block in range(blocks):
            ring.write(ramp(block * 64, 64), block * 0.064)

    writer = threading.Thread(target=write, name="test-writer")
    writer.start()
    seen = 0
    while writer.is_alive() or ring.available_frames:
        span = ring.read(500)
        if span is None:
            continue
        np.testing.assert_array_equal(span.samples, ramp(span.first_frame, len(span.samples)))
        assert span.at_s == pytest.approx(span.first_frame / RATE)
        seen += len(span.samples)
    writer.join()
    assert seen + ring.lost_frames == blocks * 64
