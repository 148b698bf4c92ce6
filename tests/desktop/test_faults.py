"""What went wrong is said in the user's language, by commands as by the window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desktop.cli import main
from desktop.faults import fault_of, fault_text, particulars
from orchestrator.contracts.errors import InputError

BROKEN = """\
flows:
  tea:
    steps:
      - {id: start, type: start, next: ennd}
      - {id: end, type: end, respons: x}
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (tmp_path / "tea.yml").write_text(BROKEN, encoding="utf-8")
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["flows", "check", *arguments]) == 2
    return capsys.readouterr().out.splitlines()


def test_a_check_in_chinese_names_the_same_places(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    english = lines(capsys, str(broken))
    chinese = lines(capsys, str(broken), "--language", "zh")
    assert [line.split("  ")[:2] for line in chinese] == [line.split("  ")[:2] for line in english]
    (target,) = [line for line in chinese if "unknown_target" in line]
    assert "tea.yml:4:" in target and target.endswith("没有这个步骤：ennd、tea  是不是 end？")
    for line in chinese:
        told = line.split("  ")[2]
        assert any(c > "\u2fff" for c in told), line


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        ("wrong_type", "steps must be a list, not text", "值的类型不对：steps（应为列表，而不是文本）"),
        ("out_of_range", "timeout_s must be from 0.01 to 600", "超出范围：timeout_s（0.01 到 600）"),
        ("duplicate_key", "the key 'a' stands twice; the first is in line 3", "键重复：a（第一处在第 3 行）"),
        ("yaml_size", "longer than 1000000 characters", "文件过大（最多 1000000）"),
        ("persona_invalid", "persona.yml:2:1: unknown key 'nam'; did you mean name?", "（是不是 name？）"),
    ],
)
def test_what_was_expected_is_told_in_chinese_too(code: str, message: str, told: str) -> None:
    assert fault_text(code, message, "zh_CN").endswith(told)


def test_json_carries_the_chinese_words_too(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads("\n".join(lines(capsys, str(broken), "--language", "zh", "--json")))
    told = {p["code"]: p["message"] for p in found["problems"]}
    assert told["unknown_key"] == "未知的键：respons"


def test_a_command_that_fails_says_so_in_chinese(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flows", "check", str(tmp_path / "none.yml"), "--language", "zh"]) == 2
    assert capsys.readouterr().err.startswith("mynah flows: 没有这个文件或文件夹：")


def test_an_error_is_one_line_with_its_code() -> None:
    fault = fault_of(InputError("flow_unreadable", "a.yml is no UTF-8 text\nmore"))
    assert (fault.code, fault.message) == ("flow_unreadable", "a.yml is no UTF-8 text")
    assert fault_text(fault.code, fault.message, "zh_CN") == "无法读取文件：a.yml"
    inside = fault_of(KeyError("x"))
    assert inside.code == "internal"
    assert fault_text(inside.code, inside.message, "zh").startswith("Mynah 内部出错了")


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("the step 'ask' needs a next", ["ask"]),
        ("it can't be read, and isn't there", []),
        ("type must be one of text, integer, choice", ["type", "text, integer, choice"]),
        ("a step is a mapping such as `bot: …`, not text", ["bot: …"]),
        ("“cell” has no meaning for “turn:end”", ["cell", "turn:end"]),
        ("/tmp/a b.yml and pack.zip can't be written: No space left", ["b.yml", "pack.zip"]),
    ],
)
def test_what_a_message_names(message: str, named: list[str]) -> None:
    assert [n for n in particulars(message) if not n.startswith("/")] == named
