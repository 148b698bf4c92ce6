"""Whom it answers: other people's talk and the television, calls by name, waking from sleep; English and Chinese apart.

The real recogniser hears recordings as from across a room, and requests that begin with the character's name; the rules
of the program then decide on the words. No recording contains the name, so names are spoken by Piper and espeak-ng and
put before a recorded request: such rows are synthetic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from bench.live import LANGUAGES
from bench.plan import Setting
from bench.room import Failed
from bench.rows import Budget, Row, share_row
from bench.scorer import Samples
from bench.stimuli import RATE_HZ, Stimulus, spoken, spoken_by_voice
from rigs.acoustics import Place, image_source_response

from audio.pcm import db_to_gain
from audio.simulated import active_rms
from audio.stt.rejection import reject
from audio.stt.whisper_adapter import WhisperAdapter
from desktop.models import ModelStore
from orchestrator.clock import SystemClock
from orchestrator.dialogue.attention import Attention, AttentionSettings, Heed

WINDOW_S = 20.0
NAMES = {"en": ("Mynah",), "zh": ("小八", "米娜")}
"""The shipped names, and one that people give."""
_ALIASES = ("Minah", "Myna")
_ACROSS = Place(size_m=(5.0, 4.0, 2.6), speaker_m=(0.8, 3.2, 1.0), microphone_m=(4.2, 1.0, 0.8), rt60_s=0.45)
_TALK_DB, _NOISE_DB = -34.0, -62.0
_NEVER_S = 1e9
_ASKED = {
    "en": (
        "what time is it?", "what's the weather like?", "remind me to call home at six.", "tell me a story.",
        "how are you today?", "set a timer for ten minutes.", "can you hear me?", "say that again, please.",
    ),
    "zh": (
        "现在几点了？", "今天天气怎么样？", "六点提醒我打电话。", "给我讲个故事。", "你今天好吗？",
        "定一个十分钟的闹钟。", "你听得见吗？", "请再说一遍。",
    ),
}  # fmt: skip
_CALLS = {"en": ("{name}!", "Hey {name}!", "{name}, wake up!"), "zh": ("{name}！", "嘿，{name}！", "{name}，醒醒！")}
_VARIANTS = (0.95, 1.05, 1.15)
_PITCHES = (30, 50, 70)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of one utterance: what was understood, and whether it was answered by each rule."""

    name: str
    text: str
    always: bool
    addressed: bool
    asleep: bool


