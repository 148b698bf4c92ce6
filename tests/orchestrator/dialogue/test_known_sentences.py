"""After which sentences nothing more is to be expected."""

import pytest

from orchestrator.dialogue.known_sentences import KnownSentences
from orchestrator.dialogue.phrase_book import phrase_book

EXAMPLES = (
    "who are you",
    "who are you really",
    "what can you do",
    "what time is it",
    "set a timer",
    "set a timer for {duration}",
    "remind me {when}",
    "你叫什么名字",
    "你是谁",
    "你是谁啊",
)


@pytest.fixture
def known() -> KnownSentences:
    made = KnownSentences(lambda: phrase_book(names=("Mynah",)))
    made.learn(EXAMPLES)
    return made


@pytest.mark.parametrize(
    "text",
    ["Say that again.", "Go on, please.", "Stop!", "再说一遍。", "继续。", "停", "What can you do?", "你叫什么名字？"],
)
def test_commands_and_examples_are_complete(known: KnownSentences, text: str) -> None:
    assert text in known


@pytest.mark.parametrize(
    "text",
    [
        "Who are you",  # … really
        "What time is it?",  # … in Tokyo
        "Set a timer.",  # … for ten minutes
        "Remind me.",
        "你是谁",
        "That's wrong.",  # … I meant the other one
        "What can you",
        "The people of the harbour.",
        "",
    ],
)
def test_what_may_go_on_is_not(known: KnownSentences, text: str) -> None:
    assert text not in known


def test_other_examples_take_the_place_of_those_before(known: KnownSentences) -> None:
    known.learn(["how is your day", "你叫什么名字"])
    assert "你叫什么名字" in known
    assert "What can you do?" not in known
