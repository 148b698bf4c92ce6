"""Bad input: one clear line, exit code 2, no traceback, nothing left running."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rigs.program_rig import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def mynah(*arguments: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "desktop.cli", *arguments],
        capture_output=True, text=True, timeout=100, cwd=cwd, env={**os.environ, **env}, check=False,
    )  # fmt: skip


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("mynah: ")
    return lines[0]


def headless(tmp_path: Path, *arguments: str, **env: str) -> str:
    return complaint(mynah("run", "--headless", "--data", str(tmp_path), *arguments, **env))


def test_missing_recogniser(tmp_path: Path) -> None:
    assert "not installed" in headless(tmp_path, "--llm", "none", MYNAH_MODELS=str(tmp_path / "models"))


def test_unknown_recogniser(tmp_path: Path) -> None:
    assert "whisper-colossal" in headless(tmp_path, "--llm", "none", "--whisper", "whisper-colossal")


def test_unreachable_model(tmp_path: Path, model_path: object) -> None:
    assert "127.0.0.1:9" in headless(tmp_path, "--llm", "http://127.0.0.1:9/v1")


def test_key_variable_that_is_not_set(tmp_path: Path, model_path: object) -> None:
    line = headless(tmp_path, "--llm", "http://127.0.0.1:9/v1", "--llm-key-env", "MYNAH_NO_SUCH_KEY")
    assert "MYNAH_NO_SUCH_KEY" in line


def test_broken_settings(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("patience: quickly\nvolum: 1\n", encoding="utf-8")
    line = headless(tmp_path, "--llm", "none")
    assert "settings.yaml:1:11" in line and "settings.yaml:2:1" in line and "volume" in line


def test_missing_flow_folder(tmp_path: Path) -> None:
    assert "--flows" in headless(tmp_path, "--flows", str(tmp_path / "nowhere"))


def test_broken_policy(tmp_path: Path, model_path: object) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "policy.yml").write_text("events:\n  notify: {lane: notifications}\n", encoding="utf-8")
    line = headless(tmp_path, "--llm", "none", "--flows", str(flows))
    assert "policy.yml:2:18" in line and "did you mean notification" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no such file"), (b"", "wav"), (b"RIFFxxxxWAVEjunk", "wav"), (b"hello", "wav")],
)
def test_wrong_wav(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "user.wav"
    if content is not None:
        path.write_bytes(content)
    line = complaint(
        mynah(
            "simulate", "--mic", str(path), "--out", str(tmp_path / "out.wav"), "--data", str(tmp_path), "--llm", "none"
        )
    )
    assert words in line


@pytest.mark.parametrize("option", ["--echo-db", "--delay-ms", "--drift-ppm", "--snr-db"])
@pytest.mark.parametrize("value", ["nan", "inf", "1e999"])
def test_numbers_that_are_none(option: str, value: str) -> None:
    from desktop.simulate import simulate_main

    with pytest.raises(SystemExit) as ended:
        simulate_main(["--mic", "a.wav", "--out", "b.wav", f"{option}={value}"])
    assert ended.value.code == 2


@pytest.mark.parametrize("number", [".nan", "-.inf", "9" * 400, "9" * 5_000, "0x" + "f" * 300])
def test_settings_with_numbers_that_are_none(tmp_path: Path, number: str) -> None:
    from desktop.settings import load_settings

    (tmp_path / "settings.yaml").write_text(f"volume: {number}\nattention_s: 30\n", encoding="utf-8")
    loaded = load_settings(tmp_path)
    assert [str(problem)[:20] for problem in loaded.problems] == ["settings.yaml:1:9: v"]
    assert loaded.settings.attention_s == 30


def test_texts_of_settings_that_nobody_could_store(tmp_path: Path) -> None:
    from desktop.settings import load_settings

    (tmp_path / "settings.yaml").write_text('volume: 0.5\nvoice: "\\ud800"\n', encoding="utf-8")
    assert ["settings.yaml:2:8" in str(problem) for problem in load_settings(tmp_path).problems] == [True]


def test_a_terminal_that_knows_no_chinese_is_shown_escapes(tmp_path: Path) -> None:
    from orchestrator.contracts.dialogue import HistoryEntry
    from orchestrator.contracts.ids import SessionId
    from orchestrator.store import records
    from orchestrator.store.database import Database

    database = Database(tmp_path / "mynah.db", is_inline=True)
    now = datetime(2026, 12, 1, tzinfo=UTC)
    database.transact_now(lambda db: records.add_session(db, SessionId("s"), now))
    entry = HistoryEntry(role="user", text="你好 \ud800")
    database.transact_now(
        lambda db: records.add_message(
            db, session_id=SessionId("s"), generation_id=None, utterance_id=None, entry=entry, at=now
        )
    )
    database.close()
    result = mynah("history", "export", "--data", str(tmp_path), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (result.returncode, result.stderr) == (0, "")
    assert r"\u4f60\u597d \ufffd" in result.stdout


def test_unknown_command_and_unknown_option() -> None:
    assert "unknown command" in complaint(mynah("sing"))
    result = mynah("run", "--loudly")
    assert result.returncode == 2
    assert "--loudly" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.audio
def test_unknown_device(tmp_path: Path, sound_rig: object, model_path: object) -> None:
    env = dict(sound_rig.env)  # type: ignore[attr-defined]
    line = headless(tmp_path, "--llm", "none", "--input", "no such microphone", **env)
    assert "no such microphone" in line
    assert "default" in line, "it names the devices there are"
