"""Recognition by an OpenAI-compatible server: the real client against a small local server."""

from __future__ import annotations

import http.server
import io
import json
import threading
import wave
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import openai
import pytest

from audio.stt.openai_adapter import OpenAiRecogniser
from audio.stt.rejection import reject
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import PartFailed

Answer = Callable[[str, bytes], tuple[int, Any]]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    answer: Answer
    requests: list[tuple[str, bytes]]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, body))
        status, answer = self.server.answer(self.path, body)
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.requests = []
    server.answer = lambda path, body: (200, {"text": "hello"})
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="stt-server", daemon=True
    )
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
def recogniser(server: _Server) -> Iterator[OpenAiRecogniser]:
    address = f"http://127.0.0.1:{server.server_port}/v1"
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0, timeout=10.0) as client:
        yield OpenAiRecogniser(client, model="whisper-1", address=address, clock=SystemClock())


def _field(body: bytes, name: str) -> str | None:
    mark = f'name="{name}"\r\n\r\n'.encode()
    return body.split(mark)[1].split(b"\r\n")[0].decode() if mark in body else None


def test_an_utterance_goes_out_as_wav_and_comes_back_as_text(server: _Server, recogniser: OpenAiRecogniser) -> None:
    segments = [{"text": "turn it on", "avg_logprob": -0.2, "no_speech_prob": 0.05}]
    server.answer = lambda path, body: (200, {"text": " turn it on ", "language": "english", "segments": segments})
    audio = np.linspace(-1, 1, 16_000, dtype=np.float32)
    result = recogniser.transcribe(audio, languages=("en", "zh"), hotwords=("Mynah", "ComfyUI"))
    assert (result.text, result.language, result.avg_logprob, result.no_speech) == ("turn it on", "en", -0.2, 0.05)
    ((path, body),) = server.requests
    assert path == "/v1/audio/transcriptions"
    assert (_field(body, "model"), _field(body, "prompt")) == ("whisper-1", "Mynah, ComfyUI")
    assert _field(body, "language") is None
    with wave.open(io.BytesIO(body[body.index(b"RIFF") :])) as sent:
        assert (sent.getframerate(), sent.getnchannels(), sent.getsampwidth()) == (16_000, 1, 2)
        frames = np.frombuffer(sent.readframes(16_000), "<i2")
    assert frames[0] == -32768
    assert frames[-1] == 32767


def test_the_only_language_is_sent(server: _Server, recogniser: OpenAiRecogniser) -> None:
    server.answer = lambda path, body: (200, {"text": "你好", "language": "chinese"})
    assert recogniser.transcribe(np.zeros(1600, np.float32), languages=("zh",)).language == "zh"
    assert _field(server.requests[0][1], "language") == "zh"


def test_a_server_without_verbose_answers_is_asked_again(server: _Server, recogniser: OpenAiRecogniser) -> None:
    server.answer = lambda path, body: (
        (400, {"error": {"message": "response_format"}}) if b"verbose_json" in body else (200, {"text": "今天很好"})
    )
    result = recogniser.transcribe(np.zeros(16_000, np.float32), languages=("en", "zh"))
    assert (result.text, result.language, result.avg_logprob) == ("今天很好", "zh", None)
    assert len(server.requests) == 2


def test_what_the_server_is_unsure_of_is_rejected(server: _Server, recogniser: OpenAiRecogniser) -> None:
    segments = [{"text": "Thank you.", "avg_logprob": -0.9, "no_speech_prob": 0.7}]
    server.answer = lambda path, body: (200, {"text": "Thank you.", "language": "english", "segments": segments})
    result = recogniser.transcribe(np.zeros(16_000, np.float32), languages=("en",))
    assert reject(result, vad_fraction=0.9) == "low_confidence"


@pytest.mark.parametrize(
    ("status", "answer", "code", "words"),
    [
        (401, {"error": {"message": "bad key"}}, "stt_refused", "key"),
        (404, {"error": {"message": "no such model"}}, "stt_refused", "model"),
        (429, {"error": {"message": "slow down"}}, "stt_refused", "limit"),
        (500, b"oops", "stt_refused", "500"),
        (400, {"error": {"message": "no"}}, "stt_refused", "400"),
        (200, {"something": "else"}, "stt_bad_answer", "no text"),
    ],
)
def test_errors_are_one_clear_line(
    status: int, answer: Any, code: str, words: str, server: _Server, recogniser: OpenAiRecogniser
) -> None:
    server.answer = lambda path, body: (status, answer)
    with pytest.raises(PartFailed) as caught:
        recogniser.transcribe(np.zeros(16_000, np.float32), languages=("en",))
    assert caught.value.code == code
    assert words in caught.value.message
    assert "127.0.0.1" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.recoverable


def test_an_absent_server_is_named() -> None:
    with openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0, timeout=5.0) as client:
        absent = OpenAiRecogniser(client, model="m", address="127.0.0.1:9", clock=SystemClock())
        with pytest.raises(PartFailed) as caught:
            absent.transcribe(np.zeros(16_000, np.float32), languages=("en",))
    assert caught.value.code == "stt_unreachable"
    assert "127.0.0.1:9" in caught.value.message
