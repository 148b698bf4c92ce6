"""Whole conversations through the engine of `mynah simulate`, in which only words are scripted.

The sounds the user makes are recordings (or made from a seed), and the ears, the player, the bus and the core are the
real ones, on a virtual clock. What is scripted is the recogniser, which knows what each sound is meant to say, and the
voice, which says every word as a tone of its own: which words came out of the loudspeaker is read from the recorded
track, to the word, with nothing that depends on how busy the machine is.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from audio.engine import AudioModels
from audio.pcm import SILENCE_DB, rms_db
from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ, OUT_RATE_HZ, RoomConfig
from audio.stt.transcription import Transcription
from audio.tts.voice import Utterance
from desktop.options import add_common_options, run_options
from desktop.simulate import SimulationInput, run_virtual
from orchestrator.bus.event_checker import check_records, read_records
from orchestrator.contracts.commands import Command
from orchestrator.contracts.dialogue import LlmRequest, LlmUnavailable
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import TimedWord
from orchestrator.contracts.views import View
from orchestrator.llm.failures import FailureCode, LlmFailure
from orchestrator.speech.words import word_spans

Record = dict[str, Any]

VOICE_RATE_HZ = 24_000
WORD_S = 0.28
_EDGE_S = 0.004
_LOWEST_HZ = 300.0
_STEP_HZ = 50.0
_FRAME = OUT_RATE_HZ // 50
_HOP = OUT_RATE_HZ // 100


class ToneVoice:
    """Says each word as a tone of its own; the same word always as the same tone."""

    name = "tones"

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.said: list[str] = []

    def speaks(self, language: str) -> bool:
        return True

    def synthesise(self, text: str, *, language: str) -> Utterance:
        self.said.append(text)
        size = round(WORD_S * VOICE_RATE_HZ)
        edge = round(_EDGE_S * VOICE_RATE_HZ)
        envelope = np.ones(size, np.float32)
        envelope[:edge] = np.linspace(0, 1, edge)
        envelope[-edge:] = np.linspace(1, 0, edge)
        time_s = np.arange(size) / VOICE_RATE_HZ
        parts, words = [], []
        for index, span in enumerate(word_spans(text)):
            place = self._places.setdefault(plain(span.text), len(self._places))
            tone = np.sin(2 * np.pi * (_LOWEST_HZ + _STEP_HZ * place) * time_s)
            parts.append((0.3 * envelope * tone).astype(np.float32))
            words.append(
                TimedWord(
                    index=index,
                    text=span.text,
                    char_start=span.char_start,
                    char_end=span.char_end,
                    start_s=index * WORD_S,
                    end_s=(index + 1) * WORD_S,
                )
            )
        pcm: Samples = np.concatenate(parts) if parts else np.zeros(1, np.float32)
        return Utterance(pcm=pcm, rate_hz=VOICE_RATE_HZ, words=tuple(words), visemes=(), estimated=False)

    def heard(self, track: Samples) -> list[tuple[str, float]]:
        """Return the words on a recorded track in order, each with how much of it sounded (1.0: all of it).

        A word that is broken off and begun again is there twice.
        """
        names = {place: word for word, place in self._places.items()}
        window = np.hanning(_FRAME).astype(np.float32)
        found: list[tuple[int | None, int]] = []
        for begin in range(0, len(track) - _FRAME, _HOP):
            frame = track[begin : begin + _FRAME]
            place: int | None = None
            if float(np.abs(frame).max()) > 0.004:
                spectrum = np.abs(np.fft.rfft(frame * window, 4 * _FRAME))
                hz = float(np.argmax(spectrum)) * OUT_RATE_HZ / (4 * _FRAME)
                place = round((hz - _LOWEST_HZ) / _STEP_HZ)
            if found and found[-1][0] == place:
                found[-1] = (place, found[-1][1] + 1)
            else:
                found.append((place, 1))
        hop_s = _HOP / OUT_RATE_HZ
        return [
            (names[place], min(1.0, count * hop_s / WORD_S))
            for place, count in found
            # What is shorter than three frames is the seam between two tones.
            if place is not None and place in names and count >= 3
        ]


def plain(word: str) -> str:
    """Return a word without marks and case."""
    return "".join(char for char in word.casefold() if char.isalnum())


def words_of(text: str) -> list[str]:
    """Return the words of a text as the voice says them."""
    return [plain(span.text) for span in word_spans(text)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A sound of the user and what a recogniser makes of it; `fails` instead if it is to fail on it."""

    samples: Samples
    text: str = ""
    language: str = "en"
    avg_logprob: float = -0.2
    fails: bool = False


