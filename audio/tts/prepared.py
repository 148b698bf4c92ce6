"""First sounds of answers that may never be given, made while the end of the user's turn is still being judged."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from audio.tts.growing import GrowingSound
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.intents import SpeechIntent

_MOST = 2

_Key = tuple[str, str | None, str | None]


@dataclass(slots=True)
class Prepared:
    """The first sound of a text, made ahead; none until it is ready, or if it could not be made."""

    generation_id: GenerationId
    sound: GrowingSound | None = None
    synth_s: float = 0.0


class PreparedSounds:
    """At most two, found again by what is said; the oldest is forgotten. Not thread-safe."""

    def __init__(self) -> None:
        """Begin empty."""
        self._kept: OrderedDict[_Key, Prepared] = OrderedDict()

    def __contains__(self, intent: SpeechIntent) -> bool:
        return _key_of(intent) in self._kept

    def add(self, intent: SpeechIntent) -> Prepared:
        """Make room for the sound of `intent`."""
        prepared = self._kept[_key_of(intent)] = Prepared(generation_id=intent.generation_id)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return prepared

    def take(self, intent: SpeechIntent) -> Prepared | None:
        """Return what was made for the text of `intent` and forget it; None if nothing was."""
        return self._kept.pop(_key_of(intent), None)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


def _key_of(intent: SpeechIntent) -> _Key:
    return intent.text, intent.language, intent.voice
