"""The silence of a user who was asked something: after a while it is an input of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class SilenceTimer:
    """Calls when it has been quiet for as long as the running question waits. Lives on the core loop."""

    def __init__(
        self,
        *,
        limit_s: Callable[[], float | None],
        is_quiet: Callable[[], bool],
        on_silence: Callable[[], object],
    ) -> None:
        """Ask `limit_s` for the wait (None: nobody waits), and `is_quiet` at its begin and at its end."""
        self._limit_s = limit_s
        self._is_quiet = is_quiet
        self._on_silence = on_silence
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def arm(self) -> None:
        """Begin to wait, anew if it was waiting."""
        self.disarm()
        if self._is_closed:
            return
        limit_s = self._limit_s()
        if limit_s is not None and self._is_quiet():
            self._timer = asyncio.get_running_loop().call_later(limit_s, self._on_due)

    def disarm(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Never wait again."""
        self._is_closed = True
        self.disarm()

    def _on_due(self) -> None:
        if self._is_quiet():
            self._on_silence()
