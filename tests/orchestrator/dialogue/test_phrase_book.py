"""What short utterances mean for the sound, in both languages."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.phrase_book import phrase_book

BOOK = phrase_book(names=("Mynah", "八哥"))


@pytest.mark.parametrize(
    ("text", "kind", "rest"),
    [
        ("哎，等一下", "pause", ""),
        ("no no, wait", "pause", ""),
        ("wait, I meant tomorrow", "pause", "I meant tomorrow"),
        ("Wait. Stop. I meant tomorrow.", "pause", "I meant tomorrow."),
        ("Stop.", "pause", ""),
        ("Mynah, stop please", "pause", ""),
        ("等等等等", "pause", ""),
        ("停一下吧。", "pause", ""),
        ("八哥，先别说，明天几点", "pause", "明天几点"),
        ("不，等一下，我是说明天", "pause", "我是说明天"),
        ("不是这个", "objection", ""),
        ("不对，我问的是明天", "objection", "我问的是明天"),
        ("Not that.", "objection", ""),
        ("No, that's not what I asked", "objection", ""),
        ("Hold on a second, what about 3.5 km?", "pause", "what about 3.5 km?"),
    ],
)
def test_stop_phrases_are_found_with_what_follows(text: str, kind: str, rest: str) -> None:
    match = BOOK.stop_phrase(text)
    assert match is not None
    assert (match.kind, match.rest) == (kind, rest)


@pytest.mark.parametrize(
    "text",
    [
        "don't stop",
        "等一下也行",
        "stop the car at 3.5 km",
        "oh no",
        "No.",
        "别停",
        "we can wait for it",
        "",
        "？！",
        "I want to stop smoking",
    ],
)
def test_other_sentences_are_no_stop_phrases(text: str) -> None:
    assert BOOK.stop_phrase(text) is None


@pytest.mark.parametrize(
    "text", ["Mm-hmm.", "Yeah.", "uh-huh", "嗯嗯", "对对对", "嗯，对。", "Okay, right.", "好的", "Mm"]
)
def test_backchannels(text: str) -> None:
    assert BOOK.is_backchannel(text)


@pytest.mark.parametrize("text", ["yeah I think so", "好的再来一个", "no", "不", "", "stop", "what"])
def test_words_are_no_backchannels(text: str) -> None:
    assert not BOOK.is_backchannel(text)


@pytest.mark.parametrize("text", ["Go on.", "please continue", "继续", "继续吧。", "嗯，继续说"])
def test_go_on(text: str) -> None:
    assert BOOK.is_go_on(text)
    assert not BOOK.is_repeat(text)


@pytest.mark.parametrize("text", ["再说一遍", "Sorry, what did you say?", "say that again please", "你刚才说什么？"])
def test_repeat(text: str) -> None:
    assert BOOK.is_repeat(text)
    assert not BOOK.is_go_on(text)


def test_a_sentence_that_contains_the_words_is_not_a_request() -> None:
    assert not BOOK.is_go_on("go on a trip")
    assert not BOOK.is_repeat("再说一遍就不好了")


@pytest.mark.parametrize("text", ["Hmm, let me think.", "等我想想", "what about… one moment"])
def test_asking_for_time(text: str) -> None:
    assert BOOK.holds_turn(text)
