"""Events by lane on a line of time, with the answers as bars above."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop.event_view import LANES, Answer, EventView, Record, lane_of
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, TYPE, Palette, Theme, font

_SPANS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 300.0, 1800.0)
_STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
_ANSWERS = "answers"
_ROW_OF: Mapping[object, int] = {lane: index for index, lane in enumerate(LANES)}


def moment_text(since_s: float, step_s: float) -> str:
    """Return the moment `since_s` after the first event, as exact as a scale in steps of `step_s` needs: 1:02:03.4."""
    tenths = round(since_s * 10)
    minutes, rest = divmod(tenths // 10, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return f"{text}.{tenths % 10}" if step_s < 1 else text


class Timeline(QWidget):
    """Paints only what the shown span holds; a click or the arrow keys choose an event."""

    event_chosen = Signal(object)

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Begin with nothing."""
        super().__init__()
        self.setObjectName("inspectorTimeline")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._row_px = max(3 * GRID_PX, QFontMetrics(font(TYPE.caption_px)).height() + 4)
        self._name_px = 0
        self.setMinimumHeight((len(LANES) + 2) * self._row_px)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._theme = theme
        self._translator = translator
        self._records: list[Record] = []
        self._times: list[float] = []
        self._view: EventView | None = None
        self._zero_s = 0.0
        self._rows: list[int] = []
        self._answers: list[Answer] = []
        self._span_at = 4
        self._end_s = 0.0
        self._is_following = True
        self._chosen: int | None = None
        self._drag: tuple[float, float] | None = None
        theme.changed.connect(self.update)
        translator.changed.connect(self._make_room_for_names)
        self._make_room_for_names()
        translator.bind(self.setAccessibleName, "inspector.timeline")
        translator.bind(self.setToolTip, "inspector.timeline.tip")

    def _make_room_for_names(self) -> None:
        metrics = QFontMetrics(font(TYPE.caption_px))
        names = [self._translator.text(f"inspector.lane.{lane}") for lane in (_ANSWERS, *LANES)]
        self._name_px = max(metrics.horizontalAdvance(name) for name in names) + 2 * GRID_PX
        self.update()

    @property
    def span_s(self) -> float:
        """Seconds from left to right."""
        return _SPANS_S[self._span_at]

    @property
    def end_s(self) -> float:
        """The moment at the right edge."""
        return self._end_s

    @property
    def chosen(self) -> Record | None:
        """The chosen event."""
        return self._records[self._chosen] if self._chosen is not None and self._chosen < len(self._records) else None

    def show_view(self, view: EventView, hidden: frozenset[str]) -> None:
        """Show the records of `view` but those of the `hidden` types."""
        chosen = self.chosen
        self._records = [record for record in view.records if record["type"] not in hidden]
        self._records.sort(key=lambda record: float(record["t"]))
        self._times = [float(record["t"]) for record in self._records]
        if self._times and (view is not self._view or self._times[0] < self._zero_s):
            # Old events may be forgotten; the beginning they were counted from stays.
            self._view, self._zero_s = view, self._times[0]
        self._answers = list(view.answers.values())
        self._rows = [_ROW_OF.get(record.get("lane"), len(LANES) - 1) for record in self._records]
        self._chosen = None
        if chosen is not None:
            at = bisect.bisect_left(self._times, float(chosen["t"]))
            self._chosen = next((i for i in range(at, len(self._records)) if self._records[i] is chosen), None)
        if self._is_following and self._times:
            self._end_s = self._times[-1] + self.span_s * 0.05
        self.update()

    def follow(self) -> None:
        """Keep the newest event in sight."""
        self._is_following = True
        if self._times:
            self._end_s = self._times[-1] + self.span_s * 0.05
        self.update()

    def zoom(self, steps: int, at_s: float | None = None) -> None:
        """Show more (steps > 0) or less time, keeping `at_s` where it is."""
        before = self.span_s
        self._span_at = max(0, min(len(_SPANS_S) - 1, self._span_at + steps))
        if at_s is not None and not self._is_following:
            self._end_s = at_s + (self._end_s - at_s) * self.span_s / before
        self.update()

    def position(self, at_s: float) -> float:
        """Return where the moment `at_s` is, in pixels from the left."""
        room = max(1.0, self.width() - self._name_px)
        return self._name_px + (at_s - (self._end_s - self.span_s)) / self.span_s * room

    def row_of(self, record: Record) -> float:
        """Return the height at which `record` is painted."""
        return (1 + LANES.index(lane_of(record)) + 0.5) * self._row_px

    def scale(self) -> list[tuple[float, str, float]]:
        """Return the marks of the scale in sight: pixels from the left, the time since the first event, room for it."""
        metrics = QFontMetrics(font(TYPE.caption_px))
        since_s = self._end_s - self._zero_s
        widest = metrics.horizontalAdvance(moment_text(max(0.0, since_s), 0.1)) + 2 * GRID_PX
        most = max(1.0, (self.width() - self._name_px) / widest)
        step_s = next((step for step in _STEPS_S if self.span_s / step <= most), _STEPS_S[-1])
        first = max(0, math.ceil((since_s - self.span_s) / step_s))
        return [
            (self.position(self._zero_s + number * step_s), moment_text(number * step_s, step_s), widest)
            for number in range(first, math.floor(since_s / step_s) + 1)
        ]

    # --- keys and mouse ---------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk through the events by the arrow keys, zoom by plus and minus, End for the newest."""
        match event.key():
            case Qt.Key.Key_Left | Qt.Key.Key_Right:
                self._walk(-1 if event.key() == Qt.Key.Key_Left else 1)
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self.zoom(-1)
            case Qt.Key.Key_Minus:
                self.zoom(1)
            case Qt.Key.Key_Home if self._times:
                self._choose(0)
            case Qt.Key.Key_End:
                self.follow()
            case _:
                super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom with the control key, else move through time."""
        turned = event.angleDelta().y() or event.angleDelta().x()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(-1 if turned > 0 else 1, self._moment(event.position().x()))
        else:
            self._move(-turned / 120 * self.span_s * 0.1)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to drag, or choose what is under the pointer."""
        self._drag = event.position().x(), self._end_s
        nearest = self._nearest(event.position())
        if nearest is not None:
            self._choose(nearest, is_scrolling=False)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the time along."""
        if self._drag is not None and event.buttons() & Qt.MouseButton.LeftButton:
            start_x, end_s = self._drag
            moved = event.position().x() - start_x
            if abs(moved) > 3:
                self._is_following = False
                self._end_s = end_s - moved / max(1.0, self.width() - self._name_px) * self.span_s
                self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        self._drag = None

    def _moment(self, x: float) -> float:
        return self._end_s - self.span_s + (x - self._name_px) / max(1.0, self.width() - self._name_px) * self.span_s

    def _move(self, seconds: float) -> None:
        self._is_following = False
        self._end_s += seconds
        self.update()

    def _walk(self, step: int) -> None:
        if self._records:
            now = self._chosen if self._chosen is not None else (len(self._records) if step < 0 else -1)
            self._choose(max(0, min(len(self._records) - 1, now + step)))

    def _choose(self, index: int, *, is_scrolling: bool = True) -> None:
        self._chosen = index
        at_s = self._times[index]
        if is_scrolling and not self._end_s - self.span_s <= at_s <= self._end_s:
            self._is_following = False
            self._end_s = at_s + self.span_s / 2
        self.update()
        self.event_chosen.emit(self._records[index])

    def _nearest(self, point: QPointF) -> int | None:
        reach_s = 6 / max(1.0, self.width() - self._name_px) * self.span_s
        at_s = self._moment(point.x())
        first = bisect.bisect_left(self._times, at_s - reach_s)
        last = bisect.bisect_right(self._times, at_s + reach_s)
        row = int(point.y() // self._row_px) - 1
        if not 0 <= row < len(LANES):
            return None
        hits = [index for index in range(first, last) if lane_of(self._records[index]) == LANES[row]]
        return min(hits, key=lambda index: abs(self._times[index] - at_s), default=None)

    # --- painting ---------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint names, scale, answers and events."""
        palette = self._theme.palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(palette.surface))
        painter.setFont(font(TYPE.caption_px))
        self._paint_rows(painter, palette)
        painter.setClipRect(QRectF(self._name_px, 0, self.width() - self._name_px, self.height()))
        self._paint_scale(painter, palette)
        self._paint_answers(painter, palette)
        self._paint_events(painter, palette)
        if self.hasFocus():
            painter.setClipping(False)
            painter.setPen(QPen(QColor(palette.primary), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(self.rect()).adjusted(1, 1, -1, -1))
        painter.end()

    def _paint_rows(self, painter: QPainter, palette: Palette) -> None:
        for index, lane in enumerate((_ANSWERS, *LANES)):
            top = index * self._row_px
            if index % 2:
                painter.fillRect(QRectF(0, top, self.width(), self._row_px), QColor(palette.background))
            words = self._translator.text(f"inspector.lane.{lane}")
            painter.setPen(QColor(palette.ink))
            painter.drawText(
                QRectF(GRID_PX, top, self._name_px - GRID_PX, self._row_px), Qt.AlignmentFlag.AlignVCenter, words
            )

    def _paint_scale(self, painter: QPainter, palette: Palette) -> None:
        if not self._times:
            painter.setPen(QColor(palette.muted))
            words, room = self._translator.text("inspector.timeline.empty"), QRectF(self.rect())
            painter.drawText(room.adjusted(self._name_px, 0, 0, 0), Qt.AlignmentFlag.AlignCenter, words)
            return
        top = (1 + len(LANES)) * self._row_px
        for x, words, widest in self.scale():
            painter.setPen(QColor(palette.line))
            painter.drawLine(QPointF(x, 0), QPointF(x, top))
            painter.setPen(QColor(palette.muted))
            if self._name_px <= x <= self.width() - widest:
                # A label that would be cut at the edge is left out; its line stays.
                painter.drawText(QRectF(x + 2, top, widest, self._row_px), Qt.AlignmentFlag.AlignVCenter, words)

    def _paint_answers(self, painter: QPainter, palette: Palette) -> None:
        for answer in self._answers:
            ends = [at_s for at_s, _ in answer.states[1:]] + [answer.end_s or self._end_s]
            for (start_s, state), end_s in zip(answer.states, ends, strict=True):
                if end_s < self._end_s - self.span_s or start_s > self._end_s:
                    continue
                self._paint_bar(painter, palette, state, self.position(start_s), self.position(end_s))

    def _paint_bar(self, painter: QPainter, palette: Palette, state: str, left: float, right: float) -> None:
        bar = QRectF(left, 3, max(3.0, right - left), self._row_px - 6)
        colours = {"STREAMING": palette.primary, "CANCELLED": palette.danger, "FAILED": palette.danger}
        painter.setPen(QColor(colours.get(state, palette.outline)))
        painter.setBrush(QColor(palette.primary if state == "STREAMING" else palette.raised))
        painter.drawRect(bar)
        if bar.width() < 3 * GRID_PX:
            return
        words = self._translator.text(f"inspector.state.{state}")
        if QFontMetrics(painter.font()).horizontalAdvance(words) < bar.width() - 6:
            painter.setPen(QColor(palette.on_primary if state == "STREAMING" else palette.ink))
            painter.drawText(bar, Qt.AlignmentFlag.AlignCenter, words)

    def _paint_events(self, painter: QPainter, palette: Palette) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        start_s = self._end_s - self.span_s
        first = bisect.bisect_left(self._times, start_s)
        last = bisect.bisect_right(self._times, self._end_s)
        per_s = max(1.0, self.width() - self._name_px) / self.span_s
        # Each spot once, all in one call: painting costs by the pixel, however many events there are.
        spots = {
            (int((at_s - start_s) * per_s) // 2, row)
            for at_s, row in zip(self._times[first:last], self._rows[first:last], strict=True)
        }
        painter.setPen(QPen(QColor(palette.primary), 8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPoints([QPointF(self._name_px + 2 * x, (row + 1.5) * self._row_px) for x, row in spots])
        record = self.chosen
        if record is not None:
            at = self.position(float(record["t"]))
            painter.setPen(QColor(palette.ink))
            painter.drawLine(QPointF(at, self._row_px), QPointF(at, (1 + len(LANES)) * self._row_px))
            painter.setBrush(QColor(palette.highlight))
            painter.drawEllipse(QPointF(at, self.row_of(record)), 6, 6)
