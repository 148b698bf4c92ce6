"""Sound devices: names, choice, streams. The only module that imports sounddevice."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audio.ports import Samples
from audio.stream_clock import StreamClock
from orchestrator.clock import Clock
from orchestrator.contracts.errors import InputError, PartFailed

log = logging.getLogger(__name__)

BLOCK_S = 0.01
LATENCIES: tuple[float | str, ...] = ("low", 0.05, 0.1, 0.2)
"""Latency asked of the device, in the order they are tried as underruns show that one is too short."""

_FALLBACK_RATES_HZ = (48_000, 44_100, 32_000, 16_000)
_MAX_BLOCK = 16_384
_BLUETOOTH_WORDS = ("bluetooth", "bluez", "hands-free", "handsfree", "headset (", "airpods", "a2dp", "hfp", "hsp")
_BUILT_IN_WORDS = ("built-in", "builtin", "internal", "macbook", "microphone array", "realtek", "hda intel", "内置")
_SOFTWARE_CARDS = ("pulse", "default", "pipewire", "sysdefault")
_STALLED_AFTER_S = 1.0
_GRACE_S = 2.5
_STARTING_CALLBACKS = 20
"""Holes while a stream starts are not held against its latency."""

BlockSink = Callable[[Samples, float], None]
"""Takes a mono float32 block and the monotonic time of its first sample at the microphone; on the device's thread."""

