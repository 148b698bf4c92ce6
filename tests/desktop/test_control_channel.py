"""Lines of the control channel: each is carried out and acknowledged, or refused with a sentence."""

from __future__ import annotations

import json
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
    ],
)
def test_a_bad_line_is_refused_and_the_next_one_read(line: str, words: str) -> None:
    listener = Listener()
    channel = listener.channel()
    channel.handle_line(line)
    channel.handle_line('{"cmd": "stop"}')
    refused, taken = listener.acks
    assert not refused.ok and words in (refused.error or "")
    assert taken.ok and len(listener.commands) == 1


def test_a_dump_comes_back_in_the_acknowledgement() -> None:
    listener = Listener()
    listener.channel().handle_line(json.dumps({"cmd": "dump"}))
    assert listener.acks == [ControlAck(cmd="dump", ok=True, result={"widgets": [], "state": {}})]
    assert listener.commands == []


def test_a_command_that_nobody_takes_is_refused() -> None:
    listener = Listener(accepts=False)
    listener.channel().handle_line('{"cmd": "reload"}')
    assert not listener.acks[0].ok
