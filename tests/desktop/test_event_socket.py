"""The event socket over real loopback connections: who gets in, what may be asked, what is bounded."""

from __future__ import annotations

import contextlib
import json
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop.event_socket import TOKEN_FILE, EventSocket, SocketLimits, ensure_token
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.commands import Command, FocusObject, Notify, PostExternalEvent, SendText, UpdateContext
from orchestrator.contracts.errors import InputError


class Client:
    """A program that talks to the socket."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=5)
        self._file = self._socket.makefile("rb")

    def send(self, line: dict[str, Any] | bytes) -> None:
        data = line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() + b"\n"
        self._socket.sendall(data)

    def read(self) -> dict[str, Any] | None:
        """Return the next acknowledgement's payload; None when the other side has closed."""
        try:
            line = self._file.readline()
        except ConnectionError:
            return None
        if not line:
            return None
        record = json.loads(line)
        assert record["type"] == "control:ack"
        payload: dict[str, Any] = record["payload"]
        return payload

    def ask(self, **line: Any) -> dict[str, Any] | None:
        self.send(line)
        return self.read()

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Running:
    """A started socket and what it handed over."""

    def __init__(self, data: Path, **fields: Any) -> None:
        self.commands: list[Command] = []
        self.accepts = True
        arguments: dict[str, Any] = {"port": 0, "data": data, "clock": SystemClock(), "submit": self._submit} | fields
        self.socket = EventSocket(**arguments)
        self.socket.start()
        assert self.socket.address is not None
        self.address = self.socket.address
        self.token = (data / TOKEN_FILE).read_text().strip()
        self._clients: list[Client] = []

    def _submit(self, command: Command) -> bool:
        self.commands.append(command)
        return self.accepts

    def connect(self) -> Client:
        self._clients.append(Client(self.address))
        return self._clients[-1]

    def enter(self) -> Client:
        client = self.connect()
        assert client.ask(token=self.token) == {"cmd": "hello", "ok": True, "error": None, "result": None}
        return client

    def end(self) -> None:
        for client in self._clients:
            client.close()
        self.socket.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def make(**fields: Any) -> Running:
        running.append(Running(tmp_path, **fields))
        return running[-1]

    yield make
    for each in running:
        each.end()


def test_lines_become_commands_and_are_acknowledged(start: Callable[..., Running]) -> None:
    running = start()
    assert running.address[0] == "127.0.0.1", "nobody else's machine can reach it"
    client = running.enter()
    assert client.ask(cmd="notify", id="tea", text="茶好了", expires_s=60)["ok"]
    assert client.ask(cmd="context", source="player", values={"song": "Clair de lune"})["ok"]
    assert client.ask(cmd="event", type="door_opened", payload={"who": "cat"})["ok"]
    assert client.ask(cmd="object", object={"type": "file", "id": "/a.txt"})["ok"]
    assert client.ask(cmd="text", text="hello")["ok"]
    assert [type(command) for command in running.commands] == [
        Notify,
        UpdateContext,
        PostExternalEvent,
        FocusObject,
        SendText,
    ]
    assert running.commands[0] == Notify(id="tea", text="茶好了", expires_s=60.0)


@pytest.mark.parametrize(
    "hello",
    [
        b'{"token": "wrong"}\n',
        b'{"token": null}\n',
        b'{"token": ["a"]}\n',
        b'{"cmd": "text", "text": "hi"}\n',
        b"[]\n",
        b"not json\n",
        b"\xff\xfe\n",
        b"POST / HTTP/1.1\r\n",
        b"[" * 5000 + b"\n",
        b"x" * 70_000 + b"\n",
    ],
)
def test_without_the_token_nothing_is_taken(start: Callable[..., Running], hello: bytes) -> None:
    running = start()
    client = running.connect()
    client.send(hello + b'{"cmd": "text", "text": "hi"}\n')
    answer = client.read()
    assert answer is None or (not answer["ok"] and "token" in answer["error"])
    assert client.read() is None, "the connection is closed"
    assert running.commands == []
    assert running.enter().ask(cmd="text", text="still there")["ok"]


