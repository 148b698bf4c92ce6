"""Reading the configuration again while the conversation goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable

from orchestrator.contracts.errors import MynahError, PartFailed

log = logging.getLogger(__name__)

Done = Callable[[str | None], None]
_MOST_CHARS = 4_000
_ENDING = "not reloaded: the program is ending"


class Reloading:
    """Reads again when no answer is being made, and tells everyone who asked what came of it. Lives on the core loop.

    Whoever asked while one waited is told of the same one.
    """

    def __init__(
        self, *, is_busy: Callable[[], bool], read: Callable[[], None], report: Callable[[MynahError], None]
    ) -> None:
        """Use `read` to take over what is on disk; it raises `MynahError` and changes nothing if that is faulty."""
        self._is_busy = is_busy
        self._read = read
        self._report = report
        self._asked: list[Done] = []
        self._is_wanted = False
        self._is_closed = False

    def ask(self, on_done: Done | None = None) -> None:
        """Read again as soon as no answer is being made; raises nothing."""
        if on_done is not None:
            self._asked.append(on_done)
        self._is_wanted = True
        self.retry()

    def retry(self) -> None:
        """Do what was asked for, if it may be done now."""
        if self._is_closed:
            self._tell(_ENDING)
        elif self._is_wanted and not self._is_busy():
            self._is_wanted = False
            self._tell(self._attempt())

    def close(self) -> None:
        """Read nothing any more, and say so to those who wait."""
        self._is_closed = True
        self._tell(_ENDING)

    def _attempt(self) -> str | None:
        try:
            self._read()
        except MynahError as error:
            self._report(error)
            return _shown(error.details or tuple(error.message.splitlines()))
        except Exception as error:
            log.exception("the configuration could not be read again")
            failure = PartFailed("reload_failed", f"not reloaded: {type(error).__name__} inside Mynah", part="core")
            self._report(failure)
            return failure.message
        return None

    def _tell(self, problem: str | None) -> None:
        asked, self._asked = self._asked, []
        for on_done in asked:
            on_done(problem)


def _shown(lines: tuple[str, ...]) -> str:
    """Return as many whole lines as fit, and how many don't."""
    shown: list[str] = []
    for line in lines:
        if shown and sum(map(len, shown)) + len(line) > _MOST_CHARS:
            return "\n".join([*shown, f"… and {len(lines) - len(shown)} more: mynah flows check"])
        shown.append(line[:_MOST_CHARS])
    return "\n".join(shown)
