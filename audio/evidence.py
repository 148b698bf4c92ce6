"""From a frame of the front end to the evidence that barge-in decides on; and how loud the user usually is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from audio.barge_in import Evidence
from audio.front_end import FrontFrame, TimedWindow, levels_db
from audio.pcm import power_db, rms_db
from audio.ports import Samples

_LOUD_ECHO_DB = 15.0
_SHORTEST_FRAMES = 50
_KEPT_UTTERANCES = 12
_FIRST_UTTERANCES = 2
_LOUD_SHARE = 0.75
_BELOW_DB = 20.0


def evidence_of(window: TimedWindow, frame: FrontFrame, history: Sequence[FrontFrame], *, is_deaf: bool) -> Evidence:
    """Return what a window of VAD 2 that ended in `frame` says; `history` are the last frames, in time order."""
    echo = frame.echo
    levels = levels_db(window, history)
    residual_db = echo.residual_db
    return Evidence(
        start_s=window.start_s,
        end_s=window.end_s,
        probability=0.0 if is_deaf else window.probability,
        residual_db=residual_db,
        over_echo_db=echo.over_echo_db,
        leak_db=echo.leak_db,
        is_warm=echo.is_warm,
        # What a canceller leaves of a voice has gaps; over a loud echo the gate alone judges it.
        levels_db=levels if residual_db is None or residual_db > _LOUD_ECHO_DB else (),
        level_db=mean_db(levels) if levels else None,
        heard_s=echo.heard_s,
    )


def mean_db(levels: Sequence[float]) -> float:
    """Return the level of the mean power of frames with `levels` (dBFS)."""
    return power_db(float(np.mean(np.power(10.0, np.array(levels) / 10.0))))


class UserLevel:
    """How loud the user talks, from utterances into silence: the level that a quarter of the recent ones exceed.

    The louder ones count, because a television that runs along is taken for a user as well. Known after two utterances.
    """

    def __init__(self) -> None:
        """Know nothing."""
        self._levels: deque[float] = deque(maxlen=_KEPT_UTTERANCES)

    @property
    def level_db(self) -> float | None:
        """The user's level in dBFS, pauses left out; None until it is known."""
        if len(self._levels) < _FIRST_UTTERANCES:
            return None
        return sorted(self._levels)[int(_LOUD_SHARE * len(self._levels))]

    def utterance(self, frames: Sequence[Samples]) -> None:
        """Take the frames of an utterance over which nothing sounded."""
        levels = [rms_db(frame) for frame in frames]
        if levels:
            loud = [level for level in levels if level >= max(levels) - _BELOW_DB]
            if len(loud) >= _SHORTEST_FRAMES:
                self._levels.append(mean_db(loud))

    def reset(self) -> None:
        """Forget the user: another microphone hears another level."""
        self._levels.clear()
