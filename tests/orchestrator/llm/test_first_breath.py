"""The first piece of a long sentence without punctuation is short, and nothing else is cut there."""

import pytest

from orchestrator.llm.splitter import SentenceSplitter


def pieces(text: str, step: int = 1) -> list[str]:
    splitter = SentenceSplitter()
    found = [piece for begin in range(0, len(text), step) for piece in splitter.feed(text[begin : begin + step])]
    return found + splitter.flush()


@pytest.mark.parametrize("step", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The people of the town opened windows and looked at the sea.", "The people of the town opened windows "),
        ("I can tell you all about whales because I have read a book.", "I can tell you all about whales "),
        ("鲸鱼是生活在海里的大型动物因为它们用肺呼吸所以要浮上水面。", "鲸鱼是生活在海里的大型动物"),
        ("I can turn the light on for you.", "I can turn the light on for you."),
        ("You and I and all of us are here.", "You and I and all of us are here."),
        ("That is all I know when asked.", "That is all I know when asked."),
        ("我很好因为天气好。", "我很好因为天气好。"),
    ],
)  # fmt: skip
def test_the_first_piece_ends_before_a_joining_word(text: str, first: str, step: int) -> None:
    found = pieces(text, step)
    assert found[0] == first
    assert "".join(found) == text


def test_later_sentences_stay_whole() -> None:
    text = "Yes. The people of the town opened their windows and looked at the sea."
    assert pieces(text) == ["Yes. ", "The people of the town opened their windows and looked at the sea."]
