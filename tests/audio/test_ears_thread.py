"""The thread of the ears and how it pairs the microphone with what the loudspeaker played."""

import logging
import threading

import numpy as np
import pytest
from rigs.ears_rig import FakeEvents, FakePlayer, FakeRecogniser, LoudVad, square

from audio.capture import Devices, EarsThread, ReferenceReader
from audio.ears import Ears
from audio.ears_config import EarsConfig
from audio.echo import NoEchoCanceller
from audio.ports import Samples
from audio.ring_buffer import RingBuffer
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.ids import IdFactory

MIC = 16_000


class Spy(Ears):
    """Ears that remember what they were given; blocks louder than full scale make them fail."""

    def __init__(self) -> None:
        vad = LoudVad()
        self.sink = FakeEvents()
        super().__init__(
            config=EarsConfig(),
            rate_hz=MIC,
            player=FakePlayer(),
            recogniser=FakeRecogniser(),
            events=self.sink,
            ids=IdFactory(),
            echo=NoEchoCanceller(),
            vad1=vad,
            vad2=vad,
        )
        self.blocks: list[tuple[float, Samples, Samples | None]] = []
        self.threads: set[str] = set()

    def process(self, block: Samples, at_s: float, reference: Samples | None = None) -> None:
        self.threads.add(threading.current_thread().name)
        if block.max() > 1.0:
            raise RuntimeError("too loud")
        self.blocks.append((at_s, block, reference))
        super().process(block, at_s, reference)


def make(clock: VirtualClock | None = None, **more: object) -> tuple[EarsThread, Spy]:
    spy = Spy()
    return EarsThread(ears=spy, clock=clock or VirtualClock(), **more), spy  # type: ignore[arg-type]


def ramp(begin: int, count: int) -> Samples:
    return (np.arange(begin, begin + count) * 1e-6).astype(np.float32)


def test_blocks_are_ten_milliseconds_with_their_times() -> None:
    thread, spy = make()
    capture = RingBuffer(capacity_frames=2 * MIC, rate_hz=MIC)
    thread.connect(Devices(capture=capture, reference=None))
    assert thread.step(0.0) == 0
    capture.write(np.zeros(400, np.float32), 7.0)
    assert thread.step(0.1) == 2
    assert [(at_s, len(block)) for at_s, block, _ in spy.blocks] == [(7.0, 160), (pytest.approx(7.01), 160)]
    assert spy.blocks[0][2] is None
    assert thread.step(0.1) == 0


def test_the_reference_is_what_sounded_at_that_time() -> None:
    thread, spy = make()
    capture = RingBuffer(capacity_frames=MIC, rate_hz=MIC)
    reference = RingBuffer(capacity_frames=96_000, rate_hz=48_000)
    thread.connect(Devices(capture=capture, reference=reference, lead_s=0.02))
    thread.step(0.0)
    reference.write(ramp(0, 48_000), 10.0)
    capture.write(np.zeros(1600, np.float32), 10.3)
    thread.step(0.0)
    for index, (_, _, far) in enumerate(spy.blocks):
        assert far is not None
        np.testing.assert_allclose(far, ramp(round(0.32 * 48_000) + 480 * index, 480), atol=1.5e-6)


def test_what_was_not_played_is_silence() -> None:
    thread, spy = make()
    capture = RingBuffer(capacity_frames=MIC, rate_hz=MIC)
    reference = RingBuffer(capacity_frames=48_000, rate_hz=48_000)
    thread.connect(Devices(capture=capture, reference=reference, lead_s=0.0))
    thread.step(0.0)
    reference.write(np.full(720, 0.5, np.float32), 10.0)  # ends inside the second block
    capture.write(np.zeros(480, np.float32), 10.0)
    thread.step(0.0)
    first, second, third = (far for _, _, far in spy.blocks)
    assert first is not None and second is not None and third is not None
    assert first.min() == 0.5
    assert second[:238].min() == 0.5
    assert second[242:].max() == 0.0
    assert third.max() == 0.0


@pytest.mark.parametrize("drift_ppm", [-200.0, 200.0])
def test_drifting_clocks_neither_jump_nor_part(drift_ppm: float) -> None:
    """The loudspeaker's card runs fast or slow: the reference read is still the one of the moment."""
    rate = 48_000
    ring = RingBuffer(capacity_frames=2 * rate, rate_hz=rate)
    reader = ReferenceReader(ring, rate_hz=MIC, lead_s=0.0)
    true_rate = rate * (1.0 + drift_ppm * 1e-6)
    written, worst_s = 0, 0.0
    for block in range(12_000):  # two minutes; uncorrected, 24 ms would have gathered
        while written / true_rate < block * 0.01 + 0.1:
            ring.write(np.arange(written, written + 480, dtype=np.float32), written / true_rate)
            written += 480
        got = reader.take(block * 0.01, 160)
        assert len(got) == 480
        if block > 100:
            worst_s = max(worst_s, abs(float(got[0]) / true_rate - block * 0.01))
    assert reader.jumps == 0
    assert reader.short_blocks == 0
    assert worst_s < 0.005


