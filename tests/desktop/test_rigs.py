"""The rigs do what the tests that stand on them assume."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import openai
import pytest
from rigs.screen_rig import ScreenRig
from rigs.scripted_llm import Answer, ScriptedLlm, tokens_of
from rigs.sound_rig import Recording, SoundRig, rms_db, write_wav

RATE_HZ = 16_000


def tone(folder: Path, seconds: float = 0.5, hz: float = 440.0, level: float = 0.3) -> Path:
    samples = level * np.sin(2 * np.pi * hz * np.arange(int(seconds * RATE_HZ)) / RATE_HZ)
    return write_wav(folder / f"tone_{hz:.0f}.wav", samples.astype(np.float32), RATE_HZ)


def pitch_hz(samples: np.ndarray) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * RATE_HZ / len(samples)


def loud_part(recording: Recording, after_s: float) -> np.ndarray:
    at_s = recording.wait_for_sound(after_s=after_s)
    start = round((at_s - recording.start_s) * RATE_HZ)
    return recording.samples()[start : start + RATE_HZ * 3 // 10]


@pytest.mark.audio
def test_what_is_played_on_the_loudspeaker_is_recorded_at_its_time(sound_rig: SoundRig, tmp_path: Path) -> None:
    recording = sound_rig.record()
    recording.wait_started()
    # What another test left in the card's buffer has to be over before the moment that is measured.
    time.sleep(0.5)
    before_s = time.monotonic()
    assert rms_db(recording.since(before_s - 0.2)) < -90
    sound_rig.play_on_speaker(tone(tmp_path))
    after_s = time.monotonic()
    at_s = recording.wait_for_sound(after_s=before_s)
    # Sound is looked for in steps of 10 ms from `before_s` on, and the first may already have it.
    assert before_s <= at_s < after_s
    assert pitch_hz(loud_part(recording, before_s)) == pytest.approx(440, abs=5)
    recording.stop()


@pytest.mark.audio
def test_what_is_spoken_is_heard_by_the_microphone_alone(sound_rig: SoundRig, tmp_path: Path) -> None:
    microphone, speaker = sound_rig.record(source="mic"), sound_rig.record()
    before_s = time.monotonic()
    sound_rig.speak(tone(tmp_path, hz=800))
    assert pitch_hz(loud_part(microphone, before_s)) == pytest.approx(800, abs=5)
    assert rms_db(speaker.stop()) < -90


@pytest.mark.audio
@pytest.mark.parametrize("db", [-6.0, -20.0])
def test_echo_reaches_the_microphone_at_its_level(sound_rig: SoundRig, tmp_path: Path, db: float) -> None:
    sound_rig.set_echo(db)
    microphone, speaker = sound_rig.record(source="mic"), sound_rig.record()
    before_s = time.monotonic()
    sound_rig.play_on_speaker(tone(tmp_path, seconds=1.0))
    heard, played = loud_part(microphone, before_s), loud_part(speaker, before_s)
    middle = slice(RATE_HZ // 10, RATE_HZ * 2 // 10)
    assert rms_db(heard[middle]) - rms_db(played[middle]) == pytest.approx(db, abs=1.0)
    sound_rig.set_echo(None)


CAPTURE = """
import sys, time, sounddevice
blocks = 0
def take(data, frames, when, status):
    global blocks
    blocks += 1
ended = []
stream = sounddevice.RawInputStream(device="pulse", samplerate=16000, channels=1, dtype="int16", blocksize=160,
                                    callback=take, finished_callback=lambda: ended.append(True))
stream.start()
for line in sys.stdin:
    print(blocks, bool(ended), flush=True)
