"""Flow packs: a zip file of YAML files that one user gives another. Nothing in one is ever run or unpacked blindly."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from desktop.flow_files import FlowFiles, check_name
from orchestrator.contracts.errors import InputError

MANIFEST = "pack.yml"
_README = "README.md"
_MAX_PACK_BYTES = 8_000_000
_MAX_FILES = 200
_MAX_FILE_BYTES = 2_000_000
_MAX_TOTAL_BYTES = 10_000_000
_CHUNK_BYTES = 64 * 1024
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_EPOCH = (2020, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPack:
    """What a pack holds: texts by file name. `clashes` are files of the user's that say something else."""

    texts: Mapping[str, str]
    clashes: tuple[str, ...] = ()


def own_files(files: FlowFiles) -> tuple[str, ...]:
    """Return the user's files that can go into a pack; raises `InputError` pack_empty if there are none."""
    own = tuple(f.name for f in files.files() if f.layer == "user" and files.stamp(f.name) is not None)
    if not own:
        raise _nothing()
    return own


def export_pack(files: FlowFiles, path: Path, names: tuple[str, ...] | None = None) -> int:
    """Write the user's files (or those of `names`) to a zip file; returns how many.

    Raises `InputError` pack_empty, flow_unreadable or pack_unwritable.
    """
    own = [name for name in own_files(files) if names is None or name in names]
    if not own:
        raise _nothing()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, text in [(MANIFEST, "format: 1\n"), *((n, files.read(n, from_draft=False).text) for n in own)]:
            # A fixed date makes the same files the same pack.
            pack.writestr(zipfile.ZipInfo(name, _EPOCH), text.encode(), zipfile.ZIP_DEFLATED)
    try:
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(buffer.getvalue())
        new.replace(path)
    except OSError as error:
        raise InputError("pack_unwritable", f"{path} can't be written: {error.strerror}", part="flows") from error
    return len(own)


def read_pack(path: Path, files: FlowFiles | None = None) -> FlowPack:
    """Read a pack into memory; nothing is written.

    Raises `InputError`: pack_unreadable, pack_broken (no sound zip), pack_path (a name that leads elsewhere),
    pack_code (anything that is no YAML), pack_size.
    """
    try:
        if path.stat().st_size > _MAX_PACK_BYTES:
            raise _too_big(path.name)
        data = path.read_bytes()
    except OSError as error:
        raise InputError("pack_unreadable", f"{path} can't be read: {error.strerror}", part="flows") from error
    texts = unpack(data, path.name)
    clashes = [] if files is None else [n for n in texts if _differs(files, n, texts[n])]
    return FlowPack(texts=texts, clashes=tuple(clashes))


def unpack(data: bytes, shown: str = "the pack") -> dict[str, str]:
    """Return the texts of a pack by name; raises `InputError` as `read_pack`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            return _unpack(pack, shown)
    except InputError:
        raise
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError),
        *(OSError, ValueError, RuntimeError, NotImplementedError, IndexError, OverflowError, MemoryError),
    ) as error:
        raise InputError("pack_broken", f"{shown} is no sound zip file", part="flows") from error


def _unpack(pack: zipfile.ZipFile, shown: str) -> dict[str, str]:
    entries = [e for e in pack.infolist() if not e.is_dir()]
    if len(pack.infolist()) > _MAX_FILES:
        raise _too_big(shown)
    texts: dict[str, str] = {}
    seen: set[str] = set()
    left = _MAX_TOTAL_BYTES
    for entry in entries:
        name = _checked_name(entry)
        if name.casefold() in seen:
            raise InputError("pack_broken", f"{shown} holds {name} twice", part="flows")
        seen.add(name.casefold())
        data = _read_bounded(pack, entry, min(left, _MAX_FILE_BYTES), shown)
        left -= len(data)
        if name in (MANIFEST, _README):
            continue
        try:
            texts[name] = data.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise InputError("pack_broken", f"{name} in {shown} is no UTF-8 text", part="flows") from error
    if not texts:
        raise InputError("pack_broken", f"{shown} holds no flow files", part="flows")
    return texts


def _checked_name(entry: zipfile.ZipInfo) -> str:
    # `orig_filename` is what stands in the file, before the library tidies it up.
    name = entry.orig_filename
    parts = PurePosixPath(name).parts
    if "\\" in name or ":" in name or "\0" in name or name.startswith("/") or ".." in parts:
        raise InputError("pack_path", f"the pack wants to write outside its folder: {name[:100]!r}", part="flows")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise InputError("pack_path", f"the pack holds a link: {name[:100]!r}", part="flows")
    if entry.flag_bits & 0x1 or entry.compress_type not in _METHODS:
        raise InputError("pack_broken", f"{name[:100]!r} is packed in a way that is not read", part="flows")
    if name in (MANIFEST, _README):
        return name
    if not name.endswith((".yml", ".yaml")):
        raise InputError("pack_code", f"a pack may hold YAML files alone, not {name[:100]!r}", part="flows")
    try:
        return check_name(name)
    except InputError as error:
        raise InputError("pack_path", error.message, part="flows") from error


def _read_bounded(pack: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int, shown: str) -> bytes:
    """Unpack at most `limit` bytes: what a header says of the size is not believed."""
    found = bytearray()
    with pack.open(entry) as source:
        while chunk := source.read(_CHUNK_BYTES):
            found += chunk
            if len(found) > limit:
                raise _too_big(shown)
    return bytes(found)


def _nothing() -> InputError:
    return InputError("pack_empty", "there is nothing of your own to export", part="flows")


def _too_big(shown: str) -> InputError:
    return InputError("pack_size", f"{shown} is bigger than a flow pack may be", part="flows")


def _differs(files: FlowFiles, name: str, text: str) -> bool:
    if files.stamp(name) is None:
        return False
    try:
        return files.read(name).text != text
    except InputError:
        return True
