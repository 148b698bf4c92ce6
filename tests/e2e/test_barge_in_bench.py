"""`script/barge-in-bench` against the simplest program there is, known by its sound alone."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from bench.any_app import main

STAND_IN = Path(__file__).resolve().parent.parent / "rigs" / "stand_in_app.py"


@pytest.mark.audio
def test_a_stand_in_is_measured(tmp_path: Path, speech_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYNAH_SPEECH", str(speech_dir))
    out = tmp_path / "rows.json"
    command = shlex.join([sys.executable, str(STAND_IN)])
    assert main(["--app", command, "--ready-s", "1.5", "--quick", "--json", str(out)]) == 0
    stored = json.loads(out.read_text(encoding="utf-8"))
    assert stored["failures"] == []
    rows = {(row["name"], row["condition"]): row for row in stored["rows"]}
    # It stops at any sound of 160 ms, within what the sound server adds; and for a cough as for a word.
    for language in ("English", "Chinese"):
        assert rows["true interruptions that silenced it", language]["p50"] == 100
        assert 100 <= rows["onset → output silent, true interruption", language]["p50"] <= 1500
    assert (
        sum(rows["disturbances that stopped it for good", kind]["n"] for kind in ("synthetic noises", "backchannels"))
        == 3
    )
    assert rows["end of speech → first sound", "a question into silence"]["n"] >= 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--app", ""], "--app is empty"),
        (["--app", "'unclosed"], "--app: "),
        (["--app", "true", "--json", "/nowhere/at/all.json"], "there is no folder"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str],
    said: str,
    speech_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MYNAH_SPEECH", str(speech_dir))
    assert main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.audio
def test_a_program_that_ends_is_no_traceback(
    speech_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MYNAH_SPEECH", str(speech_dir))
    assert main(["--app", "false", "--ready-s", "2", "--quick"]) == 3
    assert "the program ended with 1 before it listened" in capsys.readouterr().out
