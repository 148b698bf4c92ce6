"""The window as a person sees it: spoken to, answering with moving beak and lit words, cut off, answering again."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from rigs.program_rig import Program
from rigs.screen_rig import ScreenRig
from rigs.scripted_llm import Answer, ScriptedLlm
from rigs.sound_rig import SoundRig

pytestmark = [pytest.mark.e2e, pytest.mark.window, pytest.mark.audio, pytest.mark.models, pytest.mark.timeout(240)]

LONG = (
    "The weather today is sunny and warm. In the afternoon some clouds may come up over the hills, but it will stay "
    "dry until the evening. Tomorrow will be cooler, and there may be some rain, so take an umbrella with you."
)
ANSWERS = [Answer(pattern="dog|cat", text="A dog is loyal. A cat is quiet."), Answer(pattern="weather", text=LONG)]


def dump(program: Program) -> dict[str, Any]:
    before = len(program.of("control:ack"))
    program.send(cmd="dump")
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        acks = program.of("control:ack")
        if len(acks) > before:
            assert acks[-1]["payload"]["ok"], acks[-1]
            result: dict[str, Any] = acks[-1]["payload"]["result"]
            return result
        time.sleep(0.02)
    raise AssertionError("no dump")


def widget(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in found["widgets"] if entry["objectName"] == name)


def beak(screen: ScreenRig, rect: list[int]) -> npt.NDArray[np.float32]:
    x, y, width, height = rect
    picture = np.asarray(screen.screenshot(), np.float32)
    middle_x, middle_y, half = x + width // 2, y + int(height * 0.47), int(height * 0.09)
    return picture[middle_y - half : middle_y + half, middle_x - half : middle_x + half, :3]


def movement(frames: list[npt.NDArray[np.float32]]) -> float:
    """Typical change of a pixel between two frames; the median, so that one blink or change of state does not count."""
    return float(np.median([np.abs(after - before).mean() for before, after in itertools.pairwise(frames)]))


def test_speaks_with_its_beak_lights_its_words_and_marks_the_cut(
    sound_rig: SoundRig, screen_rig: ScreenRig, speech_dir: Path, tmp_path: Path
) -> None:
    env = {**sound_rig.env, **screen_rig.env}
    (tmp_path / "data").mkdir()
    # Without breathing and swaying, what moves in the middle of the head is the beak.
    (tmp_path / "data" / "settings.yaml").write_text("reduced_motion: true\n", encoding="utf-8")
    with (
        ScriptedLlm(ANSWERS) as llm,
        Program(["--llm", llm.url, "--language", "en"], folder=tmp_path, env=env) as program,
    ):
        screen_rig.wait_for_window("Mynah")
        found = dump(program)
        rect = widget(found, "avatar")["rect"]
        assert widget(found, "microphoneSign")["visible"]
        quiet = movement([beak(screen_rig, rect) for _ in range(8)])

        sound_rig.speak(speech_dir / "en_az_weather.wav")
        first = program.wait_for("output:first_sound", timeout_s=40)
        frames = [beak(screen_rig, rect) for _ in range(10)]
        assert not [r for r in program.of("output:state") if r["payload"]["state"] == "queue_empty"], "it still speaks"
        assert movement(frames) > 3 * quiet + 0.3, "the beak moves while it speaks"

        spoken = sound_rig.speak(speech_dir / "en_ky_dog.wav", wait=False)
        cut = program.wait_for("output:cut", timeout_s=15)
        spoken.wait(10)
        marked = program.wait_for("subtitle:painted", lambda r: r["payload"]["cutAt"] is not None, after=cut["seq"])
        assert marked["payload"]["role"] == "character"
        assert marked["t"] - cut["t"] < 1.0
        program.wait_for(
            "generation:state",
            lambda r: r["generationId"] != first["generationId"] and r["payload"]["to"] == "COMPLETED",
            timeout_s=60,
        )
        time.sleep(1.0)
        still = movement([beak(screen_rig, rect) for _ in range(8)])
        assert still < quiet * 2 + 0.3, "the beak rests in silence"

        painted = [r["payload"]["mouth"] for r in program.of("avatar:painted") if r["t"] < cut["t"]]
        assert len(set(painted)) >= 4, "several mouth shapes"
        assert program.of("avatar:painted")[-1]["payload"]["mouth"] == "rest"
        lit = [
            r["payload"]["litTo"] for r in program.of("subtitle:painted") if LONG.startswith(r["payload"]["text"][:20])
        ]
        assert len(set(lit)) >= 4, "words are lit one after the other"
        shown = dump(program)
        texts = " ".join(str(line) for line in shown["state"]["subtitles"])
        assert "weather" in texts and "dog" in texts
        code, took_s = program.end()
        assert code == 0 and took_s < 3.5


def test_without_any_sound_the_window_opens_says_so_and_typing_works(screen_rig: ScreenRig, tmp_path: Path) -> None:
    env = {**screen_rig.env, "PULSE_SERVER": "unix:/nonexistent"}
    with ScriptedLlm(ANSWERS) as llm, Program(["--llm", llm.url], folder=tmp_path, env=env) as program:
        screen_rig.wait_for_window("Mynah")
        found = dump(program)
        assert widget(found, "noticeBar")["visible"], "it says that there is no sound"
        field = widget(found, "messageField")["rect"]
        screen_rig.xdotool("mousemove", str(field[0] + field[2] // 2), str(field[1] + field[3] // 2), "click", "1")
        screen_rig.xdotool("type", "--delay", "20", "dog or cat")
        screen_rig.xdotool("key", "Return")
        asked = program.wait_for("input:user", timeout_s=10)
        assert (asked["payload"]["text"], asked["payload"]["via"]) == ("dog or cat", "typed")
        stored = program.wait_for("history:commit", lambda r: r["payload"]["role"] == "assistant", timeout_s=30)
        assert stored["payload"]["text"] == "A dog is loyal. A cat is quiet."
        program.end()


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (["--whisper", "whisper-colossal"], "", "whisper-colossal"),
        (["--llm", "http://127.0.0.1:9/v1"], "patience: quickly\n", "patience"),
        (["--input", "no such microphone"], "", "no such microphone"),
    ],
)
def test_bad_input_is_told_in_the_window(
    sound_rig: SoundRig, screen_rig: ScreenRig, tmp_path: Path, arguments: list[str], settings: str, words: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "settings.yaml").write_text(settings, encoding="utf-8")
    env = {**sound_rig.env, **screen_rig.env}
    with Program(["--llm", "none", *arguments], folder=tmp_path, env=env) as program:
        found = dump(program)
        notice = widget(found, "noticeText")
        assert notice["visible"]
        assert words in notice["text"], notice["text"]
        program.end()
