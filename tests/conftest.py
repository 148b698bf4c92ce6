"""What all tests share: the rigs, where recordings and models are, and the rules of a run.

`long` tests run only when the `-m` expression names them. With CI=true a skipped test fails the run, for there
every part is installed and a skip means that something was not looked at.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from rigs import screen_rig as screen_rig_module
from rigs import sound_rig as sound_rig_module
from rigs.screen_rig import ScreenRig
from rigs.scripted_llm import ScriptedLlm
from rigs.sound_rig import SoundRig

ROOT = Path(__file__).resolve().parent.parent
# Widgets of in-process tests are drawn in memory; tests of the real window start their own process on the screen rig.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

REAL_TIME = ("audio", "window")


# --- rules of a run ---------------------------------------------------------------------------------------------------


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


class _Counts:
    """Counts executed tests per marker and remembers the skipped ones."""

    def __init__(self, markers: list[str]) -> None:
        self.executed: Counter[str] = Counter()
        self.skipped: list[str] = []
        self.final: list[str] = []
        self.markers = markers

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        outcome: Any = yield
        report: pytest.TestReport = outcome.get_result()
        if report.failed and not any(item.get_closest_marker(marker) for marker in REAL_TIME):
            self.final.append(item.nodeid)
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.skipped.append(f"{item.nodeid}: {reason}")
        elif report.when == "call":
            self.executed["all"] += 1
            for marker in self.markers:
                if item.get_closest_marker(marker):
                    self.executed[marker] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if _is_ci() and self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        cache = getattr(session.config, "cache", None)
        if _is_ci() and cache is not None:
            # Read by .ci/run: only what needs a sound server or a screen in real time may be looked at twice.
            cache.set("mynah/final", self.final)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("executed tests per marker")
        for marker in ["all", *self.markers]:
            terminalreporter.write_line(f"{marker:8} {self.executed[marker]:5}")
        if _is_ci() and self.skipped:
            terminalreporter.section("skipped, which is a failure here", red=True)
            for line in self.skipped:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    # CI looks at the same examples every time; new ones are hunted for at home and by `long` runs.
    hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
    if _is_ci():
        hypothesis.settings.load_profile("ci")
    markers = [str(line).partition(":")[0] for line in config.getini("markers")]
    own = [marker for marker in markers if marker in ("models", "audio", "window", "e2e", "long")]
    config.pluginmanager.register(_Counts(own), "mynah-counts")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "long" in (config.option.markexpr or ""):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


# --- recordings and models --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def speech_dir() -> Path:
    """The folder of real recordings with `manifest.jsonl`: MYNAH_SPEECH, else beside the checkout."""
    folder = Path(os.environ.get("MYNAH_SPEECH") or ROOT.parent / "shared" / "speech")
    if not (folder / "manifest.jsonl").is_file():
        pytest.skip("no recordings: set MYNAH_SPEECH to the folder that has manifest.jsonl")
    return folder


@pytest.fixture(scope="session")
def speech_manifest(speech_dir: Path) -> dict[str, dict[str, Any]]:
    """The entries of the recordings' manifest by id."""
    lines = (speech_dir / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines if line.strip()]
    return {entry["id"]: entry for entry in entries}


@pytest.fixture(scope="session")
def model_path() -> Callable[[str], Path]:
    """Give the folder of an installed model by name; a test without its model is skipped."""
    from desktop.models import ModelStore
    from orchestrator.contracts.errors import InputError

    store = ModelStore()

    def find(name: str) -> Path:
        try:
            return store.path(name)
        except InputError as error:
            pytest.skip(error.message)

    return find


# --- rigs -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def _sound_rig_of_session() -> Iterator[SoundRig]:
    missing = sound_rig_module.missing_tools()
    if missing:
        pytest.skip(f"no virtual sound card: {', '.join(missing)} missing (script/bootstrap --test installs them)")
    with SoundRig() as rig:
        # PortAudio in this process finds the rig, too.
        before = {name: os.environ.get(name) for name in rig.env}
        os.environ.update(rig.env)
        try:
            yield rig
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


@pytest.fixture
def sound_rig(_sound_rig_of_session: SoundRig) -> Iterator[SoundRig]:
    """The virtual sound card, silent and without echo at the start of each test."""
    yield _sound_rig_of_session
    _sound_rig_of_session.reset()


@pytest.fixture(scope="session")
def screen_rig() -> Iterator[ScreenRig]:
    """The virtual screen with a window manager."""
    missing = screen_rig_module.missing_tools()
    if missing:
        pytest.skip(f"no virtual screen: {', '.join(missing)} missing (script/bootstrap --test installs them)")
    with ScreenRig() as rig:
        yield rig


@pytest.fixture
def scripted_llm() -> Iterator[ScriptedLlm]:
    """An OpenAI-compatible endpoint; set `answers` and `default` in the test."""
    with ScriptedLlm() as endpoint:
        yield endpoint
