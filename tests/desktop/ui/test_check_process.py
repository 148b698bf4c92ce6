"""The checking process: the same answers as on the spot, whatever becomes of the process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop import paths
from desktop.flow_files import FlowFiles
from desktop.flow_folders import FlowFolders
from desktop.ui.flow_editor.check_process import CheckProcess
from desktop.ui.flow_editor.checking import check_job

TEXT = """\
flows:
  tea:
    examples: [make tea]
    steps:
      - {id: start, type: start, next: nowhere}
      - {id: end, type: end}
"""


@pytest.fixture
def folders(tmp_path: Path) -> FlowFolders:
    (tmp_path / "flows").mkdir()
    return FlowFolders(shipped=paths.flow_config(), user=tmp_path / "flows")


@pytest.fixture
def process(folders: FlowFolders) -> Iterator[CheckProcess]:
    made = CheckProcess(folders)
    yield made
    made.close()


def test_it_finds_what_a_check_on_the_spot_finds(process: CheckProcess, folders: FlowFolders) -> None:
    found = process.check(7, {"tea.yml": TEXT}, "tea.yml", TEXT)
    here = check_job(FlowFiles(folders), 7, {"tea.yml": TEXT}, "tea.yml", TEXT)
    assert found == here
    assert any("nowhere" in problem.message for problem in found.problems)
    assert process.pid is not None and process.pid != os.getpid()


def test_a_process_that_dies_is_replaced_and_in_the_end_done_without(process: CheckProcess) -> None:
    seen = []
    for version in range(4):
        found = process.check(version, {"tea.yml": TEXT}, "tea.yml", TEXT)
        assert found.version == version and found.problems
        seen.append(process.pid)
        if process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
    assert seen[0] != seen[1] and None not in seen[:2]
    assert seen[2:] == [None, None]


def test_it_ends_with_its_owner(process: CheckProcess) -> None:
    process.check(1, {}, "tea.yml", TEXT)
    pid = process.pid
    assert pid is not None
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert process.check(2, {}, "tea.yml", TEXT).version == -1
