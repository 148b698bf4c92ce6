"""Maps the big native libraries into memory while the other threads run.

`import` does it with the interpreter locked: tens of milliseconds, more on a busy machine, in which the window stands
still. Mapped before, the library is only counted once more by the import.
"""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger(__name__)

HEARING = ("ctranslate2/_ext", "av/_core")
SPEAKING = ("onnxruntime/capi/onnxruntime_pybind11_state",)


def map_libraries(modules: Sequence[str]) -> list[Path]:
    """Map the native modules named `package/path` that are installed and not imported yet; returns their files.

    Does nothing where the system has no `dlopen`. What can't be mapped is left to the import, which tells why.
    """
    if not hasattr(os, "RTLD_NOW"):
        return []
    # Called as a foreign function it runs without the interpreter's lock, unlike `ctypes.CDLL(path)`.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    mapped = []
    for module in modules:
        path = _file_of(module)
        if path is None:
            continue
        if dlopen(os.fsencode(path), os.RTLD_NOW | os.RTLD_LOCAL):
            mapped.append(path)
        else:
            log.debug("%s can't be mapped", path)
    return mapped


def _file_of(module: str) -> Path | None:
    package, _, rest = module.partition("/")
    if package in sys.modules:
        return None
    # Of a top-level package this imports nothing.
    found = importlib.util.find_spec(package)
    folders = found.submodule_search_locations if found is not None else None
    for folder in folders or ():
        for path in Path(folder, rest).parent.glob(f"{Path(rest).name}.*"):
            if path.suffix == ".so":
                return path
    return None
