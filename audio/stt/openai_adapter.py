"""Recognition by any server that speaks OpenAI's `/v1/audio/transcriptions`."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from audio.pcm import to_int16
from audio.ports import Samples
from audio.stt.guards import compression_ratio, find_flaw
from audio.stt.text import has_cjk
from audio.stt.transcription import SAMPLE_RATE_HZ, Transcription
from orchestrator.clock import Clock
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.wellformed import mend_text

_LANGUAGE_NAMES = {"english": "en", "chinese": "zh", "mandarin": "zh"}
_MIN_AUDIO_S = 0.1
"""Servers refuse less than this."""

_BY_STATUS = {
    401: "refused the key; check it in the settings",
    403: "refused access; check the key in the settings",
    404: "has no transcription service or no model of this name; check address and model",
    413: "refused the recording as too long",
    429: "is over its limit; wait, or choose a local model",
}


class TranscriptionsClient(Protocol):
    """The part of a synchronous `openai.OpenAI` client that is used: `client.audio.transcriptions.create(…)`."""

    @property
    def audio(self) -> Any:
        """The client's audio resources."""
        ...


class OpenAiRecogniser:
    """Sends each utterance as a wav file. Give the client a timeout and no retries: a late transcript is of no use.

    The client comes from outside, so that the audio side depends on no HTTP library.
    """

    def __init__(self, client: TranscriptionsClient, *, model: str, address: str, clock: Clock) -> None:
        """Use `model` of the server at `address`, which is named in errors only."""
        self._client = client
        self._model = model
        self._address = address
        self._clock = clock

    @property
    def cores(self) -> float:
        """One, though the work is elsewhere: partials are spaced by how long an answer takes."""
        return 1.0

    def transcribe(
        self,
        audio: Samples,
        *,
        languages: Sequence[str],
        hotwords: Sequence[str] = (),
        final: bool = True,
        vad_fraction: float | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Transcription:
        """Return the server's text. A language is only sent if it is the only one; see `SpeechRecogniser`.

        Raises:
            PartFailed: `stt_refused` (the server answered with an error), `stt_unreachable` or `stt_bad_answer`.
        """
        began_s = self._clock.monotonic_s()
        audio_s = len(audio) / SAMPLE_RATE_HZ
        options: dict[str, Any] = {"model": self._model, "response_format": "verbose_json", "temperature": 0.0}
        if len(languages) == 1:
            options["language"] = languages[0]
        if hotwords:
            options["prompt"] = ", ".join(hotwords)
        answer = self._ask(_wav_bytes(audio), options)
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise PartFailed(
                "stt_bad_answer", f"the speech server at {self._address} sent no text", part="stt", recoverable=True
            )
        text = mend_text(text).strip()
        avg_logprob, no_speech = _confidence(answer)
        return Transcription(
            text=text,
            language=_language(answer, text, languages),
            decode_s=self._clock.monotonic_s() - began_s,
            context="full",
            avg_logprob=avg_logprob,
            no_speech=no_speech,
            compression=compression_ratio(text),
            flaw=find_flaw(text, audio_s=audio_s, is_capped=False),
        )

    def _ask(self, wav: bytes, options: dict[str, Any]) -> Any:
        try:
            return self._send(wav, options)
        except Exception as error:
            status = getattr(error, "status_code", None)
            # Newer models and small servers know no verbose answer; the plain one lacks the confidence figures only.
            if status in (400, 422) and options["response_format"] == "verbose_json":
                return self._ask(wav, options | {"response_format": "json"})
            raise self._explain(error, status) from error

    def _send(self, wav: bytes, options: dict[str, Any]) -> Any:
        return self._client.audio.transcriptions.create(file=("speech.wav", wav, "audio/wav"), **options)

    def _explain(self, error: Exception, status: int | None) -> PartFailed:
        if status is None:
            reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
            message = f"the speech server at {self._address} can't be reached: {reason[0][:200]}"
            return PartFailed("stt_unreachable", message, part="stt", recoverable=True)
        reason_text = _BY_STATUS.get(status, f"answered with error {status}")
        return PartFailed(
            "stt_refused", f"the speech server at {self._address} {reason_text}", part="stt", recoverable=True
        )


def _wav_bytes(audio: Samples) -> bytes:
    short = int(_MIN_AUDIO_S * SAMPLE_RATE_HZ) - len(audio)
    padded = np.pad(audio, (0, max(0, short)))
    target = io.BytesIO()
    with wave.open(target, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(SAMPLE_RATE_HZ)
        writer.writeframes(to_int16(padded).astype("<i2").tobytes())
    return target.getvalue()


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _confidence(answer: Any) -> tuple[float | None, float | None]:
    """Return mean log probability, weighted by length, and the least no-speech probability; None if not told."""
    segments = getattr(answer, "segments", None) or []
    known = [
        (
            float(logprob),
            float(_field(segment, "no_speech_prob") or 0.0),
            max(1, len(str(_field(segment, "text") or ""))),
        )
        for segment in segments
        if isinstance(logprob := _field(segment, "avg_logprob"), (int, float))
    ]
    if not known:
        return None, None
    total = sum(weight for _, _, weight in known)
    return sum(logprob * weight for logprob, _, weight in known) / total, min(chance for _, chance, _ in known)


def _language(answer: Any, text: str, languages: Sequence[str]) -> str | None:
    """Return the language the server names (by name or code), else the only one asked for, else by the characters."""
    named = getattr(answer, "language", None)
    if isinstance(named, str) and named:
        return _LANGUAGE_NAMES.get(named.casefold(), named.casefold()[:2])
    if len(languages) == 1:
        return languages[0]
    if not text:
        return None
    return "zh" if has_cjk(text) else "en"
