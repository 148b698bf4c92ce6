"""The lines of the conversation as a list: who, when, what, and where it was cut."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from desktop.history_service import Line
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, TYPE, Theme, font

Index = QModelIndex | QPersistentModelIndex
_LINE_ROLE = Qt.ItemDataRole.UserRole
_NO_PARENT = QModelIndex()
_WRAP = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)


class LineModel(QAbstractListModel):
    """Holds the lines; their words for ears are those for eyes."""

    def __init__(self, translator: Translator) -> None:
        """Begin empty."""
        super().__init__()
        self._translator = translator
        self.lines: tuple[Line, ...] = ()
        self.character = ""

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show `lines`."""
        self.beginResetModel()
        self.lines = tuple(lines)
        self.endResetModel()

    def heading(self, line: Line) -> str:
        """Return who spoke, when, whether it was cut off, and whether it was misheard and said again."""
        text = self._translator.text
        parts = [self.speaker(line.role), f"{line.at.astimezone():%Y-%m-%d %H:%M}"]
        if line.is_cut:
            parts.append(text("subtitles.cut"))
        if line.is_replaced:
            parts.append(text("history.replaced"))
        return " · ".join(parts)

    def speaker(self, role: str) -> str:
        """Return the name for `role`."""
        if role == "assistant":
            return self.character or self._translator.text("role.character")
        return self._translator.text("role.user" if role == "user" else "history.note")

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        """Return how many lines there are."""
        return 0 if parent.isValid() else len(self.lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a line, or the line itself."""
        if not 0 <= index.row() < len(self.lines):
            return None
        line = self.lines[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return f"{self.heading(line)}\n{line.text}"
        return line if role == _LINE_ROLE else None


class _LineDelegate(QStyledItemDelegate):
    """Paints a line on its card; the user's begin further right, so that sides tell the speakers, too."""

    def __init__(self, view: QListView, model: LineModel, theme: Theme) -> None:
        super().__init__(view)
        self._view = view
        self._model = model
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the room that the wrapped text needs."""
        line = self._model.lines[index.row()]
        width = self._view.viewport().width()
        room = self._inner(QRect(0, 0, width, 10_000), line)
        high = QFontMetrics(font(TYPE.body_px)).boundingRect(room, _WRAP, line.text).height()
        return QSize(width, high + QFontMetrics(font(TYPE.caption_px)).height() + 3 * GRID_PX + 4)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the card, the heading and the text."""
        palette = self._theme.palette
        line = self._model.lines[index.row()]
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        is_chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QColor(palette.primary if is_chosen else palette.line))
        painter.setBrush(
            QColor(palette.primary if is_chosen else palette.raised if line.role == "user" else palette.surface)
        )
        painter.drawRoundedRect(self._card(rect, line), 12, 12)
        inner = self._inner(rect, line)
        painter.setFont(font(TYPE.caption_px, is_bold=True))
        painter.setPen(QColor(palette.on_primary if is_chosen else palette.muted))
        painter.drawText(inner, _WRAP, self._model.heading(line))
        body = font(TYPE.body_px)
        body.setStrikeOut(line.is_replaced)
        painter.setFont(body)
        painter.setPen(QColor(palette.on_primary if is_chosen else palette.ink))
        inner.setTop(inner.top() + QFontMetrics(font(TYPE.caption_px)).height() + 2)
        painter.drawText(inner, _WRAP, line.text)
        painter.restore()

    def _card(self, rect: QRect, line: Line) -> QRect:
        indent = 3 * GRID_PX
        left, right = (indent, 4) if line.role == "user" else (4, indent)
        return rect.adjusted(left, 3, -right, -3)

    def _inner(self, rect: QRect, line: Line) -> QRect:
        return self._card(rect, line).adjusted(12, GRID_PX, -12, -4)


class LineList(QListView):
    """The list; several lines can be chosen."""

    def __init__(self, model: LineModel, theme: Theme) -> None:
        """Show `model`."""
        super().__init__()
        self.setObjectName("historyList")
        self._lines = model
        self.setModel(model)
        self.setItemDelegate(_LineDelegate(self, model, theme))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setBatchSize(60)
        theme.changed.connect(self.viewport().update)

    def chosen(self) -> list[Line]:
        """Return the chosen lines, oldest first."""
        rows = sorted(index.row() for index in self.selectionModel().selectedIndexes())
        return [self._lines.lines[row] for row in rows if row < len(self._lines.lines)]

    def choose(self, ids: set[int]) -> None:
        """Choose the lines with these numbers."""
        selection = self.selectionModel()
        for row, line in enumerate(self._lines.lines):
            if line.id in ids:
                selection.select(self._lines.index(row), selection.SelectionFlag.Select)
