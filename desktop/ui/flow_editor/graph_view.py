"""The picture of a flow: its steps and links. A click or the arrow keys choose a step; the running one is lit."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPen,
    QPolygonF,
    QResizeEvent,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import QGraphicsItem, QGraphicsScene, QGraphicsView, QStyleOptionGraphicsItem, QWidget

from desktop.ui.empty_hint import EmptyHint
from desktop.ui.flow_editor.layering import Layout, lay_out
from desktop.ui.flow_editor.outline import Graph, GraphEdge, GraphNode
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Palette, Theme, font, font_scale

_WIDTH, _HEIGHT = 22 * GRID_PX, 6 * GRID_PX
_GAP_X, _GAP_Y = 4 * GRID_PX, 5 * GRID_PX
_ARROW_PX = 7.0
_LETTERS_PX = 13
"""In the picture's own measure: larger letters enlarge the whole picture."""
_LEAST, _MOST = 0.3, 2.0
_KINDS = ("start", "collect", "action", "set_slots", "call", "end", "user", "event", "bot", "say", "do", "set", "if",
          "branch", "extract", "stop")  # fmt: skip


class StepItem(QGraphicsItem):
    """A step: its kind and name above, what it says or asks below."""

    def __init__(self, node: GraphNode, kind: str, colours: Callable[[], Palette]) -> None:
        """Draw `node`; `kind` is its type in the window's language."""
        super().__init__()
        self.node = node
        self.is_chosen = False
        self.is_running = False
        self._kind = kind
        self._colours = colours
        self.setToolTip("\n".join(part for part in (node.title, node.detail) if part))
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def boundingRect(self) -> QRectF:
        """Return the box with room for the running frame."""
        return QRectF(-6, -6, _WIDTH + 12, _HEIGHT + 12)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Draw the box; the running step gets a second frame and a sign, the chosen one a thick frame."""
        p = self._colours()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(0, 0, _WIDTH, _HEIGHT)
        radius = _HEIGHT / 2 if self.node.kind in ("start", "end", "stop") else 8.0
        if self.is_running:
            painter.setPen(QPen(QColor(p.stage_ring), 3))
            painter.setBrush(QColor(p.highlight))
            painter.drawRoundedRect(box.adjusted(-4, -4, 4, 4), radius + 4, radius + 4)
        painter.setPen(QPen(QColor(p.primary if self.is_chosen else p.outline), 2.5 if self.is_chosen else 1.2))
        painter.setBrush(QColor(p.surface if self.node.kind != "collect" else p.raised))
        painter.drawRoundedRect(box, radius, radius)
        room = box.adjusted(12, 5, -12, -5)
        sign = "▶ " if self.is_running else ""
        self._write(painter, room, f"{sign}{self.node.title}", p.ink, is_bold=True, is_top=True)
        below = self.node.detail if self.node.detail else self._kind
        self._write(painter, room, below, p.muted, is_bold=False, is_top=False)

    @staticmethod
    def _write(painter: QPainter, room: QRectF, text: str, colour: str, *, is_bold: bool, is_top: bool) -> None:
        chosen = font(_LETTERS_PX, is_bold=is_bold)
        painter.setFont(chosen)
        painter.setPen(QColor(colour))
        fitted = QFontMetricsF(chosen).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        place = Qt.AlignmentFlag.AlignTop if is_top else Qt.AlignmentFlag.AlignBottom
        painter.drawText(room, place | Qt.AlignmentFlag.AlignHCenter, fitted)


class LinkItem(QGraphicsItem):
    """A link with its condition."""

    def __init__(self, edge: GraphEdge, label: str, path: QPainterPath, colours: Callable[[], Palette]) -> None:
        """Draw `edge` along `path`."""
        super().__init__()
        self._edge = edge
        self._label = label
        self._path = path
        self._colours = colours
        self.setToolTip(label)
        self.setZValue(-1)

    def boundingRect(self) -> QRectF:
        """Return the path with room for the arrow and the words."""
        return self._path.boundingRect().adjusted(-60, -12, 60, 12)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Draw the line, the arrow and the condition; errors are dashed."""
        p = self._colours()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(p.danger if self._edge.kind == "error" else p.outline)
        pen = QPen(colour, 1.4)
        if self._edge.kind != "next":
            pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(self._path)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPolygon(self._arrow())
        if self._label:
            self._write(painter, p)

    def _arrow(self) -> QPolygonF:
        tip = self._path.pointAtPercent(1.0)
        angle = self._path.angleAtPercent(0.98)
        line = [QPointF(0, 0), QPointF(-_ARROW_PX, _ARROW_PX * 0.55), QPointF(-_ARROW_PX, -_ARROW_PX * 0.55)]
        turned = QTransform().rotate(-angle)
        return QPolygonF([turned.map(point) + tip for point in line])

    def _write(self, painter: QPainter, p: Palette) -> None:
        chosen = font(_LETTERS_PX - 1)
        metrics = QFontMetricsF(chosen)
        text = metrics.elidedText(self._label, Qt.TextElideMode.ElideRight, 110)
        middle = self._path.pointAtPercent(0.5)
        room = QRectF(0, 0, metrics.horizontalAdvance(text) + 8, metrics.height() + 2)
        room.moveCenter(middle)
        painter.setBrush(QColor(p.surface))
        painter.drawRoundedRect(room, 4, 4)
        painter.setFont(chosen)
        painter.setPen(QColor(p.ink))
        painter.drawText(room, Qt.AlignmentFlag.AlignCenter, text)


