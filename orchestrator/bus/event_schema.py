"""JSON Schema of a record of the events file, made from the payload classes."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from orchestrator.contracts.events import Payload, json_name, payload_classes
from orchestrator.contracts.lanes import Lane, PriorityClass

_IDS = ("sessionId", "utteranceId", "generationId", "targetGenerationId", "intentId", "correlationId")
_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number"}
_HIDDEN = frozenset({"words", "visemes"})


def _schema_of(hint: Any) -> dict[str, Any]:
    while isinstance(hint, typing.NewType):
        hint = hint.__supertype__
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_schema_of(part) for part in typing.get_args(hint)]}
    if hint is type(None):
        return {"type": "null"}
    if origin is tuple:
        return {"type": "array"}
    if isinstance(hint, type) and issubclass(hint, str):
        return {"type": "string"}
    if origin is not None or dataclasses.is_dataclass(hint):
        return {"type": "object"}
    return {}


def _payload_schema(cls: type[Payload]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    shown = [field.name for field in dataclasses.fields(cls) if field.name not in _HIDDEN]
    blanked = set(cls.TEXT_FIELDS)
    properties: dict[str, Any] = {}
    for name in shown:
        schema = _schema_of(hints[name])
        properties[json_name(name)] = {"anyOf": [schema, {"type": "null"}]} if name in blanked else schema
    return {
        "type": "object",
        "description": (cls.__doc__ or "").strip().splitlines()[0],
        "properties": properties,
        "required": [json_name(name) for name in shown],
        "additionalProperties": False,
    }


def events_schema() -> dict[str, Any]:
    """Return the schema of one line of the events file, version 1."""
    classes = {name: cls for name, cls in sorted(payload_classes().items()) if name}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "events file, one JSON object a line",
        "type": "object",
        "required": ["t", "seq", "type", "source", "payload"],
        "properties": {
            "t": {"type": "number", "description": "monotonic seconds when written"},
            "seq": {"type": "integer", "minimum": 1},
            "type": {"enum": list(classes)},
            "source": {"type": "string"},
            **{name: {"type": "string"} for name in _IDS},
            "lane": {"enum": [lane.value for lane in Lane]},
            "priorityClass": {"enum": [member.name.lower() for member in PriorityClass]},
            "priorityScore": {"type": "integer"},
            "policyReason": {"type": "string"},
            "payload": {"type": "object"},
        },
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}},
                "then": {"properties": {"payload": _payload_schema(cls)}},
            }
            for name, cls in classes.items()
        ],
    }
