"""An OpenAI-compatible endpoint on loopback that says what it is told, at the pace it is told, and remembers all."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef\u3000-\u303f]|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to say when `pattern` (a regular expression, any case) is found in the last user message.

    `status` other than 200 answers with that error. `break_after` closes the connection after so many tokens.
    `is_stubborn` goes on writing after the client has gone, until the system refuses.
    `tool_calls` (each with `name` and `arguments`, an object or the text of one) are asked for behind the text. With
    `follows_tool` an answer is for requests whose last message is a tool's result, and its pattern is looked for in
    that; without, for those whose last message is the user's.
    """

    text: str = ""
    pattern: str = ""
    first_token_s: float = 0.06
    tokens_per_s: float = 40.0
    status: int = 200
    break_after: int | None = None
    is_stubborn: bool = False
    tool_calls: Sequence[Mapping[str, Any]] = ()
    follows_tool: bool = False


@dataclass(slots=True, kw_only=True)
class Call:
    """One request as the endpoint saw it. Times are monotonic seconds."""

    at_s: float
    body: dict[str, Any]
    authorization: str | None
    sent_s: list[float] = field(default_factory=list)
    closed_at_s: float | None = None
    is_finished: bool = False
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def tokens_after_close(self) -> int:
        """How many tokens were written after the client had closed the connection."""
        return 0 if self.closed_at_s is None else sum(at_s > self.closed_at_s for at_s in self.sent_s)

    @property
    def last_user_text(self) -> str:
        """The text of the last user message."""
        return next((_text(m) for m in reversed(self.body.get("messages", [])) if m.get("role") == "user"), "")


    @property
    def tool_results(self) -> list[str]:
        """The texts of the tool messages behind the last user message."""
        found: list[str] = []
        for message in reversed(self.body.get("messages", [])):
            if message.get("role") == "user":
                break
            if message.get("role") == "tool":
                found.insert(0, _text(message))
        return found


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content)


def tokens_of(text: str) -> list[str]:
    """Split as the endpoint does: words with the space after them, single Chinese characters."""
    return _TOKEN.findall(text)


