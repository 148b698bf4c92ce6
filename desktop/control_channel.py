"""The control channel: JSON lines in, one acknowledgement each out. Format in the README, section "Control channel"."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from orchestrator.contracts.commands import (
    Command,
    FocusObject,
    MuteMicrophone,
    MuteVoice,
    NewSession,
    Notify,
    PostExternalEvent,
    PushToTalk,
    Quit,
    Reload,
    SendText,
    SetAsleep,
    Stop,
    UpdateContext,
)
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import ControlAck, ObjectRef, to_json

log = logging.getLogger(__name__)

MAX_LINE = 1_000_000
Dump = Callable[[], Mapping[str, Any]]
Acknowledge = Callable[[ControlAck], None]


def _text(data: Mapping[str, Any], key: str, *, required: bool = True) -> str:
    value = data.get(key)
    if isinstance(value, str) and (value.strip() or not required):
        return value
    if value is None and not required:
        return ""
    raise ValueError(f"“{key}” must be a text")


def _mapping(data: Mapping[str, Any], key: str, *, required: bool = True) -> Mapping[str, Any]:
    value = data.get(key)
    if isinstance(value, dict):
        return value
    if value is None and not required:
        return {}
    raise ValueError(f"“{key}” must be an object")


def _flag(data: Mapping[str, Any], key: str, default: bool | None = None) -> bool:
    value = data.get(key, default)
    if isinstance(value, bool):
        return value
    raise ValueError(f"“{key}” must be true or false")


def _object(value: Any) -> ObjectRef | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("“object” must be an object")
    known = {"type", "id", "title", "attributes"}
    unknown = set(value) - known
    if unknown:
        raise ValueError(f"“object” has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}")
    return ObjectRef(
        type=_text(value, "type"),
        id=_text(value, "id"),
        title=_text(value, "title", required=False),
        attributes=_mapping(value, "attributes", required=False),
    )


def _notify(data: Mapping[str, Any]) -> Notify:
    expires = data.get("expires_s")
    if expires is not None and (isinstance(expires, bool) or not isinstance(expires, (int, float)) or expires <= 0):
        raise ValueError("“expires_s” must be a number of seconds above 0")
    text = _text(data, "text")
    return Notify(
        id=_text(data, "id"),
        text=text,
        urgent=_flag(data, "urgent", False),
        expires_s=None if expires is None else float(expires),
    )


def _focus(data: Mapping[str, Any]) -> FocusObject:
    found = _object(data.get("object"))
    if found is None:
        raise ValueError("“object” is missing")
    return FocusObject(object=found)


_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], Command]] = {
    "text": lambda d: SendText(text=_text(d, "text"), via="control", object=_object(d.get("object"))),
    "stop": lambda _: Stop(by="button"),
    "ptt_down": lambda _: PushToTalk(down=True),
    "ptt_up": lambda _: PushToTalk(down=False),
    "sleep": lambda d: SetAsleep(on=_flag(d, "on")),
    "mute_mic": lambda d: MuteMicrophone(on=_flag(d, "on")),
    "mute_voice": lambda d: MuteVoice(on=_flag(d, "on")),
    "notify": _notify,
    "context": lambda d: UpdateContext(source=_text(d, "source"), values=_mapping(d, "values")),
    "event": lambda d: PostExternalEvent(type=_text(d, "type"), payload=_mapping(d, "payload", required=False)),
    "object": _focus,
    "reload": lambda _: Reload(),
    "new_session": lambda _: NewSession(),
    "quit": lambda _: Quit(),
}


def parse_command(data: Mapping[str, Any]) -> Command:
    """Return the command of a line. Raises `ValueError` with one clear sentence."""
    name = data.get("cmd")
    parser = _PARSERS.get(name) if isinstance(name, str) else None
    if parser is None:
        raise ValueError(f"unknown command {name!r}; known: {', '.join([*_PARSERS, 'dump'])}")
    return parser(data)


def print_ack(ack: ControlAck) -> None:
    """Write an acknowledgement to standard output."""
    record = {"type": ack.TYPE, "payload": to_json(ack)}
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def require_readable(where: str) -> None:
    """Raise `InputError` control_unreadable if there is nothing to read commands from."""
    if where != "-" and not Path(where).exists():
        raise InputError("control_unreadable", f"cannot read the control channel {where}: no such file or pipe")


class ControlChannel:
    """Reads commands on a thread named `control` until the input ends; a bad line is refused and the next one read."""

    def __init__(
        self,
        *,
        submit: Callable[[Command], bool],
        acknowledge: Acknowledge,
        dump: Dump,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """Hand commands to `submit`, answers to `acknowledge`; `dump` makes the result of `dump`."""
        self._submit = submit
        self._acknowledge = acknowledge
        self._dump = dump
        self._on_end = on_end

    def start(self, where: str) -> None:
        """Read from standard input (`-`) or a file or pipe. Raises `InputError` control_unreadable."""
        if where == "-":
            source: TextIO = sys.stdin
        else:
            try:
                source = Path(where).open(encoding="utf-8")  # noqa: SIM115 - read by the thread until its end
            except OSError as error:
                raise InputError(
                    "control_unreadable", f"cannot read the control channel {where}: {error.strerror}"
                ) from error
        threading.Thread(target=self._run, args=(source,), name="control", daemon=True).start()

    def _run(self, source: TextIO) -> None:
        try:
            for line in source:
                if line.strip():
                    self.handle_line(line)
        except (OSError, ValueError):
            log.debug("the control channel ended")
        if self._on_end is not None:
            self._on_end()

    def handle_line(self, line: str) -> None:
        """Carry out one line and acknowledge it."""
        name = "?"
        result: Mapping[str, Any] | None = None
        try:
            if len(line) > MAX_LINE:
                raise ValueError("the line is too long")
            try:
                data = json.loads(line)
            except ValueError as error:
                raise ValueError(f"not JSON: {error}") from error
            except RecursionError:
                raise ValueError("not JSON that can be read: it is nested too deeply") from None
            if not isinstance(data, dict):
                raise ValueError("a command is a JSON object")
            name = str(data.get("cmd"))
            if name == "dump":
                result = self._dump()
            elif not self._submit(parse_command(data)):
                raise ValueError("not accepted: the program is starting or ending")
        except ValueError as error:
            self._acknowledge(ControlAck(cmd=name, ok=False, error=str(error)))
            return
        self._acknowledge(ControlAck(cmd=name, ok=True, result=result))
