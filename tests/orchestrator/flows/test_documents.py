"""The examples that docs/flows.md and docs/rails.md print: they check, and the test among them passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from orchestrator_flow_support import ROOT

from desktop.flows_cli import flows_main


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_flow_and_its_test_are_right_as_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow, conversation = blocks("flows.md", "yaml")
    (action,) = blocks("flows.md", "python")
    folder = tmp_path / "flows"
    (folder / "tests").mkdir(parents=True)
    (tmp_path / "actions").mkdir()
    (folder / "pizza.yml").write_text(flow, encoding="utf-8")
    (folder / "tests" / "pizza.yml").write_text(conversation, encoding="utf-8")
    (tmp_path / "actions" / "pizza.py").write_text(action, encoding="utf-8")
    assert flows_main(["check", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no problems\n"
    assert flows_main(["test", "--data", str(tmp_path)]) == 0
    assert "1 passed, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize("number", range(len(blocks("rails.md", "yaml"))))
def test_every_example_of_the_rails_page_has_no_fault(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rails.yml"
    file.write_text(blocks("rails.md", "yaml")[number], encoding="utf-8")
    assert flows_main(["check", str(file), "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no problems\n"
