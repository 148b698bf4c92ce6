"""What was learned of pairs of devices in their rooms, from one start to the next: four figures a pair, in one file."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import asdict, fields
from pathlib import Path

from audio.echo_path import EchoPath

log = logging.getLogger(__name__)

VERSION = 1
MOST_PAIRS = 16
_LIMITS = {"delay_s": (0.0, 0.6), "coupling_db": (-80.0, 20.0), "loss_db": (0.0, 100.0), "leak_db": (-100.0, 20.0)}

Pair = tuple[str, str]
"""Names of microphone and loudspeaker."""


class EchoPathStore:
    """Reads the file once; `save` writes it. One thread at a time. Without a file it remembers until the end.

    A file of another version, with anything odd in it or not readable counts as empty: all it costs is a slower start.
    The pairs used last are kept.
    """

    def __init__(self, file: Path | None) -> None:
        """Read `file` if it is there."""
        self._file = file
        self._paths: dict[Pair, EchoPath] = {} if file is None else _read(file)
        self._is_changed = False

    def get(self, pair: Pair) -> EchoPath | None:
        """Return what is known of a pair."""
        return self._paths.get(pair)

    def put(self, pair: Pair, path: EchoPath) -> None:
        """Remember what was learned of a pair."""
        if self._paths.get(pair) == path:
            return
        self._paths.pop(pair, None)
        self._paths[pair] = path
        while len(self._paths) > MOST_PAIRS:
            del self._paths[next(iter(self._paths))]
        self._is_changed = True

    def save(self) -> None:
        """Write the file if there is anything new; where that fails it is logged and nothing else."""
        if self._file is None or not self._is_changed:
            return
        rows = [
            {"input": pair[0], "output": pair[1], **{name: round(value, 4) for name, value in asdict(path).items()}}
            for pair, path in self._paths.items()
        ]
        fresh = self._file.with_name(self._file.name + ".new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps({"version": VERSION, "pairs": rows}, indent=1) + "\n", encoding="utf-8")
            fresh.replace(self._file)
        except OSError as error:
            log.warning("what was learned of the loudspeaker was not stored: %s", error)
            return
        self._is_changed = False


def _read(file: Path) -> dict[Pair, EchoPath]:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(stored, dict) or stored.get("version") != VERSION or not isinstance(stored.get("pairs"), list):
        return {}
    found: dict[Pair, EchoPath] = {}
    for row in stored["pairs"][-MOST_PAIRS:]:
        path = _path_of(row)
        if path is not None:
            found[row["input"], row["output"]] = path
    return found


def _path_of(row: object) -> EchoPath | None:
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("input", "output")):
        return None
    figures: dict[str, float] = {}
    for name in (each.name for each in fields(EchoPath)):
        value = row.get(name)
        low, high = _LIMITS[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        if not low <= value <= high:
            return None
        figures[name] = float(value)
    return EchoPath(**figures)