Render = Callable[[Samples, float], None]
"""Fills a mono float32 block, given the monotonic time of its first sample at the loudspeaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """A device as the system names it."""

    index: int
    name: str
    host_api: str
    inputs: int
    outputs: int
    rate_hz: int
    is_default_input: bool
    is_default_output: bool
    is_bluetooth: bool


def _sounddevice() -> Any:
    try:
        import sounddevice
    except OSError as error:
        raise PartFailed(
            "portaudio_missing",
            "no sound: the PortAudio library is not installed (Debian, Ubuntu: apt install libportaudio2)",
            part="devices",
            recoverable=True,
        ) from error
    return sounddevice


def list_devices() -> tuple[DeviceInfo, ...]:
    """Return all devices.

    Raises:
        PartFailed: there is no sound system.
    """
    sd = _sounddevice()
    try:
        apis = sd.query_hostapis()
        default_in, default_out = sd.default.device
        raw = list(sd.query_devices())
    except sd.PortAudioError as error:
        raise PartFailed("sound_failed", f"no sound: {error}", part="devices", recoverable=True) from error
    if default_in < 0 and apis:
        default_in = apis[0]["default_input_device"]
    if default_out < 0 and apis:
        default_out = apis[0]["default_output_device"]
    return tuple(
        DeviceInfo(
            index=place,
            name=str(device["name"]),
            host_api=str(apis[device["hostapi"]]["name"]),
            inputs=int(device["max_input_channels"]),
            outputs=int(device["max_output_channels"]),
            rate_hz=int(device["default_samplerate"]),
            is_default_input=place == default_in,
            is_default_output=place == default_out,
            is_bluetooth=_has_word(str(device["name"]), _BLUETOOTH_WORDS),
        )
        for place, device in enumerate(raw)
    )


def choose_output(devices: Sequence[DeviceInfo], name: str | None) -> DeviceInfo:
    """Return the output called `name` (None: the default).

    Raises:
        InputError: no output has that name.
        PartFailed: there is no output.
    """
    usable = [device for device in devices if device.outputs > 0]
    if name is not None:
        return _named(usable, name, "output")
    return _default(usable, [device for device in usable if device.is_default_output], "output")


def choose_input(devices: Sequence[DeviceInfo], name: str | None, output: DeviceInfo | None) -> DeviceInfo:
    """Return the input called `name`; None: the default, but beside a Bluetooth output the built-in microphone.

    A Bluetooth headset whose microphone is open falls back to telephone quality in both directions.

    Raises:
        InputError: no input has that name.
        PartFailed: there is no input.
    """
    usable = [device for device in devices if device.inputs > 0]
    if name is not None:
        return _named(usable, name, "input")
    chosen = _default(usable, [device for device in usable if device.is_default_input], "input")
    if output is not None and output.is_bluetooth and chosen.is_bluetooth:
        others = [device for device in usable if not device.is_bluetooth and device.host_api == chosen.host_api]
        built_in = [device for device in others if _has_word(device.name, _BUILT_IN_WORDS)]
        return (built_in or others or [chosen])[0]
    return chosen


def _default(usable: Sequence[DeviceInfo], marked: Sequence[DeviceInfo], direction: str) -> DeviceInfo:
    if not usable:
        what = "microphone" if direction == "input" else "loudspeaker"
        raise PartFailed(f"no_{direction}", f"no {what} was found", part="devices", recoverable=True)
    return (marked or usable)[0]


def _named(usable: Sequence[DeviceInfo], name: str, direction: str) -> DeviceInfo:
    wanted = name.strip().casefold()
    if wanted.isdigit():
        matches = [device for device in usable if device.index == int(wanted)]
    else:
        matches = [device for device in usable if device.name.casefold() == wanted]
        matches = matches or [device for device in usable if wanted and wanted in device.name.casefold()]
    if not matches:
        names = ", ".join(dict.fromkeys(device.name for device in usable)) or "none"
        raise InputError("device_unknown", f"unknown {direction} device {name!r}; there are: {names}", part="devices")
    return matches[0]


def _has_word(name: str, words: Sequence[str]) -> bool:
    folded = name.casefold()
    return any(word in folded for word in words)


class _Stream:
    """What capture and playback share: opening, liveness and counts. Opened and closed by one thread."""

    kind = ""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stream: Any = None
        self._is_finished = False
        self._last_callback_s = 0.0
        self._opened_s = 0.0
        self.device: DeviceInfo | None = None
        self.rate_hz = 0
        self.latency_s = 0.0
        self.xruns = 0
        self.failures = 0
        self.callbacks = 0

    @property
    def is_open(self) -> bool:
        """Whether a stream is there, alive or not."""
        return self._stream is not None

    def lost_because(self, now_s: float) -> str | None:
        """Return why the open stream has to be given up (`finished`, `stalled`); None while it lives."""
        if self._stream is None:
            return None
        if self._is_finished:
            return "finished"
        limit_s = _STALLED_AFTER_S if self.callbacks else _GRACE_S
        return "stalled" if now_s - max(self._last_callback_s, self._opened_s) > limit_s else None

    def close(self) -> None:
        """Abort and close the stream; no callback runs afterwards. Closing twice is once."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            stream.abort(ignore_errors=True)
        finally:
            stream.close(ignore_errors=True)

    def _start(
        self, make: Callable[..., Any], device: DeviceInfo, channels: Sequence[int], latency: float | str
    ) -> None:
        sd = _sounddevice()
        error: Exception | None = None
        for rate_hz, count in itertools.product(_rates(device), channels):
            try:
                self._is_finished = False
                self.callbacks = 0
                stream = make(
                    samplerate=rate_hz,
                    blocksize=round(rate_hz * BLOCK_S),
                    device=device.index,
                    channels=count,
                    dtype="float32",
                    latency=latency,
                    callback=self._callback,
                    finished_callback=self._on_finished,
                )
            except (sd.PortAudioError, ValueError) as failure:
                error = failure
                continue
            self.device = device
            self.rate_hz = rate_hz
            self.latency_s = float(stream.latency)
            self._prepare(rate_hz)
            self._opened_s = self._clock.monotonic_s()
            try:
                stream.start()
            except sd.PortAudioError as failure:
                stream.close(ignore_errors=True)
                error = failure
                continue
            self._stream = stream
            return
        message = f"{self.kind} device {device.name} cannot be opened: {error}"
        raise PartFailed("device_failed", message, part="devices", recoverable=True) from error

    def _prepare(self, rate_hz: int) -> None:
        self._time = StreamClock(rate_hz, self.latency_s)

    def _callback(self, *args: Any) -> None:
        raise NotImplementedError

    def _on_finished(self) -> None:
        self._is_finished = True


