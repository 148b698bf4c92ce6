"""From a device's callbacks to a steady monotonic time for each block."""

from __future__ import annotations

_JUMP_S = 0.05
_INPUT_JUMP_AFTER_S = 0.3
_OUTPUT_JUMP_AFTER_S = 0.03
_LATE_GAIN = 0.01
_EARLY_GAIN = 0.1
_BOUND_S = 0.25


class StreamClock:
    """Says when the first sample of each block was at the microphone, or will be at the loudspeaker.

    Callbacks come in bunches and late; samples do not. So the time runs on with the samples and only leans slowly
    towards what each callback measures, less slowly when one came earlier than expected, because lateness is the
    rule. A jump is followed at once when the device reports a hole, else once it has lasted: briefly for outputs,
    whose claimed delay makes up for a late callback, longer for inputs. `jumps` counts them.
    """

    def __init__(self, rate_hz: float, reported_latency_s: float) -> None:
        """Trust delays up to `reported_latency_s`, which also stands in for a device that reports none."""
        self._rate_hz = rate_hz
        self._latency_s = min(max(reported_latency_s, 0.0), _BOUND_S)
        self._next_s: float | None = None
        self._off_s = 0.0
        self._least_s = 0.0
        self.jumps = 0

    def output_at_s(self, now_s: float, delay_s: float, frames: int, *, is_hole: bool = False) -> float:
        """Return the time at the loudspeaker of the first of `frames`; `delay_s` is what the device claims."""
        return self._steady(now_s + self._trusted(delay_s), frames, 0.0 if is_hole else _OUTPUT_JUMP_AFTER_S)

    def input_at_s(self, now_s: float, delay_s: float, frames: int, *, is_hole: bool = False) -> float:
        """Return the time at the microphone of the first of `frames`; `delay_s` is how long ago the device claims."""
        measured_s = now_s - max(self._trusted(delay_s), frames / self._rate_hz)
        return self._steady(measured_s, frames, 0.0 if is_hole else _INPUT_JUMP_AFTER_S)

    def _trusted(self, delay_s: float) -> float:
        return min(delay_s, self._latency_s) if delay_s > 0.0 else self._latency_s

    def _steady(self, measured_s: float, frames: int, jump_after_s: float) -> float:
        if self._next_s is None:
            self._next_s = measured_s
        error_s = measured_s - self._next_s
        if abs(error_s) <= _JUMP_S:
            self._off_s = 0.0
            self._next_s += (_LATE_GAIN if error_s > 0.0 else _EARLY_GAIN) * error_s
        else:
            self._least_s = error_s if not self._off_s else min(self._least_s, error_s, key=abs)
            self._off_s += frames / self._rate_hz
            if self._off_s >= jump_after_s:
                self._next_s += self._least_s
                self._off_s = 0.0
                self.jumps += 1
        at_s = self._next_s
        self._next_s += frames / self._rate_hz
        return at_s
