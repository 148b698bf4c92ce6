"""Paints the subtitles: a calm column that moves by whole scrolls and never reflows while a word lights up."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QRegion,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop.bridge import Bridge
from desktop.ui.i18n import Translator
from desktop.ui.subtitles.correction import CorrectionField
from desktop.ui.subtitles.layout import BlockLayout, with_room
from desktop.ui.subtitles.model import Block, Sentence, SubtitleModel
from desktop.ui.subtitles.placed import PaintedReport, Placed
from desktop.ui.theme import GRID_PX, TYPE, Theme, font, font_scale
from orchestrator.contracts.views import (
    CharacterTextView,
    GenerationEndedView,
    MisheardView,
    SpeechStoppedView,
    SpeechTimelineView,
    UserTextView,
)

_GUTTER_PX = 9 * GRID_PX
"""Room for the speaker's name, at letters of normal size."""
_NARROW_GUTTER_PX = 7 * GRID_PX
_COLUMN_PX = 88 * GRID_PX
_BLOCK_GAP_PX = 1.5 * GRID_PX
_SCROLL_TAU_S = 0.09


class SubtitleWidget(QWidget):
    """Shows the last turns; the newest, or the one that sounds, is always in sight.

    A click on a settled line of the user's opens it for correction; `corrected` gives what was heard and what was said.
    """

    corrected = Signal(str, str)

    def __init__(
        self,
        bridge: Bridge,
        theme: Theme,
        translator: Translator,
        *,
        is_motion_reduced: bool = False,
        is_floating: bool = False,
    ) -> None:
        """Take views from `bridge`; a floating one stands in the companion's bubble and corrects nothing."""
        super().__init__()
        self.setObjectName("companionSubtitles" if is_floating else "subtitles")
        self._is_floating = is_floating
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setMinimumHeight(8 * GRID_PX)
        self._bridge = bridge
        self._theme = theme
        self._translator = translator
        self._is_motion_reduced = is_motion_reduced
        self._character_name: str | None = None
        self._is_hint_shown = False
        self.model = SubtitleModel()
        self._layouts: dict[int, BlockLayout] = {}
        self._size_px = TYPE.subtitle_px
        self._gutter = round((_NARROW_GUTTER_PX if is_floating else _GUTTER_PX) * font_scale())
        self._family: str | None = None
        self._is_high_contrast = False
        self._offset = 0.0
        self._scrolled_at_s = bridge.clock.monotonic_s()
        self._report = PaintedReport(bridge)
        name = "companionCorrectionField" if is_floating else "correctionField"
        self.editor = CorrectionField(self, name, translator)
        self.editor.entered.connect(self.corrected)
        self._edited: Block | None = None
        if not is_floating:
            self.setMouseTracking(True)
            translator.bind(self.setToolTip, "subtitles.correct.tip")
        for signal, take in (
            (bridge.user_text_changed, self._on_user_text_changed),
            (bridge.character_text_added, self._on_character_text_added),
            (bridge.speech_started, self._on_speech_started),
            (bridge.speech_stopped, self._on_speech_stopped),
            (bridge.generation_ended, self._on_generation_ended),
            (bridge.misheard, self._on_misheard),
        ):
            # A floating one shows the model of the window's, which takes the views.
            signal.connect(self._on_others_view if is_floating else take)
        theme.changed.connect(self.update)
        translator.changed.connect(self.update)

    def copy_from(self, other: SubtitleWidget) -> None:
        """Show what `other` shows, from its model: both follow the same views from then on."""
        self.model = other.model
        self._character_name = other._character_name
        self._layouts.clear()
        self.update()

    def set_character_name(self, name: str) -> None:
        """Call the character by `name` instead of the catalogue's word."""
        self._character_name = name
        self.update()

    def set_hint_shown(self, is_shown: bool) -> None:
        """Say what one can do here while there is nothing to show."""
        self._is_hint_shown = is_shown
        self.update()

    def set_size(self, size_px: int) -> None:
        """Write in letters of `size_px`."""
        self._size_px = size_px
        self._layouts.clear()
        self.update()

    def set_family(self, family: str | None) -> None:
        """Write in the font `family`, none for the window's; one that is not installed counts as none."""
        self._family = family if family and QFontDatabase.hasFamily(family) else None
        self._layouts.clear()
        self.update()

    def set_high_contrast(self, is_high: bool) -> None:
        """Write without soft greys on a plain ground; what is to come is told by an underline instead."""
        self._is_high_contrast = is_high
        self.update()

    def set_motion_reduced(self, is_reduced: bool) -> None:
        """Scroll at once instead of smoothly."""
        self._is_motion_reduced = is_reduced

    def lines(self) -> list[dict[str, Any]]:
        """Return what is shown, oldest first: role, text, lit_to, cut_at, tentative, generation."""
        found: list[dict[str, Any]] = []
        for block in self.model.blocks:
            if block.role == "user":
                found.append(
                    {"role": "user", "text": block.text, "lit_to": len(block.text), "cut_at": None}
                    | {"tentative": block.is_tentative, "generationId": None, "intentId": None}
                )
            found.extend(
                {"role": "character", "text": s.text, "lit_to": s.lit_to, "cut_at": s.cut_at}
                | {"tentative": False, "generationId": block.generation_id, "intentId": s.intent_id}
                for s in block.sentences
            )
        return found

    def tick(self, now_s: float) -> None:
        """Light words and scroll; repaints only what changed."""
        if self.model.advance(now_s, self._bridge.is_stale) or self._is_scrolling():
            self.update()

    def is_busy(self) -> bool:
        """Whether the next frame will differ: a sentence sounds or the column scrolls."""
        return self._is_scrolling() or any(s.is_sounding for b in self.model.blocks for s in b.sentences)

    # --- views -----------------------------------------------------------------------------------------

    def _on_user_text_changed(self, view: UserTextView) -> None:
        self.model.set_user_text(view)
        self._refresh()

    def _on_misheard(self, view: MisheardView) -> None:
        self.model.take_back(view.heard)
        self._refresh()

    def _on_character_text_added(self, view: CharacterTextView) -> None:
        self.model.add_character_text(view)
        self._refresh()

    def _on_speech_started(self, view: SpeechTimelineView) -> None:
        self.model.start_speech(view)
        self._refresh()

    def _on_speech_stopped(self, view: SpeechStoppedView) -> None:
        self.model.stop_speech(view)
        self._refresh()

    def _on_generation_ended(self, view: GenerationEndedView) -> None:
        self.model.end_generation(view)
        self._refresh()

    def _on_others_view(self, _view: object) -> None:
        self._refresh()

    def _refresh(self) -> None:
        self.setAccessibleDescription("\n".join(f"{line['role']}: {line['text']}" for line in self.lines()))
        self.update()

    # --- correcting ------------------------------------------------------------------------------------

    def correct_last(self) -> bool:
        """Open the user's last settled line for correction; False if there is none."""
        for item in reversed(self._place()[0]):
            if self._is_correctable(item.block):
                self._open_editor(item)
                return True
        return False

    def _is_correctable(self, block: Block) -> bool:
        return not self._is_floating and block.role == "user" and bool(block.text) and not block.is_tentative

    def _item_at(self, point: QPointF) -> Placed | None:
        left, width = self._column()
        x, y = point.x() - left, point.y() + round(self._offset)
        if not 0 <= x <= width:
            return None
        for item in self._place()[0]:
            if item.y <= y < item.y + item.layout.height and self._is_correctable(item.block):
                return item
        return None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show by the pointer what can be corrected."""
        can = self._item_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.IBeamCursor if can else Qt.CursorShape.ArrowCursor)
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Open the line that was clicked."""
        item = self._item_at(event.position()) if event.button() == Qt.MouseButton.LeftButton else None
        if item is None:
            super().mouseReleaseEvent(event)
            return
        self._open_editor(item)

    def _open_editor(self, item: Placed) -> None:
        self._edited = item.block
        # The line keeps its letters while it is written over.
        self.editor.setStyleSheet(f"font-size: {self._size_px}px;")
        self.editor.open(item.block.text, self._editor_place(item))
        self.update()

    def _editor_place(self, item: Placed) -> QRect:
        left, width = self._column()
        height, indent = self.editor.wanted_height(), self._gutter - 2 * GRID_PX
        top = max(0, min(round(item.y - self._offset), self.height() - height))
        return QRect(round(left + indent), top, round(width - indent), height)

    def _keep_editor(self, placed: list[Placed]) -> None:
        """Keep the field over its line, which moves when more is said."""
        item = next((p for p in placed if p.block is self._edited), None)
        if self.editor.isVisible() and item is not None and self.editor.geometry() != self._editor_place(item):
            self.editor.setGeometry(self._editor_place(item))

    # --- geometry --------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        """Prefer room for five lines."""
        return QSize(640, 22 * GRID_PX)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break lines anew."""
        self._layouts.clear()
        super().resizeEvent(event)

    def _font(self) -> QFont:
        made = font(self._size_px)
        if self._family is not None:
            made.setFamilies([self._family, *made.families()])
        return made

    def _soft(self) -> str:
        """Return the ink of what has not sounded yet."""
        palette = self._theme.palette
        return palette.ink if self._is_high_contrast else palette.muted

    def _column(self) -> tuple[float, float]:
        width = min(float(_COLUMN_PX), self.width() - 4.0 * GRID_PX)
        return (self.width() - width) / 2, width

    def _place(self) -> tuple[list[Placed], float]:
        width = self._column()[1] - self._gutter
        placed: list[Placed] = []
        kept: dict[int, BlockLayout] = {}
        y = 0.0
        for block in self.model.blocks:
            text, starts = block.joined()
            layout = self._layouts.get(id(block))
            if layout is None or layout.text != text or layout.width != width:
                layout = BlockLayout(text, self._font(), width)
            kept[id(block)] = layout
            extra = layout.line_height if self._is_cut_crowded(block, layout) else 0.0
            placed.append(Placed(block, layout, starts, y, extra))
            # the field over a line is higher than the line: what follows makes room
            is_edited = block is self._edited and self.editor.isVisible()
            y += max(layout.height + extra, self.editor.wanted_height() if is_edited else 0.0) + _BLOCK_GAP_PX
        self._layouts = kept
        return placed, max(0.0, y - _BLOCK_GAP_PX)

    def _is_cut_crowded(self, block: Block, layout: BlockLayout) -> bool:
        """Whether the sign of a cut has no room behind the last word."""
        if not layout.text or not any(s.cut_at is not None and not s.is_waiting for s in block.sentences):
            return False
        words = QFontMetricsF(font(TYPE.caption_px, is_bold=True)).horizontalAdvance(
            self._translator.text("subtitles.cut")
        )
        rects = layout.rects(0, len(layout.text))
        return bool(rects) and rects[-1].right() + 2 * GRID_PX + words > layout.width

    def _goal(self, placed: list[Placed], content: float) -> float:
        """Return the offset that shows the end, the answer that is still to be heard, or the line in the field."""
        end = max(0.0, content - self.height())
        edited = next((p for p in placed if p.block is self._edited), None) if self.editor.isVisible() else None
        if edited is not None:
            return min(end, edited.y)
        if not placed or placed[-1].block.role != "character":
            return end
        last = placed[-1]
        for start, sentence in zip(last.starts, last.block.sentences, strict=True):
            if sentence.is_waiting:
                bottom = last.y + last.layout.bottom_of(start + max(0, sentence.lit_to - 1))
                return max(0.0, min(end, bottom + last.layout.line_height - self.height()))
        return end

    def _is_scrolling(self) -> bool:
        return abs(self._goal(*self._place()) - self._offset) > 0.5

    def _scroll(self, goal: float, now_s: float) -> None:
        elapsed_s = max(0.0, now_s - self._scrolled_at_s)
        self._scrolled_at_s = now_s
        step = 1.0 if self._is_motion_reduced else 1.0 - math.exp(-min(elapsed_s, 0.05) / _SCROLL_TAU_S)
        self._offset += (goal - self._offset) * step
        if abs(goal - self._offset) <= 0.5:
            self._offset = goal

    # --- painting --------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the turns that are in sight."""
        now_s = self._bridge.clock.monotonic_s()
        self.model.advance(now_s, self._bridge.is_stale)
        placed, content = self._place()
        self._scroll(self._goal(placed, content), now_s)
        self._keep_editor(placed)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        if self._is_high_contrast and placed:
            self._paint_ground(painter, content)
        if not placed and self._is_hint_shown:
            self._paint_hint(painter)
        left, _ = self._column()
        painter.translate(left, -round(self._offset))
        for item in placed:
            if item.y + item.layout.height + item.extra < self._offset or item.y > self._offset + self.height():
                continue
            self._paint_block(painter, item)
        painter.resetTransform()
        self._paint_fade(painter)
        painter.end()
        self._report.tell(placed, self._offset + self.height())

    def _paint_ground(self, painter: QPainter, content: float) -> None:
        left, width = self._column()
        painter.setPen(QPen(QColor(self._theme.palette.outline), 1.0))
        painter.setBrush(QColor(self._theme.palette.surface))
        height = min(float(self.height()), content + GRID_PX) - 1
        painter.drawRoundedRect(QRectF(left - GRID_PX, 0.5, width + 2 * GRID_PX, height), GRID_PX, GRID_PX)

    def _paint_hint(self, painter: QPainter) -> None:
        painter.setPen(QColor(self._theme.palette.muted))
        painter.setFont(font(TYPE.body_px))
        flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
        painter.drawText(self.rect().adjusted(16, 8, -16, 0), int(flags), self._translator.text("subtitles.hint"))

    def _paint_block(self, painter: QPainter, item: Placed) -> None:
        palette = self._theme.palette
        is_user = item.block.role == "user"
        name = None if is_user else self._character_name
        name = name or self._translator.text(f"role.{item.block.role}")
        label_font = font(TYPE.caption_px, is_bold=True)
        painter.setFont(label_font)
        painter.setPen(QColor(palette.primary if is_user else palette.warning))
        label = QRectF(0, item.y, self._gutter - GRID_PX, item.layout.line_height)
        shown = QFontMetricsF(label_font).elidedText(name, Qt.TextElideMode.ElideRight, label.width())
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(with_room(label, label_font), int(flags), shown)
        origin = QPointF(self._gutter, item.y)
        if is_user:
            ink = self._soft() if item.block.is_tentative else palette.ink
            self._draw(painter, item, origin, [(0, len(item.block.text), ink)])
            if item.block.is_tentative:
                self._paint_tentative(painter, item, origin)
            return
        self._paint_sentences(painter, item, origin)

    def _paint_sentences(self, painter: QPainter, item: Placed, origin: QPointF) -> None:
        palette = self._theme.palette
        inks: list[tuple[int, int, str]] = []
        soft = self._soft()
        for start, s in zip(item.starts, item.block.sentences, strict=True):
            if s.current is not None:
                first, last = start + s.current[0], start + s.current[1]
                self._paint_marker(painter, item, origin, first, last)
                inks += [(start, first, palette.ink), (first, last, palette.on_highlight)]
                inks.append((last, start + len(s.text), soft))
            else:
                inks += [(start, start + s.lit_to, palette.ink), (start + s.lit_to, start + len(s.text), soft)]
        self._draw(painter, item, origin, inks)
        if self._is_high_contrast:
            self._underline_unheard(painter, item, origin)
        first_cut = True
        for start, s in zip(item.starts, item.block.sentences, strict=True):
            if s.cut_at is not None and not s.is_waiting:
                self._paint_cut(painter, item, origin, start, s, is_first=first_cut)
                first_cut = False

    def _draw(self, painter: QPainter, item: Placed, origin: QPointF, inks: list[tuple[int, int, str]]) -> None:
        """Draw the text once for each ink, clipped to the characters in it: colour never changes the layout."""
        for colour in dict.fromkeys(ink for _, _, ink in inks):
            region = QRegion()
            for start, end, ink in inks:
                if ink == colour:
                    for rect in item.layout.rects(start, end):
                        region += rect.translated(origin).adjusted(0, -4, 0, 4).toRect()
            if region.isEmpty():
                continue
            painter.setClipRegion(region)
            painter.setPen(QColor(colour))
            item.layout.layout.draw(painter, origin)
        painter.setClipping(False)

    def _paint_marker(self, painter: QPainter, item: Placed, origin: QPointF, start: int, end: int) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.palette.highlight))
        for rect in item.layout.rects(start, end):
            painter.drawRoundedRect(rect.translated(origin).adjusted(-3, 1, 3, -1), 6, 6)

    def _underline_unheard(self, painter: QPainter, item: Placed, origin: QPointF) -> None:
        painter.setPen(QPen(QColor(self._theme.palette.muted), 2.0, Qt.PenStyle.DotLine))
        for start, s in zip(item.starts, item.block.sentences, strict=True):
            if not s.is_waiting:
                continue
            for rect in item.layout.rects(start + s.lit_to, start + len(s.text)):
                moved = rect.translated(origin)
                painter.drawLine(QPointF(moved.left(), moved.bottom()), QPointF(moved.right(), moved.bottom()))

    def _paint_tentative(self, painter: QPainter, item: Placed, origin: QPointF) -> None:
        """Underline live words with dots: they may still change."""
        pen = QPen(QColor(self._theme.palette.muted), 2.0, Qt.PenStyle.DotLine)
        painter.setPen(pen)
        for rect in item.layout.rects(0, len(item.block.text)):
            moved = rect.translated(origin)
            painter.drawLine(QPointF(moved.left(), moved.bottom() - 1), QPointF(moved.right(), moved.bottom() - 1))

    def _paint_cut(
        self, painter: QPainter, item: Placed, origin: QPointF, start: int, s: Sentence, *, is_first: bool
    ) -> None:
        """Strike the unheard part through; a bar stands where the voice broke off, a word says so at the end."""
        palette = self._theme.palette
        cut = start + (s.cut_at or 0)
        rects = [r.translated(origin) for r in item.layout.rects(cut, start + len(s.text))]
        painter.setPen(QPen(QColor(palette.muted), 2.0))
        for rect in rects:
            y = rect.top() + rect.height() * 0.56
            painter.drawLine(QPointF(rect.left(), y), QPointF(rect.right(), y))
        if not is_first or not rects:
            return
        x, top, bottom = rects[0].left() - 1.5, rects[0].top() + 1, rects[0].bottom() - 1
        painter.setPen(QPen(QColor(palette.danger), 3.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(QPointF(x, top), QPointF(x, bottom))
        self._paint_cut_word(painter, item, origin)

    def _paint_cut_word(self, painter: QPainter, item: Placed, origin: QPointF) -> None:
        """Write "cut off" behind the last word; where the last line is full, on a line that was made for it."""
        words = self._translator.text("subtitles.cut")
        small = font(TYPE.caption_px, is_bold=True)
        width = QFontMetricsF(small).horizontalAdvance(words)
        last = item.layout.rects(0, len(item.layout.text))[-1].translated(origin)
        if item.extra:
            box = QRectF(self._gutter, item.y + item.layout.height, width + GRID_PX, item.extra)
        else:
            box = QRectF(last.right() + 1.5 * GRID_PX, last.top(), width + GRID_PX, last.height())
        painter.setFont(small)
        painter.setPen(QColor(self._theme.palette.danger))
        painter.drawText(with_room(box, small), int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), words)

    def _paint_fade(self, painter: QPainter) -> None:
        if self._offset <= 0.5:
            return
        palette = self._theme.palette
        solid = QColor(palette.surface if self._is_floating or self._is_high_contrast else palette.background)
        clear = QColor(solid)
        clear.setAlpha(0)
        fade = QLinearGradient(0, 0, 0, 3 * GRID_PX)
        fade.setColorAt(0.0, solid)
        fade.setColorAt(1.0, clear)
        painter.fillRect(0, 0, self.width(), 3 * GRID_PX, fade)
