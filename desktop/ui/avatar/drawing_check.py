"""Looks at a drawing before anything draws it: is it what it says, and does it cost what a picture may cost? No Qt."""

from __future__ import annotations

import re
import struct
import xml.parsers.expat
from dataclasses import dataclass
from pathlib import Path

MAX_SVG_BYTES = 512_000
MAX_PNG_BYTES = 4_000_000
MAX_PNG_SIDE = 4096
_MAX_ELEMENTS = 5_000
_MAX_DEPTH = 48
_PNG = b"\x89PNG\r\n\x1a\n"
_BANNED = {
    "use": "clones (<use>) are not drawn; unlink them in your drawing program",
    "script": "a drawing may hold no script",
    "foreignobject": "a drawing may hold no foreign content",
    "image": "a drawing may hold no pictures; make the picture a PNG layer",
}
_NUMBERS = re.compile(r"[\s,]+")

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A file that can be drawn; `box` is the viewBox of an SVG: x, y, width, height. None for a PNG."""

    box: Box | None


class DrawingError(Exception):
    """What is wrong with a drawing; `line` and `column` are 0 where a place makes no sense."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        """Keep the place."""
        super().__init__(message)
        self.line = line
        self.column = column


def check_drawing(path: Path) -> Drawing:
    """Return what can be known of the drawing without drawing it; raises `DrawingError`."""
    is_png = path.suffix.casefold() == ".png"
    limit = MAX_PNG_BYTES if is_png else MAX_SVG_BYTES
    try:
        size = path.stat().st_size
        if size > limit:
            raise DrawingError(f"is bigger than {limit // 1000} kB")
        data = path.read_bytes()
    except OSError as error:
        raise DrawingError(f"can't be read: {error.strerror}") from error
    return _check_png(data) if is_png else _check_svg(data)


def _check_png(data: bytes) -> Drawing:
    if len(data) < 33 or not data.startswith(_PNG) or data[12:16] != b"IHDR":
        raise DrawingError("is not a PNG picture")
    width, height = struct.unpack(">II", data[16:24])
    if not 0 < width <= MAX_PNG_SIDE or not 0 < height <= MAX_PNG_SIDE:
        raise DrawingError(f"has {width} × {height} pixels; {MAX_PNG_SIDE} a side are the most")
    return Drawing(box=None)


class _SvgReader:
    """Follows the elements of one drawing."""

    def __init__(self) -> None:
        self.parser = xml.parsers.expat.ParserCreate()
        self.parser.StartElementHandler = self._on_start
        self.parser.EndElementHandler = self._on_end
        self.parser.StartDoctypeDeclHandler = self._on_doctype
        self.box: Box | None = None
        self._count = 0
        self._depth = 0

    def _fail(self, message: str) -> DrawingError:
        return DrawingError(message, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def _on_doctype(self, *_: object) -> None:
        raise self._fail("a drawing may hold no document type")

    def _on_start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2].casefold()
        self._count += 1
        self._depth += 1
        if self._count == 1:
            if name != "svg":
                raise self._fail("is not an SVG drawing with a viewBox")
            self.box = self._view_box(attributes.get("viewBox", ""))
        if self._count > _MAX_ELEMENTS:
            raise self._fail(f"has more than {_MAX_ELEMENTS} elements")
        if self._depth > _MAX_DEPTH:
            raise self._fail(f"is nested deeper than {_MAX_DEPTH} levels")
        if name in _BANNED:
            raise self._fail(_BANNED[name])
        for key, value in attributes.items():
            if key.rpartition(":")[2] == "href" and not value.startswith("#"):
                raise self._fail("a drawing may point to nothing outside itself")

    def _on_end(self, _: str) -> None:
        self._depth -= 1

    def _view_box(self, text: str) -> Box:
        try:
            x, y, width, height = (float(part) for part in _NUMBERS.split(text.strip()))
        except ValueError:
            raise self._fail("is not an SVG drawing with a viewBox") from None
        if not all(abs(v) < 1e6 for v in (x, y)) or not 0 < width < 1e6 or not 0 < height < 1e6:
            raise self._fail("is not an SVG drawing with a viewBox")
        return x, y, width, height


def _check_svg(data: bytes) -> Drawing:
    reader = _SvgReader()
    try:
        reader.parser.Parse(data, True)
    except xml.parsers.expat.ExpatError as error:
        words = xml.parsers.expat.ErrorString(error.code)
        raise DrawingError(f"is no sound XML: {words}", error.lineno, error.offset + 1) from error
    except (ValueError, LookupError) as error:
        raise DrawingError("is in an encoding that is not read") from error
    return Drawing(box=reader.box)
