"""What becomes of an answer when the user makes a sound over it: the whole engine, real models, virtual time.

What was resumed is proven from the loudspeaker's track, by a recogniser that knows nothing of what was to be said.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio.engine import AudioModels
from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ, OUT_RATE_HZ, RoomConfig
from desktop.demo import user_voice
from desktop.models import ModelStore
from desktop.options import RunOptions, add_common_options, run_options
from desktop.simulate import SimulationInput, load_track, run_virtual
from desktop.sound_models import load_all
from orchestrator.bus.event_checker import check_records, read_records
from orchestrator.clock import SystemClock
from orchestrator.contracts.dialogue import LlmRequest

pytestmark = [pytest.mark.e2e, pytest.mark.models, pytest.mark.timeout(400)]

SEA = (
    "The sea covers most of our planet. It is deep, salty and full of life. Whales sing in it, and corals build whole "
    "cities. Far below, where no light comes, small fish carry lamps of their own. Every second breath you take was "
    "made by tiny plants that drift in the water. The sea also keeps the weather mild, and ships carry our goods "
    "across it."
)
SHORT = "Mountains are quiet and old."
Record = dict[str, Any]


class TopicLlm:
    """Answers by the first topic it finds in the last message; remembers what it was asked."""

    is_configured = True
    can_plan = False

    def __init__(self, *, first_token_s: float = 0.15) -> None:
        self.first_token_s = first_token_s
        self.asked: list[str] = []

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        asked = request.messages[-1].content
        self.asked.append(asked)
        await asyncio.sleep(self.first_token_s)
        for word in (SEA if "sea" in asked.casefold() else SHORT).split():
            yield word + " "
            await asyncio.sleep(0.03)

    async def complete(self, request: LlmRequest) -> str:
        return "".join([piece async for piece in self.stream(request)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run left behind; times are seconds of the track."""

    records: list[Record]
    character: Samples
    begin_s: float
    llm: TopicLlm

    def payloads(self, kind: str) -> list[Record]:
        return [record["payload"] for record in self.records if record["type"] == kind]

    def states(self) -> dict[str, str]:
        return {r["generationId"]: r["payload"]["to"] for r in self.records if r["type"] == "generation:state"}

    def sound(self, begin_s: float, end_s: float) -> Samples:
        return self.character[int(begin_s * OUT_RATE_HZ) : int(end_s * OUT_RATE_HZ)]

    def story(self) -> str:
        """Return the events worth reading when a test fails."""
        kinds = ("input:transcript", "input:user", "interrupt:confirm", "output:cut", "output:resume", "history:commit")
        lines = [f"{r['t'] - self.begin_s:6.2f} {r['type']} {r['payload']}" for r in self.records if r["type"] in kinds]
        return "\n".join(lines)


@dataclass(slots=True)
class World:
    """Models loaded once, and how to run a conversation with them."""

    models: AudioModels
    options: RunOptions
    speech: Path
    folder: Path
    runs: int = field(default=0)

    def voice(self, text: str) -> Samples:
        return user_voice(self.models.voices[0], text)

    def recording(self, name: str) -> Samples:
        return load_track(self.speech / f"{name}.wav")

    def play(self, at: dict[float, Samples], *, length_s: float, llm: TopicLlm | None = None) -> Outcome:
        """Let the user make these sounds at these seconds."""
        self.runs += 1
        llm = llm or TopicLlm()
        track: Samples = np.zeros(int(length_s * MIC_RATE_HZ), np.float32)
        for at_s, sound in at.items():
            begin = int(at_s * MIC_RATE_HZ)
            track[begin : begin + len(sound)] += sound
        events = self.folder / f"run{self.runs}.jsonl"
        options = replace(self.options, events=events, data=self.folder / f"data{self.runs}")
        options.data.mkdir()
        given = SimulationInput(user=track, room=RoomConfig())
        result = run_virtual(options, given, models=self.models, wrap_llm=lambda _: llm)
        records = list(read_records(events.read_text(encoding="utf-8").splitlines()))
        assert check_records(records) == []
        return Outcome(records=records, character=result.character, begin_s=result.begin_s, llm=llm)

    def heard(self, sound: Samples) -> list[str]:
        """Return the words of the loudspeaker's track as a recogniser hears them."""
        from audio.pcm import resample

        small = resample(sound, OUT_RATE_HZ, MIC_RATE_HZ)
        words: list[str] = []
        assert self.models.final is not None
        for part in _at_pauses(small):
            words += words_of(self.models.final.transcribe(part, languages=("en",)).text)
        return words


