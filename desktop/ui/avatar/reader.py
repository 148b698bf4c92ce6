"""Reads an avatar pack with all its faults at once, each with its place. Nothing in a pack makes it raise. No Qt."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from desktop.ui.avatar.drawing_check import Drawing, DrawingError, check_drawing
from desktop.ui.avatar.pack import ALWAYS, PACK_FILE, AvatarPack, Box, Eyes, Layer, Point, Show
from desktop.ui.avatar.pose import EXPRESSIONS, STATES
from desktop.ui.avatar.schema import (
    CONDITIONS,
    DRIVES,
    EYES,
    FORMAT,
    GROUPS,
    MAX_CANVAS,
    MAX_LAYERS,
    VISEMES,
    avatar_schema,
)
from orchestrator.flows.source import (
    ListNode,
    MapNode,
    Node,
    Problem,
    Report,
    ScalarNode,
    did_you_mean,
    read_source,
)

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[^\x00-\x1f]{1,80}")
_MOUTHS = ("open", "closed")


def check_pack(folder: Path) -> tuple[AvatarPack | None, tuple[Problem, ...]]:
    """Return the pack in `folder`, none if it can't be drawn, and everything that is wrong with it."""
    document = read_source(folder / PACK_FILE)
    if document.problems:
        return None, document.problems
    if not isinstance(document.root, MapNode):
        fault = Problem(
            file=document.file, line=1, col=1, end=(1, 1), code="avatar_empty", message="expected `key: value` lines"
        )
        return None, (fault,)
    reader = _Reader(folder, document.root)
    pack = reader.read()
    problems = tuple(reader.report.sorted())
    return (None if problems else pack), problems


