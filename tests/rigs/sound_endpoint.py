"""A stand-in for a server that recognises and speaks: OpenAI's two paths, with a key, models and voices of its own."""

from __future__ import annotations

import http.server
import io
import json
import re
import threading
import wave
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np

KEY, MODEL, VOICE = "sk-right", "fine/model", "heart"
RATE_HZ = 16_000


@dataclass
class Asked:
    """One request that came."""

    path: str
    key: str | None
    body: bytes


@dataclass
class SoundEndpoint:
    """Serves while it is entered. `key` None takes any; a cleared `gate` keeps every answer back until it is set."""

    key: str | None = KEY
    text: str = "What is a whale?"
    asked: list[Asked] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()
        self.came = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"rig": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True, name="sound-endpoint"
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> SoundEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2.0)

    def answer(self, path: str, key: str | None, body: bytes) -> tuple[int, str, bytes]:
        if path not in ("/v1/audio/speech", "/v1/audio/transcriptions"):
            return _refusal(404, "Not Found", as_detail=True)
        if self.key is not None and key != self.key:
            return _refusal(401, "Incorrect API key provided", code="invalid_api_key")
        if path.endswith("transcriptions"):
            found = re.search(rb'name="model"\r\n\r\n([^\r]*)', body)
            if found is None or found[1].decode() != MODEL:
                return _refusal(404, "The model does not exist", code="model_not_found")
            return 200, "application/json", json.dumps({"text": self.text, "language": "english"}).encode()
        wanted = json.loads(body)
        if wanted["model"] != MODEL:
            return _refusal(400, "Unknown model", param="model")
        if wanted["voice"] != VOICE:
            return _refusal(400, "Input should be 'heart'", param="voice")
        return 200, "audio/wav", _tone()


class _Handler(http.server.BaseHTTPRequestHandler):
    rig: SoundEndpoint

    def do_POST(self) -> None:
        rig = self.rig
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given = self.headers["Authorization"]
        key = given.removeprefix("Bearer ") if given else None
        rig.asked.append(Asked(path=self.path, key=key, body=body))
        rig.came.set()
        rig.gate.wait(30.0)
        status, kind, raw = rig.answer(self.path, key, body)
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
        except OSError:
            # Whoever asked has given it up.
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _refusal(status: int, message: str, *, as_detail: bool = False, **more: str) -> tuple[int, str, bytes]:
    body: dict[str, Any] = {"detail": message} if as_detail else {"error": {"message": message, **more}}
    return status, "application/json", json.dumps(body).encode()


def _tone() -> bytes:
    samples = (0.3 * np.sin(np.arange(RATE_HZ // 2) * 0.1) * 32767).astype("<i2")
    target = io.BytesIO()
    with wave.open(target, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE_HZ)
        writer.writeframes(samples.tobytes())
    return target.getvalue()


class MemoryVault:
    """A keyring in memory; implements `KeyVault`. With `is_there` False there is none."""

    def __init__(self, is_there: bool = True) -> None:
        self.keys: dict[str, str] = {}
        self.is_there = is_there

    def read(self, url: str) -> str | None:
        self._check()
        return self.keys.get(url)

    def write(self, url: str, key: str) -> None:
        self._check()
        self.keys[url] = key

    def delete(self, url: str) -> None:
        self._check()
        self.keys.pop(url, None)

    def _check(self) -> None:
        from orchestrator.contracts.errors import InputError

        if not self.is_there:
            raise InputError("keyring_unavailable", "there is no keyring here", part="settings")
