"""The real program: a model that calls tools, a page opened after a yes, events from another program."""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
import stat
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rigs.program_rig import Program
from rigs.scripted_llm import Answer, ScriptedLlm
from rigs.sound_rig import SoundRig

pytestmark = [pytest.mark.e2e, pytest.mark.audio, pytest.mark.models, pytest.mark.timeout(240)]


def free_port() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def talk(port: int, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    """Send lines to the event socket and return its acknowledgements."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=5)) as client:
        client.sendall("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())
        with client.makefile("rb") as answers:
            return [json.loads(answers.readline())["payload"] for _ in lines]


def finished(program: Program, count: int) -> None:
    """Wait until so many answers are stored."""
    program.wait_for("turn:commit", lambda _: len(program.of("turn:commit")) >= count, timeout_s=40)


def test_tools_pages_and_events_in_the_running_program(sound_rig: SoundRig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    port = free_port()
    (data / "settings.yaml").write_text(f"event_socket: {port}\ncontext_sources: [clock]\n")
    pages = tmp_path / "pages.txt"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> "{pages}"\n')
    browser.chmod(0o700)
    reminder = {"text": "water the plants", "in_minutes": 30}
    answers = [
        Answer(pattern="plants", tool_calls=[{"name": "set_reminder", "arguments": reminder}]),
        Answer(pattern="plants", follows_tool=True, text="I will remind you in half an hour."),
        Answer(pattern="example", tool_calls=[{"name": "open_page", "arguments": {"url": "https://example.org/x"}}]),
    ]
    env = {**sound_rig.env, "BROWSER": str(browser)}
    with ScriptedLlm(answers) as llm:  # noqa: SIM117
        with Program(["run", "--headless", "--llm", llm.url], folder=tmp_path, env=env) as program:
            program.send(cmd="text", text="I often forget the plants, could you think of them for me?")
            result = program.wait_for("tool:result", timeout_s=40)
            assert (result["lane"], result["payload"]["disposition"]) == ("active_generation", "used")
            finished(program, 1)
            program.send(cmd="text", text="I would like to see the example page, could you show it?")
            finished(program, 2)
            assert not pages.exists(), "first the user is asked"
            program.send(cmd="text", text="yes, please")
            finished(program, 3)
            assert pages.read_text() == "https://example.org/x\n"

            token_file = data / "event_socket.token"
            assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
            token = token_file.read_text().strip()
            assert [ack["ok"] for ack in talk(port, {"token": "guess" * 8})] == [False]
            acks = talk(
                port,
                {"token": token},
                {"cmd": "context", "source": "player", "values": {"song": "Clair de lune"}},
                {"cmd": "notify", "id": "tea", "text": "Your tea is ready."},
                {"cmd": "quit"},
            )
            assert [ack["ok"] for ack in acks] == [True, True, True, False]
            program.wait_for("notify:state", lambda r: r["payload"]["state"] == "spoken", timeout_s=30)
            program.send(cmd="text", text="Is it not a lovely thing to listen to?")
            calls = llm.wait_for_calls(4)
            known = str(calls[-1].body["messages"])
            assert "Clair de lune" in known and "part_of_day" in known
            code, took_s = program.end()
            assert (code, took_s < 3.0) == (0, True)
        assert token not in program.stderr and str(token_file) in program.stderr
        assert token not in program.events_path.read_text(encoding="utf-8")
    with contextlib.closing(sqlite3.connect(data / "mynah.db")) as store:
        ((text, due, state),) = store.execute("SELECT text, due, state FROM reminders").fetchall()
    assert (text, state) == ("water the plants", "waiting")
    assert 25 * 60 < (datetime.fromisoformat(due) - datetime.now().astimezone()).total_seconds() <= 30 * 60
