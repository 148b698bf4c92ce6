"""The guide on a real screen with a real sound server: opened by its key, walked with the mouse, the room measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rigs.program_rig import Program
from rigs.screen_rig import ScreenRig
from rigs.sound_rig import SoundRig

from desktop.ui.i18n.translator import CATALOGUES
from desktop.ui.setup.guide import STEPS

pytestmark = [pytest.mark.e2e, pytest.mark.window, pytest.mark.audio, pytest.mark.models, pytest.mark.timeout(180)]


class Newcomer:
    """Someone with a mouse, who sees what `dump` says."""

    def __init__(self, program: Program, screen: ScreenRig, shots: Path) -> None:
        self.program, self.screen, self.shots = program, screen, shots

    def look(self) -> list[dict[str, Any]]:
        before = len(self.program.of("control:ack"))
        self.program.send(cmd="dump")
        until_s = time.monotonic() + 10
        while time.monotonic() < until_s:
            acks = self.program.of("control:ack")
            if len(acks) > before:
                found: list[dict[str, Any]] = acks[-1]["payload"]["result"]["widgets"]
                return found
            time.sleep(0.02)
        raise AssertionError("no dump")

    def see(self, name: str, is_so: Callable[[str], bool] = lambda _: True, timeout_s: float = 15) -> dict[str, Any]:
        """Wait until the widget `name` is visible with a text as wanted."""
        until_s = time.monotonic() + timeout_s
        found: list[dict[str, Any]] = []
        while time.monotonic() < until_s:
            found = [w for w in self.look() if w["objectName"] == name and w["visible"]]
            for one in found:
                if is_so(str(one["text"])):
                    return one
            time.sleep(0.1)
        raise AssertionError(f"{name} is not to be seen so: {found}")

    def click(self, name: str) -> None:
        x, y, width, height = self.see(name)["rect"]
        self.screen.xdotool("mousemove", str(x + width // 2), str(y + height // 2), "click", "1")

    def keep(self, name: str) -> None:
        """Keep a picture to be looked at."""
        self.screen.screenshot(self.shots / f"{name}.png")


def middle_of(screen: ScreenRig, window: str) -> tuple[int, int]:
    """Return the middle of a window on the screen."""
    lines = screen.xdotool("getwindowgeometry", "--shell", window).split()
    at = dict(line.split("=", 1) for line in lines)
    return int(at["X"]) + int(at["WIDTH"]) // 2, int(at["Y"]) + int(at["HEIGHT"]) // 2


@pytest.mark.parametrize(("system", "catalogue"), [("C.UTF-8", "en"), ("zh_CN.UTF-8", "zh_CN")])
def test_the_guide_opens_by_itself_at_the_first_start_only(
    sound_rig: SoundRig, screen_rig: ScreenRig, tmp_path: Path, system: str, catalogue: str
) -> None:
    data = tmp_path / "data"
    command = [
        sys.executable,
        "-c",
        "import sys; from desktop.cli import main; sys.exit(main(sys.argv[1:]))",
        "--data",
        str(data),
        "--llm",
        "none",
    ]
    env = {**os.environ, **sound_rig.env, **screen_rig.env, "LC_ALL": system, "LANG": system}

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, env=env, cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    title = CATALOGUES[catalogue]["setup.title"]
    data.mkdir()
    for is_first in (True, False):
        process = started()
        try:
            window = screen_rig.wait_for_window("^Mynah$")
            if is_first:
                guide = screen_rig.wait_for_window(title)
                time.sleep(1.0)
                if shots := os.environ.get("MYNAH_SHOTS"):
                    screen_rig.screenshot(Path(shots) / f"first_start_{catalogue}.png")
                (x, y), (wanted_x, wanted_y) = middle_of(screen_rig, guide), middle_of(screen_rig, window)
                assert abs(x - wanted_x) < 60
                assert abs(y - wanted_y) < 60
                screen_rig.xdotool("windowactivate", "--sync", guide, "key", "Escape")
                until_s = time.monotonic() + 15
                while not (data / "settings.yaml").exists():
                    assert time.monotonic() < until_s, "that it was seen is kept"
                    time.sleep(0.05)
            else:
                with pytest.raises(AssertionError, match="no window"):
                    screen_rig.wait_for_window(title, timeout_s=3)
        finally:
            process.terminate()
            assert process.wait(15) in (0, -15, 143)


@pytest.mark.parametrize(("language", "greeting"), [("en", "Hello!"), ("zh", "你好")])
def test_a_newcomer_walks_the_guide(
    sound_rig: SoundRig, screen_rig: ScreenRig, tmp_path: Path, language: str, greeting: str
) -> None:
    shots = Path(os.environ.get("MYNAH_SHOTS") or tmp_path / "shots")
    shots.mkdir(parents=True, exist_ok=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "settings.yaml").write_text(f"ui_language: {language}\n", encoding="utf-8")
    env = {**sound_rig.env, **screen_rig.env}
    texts = CATALOGUES["en" if language == "en" else "zh_CN"]
    with Program(["--llm", "none", "--language", language], folder=tmp_path, env=env) as program:
        screen_rig.wait_for_window("Mynah")
        user = Newcomer(program, screen_rig, shots)
        user.click("messageField")
        screen_rig.xdotool("key", "ctrl+shift+g")
        user.see("setupTitle", lambda text: greeting in text)
        for number, step in enumerate(STEPS):
            user.keep(f"guide_{language}_{number}_{step}")
            if step == "sound":
                user.click("listenButton")
                program.wait_for("output:first_sound", timeout_s=20)
            if step == "room":
                user.click("roomStartButton")
                user.see("roomWords", lambda text: text == texts["setup.room.talking"], timeout_s=40)
                user.keep(f"guide_{language}_{number}_{step}_running")
                if language == "zh":
                    user.click("roomStartButton")
                    user.see("roomWords", lambda text: text == texts["setup.room.idle"])
                else:
                    user.see("roomWords", lambda text: text == texts["setup.room.because.headphones"], timeout_s=80)
                    user.keep(f"guide_{language}_{number}_{step}_measured")
                    user.click("roomTakeButton")
                    user.see("roomAdvice", lambda text: text == texts["setup.room.taken"])
            user.click("setupNextButton")
        until_s = time.monotonic() + 5
        while any(w["objectName"] == "setupTitle" and w["visible"] for w in user.look()):
            assert time.monotonic() < until_s, "the guide ends with its last page"
        stored = (tmp_path / "data" / "settings.yaml").read_text(encoding="utf-8")
        # Microphone and loudspeaker of the virtual card are as far apart as headphones'.
        assert ("sensitivity: eager" in stored) == (language == "en")
        assert [r for r in program.of("history:commit") if r["payload"]["role"] == "assistant"] == []
        code, _ = program.end()
        assert code == 0
