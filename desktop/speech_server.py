"""Recognition by a server, when the setting `whisper` is an address instead of a model's name."""

from __future__ import annotations

import os

from audio.stt.openai_adapter import OpenAiRecogniser
from desktop.key_vault import SystemKeyVault
from orchestrator.clock import Clock

SPEECH_KEY_ENV = "MYNAH_STT_KEY"
"""Environment variable with the key of the speech server; without it the system's keyring is asked."""

_MODEL = "whisper-1"
_TIMEOUT_S = 8.0


def is_speech_server(name: str) -> bool:
    """Whether the recogniser `name` is the address of a server that speaks OpenAI's `/v1/audio/transcriptions`."""
    return name.startswith(("http://", "https://"))


def speech_server(name: str, clock: Clock) -> OpenAiRecogniser:
    """Return the recogniser at `name`, `URL#model`; nothing is asked of it yet.

    Raises:
        InputError: `keyring_unavailable` if the key is to come from a keyring that can't be read.
    """
    # Imported here: it takes half a second, which those who recognise offline need not wait for.
    import openai

    url, _, model = name.partition("#")
    key = os.environ.get(SPEECH_KEY_ENV)
    if key is None and url.startswith("https://"):
        key = SystemKeyVault().read(url.rstrip("/"))
    client = openai.OpenAI(base_url=url, api_key=key or "none", timeout=_TIMEOUT_S, max_retries=0)
    return OpenAiRecogniser(client, model=model or _MODEL, address=url, clock=clock)
