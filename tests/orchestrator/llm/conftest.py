"""A scripted OpenAI-compatible endpoint on loopback, and helpers to collect what a turn emits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestrator.clock import SystemClock
from orchestrator.contracts.events import Payload
from orchestrator.contracts.ids import GenerationId, IdFactory
from orchestrator.llm.client import BoundLlm, LlmClient, LlmLimits
from orchestrator.llm.endpoint import Endpoint, FixedEndpoint


@dataclass
class Answer:
    """One scripted answer. `gate` holds the stream after `gate_after` pieces until it is set."""

    pieces: list[str] = field(default_factory=list)
    status: int = 200
    body: Any = None
    raw: bytes | None = None
    head_gate: asyncio.Event | None = None
    gate: asyncio.Event | None = None
    gate_after: int = 0
    endless_every_s: float | None = None
    cut_off: bool = False


class ScriptedEndpoint:
    """Answers chat calls in the order of `answers` and notes what it was asked and when clients went away."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.models: list[str] | None = ["scripted-1"]
        self.models_status = 200
        self.tokens_sent = 0
        self.asked = asyncio.Event()
        self.tokens_after_close = 0
        self.closed = asyncio.Event()
        self.closed_at: float | None = None
        self.embedding: Callable[[str], list[float]] = lambda text: [float(len(text)), 1.0]
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> ScriptedEndpoint:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.keys.append(headers.get("authorization", "").removeprefix("Bearer "))
            await self._answer(lines[0].split(" ")[1], body, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(
        self, path: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if path.endswith("/models"):
            data = {"object": "list", "data": [{"id": m, "object": "model"} for m in self.models or []]}
            status = self.models_status if self.models is not None else 404
            self._json(writer, status, data if status == 200 else {"error": {"message": "no such path or key"}})
        elif path.endswith("/embeddings"):
            self._json(writer, 200, self._embeddings(json.loads(body)))
        else:
            self.requests.append(json.loads(body))
            self.asked.set()
            await self._chat(self.answers.pop(0), reader, writer)
        await writer.drain()

    def _embeddings(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        rows = [
            {"object": "embedding", "index": index, "embedding": self.embedding(text)}
            for index, text in enumerate(request["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": request["model"], "data": rows[::-1], "usage": usage}

    def _json(self, writer: asyncio.StreamWriter, status: int, data: Any) -> None:
        payload = json.dumps(data).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n"
            "Connection: close\r\n\r\n".encode() + payload
        )

    async def _chat(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        watcher = asyncio.create_task(self._watch(reader), name="test:watch-close")
        self._tasks.add(watcher)
        watcher.add_done_callback(self._tasks.discard)
        if answer.head_gate is not None:
            await answer.head_gate.wait()
        if answer.status != 200:
            self._json(writer, answer.status, answer.body)
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        if answer.raw is not None:
            writer.write(answer.raw)
            return
        for index, piece in enumerate(answer.pieces):
            if answer.gate is not None and index == answer.gate_after:
                await answer.gate.wait()
            self._piece(writer, piece)
            await writer.drain()
        if answer.gate is not None and answer.gate_after >= len(answer.pieces):
            await answer.gate.wait()
        while answer.endless_every_s is not None and not writer.is_closing():
            self._piece(writer, "word ")
            await writer.drain()
            await asyncio.sleep(answer.endless_every_s)
        if answer.cut_off:
            return
        writer.write(b"data: [DONE]\n\n")

    def _piece(self, writer: asyncio.StreamWriter, piece: str) -> None:
        if self.closed.is_set():
            self.tokens_after_close += 1
        chunk = {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}],
        }
        writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.tokens_sent += 1

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read(1)
        self.closed_at = asyncio.get_running_loop().time()
        self.closed.set()


class Emitted(list[Payload]):
    """Collects payloads; callable as `emit`."""

    def __call__(self, payload: Payload) -> None:
        self.append(payload)

    def of(self, kind: type[Payload]) -> list[Any]:
        return [payload for payload in self if isinstance(payload, kind)]


@pytest.fixture
async def endpoint() -> AsyncIterator[ScriptedEndpoint]:
    async with ScriptedEndpoint() as server:
        yield server


@pytest.fixture
def new_answer() -> type[Answer]:
    return Answer


@pytest.fixture
def emitted() -> Emitted:
    return Emitted()


@pytest.fixture
async def make_client(endpoint: ScriptedEndpoint) -> AsyncIterator[Callable[..., LlmClient]]:
    clients: list[LlmClient] = []

    def make(*, url: str | None = None, limits: LlmLimits | None = None, **fields: Any) -> LlmClient:
        source = FixedEndpoint(Endpoint(base_url=url or endpoint.url, **({"model": "scripted-1"} | fields)))
        client = LlmClient(source, clock=SystemClock(), ids=IdFactory(), limits=limits)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def llm(make_client: Callable[..., LlmClient], emitted: Emitted) -> BoundLlm:
    return make_client().bind(GenerationId("g-1"), emitted)


@pytest.fixture
def note() -> Callable[[str, float], None]:
    """Write a measured figure into the log (`--log-cli-level=INFO` shows it)."""
    return lambda name, value: logging.getLogger("measured").info("%s = %.4f", name, value)
