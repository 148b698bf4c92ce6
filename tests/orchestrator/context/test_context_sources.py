"""Context sources on a virtual clock, and the active window on a real screen."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.context.active_window import CommandWindow, _from_pid_and_title, find_active_window, run_command
from orchestrator.context.sources import ClockSource, ContextWatch, WindowSource
from orchestrator.contracts.events import ContextUpdated, Payload
from orchestrator.virtual_loop import VirtualTimeLoop

MORNING = datetime(2026, 12, 1, 8, 59, 30, tzinfo=timezone(timedelta(hours=1)))


class ScriptedWindow:
    """An `ActiveWindow` that says what it is told; an exception is raised."""

    def __init__(self) -> None:
        self.now: str | Exception = "Mail"
        self.looks = 0

    async def title(self) -> str:
        self.looks += 1
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


class Posted(list[ContextUpdated]):
    accepts = True

    def __call__(self, payload: Payload) -> bool:
        assert isinstance(payload, ContextUpdated)
        if self.accepts:
            self.append(payload)
        return self.accepts

    def values(self, origin: str) -> list[Mapping[str, Any]]:
        return [payload.values for payload in self if payload.origin == origin]


def run_virtual(work: Callable[[VirtualClock], Any]) -> None:
    clock = VirtualClock(100.0, MORNING)
    loop = VirtualTimeLoop(clock, SystemClock(), lambda: False, is_frozen=True)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work(clock))


def test_only_changes_are_posted_at_their_pace() -> None:
    async def main(clock: VirtualClock) -> None:
        window, posted = ScriptedWindow(), Posted()
        watch = ContextWatch([ClockSource(clock=clock), WindowSource(window=window)], post=posted)
        assert posted == []
        watch.start()
        await asyncio.sleep(25)
        assert posted.values("window_title") == [{"title": "Mail"}]
        assert window.looks == 9
        window.now = "报告.odt"
        await asyncio.sleep(3)
        window.now = ""
        await asyncio.sleep(3)
        assert posted.values("window_title") == [{"title": "Mail"}, {"title": "报告.odt"}, {}]
        await asyncio.sleep(60)
        assert [values["time"] for values in posted.values("clock")] == ["08:59", "09:00"]
        assert posted.values("clock")[0] == {
            "time": "08:59",
            "date": "2026-12-01",
            "weekday": "tuesday",
            "part_of_day": "morning",
        }
        await watch.stop()
        looks, count = window.looks, len(posted)
        window.now = "after the end"
        await asyncio.sleep(200)
        assert (window.looks, len(posted)) == (looks, count)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("context:")]

    run_virtual(main)


def test_a_source_that_fails_is_asked_less_often_and_comes_back() -> None:
    async def main(clock: VirtualClock) -> None:
        window, posted = ScriptedWindow(), Posted()
        watch = ContextWatch([WindowSource(window=window)], post=posted)
        watch.start()
        await asyncio.sleep(1)
        window.now = OSError("no display")
        await asyncio.sleep(600)
        assert window.looks < 15, "not every three seconds"
        assert posted.values("window_title") == [{"title": "Mail"}, {}], "what is no longer known is taken back"
        window.now = "Mail"
        await asyncio.sleep(121)
        assert posted.values("window_title")[-1] == {"title": "Mail"}
        looks = window.looks
        await asyncio.sleep(30)
        assert window.looks >= looks + 9, "the old pace again"
        await watch.stop()

    run_virtual(main)


def test_what_the_bus_refuses_is_offered_again() -> None:
    async def main(clock: VirtualClock) -> None:
        window, posted = ScriptedWindow(), Posted()
        posted.accepts = False
        watch = ContextWatch([WindowSource(window=window)], post=posted)
        watch.start()
        await asyncio.sleep(4)
        posted.accepts = True
        await asyncio.sleep(3)
        assert posted.values("window_title") == [{"title": "Mail"}]
        await watch.stop()

    run_virtual(main)


def test_a_long_title_is_cut() -> None:
    async def main(clock: VirtualClock) -> None:
        window = ScriptedWindow()
        window.now = "x" * 5000
        assert len((await WindowSource(window=window).look())["title"]) == 200

    run_virtual(main)


def test_the_own_window_is_none() -> None:
    assert _from_pid_and_title(f"{os.getpid()}\nMynah\n") == ""
    assert _from_pid_and_title("1\n2026 报告\n") == "2026 报告"
    assert _from_pid_and_title("only a title\n") == "only a title"


async def test_a_command_that_hangs_is_killed_and_one_that_fails_is_no_window() -> None:
    with pytest.raises(OSError, match="does not answer"):
        await run_command([sys.executable, "-c", "import time; time.sleep(60)"], limit_s=0.2)
    failing = CommandWindow([[sys.executable, "-c", "raise SystemExit(1)"]], _from_pid_and_title)
    assert await failing.title() == ""


def test_a_desktop_that_tells_nothing_has_no_source() -> None:
    assert find_active_window("linux", lambda name: None) is None


@pytest.mark.window
@pytest.mark.parametrize("tool", ["xdotool", "xprop"])
async def test_the_title_on_a_real_screen(
    screen_rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    for name, value in screen_rig.env.items():
        monkeypatch.setenv(name, value)
    script = tmp_path / "window.py"
    script.write_text(
        "from PySide6.QtWidgets import QApplication, QLabel\n"
        "app = QApplication([])\nlabel = QLabel('x')\nlabel.setWindowTitle('信件 – inbox')\n"
        "label.resize(200, 100)\nlabel.show()\nlabel.activateWindow()\nprint('up', flush=True)\napp.exec()\n",
        encoding="utf-8",
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "QT_QPA_PLATFORM": "xcb"},
    )
    try:
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), 20)
        window = find_active_window("linux", lambda name: name if name == tool else None)
        assert window is not None
        title = ""
        async with asyncio.timeout(10):
            while "信件" not in title:
                title = await window.title()
        assert title == "信件 – inbox"
    finally:
        process.kill()
        await process.wait()
