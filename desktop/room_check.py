"""The short check of a room: how loud it is, how much of the own voice comes back, how loud the user is.

It hears through the level that the running ears report; nothing is recorded. Pure: time and levels are arguments.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from enum import StrEnum

QUIET_S = 3.0
VOICE_LIMIT_S = 12.0
SPEAK_S = 5.0
_SETTLE_S = 0.4
"""After a step begins, sound of the one before may still arrive."""

_ECHO_LOUD_DB = 25.0
_ECHO_THERE_DB = 6.0
_NOISY_DB = -45.0
_CLEAR_DB = 15.0
_SPEECH_SHARE = 0.3
"""Loudest part of the user's seconds that counts as speech."""


class RoomStep(StrEnum):
    """What is being listened to."""

    IDLE = "idle"
    QUIET = "quiet"
    VOICE = "voice"
    SPEAK = "speak"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomResult:
    """What was measured, in dBFS at the microphone; `echo_db` and `speech_db` count from the noise.

    `sensitivity` is the preset that fits; `because` says why: echo, noise, faint or fine.
    """

    noise_dbfs: float
    echo_db: float
    speech_db: float
    sensitivity: str
    because: str

    @property
    def has_echo(self) -> bool:
        """Whether the microphone hears the loudspeaker."""
        return self.echo_db >= _ECHO_THERE_DB


class RoomCheck:
    """Goes from step to step as levels come in. `voice_wanted` is true from when the sample has to be said."""

    def __init__(self) -> None:
        """Wait for `start`."""
        self.step = RoomStep.IDLE
        self.result: RoomResult | None = None
        self._began_s = 0.0
        self._levels: list[float] = []
        self._noise = self._echo = 0.0
        self._has_sounded = False

    def start(self, now_s: float) -> None:
        """Begin with the quiet room."""
        self.result = None
        self._enter(RoomStep.QUIET, now_s)

    def cancel(self) -> None:
        """Give it up."""
        self.step = RoomStep.IDLE

    @property
    def is_running(self) -> bool:
        """Whether levels are wanted."""
        return self.step in (RoomStep.QUIET, RoomStep.VOICE, RoomStep.SPEAK)

    def left_s(self, now_s: float) -> float:
        """Return how long the present step still takes at most."""
        limit = {RoomStep.QUIET: QUIET_S, RoomStep.VOICE: VOICE_LIMIT_S, RoomStep.SPEAK: SPEAK_S}.get(self.step, 0.0)
        return max(0.0, limit + _SETTLE_S - (now_s - self._began_s))

    def feed(self, now_s: float, level_db: float | None, *, is_quiet: bool) -> RoomStep:
        """Take the microphone's level, and whether the own voice is silent; returns the step that holds now.

        A `level_db` of None means that no microphone is open: the check fails.
        """
        if not self.is_running:
            return self.step
        if level_db is None:
            self.step = RoomStep.FAILED
            return self.step
        past_s = now_s - self._began_s
        if self.step is RoomStep.VOICE:
            self._feed_voice(now_s, level_db, past_s, is_quiet=is_quiet)
            return self.step
        if past_s >= _SETTLE_S:
            self._levels.append(level_db)
        if self.step is RoomStep.QUIET and past_s >= QUIET_S + _SETTLE_S:
            self._noise = statistics.median(self._levels)
            self._enter(RoomStep.VOICE, now_s)
        elif self.step is RoomStep.SPEAK and past_s >= SPEAK_S + _SETTLE_S:
            self._finish()
        return self.step

    def _feed_voice(self, now_s: float, level_db: float, past_s: float, *, is_quiet: bool) -> None:
        self._has_sounded = self._has_sounded or not is_quiet
        if not is_quiet:
            self._levels.append(level_db)
        if past_s >= VOICE_LIMIT_S or (self._has_sounded and is_quiet and past_s >= _SETTLE_S):
            if not self._levels:
                self.step = RoomStep.FAILED
                return
            self._echo = max(0.0, _loud(self._levels) - self._noise)
            self._enter(RoomStep.SPEAK, now_s)

    def _enter(self, step: RoomStep, now_s: float) -> None:
        self.step = step
        self._began_s = now_s
        self._levels = []
        self._has_sounded = False

    def _finish(self) -> None:
        speech_db = max(0.0, _loud(self._levels) - self._noise)
        self.step = RoomStep.DONE
        self.result = judge(self._noise, self._echo, speech_db)


def judge(noise_dbfs: float, echo_db: float, speech_db: float) -> RoomResult:
    """Return which preset fits what was measured."""
    if speech_db < _CLEAR_DB:
        sensitivity, because = ("relaxed", "noise") if noise_dbfs > _NOISY_DB else ("normal", "faint")
    elif echo_db >= _ECHO_LOUD_DB or echo_db > speech_db:
        sensitivity, because = "relaxed", "echo"
    elif noise_dbfs > _NOISY_DB:
        sensitivity, because = "relaxed", "noise"
    elif echo_db < _ECHO_THERE_DB:
        sensitivity, because = "eager", "fine"
    else:
        sensitivity, because = "normal", "fine"
    return RoomResult(
        noise_dbfs=noise_dbfs, echo_db=echo_db, speech_db=speech_db, sensitivity=sensitivity, because=because
    )


def _loud(levels: list[float]) -> float:
    """Return the typical level of the loud part."""
    ordered = sorted(levels)
    return statistics.median(ordered[-max(1, int(len(ordered) * _SPEECH_SHARE)) :])
