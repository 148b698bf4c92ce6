"""Asks a server that recognises or speaks whether it can be used: one short request, one line of result."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import secrets
import socket
import ssl
import threading
import urllib.parse
import wave
from dataclasses import dataclass

from desktop.key_vault import KeyVault
from desktop.settings import Settings
from desktop.sound_server import DEFAULT_MODELS, DEFAULT_VOICE, SoundServer, parse_server, server_key
from orchestrator.clock import Clock
from orchestrator.contracts.errors import MynahError, PartFailed

_TIMEOUT_S = 10.0
_MOST_BYTES = 8 * 1024 * 1024
_RATE_HZ = 16_000
_WORDS = {"voice": "Hello! 你好！"}
_PATHS = {"voice": "/audio/speech", "whisper": "/audio/transcriptions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundTest:
    """How a test ended.

    `code` is works, address (nothing of the kind is there), key, model, voice, busy, answer (it answers something
    else), server (an error of its own), slow, keyring or cancelled; `detail` is the server's word on it or what it
    sent, `ms` how long the answer took.
    """

    setting: str
    code: str
    detail: str = ""
    ms: int = 0

    @property
    def is_ok(self) -> bool:
        """Whether it can be used as it is set."""
        return self.code == "works"


class SoundProbe:
    """One test. `run` blocks for at most some ten seconds; `cancel` ends it from any thread."""

    def __init__(self, setting: str, server: SoundServer, key: str | None, clock: Clock) -> None:
        """Ask `server` for what `setting` (voice or whisper) needs of it; `key` goes into the request only."""
        self._setting = setting
        self._server = server
        self._key = key
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Give it up; `run` returns soon."""
        with self._lock:
            self._is_cancelled = True
            connection = self._connection
        if connection is not None and connection.sock is not None:
            # Only a shutdown wakes a thread that waits for an answer.
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def run(self) -> SoundTest:
        """Ask. Raises nothing."""
        began_s = self._clock.monotonic_s()
        try:
            status, kind, data = self._ask()
        except TimeoutError:
            return self._ended("slow", f"{_TIMEOUT_S:.0f} s")
        except (OSError, ValueError, http.client.HTTPException) as error:
            return self._ended("address", " ".join(str(error).split())[:120] or type(error).__name__)
        ms = max(1, round(1000 * (self._clock.monotonic_s() - began_s)))
        if status >= 300:
            return self._refusal(status, data)
        fault = self._fault(kind, data)
        return self._ended("answer", fault) if fault else self._ended("works", ms=ms)

    def _ended(self, code: str, detail: str = "", ms: int = 0) -> SoundTest:
        if self._is_cancelled:
            code, detail = "cancelled", ""
        return SoundTest(setting=self._setting, code=code, detail=detail, ms=ms)

    # --- asking -----------------------------------------------------------------------------------------

    def _ask(self) -> tuple[int, str, bytes]:
        parts = urllib.parse.urlsplit(self._server.url)
        host, port = str(parts.hostname), parts.port
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port, timeout=_TIMEOUT_S, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
        body, content_type = self._speech() if self._setting == "voice" else self._recording()
        headers = {"Content-Type": content_type}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        with self._lock:
            if self._is_cancelled:
                raise OSError("cancelled")
            self._connection = connection
        try:
            connection.request("POST", parts.path + _PATHS[self._setting], body, headers)
            response = connection.getresponse()
            data = response.read(_MOST_BYTES)
            return response.status, str(response.headers.get_content_type()), data
        finally:
            connection.close()

    def _speech(self) -> tuple[bytes, str]:
        body = {
            "model": self._server.model or DEFAULT_MODELS["voice"],
            "voice": self._server.voice or DEFAULT_VOICE,
            "input": _WORDS["voice"],
            "response_format": "wav",
            "speed": 1.0,
        }
        return json.dumps(body).encode(), "application/json"

    def _recording(self) -> tuple[bytes, str]:
        """Return a form with a second of silence: what it says does not matter, nothing of the user's is sent."""
        mark = secrets.token_hex(16)
        fields = {
            "model": self._server.model or DEFAULT_MODELS["whisper"],
            "response_format": "json",
            "temperature": "0",
        }
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        ]
        head = 'Content-Disposition: form-data; name="file"; filename="speech.wav"\r\nContent-Type: audio/wav'
        parts.append(f"--{mark}\r\n{head}\r\n\r\n".encode() + _silence() + b"\r\n")
        parts.append(f"--{mark}--\r\n".encode())
        return b"".join(parts), f"multipart/form-data; boundary={mark}"

    # --- judging ----------------------------------------------------------------------------------------

    def _refusal(self, status: int, data: bytes) -> SoundTest:
        said, about = _said(data)
        if status in (401, 403):
            return self._ended("key", said or str(status))
        if status == 429:
            return self._ended("busy", said or str(status))
        if "model" in about:
            return self._ended("model", said)
        if "voice" in about and self._setting == "voice":
            return self._ended("voice", said)
        if status in (404, 405, 501) or 300 <= status < 400:
            # A path that nobody serves; one who knows the path but not the model says so.
            return self._ended("address", f"{status}")
        return self._ended("server", f"{status} {said}".strip())

    def _fault(self, kind: str, data: bytes) -> str:
        """Return what is wrong with an answer that claims success, an empty text if nothing is."""
        if self._setting == "voice":
            # Imported here: the window must not wait for numpy.
            from audio.tts.openai_adapter import decode_answer

            try:
                pcm, _ = decode_answer(data, kind)
            except PartFailed:
                return kind
            return "" if len(pcm) else "0 s"
        try:
            text = json.loads(data).get("text")
        except (ValueError, AttributeError):
            return kind
        return "" if isinstance(text, str) else "text"


class SoundTests:
    """The tests that run, at most one for each setting. Any thread."""

    def __init__(self, clock: Clock, vault: KeyVault) -> None:
        """Take keys that are not in the environment from `vault`."""
        self._clock = clock
        self._vault = vault
        self._running: dict[str, SoundProbe] = {}

    def run(self, setting: str, settings: Settings) -> SoundTest:
        """Test the server that `setting` (voice or whisper) names; without one there is no such address. Blocks."""
        server = parse_server(setting, getattr(settings, setting))
        if server is None:
            return SoundTest(setting=setting, code="address")
        try:
            key = server_key(setting, server, settings, self._vault)
        except MynahError as error:
            return SoundTest(setting=setting, code="keyring", detail=error.message)
        probe = self._running[setting] = SoundProbe(setting, server, key, self._clock)
        try:
            return probe.run()
        finally:
            self._running.pop(setting, None)

    def cancel(self, setting: str | None = None) -> None:
        """Give the test of `setting` up, or all; its result follows."""
        for name, probe in list(self._running.items()):
            if setting in (None, name):
                probe.cancel()


def _said(data: bytes) -> tuple[str, str]:
    """Return the server's own line on what is wrong, and everything it is about, in lower case."""
    try:
        body = json.loads(data[:20_000])
    except ValueError:
        return "", ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, str):
        return _line(error), error.casefold()
    if not isinstance(error, dict):
        return "", ""
    detail = error.get("message") or error.get("detail") or ""
    message = detail if isinstance(detail, str) else json.dumps(detail)
    about = " ".join(str(part) for part in (message, error.get("code"), error.get("param")) if part)
    return _line(message), about.casefold()


def _line(text: str) -> str:
    return " ".join(text.split())[:160]


def _silence() -> bytes:
    target = io.BytesIO()
    with wave.open(target, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(_RATE_HZ)
        writer.writeframes(bytes(2 * _RATE_HZ))
    return target.getvalue()