class CaptureStream(_Stream):
    """An open microphone: mono blocks of 10 ms at the device's own rate go to `on_block`."""

    kind = "input"

    def __init__(self, on_block: BlockSink, clock: Clock) -> None:
        """Hand every block to `on_block` on the device's thread."""
        super().__init__(clock)
        self._on_block = on_block
        self._mono: Samples = np.zeros(_MAX_BLOCK, dtype=np.float32)

    def open(
        self, device: DeviceInfo, latency: float | str = "low", prepare: Callable[[int], None] | None = None
    ) -> None:
        """Open `device`; `prepare(rate_hz)` runs before the first block.

        Raises:
            PartFailed: the device cannot be opened.
        """
        self._user_prepare = prepare
        self._start(_sounddevice().InputStream, device, (1, min(2, device.inputs)), latency)

    def _prepare(self, rate_hz: int) -> None:
        super()._prepare(rate_hz)
        if self._user_prepare is not None:
            self._user_prepare(rate_hz)

    def _callback(self, indata: Any, frames: int, time: Any, status: Any) -> None:
        now_s = self._clock.monotonic_s()
        self._last_callback_s = now_s
        self.callbacks += 1
        is_hole = bool(status and status.input_overflow)
        self.xruns += is_hole
        try:
            at_s = self._time.input_at_s(now_s, time.currentTime - time.inputBufferAdcTime, frames, is_hole=is_hole)
            mono = self._mono[:frames]
            if indata.shape[1] == 1:
                np.copyto(mono, indata[:, 0])
            else:
                np.add(indata[:, 0], indata[:, 1], out=mono)
                np.multiply(mono, 0.5, out=mono)
            self._on_block(mono, at_s)
        except Exception:
            self.failures += 1


class PlaybackStream(_Stream):
    """An open loudspeaker: `render` fills mono blocks of 10 ms, which go to the first two channels."""

    kind = "output"

    def __init__(self, render: Render, clock: Clock, on_underflow: Callable[[], None] | None = None) -> None:
        """Let `render` fill every block on the device's thread; `on_underflow` counts the holes the device reports."""
        super().__init__(clock)
        self._render = render
        self._on_underflow = on_underflow
        self.extra_delay_s = 0.0
        """What the device does not report, for instance over Bluetooth; measured by the echo test."""
        self._mono: Samples = np.zeros(_MAX_BLOCK, dtype=np.float32)

    def open(
        self, device: DeviceInfo, latency: float | str = "low", prepare: Callable[[int], None] | None = None
    ) -> None:
        """Open `device`; `prepare(rate_hz)` runs before the first block.

        Raises:
            PartFailed: the device cannot be opened.
        """
        self._user_prepare = prepare
        self._start(_sounddevice().OutputStream, device, (min(2, device.outputs), 1), latency)

    def _prepare(self, rate_hz: int) -> None:
        super()._prepare(rate_hz)
        if self._user_prepare is not None:
            self._user_prepare(rate_hz)

    def _callback(self, outdata: Any, frames: int, time: Any, status: Any) -> None:
        now_s = self._clock.monotonic_s()
        self._last_callback_s = now_s
        self.callbacks += 1
        is_hole = bool(status and status.output_underflow) and self.callbacks > _STARTING_CALLBACKS
        if is_hole:
            self.xruns += 1
            if self._on_underflow is not None:
                self._on_underflow()
        try:
            at_s = self._time.output_at_s(now_s, time.outputBufferDacTime - time.currentTime, frames, is_hole=is_hole)
            mono = self._mono[:frames]
            self._render(mono, at_s + self.extra_delay_s)
            outdata[:] = mono[:, np.newaxis]
        except Exception:
            self.failures += 1
            outdata.fill(0.0)


def rescan() -> None:
    """Let the system be searched for devices anew; every stream must be closed.

    Raises:
        PartFailed: there is no sound system.
    """
    sd = _sounddevice()
    try:
        sd._terminate()
        sd._initialize()
    except sd.PortAudioError as error:
        raise PartFailed("sound_failed", f"no sound: {error}", part="devices", recoverable=True) from error


def _rates(device: DeviceInfo) -> list[int]:
    """Return the rates to try: the device's own; a software card has none of its own and takes 48 kHz."""
    is_software = device.host_api == "ALSA" and device.name.casefold() in _SOFTWARE_CARDS
    first = 48_000 if is_software else device.rate_hz
    return list(dict.fromkeys(rate for rate in (first, *_FALLBACK_RATES_HZ) if rate > 0))