@dataclass
class _Reader:
    folder: Path
    root: MapNode
    report: Report = field(default_factory=Report)

    def read(self) -> AvatarPack | None:
        known = avatar_schema()
        self._keys(self.root, "the pack", tuple(known["properties"]), tuple(known["required"]))
        self._format()
        names = self._names()
        canvas = self._canvas()
        visemes = self._visemes()
        if canvas is None:
            return None
        layers = self._layers(canvas, visemes)
        shown = [layer.show for layer in layers]
        middle, bottom = (canvas[0] / 2, canvas[1] * 0.55), (canvas[0] / 2, canvas[1] * 0.92)
        return AvatarPack(
            folder=self.folder,
            names=names or {"en": self.folder.name},
            canvas=canvas,
            layers=tuple(layers),
            neck=self._point(self.root, "neck", middle),
            ground=self._point(self.root, "ground", bottom),
            eyes=self._eyes(),
            mouth_open=self._mouth_open(canvas),
            visemes=visemes,
            licence=self._text(self.root, "licence"),
            claimed_mouths=frozenset(name for show in shown for name in show.mouth) - set(_MOUTHS),
            claimed_expressions=frozenset(name for show in shown for name in show.expression),
        )

    # --- parts -----------------------------------------------------------------------------------------

    def _format(self) -> None:
        node = self.root.get("format")
        if node is not None and node.plain() != FORMAT:
            self._fault(node, f"format must be {FORMAT}")

    def _names(self) -> dict[str, str]:
        node = self.root.get("name")
        if node is None:
            return {}
        if not isinstance(node, MapNode) or not node.entries:
            self._fault(node, "name must be a mapping of language to name, like {en: Mynah}")
            return {}
        found: dict[str, str] = {}
        for language, (_, value) in node.entries.items():
            text = value.text.strip() if isinstance(value, ScalarNode) else ""
            if _NAME.fullmatch(text):
                found[language] = text
            else:
                self._fault(value, f"name.{language} must be a short text")
        return found

    def _canvas(self) -> Point | None:
        node = self.root.get("canvas")
        if node is None:
            return None
        found = self._pair(node, "canvas")
        if found is not None and not all(16 <= v <= MAX_CANVAS for v in found):
            self._fault(node, f"canvas must be from 16 to {MAX_CANVAS} units a side")
            return None
        return found

    def _visemes(self) -> dict[str, tuple[float, float]]:
        node = self.root.get("visemes")
        if node is None:
            return dict(VISEMES)
        if not isinstance(node, MapNode):
            self._fault(node, "visemes must be a mapping of mouth shape to [opening, width]")
            return dict(VISEMES)
        found: dict[str, tuple[float, float]] = {}
        for name, (key, value) in node.entries.items():
            if name not in VISEMES:
                self._fault(key, f"unknown mouth shape {name}", did_you_mean(name, VISEMES))
                continue
            pair = self._pair(value, f"visemes.{name}")
            if pair is None:
                continue
            if not 0.0 <= pair[0] <= 1.0 or not 0.2 <= pair[1] <= 2.0:
                self._fault(value, f"visemes.{name}: the opening is from 0 to 1, the width from 0.2 to 2")
                continue
            found[name] = pair
        return found

    def _eyes(self) -> Eyes | None:
        node = self.root.get("eyes")
        if node is None:
            return None
        if not isinstance(node, MapNode):
            self._fault(node, "eyes must be a mapping")
            return None
        keys = ("centres", "radius", "iris_travel", "lid", "lid_edge")
        self._keys(node, "eyes", keys, keys)
        centres = node.get("centres")
        points: list[Point] = []
        if isinstance(centres, ListNode) and 1 <= len(centres.items) <= 2:
            found = [self._pair(item, "eyes.centres") for item in centres.items]
            points = [point for point in found if point is not None]
        elif centres is not None:
            self._fault(centres, "eyes.centres must be one or two points")
        if not points:
            return None
        return Eyes(
            centres=tuple(points),
            radius=self._number(node, "eyes", "radius", 1.0, low=1.0),
            iris_travel=self._number(node, "eyes", "iris_travel", 0.0),
            lid=self._colour(node, "lid"),
            lid_edge=self._colour(node, "lid_edge"),
        )

    def _mouth_open(self, canvas: Point) -> float:
        node = self.root.get("mouth")
        if node is None:
            return canvas[1] / 16
        if not isinstance(node, MapNode):
            self._fault(node, "mouth must be a mapping")
            return 0.0
        self._keys(node, "mouth", ("open_px",), ("open_px",))
        return self._number(node, "mouth", "open_px", 0.0)

    # --- layers ----------------------------------------------------------------------------------------

    def _layers(self, canvas: Point, visemes: Iterable[str]) -> list[Layer]:
        node = self.root.get("layers")
        if node is None:
            return []
        if not isinstance(node, ListNode) or not node.items:
            self._fault(node, "layers must be a list of layers, the one behind first")
            return []
        if len(node.items) > MAX_LAYERS:
            self._fault(node, f"a pack has at most {MAX_LAYERS} layers")
            return []
        made: list[Layer] = []
        seen: dict[str, ScalarNode] = {}
        for item in node.items:
            if not isinstance(item, MapNode):
                self._fault(item, "a layer must be a mapping, like {id: body, file: body.svg}")
                continue
            layer = self._layer(item, canvas, tuple(visemes))
            name = item.get("id")
            if layer is None or not isinstance(name, ScalarNode):
                continue
            if layer.id in seen:
                self._fault(name, f"layer {layer.id}: the id stands twice; the first is in line {seen[layer.id].line}")
                continue
            seen[layer.id] = name
            made.append(layer)
        return made

    def _layer(self, item: MapNode, canvas: Point, visemes: Sequence[str]) -> Layer | None:
        name = self._text(item, "id") or "?"
        what = f"layer {name}"
        allowed = ("id", "file", "group", "drive", "pivot", "at", "size", "show")
        self._keys(item, what, allowed, ("id", "file"))
        group = self._choice(item, what, "group", GROUPS) or "still"
        drive = self._choice(item, what, "drive", DRIVES)
        pivot = self._point(item, "pivot", (canvas[0] / 2, canvas[1] / 2))
        show = self._show(item, what, visemes)
        found = self._drawing(item, what)
        if found is None or name == "?":
            return None
        file, drawing = found
        box = self._box(item, what, canvas, drawing)
        if box is None:
            return None
        return Layer(id=name, file=file, group=group, drive=drive, pivot=pivot, box=box, show=show)

    def _drawing(self, item: MapNode, what: str) -> tuple[Path, Drawing] | None:
        node = item.get("file")
        if node is None:
            return None
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or "\0" in node.text:
            self._fault(node, f"{what}: file must be the name of an SVG or PNG file")
            return None
        try:
            file = (self.folder / node.text).resolve()
            is_inside = file.is_relative_to(self.folder.resolve())
            is_file = is_inside and file.is_file()
        except (OSError, ValueError, RuntimeError):
            self._fault(node, f"{what}: file must be the name of an SVG or PNG file")
            return None
        if not is_inside:
            self._fault(node, f"{what}: the file must be inside the pack")
        elif not is_file:
            near = did_you_mean(node.text, self._files())
            self._fault(node, f"{what}: the file {node.text[:80]} is missing", near)
        elif file.suffix.casefold() not in (".svg", ".png"):
            self._fault(node, f"{what}: {file.name[:80]} is neither an SVG nor a PNG file")
        else:
            try:
                return file, check_drawing(file)
            except DrawingError as error:
                at = f" ({file.name}:{error.line}:{error.column})" if error.line else ""
                self._fault(node, f"{what}: the drawing {file.name[:80]} {error}{at}")
        return None

    def _files(self) -> list[str]:
        try:
            return [p.name for p, _ in zip(self.folder.iterdir(), range(500), strict=False)]
        except OSError:
            return []

    def _box(self, item: MapNode, what: str, canvas: Point, drawing: Drawing) -> Box | None:
        box = drawing.box or (0.0, 0.0, *canvas)
        at = self._point(item, "at", (box[0], box[1]))
        width, height = self._point(item, "size", (box[2], box[3]))
        place: Node = item.get("size") or item.get("file") or item
        if not (width >= 1 and height >= 1):
            self._fault(place, f"{what}: a picture is at least 1 × 1")
        elif width > 2 * canvas[0] or height > 2 * canvas[1]:
            self._fault(place, f"{what}: the drawing is more than twice as large as the canvas")
        else:
            return (*at, width, height)
        return None

    def _show(self, item: MapNode, what: str, visemes: Sequence[str]) -> Show:
        node = item.get("show")
        if node is None:
            return ALWAYS
        if not isinstance(node, MapNode):
            self._fault(node, f"{what}: show must be a mapping, like {{mouth: open}}")
            return ALWAYS
        self._keys(node, f"{what}: show", CONDITIONS, ())
        allowed: dict[str, Sequence[str]] = {
            "mouth": (*_MOUTHS, *visemes),
            "eyes": EYES,
            "expression": EXPRESSIONS,
            "state": STATES,
        }
        sets: dict[str, frozenset[str]] = {}
        for key, choices in allowed.items():
            sets[key] = self._name_set(node, f"{what}: show.{key}", key, choices)
        return Show(**sets)

    def _name_set(self, node: MapNode, what: str, key: str, choices: Sequence[str]) -> frozenset[str]:
        value = node.get(key)
        if value is None:
            return frozenset()
        items = value.items if isinstance(value, ListNode) else [value]
        found: set[str] = set()
        for item in items:
            text = item.text if isinstance(item, ScalarNode) else ""
            if text in choices:
                found.add(text)
            else:
                words = f"{what} must be of {', '.join(choices)}"
                self._fault(item, words, did_you_mean(text, choices) if text else None)
        if not items:
            self._fault(value, f"{what} is empty")
        return frozenset(found)

    # --- values ----------------------------------------------------------------------------------------

    def _fault(self, node: Node, message: str, suggestion: str | None = None) -> None:
        self.report.add(node, "avatar_invalid", message, suggestion=suggestion)

    def _keys(self, node: MapNode, what: str, allowed: Sequence[str], required: Sequence[str]) -> None:
        for key in node:
            if key not in allowed:
                self._fault(node.key(key), f"{what}: unknown key {key[:60]}", did_you_mean(key, allowed))
        for key in required:
            if key not in node:
                self._fault(node, f"{what}: {key} is missing")

    def _text(self, node: MapNode, key: str) -> str:
        value = node.get(key)
        if value is None:
            return ""
        if isinstance(value, ScalarNode) and _NAME.fullmatch(value.text.strip()):
            return value.text.strip()
        self._fault(value, f"{key} must be a short text")
        return ""

    def _choice(self, node: MapNode, what: str, key: str, choices: Sequence[str]) -> str | None:
        value = node.get(key)
        if value is None:
            return None
        text = value.text if isinstance(value, ScalarNode) else ""
        if text in choices:
            return text
        near = did_you_mean(text, choices) if text else None
        self._fault(value, f"{what}: {key} must be one of {', '.join(choices)}", near)
        return None

    def _colour(self, node: MapNode, key: str) -> str:
        value = node.get(key)
        if isinstance(value, ScalarNode) and _COLOUR.fullmatch(value.text):
            return value.text
        if value is not None:
            self._fault(value, f'eyes.{key} must be a colour like "#222b5d", in quotes')
        return "#000000"

    def _number(self, node: MapNode, what: str, key: str, default: float, *, low: float = 0.0) -> float:
        value = node.get(key)
        if value is None:
            return default
        found = _finite(value.plain())
        if found is None or not low <= found <= MAX_CANVAS:
            self._fault(value, f"{what}.{key} must be a number from {low:g} to {MAX_CANVAS}")
            return default
        return found

    def _point(self, node: MapNode, key: str, default: Point) -> Point:
        value = node.get(key)
        found = self._pair(value, key) if value is not None else None
        return found or default

    def _pair(self, node: Node, what: str) -> Point | None:
        values = [_finite(item.plain()) for item in node.items] if isinstance(node, ListNode) else []
        match values:
            case [float() as x, float() as y] if max(abs(x), abs(y)) <= 4 * MAX_CANVAS:
                return x, y
        self._fault(node, f"{what} must be two numbers")
        return None


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
