"""The thread of the ears: takes what the device callbacks left in the rings to the ears, and ticks."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from audio.ears import Ears
from audio.echo_path import EchoPath
from audio.ports import Samples
from audio.ring_buffer import RingBuffer
from orchestrator.clock import Clock

log = logging.getLogger(__name__)

BLOCK_S = 0.01
_MAX_ERROR_S = 0.02
_DRIFT_ERROR_S = 0.003
_DRIFT_SMOOTHING = 0.02
_LEAD_MARGIN_S = 0.002
_MAX_BLOCKS_PER_STEP = 50


class ReferenceReader:
    """Reads what the loudspeaker played at the time of a microphone block.

    It reads on sample after sample, and follows the drift of the two device clocks by one sample a block, so
    that the canceller sees no jumps; only an error over 20 ms makes it jump (`jumps`). `lead_s` takes the reference
    from a little later than the block: latencies that devices report are off by some milliseconds, and echo that comes
    before its reference can't be cancelled. What is played is known ahead by the devices' latencies; where that is
    less than the lead, the lead shrinks.
    """

    def __init__(self, ring: RingBuffer, *, rate_hz: int, lead_s: float = 0.04) -> None:
        """Read `ring` for microphone blocks at `rate_hz`."""
        self._ring = ring
        self._ratio = ring.rate_hz / rate_hz
        self._lead_s = lead_s
        self._owed = 0.0
        self._error_s = 0.0
        self._is_synced = False
        self.jumps = 0
        self.short_blocks = 0

    def take(self, at_s: float, frames: int) -> Samples:
        """Return the reference, at the ring's rate, for `frames` from `at_s` on; zeros for what was not played."""
        exact = frames * self._ratio + self._owed
        count = int(exact)
        self._owed = exact - count
        if not self._align(at_s, count):
            return np.zeros(count, np.float32)
        span = self._ring.read(count)
        got = 0 if span is None else len(span.samples)
        if span is not None and got == count:
            return span.samples
        self._is_synced = False
        self.short_blocks += 1
        out: Samples = np.zeros(count, np.float32)
        if span is not None:
            out[:got] = span.samples
        return out

    @property
    def lead_s(self) -> float:
        """How far ahead of the microphone the reference is read."""
        return self._lead_s

    def _align(self, at_s: float, count: int) -> bool:
        newest_s = self._ring.newest_at_s()
        if newest_s is None:
            return False
        ahead_s = newest_s - at_s - count / self._ring.rate_hz
        if 0.0 <= ahead_s < self._lead_s:
            self._lead_s = max(0.0, ahead_s - _LEAD_MARGIN_S)
        wanted_s = at_s + self._lead_s
        if wanted_s >= newest_s:
            self._is_synced = False
            return False
        actual_s = self._ring.time_of(self._ring.read_frames)
        error_s = wanted_s - actual_s if actual_s is not None else 0.0
        if not self._is_synced or abs(error_s) > _MAX_ERROR_S:
            self.jumps += self._is_synced
            self._ring.seek(self._ring.written_frames - round((newest_s - wanted_s) * self._ring.rate_hz))
            self._error_s = 0.0
            self._is_synced = True
            return True
        self._error_s += _DRIFT_SMOOTHING * (error_s - self._error_s)
        if abs(self._error_s) > _DRIFT_ERROR_S:
            self._ring.seek(self._ring.read_frames + (1 if self._error_s > 0.0 else -1))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The rings of the devices in use; None where there is no device. `lead_s`: see `ReferenceReader`.

    `path` is what an earlier run learned of the pair in its room.
    """

    capture: RingBuffer | None
    reference: RingBuffer | None
    lead_s: float = 0.04
    same_room: bool = False
    path: EchoPath | None = None


class EarsThread:
    """Runs `Ears` on the thread "mynah-ears": polls the capture ring every 4 ms, ticks every 10 ms.

    `on_tick(now_s)` runs on this thread, also without a microphone, and must not block. A failure of a block is
    counted (`failures`), the first one of a row is logged and given to `on_failure`; the loop goes on.
    """

    NAME = "mynah-ears"

    def __init__(
        self,
        *,
        ears: Ears,
        clock: Clock,
        on_tick: Callable[[float], None] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
        poll_s: float = 0.004,
        tick_s: float = 0.01,
    ) -> None:
        """Prepare the thread; `start` runs it."""
        self._ears = ears
        self._clock = clock
        self._on_tick = on_tick
        self._on_failure = on_failure
        self._poll_s = poll_s
        self._tick_s = tick_s
        self._next_tick_s = float("-inf")
        self._devices: Devices | None = None
        self._changes: deque[Devices] = deque(maxlen=8)
        self._reference: ReferenceReader | None = None
        self._failing: set[str] = set()
        self._lost_before = 0
        self.failures = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.NAME, daemon=True)

    def start(self) -> None:
        """Run the loop. Once."""
        self._thread.start()

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Ask the loop to end and wait for it; it takes one poll and one block at most. False if it outlasted that."""
        self._stop.set()
        if self._thread.ident is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def connect(self, devices: Devices) -> None:
        """Use other devices from the next poll on. Any thread. What was being said ends there."""
        self._changes.append(devices)

    def stats(self) -> dict[str, int]:
        """Return the counters of the ears and of this thread. Any thread."""
        capture = self._devices.capture if self._devices is not None else None
        reference = self._reference
        return self._ears.stats() | {
            "ears_failures": self.failures,
            "capture_lost_frames": self._lost_before + (capture.lost_frames if capture is not None else 0),
            "reference_jumps": reference.jumps if reference is not None else 0,
            "reference_short_blocks": reference.short_blocks if reference is not None else 0,
        }

    def step(self, now_s: float) -> int:
        """Do one poll: hear what has arrived and tick if it is due; returns the blocks heard.

        For the loop, and for whoever drives the ears without a thread.
        """
        heard = 0
        while self._changes:
            self._change(self._changes.popleft())
        try:
            while heard < _MAX_BLOCKS_PER_STEP and self._hear_block():
                heard += 1
            if heard == 0:
                self._ears.idle(now_s)
            else:
                self._failing.discard("ears")
        except Exception as error:
            self._report("ears", error)
        if self._on_tick is not None and now_s >= self._next_tick_s:
            # After a stall one tick is enough: what polls wants the present, not every missed moment.
            self._next_tick_s = max(self._next_tick_s + self._tick_s, now_s + self._tick_s / 2)
            try:
                self._on_tick(now_s)
                self._failing.discard("tick")
            except Exception as error:
                self._report("tick", error)
        return heard

    def _run(self) -> None:
        while not self._stop.wait(self._poll_s):
            self.step(self._clock.monotonic_s())

    def _hear_block(self) -> bool:
        devices = self._devices
        if devices is None or devices.capture is None:
            return False
        frames = round(devices.capture.rate_hz * BLOCK_S)
        span = devices.capture.read(frames, min_frames=frames)
        if span is None:
            return False
        reference = self._reference.take(span.at_s, len(span.samples)) if self._reference is not None else None
        self._ears.process(span.samples, span.at_s, reference)
        return True

    def _change(self, devices: Devices) -> None:
        if self._devices is not None and self._devices.capture is not None:
            self._lost_before += self._devices.capture.lost_frames
        self._devices = devices
        self._reference = None
        capture, reference = devices.capture, devices.reference
        if capture is None:
            return
        capture.clear()
        rate_hz = capture.rate_hz
        if reference is not None:
            self._reference = ReferenceReader(reference, rate_hz=rate_hz, lead_s=devices.lead_s)
        reference_rate_hz = rate_hz if reference is None else reference.rate_hz
        self._ears.set_devices(
            rate_hz=rate_hz, reference_rate_hz=reference_rate_hz, same_room=devices.same_room, path=devices.path
        )

    def _report(self, part: str, error: Exception) -> None:
        self.failures += 1
        if part in self._failing:
            return
        self._failing.add(part)
        log.error("%s failed on the ears thread: %s", part, error, exc_info=error)
        if self._on_failure is not None:
            self._on_failure(error)
