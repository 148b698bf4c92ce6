"""Where flows lie, and writing there; light, for the window knows it before anything is loaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from orchestrator.contracts.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFolders:
    """The shipped layer, the user's over it (it need not exist yet), and the user's own actions."""

    shipped: Path
    user: Path
    actions: Path | None = None


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that readers see the old or the new one. Raises `InputError` flow_unwritable."""
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except (OSError, UnicodeEncodeError) as error:
        new.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def unwritable(path: Path, error: Exception) -> InputError:
    """Return the error to raise for a file that can't be written."""
    reason = getattr(error, "strerror", None) or "it holds characters that are no text"
    return InputError("flow_unwritable", f"{path} can't be written: {reason}", part="flows")
