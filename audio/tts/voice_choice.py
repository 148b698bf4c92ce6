"""Which voice says a text: the one asked for, the user's, or the one that stands in for a language they can't say."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from audio.tts.growing import GrowingSound
from audio.tts.voice import AdjustableSynthesiser, CancellableSynthesiser, SpeechSynthesiser, begin, spoken_language
from orchestrator.contracts.errors import MynahError, PartFailed
from orchestrator.contracts.intents import SpeechIntent

log = logging.getLogger(__name__)

VoiceLoader = Callable[[str], SpeechSynthesiser]
"""Loads a voice by name; blocks. Raises `MynahError` if there is none."""

_LOADED_KEPT = 3


class VoiceChoice:
    """The voices at hand, in order of preference. Callable from any thread; `begin` belongs to the speech worker."""

    def __init__(self, voices: Sequence[SpeechSynthesiser], load: VoiceLoader | None = None) -> None:
        """Prefer the first of `voices` that speaks a language; a voice asked for by name may be loaded by `load`."""
        self._voices = list(voices)
        self._load = load
        self._lock = threading.Lock()
        self._loaded: dict[str, SpeechSynthesiser] = {}
        self._missing: dict[str, str] = {}
        self._pace: tuple[float, float] | None = None
        self._current: SpeechSynthesiser | None = None

    def able(self, intent: SpeechIntent) -> tuple[list[SpeechSynthesiser], str | None]:
        """Return the voices that can say `intent`, best first, and the name of one that has to be loaded before them.

        A voice asked for comes first if it speaks the language of the text.
        """
        language = spoken_language(intent.text, intent.language)
        with self._lock:
            able = [voice for voice in (*self._voices, *self._loaded.values()) if voice.speaks(language)]
            wanted = intent.voice
            if wanted is None:
                return [voice for voice in able if voice in self._voices], None
            is_known = any(voice.name == wanted for voice in (*self._voices, *self._loaded.values()))
            able = [voice for voice in able if voice in self._voices or voice.name == wanted]
            able.sort(key=lambda voice: voice.name != wanted)
            to_load = wanted if not is_known and self._load is not None and wanted not in self._missing else None
            return able, to_load

    def is_first(self, voice: SpeechSynthesiser) -> bool:
        """Whether `voice` is the user's own."""
        return bool(self._voices) and voice is self._voices[0]

    def begin(self, intent: SpeechIntent, *, first_s: float) -> tuple[GrowingSound | None, list[MynahError]]:
        """Make the first sound of `intent` with the first voice that can; return it with the faults of the others."""
        faults: list[MynahError] = []
        _, to_load = self.able(intent)
        if to_load is not None:
            self._fetch(to_load, faults)
        language = spoken_language(intent.text, intent.language)
        for voice in self.able(intent)[0]:
            self._current = voice
            try:
                return GrowingSound(
                    begin(voice, intent.text, language=language, first_s=first_s), first_s=first_s
                ), faults
            except PartFailed as error:
                faults.append(error)
            except Exception as error:
                log.exception("voice %s failed", voice.name)
                faults.append(PartFailed("tts_failed", f"the voice {voice.name} failed: {error}", part="tts"))
            finally:
                self._current = None
        return None, faults

    def adjust(self, *, speed: float, volume: float) -> None:
        """Change pace and loudness of all voices, from the next sentence on."""
        with self._lock:
            self._pace = speed, volume
            for voice in (*self._voices, *self._loaded.values()):
                if isinstance(voice, AdjustableSynthesiser):
                    voice.adjust(speed=speed, volume=volume)

    def cancel(self) -> None:
        """Let a voice that waits for something outside give up."""
        voice = self._current
        if isinstance(voice, CancellableSynthesiser):
            voice.cancel()

    def _fetch(self, name: str, faults: list[MynahError]) -> None:
        assert self._load is not None
        try:
            voice = self._load(name)
        except MynahError as error:
            with self._lock:
                self._missing[name] = error.message
            faults.append(PartFailed("voice_missing", error.message, part="tts", recoverable=True))
            return
        with self._lock:
            if self._pace is not None and isinstance(voice, AdjustableSynthesiser):
                voice.adjust(speed=self._pace[0], volume=self._pace[1])
            self._loaded[name] = voice
            while len(self._loaded) > _LOADED_KEPT:
                self._loaded.pop(next(iter(self._loaded)))