def test_a_client_that_says_nothing_is_sent_away(start: Callable[..., Running]) -> None:
    running = start(limits=SocketLimits(hello_s=0.1))
    assert running.connect().read() is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"cmd": "quit"}, "takes notify, context, event, object, text only"),
        ({"cmd": "stop"}, "only"),
        ({"cmd": "dump"}, "only"),
        ({"cmd": "mute_mic", "on": True}, "only"),
        ({"cmd": ["text"]}, "only"),
        ({"cmd": "notify", "id": "a"}, "“text” must be a text"),
        ({"cmd": "context", "source": "a", "values": 3}, "“values” must be an object"),
        (b"{\n", "not JSON"),
        (b"7\n", "JSON object"),
    ],
)
def test_what_can_not_be_asked_is_refused_and_the_next_line_read(
    start: Callable[..., Running], line: dict[str, Any] | bytes, told: str
) -> None:
    running = start()
    client = running.enter()
    client.send(line)
    answer = client.read()
    assert answer is not None and not answer["ok"] and told in answer["error"]
    assert running.commands == []
    assert client.ask(cmd="text", text="go on")["ok"]


def test_lines_clients_and_speed_are_bounded(start: Callable[..., Running]) -> None:
    running = start(limits=SocketLimits(clients=2, line_bytes=1000, lines_a_second=3), clock=VirtualClock())
    first, second = running.enter(), running.enter()
    assert running.connect().read() is None, "a third one is not let in"
    assert running.socket.refused == 1
    answers = [first.ask(cmd="text", text=str(number)) for number in range(4)]
    assert [answer["ok"] for answer in answers if answer] == [True, True, True, False]
    assert "too fast" in answers[-1]["error"]
    second.send({"cmd": "text", "text": "x" * 2000})
    answer = second.read()
    assert answer is not None and "too long" in answer["error"]
    assert second.read() is None
    assert len(running.commands) == 3


def test_a_program_that_is_ending_says_so(start: Callable[..., Running]) -> None:
    running = start()
    client = running.enter()
    running.accepts = False
    assert "starting or ending" in client.ask(cmd="text", text="hi")["error"]


def test_stop_closes_connections_and_ends_the_thread(
    start: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = start()
    client = running.enter()
    running.socket.stop()
    assert client.read() is None
    assert "event-socket" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(OSError), contextlib.closing(socket.create_connection(running.address, timeout=1)):
        pass
    running.socket.stop()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        waiting = EventSocket(port=port, data=tmp_path, clock=SystemClock(), submit=lambda command: True)
        with pytest.raises(InputError) as refused:
            waiting.start()
        waiting.stop()
    assert refused.value.code == "event_socket_unavailable"
    assert str(port) in refused.value.message and "\n" not in refused.value.message


def test_the_token_is_made_once_and_is_the_users_alone(tmp_path: Path) -> None:
    data = tmp_path / "数据"
    token, path = ensure_token(data)
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    assert ensure_token(data) == (token, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("short\n")
    renewed, _ = ensure_token(data)
    assert renewed not in (token, "short")
    other = tmp_path / "other"
    other.write_text("a" * 40)
    path.unlink()
    path.symlink_to(other)
    linked, _ = ensure_token(data)
    assert linked != "a" * 40 and not path.is_symlink()


def test_a_token_file_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as unusable:
        ensure_token(tmp_path / "file")
    assert unusable.value.code == "token_unwritable"


def test_the_token_is_in_no_log(start: Callable[..., Running], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        running = start()
        running.enter().ask(cmd="text", text="hi")
        running.connect().ask(token="wrong")
    assert running.token not in caplog.text and "hi" not in caplog.text.split()
