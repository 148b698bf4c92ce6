"""How well a canceller takes the echo out: levels in, a loss in dB out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from enum import Enum

from audio.ears_config import FRAME_S, EchoConfig

_STEP_FRAMES = 10
_WITHIN_DB = 12.0
_LOUD_DB = -65.0
_OVER_FLOOR_DB = 10.0
_MEDIAN = 0.5
_LEAK_SHARE = 0.8
_LEAK_FIRST_STEPS = 30
_LEAK_DOUBT_DB = 6.0
_GOOD_STEPS = 3
_OTHER_STEPS = 3


class Doubt(Enum):
    """Whether a canceller that was prepared for a room is right about it."""

    NONE = "none"
    OPEN = "open"
    WRONG = "wrong"


class Trial:
    """Judges a canceller by its first tenths of a second of real echo: right at three good ones, wrong at three others.

    One that was prepared for another room lets the echo pass for longer than one that knows nothing.
    """

    def __init__(self, good_db: float) -> None:
        """Call a step good that takes out `good_db`."""
        self._good_db = good_db

    def judge(self, steps_db: Sequence[float]) -> Doubt:
        """Say what `steps_db`, all since the beginning, tell."""
        good = sum(step >= self._good_db for step in steps_db)
        if good >= _GOOD_STEPS:
            return Doubt.NONE
        return Doubt.WRONG if len(steps_db) - good >= _OTHER_STEPS else Doubt.OPEN


class Convergence:
    """Tracks the echo return loss (input over output) of the loud moments of the echo.

    Only frames with an echo near its loudest count, ten of them make a step, and the median of the last
    `convergence_steps` steps is the loss: words of the user make single steps small and move it little. Warm once the
    loss reached `warm_loss_db`; cold again below half of it. The leak is how loud the rest of the echo usually gets
    beside the echo at its loudest: large in halls, where the echo comes for longer than the canceller's filter lasts.
    """

    def __init__(self, config: EchoConfig) -> None:
        """Start cold."""
        self._config = config
        self._steps: deque[float] = deque(maxlen=config.convergence_steps)
        self._leaks: deque[float] = deque(maxlen=config.leak_steps)
        self._leak_db: float | None = None
        self._expected_db: float | None = None
        self._leak_frames = 0
        self._highest_db = -math.inf
        self._frames = 0
        self._sum_db = 0.0
        self._count = 0
        self.is_warm = False

    @property
    def steps_db(self) -> tuple[float, ...]:
        """The losses of the recent steps, the latest last."""
        return tuple(self._steps)

    def expect(self, leak_db: float) -> None:
        """Reckon with the leak of an earlier run until this one's is known, but only where the loss is as good."""
        self._expected_db = leak_db + _LEAK_DOUBT_DB

    @property
    def heard_s(self) -> float:
        """How much echo was heard since the last reset."""
        return self._frames * FRAME_S

    @property
    def loss_db(self) -> float | None:
        """Median loss of the recent loud echo; None before `warm_steps` steps of it."""
        if len(self._steps) < self._config.warm_steps:
            return None
        return sorted(self._steps)[int(_MEDIAN * len(self._steps))]

    @property
    def leak_db(self) -> float | None:
        """What the rest of the echo reaches relative to the echo; None before three seconds of output."""
        if self._leak_db is None and self.is_warm:
            return self._expected_db
        return self._leak_db

    def frame(self, near_db: float, clean_db: float, echo_db: float, *, floor_db: float | None = None) -> None:
        """Take the levels of a frame in which output sounds; `echo_db` is the echo at its loudest of late.

        What is hardly over `floor_db`, the noise of the room, says nothing: noise can't be cancelled.
        """
        self._note_leak(clean_db - echo_db)
        least_db = _LOUD_DB if floor_db is None else max(_LOUD_DB, floor_db + _OVER_FLOOR_DB)
        if near_db < max(least_db, echo_db - _WITHIN_DB):
            return
        self._frames += 1
        self._sum_db += near_db - clean_db
        self._count += 1
        if self._count < _STEP_FRAMES:
            return
        self._steps.append(self._sum_db / self._count)
        self._sum_db, self._count = 0.0, 0
        loss_db = self.loss_db
        if loss_db is not None:
            self.is_warm = loss_db >= self._config.warm_loss_db * (0.5 if self.is_warm else 1.0)

    def reset(self) -> None:
        """Forget everything; the canceller begins anew."""
        self._steps.clear()
        self._leaks.clear()
        self._leak_db = self._expected_db = None
        self._leak_frames = 0
        self._highest_db = -math.inf
        self._frames = 0
        self._sum_db = 0.0
        self._count = 0
        self.is_warm = False

    def _note_leak(self, over_echo_db: float) -> None:
        self._highest_db = max(self._highest_db, over_echo_db)
        self._leak_frames += 1
        if self._leak_frames % _STEP_FRAMES:
            return
        self._leaks.append(self._highest_db)
        self._highest_db = -math.inf
        if len(self._leaks) >= _LEAK_FIRST_STEPS:
            # Words of the user are louder, but never most of what is heard while the character talks.
            self._leak_db = sorted(self._leaks)[int(_LEAK_SHARE * len(self._leaks))]
