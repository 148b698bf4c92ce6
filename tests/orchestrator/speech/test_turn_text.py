"""What the words so far tell about the end of a turn, in both languages."""

import pytest

from orchestrator.speech.turn_text import Ending, ending_of, is_short_answer

FINISHED = (
    "What time is it?", "Turn on the light.", "Tell me about the sea.", "What is it for?", "Yes, I'd love some tea.",
    "今天天气怎么样？", "明天早上八点提醒我。", "给我讲个故事吧。", "我想去北京玩。",
    "好的", "Yes.", "12",
)  # fmt: skip
UNFINISHED = (
    "I would like to", "I would like to.", "Remind me at nine and", "Remind me at nine,", "Because", "I went to the.",
    "Um", "嗯", "The thing is, I want to", "Can you tell me the", "my friend and I", "Well...", "How about",
    "提醒我买牛奶，", "我想去北京，因为", "然后", "那个", "我想问一下关于", "如果明天下雨的话", "我觉得", "我昨天和",
)  # fmt: skip


@pytest.mark.parametrize("text", FINISHED)
def test_finished(text: str) -> None:
    assert ending_of(text) is Ending.CLOSED


@pytest.mark.parametrize("text", UNFINISHED)
def test_in_the_middle(text: str) -> None:
    assert ending_of(text) is Ending.OPEN


@pytest.mark.parametrize("text", ["what time is it", "turn it on.", "明天早上八点", "你叫什么名字", "", "..."])
def test_words_that_do_not_tell(text: str) -> None:
    assert ending_of(text) is Ending.UNSURE


@pytest.mark.parametrize(
    ("text", "is_short"),
    [("Yes.", True), ("No, thanks", False), ("no thanks", True), ("好的。", True), ("42", True), ("3.5", True),
     ("yes but not today", False), ("四十二", False), ("", False)],
)  # fmt: skip
def test_short_answers(text: str, is_short: bool) -> None:
    assert is_short_answer(text) is is_short
