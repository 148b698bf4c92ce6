"""What the words so far tell about the end of a turn, in both languages."""

import pytest

from orchestrator.speech.turn_text import Ending, ending_of, is_short_answer, judged_ending

FINISHED = (
    "What time is it?", "Turn on the light.", "Tell me about the sea.", "What is it for?", "Yes, I'd love some tea.",
    "今天天气怎么样？", "明天早上八点提醒我。", "给我讲个故事吧。", "我想去北京玩。",
    "好的", "Yes.", "12", "请问图书馆在哪里", "你最喜欢哪个季节", "你叫什么名字",
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


@pytest.mark.parametrize(
    "text",
    ["what time is it", "turn it on.", "明天早上八点", "你最喜欢哪个", "哪个季节", "请问什么人", "", "..."],
)
def test_words_that_do_not_tell(text: str) -> None:
    assert ending_of(text) is Ending.UNSURE


@pytest.mark.parametrize(
    ("text", "is_short"),
    [("Yes.", True), ("No, thanks", False), ("no thanks", True), ("好的。", True), ("42", True), ("3.5", True),
     ("yes but not today", False), ("四十二", False), ("", False)],
)  # fmt: skip
def test_short_answers(text: str, is_short: bool) -> None:
    assert is_short_answer(text) is is_short


@pytest.mark.parametrize(
    ("text", "needed"),
    [("What's the weather like?", 0.85), ("So how do I get there?", 0.85), ("Can I get a coffee?", 0.94),
     ("Give me a coffee.", 0.94), ("Which one?", 0.94), ("What a lovely day.", 0.94)],
)  # fmt: skip
def test_a_question_for_something_is_believed_sooner(text: str, needed: float) -> None:
    assert judged_ending(text, needed, sure_end_chance=0.94) is Ending.CLOSED
    assert judged_ending(text, needed - 0.01, sure_end_chance=0.94) is Ending.UNSURE
    assert judged_ending(text, 0.83, sure_end_chance=0.8) is Ending.CLOSED