"""


@pytest.mark.audio
def test_faults_of_the_microphone_reach_a_portaudio_program(sound_rig: SoundRig) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CAPTURE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdin is not None and program.stdout is not None
        stdin, stdout = program.stdin, program.stdout

        def ask() -> tuple[int, bool]:
            stdin.write("?\n")
            stdin.flush()
            blocks, ended = stdout.readline().split()
            return int(blocks), ended == "True"

        def wait_until(condition: str) -> tuple[int, bool]:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                blocks, ended = ask()
                if eval(condition, {"blocks": blocks, "ended": ended}):
                    return blocks, ended
                time.sleep(0.02)
            raise AssertionError(f"never {condition}")

        wait_until("blocks > 20")
        sound_rig.suspend_microphone(True)
        time.sleep(0.3)
        stalled, _ = ask()
        time.sleep(0.3)
        assert ask() == (stalled, False)
        sound_rig.suspend_microphone(False)
        wait_until(f"blocks > {stalled} + 20")
        assert sound_rig.kill_streams("input") == 1
        wait_until("ended")
        program.stdin.close()


WINDOW = """
import sys
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget, QVBoxLayout
app = QApplication(sys.argv)
widget = QWidget(); widget.setWindowTitle("rig window"); widget.resize(300, 200); widget.move(100, 100)
palette = widget.palette(); palette.setColor(QPalette.ColorRole.Window, QColor("#ff0080")); widget.setPalette(palette)
line = QLineEdit(); line.textChanged.connect(lambda text: print(text, flush=True))
QVBoxLayout(widget).addWidget(line)
widget.show(); line.setFocus()
app.exec()
"""


@pytest.mark.window
def test_a_qt_window_is_seen_and_takes_keys(screen_rig: ScreenRig, tmp_path: Path) -> None:
    import os

    with subprocess.Popen(
        [sys.executable, "-c", WINDOW], env={**os.environ, **screen_rig.env}, stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            window = screen_rig.wait_for_window("rig window")
            screen_rig.xdotool("windowactivate", "--sync", window)
            deadline = time.monotonic() + 10
            pink = 0
            while pink < 20_000 and time.monotonic() < deadline:
                image = screen_rig.screenshot(tmp_path / "screen.png")
                pink = int(np.all(image == (255, 0, 128), axis=2).sum())
            assert image.shape == (screen_rig.height, screen_rig.width, 3)
            assert 20_000 < pink <= 300 * 200
            assert (tmp_path / "screen.png").stat().st_size > 500
            screen_rig.xdotool("type", "--window", window, "hi")
            assert program.stdout is not None
            assert [program.stdout.readline().strip() for _ in range(2)] == ["h", "hi"]
        finally:
            program.terminate()


async def test_scripted_endpoint_streams_at_its_pace_and_notes_the_close() -> None:
    text = "one two three four five six seven eight nine ten"
    with ScriptedLlm([Answer(pattern="count", text=text, first_token_s=0.1, tokens_per_s=20)]) as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.url, api_key="x", max_retries=0)
        started_s = time.monotonic()
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Count, please"}], stream=True
        )
        pieces = []
        async for chunk in stream:
            pieces.append(chunk.choices[0].delta.content or "")
            if len(pieces) == 3:
                break
        assert time.monotonic() - started_s >= 0.1 + 2 / 20
        closing_s = time.monotonic()
        await stream.close()
        (call,) = endpoint.calls
        assert call.over.wait(5)
        await client.close()
    assert pieces == ["one ", "two ", "three "]
    assert call.closed_at_s is not None and 0 <= call.closed_at_s - closing_s < 1
    assert not call.is_finished and call.tokens_after_close == 0 and len(call.sent_s) < 10


async def test_scripted_endpoint_answers_whole_fails_and_breaks_off(scripted_llm: ScriptedLlm) -> None:
    scripted_llm.answers = [
        Answer(pattern="fail", text="overloaded", status=503),
        Answer(pattern="break", text="a b c d", first_token_s=0, tokens_per_s=200, break_after=2),
        Answer(pattern="你好", text="你好，朋友。", first_token_s=0, tokens_per_s=200),
    ]

    async def ask(text: str, *, stream: bool) -> object:
        return await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}], stream=stream
        )

    async with openai.AsyncOpenAI(base_url=scripted_llm.url, api_key="x", max_retries=0) as client:
        whole = await ask("你好", stream=False)
        assert whole.choices[0].message.content == "你好，朋友。"  # type: ignore[attr-defined]
        chinese = [c.choices[0].delta.content async for c in await ask("你好", stream=True)]  # type: ignore[attr-defined]
        assert [piece for piece in chinese if piece] == list("你好，朋友。")
        with pytest.raises(openai.APIStatusError):
            await ask("fail", stream=True)
        broken = await ask("break", stream=True)
        got = [c.choices[0].delta.content async for c in broken]  # type: ignore[attr-defined]
        assert got == ["a ", "b "]
    assert [call.is_finished for call in scripted_llm.calls] == [True, True, False, False]
    assert tokens_of("Hi there, 朋友!") == ["Hi ", "there, ", "朋", "友", "!"]
