"""A virtual screen: Xvfb with a window manager, screenshots as arrays, keys and clicks."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]

TOOLS = ("Xvfb", "openbox", "xdotool", "import", "xdpyinfo")
_START_TIMEOUT_S = 10.0


def missing_tools() -> list[str]:
    """Return the programs the rig needs that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


@dataclass
class ScreenRig:
    """The virtual screen. Use it as a context manager; give `rig.env` to the program under test."""

    width: int = 1280
    height: int = 800
    with_compositor: bool = False
    env: dict[str, str] = field(init=False)
    _processes: list[subprocess.Popen[bytes]] = field(init=False, default_factory=list)

    def __enter__(self) -> ScreenRig:
        reader, writer = os.pipe()
        size = f"{self.width}x{self.height}x24"
        self._processes.append(
            subprocess.Popen(
                ["Xvfb", "-displayfd", str(writer), "-screen", "0", size, "-nolisten", "tcp", "-noreset"],
                pass_fds=[writer],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            # The server writes its number once it is ready and ends the pipe if it dies.
            number = pipe.readline().strip().decode()
        if not number:
            raise RuntimeError("Xvfb does not start")
        # Accessibility and session buses of the machine are none of a test's business.
        self.env = {"DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb", "NO_AT_BRIDGE": "1"}
        self._start("openbox", "--sm-disable")
        if self.with_compositor:
            self._start("picom", "--backend", "xrender")
        self._wait_for_window_manager()
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def screenshot(self, path: Path | None = None, *, window: str = "root") -> Image:
        """Return the pixels of the screen or of a window id as (height, width, 3) of 0..255; also as PNG at `path`."""
        raw = self._run_bytes("import", "-silent", "-window", window, "-depth", "8", "ppm:-")
        magic, size, depth, pixels = raw.split(b"\n", 3)
        assert (magic, depth) == (b"P6", b"255"), "unexpected image format"
        width, height = (int(part) for part in size.split())
        image = np.frombuffer(pixels, dtype=np.uint8).reshape(height, width, 3)
        if path is not None:
            subprocess.run(["convert", "ppm:-", str(path)], input=raw, check=True, timeout=20)
        return image

    def xdotool(self, *arguments: str) -> str:
        """Run xdotool (clicks, keys, window search) and return what it prints."""
        return self._run_bytes("xdotool", *arguments).decode().strip()

    def wait_for_window(self, title: str, timeout_s: float = 20.0) -> str:
        """Block until a visible window's title matches the regular expression `title`; return its id."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            done = subprocess.run(
                ["xdotool", "search", "--onlyvisible", "--name", title],
                env=self._client_env(),
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
            )
            if done.stdout.strip():
                return done.stdout.split()[-1]
            time.sleep(0.05)
        raise AssertionError(f"no window called {title} within {timeout_s} s")

    def _client_env(self) -> dict[str, str]:
        return {**os.environ, **self.env}

    def _start(self, *command: str) -> None:
        self._processes.append(
            subprocess.Popen(
                command,
                env=self._client_env(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def _wait_for_window_manager(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            done = subprocess.run(
                ["xprop", "-root", "_NET_SUPPORTING_WM_CHECK"],
                env=self._client_env(),
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
            )
            if "window id" in done.stdout:
                return
            time.sleep(0.05)
        raise RuntimeError("the window manager does not start")

    def _run_bytes(self, *command: str) -> bytes:
        done = subprocess.run(command, env=self._client_env(), capture_output=True, timeout=20, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout
