"""Loads what hears and speaks, side by side, with progress."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable

from audio.engine import AudioModels
from audio.stt.transcription import SpeechRecogniser
from audio.stt.whisper_adapter import WhisperAdapter
from audio.tts.espeak_adapter import EspeakSynthesiser
from audio.tts.piper_adapter import PiperSynthesiser
from audio.tts.voice import SpeechSynthesiser
from desktop.models import ModelStore
from desktop.paths import cache_dir
from desktop.settings import Settings
from desktop.voice_parts import parted_voice
from orchestrator.clock import Clock
from orchestrator.contracts.errors import MynahError

Progress = Callable[[str], None]


def load_final(settings: Settings, store: ModelStore, clock: Clock) -> SpeechRecogniser:
    """Load the recogniser of finished utterances. Raises `InputError` model_missing or model_broken."""
    return WhisperAdapter(store.path(settings.whisper), clock=clock, cpu_threads=2, cache_dir=cache_dir() / "silence")


def load_partial(settings: Settings, store: ModelStore, clock: Clock) -> SpeechRecogniser | None:
    """Load the recogniser of words in progress; none where it is not installed or would be the same."""
    if settings.whisper_partial == settings.whisper or not store.is_installed(settings.whisper_partial):
        return None
    return WhisperAdapter(
        store.path(settings.whisper_partial), clock=clock, cpu_threads=1, cache_dir=cache_dir() / "silence"
    )


def load_voices(settings: Settings, store: ModelStore, seed: int | None = None) -> tuple[SpeechSynthesiser, ...]:
    """Load the voice, and the one that speaks what it can't, if wanted and installed."""
    folder = store.path(settings.voice)
    path = folder if folder.is_file() else folder / "voice.onnx"
    parted = parted_voice(path, cache_dir() / "voices")
    piper = PiperSynthesiser(path, parted=parted, speed=settings.speed, volume=settings.volume, seed=seed)
    voices: list[SpeechSynthesiser] = [piper]
    if settings.unspeakable == "espeak":
        voices.append(EspeakSynthesiser(speed=settings.speed, volume=settings.volume))
    return tuple(voices)


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
        return AudioModels(final=final.result(), partial=partial.result(), voices=spoken)


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
    return AudioModels(final=final, partial=partial, voices=voices), errors
