from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetricsF, QImage
from PySide6.QtTest import QTest
from rigs.pixels import pixels

from desktop.ui.subtitles.layout import BlockLayout
from desktop.ui.theme import LIGHT, TYPE, font
from orchestrator.contracts.events import SubtitlePainted
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.views import (
    CharacterTextView,
    GenerationEndedView,
    SpeechStoppedView,
    UserTextView,
)

G1, I1 = GenerationId("g-1"), IntentId("i-1")


def shot(stage: Any) -> QImage:
    return stage.window.subtitles.grab().toImage()


def where(image: QImage, colour: str) -> Any:
    """Mark the pixels of exactly `colour`."""
    wanted = QColor(colour)
    return (pixels(image) == (wanted.red(), wanted.green(), wanted.blue())).all(axis=2)


def count(image: QImage, colour: str) -> int:
    return int(where(image, colour).sum())


def columns(image: QImage, colour: str) -> tuple[int, int]:
    found = np.flatnonzero(where(image, colour).any(axis=0))
    return int(found.min()), int(found.max())


def test_the_word_that_sounds_is_lit_where_it_stands(stage: Any, spoken: Any) -> None:
    palette = stage.window.theme.palette
    stage.show(spoken.added(), spoken.started(110.0))
    stage.at(109.9)
    before = shot(stage)
    assert count(before, palette.highlight) == 0
    stage.at(110.15)
    first = columns(shot(stage), palette.highlight)
    stage.at(110.5)
    second = columns(shot(stage), palette.highlight)
    assert first[1] < second[0] + 8
    assert second[1] - second[0] > 2 * (first[1] - first[0])
    stage.at(111.2)
    assert count(shot(stage), palette.highlight) == 0


def test_lighting_never_moves_a_word(stage: Any, spoken: Any) -> None:
    stage.show(spoken.added())
    places = []
    stage.show(spoken.started(110.0))
    for at_s in (109.0, 110.15, 110.5, 111.6, 113.0):
        stage.at(at_s)
        placed, _ = stage.window.subtitles._place()
        places.append([(r.x(), r.y(), r.width()) for r in placed[0].layout.rects(0, 17)])
    assert all(place == places[0] for place in places)


def test_a_cut_is_struck_through_with_a_bar_and_a_word(stage: Any, spoken: Any) -> None:
    danger = stage.window.theme.palette.danger
    stage.show(spoken.added(), spoken.started(110.0))
    stage.at(110.5)
    assert count(shot(stage), danger) == 0
    stage.show(SpeechStoppedView(generation_id=G1, intent_id=I1, at_s=110.5, cut_at=3, held=True))
    stage.at(110.6)
    cut = shot(stage)
    assert count(cut, danger) > 20
    line = stage.window.subtitles.lines()[-1]
    assert (line["lit_to"], line["cut_at"]) == (3, 3)
    # The strike runs through the gap between the words, where there is no letter.
    assert where(cut, stage.window.theme.palette.muted).sum(axis=1).max() > 100
    stage.show(spoken.started(115.0, offset_s=0.2))
    stage.at(115.1)
    assert count(shot(stage), danger) == 0
    assert stage.window.subtitles.lines()[-1]["cut_at"] is None


def test_live_words_look_tentative_until_they_settle(stage: Any) -> None:
    muted, ink = stage.window.theme.palette.muted, stage.window.theme.palette.ink
    utterance = UtteranceId("u-1")
    stage.show(UserTextView(utterance_id=utterance, text="今天天气怎么样", final=False))
    live = shot(stage)
    stage.show(UserTextView(utterance_id=utterance, text="今天天气怎么样？", final=True))
    settled = shot(stage)
    assert count(live, muted) > 0 and count(live, ink) == 0
    assert count(settled, ink) > 0 and count(settled, muted) == 0


def test_what_was_painted_is_reported_once_for_each_change(stage: Any, spoken: Any) -> None:
    stage.show(
        UserTextView(utterance_id=UtteranceId("u-1"), text="Hi", final=True), spoken.added(), spoken.started(110.0)
    )
    for at_s in (109.0, 110.15, 110.16, 110.5, 110.9, 111.6, 111.7):
        stage.at(at_s)
    stage.show(SpeechStoppedView(generation_id=G1, intent_id=I1, at_s=111.7, cut_at=14))
    stage.at(111.8)
    events = stage.painted(SubtitlePainted)
    assert [(e.payload.role, e.payload.lit_to, e.payload.cut_at) for e in events] == [
        ("user", 2, None),
        ("character", 0, None),
        ("character", 2, None),
        ("character", 13, None),
        ("character", 17, None),
        ("character", 14, 14),
    ]
    assert {(e.generation_id, e.intent_id) for e in events[1:]} == {(G1, I1)}
    assert {e.source for e in events} == {"window"}