class GraphView(QGraphicsView):
    """Shows one graph. Emits the node that the user chose."""

    step_chosen = Signal(object)

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Show nothing yet."""
        super().__init__()
        self.setObjectName("flowGraph")
        self._theme = theme
        self._translator = translator
        self._graph: Graph | None = None
        self._items: dict[str, StepItem] = {}
        self._running: tuple[str, str] | None = None
        self._chosen: str | None = None
        self._is_fitted = True
        self.setScene(QGraphicsScene(self))
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.setDragMode(QGraphicsView.DragMode.ScrollHandDrag)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.AnchorUnderMouse)
        self._empty = EmptyHint(self, "flows.graph.empty", translator)
        translator.bind(self.setAccessibleName, "flows.graph")
        theme.changed.connect(self._redraw)
        translator.changed.connect(self._redraw)

    @property
    def graph(self) -> Graph | None:
        """The graph in sight."""
        return self._graph

    @property
    def running_step(self) -> str | None:
        """The step of this graph that is lit, or None."""
        return next((i for i, item in self._items.items() if item.is_running), None)

    def show_graph(self, graph: Graph | None) -> None:
        """Draw `graph`, unless it is drawn already."""
        if graph == self._graph:
            return
        is_same = graph is not None and self._graph is not None and graph.id == self._graph.id
        self._graph = graph
        self._redraw()
        if not is_same:
            self._chosen = None
            self._is_fitted = True
            self.fit()

    def show_running(self, flow: str | None, step: str | None) -> None:
        """Light a step wherever its flow is drawn; None puts the light out."""
        self._running = (flow, step) if flow is not None and step is not None else None
        self._light()

    def show_line(self, line: int) -> None:
        """Mark the step that the text's `line` belongs to."""
        inside = [i for i, item in self._items.items() if item.node.line <= line <= item.node.end_line]
        self._choose(inside[-1] if inside else None)

    def step_rect(self, step: str) -> QRectF:
        """Return where a step is in the viewport, for tests and screen readers."""
        item = self._items[step]
        return QRectF(self.mapFromScene(item.sceneBoundingRect()).boundingRect())

    def fit(self) -> None:
        """Make the whole graph fit, at most in full size."""
        bounds = self.scene().itemsBoundingRect().adjusted(-16, -16, 16, 16)
        self.setSceneRect(bounds)
        room = self.viewport().rect()
        if bounds.isEmpty() or room.isEmpty():
            return
        scale = min(font_scale(), room.width() / bounds.width(), max(room.height() / bounds.height(), 0.5))
        self.resetTransform()
        self.scale(max(scale, _LEAST), max(scale, _LEAST))
        self.centerOn(bounds.center().x(), bounds.top())
        self._is_fitted = True

    def zoom(self, factor: float) -> None:
        """Enlarge by `factor` within bounds."""
        now = self.transform().m11()
        wanted = min(max(now * factor, _LEAST), _MOST)
        self.scale(wanted / now, wanted / now)
        self._is_fitted = False

    # --- drawing ---------------------------------------------------------------------------------------

    def _palette(self) -> Palette:
        return self._theme.palette

    def _redraw(self) -> None:
        self.scene().clear()
        self._items = {}
        graph = self._graph
        self._empty.setVisible(graph is None or not graph.nodes)
        if graph is None or not graph.nodes:
            return
        layout = lay_out(graph)
        places = {node: _corner(layout, node) for node in layout.cells}
        for node in graph.nodes:
            kind = self._translator.text(f"flows.step.{node.kind}") if node.kind in _KINDS else node.kind
            shown = node if graph.kind == "flow" else _renamed(node, kind)
            item = StepItem(shown, kind, self._palette)
            item.setPos(places[node.id])
            self.scene().addItem(item)
            self._items[node.id] = item
        seen: dict[tuple[str, str], int] = {}
        for edge in graph.edges:
            label = edge.label
            if label in ("else", "then") or edge.kind != "next":
                label = self._translator.text(f"flows.link.{label or edge.kind}")
            number = seen.setdefault((edge.source, edge.target), 0)
            seen[edge.source, edge.target] += 1
            is_up = (edge.source, edge.target) in layout.backward
            far = layout.cells[edge.target][0] - layout.cells[edge.source][0] > 1
            path = _path(places[edge.source], places[edge.target], is_up=is_up, is_far=far, number=number)
            self.scene().addItem(LinkItem(edge, label, path, self._palette))
        self.setSceneRect(self.scene().itemsBoundingRect().adjusted(-16, -16, 16, 16))
        self._light()
        self._choose(self._chosen)

    def _light(self) -> None:
        for step, item in self._items.items():
            is_running = self._graph is not None and (self._graph.id, step) == self._running
            if item.is_running != is_running:
                item.is_running = is_running
                item.update()

    def _choose(self, step: str | None) -> None:
        self._chosen = step
        for name, item in self._items.items():
            if item.is_chosen != (name == step):
                item.is_chosen = name == step
                item.update()
        found = self._items.get(step or "")
        words = f"{found.node.title}: {found.node.detail}" if found is not None else ""
        self.setAccessibleDescription(words)
        if found is not None and not self._is_fitted:
            self.ensureVisible(found, 8, 8)

    # --- what the user does ----------------------------------------------------------------------------

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose the step under the mouse, unless the picture was dragged."""
        super().mouseReleaseEvent(event)
        point = event.position().toPoint()
        item = self.itemAt(point)
        if isinstance(item, StepItem) and event.button() == Qt.MouseButton.LeftButton:
            self._pick(item)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk through the steps by arrow keys; + and - zoom, 0 fits, Enter goes to the text."""
        key = event.key()
        order = list(self._items)
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Left) and order:
            step = 1 if key in (Qt.Key.Key_Down, Qt.Key.Key_Right) else -1
            at = order.index(self._chosen) + step if self._chosen in order else 0
            self._is_fitted = self._is_fitted and self.sceneRect().height() * self.transform().m22() <= self.height()
            self._pick(self._items[order[at % len(order)]])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._chosen in self._items:
            self._pick(self._items[str(self._chosen)])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(1.2)
        elif key == Qt.Key.Key_Minus:
            self.zoom(1 / 1.2)
        elif key == Qt.Key.Key_0:
            self.fit()
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom with Ctrl, else scroll."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.15 if event.angleDelta().y() > 0 else 1 / 1.15)
            return
        super().wheelEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep a fitted picture fitted."""
        super().resizeEvent(event)
        if self._is_fitted:
            self.fit()

    def _pick(self, item: StepItem) -> None:
        self._choose(next(i for i, found in self._items.items() if found is item))
        self.step_chosen.emit(item.node)


def _renamed(node: GraphNode, kind: str) -> GraphNode:
    return GraphNode(id=node.id, kind=node.kind, title=kind or node.title, detail=node.detail, line=node.line,
                     end_line=node.end_line)  # fmt: skip


def _corner(layout: Layout, node: str) -> QPointF:
    row, at, size = layout.cells[node]
    return QPointF((at - (size - 1) / 2) * (_WIDTH + _GAP_X), row * (_HEIGHT + _GAP_Y))


def _path(source: QPointF, target: QPointF, *, is_up: bool, is_far: bool, number: int) -> QPainterPath:
    shift = number * 24.0
    if is_up:
        # A link back goes round the right side.
        begin = QPointF(source.x() + _WIDTH, source.y() + _HEIGHT / 2)
        end = QPointF(target.x() + _WIDTH, target.y() + _HEIGHT / 2)
        bulge = max(begin.x(), end.x()) + _GAP_X + shift
        path = QPainterPath(begin)
        path.cubicTo(QPointF(bulge, begin.y()), QPointF(bulge, end.y()), end)
        return path
    if is_far and abs(source.x() - target.x()) < _WIDTH:
        # A link over a row of steps goes round them on the left.
        begin = QPointF(source.x(), source.y() + _HEIGHT / 2)
        end = QPointF(target.x(), target.y() + _HEIGHT / 2)
        bulge = min(begin.x(), end.x()) - _GAP_X * 1.6 - shift
        path = QPainterPath(begin)
        path.cubicTo(QPointF(bulge, begin.y() + _HEIGHT), QPointF(bulge, end.y() - _HEIGHT), end)
        return path
    begin = QPointF(source.x() + _WIDTH / 2 + shift, source.y() + _HEIGHT)
    end = QPointF(target.x() + _WIDTH / 2 + shift, target.y())
    bend = max((end.y() - begin.y()) / 2, 16)
    path = QPainterPath(begin)
    path.cubicTo(QPointF(begin.x(), begin.y() + bend), QPointF(end.x(), end.y() - bend), end)
    return path