def test_the_lead_shrinks_to_what_is_known_ahead() -> None:
    ring = RingBuffer(capacity_frames=MIC, rate_hz=MIC)
    reader = ReferenceReader(ring, rate_hz=MIC, lead_s=0.05)
    for block in range(200):
        ring.write(ramp(160 * block, 160), block * 0.01)
        if block > 10:
            at_s = (block - 2) * 0.01  # 20 ms are known beyond the block
            got = reader.take(at_s, 160)
            np.testing.assert_allclose(got, ramp(round((at_s + reader.lead_s) * MIC), 160), atol=2e-6)
    assert reader.lead_s == pytest.approx(0.018)
    assert reader.short_blocks == 0
    assert reader.take(99.0, 160).max() == 0.0
    assert reader.lead_s == pytest.approx(0.018)


def test_a_stalled_loudspeaker_is_found_again() -> None:
    ring = RingBuffer(capacity_frames=MIC, rate_hz=MIC)
    reader = ReferenceReader(ring, rate_hz=MIC, lead_s=0.0)
    ring.write(ramp(0, 3200), 0.0)
    np.testing.assert_allclose(reader.take(0.1, 160), ramp(1600, 160), atol=1.5e-6)
    ring.write(ramp(3200, 3200), 5.0)
    np.testing.assert_allclose(reader.take(5.1, 160), ramp(4800, 160), atol=1.5e-6)
    assert reader.take(9.0, 160).max() == 0.0


def test_ticks_come_without_a_microphone_and_do_not_pile_up() -> None:
    ticks: list[float] = []
    thread, _ = make(on_tick=ticks.append)
    for step in range(100):
        thread.step(step * 0.004)
    assert len(ticks) == pytest.approx(40, abs=2)
    ticks.clear()
    for _ in range(10):
        thread.step(50.0)
    assert len(ticks) == 1


def test_a_failure_is_told_once_and_the_loop_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Exception] = []
    thread, spy = make(on_failure=failures.append)
    capture = RingBuffer(capacity_frames=MIC, rate_hz=MIC)
    thread.connect(Devices(capture=capture, reference=None))
    thread.step(0.0)
    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            capture.write(np.full(160, 2.0, np.float32), 0.0)
            thread.step(0.0)
    assert len(failures) == 1
    assert thread.stats()["ears_failures"] == 5
    assert len(caplog.records) == 1
    capture.write(np.zeros(160, np.float32), 0.05)
    assert thread.step(0.0) == 1
    assert len(spy.blocks) == 1


def test_lost_samples_are_counted_over_device_changes() -> None:
    thread, _ = make()
    first = RingBuffer(capacity_frames=1600, rate_hz=MIC)
    thread.connect(Devices(capture=first, reference=None))
    thread.step(0.0)
    first.write(np.zeros(1600, np.float32), 0.0)
    first.write(np.zeros(800, np.float32), 0.1)
    thread.step(0.0)
    assert thread.stats()["capture_lost_frames"] == 800
    thread.connect(Devices(capture=RingBuffer(capacity_frames=1600, rate_hz=MIC), reference=None))
    thread.step(0.0)
    assert thread.stats()["capture_lost_frames"] == 800


def test_a_device_that_goes_in_mid_word_ends_the_utterance() -> None:
    thread, spy = make()
    capture = RingBuffer(capacity_frames=MIC, rate_hz=MIC)
    thread.connect(Devices(capture=capture, reference=None))
    thread.step(0.0)
    capture.write(square(8000, MIC, 0.1), 0.0)
    thread.step(0.5)
    assert len(spy.sink.speech("onset")) == 1
    thread.connect(Devices(capture=None, reference=None))
    thread.step(0.6)
    thread.step(1.2)
    assert len(spy.sink.turn_ends()) == 1


def test_the_thread_has_a_name_and_stops_in_time() -> None:
    heard, asked = threading.Event(), threading.Event()
    spy = Spy()

    def tick(now_s: float) -> None:
        asked.set()
        if spy.blocks:
            heard.set()

    thread = EarsThread(ears=spy, clock=SystemClock(), on_tick=tick)
    capture = RingBuffer(capacity_frames=MIC, rate_hz=MIC)
    thread.connect(Devices(capture=capture, reference=None))
    thread.start()
    assert asked.wait(5.0)
    capture.write(np.zeros(320, np.float32), 0.0)
    assert heard.wait(5.0)
    assert thread.stop(1.0)
    assert spy.threads == {"mynah-ears"}
    assert "mynah-ears" not in {each.name for each in threading.enumerate()}
    assert thread.stop(1.0)


def test_a_thread_that_never_started_stops_too() -> None:
    thread, _ = make()
    assert thread.stop()
