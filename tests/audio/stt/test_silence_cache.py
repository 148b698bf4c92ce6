"""States of silence are kept between starts, and never believed blindly."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from audio.stt.silence_cache import SilenceCache


def model(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model.bin").write_bytes(b"weights")
    return folder


def test_kept_and_found_again_for_the_same_model_only(tmp_path: Path) -> None:
    states = np.random.default_rng(1).standard_normal((1, 1500, 8)).astype(np.float32)
    base = model(tmp_path / "base")
    SilenceCache(base, tmp_path / "cache", "int8").write(states)
    found = SilenceCache(base, tmp_path / "cache", "int8").read()
    assert found is not None and np.array_equal(found, states)
    assert SilenceCache(base, tmp_path / "cache", "float32").read() is None
    (base / "model.bin").write_bytes(b"other weights")
    assert SilenceCache(base, tmp_path / "cache", "int8").read() is None


def test_a_broken_or_wrong_file_counts_as_not_there(tmp_path: Path) -> None:
    base = model(tmp_path / "base")
    cache = SilenceCache(base, tmp_path / "cache", "int8")
    cache.write(np.zeros((1, 10, 8), np.float32))
    assert cache.read() is None
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(b"half a fi")
    assert cache.read() is None


def test_without_a_folder_or_with_a_forbidden_one_nothing_happens(tmp_path: Path) -> None:
    base = model(tmp_path / "base")
    states = np.zeros((1, 1500, 8), np.float32)
    SilenceCache(base, None, "int8").write(states)
    assert SilenceCache(base, None, "int8").read() is None
    (tmp_path / "file").write_text("", encoding="utf-8")
    SilenceCache(base, tmp_path / "file" / "below", "int8").write(states)
