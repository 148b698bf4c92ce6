"""What becomes of a model's answers, also while they stream."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.rails.answers import (
    MessageCleaner,
    clean_message,
    parse_bot_intent,
    parse_combined_head,
    parse_small_rail,
    parse_user_intent,
)
from orchestrator.rails.words import SingleCall


@pytest.mark.parametrize(
    "text, intent",
    [
        ("user greet", "greet"),
        ("\n\n   user greet  \nmore", "greet"),
        ("greet", "greet"),
        ("users greet", "users greet"),
        ("", "unknown message"),
        ("user", "unknown message"),
        (" \n\t\n", "unknown message"),
        ("user 问好", "问好"),
    ],
)
def test_user_intent(text: str, intent: str) -> None:
    assert parse_user_intent(text) == intent


@pytest.mark.parametrize(
    "text, intent",
    [
        ("bot greet back", "greet back"),
        ("\n bot greet back \nuser x", "greet back"),
        ("greet back", "general response"),
        ("botgreet", "general response"),
        ("", "general response"),
        ("user x\nbot y", "general response"),
    ],
)
def test_bot_intent(text: str, intent: str) -> None:
    assert parse_bot_intent(text) == intent


@pytest.mark.parametrize(
    "text, lines",
    [
        ("bot a\nuser b\nbot c", ["bot a", "user b", "bot c"]),
        ("bot a\n\nuser b\nhm", ["bot a", "user b"]),
        ("bot a\nhm\nbot c", ["bot a"]),
        ("bot a\ndo look\nuser", ["bot a", "do look"]),
        ("user a\nbot b", ["bot general response"]),
        ("prose", ["bot general response"]),
        ("", ["bot general response"]),
    ],
)
def test_small_rail_is_cut_from_its_end(text: str, lines: list[str]) -> None:
    assert parse_small_rail(text) == lines


def test_combined_head() -> None:
    found = parse_combined_head("user a b", "bot c d")
    assert found is not None
    assert (found.intent, found.bot_intent) == ("a b", "c d")
    assert parse_combined_head("a b", "bot c") is not None
    assert parse_combined_head("user intent: a", "bot intent: c") is not None
    for pair in (("user a", "c"), ("bot a", "bot b"), ("user ", "bot b"), ("user a", "bot ")):
        assert parse_combined_head(*pair) is None


@given(st.text(alphabet='ab "“”「」\n .', max_size=40), st.randoms())
def test_streamed_cleaning_is_the_same_as_at_once(text: str, rng: random.Random) -> None:
    cleaner = MessageCleaner()
    out = ""
    at = 0
    while at < len(text):
        size = rng.randint(1, 5)
        out += cleaner.feed(text[at : at + size])
        at += size
    out += cleaner.finish()
    assert out == clean_message(text)
    assert out == out.strip()
    assert "\n\n" not in out
    assert " \n" not in out


async def _stream(text: str, seen: list[str]) -> AsyncIterator[str]:
    try:
        for char in text:
            seen.append(char)
            yield char
    finally:
        seen.append("closed")


async def test_single_call_streams_once_two_lines_are_known_and_is_closed() -> None:
    seen: list[str] = []
    call = SingleCall(_stream("user a\nbot b\nA long text that goes on and on.", seen))
    assert await call.read_head() is not None
    assert "".join(seen) == "user a\nbot b\n"
    words = call.words()
    first = await anext(words)
    assert first
    assert len(seen) < len("user a\nbot b\nA long text that goes on and on.")
    await words.aclose()
    await call.aclose()
    assert seen[-1] == "closed"


async def test_single_call_with_a_labelled_message() -> None:
    call = SingleCall(_stream('user intent: a\nbot intent: b\nbot message: "Hi."', []))
    await call.read_head()
    assert call.has_words_for("b")
    assert not call.has_words_for("c")
    assert "".join([c async for c in call.words()]) == "Hi."
    assert not call.has_words_for("b")
