"""Draws a pack in a pose.

Layers are kept as pixmaps. Neighbours that move together are put together as one picture, and the picture is kept
as it was last turned and stretched: most frames only copy pictures to whole device pixels, which a software renderer
does in a tenth of the time of a smooth draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QImage,
    QImageReader,
    QPainter,
    QPainterPath,
    QPen,
    QPixmap,
    QTransform,
)
from PySide6.QtSvg import QSvgRenderer

from desktop.ui.avatar.lipsync import Mouth
from desktop.ui.avatar.pack import AvatarPack, Eyes, Layer, Point
from desktop.ui.avatar.pose import Pose
from orchestrator.contracts.errors import InputError

_FACE_SHIFT = 7.0
"""How far the face slides over the head for a full glance: it makes a flat drawing look round."""

_MARGINS = {
    "still": (0, 0, 0, 0),
    "body": (36, 4, 36, 4),
    "head": (6, 34, 6, 2),
    "face": (8, 8, 8, 8),
    "beak": (10, 8, 10, 40),
}
"""Room around a picture for what its layers do on their own: left, top, right, bottom in canvas units."""

_TURN_STEPS = 4.0
"""Angles are drawn in quarters of a degree: less than a pixel at the rim of the head."""

_BREATH_STEPS = 6.0

_BEAK = frozenset({"mouth", "beak_lower", "beak_upper", "lips"})
"""What moves with every sound: a picture of its own, so that speaking leaves the rest of the face alone."""

_SHUT = 0.86
"""From here on the lids count as closed."""

_BLINK = 0.5
"""From here on a pack that blinks by layers shows its closed eyes."""

_LIPS = 0.08
"""Height of closed lips as a share of the open ones."""

_OPEN = 0.12
"""From here on a pack that speaks by layers shows its open mouth."""

_CLEAR = Qt.GlobalColor.transparent
_Key = tuple[float, ...]


def _about(pivot: Point, *, turn: float = 0.0, sx: float = 1.0, sy: float = 1.0) -> QTransform:
    made = QTransform()
    made.translate(pivot[0], pivot[1])
    made.rotate(turn)
    made.scale(sx, sy)
    made.translate(-pivot[0], -pivot[1])
    return made


@dataclass(slots=True)
class _Picture:
    """Neighbouring layers that move together, put together for the own motions in `key`."""

    group: str
    layers: list[Layer]
    box: QRectF
    pixmap: QPixmap | None = None
    key: _Key | None = None
    moved: QPixmap | None = None
    moved_key: _Key | None = None
    corner: QPoint = field(default_factory=QPoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the layers of a pack are shown by, besides the pose: the state and the expression."""

    state: str = "idle"
    expression: str = "neutral"


LOOK = Look()


