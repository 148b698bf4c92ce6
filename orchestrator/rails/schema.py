"""JSON Schema of rails.yml, for editors."""

from __future__ import annotations

from typing import Any

from orchestrator.rails.program import VALUE_TYPES

_TEXTS: dict[str, Any] = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_STEPS: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/step"}}
_EVENT: dict[str, Any] = {
    "oneOf": [
        {"type": "string"},
        {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}},
    ]
}


def _step(key: str, value: dict[str, Any], **more: Any) -> dict[str, Any]:
    properties = {key: value, **more}
    return {"type": "object", "required": [key], "properties": properties, "additionalProperties": False}


def _steps() -> list[dict[str, Any]]:
    text = {"type": "string"}
    arm = {
        "type": "object",
        "properties": {"user": text, "event": _EVENT, "then": _STEPS},
        "oneOf": [{"required": ["user"]}, {"required": ["event"]}],
        "additionalProperties": False,
    }
    action = {
        "type": "object",
        "required": ["action"],
        "properties": {"action": text, "args": {"type": "object"}, "save_to": text, "on_error": _STEPS},
        "additionalProperties": False,
    }
    extract = {
        "type": "object",
        "required": ["var"],
        "properties": {"var": text, "instruction": text, "type": {"enum": list(VALUE_TYPES)}, "on_error": _STEPS},
        "additionalProperties": False,
    }
    return [
        _step("user", text),
        _step("event", _EVENT),
        _step("branch", {"type": "array", "items": arm, "minItems": 1}),
        _step("bot", text, interruptible={"type": "boolean"}, on_error=_STEPS),
        _step("say", text, interruptible={"type": "boolean"}, on_error=_STEPS),
        _step("do", {"oneOf": [text, action]}, on_error=_STEPS),
        _step("set", {"type": "object", "minProperties": 1}, on_error=_STEPS),
        _step("extract", extract, on_error=_STEPS),
        _step("if", {"type": ["string", "boolean"]}, then=_STEPS, **{"else": _STEPS}, on_error=_STEPS),
        _step("call", text, on_error=_STEPS),
        _step("stop", {"const": True}),
    ]


def rails_schema() -> dict[str, Any]:
    """Return the schema."""
    boolean = {"type": "boolean"}
    message = {"oneOf": [*_TEXTS["oneOf"], {"type": "object", "additionalProperties": _TEXTS}]}
    rail = {
        "type": "object",
        "required": ["steps"],
        "properties": {
            "kind": {"enum": ["rail", "subrail", "extension"]},
            "priority": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
            "interruptible": boolean,
            "allow_multiple": boolean,
            "always": boolean,
            "description": {"type": "string"},
            "steps": {**_STEPS, "minItems": 1},
        },
        "additionalProperties": False,
    }
    output = {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["rail"],
                "properties": {"rail": {"type": "string"}, "scope": {"enum": ["sentence", "reply"]}},
                "additionalProperties": False,
            },
        ]
    }
    settings = {
        "type": "object",
        "properties": {
            "embeddings_only": boolean,
            "similarity_threshold": {"oneOf": [{"const": "auto"}, {"type": "number", "minimum": -1, "maximum": 1}]},
            "similarity_scale": {"enum": ["cosine", "angular"]},
            "margin": {"type": "number", "minimum": 0, "maximum": 2},
            "fallback_intent": {"type": ["string", "null"]},
            "closed_intents": boolean,
            "single_call": boolean,
            "fallback_to_multiple_calls": boolean,
            "multi_step": boolean,
            "max_events": {"type": "integer", "minimum": 1, "maximum": 10_000},
        },
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rails.yml",
        "type": "object",
        "properties": {
            "user_intents": {"type": "object", "additionalProperties": {"oneOf": [*_TEXTS["oneOf"], {"type": "null"}]}},
            "bot_messages": {"type": "object", "additionalProperties": message},
            "rails": {"type": "object", "additionalProperties": rail},
            "input_rails": {"type": "array", "items": {"type": "string"}},
            "output_rails": {"type": "array", "items": output},
            "settings": settings,
            "slots": {"type": "object"},
            "flows": {"type": "object"},
        },
        "additionalProperties": False,
        "$defs": {"step": {"oneOf": _steps()}},
    }
