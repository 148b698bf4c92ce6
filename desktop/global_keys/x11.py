"""Global keys under X11: grabs on the root window, on a connection and a thread of their own, by ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import logging
import os
import select
import threading
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from desktop.global_keys.keys import Combination, Handler

log = logging.getLogger(__name__)

_KEY_PRESS, _KEY_RELEASE = 2, 3
_GRAB_ASYNC = 1
_SHIFT, _LOCK, _CONTROL, _MOD1, _MOD2, _MOD4 = 1, 2, 4, 8, 16, 64
_MASKS = {"ctrl": _CONTROL, "alt": _MOD1, "shift": _SHIFT, "super": _MOD4}
_LOCKS = (_LOCK, _MOD2)
"""Caps Lock and Num Lock: a grab must be made for each of their states."""

_KEYSYMS = {"space": "space", "pause": "Pause", "insert": "Insert", "home": "Home", "end": "End"}
_KEYSYMS |= {"scrolllock": "Scroll_Lock", **{f"f{n}": f"F{n}" for n in range(1, 25)}}
_STOP_LIMIT_S = 2.0


class _KeyEvent(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("root", ctypes.c_ulong),
        ("subwindow", ctypes.c_ulong),
        ("time", ctypes.c_ulong),
        ("x", ctypes.c_int),
        ("y", ctypes.c_int),
        ("x_root", ctypes.c_int),
        ("y_root", ctypes.c_int),
        ("state", ctypes.c_uint),
        ("keycode", ctypes.c_uint),
        ("same_screen", ctypes.c_int),
    )


class _Event(ctypes.Union):
    _fields_ = (("key", _KeyEvent), ("pad", ctypes.c_long * 24))


_ErrorHandler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def load_xlib() -> Any | None:
    """Return libX11 with its signatures, None if it is not there."""
    name = ctypes.util.find_library("X11") or "libX11.so.6"
    try:
        x = ctypes.CDLL(name)
    except OSError:
        return None
    pointer, ulong, integer = ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int
    x.XOpenDisplay.restype, x.XOpenDisplay.argtypes = pointer, [ctypes.c_char_p]
    x.XDefaultRootWindow.restype, x.XDefaultRootWindow.argtypes = ulong, [pointer]
    x.XStringToKeysym.restype, x.XStringToKeysym.argtypes = ulong, [ctypes.c_char_p]
    x.XKeysymToKeycode.restype, x.XKeysymToKeycode.argtypes = ctypes.c_ubyte, [pointer, ulong]
    x.XGrabKey.argtypes = [pointer, integer, ctypes.c_uint, ulong, integer, integer, integer]
    x.XUngrabKey.argtypes = [pointer, integer, ctypes.c_uint, ulong]
    x.XkbSetDetectableAutoRepeat.argtypes = [pointer, integer, pointer]
    for function in (x.XSync,):
        function.argtypes = [pointer, integer]
    for function in (x.XPending, x.XConnectionNumber, x.XCloseDisplay):
        function.argtypes = [pointer]
    x.XNextEvent.argtypes = [pointer, pointer]
    x.XSetErrorHandler.restype, x.XSetErrorHandler.argtypes = pointer, [pointer]
    return x


class X11Keys:
    """Implements `GlobalKeys`. The thread “global-keys” owns the connection."""

    def __init__(self, xlib: Any, display: str | None = None) -> None:
        """Use `xlib` of `load_xlib`; `display` none is the one of the environment."""
        self._x = xlib
        self._display_name = display
        self._thread: threading.Thread | None = None
        self._wake: int | None = None
        self._taken: tuple[Combination, ...] = ()
        self._ready = threading.Event()
        self._errors = 0
        self._on_error = _ErrorHandler(self._count_error)

    def start(self, wanted: Mapping[Combination, Handler]) -> tuple[Combination, ...]:
        """Take these keys in place of the ones before; returns those that another program has."""
        self.stop()
        if not wanted:
            return ()
        reader, self._wake = os.pipe()
        self._ready.clear()
        self._taken = tuple(wanted)
        self._thread = threading.Thread(target=self._run, args=(dict(wanted), reader), name="global-keys", daemon=True)
        self._thread.start()
        self._ready.wait(_STOP_LIMIT_S)
        return self._taken

    def stop(self) -> None:
        """Give all keys back; idempotent."""
        thread, self._thread = self._thread, None
        if self._wake is not None:
            os.close(self._wake)
            self._wake = None
        if thread is not None:
            thread.join(_STOP_LIMIT_S)

    # --- on the thread ----------------------------------------------------------------------------------

    def _count_error(self, _display: object, _event: object) -> int:
        # Without a handler the library ends the whole program when a key is taken already.
        self._errors += 1
        return 0

    def _run(self, wanted: dict[Combination, Handler], reader: int) -> None:
        x = self._x
        display = x.XOpenDisplay(self._display_name.encode() if self._display_name else None)
        try:
            if not display:
                return
            x.XSetErrorHandler(ctypes.cast(self._on_error, ctypes.c_void_p))
            x.XkbSetDetectableAutoRepeat(display, 1, None)
            keycodes = self._grab_all(display, wanted)
            self._ready.set()
            self._listen(display, reader, keycodes)
        except Exception:
            log.exception("global keys failed")
        finally:
            self._ready.set()
            os.close(reader)
            if display:
                # Closing the connection gives the grabs back.
                x.XCloseDisplay(display)

    def _grab_all(self, display: int, wanted: dict[Combination, Handler]) -> dict[tuple[int, int], Handler]:
        x, root = self._x, self._x.XDefaultRootWindow(display)
        found: dict[tuple[int, int], Handler] = {}
        taken = []
        for combination, handler in wanted.items():
            name = _KEYSYMS.get(combination.key, combination.key)
            keycode = x.XKeysymToKeycode(display, x.XStringToKeysym(name.encode()))
            mask = sum(_MASKS[modifier] for modifier in combination.modifiers)
            self._errors = 0
            for count in range(len(_LOCKS) + 1):
                for locks in combinations(_LOCKS, count):
                    x.XGrabKey(display, keycode, mask | sum(locks), root, 0, _GRAB_ASYNC, _GRAB_ASYNC)
            x.XSync(display, 0)
            if keycode == 0 or self._errors:
                taken.append(combination)
            else:
                found[keycode, mask] = handler
        self._taken = tuple(taken)
        return found

    def _listen(self, display: int, reader: int, handlers: dict[tuple[int, int], Handler]) -> None:
        x, event = self._x, _Event()
        connection = x.XConnectionNumber(display)
        down: dict[int, Handler] = {}
        while True:
            while x.XPending(display):
                x.XNextEvent(display, ctypes.byref(event))
                key = event.key
                if key.type == _KEY_PRESS and key.keycode not in down:
                    handler = handlers.get((key.keycode, key.state & (_SHIFT | _CONTROL | _MOD1 | _MOD4)))
                    if handler is not None:
                        down[key.keycode] = handler
                        handler(True)
                elif key.type == _KEY_RELEASE and key.keycode in down:
                    # Modifiers may be let go first: the release belongs to whoever had the press.
                    down.pop(key.keycode)(False)
            readable, _, _ = select.select([connection, reader], [], [])
            if reader in readable:
                for handler in down.values():
                    with contextlib.suppress(RuntimeError):
                        handler(False)
                return
