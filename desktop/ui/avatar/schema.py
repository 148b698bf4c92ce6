"""The JSON Schema of `avatar.yaml`, and the words that the format knows."""

from __future__ import annotations

from typing import Any

GROUPS = ("still", "body", "head", "face")
"""What a layer moves with."""

DRIVES = (
    *("tail", "wing_left", "wing_right", "crest", "ear_left", "ear_right", "blush", "eyes", "iris"),
    *("mouth", "beak_lower", "beak_upper", "lips"),
)
"""The motions of its own that a layer may have."""

CONDITIONS = ("mouth", "eyes", "expression", "state")
"""What a layer may be shown by."""

EYES = ("open", "closed")
"""What the eyes can be, for `show`; drawn eyes close smoothly by themselves."""

FORMAT = 1
MAX_LAYERS = 64
MAX_CANVAS = 4096

VISEMES: dict[str, tuple[float, float]] = {
    "aa": (1.0, 1.0),
    "ae": (0.78, 1.06),
    "ee": (0.42, 1.12),
    "ih": (0.5, 1.0),
    "oh": (0.74, 0.84),
    "oo": (0.48, 0.72),
    "fv": (0.2, 0.96),
    "mbp": (0.0, 1.0),
    "l": (0.42, 1.0),
    "th": (0.3, 1.02),
    "sz": (0.24, 1.06),
    "r": (0.4, 0.86),
}
"""Mouth shapes of a pack that names none: opening from 0 to 1, width around 1."""

_NUMBER = {"type": "number"}
_POINT = {
    "type": "array",
    "items": _NUMBER,
    "minItems": 2,
    "maxItems": 2,
    "description": "x and y in canvas units",
}
_COLOUR = {"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"}
_NAMES = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    ]
}


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def avatar_schema() -> dict[str, Any]:
    """Return the schema; what it can't say (files exist, are inside the pack and are drawings) `check_pack` checks."""
    show = _object(dict.fromkeys(CONDITIONS, _NAMES), ())
    layer = _object(
        {
            "id": {"type": "string", "minLength": 1},
            "file": {
                "type": "string",
                "pattern": r"\.(svg|png|SVG|PNG)$",
                "description": "inside the pack; the viewBox of an SVG is its place, a PNG fills the canvas",
            },
            "group": {"enum": list(GROUPS), "default": "still"},
            "drive": {"enum": list(DRIVES)},
            "pivot": _POINT,
            "at": _POINT | {"description": "left top corner of the picture, if it is not where the file says"},
            "size": _POINT | {"description": "width and height of the picture in canvas units"},
            "show": show | {"description": "the layer is drawn only while all of these hold"},
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
                "author": {"type": "string"},
                "canvas": _POINT,
                "layers": {"type": "array", "items": layer, "minItems": 1, "maxItems": MAX_LAYERS},
                "neck": _POINT,
                "ground": _POINT,
                "eyes": _object(eyes, ("centres", "radius", "iris_travel", "lid", "lid_edge")),
                "mouth": _object({"open_px": _NUMBER}, ("open_px",)),
                "visemes": {"type": "object", "additionalProperties": shape},
            },
            ("format", "name", "canvas", "layers"),
        ),
    }
