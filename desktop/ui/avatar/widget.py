"""The stage: background, character, and the signs of its state around it."""

from __future__ import annotations

import math
from dataclasses import replace

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QRadialGradient,
    QResizeEvent,
    QShowEvent,
    QTransform,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop.bridge import Bridge
from desktop.ui.avatar import pose as poses
from desktop.ui.avatar.expression import expression_of
from desktop.ui.avatar.lipsync import CLOSED_MOUTH, LipSync, Mouth
from desktop.ui.avatar.pack import AvatarPack
from desktop.ui.avatar.painter import AvatarPainter, Look
from desktop.ui.avatar.stats import PaintMeter, PaintStats
from desktop.ui.theme import Theme
from orchestrator.contracts.events import AvatarPainted
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.views import (
    CharacterTextView,
    ExpressionView,
    GenerationEndedView,
    SpeechStoppedView,
    SpeechTimelineView,
    StateView,
)

_FAST_S = 1 / 60
_MEDIUM_S = 1 / 30
_IDLE_S = 1 / 15
_REDUCED_S = 1 / 8
_LARGEST_PX = 640
"""The character grows no further: a whole screen of it costs more than it gives."""

_MARKS_CANVAS = 600.0

_SETTLE_S = 0.6
"""After a change of state or expression the pose is still moving for about this long."""


