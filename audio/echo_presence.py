"""Whether the loudspeaker reaches the microphone at all: numbers in, yes or no out.

With headphones there is no echo, yet a canceller that has a reference expects one, and takes the user's first words
for it. What gives headphones away: loud output, and the microphone stays at its noise floor.
"""

from __future__ import annotations

from collections import deque

from audio.ears_config import EchoConfig

_STEP_FRAMES = 10
_FLOOR_STEPS = 50
_FIRST_FLOOR_STEPS = 5
_SETTLED_STEPS = 8
_HIGHEST_FLOOR_DB = -40.0
_FLOOR_SHARE = 0.1
_QUIET_SHARE = 0.4
_FAR_FADE_DB = 0.05
_FAR_WITHIN_DB = 10.0
_LOWEST_FLOOR_DB = -70.0


class EchoPresence:
    """Compares the microphone's peaks while loud output sounds with its noise floor.

    A sample is taken every 0.1 s in which output of the last 0.4 s was about as loud as it gets; when enough of the
    recent ones are at the floor, there is no echo. The user's voice only makes samples louder, so it can delay the
    finding that there is none, not fake it. The floor is learned while nothing sounds and the room has become quiet:
    under a voice that reverberates it can't be told from the echo.
    """

    def __init__(self, config: EchoConfig) -> None:
        """Presume an echo."""
        self._config = config
        self._near: deque[float] = deque(maxlen=4 * _STEP_FRAMES)
        self._far: deque[float] = deque(maxlen=4 * _STEP_FRAMES)
        self._floor: deque[float] = deque(maxlen=_FLOOR_STEPS)
        self._lowest: deque[float] = deque(maxlen=_FLOOR_STEPS)
        self._excess: deque[float] = deque(maxlen=config.presence_samples)
        self._loudest_far_db = config.presence_far_db
        self._silent_steps = 0
        self._frames = 0
        self.has_echo = True

    @property
    def floor_db(self) -> float | None:
        """The room's noise; None before enough silence was heard."""
        if len(self._floor) < _FIRST_FLOOR_STEPS:
            return None
        floors, lowest = sorted(self._floor), sorted(self._lowest)
        quiet_db = floors[int(_FLOOR_SHARE * len(floors))]
        # A fan that was switched off since then lowers what is heard between the words, too.
        return max(_LOWEST_FLOOR_DB, min(quiet_db, lowest[int(_FLOOR_SHARE * len(lowest))]))

    def frame(self, near_db: float, far_db: float) -> bool:
        """Take the levels of one frame of 10 ms (near smoothed over 50 ms); return whether there is echo."""
        self._near.append(near_db)
        self._far.append(far_db)
        self._frames += 1
        if self._frames % _STEP_FRAMES == 0:
            self._step()
        return self.has_echo

    def _step(self) -> None:
        lowest_db = min(list(self._near)[-_STEP_FRAMES:])
        self._lowest.append(lowest_db)
        is_silent = max(list(self._far)[-_STEP_FRAMES:]) < self._config.far_active_db
        self._silent_steps = self._silent_steps + 1 if is_silent else 0
        if self._silent_steps > _SETTLED_STEPS or (is_silent and self._silent_steps == self._frames // _STEP_FRAMES):
            self._floor.append(lowest_db)
        if len(self._far) < 4 * _STEP_FRAMES:
            return
        # Only the earlier half: what sounded just now has perhaps not arrived yet.
        far_db = max(list(self._far)[: 2 * _STEP_FRAMES])
        self._loudest_far_db = max(self._config.presence_far_db, self._loudest_far_db - _FAR_FADE_DB, far_db)
        if far_db < self._loudest_far_db - _FAR_WITHIN_DB or far_db < self._config.presence_far_db:
            return
        floor_db = self.floor_db
        if floor_db is None or floor_db > _HIGHEST_FLOOR_DB:
            return
        self._excess.append(max(self._near) - floor_db)
        if len(self._excess) < self._config.presence_first_samples:
            return
        quiet = sorted(self._excess)[int(_QUIET_SHARE * len(self._excess))]
        limit_db = self._config.presence_excess_db + (0.0 if self.has_echo else 3.0)
        self.has_echo = quiet > limit_db
