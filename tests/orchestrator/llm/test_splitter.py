"""Where a stream is cut into sentences, that nothing is lost, and that the chunking makes no difference."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.contracts.dialogue import LlmUnavailable
from orchestrator.llm.reply_text import ReplyText, reply_pieces
from orchestrator.llm.splitter import SentenceSplitter, SplitLimits


def split(*chunks: str) -> list[str]:
    splitter = SentenceSplitter()
    return [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.flush()


@pytest.mark.parametrize(
    "pieces",
    [
        ["Sure. ", "I can do that, no problem."],
        ["Well, I think so, ", "and you may, too, if you like. ", "Fine?"],
        ["Yes, but why?"],
        ["Dr. Smith met Mrs. J. K. Rowling at 3.5 km. ", "He left."],
        ["It is 5 p.m. in the U.S. and late. ", "We met at 5 p.m. ", "Then we left."],
        ["See e.g. this, ", "i.e. that. ", "Also apples, pears, etc. ", "Done."],
        ["No. ", "See No. 5 there."],
        ["He said \"Stop!\" and left. ", "\"Really?\" ", "\"Yes.\""],
        ["Wait... what? ", "Hm… yes. ", "Oh... ", "No."],
        ["Go to example.com or v1.2.3 now. ", "OK!"],
        ["1. First this. ", "2. Then that."],
        ["one line\n", "another\n", "last"],
        ["1,000 apples cost $3,500.25 today, ", "he said."],
        ["你好，我是小八。", "今天天气很好，一起出去吧！", "好吗？！", "“走吧。”", "嗯…", "再见"],
        ["今天天气真的很好，", "我们一起出去玩吧，带上水、面包和书；", "走。"],
        ["我用GPT-4.5写的，", "版本是3.5。", "OK.", "好"],
        ["嗯，好，那我们明天见。", "再见。"],
        ["Hello 小八，你好吗，", "I am fine. ", "谢谢。"],
    ],
)
def test_cuts(pieces):
    text = "".join(pieces)
    assert split(text) == pieces
    assert split(*text) == pieces


def test_first_clause_comes_before_the_sentence_is_over():
    splitter = SentenceSplitter()
    assert splitter.feed("Oh well, yes") == []
    splitter = SentenceSplitter()
    assert splitter.feed("In my opinion, y") == ["In my opinion, "]
    assert splitter.feed("ou should, perhaps, rest") == []
    assert splitter.feed(". N") == ["you should, perhaps, rest. "]


def test_first_chinese_clause_comes_before_the_sentence_is_over():
    splitter = SentenceSplitter()
    assert splitter.feed("我觉得今天，很") == []
    splitter = SentenceSplitter()
    assert splitter.feed("我觉得今天可以，很") == ["我觉得今天可以，"]


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("word " * 200, 220),
        ("x" * 700, 220),
        ("some words, and then " * 40, 220),
        ("天" * 300, 60),
        ("天气很好，我们出去，" * 40, 60),
    ],
)
def test_long_sentences_are_cut_at_clauses(text, longest):
    pieces = split(text)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= longest
    assert min(map(len, pieces[1:-1])) >= longest / 3
    if "，" in text or ", " in text:
        assert all(piece.rstrip()[-1] in "，," for piece in pieces[:-1])
    elif " " in text:
        assert all(piece.endswith(" ") for piece in pieces)


BITS = [
    "Hello", " ", "Dr", ".", "e.g", "U.S", "p.m", "3", "5", ",", "!", "?", "…", "...", "\"", "”", "“", "\n", "no", "I",
    "J", "Yes", "etc", "你好", "我们", "。", "，", "、", "；", "！", "？", "」",
    "「", ":", ";", "-", "—", "'",
    "a" * 90, "天" * 40, "  ", "and",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(BITS) | st.text(max_size=5), max_size=40).map("".join)


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(edges)]


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 400), max_size=12))
def test_lossless_bounded_and_any_chunking_gives_the_same(text, places):
    whole = split(text)
    assert "".join(whole) == text
    assert split(*cut(text, places)) == whole
    assert split(*text) == whole
    assert all(piece.strip() or index == len(whole) - 1 for index, piece in enumerate(whole))
    limit = SplitLimits().max_chars
    assert all(len(piece) <= limit + 40 for piece in whole if piece.strip(" .!?…。！？；\n\"”」"))


def pieces_of(chunks: list[str]) -> list[tuple[str, str | None]]:
    reply = ReplyText(["Mynah"])
    pieces = [piece for chunk in chunks for piece in reply.feed(chunk)] + reply.flush()
    return [(piece.text, piece.expression) for piece in pieces]


def test_expressions_go_with_their_sentence():
    text = "Mynah: [happy] Hello there, my friend! How are *laughs* you? I (sighs) **see**. [shy]"
    expected = [
        ("Hello there, my friend! ", "happy"),
        ("How are you? ", "happy"),
        ("I see.", "sad"),
        ("", "shy"),
    ]
    assert pieces_of([text]) == expected
    assert pieces_of(list(text)) == expected


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 400), max_size=12))
def test_the_whole_pipeline_does_not_depend_on_chunks(text, places):
    assert pieces_of(cut(text, places)) == pieces_of([text])


async def test_a_failure_comes_after_what_was_said():
    closed = []

    async def chunks() -> AsyncIterator[str]:
        try:
            yield "It is so. And"
            raise LlmUnavailable("timeout")
        finally:
            closed.append(True)

    said = []
    with pytest.raises(LlmUnavailable):
        async for piece in reply_pieces(chunks()):
            said.append(piece.text)
    assert said == ["It is so. ", "And"]
    stream = reply_pieces(chunks())
    await anext(stream)
    await stream.aclose()
    assert closed == [True, True]


@pytest.mark.parametrize(
    "pieces",
    [
        ["In the morning ", "the people of the harbour opened their windows."],
        ["Once upon a time ", "there was a king."],
        ["With that in mind ", "you could try to rest."],
        ["In front of the house ", "you see a tree that is old."],
        ["At the end of the day I was tired."],  # neither "at the end of" nor "at the end of the" is complete
        ["In general it is good to sleep."],  # too short to stand alone
        ["The king and his friends went home."],  # no opening
    ],
)
def test_the_first_piece_may_be_an_opening_phrase(pieces: list[str]) -> None:
    assert split("".join(pieces)) == pieces
    assert split(*"".join(pieces)) == pieces
