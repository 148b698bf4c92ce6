"""The real program on the virtual sound card: asked, answered, cut off, answered again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from rigs.program_rig import Program
from rigs.scripted_llm import Answer, ScriptedLlm
from rigs.sound_rig import Recording, SoundRig, rms_db

from audio.stt.whisper_adapter import WhisperAdapter
from orchestrator.clock import SystemClock

pytestmark = [pytest.mark.e2e, pytest.mark.audio, pytest.mark.models, pytest.mark.timeout(240)]

LONG = (
    "The weather today is sunny and warm, with a light breeze from the west. In the afternoon some clouds may come up "
    "over the hills, but it will stay dry. Tomorrow will be cooler, and there may be some rain in the evening, so take "
    "an umbrella with you. The day after that will be fine again, and the weekend looks very good for a long walk."
)
SECOND = "A dog is loyal and playful. A cat is quiet and clean."


@pytest.fixture
def answers() -> list[Answer]:
    return [Answer(pattern="dog|cat", text=SECOND), Answer(pattern="weather", text=LONG)]


@pytest.fixture
def listener(model_path: Callable[[str], Path]) -> WhisperAdapter:
    return WhisperAdapter(model_path("whisper-base"), clock=SystemClock())


def heard(listener: WhisperAdapter, recording: Recording, begin_s: float, end_s: float) -> str:
    sound = recording.samples()
    begin, end = (int(max(0.0, at_s - recording.start_s) * recording.rate_hz) for at_s in (begin_s, end_s))
    text = listener.transcribe(sound[begin:end], languages=("en",)).text
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def likeness(heard_text: str, answer: str, *, whole: bool = False) -> float:
    """Share of the heard words that stand in the answer in this order, from its beginning or all of it."""
    said, wanted = heard_text.split(), re.findall(r"[a-z']+", answer.lower())
    if not whole:
        wanted = wanted[: len(said) + 2]
    blocks = SequenceMatcher(a=wanted, b=said, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(1, len(wanted) if whole else len(said))


def test_answered_aloud_cut_off_and_answered_again(
    sound_rig: SoundRig, speech_dir: Path, tmp_path: Path, answers: list[Answer], listener: WhisperAdapter
) -> None:
    with ScriptedLlm(answers) as llm:  # noqa: SIM117
        with Program(["run", "--headless", "--llm", llm.url], folder=tmp_path, env=sound_rig.env) as program:
            recording = sound_rig.record()
            recording.wait_started()
            sound_rig.speak(speech_dir / "en_az_weather.wav")
            first = program.wait_for("output:first_sound", timeout_s=40)
            sounded_s = recording.wait_for_sound(after_s=first["payload"]["at_s"] - 0.3)
            assert abs(sounded_s - first["payload"]["at_s"]) < 0.15, "what the program says it played is what came out"
            program.wait_for("output:word", lambda r: r["payload"]["index"] >= 4, timeout_s=20)

            spoken = sound_rig.speak(speech_dir / "en_ky_dog.wav", wait=False)
            cut = program.wait_for("output:cut", timeout_s=10)
            spoken.wait(10)
            confirmed = program.wait_for("interrupt:confirm", timeout_s=20)
            assert (confirmed["payload"]["verdict"], confirmed["payload"]["because"]) == ("cancel", "words")
            old = first["generationId"]
            again = program.wait_for(
                "output:first_sound", lambda r: r["generationId"] != old, timeout_s=30, after=cut["seq"]
            )
            done = program.wait_for(
                "generation:state",
                lambda r: r["generationId"] == again["generationId"] and r["payload"]["to"] == "COMPLETED",
                timeout_s=30,
            )
            time.sleep(0.3)
            quiet = recording.since(cut["payload"]["lastSample_at_s"] + 0.1)
            gap_s = again["payload"]["at_s"] - cut["payload"]["lastSample_at_s"] - 0.2
            silence = quiet[: int(gap_s * recording.rate_hz)]
            assert len(silence) > 0.3 * recording.rate_hz
            assert rms_db(silence) < -60, "between the cut and the new answer nothing sounds"

            before = heard(listener, recording, first["payload"]["at_s"] - 0.1, cut["payload"]["at_s"])
            after = heard(listener, recording, again["payload"]["at_s"] - 0.1, done["t"])
            assert likeness(before, LONG) > 0.7, before
            assert likeness(after, SECOND, whole=True) > 0.6, after
            assert not {"umbrella", "weekend", "cooler"} & set(after.split()), "nothing of the old answer comes later"
            recording.stop()

            code, took_s = program.end()
            assert code == 0
            assert took_s < 3.0
        long_call, short_call = llm.calls[0], llm.calls[1]
    assert "weather" in long_call.last_user_text.lower()
    assert "dog" in short_call.last_user_text.lower()
    stored = [r["payload"] for r in program.of("history:commit") if r["payload"]["role"] == "assistant"]
    assert [entry["status"] for entry in stored] == ["interrupted", "completed"]
    assert LONG.startswith(stored[0]["text"]), "history keeps a prefix of the answer"
    played = [r["payload"] for r in program.of("output:word") if r["generationId"] == old and not r["payload"]["cut"]]
    assert stored[0]["text"].split() == [word["text"] for word in played], "to the word what was heard"
    assert any("sunny" in str(m) for m in short_call.body["messages"]), "the model knows what was heard of its answer"
    assert not any("umbrella" in str(m) for m in short_call.body["messages"]), "and nothing that was not"


def test_the_endpoint_sees_its_connection_closed_before_another_token_is_used(
    sound_rig: SoundRig, speech_dir: Path, tmp_path: Path
) -> None:
    endless = " ".join(f"This is sentence number {n} of a very long story." for n in range(400))
    answers = [Answer(pattern="weather", text=endless, tokens_per_s=15.0), Answer(pattern="", text="Yes.")]
    with ScriptedLlm(answers) as llm:  # noqa: SIM117
        with Program(["run", "--headless", "--llm", llm.url], folder=tmp_path, env=sound_rig.env) as program:
            sound_rig.speak(speech_dir / "en_az_weather.wav")
            program.wait_for("output:word", lambda r: r["payload"]["index"] >= 2, timeout_s=40)
            assert not llm.calls[0].is_finished, "the endpoint still speaks"
            program.send(cmd="stop")
            ended = program.wait_for("llm:end", timeout_s=10)
            assert ended["payload"]["outcome"] == "cancelled"
            assert llm.calls[0].over.wait(5)
            assert llm.calls[0].closed_at_s is not None
            assert llm.calls[0].tokens_after_close == 0
            assert program.wait_for("interrupt:confirm")["payload"]["verdict"] == "stop_only"
            program.end()


def test_typed_text_works_like_speech_and_interrupts(
    sound_rig: SoundRig, tmp_path: Path, answers: list[Answer]
) -> None:
    with (
        ScriptedLlm(answers) as llm,
        Program(["run", "--headless", "--llm", llm.url], folder=tmp_path, env=sound_rig.env) as program,
    ):
        program.send(cmd="text", text="What is the weather like?")
        first = program.wait_for("output:word", lambda r: r["payload"]["index"] >= 3, timeout_s=30)
        program.send(cmd="text", text="Is a dog better than a cat?")
        program.wait_for(
            "generation:state",
            lambda r: r["generationId"] == first["generationId"] and r["payload"]["to"] == "CANCELLED",
        )
        program.wait_for(
            "generation:state",
            lambda r: r["generationId"] != first["generationId"] and r["payload"]["to"] == "COMPLETED",
            timeout_s=30,
        )
        inputs = [r["payload"] for r in program.of("input:user")]
        assert [entry["interruptHint"] for entry in inputs if entry["interruptHint"]] == ["interrupted"]
        program.send(cmd="nonsense")
        refused = program.wait_for("control:ack", lambda r: not r["payload"]["ok"])
        assert "unknown command" in refused["payload"]["error"]
        program.end()


def test_a_muted_microphone_hears_nothing_and_a_muted_voice_shows_its_text(
    sound_rig: SoundRig, speech_dir: Path, tmp_path: Path, answers: list[Answer]
) -> None:
    with (
        ScriptedLlm(answers) as llm,
        Program(["run", "--headless", "--llm", llm.url], folder=tmp_path, env=sound_rig.env) as program,
    ):
        program.send(cmd="mute_mic", on=True)
        program.wait_for("control:ack")
        sound_rig.speak(speech_dir / "en_az_weather.wav")
        time.sleep(1.0)
        assert program.of("input:speech") == []
        program.send(cmd="mute_voice", on=True)
        recording = sound_rig.record()
        recording.wait_started()
        program.send(cmd="text", text="dog or cat?")
        program.wait_for("history:commit", lambda r: r["payload"]["role"] == "assistant", timeout_s=40)
        sound = recording.stop()
        assert rms_db(sound) < -70
        assert float(np.abs(sound).max()) < 0.001
        said = [r["payload"] for r in program.of("history:commit") if r["payload"]["role"] == "assistant"]
        assert said[0]["text"] == SECOND
        assert said[0]["status"] == "completed"
        program.end()
