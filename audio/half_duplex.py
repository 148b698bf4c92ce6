"""Whether the echo of a device can be tamed: losses in, one listening mode out."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from audio.ears_config import FRAME_S, EchoConfig
from audio.echo import EchoFrame

_KEPT_FRAMES = 1500
_LEAST_FRAMES = 80
_LONGEST_LAG_FRAMES = 150
_RANGE_DB = 30.0
_ALIKE = 0.8
_ALIKE_IN_A_ROW = 2
_TAIL_S = 0.5


class DuplexGuard:
    """Gives up listening while the character talks where the canceller can't take the echo out.

    Half duplex begins after `untamed_s` of loud echo of which less than `untamed_loss_db` was taken out (a driver that
    distorts or buffers without end, a reference that is not what sounds), and ends once the loss has been over
    `warm_loss_db` for `tamed_s`. It begins, too, after two utterances in a row that rise and fall as what was played
    up to 1.5 s before; then until the device is changed. The stop button, the keys and push-to-talk go on interrupting.
    `tail_s` says how long after the output the echo may still come.
    """

    def __init__(self, config: EchoConfig) -> None:
        """Begin with full duplex."""
        self._config = config
        self._heard_s = 0.0
        self._bad_s = 0.0
        self._good_s = 0.0
        self._levels: deque[tuple[float, float]] = deque(maxlen=_KEPT_FRAMES)
        self._alike = 0
        self._is_late = False
        self.tail_s = 0.0
        self.is_half = False

    def frame(self, echo: EchoFrame) -> bool:
        """Take a frame; return whether the mode has changed."""
        self._levels.append((echo.near_db, echo.far_db))
        fresh_s = echo.heard_s - self._heard_s
        self._heard_s = echo.heard_s
        if fresh_s <= 0.0 or self._is_late or echo.loss_db is None:
            return False
        config = self._config
        self._bad_s = self._bad_s + fresh_s if echo.loss_db < config.untamed_loss_db else 0.0
        self._good_s = self._good_s + fresh_s if echo.loss_db >= config.warm_loss_db else 0.0
        is_half = self._good_s < config.tamed_s if self.is_half else self._bad_s >= config.untamed_s
        has_changed, self.is_half = is_half != self.is_half, is_half
        return has_changed

    def utterance(self, begin_ago_s: float, end_ago_s: float) -> bool:
        """Compare what was said over output with what was played; return whether the mode has changed."""
        count = round((begin_ago_s - end_ago_s) / FRAME_S)
        begin = len(self._levels) - round(begin_ago_s / FRAME_S)
        if count < _LEAST_FRAMES or begin < _LONGEST_LAG_FRAMES:
            return False
        levels = np.array(self._levels)
        lag, alike = _likeness(levels[begin : begin + count, 0], levels[:, 1], begin)
        self._alike = self._alike + 1 if alike >= _ALIKE else 0
        if self._alike < _ALIKE_IN_A_ROW or self._is_late:
            return False
        was_half = self.is_half
        self.is_half = self._is_late = True
        self.tail_s = lag * FRAME_S + _TAIL_S
        return not was_half

    def reset(self) -> bool:
        """Forget the device; return whether the mode has changed."""
        was_half, self.is_half = self.is_half, False
        self._heard_s = self._bad_s = self._good_s = self.tail_s = 0.0
        self._alike = 0
        self._is_late = False
        self._levels.clear()
        return was_half


def _likeness(near_db: NDArray[np.float64], far_db: NDArray[np.float64], begin: int) -> tuple[int, float]:
    """Return the lag at which the loudness of `far_db` is most like that of `near_db`, and how much (−1 to 1)."""
    near = np.maximum(near_db, near_db.max() - _RANGE_DB)
    best = (0, -1.0)
    for lag in range(_LONGEST_LAG_FRAMES):
        part = far_db[begin - lag : begin - lag + len(near)]
        part = np.maximum(part, part.max() - _RANGE_DB)
        if near.std() > 0.0 and part.std() > 0.0:
            alike = float(np.corrcoef(near, part)[0, 1])
            best = max(best, (lag, alike), key=lambda each: each[1])
    return best
