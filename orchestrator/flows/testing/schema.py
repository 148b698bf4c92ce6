"""JSON Schema of test files (`mynah schema test`)."""

from __future__ import annotations

from typing import Any

from orchestrator.contracts.dialogue import LlmTask

_TEXTS = {"type": "array", "items": {"type": "string"}}
_MAPPING = {"type": "object"}


def _closed(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required or [], "properties": properties}


def test_schema() -> dict[str, Any]:
    """Return the schema of a test file."""
    completion = _closed(["task"], task={"enum": [t.value for t in LlmTask]}, completion={}, fails={"type": "boolean"})
    stub_fields: dict[str, Any] = {
        "returns": {},
        "raises": {"type": ["string", "boolean", "null"]},
        "delay_s": {"type": "number", "minimum": 0},
        "increment": {"type": "string"},
        "slots": _MAPPING,
        "messages": {"type": ["array", "string"]},
    }
    stub = _closed(**stub_fields, by_args={"type": "array", "items": _closed(["args"], args=_MAPPING, **stub_fields)})
    words = {"type": "object", "additionalProperties": {"type": ["array", "string"]}}
    expect = _closed(
        user_intent={"type": ["string", "null"]},
        bot_intents=_TEXTS,
        replies={"type": ["array", "string"]},
        reply_matches={"type": ["array", "string"]},
        heard={"type": "string"},
        commands={"type": "array", "items": _MAPPING},
        dropped={"type": "array"},
        slots=_MAPPING,
        vars=_MAPPING,
        active_flow={"type": ["string", "null"]},
        step={"type": ["string", "null"]},
        paused=_TEXTS,
        actions={"type": "array"},
        llm_calls={"type": "integer"},
        error={"type": "boolean"},
        prompt_has=words,
        prompt_lacks=words,
    )
    turn = _closed(
        user={"type": ["string", "number", "boolean"]},
        event={"type": ["object", "string"]},
        silence={"type": "number"},
        object=_MAPPING,
        vars=_MAPPING,
        llm={"type": "array", "items": completion},
        interrupt=_closed(
            ["after_words"], **{"after_words": {"type": "integer", "minimum": 0}, "with": {"type": "string"}}
        ),
        expect=expect,
    )
    test = _closed(
        ["name"],
        name={"type": "string"},
        description={"type": "string"},
        files={"type": ["array", "string"]},
        config=_MAPPING,
        embedding={"enum": ["exact", "real"], "default": "exact"},
        now={"type": "string"},
        language={"type": "string"},
        vars=_MAPPING,
        slots=_MAPPING,
        actions={"type": "object", "additionalProperties": {"oneOf": [stub, {"type": "null"}]}},
        turns={"type": "array", "items": turn},
        trace={"type": "array", "items": _closed(["after"], after=_MAPPING, next={})},
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Mynah conversation tests",
        **_closed(["tests"], tests={"type": "array", "items": test}),
    }
