"""How soon a turn ends against how often a pause inside is taken for its end; and recognition beside faster-whisper.

Offline, with the real recogniser: each recording is cut at its quietest moment in the middle, as by a speaker who
thinks, and at its end. What the recogniser makes of both decides, by the rules of the ears, how much silence would end
the turn there.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.live import LANGUAGES, PAUSE_S
from bench.plan import Setting
from bench.room import Failed
from bench.rows import Budget, Row, share_row
from bench.smart_turn import SmartTurn
from bench.stimuli import RATE_HZ, Stimulus, voiced_span, with_inner_pause
from bench.text import distance
from faster_whisper import WhisperModel

from audio.ears_config import PATIENCE, EndpointConfig, VadConfig
from audio.endpointing import Endpointer, TurnEnded
from audio.pcm import resample
from audio.stt.chinese import ChineseScript, finish_text, to_script
from audio.stt.text import units
from audio.stt.whisper_adapter import WhisperAdapter
from desktop.models import ModelStore
from orchestrator.clock import SystemClock
from orchestrator.speech.turn_text import Ending, judged_ending

FIXED_S = (0.3, 0.4, 0.5, 0.6, 0.65, 0.75, 0.9, 1.1)
CHANCES = (0.5, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.98)
_WINDOW_S = 0.032
_PAUSES = {"en": 1, "zh": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What the recogniser made of a recording up to a place in it. `smart` is the turn model's chance, if there."""

    language: str
    is_end: bool
    text: str
    end_chance: float | None
    decode_s: float
    smart: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting: the mean silence that ended turns, and the share of pauses inside that did."""

    language: str
    method: str
    setting: float
    silence_s: float
    cut_percent: float
    n: int


class TurnSection:
    """End of turn and recognition, without sound."""

    name = "turns"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self.heard: list[Heard] = []
        self._errors: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        self._decode_ms: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._empty: dict[str, int] = defaultdict(int)

    def run(self) -> None:
        """Recognise beginnings and wholes of recordings; then the wholes by faster-whisper as it comes."""
        recordings = self._set.recordings
        if recordings is None:
            raise Failed("no recordings")
        store = ModelStore()
        folder = store.path("whisper-base")
        whisper = WhisperAdapter(folder, clock=SystemClock(), cpu_threads=2)
        has_smart = store.is_installed("smart-turn-v3.2")
        smart = SmartTurn(store.path("smart-turn-v3.2") / "model.onnx") if has_smart else None
        plain = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2, local_files_only=True)
        texts = recordings.entries()
        for language in LANGUAGES:
            names = recordings.utterances(language, shortest_s=1.5, longest_s=12.0)[: self._set.plan.turn_ends]
            self._set.tell.say(f"ends of turns, {LANGUAGES[language]}, {len(names)} recordings")
            for name in names:
                stimulus = recordings.load(name)
                with self._set.tell.trial(f"end of turn, {name}"):
                    self._hear(stimulus, whisper, smart)
                    self._compare(stimulus, texts[name]["text"], whisper, plain)

    def _hear(self, stimulus: Stimulus, whisper: WhisperAdapter, smart: SmartTurn | None) -> None:
        """Hear a recording up to its pauses and to its end; where recordings are few, each has several pauses."""
        samples = stimulus.samples
        places: list[tuple[int, bool]] = [(int(voiced_span(samples, RATE_HZ).end_s * RATE_HZ), True)]
        for place in range(_PAUSES[stimulus.language]):
            try:
                paused = with_inner_pause(stimulus, PAUSE_S, place).samples
            except ValueError as error:
                if place == 0:
                    raise Failed(str(error)) from error
                break
            places.append((int(np.argmax(np.abs(paused[: len(samples)] - samples) > 1e-4)), False))
        for place, is_end in places:
            audio = _at_16k(np.concatenate([samples[:place], np.zeros(int(0.1 * RATE_HZ), np.float32)]))
            began_s = time.perf_counter()
            result = whisper.transcribe(audio, languages=tuple(LANGUAGES), vad_fraction=0.9)
            decode_s = time.perf_counter() - began_s
            text = finish_text(result.text, language=result.language, script=ChineseScript.SIMPLIFIED, is_whole=True)
            self.heard.append(
                Heard(
                    language=stimulus.language,
                    is_end=is_end,
                    text=text,
                    end_chance=result.end_chance,
                    decode_s=decode_s,
                    smart=None if smart is None else smart.chance(audio),
                )
            )

    def _compare(self, stimulus: Stimulus, said: str, whisper: WhisperAdapter, plain: Any) -> None:
        """Recognise by ours and by plain faster-whisper, one after the other in the same process."""
        audio = _at_16k(stimulus.samples)
        wanted = units(to_script(said, ChineseScript.SIMPLIFIED))
        for method in ("Mynah", "faster-whisper"):
            began_s = time.perf_counter()
            if method == "Mynah":
                text = whisper.transcribe(audio, languages=tuple(LANGUAGES), vad_fraction=0.9).text
            else:
                segments, _ = plain.transcribe(audio, beam_size=1, language=stimulus.language)
                text = "".join(segment.text for segment in segments)
            self._decode_ms[method][stimulus.language].append(1000 * (time.perf_counter() - began_s))
            found = units(to_script(text, ChineseScript.SIMPLIFIED))
            self._empty[f"{method} {stimulus.language}"] += not found
            self._errors[method][stimulus.language].append((distance(wanted, found), len(wanted)))

    # --- curve ------------------------------------------------------------------------------------------

    def curve(self) -> list[Point]:
        """Return the points of all methods, English and Chinese apart."""
        points = []
        for language in LANGUAGES:
            for seconds in FIXED_S:
                points.append(self._point(language, "fixed", seconds, lambda h, s=seconds: max(s, 0.064 + h.decode_s)))
            for chance in CHANCES:
                config = EndpointConfig(sure_end_chance=chance)
                points.append(self._point(language, "words", chance, lambda h, c=config: silence_s(h, c)))
            if any(heard.smart is not None for heard in self.heard):
                for chance in CHANCES:
                    points.append(
                        self._point(language, "words and Smart Turn", chance, lambda h, c=chance: _smart_s(h, c))
                    )
        return [point for point in points if point.n]

    def _point(self, language: str, method: str, setting: float, silence: Any) -> Point:
        ends = [silence(h) for h in self.heard if h.language == language and h.is_end]
        inner = [silence(h) for h in self.heard if h.language == language and not h.is_end]
        return Point(
            language=language,
            method=method,
            setting=setting,
            silence_s=float(np.mean(ends)) if ends else 0.0,
            cut_percent=100 * float(np.mean([s < PAUSE_S for s in inner])) if inner else 0.0,
            n=len(inner),
        )

    def write(self, folder: Path) -> None:
        """Write the curve as JSON and as a picture into `folder`."""
        points = self.curve()
        text = json.dumps([asdict(point) for point in points], indent=1)
        (folder / "turn-ends.json").write_text(text + "\n", encoding="utf-8")
        (folder / "turn-ends.svg").write_text(picture(points), encoding="utf-8")

    # --- rows -------------------------------------------------------------------------------------------

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        if self._set.keep is not None and self.heard:
            self._set.keep.mkdir(parents=True, exist_ok=True)
            self.write(self._set.keep)
        return [*self._turn_rows(), *self._recognition_rows()]

    def _turn_rows(self) -> list[Row]:
        rows = []
        for language, title in LANGUAGES.items():
            ends = [h for h in self.heard if h.language == language and h.is_end]
            inner = [h for h in self.heard if h.language == language and not h.is_end]
            known = tuple(1000 * (EndpointConfig().decode_after_s + h.decode_s) for h in ends)
            rows.append(_row("end of speech → transcript known", f"{title}, whole turns", known, Budget(p50=400)))
            for dial, config in PATIENCE.items():
                values = tuple(1000 * silence_s(h, config) for h in ends)
                rows.append(_row("end of speech → end of turn", f"{title}, {dial}", values, None))
                rows.append(
                    share_row(
                        name=f"pause of {PAUSE_S:g} s taken for the end of the turn",
                        condition=f"{title}, {dial}",
                        hits=sum(silence_s(h, config) < PAUSE_S for h in inner),
                        trials=len(inner),
                        budget=5.0 if dial == "normal" else None,
                        source="component",
                        stimuli="recorded",
                    )
                )
        return rows

    def _recognition_rows(self) -> list[Row]:
        rows = []
        for language, title in LANGUAGES.items():
            for method, found in self._errors.items():
                pairs = found[language]
                total = sum(wanted for _, wanted in pairs)
                if not total:
                    continue
                rate = 100 * sum(wrong for wrong, _ in pairs) / total
                unit = "% of words" if language == "en" else "% of characters"
                row = Row(
                    name="recognition: errors", condition=f"{title}, {method}", values=(rate,), unit=unit,
                    source="component", stimuli="recorded", trials=len(pairs),
                    note=f"nothing recognised: {self._empty[f'{method} {language}']}",
                )  # fmt: skip
                rows.append(row)
                times = tuple(self._decode_ms[method][language])
                rows.append(_row("recognition: time", f"{title}, {method}", times, None))
        return rows


def silence_s(heard: Heard, config: EndpointConfig) -> float:
    """Return how much silence ends a turn there, by the segmenter itself."""
    ending = judged_ending(heard.text, heard.end_chance, sure_end_chance=config.sure_end_chance)
    return _ended_after(ending, heard.decode_s, config)


def _smart_s(heard: Heard, chance: float) -> float:
    """Return the same with the turn model's word in place of the recogniser's."""
    ending = judged_ending(heard.text, heard.smart, sure_end_chance=chance)
    return _ended_after(ending, heard.decode_s, EndpointConfig())


def _ended_after(ending: Ending, decode_s: float, config: EndpointConfig) -> float:
    endpointer = Endpointer(config, VadConfig())
    now_s: float = 0.0
    is_told = False
    while now_s < 20.0:
        is_voiced = now_s < 10 * _WINDOW_S
        events = endpointer.window(now_s, now_s + _WINDOW_S, 0.9 if is_voiced else 0.0)
        now_s += _WINDOW_S
        for tick in range(4):
            events += endpointer.tick(now_s - _WINDOW_S + (tick + 1) * _WINDOW_S / 4)
        since_s = now_s - 10 * _WINDOW_S
        if not is_told and since_s >= config.decode_after_s + decode_s:
            is_told = True
            endpointer.note_words(ending, is_whole=True)
        ended = next((event for event in events if isinstance(event, TurnEnded)), None)
        if ended is not None:
            return ended.silence_s
    return now_s


def picture(points: Sequence[Point]) -> str:
    """Return the curves as SVG: mean silence to the right, cut-offs upwards."""
    colours = {"fixed": "#888888", "words": "#1f77b4", "words and Smart Turn": "#d62728"}
    size = 'width="860" height="380"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect {size} fill="white"/>',
    ]
    for place, (language, title) in enumerate(LANGUAGES.items()):
        left = 60 + place * 420
        mine = [point for point in points if point.language == language]
        n = mine[0].n if mine else 0
        parts.append(
            f'<text x="{left}" y="24">{title}, {n} pauses: those of 0.7 s cut (%) against mean silence (s)</text>'
        )
        parts.append(f'<path d="M{left} 40V330H{left + 340}" fill="none" stroke="black"/>')
        for tick in range(0, 101, 20):
            parts.append(f'<text x="{left - 30}" y="{334 - 2.9 * tick:.0f}">{tick}</text>')
        for tick in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2):
            parts.append(f'<text x="{left + 283 * tick - 8:.0f}" y="348">{tick:g}</text>')
        for row, (method, colour) in enumerate(colours.items()):
            found = sorted((p for p in mine if p.method == method), key=lambda p: p.silence_s)
            path = " ".join(f"{left + 283 * p.silence_s:.0f},{330 - 2.9 * p.cut_percent:.0f}" for p in found)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
            parts.append(f'<text x="{left + 210}" y="{56 + 16 * row}" fill="{colour}">{method}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _at_16k(samples: Any) -> Any:
    return resample(samples, RATE_HZ, 16_000) if RATE_HZ != 16_000 else samples


def _row(name: str, condition: str, values: tuple[float, ...], budget: Budget | None) -> Row:
    return Row(
        name=name, condition=condition, values=values, unit="ms", budget=budget, source="component", stimuli="recorded"
    )