class AvatarWidget(QWidget):
    """Paints the character; everything it shows follows from views and the clock."""

    pack_changed = Signal()

    def __init__(
        self,
        bridge: Bridge,
        pack: AvatarPack,
        theme: Theme,
        *,
        is_motion_reduced: bool = False,
        is_floating: bool = False,
    ) -> None:
        """Show `pack`, take views from `bridge`; a floating one paints nothing around its disc."""
        super().__init__()
        self.setObjectName("companionAvatar" if is_floating else "avatar")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent, not is_floating)
        self._is_floating = is_floating
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(*((96, 96) if is_floating else (200, 136)))
        self._bridge = bridge
        self._theme = theme
        self._painter = AvatarPainter(pack)
        self._coming: AvatarPainter | None = None
        self._lipsync = LipSync(pack.visemes)
        self._meter = PaintMeter()
        self._is_motion_reduced = is_motion_reduced
        self._state = "starting"
        self._expression = "neutral"
        self._expression_of: GenerationId | None = None
        self._pose = poses.target(self._state, self._expression)
        self._changed_at_s = bridge.clock.monotonic_s()
        self._changed_to = self._state
        self._posed_at_s = self._changed_at_s
        self._level = 0.0
        self._background: QPixmap | None = None
        self._mouth: Mouth = CLOSED_MOUTH
        self._painted: AvatarPainted | None = None
        bridge.state_changed.connect(self._on_state_changed)
        bridge.character_text_added.connect(self._on_character_text_added)
        bridge.expression_changed.connect(self._on_expression_changed)
        bridge.speech_started.connect(self._on_speech_started)
        bridge.speech_stopped.connect(self._on_speech_stopped)
        bridge.generation_ended.connect(self._on_generation_ended)
        theme.changed.connect(self._on_theme_changed)

    # --- state -----------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state shown."""
        return self._state

    @property
    def expression(self) -> str:
        """The expression shown."""
        return self._expression

    def mouth(self, now_s: float) -> Mouth:
        """Return the mouth at `now_s`; closed in silence and for an answer that has become stale."""
        sounding = self._lipsync.sounding(now_s)
        if sounding is not None and self._bridge.is_stale(sounding):
            self._lipsync.forget(sounding)
            return CLOSED_MOUTH
        return self._lipsync.mouth(now_s)

    def hush(self) -> None:
        """Close the mouth now: the player was stopped."""
        self._lipsync.hush()
        self.update()

    @property
    def pack(self) -> AvatarPack:
        """The character shown."""
        return self._painter.pack

    def set_pack(self, pack: AvatarPack) -> None:
        """Show another character from the next frame on; state, expression and the sentence that sounds stay.

        Raises `InputError` (`avatar_invalid`) for a layer that can't be drawn; then everything stays as it was.
        """
        coming = AvatarPainter(pack)
        if not self.isVisible():
            self._swap(coming)
            return
        # A layer a frame: drawing them all at once would stall the window.
        coming.prepare_slowly(self._base_for(pack).m11() * self.devicePixelRatioF())
        self._coming = coming
        self._changed_at_s = self._bridge.clock.monotonic_s()
        self.update()

    def _swap(self, painter: AvatarPainter) -> None:
        self._painter, self._coming = painter, None
        self._lipsync.set_shapes(painter.pack.visemes)
        self._background = None
        self.pack_changed.emit()
        self.update()

    def copy_from(self, other: AvatarWidget) -> None:
        """Take over state and expression of `other`, and the sentence that sounds."""
        self._state, self._expression, self._expression_of = other._state, other._expression, other._expression_of
        self._lipsync.take(other._lipsync)
        self._mark_change(self._state)

    def set_motion_reduced(self, is_reduced: bool) -> None:
        """Keep still but for mouth, blink and state."""
        self._is_motion_reduced = is_reduced
        self.update()

    def paint_stats(self) -> PaintStats:
        """Return what painting the last frames cost."""
        return self._meter.stats()

    def frame_interval_s(self, now_s: float) -> float:
        """Return how soon the next frame is worth painting: fast while it speaks or changes, slow when idle."""
        if self._coming is not None or self._lipsync.is_busy(now_s) or now_s - self._changed_at_s < _SETTLE_S:
            return _FAST_S
        if self._is_motion_reduced:
            return _REDUCED_S
        if self._state in ("listening", "thinking", "speaking", "interrupted"):
            return _MEDIUM_S
        return _FAST_S if poses.blink(now_s) > 0.0 else _IDLE_S

    def set_level(self, level: float) -> None:
        """Tell how loud the user is, 0 to 1; shown around the character while it listens."""
        self._level = level

    def _on_state_changed(self, view: StateView) -> None:
        if view.state == self._state:
            return
        self._state = view.state
        self._mark_change(view.state)

    def _on_character_text_added(self, view: CharacterTextView) -> None:
        """Take the expression that the words themselves have; one that the model asked for comes after and counts."""
        found = expression_of(view.text)
        if found is not None and found != self._expression:
            self._expression, self._expression_of = found, view.generation_id
            self._mark_change(found)

    def _on_expression_changed(self, view: ExpressionView) -> None:
        self._expression = view.expression if view.expression in poses.EXPRESSIONS else "neutral"
        self._expression_of = view.generation_id
        self._mark_change(self._expression)

    def _on_speech_started(self, view: SpeechTimelineView) -> None:
        self._lipsync.start(view)
        self.update()

    def _on_speech_stopped(self, view: SpeechStoppedView) -> None:
        self._lipsync.stop(view.intent_id, view.at_s)
        self.update()

    def _on_generation_ended(self, view: GenerationEndedView) -> None:
        if view.outcome != "completed":
            self._lipsync.forget(view.generation_id)
        if view.generation_id == self._expression_of and self._expression != "neutral":
            self._expression, self._expression_of = "neutral", None
            self._mark_change("neutral")
        self.update()

    def _on_theme_changed(self) -> None:
        self._background = None
        self.update()

    def _mark_change(self, name: str) -> None:
        self._changed_at_s = self._bridge.clock.monotonic_s()
        self._changed_to = name
        self.update()

    # --- painting --------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        """Prefer room for the character at its drawn size."""
        return QSize(480, 400)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Forget the background of the old size."""
        self._background = None
        super().resizeEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        """Draw the layers before the first frame is due, not in it."""
        self._painter.prepare(self._base().m11() * self.devicePixelRatioF())
        super().showEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the moment."""
        clock = self._bridge.clock
        now_s = clock.monotonic_s()
        self._mouth = self.mouth(now_s)
        if self._coming is not None and not self._coming.refresh_one():
            self._swap(self._coming)
        painter = QPainter(self)
        if self._background is None:
            self._background = self._make_background()
        painter.drawPixmap(0, 0, self._background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        base, ratio = self._base(), self.devicePixelRatioF()
        self._painter.prepare(base.m11() * ratio)
        self._painter.refresh_one()
        pose = self._pose_at(now_s)
        breath = 0.0 if self._is_motion_reduced else poses.breath(now_s, self._state)
        self._paint_ring(painter, now_s)
        look = Look(state=self._state, expression=self._expression)
        self._painter.paint(painter, base, ratio, pose, self._mouth, breath, look)
        painter.setTransform(self._mark_places(base))
        self._paint_marks(painter, now_s)
        painter.end()
        self._meter.add(now_s, clock.monotonic_s() - now_s)
        self._report()

    def _pose_at(self, now_s: float) -> poses.Pose:
        goal = poses.target(self._state, self._expression)
        if self._is_motion_reduced:
            self._pose = goal
            lid = max(goal.lid, poses.blink(now_s))
            return replace(goal, lid=lid)
        goal = poses.alive(goal, now_s, self._state)
        if self._mouth.opening > 0.0:
            goal = replace(goal, head_y=goal.head_y - 3.0 * self._mouth.opening)
        self._pose = poses.eased(self._pose, goal, now_s - self._posed_at_s, self._changed_to)
        self._posed_at_s = now_s
        return replace(self._pose, lid=max(self._pose.lid, poses.blink(now_s)))

    def _base(self) -> QTransform:
        return self._base_for(self._painter.pack)

    def _mark_places(self, base: QTransform) -> QTransform:
        """Return where the signs of a state are: they are placed on a canvas of 600 units, whatever the pack's is."""
        canvas_w, canvas_h = self._painter.pack.canvas
        side = min(canvas_w, canvas_h)
        made = QTransform.fromScale(side / _MARKS_CANVAS, side / _MARKS_CANVAS)
        return made * QTransform.fromTranslate((canvas_w - side) / 2, (canvas_h - side) / 2) * base

    def _base_for(self, pack: AvatarPack) -> QTransform:
        canvas_w, canvas_h = pack.canvas
        scale = min(self.width() / canvas_w, self.height() / canvas_h, _LARGEST_PX / canvas_h)
        return QTransform(
            scale, 0, 0, scale, (self.width() - canvas_w * scale) / 2, (self.height() - canvas_h * scale) / 2
        )

    def _disc(self) -> tuple[QPointF, float]:
        canvas_w, canvas_h = self._painter.pack.canvas
        return QPointF(canvas_w / 2, canvas_h * 0.47), min(canvas_w, canvas_h) * 0.40

    def _make_background(self) -> QPixmap:
        palette, ratio = self._theme.palette, self.devicePixelRatioF()
        made = QPixmap(round(self.width() * ratio), round(self.height() * ratio))
        made.setDevicePixelRatio(ratio)
        made.fill(Qt.GlobalColor.transparent if self._is_floating else QColor(palette.background))
        painter = QPainter(made)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setTransform(self._base())
        centre, radius = self._disc()
        if not self._is_floating:
            reach = radius * 1.17
            glow = QRadialGradient(centre, reach)
            glow.setColorAt(0.84, QColor(palette.stage_glow))
            glow.setColorAt(1.0, QColor(palette.background))
            painter.setBrush(glow)
            painter.drawEllipse(centre, reach, reach)
        disc = QRadialGradient(centre, radius, centre + QPointF(-radius * 0.3, -radius * 0.45))
        disc.setColorAt(0.0, QColor(palette.stage_disc))
        disc.setColorAt(1.0, QColor(palette.stage_disc_edge))
        painter.setBrush(disc)
        painter.drawEllipse(centre, radius, radius)
        painter.end()
        return made

    def _paint_ring(self, painter: QPainter, now_s: float) -> None:
        """Draw the ring around the disc: it grows with the user's voice, turns while thinking, breaks on a cut."""
        if self._state not in ("listening", "thinking", "interrupted"):
            return
        painter.setTransform(self._base())
        centre, radius = self._disc()
        unit = min(self._painter.pack.canvas) / _MARKS_CANVAS
        pen = QPen(QColor(self._theme.palette.stage_ring), 5.0 * unit)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._state == "listening":
            pen.setWidthF((4.0 + 8.0 * self._level) * unit)
            painter.setPen(pen)
            grown = radius + unit * (10.0 + (0.0 if self._is_motion_reduced else 8.0 * self._level))
            painter.drawEllipse(centre, grown, grown)
            return
        painter.setPen(pen)
        reach = radius + 10.0 * unit
        box = QRectF(centre.x() - reach, centre.y() - reach, 2 * reach, 2 * reach)
        if self._state == "thinking":
            start = 0.0 if self._is_motion_reduced else -now_s * 140.0 % 360.0
            for part in range(3):
                painter.drawArc(box, round(16 * (start + 120 * part)), 16 * 50)
            return
        for part in range(12):
            painter.drawArc(box, 16 * (30 * part + 8), 16 * 14)

    def _paint_marks(self, painter: QPainter, now_s: float) -> None:
        ink = QColor(self._theme.palette.ink)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        if self._state == "thinking":
            for index in range(3):
                beat = 0.0 if self._is_motion_reduced else max(0.0, math.sin(now_s * 4.0 - index * 0.8))
                size = 6.0 + 3 * index
                painter.drawEllipse(QPointF(452 + 30 * index, 128 - 26 * index), size, size + beat)
        elif self._state == "interrupted":
            painter.setPen(QPen(ink, 8.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            for angle in (-58, -38, -18, 198, 218, 238):
                x, y = math.cos(math.radians(angle)), math.sin(math.radians(angle))
                painter.drawLine(QPointF(300 + 166 * x, 236 + 146 * y), QPointF(300 + 190 * x, 236 + 170 * y))
        elif self._state == "asleep":
            painter.setPen(QPen(ink, 6.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
            for index in range(3):
                drift = 0.0 if self._is_motion_reduced else 4.0 * math.sin(now_s * 1.2 + index)
                size, x, y = 14.0 + 6 * index, 440.0 + 34 * index, 150.0 - 36 * index + drift
                painter.drawPolyline(
                    [QPointF(x, y), QPointF(x + size, y), QPointF(x, y + size), QPointF(x + size, y + size)]
                )

    def _report(self) -> None:
        now = AvatarPainted(state=self._state, mouth=self._mouth.shape, expression=self._expression)
        if now != self._painted:
            self._painted = now
            self._bridge.report_painted(now)
