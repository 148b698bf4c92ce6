"""Draws a pack in a pose: layers come from a pixmap cache, only lids and marks are drawn anew."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap, QTransform
from PySide6.QtSvg import QSvgRenderer

from desktop.ui.avatar.lipsync import Mouth
from desktop.ui.avatar.pack import AvatarPack, Layer, Point
from desktop.ui.avatar.pose import Pose

_FACE_SHIFT = 7.0
"""How far the face slides over the head for a full glance: it makes a flat drawing look round."""


def _about(pivot: Point, *, turn: float = 0.0, sx: float = 1.0, sy: float = 1.0) -> QTransform:
    made = QTransform()
    made.translate(pivot[0], pivot[1])
    made.rotate(turn)
    made.scale(sx, sy)
    made.translate(-pivot[0], -pivot[1])
    return made


class AvatarPainter:
    """Paints the character into a square; keeps every layer as a pixmap of the size last asked for."""

    def __init__(self, pack: AvatarPack) -> None:
        """Load the layers of `pack`."""
        self.pack = pack
        self._renderers = {layer.id: QSvgRenderer(str(layer.file)) for layer in pack.layers}
        self._pixmaps: dict[str, QPixmap] = {}
        self._scale = 0.0
        self._stale: list[str] = []

    def prepare(self, scale: float) -> None:
        """Ask for layers at `scale` device pixels per canvas unit. The first time all are made at once."""
        if abs(scale - self._scale) < 1e-6:
            return
        self._scale = scale
        self._stale = [layer.id for layer in self.pack.layers]
        if not self._pixmaps:
            while self._stale:
                self.refresh_one()

    def refresh_one(self) -> bool:
        """Make one layer of the newest size; False when all are. Spread over frames, a resize never stalls."""
        if not self._stale:
            return False
        name = self._stale.pop()
        renderer = self._renderers[name]
        box = renderer.viewBoxF()
        size = (math.ceil(box.width() * self._scale), math.ceil(box.height() * self._scale))
        made = QPixmap(max(1, size[0]), max(1, size[1]))
        made.fill(Qt.GlobalColor.transparent)
        painter = QPainter(made)
        renderer.render(painter, QRectF(0, 0, box.width() * self._scale, box.height() * self._scale))
        painter.end()
        self._pixmaps[name] = made
        return True

    def paint(self, painter: QPainter, base: QTransform, pose: Pose, mouth: Mouth, breath: float) -> None:
        """Paint the character; `base` maps canvas units to the device, `breath` is -1 to 1."""
        pack = self.pack
        chest = _about(pack.ground, sx=1.0 - 0.004 * breath, sy=1.0 + 0.012 * breath)
        chest.translate(0.0, -pose.lift)
        rise = -2.6 * breath - pose.lift
        head = _about(pack.neck, turn=pose.head_turn) * QTransform.fromTranslate(pose.head_x, pose.head_y + rise)
        shift_x = _FACE_SHIFT * max(-1.0, min(1.0, pose.gaze_x * 0.6 + pose.head_turn / 24.0))
        face = QTransform.fromTranslate(shift_x, 4.0 * pose.gaze_y) * head
        groups = {"still": QTransform(), "body": chest, "head": head, "face": face}
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, True)
        for layer in pack.layers:
            self._paint_layer(painter, layer, groups[layer.group] * base, pose, mouth)
            if layer.drive == "iris":
                painter.setTransform(face * base)
                self._paint_lids(painter, pose)
        painter.resetTransform()

    def _paint_layer(self, painter: QPainter, layer: Layer, place: QTransform, pose: Pose, mouth: Mouth) -> None:
        own = self._own_motion(layer, pose, mouth)
        if own is None:
            return
        painter.setTransform(own * place)
        if layer.drive == "blush":
            painter.setOpacity(min(1.0, pose.blush))
        box = self._renderers[layer.id].viewBoxF()
        pixmap = self._pixmaps[layer.id]
        painter.drawPixmap(box, pixmap, QRectF(0, 0, pixmap.width(), pixmap.height()))
        painter.setOpacity(1.0)

    def _own_motion(self, layer: Layer, pose: Pose, mouth: Mouth) -> QTransform | None:
        """Return the layer's own motion in canvas units, none when it is not to be seen."""
        opening = self.pack.mouth_open * mouth.opening
        match layer.drive:
            case "tail":
                return _about(layer.pivot, turn=pose.tail)
            case "wing_left":
                return _about(layer.pivot, turn=pose.wing)
            case "wing_right":
                return _about(layer.pivot, turn=-pose.wing)
            case "crest":
                return _about(layer.pivot, turn=-0.3 * pose.crest, sy=1.0 + pose.crest / 70.0)
            case "blush":
                return QTransform() if pose.blush > 0.02 else None
            case "iris":
                travel = self.pack.iris_travel
                return QTransform.fromTranslate(travel * pose.gaze_x, travel * pose.gaze_y)
            case "mouth":
                if opening < 1.0:
                    return None
                return _about(layer.pivot, sx=mouth.width, sy=0.35 + opening / 48.0)
            case "beak_lower":
                drop = QTransform.fromTranslate(0.0, opening)
                return _about(layer.pivot, sx=mouth.width * (1.0 - 0.12 * mouth.opening)) * drop
            case "beak_upper":
                return _about(layer.pivot, turn=0.0, sx=0.94 + 0.06 * mouth.width) * QTransform.fromTranslate(
                    0.0, -5.0 * mouth.opening
                )
        return QTransform()

    def _paint_lids(self, painter: QPainter, pose: Pose) -> None:
        radius = self.pack.eye_radius
        for index, (x, y) in enumerate(self.pack.eye_centres):
            outward = -1.0 if index == 0 else 1.0
            eye = QPainterPath()
            eye.addEllipse(QPointF(x, y), radius + 1.2, radius + 1.2)
            if pose.lid > 0.01 or abs(pose.lid_slant) > 0.5:
                edge_y = y - radius + 2.0 * radius * pose.lid
                self._paint_lid(painter, eye, x, edge_y, outward * pose.lid_slant, is_upper=True)
            if pose.lower_lid > 0.01:
                edge_y = y + radius - 2.0 * radius * pose.lower_lid
                self._paint_lid(painter, eye, x, edge_y, 0.0, is_upper=False)

    def _paint_lid(
        self, painter: QPainter, eye: QPainterPath, x: float, edge_y: float, slant: float, *, is_upper: bool
    ) -> None:
        radius = self.pack.eye_radius + 3.0
        rise = radius * math.tan(math.radians(slant))
        bow = 9.0 if is_upper else -13.0
        far = edge_y - 3.0 * radius if is_upper else edge_y + 3.0 * radius
        start, end = QPointF(x - radius, edge_y - rise), QPointF(x + radius, edge_y + rise)
        edge = QPainterPath(start)
        edge.quadTo(QPointF(x, edge_y + bow), end)
        lid = QPainterPath(edge)
        lid.lineTo(x + radius, far)
        lid.lineTo(x - radius, far)
        lid.closeSubpath()
        painter.fillPath(lid.intersected(eye), QColor(self.pack.lid))
        painter.save()
        painter.setClipPath(eye)
        painter.strokePath(edge, QPen(QColor(self.pack.lid_edge), 4.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.restore()