def test_a_stale_answer_is_neither_shown_nor_lit(stage: Any, spoken: Any) -> None:
    stage.show(spoken.added(), spoken.started(110.0))
    stage.at(110.15)
    stage.outside.stale.add(G1)
    stage.show(CharacterTextView(generation_id=G1, intent_id=IntentId("i-9"), text="Too late."))
    stage.at(110.6)
    assert [(line["text"], line["lit_to"]) for line in stage.window.subtitles.lines()] == [(spoken.text, 2)]
    stage.show(GenerationEndedView(generation_id=G1, outcome="cancelled"))
    assert stage.window.subtitles.lines()[-1]["cut_at"] == 2


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_long_answer_scrolls_so_that_what_sounds_is_in_sight(
    make_stage: Callable[..., Any], spoken: Any, language: str
) -> None:
    stage = make_stage(language)
    text = "春眠不觉晓，处处闻啼鸟。" * 30 if language == "zh_CN" else "The early bird sings a long song. " * 20
    stage.show(CharacterTextView(generation_id=G1, intent_id=I1, text=text))
    subtitles = stage.window.subtitles
    stage.at(101.0)
    assert subtitles._offset == 0.0, "the beginning of what will be said is in sight"
    started = spoken.started(110.0)
    size = len(text)
    words = tuple(
        type(started.words[0])(
            index=n,
            text="",
            char_start=n * size // 50,
            char_end=(n + 1) * size // 50,
            start_s=n * 0.2,
            end_s=n * 0.2 + 0.2,
        )
        for n in range(50)
    )
    stage.show(
        type(started)(
            generation_id=G1, intent_id=I1, at_s=110.0, start_offset_s=0.0, duration_s=10.0, words=words, visemes=()
        )
    )
    for step in range(50):
        stage.at(110.1 + step * 0.2)
        bottom = subtitles._place()[0][0].layout.bottom_of(subtitles.lines()[-1]["lit_to"] - 1)
        assert subtitles._offset <= bottom - 20 and bottom <= subtitles._offset + subtitles.height() + 1


def test_chinese_breaks_between_characters_and_never_before_closing_punctuation(qapp: object) -> None:
    font = QFont()
    font.setPixelSize(20)
    text = "今天晴，最高二十三度。下午有一点风，适合出门散步！" * 4
    for width in range(90, 300, 7):
        layout = BlockLayout(text, font, float(width)).layout
        starts = [layout.lineAt(n).textStart() for n in range(layout.lineCount())]
        assert len(starts) > 3
        assert not any(text[start] in "，。！" for start in starts)


def test_places_of_characters_count_emoji_as_one(qapp: object) -> None:
    font = QFont()
    font.setPixelSize(20)
    layout = BlockLayout("😀 word", font, 400.0)
    plain = BlockLayout("word", font, 400.0)
    assert layout.rects(2, 6)[0].width() == pytest.approx(plain.rects(0, 4)[0].width(), abs=1.0)


# --- a cut, looks, corrections ------------------------------------------------------------------------------------


def test_the_sign_of_a_cut_lies_on_no_word(make_stage: Callable[..., Any]) -> None:
    """Whatever the length of the last line, nothing is written over the text or over the next turn."""
    for language, text in (("en", "We walk and talk and walk on " * 2), ("zh_CN", "我们一边走一边聊天，" * 6)):
        stage = make_stage(language)
        stage.show(CharacterTextView(generation_id=G1, intent_id=I1, text=text))
        stage.show(SpeechStoppedView(generation_id=G1, intent_id=I1, at_s=101.0, cut_at=6))
        stage.show(UserTextView(utterance_id=UtteranceId("u-9"), text="next", final=True))
        widget = stage.window.subtitles
        crowded = 0
        for extra in range(0, 60, 2):
            widget.model.blocks[0].sentences[0].text = text + "m" * extra
            own, following = widget._place()[0]
            assert following.y >= own.y + own.layout.height + own.extra
            last = own.layout.rects(0, len(own.layout.text))[-1]
            words = QFontMetricsF(font(TYPE.caption_px, is_bold=True)).horizontalAdvance(
                stage.window.translator.text("subtitles.cut")
            )
            assert own.extra >= 16 or last.right() + words <= own.layout.width
            crowded += own.extra > 0
        assert 0 < crowded < 30