def _at_pauses(sound: Samples, longest_s: float = 14.0) -> list[Samples]:
    """Split where it is quiet, so that no part is longer than a recogniser likes."""
    frame = MIC_RATE_HZ // 50
    level = np.sqrt(np.mean(np.square(sound[: len(sound) // frame * frame].reshape(-1, frame)), axis=1))
    parts, begin = [], 0
    while len(sound) - begin > longest_s * MIC_RATE_HZ:
        low, high = int(begin / frame + longest_s * 25), int(begin / frame + longest_s * 50)
        quiet = np.convolve(level[low:high], np.ones(10) / 10, mode="same")
        cut = (low + int(np.argmin(quiet))) * frame
        parts.append(sound[begin:cut])
        begin = cut
    return [*parts, sound[begin:]]


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.casefold())


def compare(heard: list[str], wanted: list[str]) -> tuple[int, int, int]:
    """Return how many wanted words are missing, are too many, and were misheard (others stand in their place)."""
    missing = extra = misheard = 0
    for _, a_low, a_high, b_low, b_high in SequenceMatcher(a=wanted, b=heard, autojunk=False).get_opcodes():
        both = min(a_high - a_low, b_high - b_low)
        if wanted[a_low:a_high] != heard[b_low:b_high]:
            misheard += both
        missing += a_high - a_low - both
        extra += b_high - b_low - both
    return missing, extra, misheard


@pytest.fixture(scope="module")
def world(model_path: Callable[[str], Path], speech_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    for name in ("whisper-base", "piper-en_US-joe-medium"):
        model_path(name)
    folder = tmp_path_factory.mktemp("rows")
    parser = argparse.ArgumentParser()
    add_common_options(parser)
    args = parser.parse_args(["--llm", "none", "--seed", "1", "--data", str(folder)])
    options = run_options(args, strict=True)
    models = load_all(options.settings, ModelStore(), SystemClock(), lambda part: None, seed=3)
    return World(models=models, options=options, speech=speech_dir, folder=folder)


def test_backchannel_clap_and_noise_are_resumed(world: World) -> None:
    clap = world.recording("nz_gl_clap")
    noise = 0.5 * world.recording("nz_sb_noise3")[: int(1.5 * MIC_RATE_HZ)]
    out = world.play(
        {
            1.0: world.voice("Can you tell me something about the sea?"),
            7.0: world.voice("Yeah."),
            11.0: clap,
            15.0: noise,
        },
        length_s=18.0,
    )
    verdicts = {payload["verdict"] for payload in out.payloads("interrupt:confirm")}
    assert verdicts <= {"resume"}, out.story()
    assert list(out.states().values()) == ["COMPLETED"], out.story()
    assert len(out.llm.asked) == 1
    synthesised = [r["intentId"] for r in out.records if r["type"] == "tts:first_pcm"]
    assert len(synthesised) == len(set(synthesised)), "nothing was synthesised again"
    answers = [p for p in out.payloads("history:commit") if p["role"] == "assistant"]
    assert [(p["status"], words_of(p["text"])) for p in answers] == [("completed", words_of(SEA))]
    resumes = out.payloads("output:resume")
    assert resumes or out.payloads("output:duck"), "at least one of the sounds was noticed"
    heard = world.heard(out.character)
    missing, extra, misheard = compare(heard, words_of(SEA))
    repeated = sum(payload["repeatedWords"] for payload in resumes)
    assert all(payload["repeatedWords"] <= 12 for payload in resumes), "a word, or a clause"
    assert misheard <= 0.1 * len(words_of(SEA)), heard
    assert missing <= 1, f"{missing} words are not on the recording\n{heard}\n{out.story()}"
    assert extra <= 1 + repeated, f"{extra} words too many\n{heard}\n{out.story()}"


def test_stop_go_on_and_words_in_chinese(world: World) -> None:
    out = world.play(
        {
            1.0: world.voice("Can you tell me something about the sea?"),
            8.0: world.voice("Hold on."),
            13.0: world.voice("Go on."),
            19.0: world.recording("zh_azmix_1"),
            28.0: world.voice("Say that again."),
        },
        length_s=33.0,
    )
    story = out.story()
    verdicts = [payload["verdict"] for payload in out.payloads("interrupt:confirm")]
    assert verdicts == ["stop_only", "cancel"], story
    assert float(np.abs(out.sound(10.0, 13.5)).max()) < 1e-3, "silence, and no reply"
    assert len(out.llm.asked) == 2, "going on and saying again ask no model"
    assert "天气" in out.llm.asked[1], story
    answers = [p for p in out.payloads("history:commit") if p["role"] == "assistant"]
    assert [p["status"] for p in answers] == ["interrupted", "interrupted", "completed", "completed"], story
    first, second = words_of(answers[0]["text"]), words_of(answers[1]["text"])
    assert words_of(SEA)[: len(first) + len(second)] == first + second, "the rest follows the heard words exactly"
    assert answers[2]["text"] == answers[3]["text"] == SHORT
    spoken = world.heard(out.sound(13.5, 19.0))
    rest = words_of(SEA)[len(first) : len(first) + 8]
    # Letters, not words: the recogniser writes "whale singing it" for "whales sing in it".
    likeness = SequenceMatcher(a="".join(rest), b="".join(spoken[:8]), autojunk=False).ratio()
    assert likeness > 0.6, (spoken, rest)


def test_before_the_first_sound(world: World) -> None:
    out = world.play(
        {
            1.0: world.voice("Can you tell me something about the sea?"),
            4.4: world.recording("nz_gl_clap")[: int(0.4 * MIC_RATE_HZ)],
            36.0: world.voice("Tell me something about mountains."),
            39.6: world.voice("And something about rivers."),
        },
        length_s=44.0,
        llm=TopicLlm(first_token_s=3.0),
    )
    story = out.story()
    states = list(out.states().values())
    assert states == ["COMPLETED", "CANCELLED", "COMPLETED"], story
    assert "mountain" in out.llm.asked[-1].casefold() and "river" in out.llm.asked[-1].casefold(), story
    said = [p["text"] for p in out.payloads("history:commit") if p["role"] == "user"]
    assert "mountain" in said[-1].casefold() and "river" in said[-1].casefold(), "joined into one input"