class ScriptedLlm:
    """The endpoint. Use it as a context manager; `url` ends in /v1. Answers are looked through in their order."""

    def __init__(
        self, answers: Sequence[Answer] = (), default: Answer | None = None, *, key: str | None = None
    ) -> None:
        self.answers = list(answers)
        self.default = default or Answer(text="I hear you. Tell me more about it.")
        self.key = key
        self.calls: list[Call] = []
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="scripted-llm", daemon=True
        )

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ScriptedLlm:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def wait_for_calls(self, count: int, timeout_s: float = 20.0) -> list[Call]:
        """Block until `count` requests have come; return all."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= count, timeout_s), (
                f"{len(self.calls)} calls instead of {count} within {timeout_s} s"
            )
            return list(self.calls)

    def answer_for(self, call: Call) -> Answer:
        """Return the first answer whose pattern fits."""
        results = call.tool_results
        text = results[-1] if results else call.last_user_text
        fitting = (
            answer
            for answer in self.answers
            if answer.follows_tool == bool(results) and re.search(answer.pattern, text, re.IGNORECASE)
        )
        return next(fitting, self.default)

    def note(self, call: Call) -> None:
        """Remember a request."""
        with self._changed:
            self.calls.append(call)
            self._changed.notify_all()

    @property
    def is_stopping(self) -> threading.Event:
        """Set when the endpoint is being shut down."""
        return self._stopping


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: ScriptedLlm) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self._is_refused():
            return
        if self.path.rstrip("/").endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "test"}]})
        else:
            self._json(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        call = Call(at_s=time.monotonic(), body=body, authorization=self.headers.get("Authorization"))
        if self._is_refused():
            return
        self.server.owner.note(call)
        answer = self.server.owner.answer_for(call)
        try:
            if answer.status != 200:
                self._json(answer.status, {"error": {"message": answer.text, "type": "server_error"}})
            elif body.get("stream"):
                self._stream(call, answer)
            else:
                self._whole(call, answer)
        finally:
            call.over.set()

    def _is_refused(self) -> bool:
        key = self.server.owner.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return False
        self._json(401, {"error": {"message": "wrong key", "type": "invalid_request_error"}})
        return True

    def _whole(self, call: Call, answer: Answer) -> None:
        tokens = tokens_of(answer.text)
        self.server.owner.is_stopping.wait(answer.first_token_s + len(tokens) / answer.tokens_per_s)
        message = {"role": "assistant", "content": answer.text}
        self._json(
            200,
            {
                **_head("chat.completion", call),
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": len(tokens), "total_tokens": 1 + len(tokens)},
            },
        )
        call.is_finished = True

    def _stream(self, call: Call, answer: Answer) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()
        gone = threading.Event()
        watcher = threading.Thread(
            target=_watch, args=(self.connection, call, gone), name="scripted-llm-watch", daemon=True
        )
        watcher.start()
        due_s = call.at_s + answer.first_token_s
        try:
            for index, token in enumerate(tokens_of(answer.text)):
                self._wait_until(due_s, gone)
                if self.server.owner.is_stopping.is_set() or (gone.is_set() and not answer.is_stubborn):
                    return
                if index == answer.break_after:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self._event(call, {"index": 0, "delta": {"content": token}, "finish_reason": None})
                call.sent_s.append(time.monotonic())
                due_s += 1 / answer.tokens_per_s
            if answer.tool_calls:
                self._wait_until(due_s, gone)
                self._stream_tool_calls(call, answer.tool_calls)
            reason = "tool_calls" if answer.tool_calls else "stop"
            self._event(call, {"index": 0, "delta": {}, "finish_reason": reason})
            self.wfile.write(b"data: [DONE]\n\n")
            self.wfile.flush()
            call.is_finished = True
        except OSError:
            if call.closed_at_s is None:
                call.closed_at_s = time.monotonic()
        finally:
            call.over.set()
            watcher.join(timeout=2)

    def _stream_tool_calls(self, call: Call, wanted: Sequence[Mapping[str, Any]]) -> None:
        """Write calls as endpoints do: first id and name, then the arguments in parts."""
        for index, tool in enumerate(wanted):
            arguments = tool.get("arguments", {})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            head = {"index": index, "id": f"call-{len(self.server.owner.calls)}-{index}", "type": "function"}
            parts: list[dict[str, Any]] = [{**head, "function": {"name": tool["name"], "arguments": ""}}]
            parts += [
                {"index": index, "function": {"arguments": text[start : start + 7]}} for start in range(0, len(text), 7)
            ]
            for part in parts:
                self._event(call, {"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": None})

    def _wait_until(self, due_s: float, gone: threading.Event) -> None:
        while (left_s := due_s - time.monotonic()) > 0 and not gone.is_set():
            if self.server.owner.is_stopping.wait(min(left_s, 0.02)):
                return

    def _event(self, call: Call, choice: dict[str, Any]) -> None:
        line = json.dumps({**_head("chat.completion.chunk", call), "choices": [choice]}, ensure_ascii=False)
        self.wfile.write(f"data: {line}\n\n".encode())
        self.wfile.flush()

    def _json(self, status: int, value: object) -> None:
        content = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _head(kind: str, call: Call) -> dict[str, Any]:
    return {
        "id": f"scripted-{call.at_s:.6f}",
        "object": kind,
        "created": 0,
        "model": call.body.get("model", "scripted"),
    }


def _watch(connection: socket.socket, call: Call, gone: threading.Event) -> None:
    """Note the moment the client closes its side; a client sends nothing more after its request."""
    while not call.over.is_set():
        try:
            readable, _, _ = select.select([connection], [], [], 0.02)
            if readable and not connection.recv(1, socket.MSG_PEEK):
                call.closed_at_s = time.monotonic()
                gone.set()
                return
        except (OSError, ValueError):
            # The handler closed the socket, or the client reset it.
            if not call.over.is_set():
                call.closed_at_s = time.monotonic()
                gone.set()
            return
