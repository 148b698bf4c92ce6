"""The setting `whisper` may be a server's address: recognition by a local stand-in."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop.models import ModelStore
from desktop.settings import Settings
from desktop.sound_models import load_final
from desktop.sound_server import KEY_ENVS, is_server
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import PartFailed


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str, bytes]] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers["Authorization"], body))
        raw = json.dumps({"text": " What is a whale?", "language": "english"}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(2.0)


def test_an_address_is_asked(server: _Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(KEY_ENVS["whisper"], "secret")
    settings = Settings(whisper=f"http://127.0.0.1:{server.server_port}/v1#base")
    recogniser = load_final(settings, ModelStore(), SystemClock())
    found = recogniser.transcribe(np.zeros(16_000, np.float32), languages=("en", "zh"), hotwords=("Mynah",))
    assert (found.text, found.language, found.end_chance) == ("What is a whale?", "en", None)
    path, authorization, body = server.requests[0]
    assert path == "/v1/audio/transcriptions" and authorization == "Bearer secret"
    assert b"base" in body and b"Mynah" in body and b"RIFF" in body


def test_a_server_that_refuses_is_a_clear_failure(server: _Server) -> None:
    server.status = 401
    recogniser = load_final(Settings(whisper=f"http://127.0.0.1:{server.server_port}/v1"), ModelStore(), SystemClock())
    with pytest.raises(PartFailed, match="refused the key"):
        recogniser.transcribe(np.zeros(16_000, np.float32), languages=("en",))


def test_names_and_folders_are_no_servers() -> None:
    assert is_server("https://example.org/v1") and not is_server("whisper-base")
    assert not is_server("/models/whisper")
