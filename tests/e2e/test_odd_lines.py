"""The running program under lines nobody should send: each is answered, nothing ends, and the next turn works."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

import pytest
from rigs.odd_lines import odd_lines
from rigs.program_rig import Program
from rigs.sound_rig import SoundRig

pytestmark = [pytest.mark.e2e, pytest.mark.audio, pytest.mark.models, pytest.mark.timeout(240)]

LINES = 250


def free_port() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def write(program: Program, *lines: bytes) -> None:
    assert program.process is not None and program.process.stdin is not None
    pipe = program.process.stdin.buffer
    pipe.write(b"".join(line + b"\n" for line in lines))
    pipe.flush()


def acks(program: Program) -> int:
    return len(program.of("control:ack"))


def answered(program: Program, count: int, *, timeout_s: float = 60) -> None:
    program.wait_for("control:ack", lambda _: acks(program) >= count, timeout_s=timeout_s)


def test_half_a_character_is_a_turn_like_any_other(sound_rig: SoundRig, tmp_path: Path) -> None:
    with Program(["run", "--headless", "--llm", "none"], folder=tmp_path, env=sound_rig.env) as program:
        write(program, b'{"cmd": "text", "text": "\\ud800 What time is it?"}')
        commit = program.wait_for("history:commit", lambda r: r["payload"]["role"] == "assistant", timeout_s=40)
        assert commit["payload"]["text"]
        assert program.of("input:user")[0]["payload"]["text"] == "\ufffd What time is it?"
        write(program, b'{"cmd": "notify", "id": "\\udfff", "text": "Tea \\ud83d\\ude00 \\ud83d", "urgent": true}')
        program.wait_for("notify:state", lambda r: r["payload"] == {"id": "\ufffd", "state": "spoken", "because": None})
        code, _ = program.end()
        assert code == 0 and program.events[-1]["type"] == "app:exit"


def test_odd_lines_are_answered_one_by_one_and_end_nothing(sound_rig: SoundRig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    port = free_port()
    (data / "settings.yaml").write_text(f"event_socket: {port}\n", encoding="utf-8")
    with Program(["run", "--headless", "--llm", "none"], folder=tmp_path, env=sound_rig.env) as program:
        for begin in range(0, LINES, 50):
            write(program, *odd_lines(begin, 50))
            answered(program, begin + 50)
        write(program, b'{"cmd": "text", "text": "' + b"x" * 1_500_000 + b'"}', b'{"cmd": "mute_voice", "on": false}')
        answered(program, LINES + 2)
        long_line, taken = (record["payload"] for record in program.of("control:ack")[-2:])
        assert "too long" in long_line["error"] and taken["ok"]
        token = (data / "event_socket.token").read_text(encoding="ascii").strip()
        with (
            contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as client,
            client.makefile("rwb") as lines,
        ):
            lines.write(json.dumps({"token": token}).encode() + b"\n")
            lines.flush()
            assert json.loads(lines.readline())["payload"]["ok"]
            for line in odd_lines(1, 45, commands=("text", "notify", "context", "event", "object")):
                lines.write(line + b"\n")
                lines.flush()
                assert json.loads(lines.readline())["type"] == "control:ack"
        write(program, b'{"cmd": "sleep", "on": false}', b'{"cmd": "stop"}')
        answered(program, LINES + 4)
        after = program.events[-1]["seq"]
        write(program, b'{"cmd": "text", "text": "What time is it?"}')
        commit = program.wait_for(
            "history:commit", lambda r: r["payload"]["role"] == "assistant", after=after, timeout_s=40
        )
        assert commit["payload"]["status"] == "completed"
        # The last lines come while it ends: taken or refused, but answered.
        write(program, *odd_lines(2, 20), b'{"cmd": "quit"}', b'{"cmd": "reload"}')
        code, _ = program.end()
        assert code == 0 and program.events[-1]["type"] == "app:exit"
        assert "Traceback" not in program.stderr
        counters = program.events[-1]["payload"]["counters"]
        faults = {name: count for name, count in counters.items() if "fail" in name and count}
        assert not faults, faults
