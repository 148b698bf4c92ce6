"""Events from other programs of this machine: JSON lines over a loopback socket, for those who have the token.

Format in docs/events-from-outside.md.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.control_channel import parse_command, read_line
from orchestrator.clock import Clock
from orchestrator.contracts.commands import Command
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import ControlAck, to_json
from orchestrator.contracts.wellformed import read_json

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
TOKEN_FILE = "event_socket.token"
COMMANDS = ("notify", "context", "event", "object", "text")
"""What may be asked over the socket: nothing that listens, silences, reads or ends."""
_START_LIMIT_S = 5.0
_STOP_LIMIT_S = 1.0
_TOKEN_MIN_CHARS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketLimits:
    """Bounds. A client that says nothing useful for `hello_s` is sent away; `lines_a_second` counts per client."""

    clients: int = 8
    line_bytes: int = 65_536
    hello_s: float = 5.0
    lines_a_second: int = 50


def ensure_token(data: Path) -> tuple[str, Path]:
    """Return the token and its file in the data folder; it is made at the first time, readable by the user alone.

    Raises:
        InputError: the file can be neither read nor written (`token_unwritable`).
    """
    path = data / TOKEN_FILE
    try:
        data.mkdir(parents=True, exist_ok=True)
        if path.is_file() and not path.is_symlink():
            path.chmod(0o600)
            token = path.read_text(encoding="ascii", errors="replace").strip()
            if len(token) >= _TOKEN_MIN_CHARS and token.isascii() and token.isprintable():
                return token, path
        path.unlink(missing_ok=True)
        token = secrets.token_urlsafe(32)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(token + "\n")
    except OSError as error:
        raise InputError(
            "token_unwritable", f"the token file {path} can't be used: {error.strerror}", part="event_socket"
        ) from error
    return token, path


class EventSocket:
    """Serves on a thread named `event-socket` with a loop of its own; `start` and `stop` from any other thread."""

    def __init__(
        self,
        *,
        port: int,
        data: Path,
        clock: Clock,
        submit: Callable[[Command], bool],
        limits: SocketLimits | None = None,
    ) -> None:
        """Hand commands to `submit`. `port` 0 takes any free one; `address` tells which."""
        self._port = port
        self._data = data
        self._clock = clock
        self._submit = submit
        self._limits = limits or SocketLimits()
        self._token = ""
        self.token_path = data / TOKEN_FILE
        self.address: tuple[str, int] | None = None
        self.refused = 0
        self._clients: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._is_up = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="event-socket", daemon=True)

    def start(self) -> None:
        """Listen. Raises `InputError` for a port that can't be had or a token file that can't be used."""
        self._token, self.token_path = ensure_token(self._data)
        self._thread.start()
        if not self._is_up.wait(_START_LIMIT_S) or self.address is None:
            reason = self._error.strerror if self._error is not None else "it does not start"
            raise InputError(
                "event_socket_unavailable",
                f"event_socket: port {self._port} can't be used: {reason}; choose another port or off",
                part="event_socket",
            )

    def stop(self) -> None:
        """Send everyone away and end the thread, in bounded time; a socket that never started is left alone."""
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(stopping.set)
            except RuntimeError:
                log.debug("the event socket had ended already")
        if self._thread.is_alive():
            self._thread.join(_STOP_LIMIT_S)

    # --- on the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._error = error
        finally:
            self._is_up.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        server = await asyncio.start_server(
            self._on_client, HOST, self._port, limit=self._limits.line_bytes, reuse_address=os.name == "posix"
        )
        async with server:
            host, port = server.sockets[0].getsockname()[:2]
            self.address = (host, port)
            self._is_up.set()
            await self._stopping.wait()
        clients = list(self._clients)
        for client in clients:
            client.cancel("the program ends")
        await asyncio.gather(*clients, return_exceptions=True)

    def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= self._limits.clients:
            self.refused += 1
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve_client(reader, writer), name="event-socket-client")
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            log.debug("a client of the event socket went away")
        finally:
            await _close(writer)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self._limits.hello_s):
            hello = await self._line(reader)
        if not self._is_known(hello):
            self.refused += 1
            await _send(writer, ControlAck(cmd="hello", ok=False, error="the first line must carry the token"))
            return
        await _send(writer, ControlAck(cmd="hello", ok=True))
        since_s, count = self._clock.monotonic_s(), 0
        while (line := await self._line(reader)) != b"":
            if line is None:
                await _send(writer, ControlAck(cmd="?", ok=False, error="the line is too long"))
                return
            now_s = self._clock.monotonic_s()
            if now_s - since_s >= 1.0:
                since_s, count = now_s, 0
            count += 1
            if count > self._limits.lines_a_second:
                error = f"too fast: at most {self._limits.lines_a_second} lines a second"
                await _send(writer, ControlAck(cmd="?", ok=False, error=error))
            elif line.strip():
                await _send(writer, self._carry_out(line))

    @staticmethod
    async def _line(reader: asyncio.StreamReader) -> bytes | None:
        """Return the next line, empty at the end, None for one that is too long."""
        try:
            return await reader.readline()
        except ValueError:
            return None

    def _is_known(self, hello: bytes | None) -> bool:
        try:
            data = read_json(hello or b"")
        except ValueError:
            return False
        token = data.get("token") if isinstance(data, dict) else None
        return isinstance(token, str) and hmac.compare_digest(token.encode(), self._token.encode())

    def _carry_out(self, line: bytes) -> ControlAck:
        name = "?"
        try:
            name, data = read_line(line)
            self._check_allowed(data)
            if not self._submit(parse_command(data)):
                raise ValueError("not accepted: the program is starting or ending")
        except ValueError as error:
            return ControlAck(cmd=name, ok=False, error=str(error))
        except Exception as error:
            # Whatever one line does, the next one is read.
            log.exception("a line of the event socket failed")
            return ControlAck(cmd=name, ok=False, error=f"something went wrong inside Mynah: {type(error).__name__}")
        return ControlAck(cmd=name, ok=True)

    @staticmethod
    def _check_allowed(data: Mapping[str, Any]) -> None:
        name = data.get("cmd")
        if not isinstance(name, str) or name not in COMMANDS:
            raise ValueError(f"the socket takes {', '.join(COMMANDS)} only")


async def _send(writer: asyncio.StreamWriter, ack: ControlAck) -> None:
    record = {"type": ack.TYPE, "payload": to_json(ack)}
    writer.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except (ConnectionError, TimeoutError):
        log.debug("a client of the event socket had gone")
