"""Writing a flow as a user does, on a real screen: a mistake, its fix by a click, saved, typed to, and spoken to."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rigs.program_rig import Program
from rigs.screen_rig import ScreenRig
from rigs.sound_rig import Samples, SoundRig, rms_db, write_wav

from audio.simulated import MIC_RATE_HZ
from audio.stt.whisper_adapter import WhisperAdapter
from desktop.demo import user_voice
from desktop.models import ModelStore
from desktop.settings import Settings
from desktop.sound_models import load_voice
from orchestrator.clock import SystemClock

pytestmark = [pytest.mark.e2e, pytest.mark.window, pytest.mark.audio, pytest.mark.models, pytest.mark.timeout(180)]

FLOW = """\
flows:
  tea:
    name: making tea
    examples: [make me some tea, 泡杯茶]
    steps:
      - {id: start, type: start, next: answer}
      - id: answer
        type: action
        action: action_respons
        args: {text: The water is very hot.}
        next: end
      - {id: end, type: end}
"""


FAULT_LINE = next(n for n, line in enumerate(FLOW.splitlines(), 1) if "action_respons" in line)
FAULT_COL = FLOW.splitlines()[FAULT_LINE - 1].index("action_respons") + 1


class User:
    """Someone at the keyboard, who sees what `dump` says."""

    def __init__(self, program: Program, screen: ScreenRig) -> None:
        self.program, self.screen = program, screen

    def look(self) -> dict[str, Any]:
        before = len(self.program.of("control:ack"))
        self.program.send(cmd="dump")
        until_s = time.monotonic() + 10
        while time.monotonic() < until_s:
            acks = self.program.of("control:ack")
            if len(acks) > before:
                found: dict[str, Any] = acks[-1]["payload"]["result"]
                return found
            time.sleep(0.02)
        raise AssertionError("no dump")

    def see(self, name: str, is_so: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """Wait until the widget `name` is visible and as wanted."""
        until_s = time.monotonic() + 20
        found: list[dict[str, Any]] = []
        while time.monotonic() < until_s:
            found = [w for w in self.look()["widgets"] if w["objectName"] == name and w["visible"]]
            for one in found:
                if is_so(one):
                    return one
            time.sleep(0.1)
        raise AssertionError(f"{name} is not to be seen so: {found}")

    def click(self, name: str) -> None:
        # What is being laid out still moves: a place counts that is the same twice.
        place = None
        while place != (place := self.see(name)["rect"]):
            time.sleep(0.1)
        x, y, width, height = place
        self.screen.xdotool("mousemove", str(x + width // 2), str(y + height // 2), "click", "1")

    def press(self, *keys: str) -> None:
        self.screen.xdotool("key", *keys)

    def type(self, text: str) -> None:
        """Type line by line; the editor indents by itself, so each line begins from the left edge."""
        for index, line in enumerate(text.splitlines()):
            if index:
                self.press("Return", "Home", "shift+End", "BackSpace")
            if line:
                self.screen.xdotool("type", "--delay", "12", "--", line)
                # A list of completions may be open over the text.
                self.press("Escape")


def _right(widget: dict[str, Any]) -> int:
    return int(widget["rect"][0] + widget["rect"][2])


def _bottom(widget: dict[str, Any]) -> int:
    return int(widget["rect"][1] + widget["rect"][3])


def words_of(sound: Samples) -> str:
    """Return what a recogniser understands of a recording."""
    whisper = WhisperAdapter(ModelStore().path("whisper-base"), clock=SystemClock(), cpu_threads=2)
    return whisper.transcribe(sound, languages=("en",), vad_fraction=0.9).text.casefold()


def spoken(text: str, folder: Path) -> Path:
    """Return a recording of a user who says `text`."""
    voice = load_voice(Settings().voice, Settings(), ModelStore(), seed=3)
    return write_wav(folder / "trigger.wav", user_voice(voice, text), MIC_RATE_HZ)


def test_a_broken_flow_is_mended_by_a_click_and_answers(
    sound_rig: SoundRig, screen_rig: ScreenRig, tmp_path: Path
) -> None:
    env = {**sound_rig.env, **screen_rig.env}
    trigger = spoken("Make me some tea.", tmp_path)
    with Program(["--llm", "none", "--language", "en"], folder=tmp_path, env=env) as program:
        screen_rig.wait_for_window("Mynah")
        user = User(program, screen_rig)
        user.click("messageField")
        user.press("ctrl+e")
        user.see("flowFirstFlow")
        # Window and editor stand on the screen, with all their buttons.
        user.see("mainWindow", lambda w: _bottom(w) <= screen_rig.height and _right(w) <= screen_rig.width)
        user.see("stopButton", lambda w: _bottom(w) <= screen_rig.height)
        user.click("flowFirstFlow")
        user.click("flowText")
        user.press("ctrl+a", "BackSpace")
        user.type(FLOW)

        # The mistake is told with its place, and the key for the next problem goes there.
        place = f"my_flows.yml:{FAULT_LINE}:{FAULT_COL}"
        told = user.see("flowProblems", lambda w: [t.split(" ")[0] for t in w["text"].splitlines()] == [place])
        assert "action_respons" in told["text"]
        user.press("ctrl+Home", "F8")
        user.see("flowPosition", lambda w: w["text"].startswith(f"Line {FAULT_LINE},"))
        user.see("flowFix_0")
        user.click("flowFix_0")
        user.press("ctrl+s")
        path = tmp_path / "data" / "flows" / "my_flows.yml"
        until_s = time.monotonic() + 20
        while not path.exists() and time.monotonic() < until_s:
            time.sleep(0.05)
        assert "action: action_response" in path.read_text(encoding="utf-8")

        user.click("messageField")
        screen_rig.xdotool("type", "--delay", "12", "make me some tea")
        user.press("Return")
        said = program.wait_for("history:commit", lambda r: r["payload"]["role"] == "assistant", timeout_s=30)
        assert said["payload"]["text"].endswith("The water is very hot.")

        # The same by voice: through the virtual microphone, out of the loudspeaker.
        with_sound = sound_rig.record()
        sound_rig.speak(trigger)
        heard = program.wait_for(
            "history:commit", lambda r: r["payload"]["role"] == "assistant", after=said["seq"], timeout_s=30
        )
        assert heard["payload"]["text"].endswith("The water is very hot.")
        asked = [r for r in program.of("input:user") if r["payload"]["via"] == "voice"]
        assert len(asked) == 1 and asked[0]["seq"] < heard["seq"]
        sound = with_sound.stop()
        assert rms_db(sound) > -60, "something sounded"
        assert "water is very hot" in words_of(sound), "and it was the new text"

        # Another editor writes the file: the text in sight follows.
        path.write_text(path.read_text(encoding="utf-8").replace("very hot", "quite cold"), encoding="utf-8")
        user.see("flowMessage", lambda w: "from the disk" in w["text"])

        # A mistake that is saved is kept as a draft, and the running flow stays.
        user.click("flowText")
        user.press("ctrl+Home", "End")
        screen_rig.xdotool("type", "--delay", "12", "x")
        user.press("Escape", "ctrl+s")
        user.see("flowBannerText", lambda w: "draft" in w["text"])
        draft = tmp_path / "data" / "flows" / ".drafts" / "my_flows.yml.draft"
        kept, in_force = draft.read_text(encoding="utf-8"), path.read_text(encoding="utf-8")
        assert kept.startswith("flows:x") and "quite cold" in kept
        assert in_force.startswith("flows:\n")
        code, _ = program.end()
        assert code == 0
