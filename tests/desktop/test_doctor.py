"""`mynah doctor` and `mynah licenses` as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rigs.scripted_llm import ScriptedLlm

from desktop.doctor import doctor_main
from desktop.licenses import licenses_main, packages
from desktop.model_cli import models_main


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYNAH_DATA", str(tmp_path / "data 数据"))


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = doctor_main(["--json", *arguments])
    return code, json.loads(capsys.readouterr().out)["findings"]


def of_part(found: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    return [finding for finding in found if finding["part"] == part]


def test_missing_models_and_broken_settings_fail_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYNAH_MODELS", str(tmp_path / "none"))
    (tmp_path / "data 数据").mkdir()
    (tmp_path / "data 数据" / "settings.yaml").write_text("volum: 1\n")
    code, found = findings(capsys)
    assert code == 3
    (settings,) = of_part(found, "settings")
    assert settings["status"] == "fail" and "settings.yaml:1:1" in settings["text"]
    (voice, *_) = of_part(found, "voice")
    assert voice["status"] == "fail" and voice["advice"] == "mynah models get piper-en_US-joe-medium"
    assert not [finding for finding in found if "the check broke" in finding["text"]]
    assert all(finding["advice"] for finding in found if finding["status"] == "fail")


def test_endpoint_is_asked_with_the_key(
    capsys: pytest.CaptureFixture[str], scripted_llm: ScriptedLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*arguments: str) -> tuple[str, str]:
        (finding,) = of_part(findings(capsys, "--llm", scripted_llm.url, *arguments)[1], "language model")
        return finding["status"], finding["text"] + finding["advice"]

    assert asked() == ("ok", f"{scripted_llm.url} answers, 1 models")
    status, text = asked("--llm-model", "other")
    assert status == "warn" and "it has scripted" in text
    monkeypatch.delenv("TOY_KEY", raising=False)
    assert asked("--llm-key-env", "TOY_KEY")[0] == "fail"
    scripted_llm.key = "right"
    monkeypatch.setenv("TOY_KEY", "wrong")
    status, text = asked("--llm-key-env", "TOY_KEY")
    assert status == "fail" and "answers 401" in text and "wrong" not in text
    monkeypatch.setenv("TOY_KEY", "right")
    assert asked("--llm-key-env", "TOY_KEY")[0] == "ok"


def test_dead_endpoint_and_none_are_told_apart(capsys: pytest.CaptureFixture[str], scripted_llm: ScriptedLlm) -> None:
    (dead,) = of_part(findings(capsys, "--llm", "http://127.0.0.1:9/v1")[1], "language model")
    assert dead["status"] == "fail" and "can't be reached" in dead["text"]
    (none,) = of_part(findings(capsys, "--llm", "none")[1], "language model")
    assert none["status"] == "warn"


@pytest.mark.models
def test_default_parts_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor_main([]) in (0, 3)
    lines = capsys.readouterr().out.splitlines()
    for part in ("packages", "recogniser", "language model", "embeddings", "settings", "data folder"):
        assert [line for line in lines if line.startswith("ok") and f" {part}: " in line], part
    assert not [line for line in lines if line.startswith("fail") and "device" not in line and "found" not in line]


def test_licenses_name_every_package_and_installed_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert licenses_main(["--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    by_name = {part["name"].lower(): part for part in parts}
    assert by_name["mynah"]["licence"] == "GPL-3.0-or-later"
    assert by_name["piper-tts"]["licence"] == "GPL-3.0-or-later"
    assert "LGPL-3.0" in by_name["pyside6_essentials"]["licence"]
    assert {"faster-whisper", "ctranslate2", "livekit", "openai", "shiboken6"} <= set(by_name)
    assert "pytest" not in by_name
    assert all(part["licence"] for part in parts)
    assert {part.kind for part in packages()} == {"program", "package"}


def test_models_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYNAH_MODELS", str(tmp_path / "models"))
    assert models_main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["root"] == str(tmp_path / "models")
    rows = {row["name"]: row for row in listed["models"]}
    assert not rows["whisper-base"]["installed"] and rows["whisper-base"]["licence"] == "MIT"
    for arguments, words in (
        (["get", "whisper-bas"], "did you mean whisper-base"),
        (["get"], "--defaults"),
        (["verify", "whisper-base"], "mynah models get whisper-base"),
        (["import", str(tmp_path / "nowhere")], "no folder"),
        (["import", str(tmp_path)], "no model"),
    ):
        assert models_main(arguments) == 2
        shown = capsys.readouterr()
        assert words in shown.err and shown.err.count("\n") == 1 and not shown.out
