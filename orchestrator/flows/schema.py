"""JSON Schema of flow files (`mynah schema flows`)."""

from __future__ import annotations

from typing import Any

from orchestrator.flows.model import CONTEXT_FIELDS, MODES, SLOT_TYPES

Schema = dict[str, Any]

_TEXT: Schema = {
    "description": "a text with {{ … }}, or one per language",
    "oneOf": [
        {"type": ["string", "number"]},
        {
            "type": "object",
            "propertyNames": {"pattern": "^[a-z]{2}(-[A-Za-z]{2,4})?$"},
            "minProperties": 1,
            "additionalProperties": {"type": ["string", "number"]},
        },
    ],
}
_RESPONSE: Schema = {
    "anyOf": [
        {"$ref": "#/$defs/text"},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "mode": {"enum": list(MODES)},
                "text": {"$ref": "#/$defs/text"},
                "prompt": {"$ref": "#/$defs/text"},
                "interruptible": {"type": "boolean"},
                "object": {"type": "object", "required": ["type", "id"]},
            },
        },
    ],
}
_CONDITION: Schema = {
    "type": ["string", "boolean", "number"],
    "description": "an expression over slots, context, world, vars, user, now",
}
_LINKS: Schema = {
    "oneOf": [
        {"type": "string", "description": "the id of a step"},
        {
            "type": "array",
            "items": {
                "oneOf": [
                    {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["if", "then"],
                        "properties": {"if": {"$ref": "#/$defs/condition"}, "then": {"type": "string"}},
                    },
                    {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["else"],
                        "properties": {"else": {"type": "string"}},
                    },
                ]
            },
        },
    ],
}


def _step(kind: str, required: list[str], **properties: Any) -> Schema:
    common = {
        "id": {"type": "string"},
        "type": {"const": kind},
        "description": {"type": "string"},
        "next": {"$ref": "#/$defs/links"},
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "type", *required],
        "properties": {**common, **properties},
    }


def _steps() -> list[Schema]:
    response = {"$ref": "#/$defs/response"}
    collect = _step(
        "collect",
        ["slot_name", "response", "next"],
        slot_name={"type": "string"},
        response=response,
        validation={
            "type": "object",
            "additionalProperties": False,
            "required": ["condition"],
            "properties": {"condition": {"$ref": "#/$defs/condition"}, "failure_response": response},
        },
        ask_even_if_known={"type": "boolean"},
        unrecognized_response=response,
        last_attempt_response=response,
        max_attempts={"type": "integer", "minimum": 1, "maximum": 20, "default": 3},
        on_give_up={
            "oneOf": [
                {"const": "cancel"},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["default"],
                    "properties": {"default": {}},
                },
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["next"],
                    "properties": {"next": {"type": "string"}},
                },
            ]
        },
        silence_response=response,
        silence_timeout_s={"type": "number", "minimum": 0.5, "maximum": 3600},
        interruptible={"type": "boolean"},
        skippable={"type": "boolean"},
        from_object={
            "type": "object",
            "additionalProperties": False,
            "required": ["type", "field"],
            "properties": {"type": {"type": "string"}, "field": {"type": "string"}},
        },
    )
    action = _step(
        "action",
        ["action", "next"],
        action={"type": "string"},
        args={"type": ["object", "string", "null"]},
        timeout_s={"type": "number", "minimum": 0.01, "maximum": 600},
        on_error={"type": "string"},
    )
    return [
        _step("start", ["next"]),
        collect,
        action,
        _step("set_slots", ["slots", "next"], slots={"type": "object", "minProperties": 1}),
        _step("call", ["flow", "next"], flow={"type": "string"}),
        _step("end", []),
    ]


def flow_definitions() -> dict[str, Schema]:
    """Return the definitions that other schemas share."""
    slot: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "type": {"enum": list(SLOT_TYPES), "default": "text"},
            "label": {"$ref": "#/$defs/text"},
            "description": {"$ref": "#/$defs/text"},
            "pattern": {"type": "string"},
            "default": {},
            "persist": {"type": "boolean", "default": False},
            "filled_by": {"enum": ["user", "action"], "default": "user"},
            "choices": {"type": ["array", "object"]},
        },
    }
    flow: Schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["steps"],
        "properties": {
            "name": {"$ref": "#/$defs/text"},
            "description": {"$ref": "#/$defs/text"},
            "slots": {"type": "array", "items": {"type": "string"}},
            "examples": {"description": "what users say; {slot} stands for a value", "type": ["array", "object"]},
            "if": {"$ref": "#/$defs/condition"},
            "confirm_interrupt": {"type": "boolean"},
            "on_complete": {"type": "string", "description": "a step of this flow or another flow"},
            "steps": {"type": "array", "minItems": 1, "items": {"oneOf": _steps()}},
        },
    }
    return {"text": _TEXT, "response": _RESPONSE, "condition": _CONDITION, "links": _LINKS, "slot": slot, "flow": flow}


def flows_schema() -> Schema:
    """Return the schema of a flow file. Sections of rails may stand in the same file (`mynah schema rails`)."""
    contexts = {name: sorted(fields) for name, fields in CONTEXT_FIELDS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Mynah flows",
        "type": "object",
        "properties": {
            "slots": {
                "type": "object",
                "additionalProperties": {"oneOf": [{"$ref": "#/$defs/slot"}, {"type": "null"}]},
            },
            "flows": {"type": "object", "additionalProperties": {"$ref": "#/$defs/flow"}},
        },
        "$defs": flow_definitions(),
        "x-system-flow-contexts": contexts,
    }