class KnowingRecogniser:
    """Knows each sound by its shape and says what it is meant to mean."""

    cores = 1.0

    def __init__(self, sounds: Sequence[Sound]) -> None:
        self._sounds = [(sound, _loudest(sound.samples)) for sound in sounds]
        self.asked = 0

    def transcribe(
        self,
        audio: Samples,
        *,
        languages: Sequence[str],
        hotwords: Sequence[str] = (),
        final: bool = True,
        vad_fraction: float | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Transcription:
        self.asked += 1
        sound, part = max(self._sounds, key=lambda pair: _likeness(audio, pair[1]))
        if _likeness(audio, part) < 0.25:
            sound = Sound(samples=part)
        if sound.fails:
            raise PartFailed("stt_failed", "the scripted recogniser fails", part="stt", recoverable=True)
        return Transcription(
            text=sound.text, language=sound.language, decode_s=0.1, avg_logprob=sound.avg_logprob, no_speech=0.1
        )


def _loudest(samples: Samples, size: int = MIC_RATE_HZ // 3) -> Samples:
    """Return the third of a second with the most sound."""
    power = np.concatenate([np.zeros(1), np.cumsum(np.square(samples, dtype=np.float64))])
    if len(samples) <= size:
        return samples
    return samples[(begin := int(np.argmax(power[size:] - power[:-size]))) : begin + size]


def _likeness(audio: Samples, part: Samples) -> float:
    """Return how well the best place of `audio` resembles `part`: 1.0 for the same sound, at whatever volume."""
    if len(audio) < len(part):
        return 0.0
    size = 1 << (len(audio) + len(part)).bit_length()
    product = np.fft.rfft(audio, size) * np.conj(np.fft.rfft(part, size))
    match = np.abs(np.fft.irfft(product, size)[: len(audio) - len(part) + 1])
    power = np.concatenate([np.zeros(1), np.cumsum(np.square(audio, dtype=np.float64))])
    energy = np.maximum(power[len(part) :] - power[: -len(part)], 1e-3)
    return float((match / np.sqrt(energy)).max() / (np.linalg.norm(part) + 1e-9))


@dataclass(eq=False)
class TopicLlm:
    """Answers by the first topic it finds in the last message; remembers what it was asked and what was closed.

    `limit_s` is how long an answer may take in all; then it fails like a client whose endpoint is too slow.
    """

    answers: Mapping[str, str]
    first_token_s: float = 0.15
    token_s: float = 0.03
    fails_after: int | None = None
    limit_s: float | None = None
    is_configured: bool = True
    can_plan: bool = False
    requests: list[LlmRequest] = field(default_factory=list)
    closed: int = 0

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        self.requests.append(request)
        asked = request.messages[-1].content.casefold()
        answer = next((text for topic, text in self.answers.items() if topic in asked), "Quite so.")
        try:
            until_s = None if self.limit_s is None else asyncio.get_running_loop().time() + self.limit_s
            await self._wait(self.first_token_s, until_s)
            for number, piece in enumerate(answer.split(" ")):
                if number == self.fails_after:
                    raise LlmUnavailable("unreachable")
                yield piece + " "
                await self._wait(self.token_s, until_s)
        except (asyncio.CancelledError, GeneratorExit):
            self.closed += 1
            raise

    @staticmethod
    async def _wait(delay_s: float, until_s: float | None) -> None:
        left_s = delay_s if until_s is None else until_s - asyncio.get_running_loop().time()
        await asyncio.sleep(min(delay_s, left_s))
        if left_s < delay_s:
            raise LlmFailure(FailureCode.TIMEOUT, "no answer in time")

    async def complete(self, request: LlmRequest) -> str:
        return "".join([piece async for piece in self.stream(request)])

    @property
    def asked(self) -> list[str]:
        """The last message of each call."""
        return [request.messages[-1].content for request in self.requests]


class Window:
    """Takes the views, with the second they came."""

    def __init__(self) -> None:
        self.shown: list[View] = []

    def show(self, view: View) -> bool:
        self.shown.append(view)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a conversation left behind. Times are seconds of the track."""

    records: list[Record]
    track: Samples
    begin_s: float
    voice: ToneVoice
    llm: TopicLlm
    views: list[View]
    data: Path

    def of(self, kind: str) -> list[Record]:
        return [record for record in self.records if record["type"] == kind]

    def payloads(self, kind: str) -> list[Record]:
        return [record["payload"] for record in self.of(kind)]

    def words(self, begin_s: float = 0.0, end_s: float | None = None) -> list[tuple[str, float]]:
        """Return the words of the loudspeaker's track, as recorded."""
        end = len(self.track) if end_s is None else int(end_s * OUT_RATE_HZ)
        return self.voice.heard(self.track[int(begin_s * OUT_RATE_HZ) : end])

    def loudness_db(self, begin_s: float, end_s: float) -> float:
        """Return the loudest moment (20 ms) of a stretch of the loudspeaker's track, in dBFS."""
        part = self.track[int(begin_s * OUT_RATE_HZ) : int(end_s * OUT_RATE_HZ)]
        frames = part[: len(part) // _FRAME * _FRAME].reshape(-1, _FRAME)
        return max((rms_db(frame) for frame in frames), default=SILENCE_DB)

    def verdicts(self) -> list[tuple[str, str]]:
        return [(p["verdict"], p["because"]) for p in self.payloads("interrupt:confirm")]

    def answers(self) -> list[Record]:
        return [p for p in self.payloads("history:commit") if p["role"] == "assistant"]

    def inputs(self) -> list[str]:
        return [p["text"] for p in self.payloads("history:commit") if p["role"] == "user"]

    def final_states(self) -> list[str]:
        """Return the final states of all answers that were not thrown away as guesses, in their order."""
        states: dict[str, str] = {}
        for record in self.of("generation:state"):
            if not record["payload"]["speculative"]:
                states[record["generationId"]] = record["payload"]["to"]
        return list(states.values())

    def story(self) -> str:
        """Return the events worth reading when a test fails."""
        kinds = (
            "input:speech", "input:transcript", "input:user", "interrupt:confirm", "output:duck", "output:cut",
            "output:resume", "history:commit", "generation:state", "notify:state",
        )  # fmt: skip
        lines = [f"{r['t'] - self.begin_s:6.2f} {r['type']} {r['payload']}" for r in self.records if r["type"] in kinds]
        return "\n".join(lines)


def converse(
    folder: Path,
    sounds: Mapping[float, Sound],
    *,
    length_s: float,
    llm: TopicLlm,
    at: Mapping[float, Command | Sequence[Command]] | None = None,
    flows: Path | None = None,
    actions: str = "",
) -> Heard:
    """Let the user make these sounds and give these commands at these seconds; the record is checked, too."""
    data = folder / "data"
    data.mkdir()
    if actions:
        (data / "actions").mkdir()
        (data / "actions" / "scripted.py").write_text(actions, encoding="utf-8")
    parser = argparse.ArgumentParser()
    add_common_options(parser)
    given = ["--llm", "none", "--seed", "1", "--data", str(data), *(["--flows", str(flows)] if flows else [])]
    events = folder / "events.jsonl"
    options = replace(run_options(parser.parse_args(given), strict=True), events=events)
    track: Samples = np.zeros(int(length_s * MIC_RATE_HZ), np.float32)
    for at_s, sound in sounds.items():
        begin = int(at_s * MIC_RATE_HZ)
        track[begin : begin + len(sound.samples)] += sound.samples
    commands: list[tuple[float, Command]] = []
    for at_s, what in (at or {}).items():
        commands += [(at_s, what)] if isinstance(what, Command) else [(at_s, one) for one in what]
    voice, window = ToneVoice(), Window()
    models = AudioModels(final=KnowingRecogniser(list(sounds.values())), partial=None, voices=(voice,))
    result = run_virtual(
        options,
        SimulationInput(user=track, room=RoomConfig(), at=tuple(commands)),
        models=models,
        views=window,
        wrap_llm=lambda _: llm,
    )
    # What was said before anything was recorded measured the voice's level.
    del voice.said[0]
    records = list(read_records(events.read_text(encoding="utf-8").splitlines()))
    assert check_records(records) == []
    return Heard(
        records=records,
        track=result.character,
        begin_s=result.begin_s,
        voice=voice,
        llm=llm,
        views=window.shown,
        data=data,
    )
