"""A task spoken from end to end: microphone file in, loudspeaker file out, the reminder in the store."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from audio.engine import AudioModels
from audio.pcm import resample
from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ, OUT_RATE_HZ, RoomConfig
from desktop.demo import user_voice
from desktop.models import ModelStore
from desktop.options import RunOptions, add_run_options, run_options
from desktop.settings import Settings
from desktop.simulate import SimulationInput, SimulationResult, run_virtual
from desktop.sound_models import load_all
from orchestrator.bus.event_checker import check_file, read_records
from orchestrator.clock import SystemClock
from orchestrator.store import records
from orchestrator.store.database import Database

pytestmark = [pytest.mark.e2e, pytest.mark.models, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def loaded() -> AudioModels:
    return load_all(Settings(), ModelStore(), SystemClock(), lambda part: None, seed=3)


def options(folder: Path) -> RunOptions:
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    given = ["--data", str(folder / "data"), "--events", str(folder / "events.jsonl"), "--llm", "none", "--seed", "3"]
    return run_options(parser.parse_args(given), strict=True)


def converse(folder: Path, models: AudioModels, lines: list[tuple[float, str]]) -> SimulationResult:
    """Say each line at its second, and run until all is quiet."""
    spoken = [(at_s, user_voice(models.voices[0], text)) for at_s, text in lines]
    end_s = max(at_s + len(sound) / MIC_RATE_HZ for at_s, sound in spoken)
    track: Samples = np.zeros(int((end_s + 1.0) * MIC_RATE_HZ), np.float32)
    for at_s, sound in spoken:
        begin = int(at_s * MIC_RATE_HZ)
        track[begin : begin + len(sound)] += sound
    result = run_virtual(options(folder), SimulationInput(user=track, room=RoomConfig()), models=models)
    assert check_file(folder / "events.jsonl") == []
    return result


def test_a_reminder_is_asked_for_completed_and_stored(
    tmp_path: Path, loaded: AudioModels, model_path: Callable[[str], Path]
) -> None:
    # each line comes seconds after the question it answers and seconds before the question would be asked again
    lines = [
        (1.0, "Set a reminder."),
        (9.0, "Water the flowers."),
        (14.0, "Tomorrow at half past seven in the morning."),
    ]
    result = converse(tmp_path, loaded, lines)
    events = list(read_records((tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()))
    states = [r["payload"] for r in events if r["type"] == "flow:state"]
    assert any(state["active_task"] is not None for state in states), "a task was running"
    assert states[-1]["active_task"] is None, "and it came to its end"
    assert [r for r in events if r["type"] == "llm:call"] == []
    assert [r for r in events if r["type"] == "interrupt:confirm"] == [], "nobody was interrupted"
    said = [r for r in events if r["type"] == "input:user"]
    assert len(said) == len(lines), "no question was asked twice"

    database = Database(tmp_path / "data" / "mynah.db", is_inline=True)
    stored = database.transact_now(records.waiting_reminders)
    database.close()
    assert len(stored) == 1
    assert re.search("water the flowers", stored[0].text, re.IGNORECASE)
    assert (stored[0].due.hour, stored[0].due.minute) == (7, 30)

    assert loaded.final is not None
    heard = loaded.final.transcribe(
        resample(result.character, OUT_RATE_HZ, MIC_RATE_HZ)[-int(12 * MIC_RATE_HZ) :], languages=("en",)
    )
    assert re.search("flowers", heard.text, re.IGNORECASE), heard.text
