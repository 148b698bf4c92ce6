"""The one module that asks the system for the active window's title. Nothing else about the window is read."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from typing import Any, Protocol

_LIMIT_S = 2.0
_MAC_SCRIPT = """
tell application "System Events"
    set front to first application process whose frontmost is true
    set pid to unix id of front
    try
        set title to name of first window of front
    on error
        set title to name of front
    end try
end tell
return (pid as text) & linefeed & title
"""


class ActiveWindow(Protocol):
    """Knows the title of the window the user works in."""

    async def title(self) -> str:
        """Return it, empty for none or one of this program's own. Raises `OSError` if it can't be found out."""
        ...


def find_active_window(
    platform: str = sys.platform, which: Callable[[str], str | None] = shutil.which
) -> ActiveWindow | None:
    """Return the way to ask on this system; None where there is none (no tool, or a desktop that doesn't tell)."""
    if platform == "win32":
        return WindowsWindow()
    if platform == "darwin":
        return CommandWindow([["osascript", "-e", _MAC_SCRIPT]], _from_pid_and_title)
    if which("xdotool"):
        command = ["xdotool", "getactivewindow", "getwindowpid", "getwindowname"]
        return CommandWindow([command, ["xdotool", "getactivewindow", "getwindowname"]], _from_pid_and_title)
    if which("xprop"):
        return XpropWindow()
    return None


def _from_pid_and_title(text: str) -> str:
    """Return the title in `pid, newline, title` (or a title alone), empty for a window of this process."""
    first, _, rest = text.strip("\n").partition("\n")
    if rest and first.strip().isdigit():
        return "" if int(first) == os.getpid() else rest.strip()
    return text.strip()


async def run_command(command: list[str], limit_s: float = _LIMIT_S) -> str:
    """Return what a command prints; it is killed after `limit_s`. Raises `OSError` if it fails."""
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise OSError(f"{command[0]} does not answer") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise OSError(f"{command[0]} failed")
    return output.decode("utf-8", "replace")


class CommandWindow:
    """Asks by commands; the first one that works counts."""

    def __init__(self, commands: list[list[str]], read: Callable[[str], str]) -> None:
        """Run `commands` and take the title from what one prints by `read`."""
        self._commands = commands
        self._read = read

    async def title(self) -> str:
        """Return the title; no active window makes the commands fail, which counts as none."""
        for command in self._commands:
            try:
                return self._read(await run_command(command))
            except FileNotFoundError:
                raise
            except OSError:
                continue
        return ""


class XpropWindow:
    """Asks the X server by xprop."""

    async def title(self) -> str:
        """Return the title."""
        root = await run_command(["xprop", "-root", "_NET_ACTIVE_WINDOW"])
        window = root.rpartition("#")[2].split(",")[0].strip()
        if not window.startswith("0x") or int(window, 16) == 0:
            return ""
        found: dict[str, str] = {}
        for line in (
            await run_command(["xprop", "-id", window, "_NET_WM_PID", "_NET_WM_NAME", "WM_NAME"])
        ).splitlines():
            name, _, value = line.partition(" = ")
            found[name.partition("(")[0]] = value
        if found.get("_NET_WM_PID", "").strip() == str(os.getpid()):
            return ""
        quoted = found.get("_NET_WM_NAME") or found.get("WM_NAME") or ""
        return quoted.strip().removeprefix('"').removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")


class WindowsWindow:
    """Asks Windows."""

    async def title(self) -> str:
        """Return the title."""
        # The attribute exists on Windows alone.
        user32: Any = getattr(ctypes, "windll").user32  # noqa: B009
        window = user32.GetForegroundWindow()
        if not window:
            return ""
        owner = ctypes.c_ulong()
        user32.GetWindowThreadProcessId(window, ctypes.byref(owner))
        if owner.value == os.getpid():
            return ""
        room = ctypes.create_unicode_buffer(512)
        user32.GetWindowTextW(window, room, 512)
        return room.value
