"""Loads what hears and speaks, side by side, with progress."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable

from audio.engine import AudioModels
from audio.stt.transcription import SpeechRecogniser
from audio.stt.whisper_adapter import WhisperAdapter
from audio.tts.espeak_adapter import EspeakSynthesiser
from audio.tts.openai_adapter import OpenAiSynthesiser
from audio.tts.piper_adapter import PiperSynthesiser
from audio.tts.voice import SpeechSynthesiser
from desktop.key_vault import SystemKeyVault
from desktop.models import ModelStore
from desktop.paths import cache_dir
from desktop.settings import Settings
from desktop.sound_server import DEFAULT_MODELS, DEFAULT_VOICE, SoundServer, is_server, parse_server, server_key
from desktop.speech_server import speech_server
from desktop.voice_parts import parted_voice
from orchestrator.clock import Clock
from orchestrator.contracts.errors import MynahError

Progress = Callable[[str], None]


def load_final(settings: Settings, store: ModelStore, clock: Clock) -> SpeechRecogniser:
    """Load the recogniser of finished utterances: a model's name or folder, or `URL#model` of a server.

    Raises `InputError` model_missing or model_broken.
    """
    server = parse_server("whisper", settings.whisper)
    if server is not None:
        return speech_server(server, server_key("whisper", server, settings, SystemKeyVault()), clock)
    return WhisperAdapter(store.path(settings.whisper), clock=clock, cpu_threads=2, cache_dir=cache_dir() / "silence")


def load_partial(settings: Settings, store: ModelStore, clock: Clock) -> SpeechRecogniser | None:
    """Load the recogniser of words in progress; none where it is not installed or would be the same."""
    if settings.whisper_partial == settings.whisper or not store.is_installed(settings.whisper_partial):
        return None
    return WhisperAdapter(
        store.path(settings.whisper_partial), clock=clock, cpu_threads=1, cache_dir=cache_dir() / "silence"
    )


def load_voices(settings: Settings, store: ModelStore, seed: int | None = None) -> tuple[SpeechSynthesiser, ...]:
    """Load the user's voice, and the ones that speak what it can't: an installed one, else espeak-ng if wanted.

    Raises `InputError` for a voice that is not there, `voice_url` or `keyring_unavailable` for one of a server.
    """
    own = load_voice(settings.voice, settings, store, seed)
    voices = [own]
    for language in settings.languages:
        if not any(voice.speaks(language) for voice in voices):
            other = next((name for name in installed_voices(store, language) if name != settings.voice), None)
            if other is not None:
                voices.append(load_voice(other, settings, store, seed))
    # A server's voice speaks all languages; while it does not answer, text is shown rather than said by a plain voice.
    if settings.unspeakable == "espeak" and not is_server(settings.voice):
        voices.append(EspeakSynthesiser(speed=settings.speed, volume=settings.volume))
    return tuple(voices)


def load_voice(name: str, settings: Settings, store: ModelStore, seed: int | None = None) -> SpeechSynthesiser:
    """Load one voice: a model's name or folder, or `URL#model/voice` of a server. Raises `InputError`."""
    server = parse_server("voice", name)
    if server is not None:
        return _server_voice(server, settings)
    folder = store.path(name)
    path = folder if folder.is_file() else folder / "voice.onnx"
    parted = parted_voice(path, cache_dir() / "voices")
    return PiperSynthesiser(path, parted=parted, speed=settings.speed, volume=settings.volume, seed=seed)


def installed_voices(store: ModelStore, language: str | None = None) -> list[str]:
    """Return the names of the voices of the catalogue that are installed, of one language or of all."""
    return [
        model.name
        for model in store.catalogue.models.values()
        if model.kind == "tts" and (language is None or language in model.languages) and store.is_installed(model.name)
    ]


def _server_voice(server: SoundServer, settings: Settings) -> SpeechSynthesiser:
    return OpenAiSynthesiser(
        server.url,
        model=server.model or DEFAULT_MODELS["voice"],
        voice=server.voice or DEFAULT_VOICE,
        key=server_key("voice", server, settings, SystemKeyVault()),
        languages=("en", "zh"),
        speed=settings.speed,
        volume=settings.volume,
    )


def load_all(
    settings: Settings, store: ModelStore, clock: Clock, progress: Progress, seed: int | None = None
) -> AudioModels:
    """Load everything, in parallel; with a `seed` the voice sounds the same in every run.

    Raises the first `MynahError` met.
    """
    with concurrent.futures.ThreadPoolExecutor(max_workers=3, thread_name_prefix="load") as pool:
        final = pool.submit(load_final, settings, store, clock)
        voices = pool.submit(load_voices, settings, store, seed)
        partial = pool.submit(load_partial, settings, store, clock)
        progress("voice")
        spoken = voices.result()
        progress("recogniser")
        return AudioModels(
            final=final.result(),
            partial=partial.result(),
            voices=spoken,
            load_voice=lambda name: load_voice(name, settings, store, seed),
        )


def load_what_works(
    settings: Settings, store: ModelStore, clock: Clock, progress: Progress
) -> tuple[AudioModels, list[MynahError]]:
    """Load what can be loaded; returns it with the errors of the rest, for a window that opens in any case."""
    errors: list[MynahError] = []
    final: SpeechRecogniser | None = None
    partial: SpeechRecogniser | None = None
    voices: tuple[SpeechSynthesiser, ...] = ()
    try:
        return load_all(settings, store, clock, progress), errors
    except MynahError:
        pass
    try:
        final = load_final(settings, store, clock)
        partial = load_partial(settings, store, clock)
    except MynahError as error:
        errors.append(error)
    try:
        voices = load_voices(settings, store)
    except MynahError as error:
        errors.append(error)
    models = AudioModels(
        final=final, partial=partial, voices=voices, load_voice=lambda name: load_voice(name, settings, store)
    )
    return models, errors
