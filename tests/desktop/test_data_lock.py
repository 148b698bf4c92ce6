"""One running program per data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.file_lock import DataFolderLock
from orchestrator.contracts.errors import InputError


def test_the_second_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = DataFolderLock(tmp_path / "data" / "mynah.lock")
    with pytest.raises(InputError, match="--data"):
        DataFolderLock(tmp_path / "data" / "mynah.lock")
    first.release()
    first.release()
    DataFolderLock(tmp_path / "data" / "mynah.lock").release()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="data folder"):
        DataFolderLock(tmp_path / "file" / "data" / "mynah.lock")
