"""Scripted recogniser and a run of the mailbox in virtual time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio.pcm import read_wav
from audio.ports import Recognition, Samples
from audio.stt.recogniser import Recogniser
from audio.stt.settings import CostTable, RecogniserSettings
from audio.stt.transcription import Transcription
from audio.workers import VirtualScheduler, VirtualWorker
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.events import AppError, Event, InputTranscript
from orchestrator.contracts.ids import UtteranceId

ROOT = Path(__file__).resolve().parents[3]
SPEECH = Path(os.environ.get("MYNAH_SPEECH") or ROOT.parent / "shared" / "speech")
MODELS = Path(os.environ.get("MYNAH_MODELS") or Path.home() / ".cache" / "mynah" / "models")

Script = Callable[[Samples], Transcription]


def plain(text: str, **more: Any) -> Transcription:
    values: dict[str, Any] = {"language": "en", "decode_s": 0.2, "avg_logprob": -0.1, "no_speech": 0.05} | more
    return Transcription(text=text, **values)


class ScriptedRecogniser:
    """Answers with what its script makes of the audio; by default with the number in the first sample."""

    def __init__(self, script: Script | None = None, cores: float = 1.0) -> None:
        self.cores = cores
        self.script: Script = script or (lambda audio: plain(f"take {int(audio[0])}"))
        self.calls: list[dict[str, Any]] = []

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
        call = {"languages": tuple(languages), "hotwords": tuple(hotwords), "final": final, "vad": vad_fraction}
        self.calls.append(call)
        return self.script(audio)


class EventList:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def post(self, event: Event) -> bool:
        self.events.append(event)
        return True

    def transcripts(self, *, final: bool) -> list[InputTranscript]:
        return [
            event.payload
            for event in self.events
            if isinstance(event.payload, InputTranscript) and event.payload.final is final
        ]

    def errors(self) -> list[AppError]:
        return [event.payload for event in self.events if isinstance(event.payload, AppError)]


COSTS = CostTable(final_base_s=0.3, final_per_audio_s=0.0, partial_base_s=0.2, partial_per_audio_s=0.0)


@dataclass
class Mailbox:
    """A recogniser in virtual time; finals cost 0.3 s, partials 0.2 s."""

    final: ScriptedRecogniser = field(default_factory=ScriptedRecogniser)
    partial: ScriptedRecogniser = field(default_factory=ScriptedRecogniser)
    settings: RecogniserSettings = field(default_factory=RecogniserSettings)

    def __post_init__(self) -> None:
        self.clock = VirtualClock(10.0)
        self.scheduler = VirtualScheduler(self.clock)
        self.worker = VirtualWorker("stt", self.scheduler, SystemClock())
        self.sink = EventList()
        self.recogniser = Recogniser(
            worker=self.worker,
            final=self.final,
            partial=self.partial,
            events=self.sink,
            clock=self.clock,
            settings=self.settings,
            cost_table=COSTS,
        )

    def run(self, for_s: float) -> None:
        end_s = self.clock.monotonic_s() + for_s
        while (next_s := self.scheduler.next_s()) is not None and next_s <= end_s:
            self.clock.advance_to(next_s)
            self.scheduler.run_due()
        self.clock.advance_to(end_s)

    def submit(self, number: int, *, final: bool, utterance: str = "u", audio_s: float = 1.5, **more: Any) -> bool:
        audio = np.full(int(16_000 * audio_s), number, np.float32)
        values: dict[str, Any] = {"vad_fraction": 0.9, "during_output": False, "revision": number} | more
        job = Recognition(utterance_id=UtteranceId(utterance), audio=audio, final=final, **values)
        return self.recogniser.submit(job)

    def release(self, revision: int, utterance: str = "u") -> None:
        self.recogniser.release(UtteranceId(utterance), revision)

    def withdraw(self, utterance: str = "u") -> None:
        self.recogniser.withdraw(UtteranceId(utterance))

    def texts(self, *, final: bool) -> list[str]:
        return [transcript.text for transcript in self.sink.transcripts(final=final)]


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def make_mailbox() -> type[Mailbox]:
    return Mailbox


@pytest.fixture
def make_scripted() -> type[ScriptedRecogniser]:
    return ScriptedRecogniser


@pytest.fixture
def make_plain() -> Callable[..., Transcription]:
    return plain


@pytest.fixture
def event_list() -> EventList:
    return EventList()


@dataclass(frozen=True)
class Recording:
    """One row of the speech folder's list."""

    id: str
    language: str
    text: str
    kind: str
    path: Path

    @property
    def audio(self) -> Samples:
        samples, rate_hz = read_wav(self.path)
        assert rate_hz == 16_000
        return samples


@pytest.fixture(scope="session")
def recordings() -> list[Recording]:
    rows = [json.loads(line) for line in (SPEECH / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [
        Recording(row["id"], row["lang"], row.get("text") or "", row["kind"], SPEECH / row["path"]) for row in rows
    ]
    return [recording for recording in found if recording.path.is_file()]


@pytest.fixture(scope="session")
def models_dir() -> Path:
    return MODELS
