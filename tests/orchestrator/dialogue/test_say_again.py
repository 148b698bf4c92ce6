"""Saying again what was cut: the whole answer as it was generated, also after "go on", with the spaces it had."""

from __future__ import annotations

import pytest

from orchestrator.contracts.dialogue import HistoryEntry
from orchestrator.dialogue.glue import glue, glued
from orchestrator.dialogue.ledger_turns import whole_answer


def user(text: str) -> HistoryEntry:
    return HistoryEntry(role="user", text=text)


def said(text: str, unheard: str = "") -> HistoryEntry:
    return HistoryEntry(role="assistant", text=text, unheard=unheard, status="interrupted" if unheard else "completed")


@pytest.mark.parametrize(
    ("before", "after", "whole"),
    [
        ("one two", "three", "one two three"),
        ("one two", ", three", "one two, three"),
        ("今天天气", "很好。", "今天天气很好。"),
        ("好的。", "要我提醒你什么事？", "好的。要我提醒你什么事？"),
        ("用 Python", "写的", "用 Python写的"),
        ("", "three", "three"),
        ("one", "", "one"),
    ],
)
def test_parts_are_put_together_without_a_stray_space(before: str, after: str, whole: str) -> None:
    assert glue(before, after) == whole
    assert glued(["", before, "", after]) == whole


CASES = {
    "en": ("tell me", "go on", "One two three", "four five", "six seven.", "One two three four five six seven."),
    "zh": (
        "讲讲",
        "继续",
        "从前有座山，",
        "山里有座庙，",
        "庙里有个老和尚。",
        "从前有座山，山里有座庙，庙里有个老和尚。",
    ),
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_was_said_on_go_on_belongs_to_the_answer(language: str) -> None:
    ask, go_on, first, second, third, whole = CASES[language]
    rest = glue(second, third)
    talk = [user(ask), said(first, rest)]
    assert whole_answer(talk) == whole
    talk += [user(go_on), said(second, third)]
    assert whole_answer(talk) == whole
    talk += [user(go_on), said(third)]
    assert whole_answer(talk) == whole
    talk += [user("?"), said(whole)]
    assert whole_answer(talk) == whole


def test_an_answer_after_a_cut_one_stands_for_itself() -> None:
    assert whole_answer([user("a"), said("One two", "three."), user("b"), said("Four.")]) == "Four."
    assert whole_answer([]) == ""
