"""Global keys under Windows: RegisterHotKey on a thread of its own, by ctypes. Not exercised by the tests' machines."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from typing import Any

from desktop.global_keys.keys import Combination, Handler

_MODIFIERS = {"alt": 1, "ctrl": 2, "shift": 4, "super": 8}
_NO_REPEAT = 0x4000
_WM_HOTKEY, _WM_QUIT = 0x0312, 0x0012
_PRESSED = 0x8000
_CODES = {"space": 0x20, "pause": 0x13, "insert": 0x2D, "home": 0x24, "end": 0x23, "scrolllock": 0x91}
_CODES |= {f"f{n}": 0x6F + n for n in range(1, 25)}
_CODES |= {chr(c).lower(): c for c in (*range(0x30, 0x3A), *range(0x41, 0x5B))}
_POLL_S = 0.02
_STOP_LIMIT_S = 2.0


class _Message(ctypes.Structure):
    _fields_ = (
        ("hwnd", ctypes.c_void_p),
        ("message", ctypes.c_uint),
        ("wparam", ctypes.c_size_t),
        ("lparam", ctypes.c_ssize_t),
        ("time", ctypes.c_uint),
        ("x", ctypes.c_long),
        ("y", ctypes.c_long),
        ("private", ctypes.c_uint),
    )


class WindowsKeys:
    """Implements `GlobalKeys`. The system tells only that a key went down; that it came up is looked for."""

    def __init__(self) -> None:
        """Take nothing yet."""
        self._thread: threading.Thread | None = None
        self._thread_id = 0
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._taken: tuple[Combination, ...] = ()

    def start(self, wanted: Mapping[Combination, Handler]) -> tuple[Combination, ...]:
        """Take these keys in place of the ones before; returns those that another program has."""
        self.stop()
        if not wanted:
            return ()
        self._ready.clear()
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, args=(dict(wanted),), name="global-keys", daemon=True)
        self._thread.start()
        self._ready.wait(_STOP_LIMIT_S)
        return self._taken

    def stop(self) -> None:
        """Give all keys back; idempotent."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._ended.set()
        _user32().PostThreadMessageW(self._thread_id, _WM_QUIT, 0, 0)
        thread.join(_STOP_LIMIT_S)

    def _run(self, wanted: dict[Combination, Handler]) -> None:
        user = _user32()
        self._thread_id = int(_library("kernel32").GetCurrentThreadId())
        handlers: dict[int, tuple[Handler, int]] = {}
        taken = []
        for number, (combination, handler) in enumerate(wanted.items(), start=1):
            modifiers = sum(_MODIFIERS[name] for name in combination.modifiers) | _NO_REPEAT
            code = _CODES[combination.key]
            if user.RegisterHotKey(None, number, modifiers, code):
                handlers[number] = (handler, code)
            else:
                taken.append(combination)
        self._taken = tuple(taken)
        self._ready.set()
        message = _Message()
        while user.GetMessageW(ctypes.byref(message), None, 0, 0) > 0:
            if message.message == _WM_HOTKEY and message.wparam in handlers:
                handler, code = handlers[message.wparam]
                handler(True)
                while user.GetAsyncKeyState(code) & _PRESSED and not self._ended.wait(_POLL_S):
                    pass
                handler(False)
        for number in handlers:
            user.UnregisterHotKey(None, number)


def _library(name: str) -> Any:
    return getattr(ctypes, "windll")[name]  # noqa: B009


def _user32() -> Any:
    return _library("user32")
