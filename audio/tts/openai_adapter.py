"""A voice behind an OpenAI-compatible `/v1/audio/speech`. Word times are estimated."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import ssl
import threading
import urllib.parse
import wave
from collections.abc import Sequence

import numpy as np

from audio.ports import Samples
from audio.tts.normalise import normalise, sentence
from audio.tts.timing import estimated_utterance
from audio.tts.voice import Utterance
from orchestrator.clock import Clock, SystemClock
from orchestrator.contracts.errors import InputError, PartFailed

_PCM_RATE_HZ = 24_000
_MAX_BYTES = 64 * 1024 * 1024
_REST_S = 30.0
_KEY_STATUS = (401, 403)


class OpenAiSynthesiser:
    """Asks the server for one sentence at a time, as wav; a raw PCM answer is taken as 16 bit at 24 kHz.

    After a failure it is not asked again for 30 s (never again with a key that was refused): an answer of several
    sentences must not wait for a dead server several times. What is not spoken is shown.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        voice: str,
        key: str | None = None,
        languages: Sequence[str] = ("en", "zh"),
        speed: float = 1.0,
        volume: float = 1.0,
        timeout_s: float = 8.0,
        clock: Clock | None = None,
    ) -> None:
        """Speak with `voice` of `model` at `base_url` (ending in `/v1`); `key` goes into the request only.

        Raises:
            InputError: `base_url` is no http address.
        """
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("voice_url", f"voice address {base_url!r} must begin with http:// or https://", part="tts")
        self._address = parts
        self._path = parts.path.rstrip("/") + "/audio/speech"
        self._model = model
        self._voice = voice
        self._key = key
        self._languages = frozenset(languages)
        self._pace = speed, volume
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._is_cancelled = False
        self._fault: PartFailed | None = None
        self._rest_until_s = 0.0

    @property
    def name(self) -> str:
        """Name of the voice."""
        return f"{self._model}/{self._voice}"

    def speaks(self, language: str) -> bool:
        """Whether the voice was configured for `language`."""
        return language in self._languages

    def adjust(self, *, speed: float, volume: float) -> None:
        """Change pace and loudness from the next text on."""
        self._pace = speed, volume

    def cancel(self) -> None:
        """Close the connection of the call that is under way."""
        with self._lock:
            connection = self._connection
            if connection is None:
                return
            self._is_cancelled = True
            if connection.sock is not None:
                # Only a shutdown wakes a thread that waits for an answer; closing alone does not.
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def synthesise(self, text: str, *, language: str) -> Utterance:
        """Speak `text`.

        Raises:
            PartFailed: `voice_key_refused`, `voice_refused`, `voice_unreachable`, `voice_format`, `tts_empty`, or
                `voice_cancelled`.
        """
        if self._fault is not None and self._clock.monotonic_s() < self._rest_until_s:
            raise self._fault
        self._fault = None
        speed, volume = self._pace
        body = {
            "model": self._model,
            "voice": self._voice,
            "input": sentence(normalise(text, language), language),
            "response_format": "wav",
            "speed": speed,
        }
        try:
            data, kind = self._ask(json.dumps(body).encode())
            pcm, rate_hz = decode_answer(data, kind)
        except PartFailed as fault:
            if fault.code != "voice_cancelled":
                self._fault = fault
                is_final = fault.code == "voice_key_refused"
                self._rest_until_s = float("inf") if is_final else self._clock.monotonic_s() + _REST_S
            raise
        return estimated_utterance(text, pcm * np.float32(volume), rate_hz)

    def _ask(self, body: bytes) -> tuple[bytes, str]:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection = self._connect()
        try:
            connection.request("POST", self._path, body, headers)
            response = connection.getresponse()
            data = response.read(_MAX_BYTES)
            kind = str(response.headers.get_content_type())
            status, reason = response.status, response.reason
        except (OSError, ValueError, http.client.HTTPException) as error:
            if self._is_cancelled:
                raise _failed("voice_cancelled", "the answer was cancelled") from error
            why = str(error) or type(error).__name__
            raise _failed("voice_unreachable", f"the voice server cannot be reached: {why}") from error
        finally:
            with self._lock:
                self._connection = None
            connection.close()
        if self._is_cancelled:
            raise _failed("voice_cancelled", "the answer was cancelled")
        if status in _KEY_STATUS:
            raise _failed("voice_key_refused", f"the voice server answered {status} {reason}: it refused the key")
        if status >= 300:
            raise _failed("voice_refused", f"the voice server answered {status} {reason}")
        return data, kind

    def _connect(self) -> http.client.HTTPConnection:
        host, port = str(self._address.hostname), self._address.port
        connection: http.client.HTTPConnection
        if self._address.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        with self._lock:
            self._is_cancelled = False
            self._connection = connection
        return connection


def _failed(code: str, message: str) -> PartFailed:
    return PartFailed(code, message, part="tts", recoverable=True)


def decode_answer(data: bytes, kind: str) -> tuple[Samples, int]:
    """Return the mono sound of an answer and its rate; `kind` is its content type. Raises `PartFailed` voice_format."""
    if data[:4] == b"RIFF":
        try:
            with wave.open(io.BytesIO(data)) as file:
                if file.getsampwidth() != 2:
                    raise _bad_format("sound that is not 16 bit")
                rate_hz, channels = file.getframerate(), file.getnchannels()
                raw = file.readframes(len(data))
        except (wave.Error, EOFError) as error:
            raise _bad_format("a bad wav") from error
    elif kind in ("audio/pcm", "application/octet-stream", "audio/l16"):
        rate_hz, channels, raw = _PCM_RATE_HZ, 1, data
    else:
        raise _bad_format(kind)
    whole = len(raw) // (2 * channels) * (2 * channels)
    samples = np.frombuffer(raw[:whole], dtype="<i2").astype(np.float32) / 32768.0
    return samples.reshape(-1, channels).mean(axis=1, dtype=np.float32), rate_hz


def _bad_format(what: str) -> PartFailed:
    return _failed("voice_format", f"the voice server sent {what} instead of 16-bit wav")
