"""Paints the subtitles: a calm column that moves by whole scrolls and never reflows while a word lights up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QLinearGradient, QPainter, QPaintEvent, QPen, QRegion, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop.bridge import Bridge
from desktop.ui.i18n import Translator
from desktop.ui.subtitles.layout import BlockLayout
from desktop.ui.subtitles.model import Block, Sentence, SubtitleModel
from desktop.ui.theme import GRID_PX, TYPE, Theme, font
from orchestrator.contracts.events import SubtitlePainted
from orchestrator.contracts.ids import IntentId
from orchestrator.contracts.views import (
    CharacterTextView,
    GenerationEndedView,
    SpeechStoppedView,
    SpeechTimelineView,
    UserTextView,
)

_GUTTER_PX = 9 * GRID_PX
_COLUMN_PX = 88 * GRID_PX
_BLOCK_GAP_PX = 1.5 * GRID_PX
_SCROLL_TAU_S = 0.09


@dataclass(slots=True)
class _Placed:
    block: Block
    layout: BlockLayout
    starts: list[int]
    y: float


class SubtitleWidget(QWidget):
    """Shows the last turns; the newest, or the one that sounds, is always in sight."""

    def __init__(
        self, bridge: Bridge, theme: Theme, translator: Translator, *, is_motion_reduced: bool = False
    ) -> None:
        """Take views from `bridge`."""
        super().__init__()
        self.setObjectName("subtitles")
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
        self._offset = 0.0
        self._scrolled_at_s = bridge.clock.monotonic_s()
        self._reported: dict[object, SubtitlePainted] = {}
        bridge.user_text_changed.connect(self._on_user_text_changed)
        bridge.character_text_added.connect(self._on_character_text_added)
        bridge.speech_started.connect(self._on_speech_started)
        bridge.speech_stopped.connect(self._on_speech_stopped)
        bridge.generation_ended.connect(self._on_generation_ended)
        theme.changed.connect(self.update)
        translator.changed.connect(self.update)

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

    def _refresh(self) -> None:
        self.setAccessibleDescription("\n".join(f"{line['role']}: {line['text']}" for line in self.lines()))
        self.update()

    # --- geometry --------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        """Prefer room for five lines."""
        return QSize(640, 22 * GRID_PX)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break lines anew."""
        self._layouts.clear()
        super().resizeEvent(event)

    def _column(self) -> tuple[float, float]:
        width = min(float(_COLUMN_PX), self.width() - 4.0 * GRID_PX)
        return (self.width() - width) / 2, width

    def _place(self) -> tuple[list[_Placed], float]:
        width = self._column()[1] - _GUTTER_PX
        placed: list[_Placed] = []
        kept: dict[int, BlockLayout] = {}
        y = 0.0
        for block in self.model.blocks:
            text, starts = block.joined()
            layout = self._layouts.get(id(block))
            if layout is None or layout.text != text or layout.width != width:
                layout = BlockLayout(text, font(self._size_px), width)
            kept[id(block)] = layout
            placed.append(_Placed(block, layout, starts, y))
            y += layout.height + _BLOCK_GAP_PX
        self._layouts = kept
        return placed, max(0.0, y - _BLOCK_GAP_PX)

    def _goal(self, placed: list[_Placed], content: float) -> float:
        """Return the scroll offset that shows the end, or, while an answer is still to be heard, where it is."""
        end = max(0.0, content - self.height())
        if not placed or placed[-1].block.role != "character":
            return end
        last = placed[-1]
        for start, sentence in zip(last.starts, last.block.sentences, strict=True):
            if sentence.is_waiting:
                bottom = last.y + last.layout.bottom_of(start + max(0, sentence.lit_to - 1))
                return max(0.0, min(end, bottom + last.layout.line_height - self.height()))
        return end

    def _is_scrolling(self) -> bool:
        placed, content = self._place()
        return abs(self._goal(placed, content) - self._offset) > 0.5

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
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        if not placed and self._is_hint_shown:
            self._paint_hint(painter)
        left, _ = self._column()
        painter.translate(left, -round(self._offset))
        for item in placed:
            if item.y + item.layout.height < self._offset or item.y > self._offset + self.height():
                continue
            self._paint_block(painter, item)
        painter.resetTransform()
        self._paint_fade(painter)
        painter.end()
        self._report(placed)

    def _paint_hint(self, painter: QPainter) -> None:
        painter.setPen(QColor(self._theme.palette.muted))
        painter.setFont(font(TYPE.body_px))
        flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
        painter.drawText(self.rect().adjusted(16, 8, -16, 0), int(flags), self._translator.text("subtitles.hint"))

    def _paint_block(self, painter: QPainter, item: _Placed) -> None:
        palette = self._theme.palette
        is_user = item.block.role == "user"
        name = None if is_user else self._character_name
        name = name or self._translator.text(f"role.{item.block.role}")
        label_font = font(TYPE.caption_px, is_bold=True)
        painter.setFont(label_font)
        painter.setPen(QColor(palette.primary if is_user else palette.warning))
        label = QRectF(0, item.y, _GUTTER_PX - GRID_PX, item.layout.line_height)
        shown = QFontMetricsF(label_font).elidedText(name, Qt.TextElideMode.ElideRight, label.width())
        painter.drawText(label, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), shown)
        origin = QPointF(_GUTTER_PX, item.y)
        if is_user:
            ink = palette.muted if item.block.is_tentative else palette.ink
            self._draw(painter, item, origin, [(0, len(item.block.text), ink)])
            if item.block.is_tentative:
                self._paint_tentative(painter, item, origin)
            return
        self._paint_sentences(painter, item, origin)

    def _paint_sentences(self, painter: QPainter, item: _Placed, origin: QPointF) -> None:
        palette = self._theme.palette
        inks: list[tuple[int, int, str]] = []
        for start, s in zip(item.starts, item.block.sentences, strict=True):
            if s.current is not None:
                first, last = start + s.current[0], start + s.current[1]
                self._paint_marker(painter, item, origin, first, last)
                inks += [(start, first, palette.ink), (first, last, palette.on_highlight)]
                inks.append((last, start + len(s.text), palette.muted))
            else:
                inks += [(start, start + s.lit_to, palette.ink), (start + s.lit_to, start + len(s.text), palette.muted)]
        self._draw(painter, item, origin, inks)
        first_cut = True
        for start, s in zip(item.starts, item.block.sentences, strict=True):
            if s.cut_at is not None and not s.is_waiting:
                self._paint_cut(painter, item, origin, start, s, is_first=first_cut)
                first_cut = False

    def _draw(self, painter: QPainter, item: _Placed, origin: QPointF, inks: list[tuple[int, int, str]]) -> None:
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

    def _paint_marker(self, painter: QPainter, item: _Placed, origin: QPointF, start: int, end: int) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.palette.highlight))
        for rect in item.layout.rects(start, end):
            painter.drawRoundedRect(rect.translated(origin).adjusted(-3, 1, 3, -1), 6, 6)

    def _paint_tentative(self, painter: QPainter, item: _Placed, origin: QPointF) -> None:
        """Underline live words with dots: they may still change."""
        pen = QPen(QColor(self._theme.palette.muted), 2.0, Qt.PenStyle.DotLine)
        painter.setPen(pen)
        for rect in item.layout.rects(0, len(item.block.text)):
            moved = rect.translated(origin)
            painter.drawLine(QPointF(moved.left(), moved.bottom() - 1), QPointF(moved.right(), moved.bottom() - 1))

    def _paint_cut(
        self, painter: QPainter, item: _Placed, origin: QPointF, start: int, s: Sentence, *, is_first: bool
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

    def _paint_cut_word(self, painter: QPainter, item: _Placed, origin: QPointF) -> None:
        """Write "cut off" behind the last word; where the last line is full, under the character's name."""
        words = self._translator.text("subtitles.cut")
        small = font(TYPE.caption_px, is_bold=True)
        width = QFontMetricsF(small).horizontalAdvance(words)
        last = item.layout.rects(0, len(item.layout.text))[-1].translated(origin)
        if last.right() + 2 * GRID_PX + width <= _GUTTER_PX + item.layout.width:
            box = QRectF(last.right() + 1.5 * GRID_PX, last.top(), width + GRID_PX, last.height())
        else:
            box = QRectF(0, item.y + item.layout.line_height, _GUTTER_PX, item.layout.line_height)
        painter.setFont(small)
        painter.setPen(QColor(self._theme.palette.danger))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), words)

    def _paint_fade(self, painter: QPainter) -> None:
        if self._offset <= 0.5:
            return
        solid = QColor(self._theme.palette.background)
        clear = QColor(solid)
        clear.setAlpha(0)
        fade = QLinearGradient(0, 0, 0, 3 * GRID_PX)
        fade.setColorAt(0.0, solid)
        fade.setColorAt(1.0, clear)
        painter.fillRect(0, 0, self.width(), 3 * GRID_PX, fade)

    def _report(self, placed: list[_Placed]) -> None:
        """Tell what is now on the screen, one event for each line that changed."""
        known: dict[object, SubtitlePainted] = {}
        for item in placed:
            block = item.block
            if block.role == "user":
                painted = SubtitlePainted(role="user", text=block.text, lit_to=len(block.text), cut_at=None)
                self._report_one(known, id(block), painted, block, None)
            for start, s in zip(item.starts, block.sentences, strict=True):
                top = item.y + item.layout.bottom_of(start) - item.layout.line_height
                key = (block.generation_id, s.intent_id)
                if top >= self._offset + self.height() and key not in self._reported:
                    continue
                painted = SubtitlePainted(role="character", text=s.text, lit_to=s.lit_to, cut_at=s.cut_at)
                self._report_one(known, key, painted, block, s.intent_id)
        self._reported = known

    def _report_one(
        self,
        known: dict[object, SubtitlePainted],
        key: object,
        painted: SubtitlePainted,
        block: Block,
        intent_id: IntentId | None,
    ) -> None:
        known[key] = painted
        if self._reported.get(key) != painted:
            self._bridge.report_painted(
                painted, utterance_id=block.utterance_id, generation_id=block.generation_id, intent_id=intent_id
            )
