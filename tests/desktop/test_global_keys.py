from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Queue

import pytest
from rigs.screen_rig import ScreenRig

from desktop.global_keys.in_window import WindowKeys
from desktop.global_keys.keys import Combination, Handler, find_adapter, parse_combination
from desktop.global_keys.windows import _CODES, WindowsKeys
from desktop.global_keys.x11 import X11Keys, load_xlib
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.views import NoticeView


@dataclass
class FakeKeys:
    """Keys that a test presses; implements `GlobalKeys`."""

    taken: tuple[Combination, ...] = ()
    handlers: dict[Combination, Handler] = field(default_factory=dict)
    is_stopped: bool = False

    def start(self, wanted: Mapping[Combination, Handler]) -> tuple[Combination, ...]:
        self.handlers = {key: handler for key, handler in wanted.items() if key not in self.taken}
        return tuple(key for key in wanted if key in self.taken)

    def stop(self) -> None:
        self.handlers.clear()
        self.is_stopped = True


def run(function: Callable[[], None]) -> None:
    function()


@pytest.mark.parametrize(
    ("text", "key", "modifiers"),
    [
        ("Ctrl+Alt+Space", "space", {"ctrl", "alt"}),
        ("control + SHIFT + f5", "f5", {"ctrl", "shift"}),
        ("Pause", "pause", set()),
        ("Win+M", "m", {"super"}),
    ],
)
def test_keys_are_read(text: str, key: str, modifiers: set[str]) -> None:
    assert parse_combination(text) == Combination(key, frozenset(modifiers))


@pytest.mark.parametrize("text", ["", "a", "Shift+a", "Ctrl+", "Ctrl+Wow", "Wow+a", "空格", "+", "Ctrl++"])
def test_keys_that_can_not_be_are_told_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_combination(text)
    assert "\n" not in caught.value.message


def test_where_there_are_none_the_reason_is_said() -> None:
    for platform, system, session, word in (
        ("wayland", "linux", "wayland", "Wayland"),
        ("xcb", "linux", "wayland", "Wayland"),
        ("cocoa", "darwin", "", "macOS"),
        ("offscreen", "linux", "x11", "offscreen"),
    ):
        found = find_adapter(platform, system=system, session=session)
        assert isinstance(found, str) and word in found
    assert isinstance(find_adapter("windows", system="win32"), WindowsKeys)
    assert _CODES["f1"] == 0x70 and _CODES["a"] == 0x41 and _CODES["0"] == 0x30


def test_the_window_talks_and_stops_by_them() -> None:
    done: list[object] = []
    notices: list[NoticeView] = []
    adapter = FakeKeys(taken=(parse_combination("Ctrl+Alt+S"),))
    keys = WindowKeys(adapter, run, notices.append, talk=done.append, stop=lambda: done.append("stop"))
    keys.apply("Ctrl+Alt+Space", "Pause")
    adapter.handlers[parse_combination("Ctrl+Alt+Space")](True)
    adapter.handlers[parse_combination("Ctrl+Alt+Space")](False)
    adapter.handlers[parse_combination("Pause")](True)
    adapter.handlers[parse_combination("Pause")](False)
    assert done == [True, False, "stop"] and notices == []
    keys.apply("nonsense", "Ctrl+Alt+S")
    assert [notice.code for notice in notices] == ["key_invalid", "global_keys_failed"]
    assert "alt+ctrl+s" in notices[1].text and adapter.handlers == {}
    keys.close()
    assert adapter.is_stopped


def test_a_machine_without_them_says_so_only_when_they_are_wanted() -> None:
    notices: list[NoticeView] = []
    keys = WindowKeys("no reason", run, notices.append, talk=lambda _: None, stop=lambda: None)
    keys.apply(None, None)
    assert notices == []
    keys.apply("Pause", None)
    assert "no reason" in notices[0].text
    keys.close()


@pytest.mark.window
def test_real_keys_reach_us_whatever_has_the_focus(screen_rig: ScreenRig) -> None:
    xlib = load_xlib()
    assert xlib is not None
    display = screen_rig.env["DISPLAY"]
    heard: Queue[tuple[str, bool]] = Queue()
    talk, stop = parse_combination("Ctrl+Alt+Space"), parse_combination("Pause")
    keys, others = X11Keys(xlib, display), X11Keys(xlib, display)
    try:
        wanted = {talk: lambda down: heard.put(("talk", down)), stop: lambda down: heard.put(("stop", down))}
        assert keys.start(wanted) == ()
        screen_rig.xdotool("keydown", "ctrl", "keydown", "alt", "keydown", "space")
        assert heard.get(timeout=5) == ("talk", True)
        screen_rig.xdotool("keyup", "ctrl", "keyup", "alt", "keyup", "space")
        assert heard.get(timeout=5) == ("talk", False)
        screen_rig.xdotool("key", "Pause")
        assert [heard.get(timeout=5), heard.get(timeout=5)] == [("stop", True), ("stop", False)]
        # Another program wants the same key: it is told, and nothing dies.
        assert others.start({stop: lambda down: heard.put(("other", down))}) == (stop,)
        # A key that is held when the keys are given back is let go.
        screen_rig.xdotool("keydown", "ctrl", "keydown", "alt", "keydown", "space")
        assert heard.get(timeout=5) == ("talk", True)
        keys.stop()
        assert heard.get(timeout=5) == ("talk", False)
        screen_rig.xdotool("keyup", "space", "keyup", "alt", "keyup", "ctrl", "key", "Pause")
        assert others.start({stop: lambda down: heard.put(("other", down))}) == ()
        screen_rig.xdotool("key", "Pause")
        assert heard.get(timeout=5) == ("other", True)
    finally:
        keys.stop()
        others.stop()
