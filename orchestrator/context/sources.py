"""Context sources: each looks now and then and posts what has changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.clock import Clock
from orchestrator.context.active_window import ActiveWindow
from orchestrator.contracts.events import ContextUpdated, Payload

log = logging.getLogger(__name__)

CLOCK_EVERY_S = 60.0
WINDOW_EVERY_S = 3.0
_LONGEST_PAUSE_S = 120.0
_TITLE_CHARS = 200


class ContextSource(Protocol):
    """Looks at one thing. `origin` names it in `world`; `every_s` is the time between two looks."""

    @property
    def origin(self) -> str:
        """The key of its values in the world."""
        ...

    @property
    def every_s(self) -> float:
        """Seconds between two looks."""
        ...

    async def look(self) -> Mapping[str, Any]:
        """Return what there is now, empty for nothing. Whatever it raises makes it look less often."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSource:
    """The time in words a flow or prompt can use, once a minute."""

    clock: Clock
    origin: str = "clock"
    every_s: float = CLOCK_EVERY_S

    async def look(self) -> Mapping[str, Any]:
        """Return time, date, day of the week and part of the day."""
        now = self.clock.wall()
        return {
            "time": now.strftime("%H:%M"),
            "date": now.date().isoformat(),
            "weekday": now.strftime("%A").lower(),
            "part_of_day": _part_of_day(now.hour),
        }


def _part_of_day(hour: int) -> str:
    for limit, name in ((5, "night"), (12, "morning"), (18, "afternoon"), (22, "evening")):
        if hour < limit:
            return name
    return "night"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSource:
    """The title of the window the user works in."""

    window: ActiveWindow
    origin: str = "window_title"
    every_s: float = WINDOW_EVERY_S

    async def look(self) -> Mapping[str, Any]:
        """Return the title; nothing while no window is active or it is Mynah's own."""
        title = await self.window.title()
        return {"title": title[:_TITLE_CHARS]} if title else {}


class ContextWatch:
    """Runs sources, each in a task of its own named `context:<origin>`. Lives on the core loop.

    Only changes are posted, so an unchanged world costs nothing; the bus keeps the newest of each origin.
    """

    def __init__(self, sources: Sequence[ContextSource], *, post: Callable[[Payload], bool]) -> None:
        """Post changes of `sources`; nothing happens before `start`."""
        self._sources = tuple(sources)
        self._post = post
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._watch(source), name=f"context:{source.origin}") for source in self._sources
        ]

    async def stop(self) -> None:
        """Look no more; returns when every look is over."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel("the program ends")
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, source: ContextSource) -> None:
        known: Mapping[str, Any] = {}
        pause_s = source.every_s
        while True:
            try:
                found = await source.look()
                pause_s = source.every_s
            except Exception as error:
                if pause_s == source.every_s:
                    log.info("context source %s: %s", source.origin, type(error).__name__)
                found, pause_s = {}, min(_LONGEST_PAUSE_S, pause_s * 2)
            # A refused post is tried again at the next look.
            if found != known and self._post(ContextUpdated(origin=source.origin, values=found)):
                known = found
            await asyncio.sleep(pause_s)
