"""How loud the character speaks: ducked, muted or full."""

from __future__ import annotations

from collections import deque

from audio.player_render import Command, SetGain

_MUTE_RAMP_S = 0.02


class VoiceLevel:
    """Turns duck and mute into gain commands. Used under the player's lock."""

    def __init__(self, commands: deque[Command]) -> None:
        """Send commands to `commands`."""
        self._commands = commands
        self._asked: dict[int, tuple[float, float]] = {}
        self._is_ducked = False
        self.is_muted = False

    def duck(self, gain_db: float, ramp_s: float, rate_hz: int, token: int) -> None:
        """Lower to `gain_db`; nothing if it is lower already."""
        if not self._is_ducked and not self.is_muted:
            self._is_ducked = True
            self._ask(gain_db, ramp_s, rate_hz, token)

    def unduck(self, ramp_s: float, rate_hz: int, token: int) -> None:
        """Come back to full level; nothing if it is there."""
        if self._is_ducked and not self.is_muted:
            self._is_ducked = False
            self._ask(0.0, ramp_s, rate_hz, token)

    def mute(self, on: bool, rate_hz: int) -> None:
        """Go to silence, or to full level."""
        if on != self.is_muted:
            self.is_muted = on
            self._is_ducked = False
            frames = int(_MUTE_RAMP_S * rate_hz)
            self._commands.append(SetGain(target=0.0 if on else 1.0, frames=frames))

    def note_cut(self) -> None:
        """Forget the ducking: the callback ends it with the sound."""
        self._is_ducked = False

    def begun(self, token: int) -> tuple[float, float] | None:
        """Return (gain_db, ramp_s) of the ramp that began; None if it was not asked for here."""
        return self._asked.pop(token, None)

    def _ask(self, gain_db: float, ramp_s: float, rate_hz: int, token: int) -> None:
        self._asked[token] = (gain_db, ramp_s)
        frames = max(1, int(ramp_s * rate_hz))
        self._commands.append(SetGain(target=10.0 ** (gain_db / 20.0), frames=frames, token=token))
