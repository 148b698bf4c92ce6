"""The bench as a command: bad arguments, the file it writes, being cancelled, memory figures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench.__main__ import main
from bench.machine import family, machine, pss_mb, versions
from bench.other_live import growth_percent

FIELDS = {"name", "condition", "n", "p50", "p95", "unit", "budget", "verdict", "source", "stimuli"}


def test_an_unknown_section_and_a_missing_folder_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--only", "kitchen"]) == 2
    assert "kitchen" in capsys.readouterr().err
    assert main(["--only", "components", "--json", str(tmp_path / "no" / "rows.json")]) == 2
    assert "no folder" in capsys.readouterr().err


def test_the_components_are_measured_and_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "rows.json", tmp_path / "rows.md"
    code = main(["--one", "--only", "components", "--json", str(file), "--markdown", str(page)])
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert (code, stored["run"]["failures"]) == (0, [])
    assert {"machine", "versions", "rows"} <= set(stored)
    rows = stored["rows"]
    assert all(set(row) == FIELDS for row in rows)
    assert all(row["n"] > 0 and row["p50"] > 0 for row in rows), "every component gave a figure"
    waits = next(row for row in rows if row["name"].startswith("control event"))
    assert waits["n"] >= 15
    assert {row["source"] for row in rows} == {"component"}
    steps = {row["condition"].split(",")[0] for row in rows if row["name"].startswith("step")}
    assert steps == {"rail", "flow"}
    printed = capsys.readouterr()
    assert "load" in printed.err and "load" in printed.out
    assert page.read_text(encoding="utf-8").count("\n| ") == len(rows) + 1


def test_a_cancelled_run_prints_what_is_done(repo_root: Path) -> None:
    env = {**os.environ, "PYTHONPATH": f"{repo_root}:{repo_root / 'tests'}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench", "--quick", "--only", "components"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        cwd=repo_root,
    )
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if "steps of a rail" in line:
            break
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=30)
    assert process.returncode == 130, told + rest
    assert "cancelled" in rest
    assert "Traceback" not in rest
    assert "control event: wait until it is dispatched" in out
    assert "not measured" in out, "the steps were not reached"


def test_memory_counts_children() -> None:
    code = "import sys; block = bytearray(60_000_000); print('ready', flush=True); sys.stdin.read()"
    before = pss_mb(os.getpid())
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in family(os.getpid())
        assert pss_mb(os.getpid()) > before + 50
        assert pss_mb(child.pid) < before + 200
    assert child.pid not in family(os.getpid())


def test_growth_leaves_the_warm_up_out() -> None:
    warm = [500.0, 700.0, 800.0] + [1000.0] * 9
    assert growth_percent([*warm, 1030.0, 1030.0, 1030.0]) == [pytest.approx(3.0)]
    assert growth_percent([100.0, 100.0, *[900.0] * 8]) == [pytest.approx(0.0)]
    assert growth_percent([1.0, 2.0]) == []


def test_machine_and_versions_are_named() -> None:
    assert machine()["cores"] >= 1
    assert {"python", "numpy", "faster-whisper"} <= set(versions())
