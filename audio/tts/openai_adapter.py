"""A voice behind an OpenAI-compatible `/v1/audio/speech`. Word times are estimated."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
import wave
from collections.abc import Sequence

import numpy as np

from audio.ports import Samples
from audio.tts.normalise import normalise, sentence
from audio.tts.timing import estimated_utterance
from audio.tts.voice import Utterance
from orchestrator.contracts.errors import InputError, PartFailed

_PCM_RATE_HZ = 24_000
_MAX_BYTES = 64 * 1024 * 1024


class OpenAiSynthesiser:
    """Asks the server for one sentence at a time, as wav; a raw PCM answer is taken as 16 bit at 24 kHz."""

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        voice: str,
        key: str | None = None,
        languages: Sequence[str] = ("en", "zh"),
        speed: float = 1.0,
        timeout_s: float = 20.0,
    ) -> None:
        """Speak with `voice` of `model` at `base_url` (ending in `/v1`); `key` goes into the request only.

        Raises:
            InputError: `base_url` is no http address.
        """
        if not base_url.startswith(("http://", "https://")):
            raise InputError("voice_url", f"voice address {base_url!r} must begin with http:// or https://", part="tts")
        self._url = base_url.rstrip("/") + "/audio/speech"
        self._model = model
        self._voice = voice
        self._key = key
        self._languages = frozenset(languages)
        self._speed = speed
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        """Name of the voice."""
        return f"{self._model}/{self._voice}"

    def speaks(self, language: str) -> bool:
        """Whether the voice was configured for `language`."""
        return language in self._languages

    def synthesise(self, text: str, *, language: str) -> Utterance:
        """Speak `text`.

        Raises:
            PartFailed: the server cannot be reached, refused, or sent no sound.
        """
        body = {
            "model": self._model,
            "voice": self._voice,
            "input": sentence(normalise(text, language), language),
            "response_format": "wav",
            "speed": self._speed,
        }
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                kind = str(response.headers.get_content_type())
                data: bytes = response.read(_MAX_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                message = f"the voice server answered {error.code} {error.reason}"
                raise PartFailed("voice_refused", message, part="tts", recoverable=True) from error
        except (OSError, ValueError) as error:
            raise PartFailed(
                "voice_unreachable", f"the voice server cannot be reached: {error}", part="tts", recoverable=True
            ) from error
        pcm, rate_hz = _decode(data, kind)
        return estimated_utterance(text, pcm, rate_hz)


def _decode(data: bytes, kind: str) -> tuple[Samples, int]:
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
    return PartFailed(
        "voice_format", f"the voice server sent {what} instead of 16-bit wav", part="tts", recoverable=True
    )
