"""What a global key is, and which adapter this machine has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from orchestrator.contracts.errors import InputError

_MODIFIERS = {
    "ctrl": "ctrl",
    "control": "ctrl",
    "alt": "alt",
    "shift": "shift",
    "super": "super",
    "win": "super",
    "meta": "super",
}
NAMED = frozenset(
    {"space", "pause", "insert", "home", "end", "scrolllock", *(f"f{n}" for n in range(1, 25))}
    | {chr(c) for c in range(ord("a"), ord("z") + 1)}
    | {str(n) for n in range(10)}
)
"""Keys that can be named; the same on every platform."""

_ALONE = frozenset({"pause", "scrolllock", *(f"f{n}" for n in range(1, 25))})
"""Keys that nobody writes with, which need no modifier."""


@dataclass(frozen=True, slots=True)
class Combination:
    """A key with its modifiers, all in small letters."""

    key: str
    modifiers: frozenset[str]


Handler = Callable[[bool], None]
"""Told True when the key goes down and False when it comes up, from the adapter's thread."""


class GlobalKeys(Protocol):
    """What an adapter does."""

    def start(self, wanted: Mapping[Combination, Handler]) -> tuple[Combination, ...]:
        """Take these keys in place of the ones before; returns those that another program has."""
        ...

    def stop(self) -> None:
        """Give all keys back; idempotent."""
        ...


def parse_combination(text: str) -> Combination:
    """Read a text like `Ctrl+Alt+Space`. Raises `InputError` (`key_invalid`)."""
    parts = [part.strip().casefold() for part in text.split("+")]
    *before, key = parts
    modifiers = [_MODIFIERS.get(part) for part in before]
    if key not in NAMED or None in modifiers:
        wrong = key if key not in NAMED else before[modifiers.index(None)]
        raise InputError(
            "key_invalid", f"{text!r}: there is no key {wrong!r}; write it like Ctrl+Alt+Space", part="keys"
        )
    if not modifiers and key not in _ALONE:
        raise InputError(
            "key_invalid", f"{text!r} would take a key that everybody writes with; add Ctrl or Alt", part="keys"
        )
    if set(modifiers) == {"shift"} and key not in _ALONE:
        raise InputError(
            "key_invalid", f"{text!r} would take a key that everybody writes with; add Ctrl or Alt", part="keys"
        )
    return Combination(key, frozenset(m for m in modifiers if m))


def find_adapter(platform_name: str, *, system: str = sys.platform, session: str = "") -> GlobalKeys | str:
    """Return the adapter for this machine, or why there is none.

    `platform_name` is Qt's (xcb, wayland, windows, cocoa, offscreen), `session` the value of XDG_SESSION_TYPE.
    """
    if system == "win32":
        from desktop.global_keys.windows import WindowsKeys

        return WindowsKeys()
    if system == "darwin":
        return "macOS gives them only to programs with the right to watch all input"
    if session == "wayland" or platform_name.startswith("wayland"):
        return "Wayland lets no program see keys outside its windows; bind a key of the desktop to the control channel"
    if platform_name != "xcb":
        return f"the platform {platform_name} has none"
    from desktop.global_keys.x11 import X11Keys, load_xlib

    library = load_xlib()
    return "libX11 is not installed" if library is None else X11Keys(library)
