"""Lines of the control channel: each is carried out and acknowledged, or refused with a sentence."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from desktop.control_channel import ControlChannel, parse_command
from orchestrator.contracts.commands import (
    Command,
    FocusObject,
    MuteMicrophone,
    Notify,
    PostExternalEvent,
    PushToTalk,
    Quit,
    Reload,
    SendText,
    UpdateContext,
)
from orchestrator.contracts.events import ControlAck, ObjectRef


class Listener:
    """Takes what the channel hands on."""

    def __init__(self, *, accepts: bool = True) -> None:
        self.commands: list[Command] = []
        self.acks: list[ControlAck] = []
        self._accepts = accepts

    def submit(self, command: Command) -> bool:
        self.commands.append(command)
        return self._accepts

    def channel(self) -> ControlChannel:
        return ControlChannel(
            submit=self.submit, acknowledge=self.acks.append, dump=lambda: {"widgets": [], "state": {}}
        )


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ({"cmd": "text", "text": "你好"}, SendText(text="你好", via="control")),
        ({"cmd": "ptt_down"}, PushToTalk(down=True)),
        ({"cmd": "mute_mic", "on": True}, MuteMicrophone(on=True)),
        ({"cmd": "notify", "id": "tea", "text": "Tea!", "expires_s": 5}, Notify(id="tea", text="Tea!", expires_s=5.0)),
        ({"cmd": "context", "source": "game", "values": {"hp": 3}}, UpdateContext(source="game", values={"hp": 3})),
        ({"cmd": "event", "type": "alarm"}, PostExternalEvent(type="alarm", payload={})),
        (
            {"cmd": "object", "object": {"type": "file", "id": "1", "title": "a.txt"}},
            FocusObject(object=ObjectRef(type="file", id="1", title="a.txt")),
        ),
        ({"cmd": "quit"}, Quit()),
    ],
)
def test_each_command_is_understood(line: dict[str, Any], command: Command) -> None:
    assert parse_command(line) == command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("not json", "not JSON"),
        ("[1]", "JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"cmd": "sing"}', "unknown command 'sing'"),
        ('{"text": "hi"}', "unknown command"),
        ('{"cmd": "text"}', "“text” must be a text"),
        ('{"cmd": "text", "text": "  "}', "“text” must be a text"),
        ('{"cmd": "mute_mic"}', "“on” must be true or false"),
        ('{"cmd": "notify", "id": "a", "text": "b", "expires_s": -1}', "expires_s"),
        ('{"cmd": "context", "source": "x", "values": 3}', "“values” must be an object"),
        ('{"cmd": "object", "object": {"type": "a", "id": "b", "colour": "c"}}', "colour"),
        ('{"cmd": "object"}', "“object” is missing"),
        ('{"cmd": "notify", "id": "a", "text": "b", "expires_s": NaN}', "NaN"),
        ('{"cmd": "notify", "id": "a", "text": "b", "expires_s": 1e400}', "too large"),
        (f'{{"cmd": "notify", "id": "a", "text": "b", "expires_s": 1{"0" * 400}}}', "too large"),
        ('{"cmd": "notify", "id": "a", "text": "b", "expires_s": true}', "expires_s"),
        ('{"cmd": "context", "source": "x", "values": {"a": [{"b": Infinity}]}}', "Infinity"),
        ('{"cmd": "event", "type": "x", "payload": {"a": -1e999}}', "too large"),
        ('{"cmd": "event", "type": "x", "payload": ' + '{"a":' * 50 + "1" + "}" * 51, "nested too deeply"),
        ('{"cmd": "object", "object": {"type": "a", "id": "b", "attributes": {"n": NaN}}}', "NaN"),
        (f'{{"cmd": "text", "text": "{"a" * 20_001}"}}', "too long"),
        (f'{{"cmd": "{"a" * 9_000}"}}', "unknown command"),
        ('{"cmd": ["text"]}', "unknown command"),
        ('{"cmd": "notify", "id": "", "text": "b"}', "“id” must be a text"),
    ],
)
def test_a_bad_line_is_refused_and_the_next_one_read(line: str, words: str) -> None:
    listener = Listener()
    channel = listener.channel()
    channel.handle_line(line)
    channel.handle_line('{"cmd": "stop"}')
    refused, taken = listener.acks
    assert not refused.ok and words in (refused.error or "")
    assert len(refused.cmd) <= 60 and len(refused.error or "") <= 400 and "\n" not in (refused.error or "")
    assert taken.ok and len(listener.commands) == 1


def test_a_dump_comes_back_in_the_acknowledgement() -> None:
    listener = Listener()
    listener.channel().handle_line(json.dumps({"cmd": "dump"}))
    assert listener.acks == [ControlAck(cmd="dump", ok=True, result={"widgets": [], "state": {}})]
    assert listener.commands == []


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (r'{"cmd": "text", "text": "\ud800 hi \ud83d\ude00"}', SendText(text="\ufffd hi 😀", via="control")),
        (r'{"cmd": "notify", "id": "\udfff", "text": "a\u0000b"}', Notify(id="\ufffd", text="a\ufffdb")),
        (
            r'{"cmd": "context", "source": "x", "values": {"\ud800": ["\udc00"]}}',
            UpdateContext(source="x", values={"\ufffd": ["\ufffd"]}),
        ),
        (
            r'{"cmd": "object", "object": {"type": "a", "id": "b", "attributes": {"c": "\ud800"}}}',
            FocusObject(object=ObjectRef(type="a", id="b", attributes={"c": "\ufffd"})),
        ),
    ],
)
def test_half_characters_are_replaced_wherever_they_stand(line: str, command: Command) -> None:
    listener = Listener()
    listener.channel().handle_line(line)
    assert listener.commands == [command] and listener.acks[0].ok


def test_what_fails_inside_is_told_and_the_next_line_read() -> None:
    acks: list[ControlAck] = []

    def fail(command: Command) -> bool:
        raise ZeroDivisionError

    channel = ControlChannel(submit=fail, acknowledge=acks.append, dump=dict)
    channel.handle_line('{"cmd": "stop"}')
    channel.handle_line('{"cmd": "reload"}')
    channel.handle_line('{"cmd": "dump"}')
    assert [ack.ok for ack in acks] == [False, False, True]
    assert "ZeroDivisionError" in (acks[0].error or "")


def read_all(tmp_path: Path, content: bytes) -> list[ControlAck]:
    """Let a channel read a file to its end."""
    listener, over = Listener(), threading.Event()
    (tmp_path / "lines").write_bytes(content)
    channel = ControlChannel(submit=listener.submit, acknowledge=listener.acks.append, dump=dict, on_end=over.set)
    channel.start(str(tmp_path / "lines"))
    assert over.wait(10)
    return listener.acks


def test_bytes_that_are_no_text_and_endless_lines_end_nothing(tmp_path: Path) -> None:
    stop = b'{"cmd": "stop"}'
    long_line = b'{"cmd": "text", "text": "' + b"x" * 3_000_000 + b'"}'
    bad = (b"\xff\xfe", b'{"cmd": "text", "text": "\xe4\xbd"}', long_line, stop.decode().encode("utf-16"))
    acks = read_all(tmp_path, b"\n".join(part for line in bad for part in (line, stop, b"", b"  ")) + b"\r\n" + stop)
    good = [ack for ack in acks if ack.ok]
    assert [ack.cmd for ack in good] == ["stop"] * 5
    assert any("too long" in (ack.error or "") for ack in acks), "and it is refused once"
    assert sum("too long" in (ack.error or "") for ack in acks) == 1


def test_a_reload_is_acknowledged_when_it_is_over_and_holds_up_nothing() -> None:
    listener = Listener()
    channel = listener.channel()
    for line in ('{"cmd": "reload"}', '{"cmd": "stop"}', '{"cmd": "reload"}'):
        channel.handle_line(line)
    assert [ack.cmd for ack in listener.acks] == ["stop"]
    first, second = (command for command in listener.commands if isinstance(command, Reload))
    assert first.on_done is not None and second.on_done is not None
    first.on_done("a.yml:3:5: unknown key\nb.yml:1:1: no YAML")
    second.on_done(None)
    second.on_done("not twice")
    assert listener.acks[1:] == [
        ControlAck(cmd="reload", ok=False, error="a.yml:3:5: unknown key\nb.yml:1:1: no YAML"),
        ControlAck(cmd="reload", ok=True),
    ]


def test_a_reload_that_will_not_come_any_more_is_told_at_the_end() -> None:
    listener = Listener()
    channel = listener.channel()
    channel.handle_line('{"cmd": "reload"}')
    channel.close()
    channel.close()
    assert [(ack.ok, "ending" in (ack.error or "")) for ack in listener.acks] == [(False, True)]


def test_a_command_that_nobody_takes_is_refused() -> None:
    listener = Listener(accepts=False)
    listener.channel().handle_line('{"cmd": "reload"}')
    assert not listener.acks[0].ok