class AttentionSection:
    """Recognition and the rules of attention, without sound devices."""

    name = "attention"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self._talk: dict[str, list[Judged]] = defaultdict(list)
        self._asked: dict[tuple[str, str], list[Judged]] = defaultdict(list)
        self._spliced: dict[tuple[str, str], list[Judged]] = defaultdict(list)
        self._woken: dict[tuple[str, str], list[Judged]] = defaultdict(list)

    def run(self) -> None:
        """Hear everything; raises `Failed` without recordings or espeak-ng."""
        recordings = self._set.recordings
        if recordings is None:
            raise Failed("no recordings: set MYNAH_SPEECH to the folder that has manifest.jsonl")
        store = ModelStore()
        self._whisper = WhisperAdapter(store.path("whisper-base"), clock=SystemClock(), cpu_threads=2)
        self._voice = store.path("piper-en_US-joe-medium") / "voice.onnx"
        response = image_source_response(_ACROSS, rate_hz=RATE_HZ)
        chance = np.random.default_rng(self._set.seed)
        count = self._set.plan.attention
        for language in LANGUAGES:
            names = recordings.utterances(language, shortest_s=1.0, longest_s=8.0)
            self._set.tell.say(f"talk of others, {LANGUAGES[language]}, {min(count, len(names))} recordings")
            for name in names[:count]:
                far = _across(recordings.load(name).samples, response, chance)
                self._talk[language].append(self._judge(name, far, NAMES["zh"][0]))
            requests = recordings.utterances(language, shortest_s=1.2, longest_s=7.0)
            for called in NAMES[language]:
                key = (language, called)
                self._set.tell.say(f"calls by name, {LANGUAGES[language]}, {called}")
                for number, (text, variant) in enumerate(product(_ASKED[language], range(len(_VARIANTS)))):
                    if number < count:
                        glue = "{name}, {text}" if language == "en" else "{name}，{text}"
                        said = self._say(glue.format(name=called, text=text), language, variant)
                        self._asked[key].append(self._judge(text, said, called))
                for number, name in enumerate(requests[:count]):
                    call = self._say(f"{called}!" if language == "en" else f"{called}！", language, number)
                    request = recordings.load(name).samples
                    gap = np.zeros(RATE_HZ // 5, np.float32)
                    sound = np.concatenate([_at_level(call, -24.0), gap, _at_level(request, -24.0)])
                    self._spliced[key].append(self._judge(name, sound, called))
                for number, (text, variant) in enumerate(product(_CALLS[language], range(len(_VARIANTS)))):
                    if number < count:
                        said = self._say(text.format(name=called), language, variant)
                        self._woken[key].append(self._judge(text, said, called))

    def _say(self, text: str, language: str, variant: int) -> Samples:
        which = variant % len(_VARIANTS)
        stimulus: Stimulus
        if language == "en":
            stimulus = spoken_by_voice(text, self._voice, pitch=_VARIANTS[which])
        else:
            stimulus = spoken(text, language, pitch=_PITCHES[which], speed=140)
        return stimulus.samples

    def _judge(self, name: str, sound: Samples, called: str) -> Judged:
        """Recognise and judge as a program would whose character is called so."""
        audio = np.pad(sound, (RATE_HZ // 4, RATE_HZ // 10))
        names = tuple(dict.fromkeys((NAMES["en"][0], NAMES["zh"][0] if called in NAMES["en"] else called)))
        result = self._whisper.transcribe(audio, languages=tuple(LANGUAGES), hotwords=names, vad_fraction=0.9)
        text = "" if reject(result, vad_fraction=0.9) else result.text
        known = (*names, *_ALIASES)
        found = {
            "always": _heed(text, AttentionSettings(names=known)),
            "addressed": _heed(text, AttentionSettings(window_s=WINDOW_S, names=known)),
            "asleep": _heed(text, AttentionSettings(names=known), is_asleep=True),
        }
        judged = Judged(name=name, text=text, **found)
        self._set.tell.say(f"{name}: {text} {'; '.join(key for key, answered in found.items() if answered)}")
        return judged

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        rows: list[Row] = []
        for language, title in LANGUAGES.items():
            talk = self._talk[language]
            for condition, hits, budget in (
                ("attention: always", sum(one.always for one in talk), None),
                ("attention: addressed", sum(one.addressed for one in talk), Budget(share=2)),
                ("asleep", sum(one.asleep for one in talk), Budget(share=2)),
            ):
                name = "talk of others and television answered"
                rows.append(_share(name, f"{title}, {condition}", hits, len(talk), budget, is_recorded=True))
            for called in NAMES[language]:
                key, where = (language, called), f"{title}, “{called}”"
                asked, spliced, woken = self._asked[key], self._spliced[key], self._woken[key]
                for name, found, hits in (
                    ("called by name and answered", asked, sum(one.addressed for one in asked)),
                    ("called by name before a recorded request", spliced, sum(one.addressed for one in spliced)),
                    ("woken from sleep by name", woken, sum(one.asleep for one in woken)),
                ):
                    rows.append(_share(name, where, hits, len(found), None, is_recorded=False))
        return rows


def _heed(text: str, settings: AttentionSettings, *, is_asleep: bool = False) -> bool:
    """Whether words are answered long after the last exchange."""
    if not text.strip():
        return False
    attention = Attention(settings=settings, clock=SystemClock(), trace=lambda event: None)
    if is_asleep:
        attention.set_asleep(True, because="bench")
    return attention.judge(text, began_s=_NEVER_S) is not Heed.IGNORE


def _across(samples: Samples, response: Samples, chance: np.random.Generator) -> Samples:
    """Return a sound as it comes from the other end of a room, with the noise of the room."""
    size = 1 << (len(samples) + len(response)).bit_length()
    wet = np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(response, size), size)[: len(samples) + RATE_HZ // 4]
    noise = chance.normal(0.0, db_to_gain(_NOISE_DB), len(wet))
    return np.asarray(_at_level(np.asarray(wet, np.float32), _TALK_DB) + noise, np.float32)


def _at_level(samples: Samples, level_db: float) -> Samples:
    gain = db_to_gain(level_db) / max(1e-6, active_rms(samples, RATE_HZ))
    return np.asarray(samples * np.float32(gain), np.float32)


def _share(name: str, condition: str, hits: int, trials: int, budget: Budget | None, *, is_recorded: bool) -> Row:
    return share_row(
        name=name,
        condition=condition,
        hits=hits,
        trials=trials,
        budget=None if budget is None else budget.share,
        source="component",
        stimuli="recorded" if is_recorded else "synthetic",
    )
