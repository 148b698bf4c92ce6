"""Numbers, dates and units: are they read as people say them, and does a recogniser understand what was said?

Sentences with written forms and what a person would say (`tests/data/spoken_forms.yml`) are spoken by the offline
voices (Piper in English, espeak-ng in Chinese) and recognised by Whisper. What is recognised is compared as it is read
aloud, so that "7:45" and "seven forty five" are the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from bench.plan import Setting
from bench.room import Failed
from bench.rows import Row, share_row
from bench.text import distance

from audio.pcm import resample
from audio.stt.chinese import ChineseScript, to_script
from audio.stt.text import units
from audio.stt.whisper_adapter import WhisperAdapter
from audio.tts.espeak_adapter import EspeakSynthesiser
from audio.tts.normalise import normalise, sentence
from audio.tts.piper_adapter import PiperSynthesiser
from audio.tts.voice import SpeechSynthesiser
from desktop.models import ModelStore
from orchestrator.clock import SystemClock

FORMS = Path(__file__).resolve().parent.parent / "data" / "spoken_forms.yml"
_TITLES = {"en": "English, Piper", "zh": "Chinese, espeak-ng"}
_RATE_HZ = 16_000
_CLOCK = re.compile(r"\d:\d\d")
_DOTTED_CLOCK = re.compile(r"(?<=\d)\.(?=\d\d\b)")


def read_as(text: str, language: str) -> list[str]:
    """Return what is said for `text`, word by word (Chinese: character by character), in comparable form."""
    simple = to_script(text, ChineseScript.SIMPLIFIED) if language == "zh" else text
    words = units(sentence(normalise(simple, language), language))
    return [char for word in words for char in word] if language == "zh" else words


class SpokenFormsSection:
    """Every sentence once. All of it is synthetic speech."""

    name = "spoken"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self._is_read: dict[str, list[bool]] = defaultdict(list)
        self._is_understood: dict[str, list[bool]] = defaultdict(list)
        self._errors: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def run(self) -> None:
        """Speak and recognise; raises `Failed` without the models or espeak-ng."""
        store = ModelStore()
        whisper = WhisperAdapter(store.path("whisper-base"), clock=SystemClock(), cpu_threads=2)
        voices: dict[str, SpeechSynthesiser] = {
            "en": PiperSynthesiser(store.path("piper-en_US-joe-medium") / "voice.onnx", seed=self._set.seed),
            "zh": EspeakSynthesiser(),
        }
        for language, rows in yaml.safe_load(FORMS.read_text(encoding="utf-8")).items():
            voice = voices[language]
            if not voice.speaks(language):
                raise Failed(f"no voice for {language}: espeak-ng is not installed")
            chosen = rows[: self._set.plan.spoken_forms]
            self._set.tell.say(f"numbers, dates and units, {_TITLES[language]}, {len(chosen)} sentences")
            for written, *readings in chosen:
                self._try(language, written, readings, voice, whisper)

    def _try(
        self, language: str, written: str, readings: Sequence[str], voice: SpeechSynthesiser, whisper: WhisperAdapter
    ) -> None:
        wanted = [read_as(reading, language) for reading in readings]
        said = read_as(written, language)
        is_read = "".join(said) in ["".join(words) for words in wanted]
        self._is_read[language].append(is_read)
        spoken = voice.synthesise(written, language=language)
        pcm = resample(np.asarray(spoken.pcm, np.float32), spoken.rate_hz, _RATE_HZ)
        padded = np.pad(pcm, _RATE_HZ // 4)
        text = whisper.transcribe(padded, languages=(language,), vad_fraction=0.9).text
        if _CLOCK.search(written):
            # The recogniser writes the time with a full stop as often as with a colon.
            text = _DOTTED_CLOCK.sub(":", text)
        heard = read_as(text, language)
        wrong, total = min((distance(words, heard), len(words)) for words in wanted)
        self._errors[language].append((wrong, total))
        self._is_understood[language].append("".join(heard) in ["".join(words) for words in wanted])
        if wrong:
            self._set.tell.say(f"{written} → {text} ({wrong} wrong)")

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        rows: list[Row] = []
        for language, title in _TITLES.items():
            for name, found in (
                ("numbers, dates, units: read as people say them", self._is_read[language]),
                ("numbers, dates, units: recognised as meant, whole sentences", self._is_understood[language]),
            ):
                rows.append(
                    share_row(
                        name=name,
                        condition=title,
                        hits=sum(found),
                        trials=len(found),
                        source="component",
                        stimuli="synthetic",
                    )
                )
            pairs = self._errors[language]
            total = sum(count for _, count in pairs)
            rows.append(
                Row(
                    name="numbers, dates, units: errors when recognised",
                    condition=title,
                    values=(100.0 * sum(wrong for wrong, _ in pairs) / total,) if total else (),
                    trials=len(pairs),
                    unit="% of words" if language == "en" else "% of characters",
                    source="component",
                    stimuli="synthetic",
                )
            )
        return rows
