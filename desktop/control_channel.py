"""The control channel: JSON lines in, one acknowledgement each out. Format in the README, section "Control channel"."""

from __future__ import annotations

import itertools
import json
import logging
import math
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

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
from orchestrator.contracts.wellformed import mend, read_json

log = logging.getLogger(__name__)

MAX_LINE = 1_000_000
"""Bytes of a line; a longer one is refused and skipped."""
MAX_TEXT = 20_000
"""Characters of a text that is to be said or answered."""
_SHOWN_NAME = 60
Dump = Callable[[], Mapping[str, Any]]
Acknowledge = Callable[[ControlAck], None]


def _text(data: Mapping[str, Any], key: str, *, required: bool = True) -> str:
    value = data.get(key)
    if isinstance(value, str) and (value.strip() or not required):
        if len(value) > MAX_TEXT:
            raise ValueError(f"“{key}” is too long: at most {MAX_TEXT} characters")
        return value
    if value is None and not required:
        return ""
    raise ValueError(f"“{key}” must be a text")


def _seconds(data: Mapping[str, Any], key: str) -> float | None:
    """Return a time above 0, None if there is none; `json` alone would also read NaN and numbers beyond all bounds."""
    value = data.get(key)
    if value is None:
        return None
    try:
        seconds = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"“{key}” must be a number of seconds above 0")
    return seconds


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
    text = _text(data, "text")
    return Notify(
        id=_text(data, "id"),
        text=text,
        urgent=_flag(data, "urgent", False),
        expires_s=_seconds(data, "expires_s"),
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
    data = mend(data)
    name = data.get("cmd")
    parser = _PARSERS.get(name) if isinstance(name, str) else None
    if parser is None:
        shown = repr(name)[: _SHOWN_NAME + 2]
        raise ValueError(f"unknown command {shown}; known: {', '.join([*_PARSERS, 'dump'])}")
    return parser(data)


def read_line(line: str | bytes) -> tuple[str, dict[str, Any]]:
    """Return the command's name, as it is acknowledged, and the whole line. Raises `ValueError`."""
    data = read_json(line)
    if not isinstance(data, dict):
        raise ValueError("a command is a JSON object")
    return str(data.get("cmd"))[:_SHOWN_NAME], data


def print_ack(ack: ControlAck) -> None:
    """Write an acknowledgement to standard output."""
    record = {"type": ack.TYPE, "payload": to_json(ack)}
    can_take_all = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(record, ensure_ascii=not can_take_all) + "\n")
    sys.stdout.flush()


def require_readable(where: str) -> None:
    """Raise `InputError` control_unreadable if there is nothing to read commands from."""
    if where != "-" and not Path(where).exists():
        raise InputError("control_unreadable", f"cannot read the control channel {where}: no such file or pipe")


class ControlChannel:
    """Reads commands on a thread named `control` until the input ends; a bad line is refused and the next one read.

    Each line gets one acknowledgement; that of a reload comes when the reload is over, and later lines don't wait.
    """

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
        self._lock = threading.Lock()
        self._reloads: set[int] = set()
        self._numbers = itertools.count()

    def start(self, where: str) -> None:
        """Read from standard input (`-`) or a file or pipe. Raises `InputError` control_unreadable."""
        if where == "-":
            source: BinaryIO = sys.stdin.buffer
        else:
            try:
                source = Path(where).open("rb")  # noqa: SIM115 - read by the thread until its end
            except OSError as error:
                raise InputError(
                    "control_unreadable", f"cannot read the control channel {where}: {error.strerror}"
                ) from error
        threading.Thread(target=self._run, args=(source, where != "-"), name="control", daemon=True).start()

    def close(self) -> None:
        """Say of every reload that still waits that it will not come any more; for the end of the program."""
        with self._lock:
            waiting = list(self._reloads)
        for number in waiting:
            self._end_reload(number, "not reloaded: the program is ending")

    def _run(self, source: BinaryIO, is_ours: bool) -> None:
        try:
            while line := source.readline(MAX_LINE + 1):
                if len(line) > MAX_LINE:
                    while line and not line.endswith(b"\n"):
                        line = source.readline(MAX_LINE)
                    self._refuse("?", "the line is too long")
                elif line.strip():
                    self.handle_line(line)
        except (OSError, ValueError):
            log.debug("the control channel ended")
        finally:
            if is_ours:
                source.close()
        if self._on_end is not None:
            self._on_end()

    def handle_line(self, line: str | bytes) -> None:
        """Carry out one line and acknowledge it."""
        name = "?"
        result: Mapping[str, Any] | None = None
        try:
            name, data = read_line(line)
            if name == "dump":
                result = self._dump()
            else:
                command = parse_command(data)
                if isinstance(command, Reload):
                    self._reload()
                    return
                self._require_taken(command)
        except ValueError as error:
            self._refuse(name, str(error))
        except Exception as error:
            # Whatever one line does, the next one is read.
            log.exception("a line of the control channel failed")
            self._refuse(name, f"something went wrong inside Mynah: {type(error).__name__}")
        else:
            self._acknowledge(ControlAck(cmd=name, ok=True, result=result))

    def _require_taken(self, command: Command) -> None:
        if not self._submit(command):
            raise ValueError("not accepted: the program is starting or ending")

    def _reload(self) -> None:
        number = next(self._numbers)
        with self._lock:
            self._reloads.add(number)
        try:
            self._require_taken(Reload(on_done=lambda problem: self._end_reload(number, problem)))
        except Exception:
            with self._lock:
                self._reloads.discard(number)
            raise

    def _end_reload(self, number: int, problem: str | None) -> None:
        with self._lock:
            if number not in self._reloads:
                return
            self._reloads.discard(number)
        self._acknowledge(ControlAck(cmd="reload", ok=problem is None, error=problem))

    def _refuse(self, name: str, error: str) -> None:
        self._acknowledge(ControlAck(cmd=name, ok=False, error=error))
