"""A user who begins too softly to be noticed over the voice, and still speaks when it falls silent, is heard out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig, checked_rig, letters

from orchestrator.contracts.lanes import GenerationState


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


CHARS = 3
"""So much of the second sentence comes with the first: only then it is known that the first is over."""


def begin_softly(rig: ConversationRig, first: str, second: str) -> None:
    """Let the model say a sentence and then think, and the user begin over it without a duck or a cut."""
    rig.type("tell me")
    assert rig.until(lambda: bool(rig.open_calls()), 5.0)
    rig.tokens(first + second[:CHARS])
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    rig.begin_to_speak()
    assert rig.until(lambda: rig.player.audible() is None, 10.0)
    rig.seconds(0.3)


def state(rig: ConversationRig) -> GenerationState | None:
    active = rig.core.turns.active
    return active.state if active is not None else None


@pytest.mark.parametrize("words", ["what about trains then", "那火车呢"])
def test_what_comes_meanwhile_is_held_and_words_end_it(rig: ConversationRig, words: str) -> None:
    first, second = rig.sentence(), rig.sentence()
    begin_softly(rig, first, second)
    assert state(rig) is GenerationState.SUSPENDED
    rig.tokens(second[CHARS:])
    rig.end_model()
    rig.seconds(2.0)
    assert letters(rig.words_sounded()) == letters(first), "nothing is said over the user"
    rig.finish_utterance(words)
    rig.seconds(0.5)
    assert rig.inputs[-1].text == words and rig.inputs[-1].interrupt_hint == "interrupted"
    assert letters(rig.answers()[0]["text"]) == letters(first) and rig.answers()[0]["status"] == "interrupted"
    assert letters(second) not in letters(rig.words_sounded())


@pytest.mark.parametrize("words", ["", "mm-hm", "嗯"])
def test_what_was_no_interruption_lets_it_go_on(rig: ConversationRig, words: str) -> None:
    first, second = rig.sentence(), rig.sentence()
    begin_softly(rig, first, second)
    rig.tokens(second[CHARS:])
    rig.end_model()
    rig.seconds(1.0)
    assert letters(rig.words_sounded()) == letters(first)
    rig.finish_utterance(words, rejected=not words)
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters(first + second)
    assert [p["status"] for p in rig.answers()] == ["completed"]
    assert len(rig.of("llm:call")) == 1 and rig.voice.calls == len(rig.intents)


def test_who_has_ended_before_the_silence_holds_nothing(rig: ConversationRig) -> None:
    first, second = rig.sentence(8), rig.sentence()
    rig.type("tell me")
    assert rig.until(lambda: bool(rig.open_calls()), 5.0)
    rig.tokens(first + second[:CHARS])
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    rig.begin_to_speak()
    rig.seconds(0.2)
    rig.finish_utterance("", rejected=True)
    assert rig.until(lambda: rig.player.audible() is None, 10.0)
    assert state(rig) is GenerationState.STREAMING
    rig.tokens(second[CHARS:])
    rig.end_model()
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters(first + second)


def test_an_answer_that_was_over_is_not_begun_again(rig: ConversationRig) -> None:
    first = rig.sentence()
    rig.ask("tell me", first)
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    rig.begin_to_speak()
    assert rig.until(lambda: rig.player.audible() is None, 10.0)
    rig.finish_utterance("what about trains then")
    assert rig.until(lambda: len(rig.inputs) == 2, 3.0)
    assert [(p["status"], letters(p["text"])) for p in rig.answers()] == [("completed", letters(first))]
