"""An avatar pack: a folder with `avatar.yaml` and its layers, SVG or PNG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from desktop.ui.avatar.schema import avatar_schema
from orchestrator.contracts.errors import InputError

__all__ = ["AvatarPack", "Eyes", "Layer", "Point", "Show", "avatar_schema", "load_pack"]

Point = tuple[float, float]
Box = tuple[float, float, float, float]

PACK_FILE = "avatar.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """When a layer is drawn: while each set holds what is so now; an empty set asks nothing."""

    mouth: frozenset[str] = frozenset()
    eyes: frozenset[str] = frozenset()
    expression: frozenset[str] = frozenset()
    state: frozenset[str] = frozenset()

    @property
    def is_always(self) -> bool:
        """Whether nothing is asked."""
        return not (self.mouth or self.eyes or self.expression or self.state)


ALWAYS = Show()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One drawing and how it moves; `box` (x, y, width, height) and `pivot` are in canvas units."""

    id: str
    file: Path
    group: str
    drive: str | None
    pivot: Point
    box: Box
    show: Show = ALWAYS

    @property
    def is_png(self) -> bool:
        """Whether the file is a PNG picture and not an SVG drawing."""
        return self.file.suffix.casefold() == ".png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyes:
    """Round eyes whose lids the program draws."""

    centres: tuple[Point, ...]
    radius: float
    iris_travel: float
    lid: str
    lid_edge: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AvatarPack:
    """A character ready to be drawn; all places and lengths in canvas units. `eyes` is None where layers blink."""

    folder: Path
    names: Mapping[str, str]
    canvas: Point
    layers: tuple[Layer, ...]
    neck: Point
    ground: Point
    eyes: Eyes | None
    mouth_open: float
    visemes: Mapping[str, tuple[float, float]]
    licence: str = ""
    claimed_mouths: frozenset[str] = field(default_factory=frozenset)
    claimed_expressions: frozenset[str] = field(default_factory=frozenset)

    def name(self, language: str) -> str:
        """Return the character's name in `language`, else in any."""
        return self.names.get(language) or next(iter(self.names.values()))


def load_pack(folder: Path) -> AvatarPack:
    """Read the pack in `folder`.

    Raises `InputError` (`avatar_invalid`): one line with the place of the first fault, and how many there are.
    """
    from desktop.ui.avatar.reader import check_pack

    pack, problems = check_pack(folder)
    if pack is None or problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InputError("avatar_invalid", f"{place_and_fault(first)}{more}", part="avatar")
    return pack


def place_and_fault(problem: object) -> str:
    """Return a problem of a pack in one line: file:line:col: what is wrong."""
    file, line = getattr(problem, "file", ""), getattr(problem, "line", 0)
    place = f"{file}:{line}:{getattr(problem, 'col', 0)}" if line else str(file)
    hint = getattr(problem, "suggestion", None)
    words = f"{place}: {getattr(problem, 'message', '')}" + (f"; did you mean {hint}?" if hint else "")
    # Keys and names of files may hold anything, line ends as well.
    return " ".join("".join(char if char.isprintable() else " " for char in words).split())
