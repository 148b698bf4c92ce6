"""What is spoken of a model's text, and that the chunking makes no difference."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.llm.text_filter import TextFilter
from orchestrator.llm.text_patterns import is_unspoken
from orchestrator.llm.think import ThinkStripper


def run(chunks: list[str]) -> tuple[str, list[tuple[str, int]]]:
    text_filter = TextFilter(["Mynah", "小八"])
    parts = [text_filter.feed(chunk) for chunk in chunks] + [text_filter.flush()]
    cues = [(cue.expression, cue.offset) for part in parts for cue in part.cues]
    return "".join(part.text for part in parts), cues


def spoken(text: str) -> str:
    return run([text])[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plain words, nothing else.", "Plain words, nothing else."),
        ("It costs $3.50 (about 3 euros) at 9:30.", "It costs $3.50 (about 3 euros) at 9:30."),
        ("**Bold** and *really* __strong__ ~~gone~~ `code`.", "Bold and really strong gone code."),
        ("*真的*笑了*哈*。", "真的笑了哈。"),
        ("# Title\n## Part\n> quote\n- one\n* two\n+ three", "Title\nPart\nquote\none\ntwo\nthree"),
        ("1. First.\n2. Second.", "1. First.\n2. Second."),
        ("one\n---\ntwo\n***\nthree", "one\ntwo\nthree"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a, b,\n1, 2,"),
        ("Look:\n```python\nprint('*hi*')\n```\nDone.", "Look:\nDone."),
        ("Look: ```x = 1``` there.", "Look: there."),
        ("Never closed ```x = 1", "Never closed"),
        ("See https://a.example/b?c=(d)&e, or www.x.org. Bye.", "See, or. Bye."),
        ("看https://a.example/路，好吗？", "看路，好吗？"),
        ("Read [the docs](https://a.example/b_c) or ![a cat](cat.png).", "Read the docs or a cat."),
        ("A fact [1], another [2, 3].", "A fact, another."),
        ("- [x] done\n- [ ] open", "done\nopen"),
        ("Great 😀👍🏽! 好的🎉。 1️⃣ → go", "Great! 好的。 1 go"),
        ("Nice :) to meet you ;-)", "Nice to meet you"),
        ("At 10:30 (a:b) it is", "At 10:30 (a:b) it is"),
        ("<b>bold</b><br/> 3 < 4 and <|im_end|> I <3 it", "bold 3 < 4 and I <3 it"),
        ("<think>hm</think>Yes. <thinking>no", "Yes."),
        ("*smiles warmly* Hello. (laughs) *I nod.*", "Hello."),
        ("（微笑）你好。【点头】再见*挥挥手，挥手*", "你好。再见"),
        ("(Berlin) is big（上海也是）", "(Berlin) is big（上海也是）"),
        ("Mynah: Hello.\nMynah: Again.", "Hello.\nAgain."),
        ("**Assistant:** Hello.", "Hello."),
        ("小八：你好。", "你好。"),
        ("Note: this stays. User: this too.", "Note: this stays. User: this too."),
        ("Fine.\nUser: and you?\nMynah: Also.", "Fine."),
        ("好。\n用户：那你呢？", "好。"),
        ("User: hello", "hello"),
        ("2 * 3 = 6, 2*3, a_b_c, ~5, __init__", "2 * 3 = 6, 2*3, a_b_c, ~5, init"),
        (r"\*not bold\*", "*not bold*"),
        ("too    many\n\n\n\nblanks  ", "too many\nblanks"),
        ("", ""),
        ("😀", ""),
    ],
)
def test_what_is_spoken(text, expected):
    assert spoken(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[happy] Hi.", ("Hi.", [("happy", 0)])),
        ("Oh. [Sad] No.", ("Oh. No.", [("sad", 3)])),
        ("好呀[开心]。", ("好呀。", [("happy", 2)])),
        ("[emotion: surprised] What?", ("What?", [("surprised", 0)])),
        ("*sighs* Well. (yawning)", ("Well.", [("sad", 0), ("sleepy", 5)])),
        ("【害羞】嗯。", ("嗯。", [("shy", 0)])),
        ("[Monday] is fine", ("Monday is fine", [])),
        ("[happy, excited] Yes!", ("Yes!", [("happy", 0)])),
        ("(happy) Hi. {sad} Oh. (surprised)", ("Hi. Oh.", [("happy", 0), ("sad", 3), ("surprised", 7)])),
        ("（开心、调皮）好呀！", ("好呀！", [("happy", 0)])),
        (":happy: Hi. :wave: Bye :smile:", ("Hi. Bye", [("happy", 0), ("happy", 7)])),
        ("An (angry) sea, {x} and at 10:30:20.", ("An (angry) sea, {x} and at 10:30:20.", [])),
    ],
)
def test_expressions_are_found(text, expected):
    assert run([text]) == expected


BITS = [
    "Hello", " ", "world", ". ", "! ", "\n", "*", "**", "_", "`", "```", "[", "]", "(", ")", "](", "[happy]",
    "(sad)", "{", "}", ":shy:",
    "*smiles*", "(laughs)", "【", "】", "点头", "你好", "。", "，", "https://", "www.", "a.b/c", "😀", "<think>",
    "</think>", "<", ">", "<|im_end|>", "# ", "- ", "---", "|", "|---|", "User:", "Mynah:", "用户：", "3.5", ":)",
    ":", "\\", "~", "~~", "!", "![", "1. ", "h", "w", "=", "（", "）", "笑",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(BITS) | st.text(max_size=6), max_size=30).map("".join)


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(edges)]


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 400), max_size=12))
def test_any_chunking_gives_the_same(text, places):
    whole = run([text])
    assert run(cut(text, places)) == whole
    assert run(list(text)) == whole


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_what_is_spoken_has_no_ornaments(text):
    said, cues = run([text])
    assert not any(is_unspoken(char) for char in said)
    assert "```" not in said
    assert said == said.strip()
    assert all(0 <= offset <= len(said) for _, offset in cues)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 400), max_size=12))
def test_thoughts_are_stripped_at_any_chunking(text, places):
    def strip(chunks: list[str]) -> str:
        stripper = ThinkStripper()
        return "".join([*(stripper.feed(chunk) for chunk in chunks), stripper.flush()])

    whole = strip([text])
    assert strip(cut(text, places)) == whole
    assert "<think>" not in whole


def test_plain_text_is_not_held_back():
    text_filter = TextFilter()
    assert text_filter.feed("Hello there").text == "Hello there"
    assert text_filter.feed(", my fr").text == ", my fr"
