"""The rules of a test run and of the code that no tool checks."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_passes():
    pass

@pytest.mark.models
def test_with_a_model():
    pass

@pytest.mark.xfail
def test_known_to_fail():
    raise AssertionError

@pytest.mark.long
def test_that_takes_an_hour():
    raise AssertionError("not asked for")
"""
SKIPPED = """
import pytest

@pytest.mark.audio
def test_without_its_part():
    pytest.skip("no sound card")
"""


def run_pytest(
    repo_root: Path, folder: Path, text: str, *arguments: str, ci: str, keep: bool = False
) -> tuple[int, str]:
    tests = folder / "tests"
    tests.mkdir(exist_ok=True)
    shutil.copy2(repo_root / "pyproject.toml", folder)
    shutil.copy2(repo_root / "tests" / "conftest.py", tests)
    shutil.copytree(repo_root / "tests" / "rigs", tests / "rigs", dirs_exist_ok=True)
    (tests / "test_toy.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *([] if keep else ["-p", "no:cacheprovider"]), *arguments],
        cwd=folder,
        env={**environment, "CI": ci},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def test_long_tests_run_only_when_asked_for(repo_root: Path, tmp_path: Path) -> None:
    code, shown = run_pytest(repo_root, tmp_path, TESTS, ci="true")
    assert code == 0 and "1 deselected" in shown
    executed = {line.split()[0]: line.split()[1] for line in shown.splitlines() if len(line.split()) == 2}
    assert (executed["all"], executed["models"], executed["long"]) == ("3", "1", "0")
    code, shown = run_pytest(repo_root, tmp_path, TESTS, "-m", "long", ci="true")
    assert code == 1 and "not asked for" in shown


def test_skip_fails_the_run_only_where_all_parts_are_installed(repo_root: Path, tmp_path: Path) -> None:
    code, shown = run_pytest(repo_root, tmp_path, TESTS + SKIPPED, ci="true")
    assert code == 1 and "skipped, which is a failure here" in shown and "no sound card" in shown
    code, _ = run_pytest(repo_root, tmp_path, TESTS + SKIPPED, ci="")
    assert code == 0


def test_only_failures_in_real_time_may_run_twice(repo_root: Path, tmp_path: Path) -> None:
    failing = "import pytest\n\n@pytest.mark.audio\ndef test_sound():\n    assert False\n"
    final = tmp_path / ".pytest_cache" / "v" / "mynah" / "final"
    code, _ = run_pytest(repo_root, tmp_path, failing, ci="true", keep=True)
    assert code == 1 and json.loads(final.read_text()) == []
    more = failing + "\ndef test_logic():\n    assert False\n"
    code, _ = run_pytest(repo_root, tmp_path, more, ci="true", keep=True)
    assert code == 1 and json.loads(final.read_text()) == ["tests/test_toy.py::test_logic"]


def sources(repo_root: Path, *packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted((repo_root / package).rglob("*.py")):
            yield path.relative_to(repo_root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_audio_knows_of_the_orchestrator_only_its_vocabulary_clock_and_intent_queue(repo_root: Path) -> None:
    allowed = ("orchestrator.contracts.", "orchestrator.clock.", "orchestrator.speech.")
    found = [
        f"{path}: {name}"
        for path, tree in sources(repo_root, "audio")
        for name in imported(tree)
        if name.startswith("orchestrator") and not f"{name}.".startswith(allowed)
    ]
    assert found == []


@pytest.mark.parametrize("package", ["audio", "orchestrator", "desktop"])
def test_only_one_module_reads_the_clock(repo_root: Path, package: str) -> None:
    readers = {"time.time", "time.monotonic", "time.perf_counter", "datetime.now", "datetime.utcnow", "datetime.today"}
    readers |= {f"datetime.{name}" for name in readers if name.startswith("datetime.")} | {"date.today"}
    found = [
        f"{path}:{node.lineno}: {ast.unparse(node.func)}"
        for path, tree in sources(repo_root, package)
        if path != "orchestrator/clock.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in readers
    ]
    assert found == []


def files_of_project(repo_root: Path) -> Iterator[Path]:
    if (repo_root / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=repo_root, capture_output=True, text=True, check=True)
        yield from (repo_root / name for name in listed.stdout.split("\0") if name)
        return
    for folder in ("desktop", "audio", "orchestrator", "flow_config", "assets", "tests", "script", "docs", ".ci"):
        yield from (path for path in (repo_root / folder).rglob("*") if "__pycache__" not in path.parts)
    yield from repo_root.glob("*.*")


def test_nothing_names_an_index_host_or_a_path_of_a_machine(repo_root: Path) -> None:
    paths = list(files_of_project(repo_root))
    assert len(paths) > 50
    # Put together here, so that this file does not name them either.
    banned = ["py" + "pi.org", "python" + "hosted.org", "/" + "root/", "/" + "work/", "/" + "home/"]
    found = []
    for path in paths:
        if not path.is_file() or path.suffix in {".png", ".wav", ".npz", ".onnx", ".ico"}:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(repo_root)}: {word}" for word in banned if word in text]
    assert found == []
