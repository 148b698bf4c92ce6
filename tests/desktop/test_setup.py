"""The set-up scripts and the project files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the scripts are for POSIX shells")

# Plays python: makes environments whose python is itself, and notes what it is asked to do.
FAKE_PYTHON = r"""#!/usr/bin/env bash
case "$*" in
    "-m venv "*) echo "venv" >>"$FAKE_LOG"; mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
    "-m pip --version" | -c*) ;;
    --version) echo "Python 3.11.9" ;;
    "-m pip install "*" -e .") echo "install mynah" >>"$FAKE_LOG"; cp "$0" "$(dirname "$0")/mynah" ;;
    "-m pip install "*) echo "install ${*: -1}" >>"$FAKE_LOG"; echo "pip at work"; exit "${FAKE_PIP:-0}" ;;
    "-m desktop.model_cli get --defaults --manifests "*)
        echo "models" >>"$FAKE_LOG"
        [ "${FAKE_MODELS:-0}" = 0 ] || exit "$FAKE_MODELS"
        touch "$PWD/toy manifest.json"; echo "$PWD/toy manifest.json" >"$6" ;;
    *) echo "unexpected: $*" >>"$FAKE_LOG"; exit 1 ;;
esac
"""
FAKE_DPKG = r"""#!/usr/bin/env bash
cat "$FAKE_INSTALLED"
"""
FAKE_APT = r"""#!/usr/bin/env bash
echo "apt-get $*" >>"$FAKE_LOG"
for name in "$@"; do case "$name" in -*|install|update) ;; *) echo "$name installed" >>"$FAKE_INSTALLED" ;; esac; done
"""
FAKE_ID = r"""#!/usr/bin/env bash
echo "${FAKE_UID:-0}"
"""


class Machine:
    """A machine with a checkout in an awkward path, where nothing real is installed."""

    def __init__(self, folder: Path, repo: Path) -> None:
        self.folder = folder
        self.checkout = folder / "my 项目 mynah"
        for name in ("script/bootstrap", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repo / name, self.checkout / name)
        (self.checkout / "desktop").mkdir()
        shutil.copy2(repo / "desktop" / "model_catalogue.yaml", self.checkout / "desktop")
        self.bin = folder / "bin"
        self.bin.mkdir()
        tools = {"fake-python": FAKE_PYTHON, "dpkg-query": FAKE_DPKG, "apt-get": FAKE_APT, "id": FAKE_ID}
        for name, text in tools.items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self.log = folder / "log"
        self.installed = folder / "installed"
        self.installed.write_text("")

    def bootstrap(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        return subprocess.run(
            [str(self.checkout / "script" / "bootstrap"), *arguments],
            cwd="/",
            env={
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "HOME": str(self.folder),
                "MYNAH_PYTHON": str(self.bin / "fake-python"),
                "FAKE_LOG": str(self.log),
                "FAKE_INSTALLED": str(self.installed),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def steps(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path, repo_root: Path) -> Machine:
    return Machine(tmp_path, repo_root)


def test_first_run_does_all_and_the_second_nothing_quickly(machine: Machine) -> None:
    first = machine.bootstrap()
    assert first.returncode == 0, first.stderr
    apt_update, apt_install, *rest = machine.steps()
    assert apt_update.startswith("apt-get update") and " libportaudio2 " in apt_install
    assert "fonts-noto-cjk" in apt_install and "xvfb" not in apt_install
    assert rest == ["venv", "install requirements.lock", "install mynah", "models"]
    assert first.stdout == "" and "pip at work" in first.stderr and "installing" in first.stderr

    before_s = time.monotonic()
    second = machine.bootstrap()
    took_s = time.monotonic() - before_s
    assert (second.returncode, machine.steps(), second.stdout, second.stderr) == (0, [], "", "")
    assert took_s < 1.0


def test_test_mode_adds_its_parts_and_serves_run_mode(machine: Machine) -> None:
    assert machine.bootstrap().returncode == 0
    assert machine.bootstrap("--test").returncode == 0
    _, apt_install, *rest = machine.steps()
    assert "pulseaudio" in apt_install and "xvfb" in apt_install and "libportaudio2" not in apt_install
    assert rest == ["install requirements-dev.lock", "install mynah"]
    for arguments in ((), ("--test",)):
        assert machine.bootstrap(*arguments).returncode == 0
        assert machine.steps() == []
    with (machine.checkout / "requirements-dev.lock").open("a") as lock:
        lock.write("# changed\n")
    assert machine.bootstrap().returncode == 0
    assert machine.steps() == ["install requirements-dev.lock", "install mynah"]


def test_change_of_the_lock_or_the_catalogue_repeats_only_its_step(machine: Machine) -> None:
    machine.bootstrap()
    with (machine.checkout / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    machine.bootstrap()
    assert machine.steps() == ["install requirements.lock", "install mynah"]
    with (machine.checkout / "pyproject.toml").open("a") as project:
        project.write("# changed\n")
    machine.bootstrap()
    assert machine.steps() == ["install mynah"]
    with (machine.checkout / "desktop" / "model_catalogue.yaml").open("a") as catalogue:
        catalogue.write("# changed\n")
    machine.bootstrap()
    assert machine.steps() == ["models"]
    (machine.checkout / "toy manifest.json").unlink()
    machine.bootstrap()
    assert machine.steps() == ["models"]


def test_without_root_it_says_exactly_what_to_install(machine: Machine) -> None:
    machine.installed.write_text("libportaudio2 installed\nlibglib2.0-0t64 installed\nespeak-ng config-files\n")
    told = machine.bootstrap(FAKE_UID="1000")
    assert told.returncode == 1 and machine.steps() == []
    (command,) = re.findall(r"sudo apt-get install .*", told.stderr)
    assert "libxcb-cursor0" in command and "espeak-ng" in command
    assert "libportaudio2" not in command and "libglib2.0-0" not in command
    assert machine.bootstrap(FAKE_UID="1000", MYNAH_SKIP_SYSTEM="1").returncode == 0
    assert machine.steps()[0] == "venv"


def test_failed_step_is_repeated_next_time(machine: Machine) -> None:
    failed = machine.bootstrap(FAKE_PIP="1")
    assert failed.returncode == 1 and "pip could not install requirements.lock" in failed.stderr
    without_models = machine.bootstrap(FAKE_MODELS="3")
    assert without_models.returncode == 3 and "models import" in without_models.stderr
    assert machine.bootstrap().returncode == 0
    assert machine.steps() == ["models"]


def test_moved_checkout_gets_a_new_environment(machine: Machine) -> None:
    machine.bootstrap()
    moved = machine.folder / "elsewhere"
    machine.checkout.rename(moved)
    machine.checkout = moved
    moved_run = machine.bootstrap()
    assert moved_run.returncode == 0 and "was moved" in moved_run.stderr
    assert machine.steps() == ["venv", "install requirements.lock", "install mynah", "models"]


def test_unknown_option_and_unfit_python_end_with_one_line(machine: Machine) -> None:
    wrong = machine.bootstrap("--tset")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1
    unfit = machine.bootstrap(MYNAH_PYTHON="/bin/false", MYNAH_SKIP_SYSTEM="1")
    assert unfit.returncode == 1 and "MYNAH_PYTHON" in unfit.stderr


# --- project files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_locks_pin_by_hash_and_name_no_index_and_no_machine(repo_root: Path, name: str) -> None:
    text = (repo_root / name).read_text(encoding="utf-8")
    assert not re.search(r"https?://|--index|--extra|--find-links|file:|(?<![\w.])/\w+/", text)
    entries = [entry for entry in re.split(r"\n(?=[a-z0-9])", text) if "==" in entry]
    assert len(entries) > 50
    assert all("--hash=sha256:" in entry for entry in entries)


def test_lock_holds_every_dependency_and_a_safe_qt(repo_root: Path) -> None:
    project = tomllib.loads((repo_root / "pyproject.toml").read_text(encoding="utf-8"))
    lock = (repo_root / "requirements.lock").read_text(encoding="utf-8")
    names = [re.split(r"[<>=;\[ ]", line)[0].lower() for line in project["project"]["dependencies"]]
    for name in names:
        assert re.search(rf"^{re.escape(name)}==", lock, re.M), name
    qt = re.search(r"^pyside6-essentials==(\d+)\.(\d+)", lock, re.M)
    assert qt is not None and (int(qt[1]), int(qt[2])) < (6, 12)


def test_scripts_are_executable_and_well_formed(repo_root: Path) -> None:
    scripts = [repo_root / ".ci" / "run", *(repo_root / "script").iterdir()]
    for script in scripts:
        assert os.access(script, os.X_OK), script.name
        first = script.read_text(encoding="utf-8").splitlines()[0]
        if "bash" in first:
            subprocess.run(["bash", "-n", str(script)], check=True)
