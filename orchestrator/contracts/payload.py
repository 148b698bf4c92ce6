"""Base of all payloads, and how they are written into the events file."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Base of all payloads.

    `TEXT_FIELDS` name the fields that hold what people said; they are blanked by `--events-no-text`.
    """

    TYPE: ClassVar[str] = ""
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ()


def payload_classes() -> dict[str, type[Payload]]:
    """Return every payload class by its public type name."""
    found: dict[str, type[Payload]] = {}
    pending = list(Payload.__subclasses__())
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        found[cls.TYPE] = cls
    return found


_KEEP_SNAKE = frozenset({"active_task", "system_flow"})
_SUFFIX = re.compile(r"^(?P<stem>.*?)(?P<unit>(_at)?_(s|db|ms|hz))$")
_RENAMED = {"from_state": "from", "to_state": "to"}


def json_name(name: str) -> str:
    """Return the field's name in the events file: camelCase, but a unit suffix stays (`char_end`, `held_s`)."""
    if name in _RENAMED:
        return _RENAMED[name]
    if name in _KEEP_SNAKE or name == "at_s":
        return name
    match = _SUFFIX.match(name)
    stem, unit = (match["stem"], match["unit"]) if match else (name, "")
    head, *rest = stem.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest) + unit


def to_json(value: Any) -> Any:
    """Turn payload values into what `json` can write; dataclasses by `json_name`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {json_name(f.name): to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(v) for v in value]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        # JSON has no word for what is no number.
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return str(value)
