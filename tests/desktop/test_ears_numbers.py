"""Numbers of the ears in the settings file, over the dials."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.ears_numbers import check_numbers, dial_numbers, ears_config, ears_numbers
from desktop.settings import SETTINGS_FILE, Settings, load_settings, save_settings


def test_numbers_lie_over_the_dials_and_survive_the_file(tmp_path: Path) -> None:
    chosen = Settings(
        patience="patient", ears=check_numbers({"barge_in.duck_gain_db": -24, "endpoint.end_silence_s": 0.7})
    )
    save_settings(tmp_path, chosen)
    again = load_settings(tmp_path).or_raise()
    assert again == chosen
    config = ears_config(again)
    assert config.endpoint.end_silence_s == 0.7
    assert config.barge_in.duck_gain_db == -24.0
    dials = dial_numbers(again)
    assert config.endpoint.hold_silence_s == dials["endpoint.hold_silence_s"], "the dial's own"
    assert dials["endpoint.end_silence_s"] != 0.7


def test_every_number_of_the_ears_is_there_with_its_type() -> None:
    numbers = ears_numbers()
    assert {"echo.enabled", "vad.vad1_mode", "endpoint.limit_s", "barge_in.cut_voiced_s", "stream_gap_s"} <= set(
        numbers
    )
    config = ears_config(Settings(ears=(("echo.enabled", 0.0), ("vad.vad1_mode", 3.0))))
    assert config.echo.enabled is False
    assert config.vad.vad1_mode == 3 and isinstance(config.vad.vad1_mode, int)
    for name, value in dial_numbers(Settings()).items():
        assert numbers[name].minimum <= value <= numbers[name].maximum, name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ears: {endpoint.end_silense_s: 1}", "did you mean endpoint.end_silence_s?"),
        ("ears: {endpoint.end_silence_s: soon}", "expected a number"),
        ("ears: {endpoint.end_silence_s: .nan}", "expected a number"),
        ("ears: {endpoint.end_silence_s: 61}", "from 0 to 60"),
        ("ears: {vad.vad1_mode: 1.5}", "expected a number"),
        ("ears: [1]", "expected `name: number` lines"),
    ],
)
def test_a_wrong_number_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / SETTINGS_FILE).write_text(f"theme: dark\n{text}\n", encoding="utf-8")
    (problem,) = load_settings(tmp_path).problems
    assert words in str(problem)
    assert str(problem).startswith("settings.yaml:2:7: ears:")
    assert load_settings(tmp_path).settings.theme == "dark"
