"""Reads an avatar pack: a folder with `avatar.yaml` and its SVG layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from desktop.ui.avatar.schema import DRIVES, FORMAT, GROUPS, avatar_schema
from orchestrator.contracts.errors import InputError

__all__ = ["AvatarPack", "Layer", "Point", "avatar_schema", "load_pack"]

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One drawing and how it moves; `pivot` is in canvas units."""

    id: str
    file: Path
    group: str
    drive: str | None
    pivot: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class AvatarPack:
    """A character ready to be drawn; all places and lengths in canvas units."""

    folder: Path
    names: Mapping[str, str]
    canvas: Point
    layers: tuple[Layer, ...]
    neck: Point
    ground: Point
    eye_centres: tuple[Point, ...]
    eye_radius: float
    iris_travel: float
    lid: str
    lid_edge: str
    mouth_open: float
    visemes: Mapping[str, tuple[float, float]]

    def name(self, language: str) -> str:
        """Return the character's name in `language`, else in any."""
        return self.names.get(language) or next(iter(self.names.values()))


def _point(value: object, what: str) -> Point:
    match value:
        case [int() | float() as x, int() | float() as y]:
            return float(x), float(y)
    raise ValueError(f"{what} must be two numbers")


def _layer(folder: Path, item: Mapping[str, Any], canvas: Point) -> Layer:
    name = str(item["id"])
    file = (folder / str(item["file"])).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"layer {name}: the file must be inside the pack")
    if not file.is_file():
        raise ValueError(f"layer {name}: the file {item['file']} is missing")
    group, drive = item.get("group", "still"), item.get("drive")
    if group not in GROUPS:
        raise ValueError(f"layer {name}: group must be one of {', '.join(GROUPS)}")
    if drive is not None and drive not in DRIVES:
        raise ValueError(f"layer {name}: drive must be one of {', '.join(DRIVES)}")
    middle = [canvas[0] / 2, canvas[1] / 2]
    return Layer(id=name, file=file, group=group, drive=drive, pivot=_point(item.get("pivot", middle), "pivot"))


def load_pack(folder: Path) -> AvatarPack:
    """Read the pack in `folder`; raises `InputError` (`avatar_invalid`) with the file and what is wrong with it."""
    source = folder / "avatar.yaml"
    try:
        data = yaml.safe_load(source.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT}")
        unknown = sorted(set(data) - set(avatar_schema()["properties"]))
        if unknown:
            raise ValueError(f"unknown key {unknown[0]}")
        canvas = _point(data["canvas"], "canvas")
        eyes = data["eyes"]
        return AvatarPack(
            folder=folder,
            names={str(k): str(v) for k, v in data["name"].items()},
            canvas=canvas,
            layers=tuple(_layer(folder, item, canvas) for item in data["layers"]),
            neck=_point(data["neck"], "neck"),
            ground=_point(data["ground"], "ground"),
            eye_centres=tuple(_point(p, "eyes.centres") for p in eyes["centres"]),
            eye_radius=float(eyes["radius"]),
            iris_travel=float(eyes["iris_travel"]),
            lid=str(eyes["lid"]),
            lid_edge=str(eyes["lid_edge"]),
            mouth_open=float(data["mouth"]["open_px"]),
            visemes={str(k): _point(v, f"visemes.{k}") for k, v in data["visemes"].items()},
        )
    except KeyError as error:
        raise InputError("avatar_invalid", f"{source}: {error.args[0]} is missing", part="avatar") from error
    except (OSError, ValueError, TypeError, AttributeError, yaml.YAMLError) as error:
        line = " ".join(str(error).split())
        raise InputError("avatar_invalid", f"{source}: {line}", part="avatar") from error
