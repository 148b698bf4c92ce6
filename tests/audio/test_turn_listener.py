"""What the tone of a pause adds to its words: in the real ears, with a scripted turn model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rigs.ears_rig import LoudVad, Rig, make_rig

from audio.ears_config import PATIENCE, RATE_HZ, EndpointConfig
from audio.echo import NoEchoCanceller
from audio.pcm import read_wav, resample
from audio.ports import Samples
from audio.turn_listener import TurnListener
from audio.turn_model import SmartTurn
from audio.turn_words import Signs, judged_with_tone, turn_chance
from audio.workers import Job
from orchestrator.contracts.errors import InputError
from orchestrator.speech.turn_text import Ending

EN, ZH = "I would like a coffee.", "今天很冷。"


class HandWorker:
    """A `Worker` whose jobs run when told to."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.is_full = False

    def submit(self, job: Job, *, name: str, cost_s: float | None = None) -> bool:
        if not self.is_full:
            self.jobs.append(job)
        return not self.is_full

    @property
    def is_busy(self) -> bool:
        return bool(self.jobs)

    def stop(self, timeout_s: float) -> bool:
        return True

    def run(self) -> int:
        """Run what waits; returns how many results there were."""
        jobs, self.jobs = self.jobs, []
        delivers = [deliver for deliver in (job() for job in jobs) if deliver is not None]
        for deliver in delivers:
            deliver()
        return len(delivers)


class ScriptedModel:
    """A turn model that finds what it is told, or raises without."""

    def __init__(self, chance: float | None) -> None:
        self.found = chance
        self.heard: list[Samples] = []

    def chance(self, audio: Samples) -> float:
        self.heard.append(audio)
        if self.found is None:
            raise RuntimeError("broken")
        return self.found


def listening(chance: float | None) -> tuple[Rig, HandWorker, ScriptedModel]:
    worker, model, vad = HandWorker(), ScriptedModel(chance), LoudVad()
    rig = make_rig(echo=NoEchoCanceller(), vad1=vad, vad2=vad, turn=TurnListener(worker, model))
    return rig, worker, model


def ended_after_s(rig: Rig) -> float:
    return rig.events.turn_ends()[0].silence_s


@pytest.mark.parametrize("text", [EN, ZH])
@pytest.mark.parametrize(
    ("end_chance", "tone", "silence_s"),
    [(0.98, 0.02, 0.75), (0.96, 0.98, 0.35), (0.9, 0.98, 0.35), (0.3, 0.98, 0.75)],
)
def test_the_tone_and_the_recogniser_decide_together(
    text: str, end_chance: float, tone: float, silence_s: float
) -> None:
    for is_tone_first in (True, False):
        rig, worker, _ = listening(tone)
        rig.voice(1.0)
        rig.silence(0.25)
        if is_tone_first:
            worker.run()
        rig.ears.on_partial(text, is_whole=True, end_chance=end_chance, avg_logprob=-0.2)
        rig.silence(0.02)
        worker.run()
        rig.silence(0.8)
        assert ended_after_s(rig) == pytest.approx(silence_s, abs=0.04)


def test_a_finished_sentence_waits_for_its_tone_but_no_longer_than_an_unsure_one() -> None:
    rig, worker, _ = listening(0.98)
    rig.voice(1.0)
    rig.silence(0.25)
    rig.ears.on_partial(EN, is_whole=True, end_chance=0.99, avg_logprob=-0.1)
    rig.silence(0.3)
    assert rig.events.turn_ends() == []
    worker.run()
    rig.silence(0.02)
    assert ended_after_s(rig) == pytest.approx(0.57, abs=0.04)

    never, _, _ = listening(0.98)
    never.voice(1.0)
    never.silence(0.25)
    never.ears.on_partial(EN, is_whole=True, end_chance=0.99, avg_logprob=-0.1)
    never.silence(0.8)
    assert ended_after_s(never) == pytest.approx(0.75, abs=0.02)


def test_the_words_alone_decide_when_the_tone_cannot_be_told() -> None:
    rigs = {"broken": listening(None), "full": listening(0.02)}
    rigs["full"][1].is_full = True
    plain = LoudVad()
    none = make_rig(echo=NoEchoCanceller(), vad1=plain, vad2=plain)
    for rig in (*(found[0] for found in rigs.values()), none):
        rig.voice(1.0)
        rig.silence(0.25)
        rigs["broken"][1].run()
        rig.ears.on_partial(EN, is_whole=True, end_chance=0.95, avg_logprob=-0.3)
        rig.silence(0.8)
        assert ended_after_s(rig) == pytest.approx(0.35, abs=0.04)


