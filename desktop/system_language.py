"""The language of the system: what is proposed before the user has said anything."""

from __future__ import annotations

import locale
import os

_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Where Linux says it, the strongest first; Windows has it in the C library's locale."""


def system_language() -> str:
    """Return `zh` where the system speaks Chinese, else `en`."""
    name = next((value for variable in _VARIABLES if (value := os.environ.get(variable))), None)
    return "zh" if (name or locale.getlocale()[0] or "").startswith(("zh", "Chinese")) else "en"


def spoken_by_default() -> tuple[str, ...]:
    """Return the languages proposed to the user, the system's first."""
    return ("zh", "en") if system_language() == "zh" else ("en", "zh")
