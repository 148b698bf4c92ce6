"""`mynah doctor --room`: simulated rooms with the real ears, and the virtual sound card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rigs.acoustics import AcousticPath, Place, image_source_response
from rigs.acoustics import Path as SoundPath
from rigs.ears_rig import at_level
from rigs.room_figures import FINE
from rigs.sound_rig import SoundRig

from audio.pcm import db_to_gain, read_wav, resample
from audio.ports import Samples
from audio.room_measure import Track, joined
from audio.simulated import MIC_BLOCK, MIC_RATE_HZ, OUT_BLOCK, OUT_RATE_HZ
from desktop.doctor_room import SoundCard, explain, room_main
from desktop.settings import Settings
from orchestrator.contracts.errors import PartFailed


class SimulatedDevices:
    """A microphone and a loudspeaker in a room of image sources; None is a headphone."""

    def __init__(self, path: SoundPath | None, noise_db: float = -62.0) -> None:
        self._path = path
        self._noise_db = noise_db

    def play(self, samples: Samples) -> tuple[Track, Track]:
        chance = np.random.default_rng(1)
        acoustics = AcousticPath(self._path) if self._path is not None else None
        heard = []
        for number in range(len(samples) // OUT_BLOCK):
            near = chance.normal(0.0, db_to_gain(self._noise_db), MIC_BLOCK).astype(np.float32)
            if acoustics is not None:
                acoustics.play(samples[number * OUT_BLOCK : (number + 1) * OUT_BLOCK])
                near += acoustics.hear(number * MIC_BLOCK, 0.0)
            heard.append(near)
        microphone = Track(samples=np.concatenate(heard), rate_hz=MIC_RATE_HZ, at_s=50.0)
        return microphone, Track(samples=samples, rate_hz=OUT_RATE_HZ, at_s=50.0)


@pytest.fixture(scope="module")
def sample(speech_dir: Path) -> Samples:
    """Two seconds of silence and ten of a voice, as the character's."""
    parts = []
    for name in ("en_LJ001_0004", "en_LJ001_0006"):
        samples, rate_hz = read_wav(speech_dir / f"{name}.wav")
        parts.append(at_level(resample(samples, rate_hz, OUT_RATE_HZ), -20.0))
    return np.pad(np.concatenate(parts), (2 * OUT_RATE_HZ, OUT_RATE_HZ))


def report(capsys: pytest.CaptureFixture[str], sample: Samples, path: SoundPath | None, **more: object) -> dict:
    devices = SimulatedDevices(path, **more)  # type: ignore[arg-type]
    assert room_main(Settings(ui_language="en"), as_json=True, devices=devices, sample=lambda: sample) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.models
def test_a_loudspeaker_in_a_room(capsys: pytest.CaptureFixture[str], sample: Samples) -> None:
    path = SoundPath(response=image_source_response(Place()), delay_s=0.18, gain_db=-12.0)
    room = report(capsys, sample, path)["room"]
    assert room["noise_db"] == pytest.approx(-62.0, abs=1.5)
    assert room["coupling_db"] == pytest.approx(-12.0, abs=2.5)
    assert room["delay_s"] == pytest.approx(0.18, abs=0.004)
    assert room["loss_db"] > 15.0
    assert room["cuts"] == 0
    assert not room["is_half_duplex"]


@pytest.mark.models
def test_headphones_in_a_noisy_room(capsys: pytest.CaptureFixture[str], sample: Samples) -> None:
    found = report(capsys, sample, None, noise_db=-40.0)
    assert found["room"]["coupling_db"] is None
    assert found["room"]["cuts"] == 0
    assert [each["status"] for each in found["findings"]] == ["warn", "ok", "ok", "ok"]


def test_what_it_means_is_said_in_both_languages() -> None:
    bad = replace(
        FINE,
        noise_db=-38.0,
        coupling_db=-2.0,
        delay_s=0.22,
        loss_db=2.0,
        cuts=3,
        ducks=9,
        is_half_duplex=True,
    )
    for language in ("en", "zh"):
        assert [each.status for each in explain(FINE, language)] == ["ok"] * 5
        assert all(not each.advice for each in explain(FINE, language))
        told = explain(bad, language)
        assert [each.status for each in told] == ["warn"] * 5
        assert all(each.advice for each in told)
        assert "220" in told[2].text and "220" in told[2].advice
    assert "延迟" in [each.part for each in explain(bad, "zh")]
    unknown = explain(replace(FINE, delay_s=None), "en")[2]
    assert (unknown.status, unknown.advice) == ("warn", "")


def test_one_false_duck_in_a_while_is_fine_and_many_are_not() -> None:
    assert explain(replace(FINE, ducks=1, talked_s=60.0), "en")[-1].status == "ok"
    assert explain(replace(FINE, ducks=2, talked_s=60.0), "en")[-1].status == "warn"


def test_a_missing_device_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def play(self, samples: Samples) -> tuple[Track, Track]:
            raise PartFailed("no_input", "no microphone was found", part="devices", recoverable=True)

    quiet = np.zeros(OUT_RATE_HZ, np.float32)
    assert room_main(Settings(ui_language="zh_CN"), as_json=False, devices=Broken(), sample=lambda: quiet) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1] == "无法测量房间: no microphone was found"


def test_blocks_become_a_track() -> None:
    ones = np.ones(160, np.float32)
    track = joined([(ones, 5.0), (ones, 5.0101), (ones, 5.119)], MIC_RATE_HZ)
    assert track.at_s == 5.0
    assert float(track.samples.sum()) == 480.0
    assert track.samples[:320].all() and not track.samples[330:1800].any()
    assert joined([], MIC_RATE_HZ).seconds == 0.0
    # Times that lean together lose no sample, and the last block fits although it ends later than its time says.
    leaning = joined([(ones, 5.0 + 0.009 * number) for number in range(20)], MIC_RATE_HZ)
    assert float(leaning.samples.sum()) >= 19 * 144 + 160 and leaning.samples.all()


@pytest.mark.audio
@pytest.mark.models
def test_on_the_virtual_sound_card(capsys: pytest.CaptureFixture[str], sample: Samples, sound_rig: SoundRig) -> None:
    sound_rig.set_echo(-10.0, delay_ms=60)
    short = sample[: 8 * OUT_RATE_HZ]
    settings = Settings(ui_language="en", input_device="pulse", output_device="pulse")
    assert room_main(settings, as_json=True, devices=SoundCard(settings), sample=lambda: short) == 0
    room = json.loads(capsys.readouterr().out)["room"]
    assert room["coupling_db"] == pytest.approx(-10.0, abs=3.0)
    assert 0.03 <= room["delay_s"] <= 0.35
    assert room["loss_db"] > 15.0
    assert room["cuts"] == 0
