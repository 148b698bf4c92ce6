"""The thread host of the core loop: start, submit, stop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Protocol

from orchestrator.contracts.commands import Command

log = logging.getLogger(__name__)


class HostedCore(Protocol):
    """What runs on the loop."""

    async def prepare(self) -> None:
        """Get ready; raises a `MynahError` if it can't."""
        ...

    def begin(self) -> None:
        """Dispatch from now on."""
        ...

    async def close(self) -> None:
        """End in bounded time."""
        ...

    def handle(self, command: Command) -> None:
        """Carry out a command, on the loop."""
        ...


class CoreThread:
    """Runs a core on a loop in a thread named `core`. `start`, `submit` and `stop` are callable from any thread."""

    def __init__(self, make_core: Callable[[], HostedCore], *, stop_within_s: float = 2.5) -> None:
        """Build the core by `make_core` on its own thread."""
        self._make_core = make_core
        self._stop_within_s = stop_within_s
        self._thread = threading.Thread(target=self._run, name="core", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._core: HostedCore | None = None
        self._is_open = threading.Event()
        self._error: BaseException | None = None
        self._stop: asyncio.Event | None = None

    def start(self, timeout_s: float = 60.0) -> None:
        """Start the loop and prepare the core; re-raises what `prepare` raised."""
        self._thread.start()
        if not self._is_open.wait(timeout_s):
            raise TimeoutError("the core did not start in time")
        if self._error is not None:
            raise self._error

    def begin(self) -> None:
        """Let the prepared core dispatch."""
        loop, core = self._loop, self._core
        if loop is not None and core is not None:
            loop.call_soon_threadsafe(core.begin)

    def submit(self, command: Command) -> bool:
        """Carry out `command` on the core loop; False when it is not running."""
        loop, core = self._loop, self._core
        if loop is None or core is None or loop.is_closed():
            return False
        try:
            loop.call_soon_threadsafe(core.handle, command)
        except RuntimeError:
            return False
        return True

    def run(self, work: Callable[[], Awaitable[object]], timeout_s: float = 10.0) -> object:
        """Run `work` on the core loop and wait for its result; not from the core thread."""
        loop = self._loop
        if loop is None:
            raise RuntimeError("the core is not running")

        async def wrapped() -> object:
            return await work()

        return asyncio.run_coroutine_threadsafe(wrapped(), loop).result(timeout_s)

    def stop(self) -> bool:
        """Close the core and end the thread; False if it outlasted its limit."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(stop.set)
            except RuntimeError:
                log.debug("the loop had ended already")
        if self._thread.is_alive():
            self._thread.join(self._stop_within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as error:
            log.exception("the core ended unexpectedly")
            self._error = error
        finally:
            self._is_open.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        core = self._make_core()
        try:
            await core.prepare()
        except Exception as error:
            self._error = error
            await core.close()
            return
        self._core = core
        self._is_open.set()
        await self._stop.wait()
        await core.close()
