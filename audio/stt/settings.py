"""What can be set about recognition."""

from __future__ import annotations

from dataclasses import dataclass

from audio.stt.chinese import ChineseScript


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTable:
    """What decoding costs in seeded virtual time: a fixed part and a part per second of audio, in seconds."""

    final_base_s: float = 0.2
    final_per_audio_s: float = 0.06
    partial_base_s: float = 0.12
    partial_per_audio_s: float = 0.04

    def cost_s(self, *, final: bool, audio_s: float) -> float:
        """Return what decoding `audio_s` seconds costs."""
        if final:
            return self.final_base_s + self.final_per_audio_s * audio_s
        return self.partial_base_s + self.partial_per_audio_s * audio_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RecogniserSettings:
    """What the user chose.

    `languages` are those the user speaks, the first being that of the app. `partial_languages` are those that the
    partial model understands; `partial_load` is how much of one core partials may take on average, 0 for none.
    """

    languages: tuple[str, ...] = ("en", "zh")
    script: ChineseScript = ChineseScript.SIMPLIFIED
    hotwords: tuple[str, ...] = ()
    partial_languages: frozenset[str] = frozenset({"en"})
    partial_load: float = 0.5
