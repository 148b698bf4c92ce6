"""Recognition by a server, when the setting `whisper` is an address instead of a model's name."""

from __future__ import annotations

from audio.stt.openai_adapter import OpenAiRecogniser
from desktop.sound_server import DEFAULT_MODELS, SoundServer
from orchestrator.clock import Clock

_TIMEOUT_S = 8.0


def speech_server(server: SoundServer, key: str | None, clock: Clock) -> OpenAiRecogniser:
    """Return the recogniser that asks `server` with `key`; nothing is asked of it yet."""
    # Imported here: it takes half a second, which those who recognise offline need not wait for.
    import openai

    client = openai.OpenAI(base_url=server.url, api_key=key or "none", timeout=_TIMEOUT_S, max_retries=0)
    return OpenAiRecogniser(client, model=server.model or DEFAULT_MODELS["whisper"], address=server.url, clock=clock)