def test_words_take_another_font_and_more_contrast(stage: Any, spoken: Any) -> None:
    widget = stage.window.subtitles
    stage.show(spoken.added(), spoken.started(100.0))
    stage.at(100.4)
    soft = widget.grab().toImage()
    widget.set_high_contrast(True)
    strong = widget.grab().toImage()
    assert soft != strong
    muted = QColor(LIGHT.muted).getRgb()[:3]
    ink = sum(tuple(p) == muted for row in pixels(strong)[4:40:2, 90:600:2] for p in row.astype(int))
    assert ink < sum(tuple(p) == muted for row in pixels(soft)[4:40:2, 90:600:2] for p in row.astype(int))
    widget.set_family("no such font at all")
    assert widget._font().families() == font(21).families()
    family = QFontDatabase.families()[0]
    widget.set_family(family)
    assert widget._font().families()[0] == family


def test_a_misheard_line_is_corrected_by_click(stage: Any, qtbot: Any) -> None:
    widget = stage.window.subtitles
    found: list[tuple[str, str]] = []
    widget.corrected.connect(lambda heard, said: found.append((heard, said)))
    stage.show(UserTextView(utterance_id=UtteranceId("u-1"), text="play comfy you eye", final=True))
    stage.at(101.0)
    left, _ = widget._column()
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=QPoint(round(left) + 120, 12))
    assert widget.editor.isVisible() and widget.editor.text() == "play comfy you eye"
    assert widget.editor.accessibleName()
    QTest.keyClicks(widget.editor, "play ComfyUI")
    QTest.keyClick(widget.editor, Qt.Key.Key_Return)
    assert found == [("play comfy you eye", "play ComfyUI")]
    assert not widget.editor.isVisible()


def test_a_correction_is_left_by_escape_and_stops_nothing(stage: Any) -> None:
    stage.show(UserTextView(utterance_id=UtteranceId("u-1"), text="hello there", final=True))
    stage.at(101.0)
    stage.outside.commands.clear()
    stage.window.menu.correction.trigger()
    editor = stage.window.subtitles.editor
    assert editor.isVisible()
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    assert not editor.isVisible() and stage.outside.commands == []


def test_live_words_and_the_character_can_not_be_corrected(stage: Any, spoken: Any) -> None:
    widget = stage.window.subtitles
    assert not widget.correct_last()
    stage.show(UserTextView(utterance_id=UtteranceId("u-1"), text="hel", final=False), spoken.added())
    assert not widget.correct_last()


def test_what_follows_the_line_that_is_corrected_makes_room_for_the_field(stage: Any, spoken: Any) -> None:
    widget = stage.window.subtitles
    stage.show(UserTextView(utterance_id=UtteranceId("u-1"), text="play comfy you eye", final=True))
    stage.show(spoken.added())
    shot(stage)
    first, second = (item.y for item in widget._place()[0])
    stage.window.menu.correction.trigger()
    shot(stage)
    answer = widget._place()[0][1].y - widget._offset
    assert answer > widget.editor.geometry().bottom()
    QTest.keyClick(widget.editor, Qt.Key.Key_Escape)
    shot(stage)
    assert [item.y for item in widget._place()[0]] == [first, second]


def test_a_line_that_is_out_of_sight_comes_back_to_be_corrected(stage: Any, spoken: Any) -> None:
    widget = stage.window.subtitles
    stage.show(UserTextView(utterance_id=UtteranceId("u-1"), text="play comfy you eye", final=True))
    for number in range(4):
        stage.show(spoken.added(GenerationId(f"g-{number}"), IntentId(f"i-{number}")))
    shot(stage)
    assert widget._offset > 0
    stage.window.menu.correction.trigger()
    shot(stage)
    place, item = widget.editor.geometry(), widget._place()[0][0]
    assert place.top() == round(item.y - widget._offset) >= 0
