"""The files of a model: are they what was promised, how are they changed, what is recorded of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.model_alignment import add_alignment, original_sha256
from desktop.model_catalogue import Catalogue, Model, ModelFile
from desktop.model_download import Cancelled, RemoteFile, git_sha1_of, sha256_of

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an installation is. `stage` is waiting, connecting, downloading, checking, patching or done."""

    name: str
    stage: str
    done_bytes: int = 0
    total_bytes: int = 0
    source: str = ""


OnProgress = Callable[[Progress], None]


def mismatch(path: Path, file: ModelFile, remote: RemoteFile | None, cancelled: Cancelled) -> str | None:
    """Say what is wrong with `path`, or None if it is what the catalogue, else the hub, promises."""
    size = path.stat().st_size
    expected_size = file.size_bytes or (remote.size_bytes if remote else None)
    if size == 0 or (expected_size is not None and size != expected_size):
        return f"has {size} bytes instead of {expected_size}" if size else "is empty"
    expected = file.sha256 or (remote.sha256 if remote else None)
    if expected is not None:
        return None if sha256_of(path, cancelled=cancelled) == expected else "has a wrong checksum"
    if remote is not None:
        if remote.git_sha1 is None:
            return "has no published checksum"
        return None if git_sha1_of(path) == remote.git_sha1 else "has a wrong checksum"
    return None


def is_patched(model: Model, path: Path, file: ModelFile) -> bool:
    """Whether `path` is the catalogue's `file` with phoneme durations added."""
    return (
        model.transform == "piper_alignment"
        and path.suffix == ".onnx"
        and file.sha256 is not None
        and original_sha256(path) == file.sha256
    )


def transform(model: Model, folder: Path, files: Sequence[ModelFile], progress: OnProgress) -> None:
    """Change the files as the catalogue says; what is changed already stays."""
    if model.transform == "piper_alignment":
        progress(Progress(name=model.name, stage="patching"))
        for file in files:
            if file.name.endswith(".onnx"):
                add_alignment(folder / file.name)


def build_manifest(
    catalogue: Catalogue, model: Model, files: Sequence[ModelFile], folder: Path, origin: str, is_verified: bool
) -> dict[str, Any]:
    """Return what is recorded of a model in its folder; `files` must be in `folder`, changed already."""
    entries: dict[str, dict[str, Any]] = {}
    for file in files:
        path = folder / file.name
        entries[file.name] = {"size_bytes": path.stat().st_size, "sha256": sha256_of(path)}
        if model.transform == "piper_alignment" and path.suffix == ".onnx":
            entries[file.name]["original_sha256"] = file.sha256 or original_sha256(path)
    return {
        "name": model.name,
        "kind": model.kind,
        "licence": model.licence,
        "catalogue": catalogue.version,
        "source": origin,
        "verified": is_verified,
        "files": entries,
    }