class AvatarPainter:
    """Paints the character; keeps every layer as a pixmap of the size last asked for."""

    def __init__(self, pack: AvatarPack) -> None:
        """Load the layers of `pack`; raises `InputError` (`avatar_invalid`) for a layer that is no usable drawing."""
        self.pack = pack
        self._renderers: dict[str, QSvgRenderer] = {}
        self._images: dict[str, QImage] = {}
        self._boxes = {layer.id: QRectF(*layer.box) for layer in pack.layers}
        for layer in pack.layers:
            self._load(layer)
        self._pixmaps: dict[str, QPixmap] = {}
        self._scale = 0.0
        self._outdated: list[str] = []
        self._hidden: frozenset[str] = frozenset()
        self._eyes = pack.eyes
        self._eye_paths: list[QPainterPath] = []
        self._between_eyes: Point = pack.neck
        if pack.eyes is not None:
            self._lid_pen = QPen(QColor(pack.eyes.lid_edge), 4.0)
            self._seam_pen = QPen(QColor(pack.eyes.lid_edge), 5.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
            self._lid_brush = QBrush(QColor(pack.eyes.lid))
            self._eye_paths = [self._eye_path(pack.eyes, centre) for centre in pack.eyes.centres]
            xs, ys = zip(*pack.eyes.centres, strict=True)
            self._between_eyes = (sum(xs) / len(xs), sum(ys) / len(ys))
        self._pictures = self._group_layers()

    def _load(self, layer: Layer) -> None:
        if layer.is_png:
            # What is read is bounded by the reader as well: a small file can hold a large picture.
            reader = QImageReader(str(layer.file), b"png")
            image = reader.read()
            if image.isNull():
                raise _unusable(layer, "is not a PNG picture")
            self._images[layer.id] = image.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
            return
        renderer = QSvgRenderer(str(layer.file))
        if not renderer.isValid():
            raise _unusable(layer, "is not an SVG drawing with a viewBox")
        self._renderers[layer.id] = renderer

    def prepare(self, scale: float) -> None:
        """Ask for layers at `scale` device pixels per canvas unit. The first time all are made at once."""
        if abs(scale - self._scale) < 1e-6:
            return
        self._scale = scale
        self._outdated = [layer.id for layer in self.pack.layers]
        if not self._pixmaps:
            while self.refresh_one():
                pass

    def prepare_slowly(self, scale: float) -> None:
        """Ask for layers as `prepare` does, but make none yet: `refresh_one` makes them."""
        self._scale = scale
        self._outdated = [layer.id for layer in self.pack.layers]

    def refresh_one(self) -> bool:
        """Make one layer of the newest size; False when all are. Spread over frames, a resize never stalls."""
        if not self._outdated:
            return False
        name = self._outdated.pop()
        box = self._boxes[name]
        size = QSize(max(1, math.ceil(box.width() * self._scale)), max(1, math.ceil(box.height() * self._scale)))
        if name in self._images:
            # Scaled in one go, not by a painter: that keeps fine lines when a large picture is shown small.
            smooth, fill = Qt.TransformationMode.SmoothTransformation, Qt.AspectRatioMode.IgnoreAspectRatio
            made = QPixmap.fromImage(self._images[name].scaled(size, fill, smooth))
        else:
            made = QPixmap(size)
            made.fill(_CLEAR)
            painter = QPainter(made)
            self._renderers[name].render(painter, QRectF(0, 0, box.width() * self._scale, box.height() * self._scale))
            painter.end()
        self._pixmaps[name] = made
        for picture in self._pictures:
            picture.key = None
        return True

    def paint(
        self,
        painter: QPainter,
        base: QTransform,
        ratio: float,
        pose: Pose,
        mouth: Mouth,
        breath: float,
        look: Look = LOOK,
    ) -> None:
        """Paint the character.

        `base` maps canvas units to the painter's, `ratio` is device pixels per painter's unit, `breath` is -1 to 1.
        """
        self._hidden = self._not_shown(pose, mouth, look)
        to_device = base * QTransform.fromScale(ratio, ratio)
        places = self._places(pose, breath)
        painter.setTransform(QTransform.fromScale(1.0 / ratio, 1.0 / ratio))
        for picture in self._pictures:
            self._put_together(picture, pose, mouth)
            place = places[picture.group] * to_device
            self._move(picture, place)
            if picture.moved is not None:
                origin = QPoint(round(place.dx()), round(place.dy()))
                painter.drawPixmap(origin + picture.corner, picture.moved)
        painter.resetTransform()

    def _places(self, pose: Pose, breath: float) -> dict[str, QTransform]:
        """Return where each group is, in canvas units; head and face move as one."""
        fill = round(breath * _BREATH_STEPS) / _BREATH_STEPS
        chest = _about(self.pack.ground, sx=1.0 - 0.004 * fill, sy=1.0 + 0.012 * fill)
        chest *= QTransform.fromTranslate(0.0, -pose.lift)
        turn = round(pose.head_turn * _TURN_STEPS) / _TURN_STEPS
        rise = pose.head_y - 2.6 * breath - pose.lift
        head = _about(self.pack.neck, turn=turn) * QTransform.fromTranslate(pose.head_x, rise)
        return {"still": QTransform(), "body": chest, "head": head, "face": head, "beak": head}

    def _not_shown(self, pose: Pose, mouth: Mouth, look: Look) -> frozenset[str]:
        """Return the ids of the layers that are not to be drawn now."""
        pack = self.pack
        is_open = mouth.opening >= _OPEN
        mouths = {"open"} if is_open else {"closed"}
        if is_open and mouth.shape in pack.claimed_mouths:
            mouths = {mouth.shape}
        eyes = "closed" if pose.lid >= _BLINK else "open"
        expression = look.expression if look.expression in pack.claimed_expressions else "neutral"
        hidden = []
        for layer in pack.layers:
            show = layer.show
            if show.is_always:
                continue
            is_shown = (
                (not show.mouth or bool(mouths & show.mouth))
                and (not show.eyes or eyes in show.eyes)
                and (not show.expression or expression in show.expression)
                and (not show.state or look.state in show.state or _is_idle(look.state, show.state))
            )
            if not is_shown:
                hidden.append(layer.id)
        return frozenset(hidden)

    # --- pictures --------------------------------------------------------------------------------------

    def _group_layers(self) -> list[_Picture]:
        made: list[_Picture] = []
        for layer in self.pack.layers:
            group = "beak" if layer.drive in _BEAK else layer.group
            left, top, right, bottom = _MARGINS[group]
            box = self._boxes[layer.id].adjusted(-left, -top, right, bottom)
            if made and made[-1].group == group:
                made[-1].layers.append(layer)
                made[-1].box = made[-1].box.united(box)
            else:
                made.append(_Picture(group=group, layers=[layer], box=box))
        return made

    def _put_together(self, picture: _Picture, pose: Pose, mouth: Mouth) -> None:
        hidden = self._hidden
        visible = tuple(float(layer.id not in hidden) for layer in picture.layers) if hidden else ()
        key = (*self._key(picture, pose, mouth), -1.0, *visible)
        if key == picture.key:
            return
        picture.key, picture.moved_key = key, None
        width, height = math.ceil(picture.box.width() * self._scale), math.ceil(picture.box.height() * self._scale)
        if picture.pixmap is None or (picture.pixmap.width(), picture.pixmap.height()) != (width, height):
            picture.pixmap = QPixmap(width, height)
        picture.pixmap.fill(_CLEAR)
        painter = QPainter(picture.pixmap)
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        place = QTransform.fromTranslate(-picture.box.x(), -picture.box.y())
        place *= QTransform.fromScale(self._scale, self._scale)
        if picture.group in ("face", "beak"):
            place = QTransform.fromTranslate(*self._face_shift(pose)) * place
        for layer in picture.layers:
            if layer.id in hidden:
                continue
            self._paint_layer(painter, layer, place, pose, mouth)
            if layer.drive == "iris" and self._eyes is not None:
                painter.setTransform(self._eye_motion(pose) * place)
                self._paint_lids(painter, pose, self._eyes)
        painter.end()

    def _move(self, picture: _Picture, place: QTransform) -> None:
        """Turn and stretch the picture as `place` does, unless it is kept so already; its shift is left to `paint`."""
        if picture.pixmap is None:
            return
        key = (*(round(v, 5) for v in (place.m11(), place.m12(), place.m21(), place.m22())), self._scale)
        if key == picture.moved_key:
            return
        picture.moved_key = key
        linear = QTransform(place.m11(), place.m12(), place.m21(), place.m22(), 0.0, 0.0)
        bounds = linear.mapRect(picture.box).toAlignedRect()
        if picture.moved is None or picture.moved.size() != bounds.size():
            picture.moved = QPixmap(bounds.size())
        picture.moved.fill(_CLEAR)
        picture.corner = bounds.topLeft()
        painter = QPainter(picture.moved)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, picture.group != "still")
        to_canvas = QTransform.fromScale(1.0 / self._scale, 1.0 / self._scale)
        to_canvas *= QTransform.fromTranslate(picture.box.x(), picture.box.y())
        painter.setTransform(to_canvas * linear * QTransform.fromTranslate(-bounds.x(), -bounds.y()))
        painter.drawPixmap(0, 0, picture.pixmap)
        painter.end()

    def _key(self, picture: _Picture, pose: Pose, mouth: Mouth) -> _Key:
        """Return what the picture's own motions depend on, in steps too small to see."""
        match picture.group:
            case "body":
                has_tail = any(layer.drive == "tail" for layer in picture.layers)
                return (round(pose.tail * 4),) if has_tail else (round(pose.wing * 4),)
            case "head":
                return (round(pose.crest),)
            case "face":
                px = self._scale * (self._eyes.iris_travel if self._eyes is not None else 0.0)
                return (
                    *self._shift_key(pose),
                    *(round(pose.gaze_x * px), round(pose.gaze_y * px), round(pose.eye_size * 100)),
                    *(round(pose.lid * 60), round(pose.lower_lid * 60), round(pose.lid_slant)),
                    round(pose.blush * 20),
                )
            case "beak":
                opening = mouth.opening * self.pack.mouth_open * self._scale
                return (*self._shift_key(pose), round(opening), round(mouth.width * 40))
        return ()

    def _shift_key(self, pose: Pose) -> _Key:
        shift_x, shift_y = self._face_shift(pose)
        return round(shift_x * self._scale), round(shift_y * self._scale)

    def _face_shift(self, pose: Pose) -> Point:
        return _FACE_SHIFT * max(-1.0, min(1.0, pose.gaze_x * 0.6 + pose.head_turn / 24.0)), 4.0 * pose.gaze_y

    def _eye_motion(self, pose: Pose) -> QTransform:
        return _about(self._between_eyes, sx=pose.eye_size, sy=pose.eye_size)

    # --- layers ----------------------------------------------------------------------------------------

    def _paint_layer(self, painter: QPainter, layer: Layer, place: QTransform, pose: Pose, mouth: Mouth) -> None:
        own = self._own_motion(layer, pose, mouth)
        if own is None:
            return
        box, pixmap = self._boxes[layer.id], self._pixmaps[layer.id]
        size = pixmap.width() / max(1.0, math.ceil(box.width() * self._scale)) * self._scale
        painter.setTransform(
            QTransform.fromScale(1.0 / size, 1.0 / size) * QTransform.fromTranslate(box.x(), box.y()) * own * place
        )
        if layer.drive == "blush":
            painter.setOpacity(min(1.0, pose.blush))
        painter.drawPixmap(0, 0, pixmap)
        painter.setOpacity(1.0)

    def _own_motion(self, layer: Layer, pose: Pose, mouth: Mouth) -> QTransform | None:
        """Return the layer's own motion in canvas units, none when it is not to be seen."""
        if layer.drive in _BEAK:
            return self._mouth_motion(layer, mouth)
        turns = {
            "tail": pose.tail,
            "wing_left": pose.wing,
            "wing_right": -pose.wing,
            "ear_left": -0.45 * pose.crest,
            "ear_right": 0.45 * pose.crest,
        }
        if layer.drive in turns:
            return _about(layer.pivot, turn=turns[layer.drive])
        match layer.drive:
            case "crest":
                return _about(layer.pivot, turn=-0.3 * pose.crest, sy=1.0 + pose.crest / 70.0)
            case "blush":
                return QTransform() if pose.blush > 0.02 else None
            case "eyes":
                return self._eye_motion(pose)
            case "iris":
                travel = self._eyes.iris_travel if self._eyes is not None else 0.0
                return QTransform.fromTranslate(travel * pose.gaze_x, travel * pose.gaze_y) * self._eye_motion(pose)
        return QTransform()

    def _mouth_motion(self, layer: Layer, mouth: Mouth) -> QTransform | None:
        opening = self.pack.mouth_open * mouth.opening
        match layer.drive:
            case "mouth":
                if opening < 1.0:
                    return None
                return self._widened(layer, mouth) * QTransform.fromTranslate(0.0, 0.4 * opening)
            case "beak_lower":
                return self._widened(layer, mouth) * QTransform.fromTranslate(0.0, opening)
            case "beak_upper":
                return QTransform.fromTranslate(0.0, -5.0 * mouth.opening)
        return _about(layer.pivot, sx=round(mouth.width * 40) / 40, sy=max(_LIPS, mouth.opening))

    def _widened(self, layer: Layer, mouth: Mouth) -> QTransform:
        """Return the stretch of a mouth layer; at neutral width it is none, and then drawing is a mere copy."""
        width = round(mouth.width * 40) / 40
        return QTransform() if width == 1.0 else _about(layer.pivot, sx=width)

    @staticmethod
    def _eye_path(eyes: Eyes, centre: Point) -> QPainterPath:
        made = QPainterPath()
        made.addEllipse(QPointF(*centre), eyes.radius + 1.2, eyes.radius + 1.2)
        return made

    def _paint_lids(self, painter: QPainter, pose: Pose, eyes: Eyes) -> None:
        has_upper = pose.lid > 0.01 or abs(pose.lid_slant) > 0.5
        has_lower = pose.lower_lid > 0.01
        if not has_upper and not has_lower:
            return
        radius = eyes.radius
        for index, (x, y) in enumerate(eyes.centres):
            outward = -1.0 if index == 0 else 1.0
            painter.save()
            painter.setClipPath(self._eye_paths[index])
            if pose.lid > _SHUT:
                self._paint_shut(painter, x, y, radius)
            elif has_upper:
                edge_y = y - radius + 2.0 * radius * pose.lid
                self._paint_lid(painter, (x, edge_y), radius, outward * pose.lid_slant, 9.0, -1.0)
            if has_lower and pose.lid <= _SHUT:
                edge_y = y + radius - 2.0 * radius * pose.lower_lid
                self._paint_lid(painter, (x, edge_y), radius, 0.0, -13.0, 1.0)
            painter.restore()

    def _paint_shut(self, painter: QPainter, x: float, y: float, radius: float) -> None:
        """Cover the eye and draw the seam of the lids as a soft arc."""
        painter.fillRect(QRectF(x - 2 * radius, y - 2 * radius, 4 * radius, 4 * radius), self._lid_brush)
        seam = QPainterPath(QPointF(x - 0.72 * radius, y + 0.12 * radius))
        seam.quadTo(QPointF(x, y + 0.78 * radius), QPointF(x + 0.72 * radius, y + 0.12 * radius))
        painter.strokePath(seam, self._seam_pen)

    def _paint_lid(
        self, painter: QPainter, edge: Point, eye_radius: float, slant: float, bow: float, side: float
    ) -> None:
        """Fill from the lid's edge to beyond the eye; `side` is -1 for an upper lid and 1 for a lower one."""
        x, edge_y = edge
        radius = eye_radius + 3.0
        rise = radius * math.tan(math.radians(slant))
        far = edge_y + side * 3.0 * radius
        lid = QPainterPath(QPointF(x - radius, edge_y - rise))
        lid.quadTo(QPointF(x, edge_y + bow), QPointF(x + radius, edge_y + rise))
        lid.lineTo(x + radius, far)
        lid.lineTo(x - radius, far)
        lid.closeSubpath()
        painter.setPen(self._lid_pen)
        painter.setBrush(self._lid_brush)
        painter.drawPath(lid)


def _unusable(layer: Layer, problem: str) -> InputError:
    return InputError("avatar_invalid", f"{layer.file}: the drawing {problem}", part="avatar")


def _is_idle(state: str, shown_in: frozenset[str]) -> bool:
    """Whether a pack that says nothing of being called by name shows this as idle."""
    return state == "waiting" and "idle" in shown_in
