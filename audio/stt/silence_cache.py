"""Keeps a model's encoder states of silence from one start to the next: they cost a full encoding of 30 s."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_POSITIONS = 1500


class SilenceCache:
    """One file per model, precision and version of the runtime; anything unexpected counts as not there."""

    def __init__(self, model_dir: Path, cache_dir: Path | None, compute_type: str) -> None:
        """Look in `cache_dir`; None keeps nothing."""
        self._path: Path | None = None
        if cache_dir is None:
            return
        import ctranslate2

        stat = (model_dir / "model.bin").stat()
        known = f"{stat.st_size}:{stat.st_mtime_ns}:{compute_type}:{ctranslate2.__version__}"
        self._path = cache_dir / f"{model_dir.name}-{hashlib.sha256(known.encode()).hexdigest()[:16]}.npy"

    def read(self) -> NDArray[np.float32] | None:
        """Return the kept states, shape (1, 1500, width), or None."""
        if self._path is None:
            return None
        try:
            states = np.load(self._path, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        is_right = states.ndim == 3 and states.shape[:2] == (1, _POSITIONS) and states.dtype == np.float32
        return states if is_right else None

    def write(self, states: NDArray[np.float32]) -> None:
        """Keep the states; a folder that can't be written to is no fault."""
        if self._path is None:
            return
        partial = self._path.with_suffix(f".{os.getpid()}.partial")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.save(file, states, allow_pickle=False)
            partial.replace(self._path)
