"""Brings changed settings and learned words into the running conversation."""

from __future__ import annotations

from collections.abc import Sequence

from audio.ears_config import preset
from desktop.bootstrap import Assembly
from desktop.models import ModelStore
from desktop.settings import Settings
from desktop.sound_models import load_voices


class EngineDoor:
    """Implements `LiveDoor` and `WordDoor` for an assembly. One thread at a time for each."""

    def __init__(self, assembly: Assembly, store: ModelStore) -> None:
        """Change the parts of `assembly`; voices come from `store`."""
        self._engine = assembly.engine
        self._brains = assembly.brains
        self._store = store

    def apply(self, name: str, settings: Settings) -> None:
        """Take over `name`. Raises `InputError` for an unknown device or a missing voice, `PartFailed` otherwise."""
        match name:
            case "input_device" | "output_device":
                self._engine.choose_devices(input_name=settings.input_device, output_name=settings.output_device)
            case "sensitivity" | "patience":
                self._engine.ears.configure(preset(patience=settings.patience, sensitivity=settings.sensitivity))
            case "talk_mode":
                self._engine.ears.set_hands_free(settings.talk_mode == "hands_free")
            case "voice" | "volume" | "speed" | "unspeakable":
                self._engine.speech.set_voices(load_voices(settings, self._store))
            case _:
                raise ValueError(f"{name} can't be changed while running")

    def expect_words(self, words: Sequence[str]) -> None:
        """Expect the character's names and `words` from the next sentence on."""
        self._engine.recogniser.set_hotwords(tuple(dict.fromkeys((*self._brains.hotwords(), *words))))
