"""What is learned of the way from the loudspeaker to the microphone, and kept from one start to the next."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rigs.ears_rig import FakeEvents

from audio.ears_config import FRAME_SAMPLES, RATE_HZ, EchoConfig
from audio.echo import NoEchoCanceller, WebRtcEchoCanceller
from audio.echo_convergence import Convergence
from audio.echo_path import EchoPath, PathObserver, rehearsal
from audio.echo_path_store import MOST_PAIRS, VERSION, EchoPathStore
from audio.engine import AudioEngine, AudioModels, EngineConfig
from audio.ports import Samples
from audio.workers import VirtualScheduler, VirtualWorker
from orchestrator.clock import VirtualClock
from orchestrator.contracts.ids import IdFactory

PATH = EchoPath(delay_s=0.12, coupling_db=-14.0, loss_db=30.0, leak_db=-28.0)
PAIR = ("microphone", "loudspeaker")


def noise(seconds: float, level: float, seed: int) -> Samples:
    return np.random.default_rng(seed).normal(0.0, level, round(seconds * RATE_HZ)).astype(np.float32)


def heard(far: Samples, delay_s: float, gain: float) -> Samples:
    late = np.concatenate([np.zeros(round(delay_s * RATE_HZ)), far])[: len(far)]
    return np.asarray(late * gain + noise(len(far) / RATE_HZ, 1e-4, 9), np.float32)


def observe(near: Samples, far: Samples) -> PathObserver:
    observer = PathObserver()
    for begin in range(0, len(near) // FRAME_SAMPLES * FRAME_SAMPLES, FRAME_SAMPLES):
        part = slice(begin, begin + FRAME_SAMPLES)
        observer.frame(near[part], far[part])
    return observer


@pytest.mark.parametrize("delay_s", [0.0, 0.018, 0.14, 0.45])
def test_delay_and_coupling_are_found(delay_s: float) -> None:
    far = noise(10.0, 0.05, 1)
    found = observe(heard(far, delay_s, 0.2), far)
    assert found.delay_s == pytest.approx(delay_s, abs=0.001)
    assert found.coupling_db == pytest.approx(-14.0, abs=1.5)


def test_two_seconds_are_not_enough_to_be_sure() -> None:
    far = noise(5.0, 0.05, 1)
    assert observe(heard(far, 0.1, 0.2), far).delay_s is None


def test_words_of_the_user_do_not_matter() -> None:
    far = noise(20.0, 0.05, 1)
    near = heard(far, 0.1, 0.2)
    near[2 * RATE_HZ : 3 * RATE_HZ] += noise(1.0, 0.1, 2)
    found = observe(near, far)
    assert found.delay_s == pytest.approx(0.1, abs=0.001)
    assert found.coupling_db == pytest.approx(-14.0, abs=2.0)


def test_nothing_is_found_where_nothing_arrives_or_nothing_sounds() -> None:
    far = noise(20.0, 0.05, 1)
    assert observe(noise(20.0, 0.05, 2), far).delay_s is None
    assert observe(heard(far, 0.1, 0.2), np.zeros_like(far)).delay_s is None


def test_a_moved_device_is_found_anew() -> None:
    far = noise(120.0, 0.05, 1)
    near = np.concatenate([heard(far[: 30 * RATE_HZ], 0.05, 0.2), heard(far[30 * RATE_HZ :], 0.2, 0.2)])
    assert observe(near, far).delay_s == pytest.approx(0.2, abs=0.001)


def test_the_rehearsal_sounds_like_the_path() -> None:
    near, far = rehearsal(PATH)
    assert len(near) == len(far) and len(near) % FRAME_SAMPLES == 0
    found = observe(np.tile(near, 3), np.tile(far, 3))
    assert found.delay_s == pytest.approx(PATH.delay_s, abs=0.001)
    assert found.coupling_db == pytest.approx(PATH.coupling_db, abs=1.0)


def test_only_a_canceller_that_heard_nothing_yet_rehearses() -> None:
    echo = WebRtcEchoCanceller(EchoConfig())
    silence = np.zeros(FRAME_SAMPLES, np.float32)
    echo.process(silence, silence)
    assert echo.rehearse(PATH)
    assert not echo.rehearse(PATH), "twice"
    echo.reset()
    echo.process(silence, noise(0.01, 0.1, 1))
    assert not echo.rehearse(PATH), "the real room is better known by now"
    assert echo.stats()["echo_rehearsals"] == 1
    assert echo.path is None
    assert not NoEchoCanceller().rehearse(PATH)


def test_an_expected_leak_counts_only_where_the_echo_is_taken_out_as_well_as_then() -> None:
    convergence = Convergence(EchoConfig())
    convergence.expect(-28.0)
    for _ in range(100):
        convergence.frame(-30.0, -32.0, -30.0)
    assert convergence.leak_db is None, "the room has changed: hardly anything is taken out"
    for _ in range(150):
        convergence.frame(-30.0, -60.0, -30.0)
    assert convergence.is_warm
    assert convergence.leak_db == pytest.approx(-22.0), "with some doubt"
    for _ in range(800):
        convergence.frame(-30.0, -50.0, -30.0)
    assert convergence.leak_db == pytest.approx(-20.0), "its own by now"
    convergence.reset()
    assert convergence.leak_db is None


# --- the file ----------------------------------------------------------------------------------------------


def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "data" / "echo-paths.json"
    store = EchoPathStore(file)
    assert store.get(PAIR) is None
    store.put(PAIR, PATH)
    store.save()
    assert EchoPathStore(file).get(PAIR) == PATH
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_nothing_but_names_and_four_figures_is_stored(tmp_path: Path) -> None:
    store = EchoPathStore(tmp_path / "p.json")
    store.put(PAIR, PATH)
    store.save()
    stored = json.loads((tmp_path / "p.json").read_text())
    assert set(stored) == {"version", "pairs"}
    assert stored["pairs"] == [
        {
            "input": "microphone", "output": "loudspeaker",
            "delay_s": 0.12, "coupling_db": -14.0, "loss_db": 30.0, "leak_db": -28.0,
        }
    ]  # fmt: skip


def row(**other: object) -> dict[str, object]:
    return {"input": "m", "output": "l", "delay_s": 0.1, "coupling_db": -10, "loss_db": 20, "leak_db": -20} | other


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 1, "pairs": [null, 3, {}]}',
        json.dumps({"version": VERSION + 1, "pairs": [row()]}),
        json.dumps({"version": VERSION, "pairs": [row(delay_s="soon")]}),
        json.dumps({"version": VERSION, "pairs": [row(delay_s=True)]}),
        json.dumps({"version": VERSION, "pairs": [row(delay_s=-0.1)]}),
        json.dumps({"version": VERSION, "pairs": [row(delay_s=5.0)]}),
        json.dumps({"version": VERSION, "pairs": [row(leak_db=float("nan"))]}),
        json.dumps({"version": VERSION, "pairs": [row(input=None)]}),
    ],
)
def test_a_file_that_makes_no_sense_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    store = EchoPathStore(tmp_path / "p.json")
    assert store.get(("m", "l")) is None
    store.put(PAIR, PATH)
    store.save()
    assert EchoPathStore(tmp_path / "p.json").get(PAIR) == PATH


def test_the_pairs_used_last_are_kept(tmp_path: Path) -> None:
    store = EchoPathStore(tmp_path / "p.json")
    for number in range(MOST_PAIRS + 3):
        store.put(("m", str(number)), PATH)
    store.put(("m", "4"), EchoPath(delay_s=0.2, coupling_db=-14.0, loss_db=30.0, leak_db=-28.0))
    store.put(("m", "new"), PATH)
    store.save()
    again = EchoPathStore(tmp_path / "p.json")
    assert again.get(("m", "3")) is None and again.get(("m", "4")) is not None and again.get(("m", "new")) is not None


def test_a_folder_that_can_not_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    store = EchoPathStore(tmp_path / "data" / "p.json")
    store.put(PAIR, PATH)
    with caplog.at_level(logging.WARNING):
        store.save()
    assert "was not stored" in caplog.text


# --- the engine --------------------------------------------------------------------------------------------


class Stream:
    """A device that is open."""

    def __init__(self, name: str) -> None:
        self.device = SimpleNamespace(name=name)
        self.is_open = True


def engine(file: Path) -> AudioEngine:
    clock = VirtualClock(100.0)
    made = AudioEngine(
        clock=clock,
        ids=IdFactory(),
        events=FakeEvents(),
        staleness=SimpleNamespace(is_stale=lambda generation_id: False),
        models=AudioModels(final=None, partial=None, voices=()),
        config=EngineConfig(echo_paths=file),
        make_worker=lambda name: VirtualWorker(name, VirtualScheduler(clock), clock),
    )
    made._devices = SimpleNamespace(  # type: ignore[assignment] # stands in for a microphone and a loudspeaker
        capture=Stream(PAIR[0]), playback=Stream(PAIR[1]), check=lambda now_s: None, close=lambda timeout_s: None,
        xruns=0, lost=0, reopened=0,
    )  # fmt: skip
    return made


def test_the_engine_keeps_what_the_ears_learned_and_rehearses_it_at_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "echo-paths.json"
    first = engine(file)
    echo = first.ears._echo
    assert isinstance(echo, WebRtcEchoCanceller)
    far = noise(12.0, 0.05, 1)
    near = heard(far, 0.1, 0.2)
    first._on_input_opening(48_000)
    first.loop.step(100.0)
    for begin in range(0, len(far) // FRAME_SAMPLES * FRAME_SAMPLES, FRAME_SAMPLES):
        part = slice(begin, begin + FRAME_SAMPLES)
        echo.process(near[part], far[part])
    assert first.ears.stats()["echo_rehearsals"] == 0
    for tick in range(40):
        first._on_tick(100.0 + tick / 100)
    first.stop()
    kept = EchoPathStore(file).get(PAIR)
    assert kept is not None and kept.delay_s == pytest.approx(0.1, abs=0.001)
    second = engine(file)
    second._on_input_opening(48_000)
    second.loop.step(100.0)
    assert second.ears.stats()["echo_rehearsals"] == 1
    second.stop()
