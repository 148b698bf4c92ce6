"""Keeps the offline model's process alive: start, warm-up, health, restart after a crash, a quick stop."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import ChatMessage
from orchestrator.llm.connection import Connection, connect_to
from orchestrator.llm.endpoint import Endpoint
from orchestrator.llm.failures import FailureCode, LlmFailure
from orchestrator.llm.serve import ALIAS, KEY_VARIABLE

log = logging.getLogger(__name__)


class ServerState(StrEnum):
    """Where the server is in its life. `restarting` waits for the back-off after a crash."""

    STOPPED = "stopped"
    LOADING = "loading"
    WARMING = "warming"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTimes:
    """The server's bounds in seconds.

    `wait_s` is how long a turn waits for a start; more than `len(back_off_s)` crashes without `steady_s` of good work
    between them end in `failed`.
    """

    load_s: float = 90.0
    warm_s: float = 30.0
    wait_s: float = 60.0
    health_every_s: float = 10.0
    health_timeout_s: float = 5.0
    unhealthy_after: int = 3
    back_off_s: tuple[float, ...] = (0.1, 0.5, 2.0, 5.0, 10.0)
    steady_s: float = 60.0
    term_s: float = 1.0


class LocalServer:
    """Owner of the child process. All methods belong to the core loop; none blocks it."""

    def __init__(
        self,
        *,
        model_path: Path,
        log_path: Path,
        clock: Clock,
        threads: int = 2,
        context: int = 4096,
        can_plan: bool = False,
        warm: Callable[[], Sequence[ChatMessage]] | None = None,
        on_state: Callable[[ServerState], None] | None = None,
        times: ServerTimes | None = None,
    ) -> None:
        """Serve the GGUF file `model_path`; `warm` gives the prompt that is evaluated before the first turn."""
        self._model_path = model_path
        self._log_path = log_path
        self._clock = clock
        self._threads = threads
        self._context = context
        self._can_plan = can_plan
        self._warm = warm
        self._on_state = on_state
        self._times = times or ServerTimes()
        self._state = ServerState.STOPPED
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._endpoint: Endpoint | None = None
        self._restarts = 0

    @property
    def state(self) -> ServerState:
        """Where the server is in its life."""
        return self._state

    @property
    def pid(self) -> int | None:
        """The child's process id, none while there is no child."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def can_plan(self) -> bool:
        """Whether the model is capable of structured planning."""
        return self._can_plan

    @property
    def restarts(self) -> bool:
        """A crashed child is started anew."""
        return True

    @property
    def restart_count(self) -> int:
        """How often the child was started again."""
        return self._restarts

    def begin(self) -> None:
        """Start in the background; `on_state` and `endpoint` tell how it goes. Does nothing when already begun."""
        if self._keeper is None or self._keeper.done():
            self._stopping = asyncio.Event()
            self._set_state(ServerState.LOADING)
            self._keeper = asyncio.create_task(self._keep(), name="llm:server")

    async def start(self) -> Endpoint:
        """Start and return when the model answers. Raises `LlmFailure` if it can't be started."""
        self.begin()
        return await self._ready(self._times.load_s + self._times.warm_s)

    async def endpoint(self) -> Endpoint:
        """Return the endpoint, waiting at most `wait_s` for a start. Raises `LlmFailure` (starting, crashed, none)."""
        return await self._ready(self._times.wait_s)

    async def stop(self) -> None:
        """End the child within 2 s; it is gone when this returns."""
        self._stopping.set()
        keeper = self._keeper
        if keeper is not None and not keeper.done():
            await self._end_child()
            keeper.cancel()
            await asyncio.wait({keeper})
        await self._end_child()
        self._keeper = None
        self._set_state(ServerState.STOPPED)

    async def _ready(self, within_s: float) -> Endpoint:
        try:
            async with asyncio.timeout(within_s):
                while True:
                    if self._endpoint is not None and self.pid is not None:
                        return self._endpoint
                    if self._state is ServerState.FAILED:
                        raise LlmFailure(FailureCode.CRASHED, f"see {self._log_path}")
                    if self._state is ServerState.STOPPED:
                        raise LlmFailure(FailureCode.NONE, "the local server is stopped")
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise LlmFailure(FailureCode.STARTING, f"not ready within {within_s:g} s") from error

    def _set_state(self, state: ServerState) -> None:
        if state is not self._state:
            self._state = state
            log.info("local model server: %s", state)
            if self._on_state is not None:
                self._on_state(state)
        self._changed.set()

    async def _keep(self) -> None:
        """Run children one after the other until told to stop or until they crash too often."""
        crashes = 0
        try:
            while not self._stopping.is_set():
                began_s = self._clock.monotonic_s()
                await self._run_child()
                self._endpoint = None
                if self._stopping.is_set():
                    return
                if self._clock.monotonic_s() - began_s > self._times.steady_s:
                    crashes = 0
                if crashes >= len(self._times.back_off_s):
                    self._set_state(ServerState.FAILED)
                    return
                self._set_state(ServerState.RESTARTING)
                await self._pause(self._times.back_off_s[crashes])
                crashes += 1
                self._restarts += 1
        except Exception:
            log.exception("the keeper of the local model failed")
            self._set_state(ServerState.FAILED)
        finally:
            self._endpoint = None

    async def _run_child(self) -> None:
        """Start one child and return when it is gone."""
        self._set_state(ServerState.LOADING)
        key = secrets.token_urlsafe(24)
        try:
            self._process = await self._spawn(key)
        except OSError as error:
            log.error("the local model's process can't be started: %s", error)
            return
        try:
            port = await self._announced_port(self._process)
            if port is None:
                return
            endpoint = Endpoint(
                base_url=f"http://127.0.0.1:{port}/v1", model=ALIAS, api_key=key, can_plan=self._can_plan
            )
            times = self._times
            connection = await connect_to(endpoint, connect_s=times.health_timeout_s, answer_s=times.warm_s)
            try:
                if self._restarts == 0:
                    # After a crash a turn may be waiting, and its own prompt warms the cache as well.
                    self._set_state(ServerState.WARMING)
                    await self._warm_up(connection)
                if self._process.returncode is None:
                    self._endpoint = endpoint
                    self._set_state(ServerState.RUNNING)
                await self._watch(connection, self._process)
            finally:
                await connection.aclose()
        finally:
            self._endpoint = None
            await self._end_child()

    async def _spawn(self, key: str) -> asyncio.subprocess.Process:
        arguments = ["--model", str(self._model_path), "--port", "0", "--threads", str(self._threads)]
        arguments += ["--ctx", str(self._context), "--parent", str(os.getpid())]
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.BELOW_NORMAL_PRIORITY_CLASS | subprocess.CREATE_NO_WINDOW
        log_file = await asyncio.to_thread(self._open_log)
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "orchestrator.llm.serve",
                *arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                env=self._environment(key),
                creationflags=flags,
            )
        finally:
            log_file.close()

    def _open_log(self) -> IO[bytes]:
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        return self._log_path.open("wb")

    def _environment(self, key: str) -> Mapping[str, str]:
        environment = dict(os.environ)
        environment[KEY_VARIABLE] = key
        root = str(Path(__file__).resolve().parents[2])
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = root + os.pathsep + inherited if inherited else root
        return environment

    async def _announced_port(self, process: asyncio.subprocess.Process) -> int | None:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._times.load_s):
                line = await process.stdout.readline()
            return int(json.loads(line)["port"])
        except (TimeoutError, ValueError, KeyError, TypeError):
            if not self._stopping.is_set():
                log.error("the local model did not load; see %s", self._log_path)
            return None

    async def _warm_up(self, connection: Connection) -> None:
        """Evaluate the prompt every persona turn begins with, so that the first answer finds it in the cache."""
        messages = list(self._warm()) if self._warm is not None else [ChatMessage(role="user", content="Hi")]
        arguments = {
            "model": ALIAS,
            "stream": True,
            "max_tokens": 1,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
        }
        try:
            async with asyncio.timeout(self._times.warm_s), connection.chat(arguments) as pieces:
                async for _piece in pieces:
                    pass
        except (LlmFailure, TimeoutError) as error:
            log.warning("the local model's warm-up failed: %s", type(error).__name__)

    async def _watch(self, connection: Connection, process: asyncio.subprocess.Process) -> None:
        """Return when the child has ended, or did not answer several times in a row."""
        missed = 0
        exited = asyncio.create_task(process.wait(), name="llm:server-exit")
        try:
            while missed < self._times.unhealthy_after:
                done, _ = await asyncio.wait({exited}, timeout=self._times.health_every_s)
                if done:
                    log.warning("the local model's process ended (status %s)", process.returncode)
                    return
                try:
                    async with asyncio.timeout(self._times.health_timeout_s):
                        await connection.list_models()
                    missed = 0
                except (LlmFailure, TimeoutError):
                    missed += 1
            log.warning("the local model's process does not answer")
        finally:
            exited.cancel()

    async def _pause(self, for_s: float) -> None:
        stopping = asyncio.create_task(self._stopping.wait(), name="llm:server-pause")
        try:
            await asyncio.wait({stopping}, timeout=for_s)
        finally:
            stopping.cancel()

    async def _end_child(self) -> None:
        """Ask the child to end, then make it; it has no state worth saving."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            if process.stdin is not None:
                process.stdin.close()
            _signal(process.terminate)
            try:
                async with asyncio.timeout(self._times.term_s):
                    await process.wait()
            except TimeoutError:
                _signal(process.kill)
                await process.wait()
        if self._process is process:
            self._process = None


def _signal(send: Callable[[], None]) -> None:
    try:
        send()
    except ProcessLookupError:
        log.debug("the local model's process was already gone")
