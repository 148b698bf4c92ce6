"""Whatever people say, extraction gives a value of the slot's type or none, and never raises."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import random
from datetime import datetime

import pytest

from orchestrator.flows.model import Choice, Slot
from orchestrator.flows.slot_values import coerce
from orchestrator.tasks.extraction.extract import extract

NOW = datetime(2026, 12, 1, 9, 30)
BITS = {
    "en": ["one", "two", "three", "twelve", "twenty", "hundred", "thousand", "million", "grand", "point", "oh", "double", "half", "a", "an", "quarter", "third", "thirds", "of", "past", "to", "at", "in", "on", "the", "not", "no", "yes", "wait", "actually", "sorry", "make", "it", "monday", "friday", "next", "last", "this", "week", "weeks", "month", "tomorrow", "today", "tonight", "noon", "midnight", "am", "pm", "o'clock", "minutes", "hour", "hours", "seconds", "days", "from", "now", "ago", "or", "and", "after", "before", "march", "february", "thirtieth", "30", "31", "12/25", "99", "0", "1e9", "-5", "3.5", "ten-ish", "?", ",", ".", "red", "blue", "at", "dot", "com", "second", "first", "last", "one", "minute"],
    "zh": [*list("一二两三四五六七八九十百千万亿零半个点分刻秒时天周月年号日块毛米斤前后上下早晚午再过差到或不对是要明今昨大第最，。？吗呢吧了的"), "星期", "小时", "分钟", "还是", "不对", "国庆", "除夕", "月底", "百分之", "分之", "第二个", "红色", "艾特"],
}  # fmt: skip
SLOTS = [
    *(Slot(id="x", type=kind) for kind in ("integer", "number", "boolean", "date", "time", "datetime", "duration", "text", "any")),
    Slot(id="x", type="choice", choices=(Choice(value="red", names=("红色",)), Choice(value="blue", names=("蓝色",)))),
    Slot(id="x", type="text", pattern=r"[A-Z]?\d{2,6}"),
]  # fmt: skip


@pytest.mark.parametrize("slot", SLOTS, ids=lambda s: f"{s.type}{'-pattern' if s.pattern else ''}")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_random_words_give_a_sound_value_or_none(language: str, slot: Slot) -> None:
    chaos = random.Random(3)
    joint = " " if language == "en" else ""
    for _ in range(400):
        text = joint.join(chaos.choice(BITS[language]) for _ in range(chaos.randint(1, 9)))
        found = extract(slot, text, now=NOW, language=language)
        if found is not None:
            again = coerce(slot, found.value)
            assert again.ok, (text, found)
            assert again.value == found.value, (text, found)
