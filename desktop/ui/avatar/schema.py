"""The JSON Schema of `avatar.yaml`."""

from __future__ import annotations

from typing import Any

GROUPS = ("still", "body", "head", "face")
"""What a layer moves with."""

DRIVES = (
    *("tail", "wing_left", "wing_right", "crest", "blush", "eyes", "iris"),
    *("mouth", "beak_lower", "beak_upper"),
)
"""The motions of its own that a layer may have."""

FORMAT = 1

_NUMBER = {"type": "number"}
_POINT = {
    "type": "array",
    "items": _NUMBER,
    "minItems": 2,
    "maxItems": 2,
    "description": "x and y in canvas units",
}
_COLOUR = {"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"}


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def avatar_schema() -> dict[str, Any]:
    """Return the schema; what it can't say (files exist, are inside the pack and are drawings) `load_pack` checks."""
    layer = _object(
        {
            "id": {"type": "string", "minLength": 1},
            "file": {
                "type": "string",
                "pattern": r"\.svg$",
                "description": "inside the pack; its viewBox is its place",
            },
            "group": {"enum": list(GROUPS), "default": "still"},
            "drive": {"enum": list(DRIVES)},
            "pivot": _POINT,
        },
        ("id", "file"),
    )
    eyes = {"centres": {"type": "array", "items": _POINT, "minItems": 1, "maxItems": 2}, "lid": _COLOUR}
    eyes |= {"lid_edge": _COLOUR, "radius": _NUMBER, "iris_travel": _NUMBER}
    shape = _POINT | {"description": "opening from 0 to 1, and width where 1 is neutral"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Mynah avatar pack",
        **_object(
            {
                "format": {"const": FORMAT},
                "name": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
                "licence": {"type": "string"},
                "canvas": _POINT,
                "layers": {"type": "array", "items": layer, "minItems": 1},
                "neck": _POINT,
                "ground": _POINT,
                "eyes": _object(eyes, ("centres", "radius", "iris_travel", "lid", "lid_edge")),
                "mouth": _object({"open_px": _NUMBER}, ("open_px",)),
                "visemes": {"type": "object", "additionalProperties": shape},
            },
            ("format", "name", "canvas", "layers", "neck", "ground", "eyes", "mouth", "visemes"),
        ),
    }
