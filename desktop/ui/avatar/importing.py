"""Takes an avatar pack from a zip file into the user's folder. Nothing is written before all of it was looked at."""

from __future__ import annotations

import io
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from desktop.ui.avatar.drawing_check import MAX_PNG_BYTES
from desktop.ui.avatar.pack import PACK_FILE, load_pack
from orchestrator.contracts.errors import InputError

_MAX_ZIP_BYTES = 24_000_000
_MAX_FILES = 200
_MAX_TOTAL_BYTES = 48_000_000
_CHUNK_BYTES = 64 * 1024
_KINDS = (".yaml", ".svg", ".png", ".md", ".txt")
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError),
    *(OSError, ValueError, RuntimeError, NotImplementedError, IndexError, OverflowError, MemoryError),
)


def import_pack(source: Path, target: Path) -> str:
    """Put the pack in the zip file `source` below the folder `target`; returns its folder's name there.

    The name is that of the folder in the zip file, else of the file; one that is there already gets a number.
    Raises `InputError`: pack_unreadable, pack_broken, pack_path, pack_size, or avatar_invalid with the fault's place.
    """
    try:
        if source.stat().st_size > _MAX_ZIP_BYTES:
            raise _too_big(source.name)
        data = source.read_bytes()
    except OSError as error:
        raise InputError("pack_unreadable", f"{source} can't be read: {error.strerror}", part="avatar") from error
    root, files = unpack(data, source.name)
    name = _clean(root or source.stem)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import-", dir=target) as folder:
            made = Path(folder) / name
            for path, content in files.items():
                place = made / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            load_pack(made)
            final = _free(target, name)
            shutil.move(made, final)
    except OSError as error:
        raise InputError("pack_unwritable", f"{target} can't be written: {error.strerror}", part="avatar") from error
    return final.name


def unpack(data: bytes, shown: str = "the pack") -> tuple[str, dict[str, bytes]]:
    """Return the folder around the pack (empty if there is none) and its files; raises `InputError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            files = _unpack(pack, shown)
    except InputError:
        raise
    except _BROKEN as error:
        raise InputError("pack_broken", f"{shown} is no sound zip file", part="avatar") from error
    homes = sorted((str(PurePosixPath(n).parent) for n in files if PurePosixPath(n).name == PACK_FILE), key=len)
    if not homes:
        raise InputError("pack_broken", f"{shown} holds no {PACK_FILE}", part="avatar")
    root = "" if homes[0] == "." else homes[0]
    prefix = f"{root}/" if root else ""
    return PurePosixPath(root).name, {n.removeprefix(prefix): d for n, d in files.items() if n.startswith(prefix)}


def _unpack(pack: zipfile.ZipFile, shown: str) -> dict[str, bytes]:
    entries = [entry for entry in pack.infolist() if not entry.is_dir()]
    if len(entries) > _MAX_FILES:
        raise _too_big(shown)
    files: dict[str, bytes] = {}
    left = _MAX_TOTAL_BYTES
    for entry in entries:
        name = _checked_name(entry)
        if name.casefold() in {known.casefold() for known in files}:
            raise InputError("pack_broken", f"{shown} holds {name[:80]!r} twice", part="avatar")
        found = bytearray()
        with pack.open(entry) as source:
            # What a header says of the size is not believed.
            while chunk := source.read(_CHUNK_BYTES):
                found += chunk
                if len(found) > min(left, MAX_PNG_BYTES):
                    raise _too_big(shown)
        left -= len(found)
        files[name] = bytes(found)
    return files


def _checked_name(entry: zipfile.ZipInfo) -> str:
    name = entry.orig_filename
    parts = PurePosixPath(name).parts
    is_outside = name.startswith("/") or ".." in parts or len(parts) > 6 or len(name) > 200
    if is_outside or any(char in name for char in '\\:\0*?"<>|') or not name.isprintable():
        raise InputError("pack_path", f"the pack wants to write outside its folder: {name[:80]!r}", part="avatar")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise InputError("pack_path", f"the pack holds a link: {name[:80]!r}", part="avatar")
    if PurePosixPath(name).suffix.casefold() not in _KINDS or any(part.startswith(".") for part in parts):
        raise InputError("pack_path", f"an avatar pack may hold pictures alone, not {name[:80]!r}", part="avatar")
    return name


def _clean(name: str) -> str:
    kept = "".join(char for char in name if char.isalnum() or char in " -_").strip()[:60]
    return kept or "avatar"


def _free(target: Path, name: str) -> Path:
    found, number = target / name, 2
    while found.exists():
        found, number = target / f"{name} {number}", number + 1
    return found


def _too_big(shown: str) -> InputError:
    return InputError("pack_size", f"{shown} is bigger than an avatar pack may be", part="avatar")
