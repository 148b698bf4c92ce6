"""Keeps a microphone and a loudspeaker open: notices loss, reopens, adapts the latency to underruns."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from audio import devices
from audio.devices import LATENCIES, BlockSink, CaptureStream, DeviceInfo, PlaybackStream, Render
from orchestrator.clock import Clock
from orchestrator.contracts.errors import InputError, PartFailed
from orchestrator.contracts.events import DeviceStateChanged, Event
from orchestrator.contracts.ports import EventSink

log = logging.getLogger(__name__)

_UNDERRUNS_TOLERATED = 2
_UNDERRUN_WINDOW_S = 30.0
_RETRY_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class DeviceManager:
    """Owner of both streams. `open`, `check` and `close` belong to one thread; recovery has a thread of its own.

    A lost device is replaced by the named one if it is there again, else by the default one.
    Counters: `lost`, `reopened`; `xruns` of both streams since the start.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        events: EventSink,
        input_name: str | None = None,
        output_name: str | None = None,
        on_block: BlockSink | None = None,
        on_input_opening: Callable[[int], None] | None = None,
        render: Render | None = None,
        on_output_opening: Callable[[int], None] | None = None,
        on_output_lost: Callable[[], None] | None = None,
        on_underflow: Callable[[], None] | None = None,
        on_output_available: Callable[[bool], None] | None = None,
        is_output_busy: Callable[[], bool] | None = None,
    ) -> None:
        """Prepare a stream for each direction that has a `on_block` or `render`.

        `on_*_opening(rate_hz)` runs before the first callback of a stream (Player.attach), `on_output_lost` after
        the last one (Player.detach); `on_output_available` says whether there is a loudspeaker at all.
        While `is_output_busy` says so, nothing is closed to look for a missing microphone.
        """
        self._clock = clock
        self._events = events
        self._names = {"input": input_name, "output": output_name}
        self._on_input_opening = on_input_opening
        self._on_output_opening = on_output_opening
        self._on_output_lost = on_output_lost
        self._on_output_available = on_output_available
        self._is_output_busy = is_output_busy
        self.capture = CaptureStream(on_block, clock) if on_block is not None else None
        self.playback = PlaybackStream(render, clock, on_underflow) if render is not None else None
        self._latency = 0
        self._underruns_seen = 0
        self._underruns_from_s = 0.0
        self._retry = 0
        self._retry_at_s: float | None = None
        self._lock = threading.Lock()
        self._recovery: threading.Thread | None = None
        self._is_closed = False
        self.lost = 0
        self.reopened = 0

    @property
    def xruns(self) -> int:
        """Holes the devices reported, in both directions."""
        return sum(stream.xruns for stream in (self.capture, self.playback) if stream is not None)

    def open(self) -> None:
        """Open what was asked for; a missing or broken device is reported and looked for again later.

        Raises:
            InputError: a device was named that does not exist.
        """
        try:
            found = devices.list_devices()
        except PartFailed as error:
            for direction in self._directions():
                self._tell(direction, None, None, "missing", error.message)
            self._note_output(is_there=False)
            self._plan_retry()
            return
        self._open_all(found, is_strict=True)

    def check(self, now_s: float) -> None:
        """Look after the streams; call a few times a second. Returns at once: recovery runs on its own thread."""
        if self._is_closed or (self._recovery is not None and self._recovery.is_alive()):
            return
        reasons = {
            direction: stream.lost_because(now_s)
            for direction, stream in (("input", self.capture), ("output", self.playback))
            if stream is not None
        }
        lost = {direction: reason for direction, reason in reasons.items() if reason is not None}
        if lost:
            self.lost += len(lost)
            for direction, reason in lost.items():
                stream = self.capture if direction == "input" else self.playback
                device = stream.device if stream is not None else None
                self._tell(direction, device, None, "lost", reason)
            self._recover()
        elif self._retry_at_s is not None and now_s >= self._retry_at_s:
            if self._is_output_busy is not None and self._is_output_busy():
                return
            self._recover()
        elif self._has_too_many_underruns(now_s) and self._latency + 1 < len(LATENCIES):
            self._latency += 1
            log.info("output latency raised to %s after underruns", LATENCIES[self._latency])
            self._start_recovery(self._lengthen_latency)

    def choose(self, *, input_name: str | None, output_name: str | None) -> None:
        """Change to other devices.

        Raises:
            InputError: there is no such device.
        """
        found = devices.list_devices()
        output = devices.choose_output(found, output_name) if self.playback is not None else None
        if self.capture is not None:
            devices.choose_input(found, input_name, output)
        self._names = {"input": input_name, "output": output_name}
        self._recover("changed", "chosen")

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop for good; no callback runs afterwards."""
        self._is_closed = True
        if self._recovery is not None:
            self._recovery.join(timeout_s)
        with self._lock:
            self._close_streams()

    def _directions(self) -> list[str]:
        return [
            direction
            for direction, stream in (("input", self.capture), ("output", self.playback))
            if stream is not None
        ]

    def _recover(self, state: str = "opened", reason: str | None = None) -> None:
        """Reopen everything on a thread of its own; `state` and `reason` are told of what could be opened."""
        self._retry_at_s = None
        self._start_recovery(lambda: self._run_recovery(state, reason))

    def _start_recovery(self, work: Callable[[], None]) -> None:
        self._recovery = threading.Thread(target=work, name="devices", daemon=True)
        self._recovery.start()

    def _lengthen_latency(self) -> None:
        """Open the loudspeaker again with the longer latency; the microphone goes on hearing meanwhile."""
        with self._lock:
            playback = self.playback
            if self._is_closed or playback is None or playback.device is None:
                return
            device = playback.device
            playback.close()
            if self._on_output_lost is not None:
                self._on_output_lost()
            self.reopened += 1
            try:
                playback.open(device, LATENCIES[self._latency], self._on_output_opening)
                self._tell("output", device, playback.rate_hz, "changed", "underruns")
            except PartFailed as error:
                self._tell("output", device, None, "missing", error.message)
                self._plan_retry()
            self._note_output(is_there=playback.is_open)

    def _run_recovery(self, state: str, reason: str | None) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._close_streams()
            try:
                devices.rescan()
                found = devices.list_devices()
            except PartFailed:
                self._note_output(is_there=False)
                self._plan_retry()
                return
            if not self._is_closed:
                self.reopened += 1
                self._open_all(found, is_strict=False, state=state, reason=reason)

    def _open_all(
        self, found: tuple[DeviceInfo, ...], *, is_strict: bool, state: str = "opened", reason: str | None = None
    ) -> None:
        is_missing = False
        output: DeviceInfo | None = None
        latency = LATENCIES[self._latency]
        if self.playback is not None:
            try:
                output = self._pick_output(found, is_strict=is_strict)
                self.playback.open(output, latency, self._on_output_opening)
                self._tell("output", output, self.playback.rate_hz, state, reason)
            except PartFailed as error:
                is_missing = True
                self._tell("output", output, None, "missing", error.message)
            self._note_output(is_there=self.playback.is_open)
        if self.capture is not None:
            device: DeviceInfo | None = None
            try:
                device = self._pick_input(found, output, is_strict=is_strict)
                self.capture.open(device, latency, self._on_input_opening)
                self._tell("input", device, self.capture.rate_hz, state, reason)
            except PartFailed as error:
                is_missing = True
                self._tell("input", device, None, "missing", error.message)
        if is_missing:
            self._plan_retry()
        else:
            self._retry = 0

    def _pick_output(self, found: tuple[DeviceInfo, ...], *, is_strict: bool) -> DeviceInfo:
        try:
            return devices.choose_output(found, self._names["output"])
        except InputError:
            if is_strict:
                raise
            return devices.choose_output(found, None)

    def _pick_input(self, found: tuple[DeviceInfo, ...], output: DeviceInfo | None, *, is_strict: bool) -> DeviceInfo:
        try:
            return devices.choose_input(found, self._names["input"], output)
        except InputError:
            if is_strict:
                self._close_streams()
                raise
            return devices.choose_input(found, None, output)

    def _close_streams(self) -> None:
        if self.capture is not None:
            self.capture.close()
        if self.playback is not None and self.playback.is_open:
            self.playback.close()
            if self._on_output_lost is not None:
                self._on_output_lost()

    def _plan_retry(self) -> None:
        self._retry_at_s = self._clock.monotonic_s() + _RETRY_S[min(self._retry, len(_RETRY_S) - 1)]
        self._retry += 1

    def _has_too_many_underruns(self, now_s: float) -> bool:
        if self.playback is None or not self.playback.is_open:
            return False
        if now_s - self._underruns_from_s > _UNDERRUN_WINDOW_S:
            self._underruns_from_s = now_s
            self._underruns_seen = self.playback.xruns
        if self.playback.xruns - self._underruns_seen <= _UNDERRUNS_TOLERATED:
            return False
        self._underruns_seen = self.playback.xruns
        return True

    def _note_output(self, *, is_there: bool) -> None:
        if self._on_output_available is not None and self.playback is not None:
            self._on_output_available(is_there)

    def _tell(
        self, direction: str, device: DeviceInfo | None, rate_hz: int | None, state: str, reason: str | None
    ) -> None:
        stream = self.capture if direction == "input" else self.playback
        self._events.post(
            Event(
                payload=DeviceStateChanged(
                    direction=direction,
                    device=device.name if device is not None else None,
                    rate=rate_hz,
                    state=state,
                    reason=reason,
                    latency_s=stream.latency_s if stream is not None and stream.is_open else None,
                ),
                source="devices",
            )
        )