def test_short_gaps_are_not_listened_to_and_each_pause_only_to_its_beginning() -> None:
    rig, worker, model = listening(0.98)
    rig.voice(0.6)
    rig.silence(0.15)
    rig.voice(0.6)
    assert worker.jobs == []
    rig.silence(0.4)
    assert worker.run() == 1
    heard, final = model.heard[0], rig.recogniser.finals[-1].audio
    assert len(heard) == len(final) and np.array_equal(heard, final)
    rig.silence(0.2)
    assert worker.jobs == []


def test_a_tone_from_an_earlier_pause_says_nothing_about_the_next() -> None:
    rig, worker, _ = listening(0.98)
    rig.voice(0.6)
    rig.silence(0.3)
    early = worker.jobs
    worker.jobs = []
    rig.voice(0.6)
    rig.silence(0.3)
    rig.ears.on_partial(EN, is_whole=True, end_chance=0.97, avg_logprob=-0.1)
    deliver = early[0]()
    assert deliver is None
    rig.silence(0.2)
    assert rig.events.turn_ends() == []
    assert worker.run() == 1
    rig.silence(0.02)
    assert ended_after_s(rig) == pytest.approx(0.52, abs=0.04)


def test_what_was_not_understood_ends_a_turn_soon_only_over_an_answer() -> None:
    for is_on, silence_s in ((True, 0.35), (False, 0.75)):
        rig, worker, _ = listening(0.98)
        rig.player.is_on = is_on
        rig.voice(1.0)
        rig.silence(0.25)
        worker.run()
        rig.ears.on_partial("", is_whole=True)
        rig.silence(0.8)
        assert ended_after_s(rig) == pytest.approx(silence_s, abs=0.04)


def test_more_of_any_sign_makes_an_end_likelier() -> None:
    base = turn_chance(0.9, 0.9, -0.3)
    assert turn_chance(0.95, 0.9, -0.3) > base < turn_chance(0.9, 0.95, -0.3)
    assert turn_chance(0.9, 0.9, -0.2) > base
    for end in (0.0, 1.0):
        for tone in (0.0, 1.0):
            assert 0.0 < turn_chance(end, tone, -50.0) <= turn_chance(end, tone, 0.0) < 1.0


def test_questions_and_open_sentences_stay_what_their_words_say() -> None:
    config, sure, unsure = EndpointConfig(), Signs(end_chance=1.0, avg_logprob=0.0, tone_chance=1.0), Signs(
        end_chance=0.0, avg_logprob=-1.0, tone_chance=0.0
    )  # fmt: skip
    assert judged_with_tone("And then I went to the", sure, config) is Ending.OPEN
    assert judged_with_tone("因为", sure, config) is Ending.OPEN
    assert judged_with_tone("请问图书馆在哪里", unsure, config) is Ending.CLOSED
    assert judged_with_tone("请问图书馆在哪里", replace(unsure, is_tone_due=True), config) is Ending.CLOSED


def test_a_recogniser_that_cannot_tell_is_believed_its_mark() -> None:
    for due in (True, False):
        signs = Signs(tone_chance=0.02, is_tone_due=due)
        assert judged_with_tone(EN, signs, EndpointConfig()) is Ending.CLOSED


def test_the_dials_ask_for_more_the_more_patient() -> None:
    asked = [PATIENCE[name].sure_turn_chance for name in ("quick", "normal", "patient")]
    assert asked == sorted(asked) and asked[0] < asked[1] < asked[2]


def test_a_missing_or_broken_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="models get"):
        SmartTurn(tmp_path / "model.onnx")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match="can't be loaded"):
        SmartTurn(tmp_path / "model.onnx")


@pytest.mark.models
def test_the_model_finds_ends_likelier_than_middles(model_path: Callable[[str], Path], speech_dir: Path) -> None:
    model = SmartTurn(model_path("smart-turn-v3.2") / "model.onnx")
    ends, middles = [], []
    for path in sorted(speech_dir.glob("en_pv_*.wav")):
        samples, rate_hz = read_wav(path)
        voiced = np.flatnonzero(np.abs(samples) > 0.05 * np.abs(samples).max())
        pause = np.zeros(rate_hz // 16, np.float32)
        for until, found in ((voiced[-1], ends), (voiced[int(0.55 * len(voiced))], middles)):
            found.append(model.chance(resample(np.concatenate([samples[:until], pause]), rate_hz, RATE_HZ)))
    assert len(ends) >= 10
    assert np.mean(ends) > np.mean(middles) + 0.2
