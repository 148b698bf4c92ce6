"""Answers begun while the end of the turn is still being judged: over the real core, voice and player."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig, checked_rig

QUESTION = {"en": "What is a whale?", "zh": "鲸鱼是什么？"}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


def fall_silent(rig: ConversationRig, text: str) -> None:
    rig.begin_to_speak()
    rig.seconds(1.0)
    rig.provisional(text)
    rig.advance(1)


def states(rig: ConversationRig) -> list[tuple[str, str | None]]:
    return [(p["state"], p["because"]) for p in rig.payloads("speculation:state")]


@pytest.mark.parametrize("text", QUESTION.values(), ids=QUESTION)
def test_a_confirmed_answer_sounds_at_once(rig: ConversationRig, text: str) -> None:
    fall_silent(rig, text)
    assert len(rig.open_calls()) == 1
    rig.tokens(rig.sentence() + rig.sentence())
    rig.seconds(0.2)
    assert rig.voice.calls == 1 and not rig.intents
    assert rig.core.turns.active is None
    ended_s = rig.clock.monotonic_s()
    rig.finish_utterance(text)
    rig.end_model()
    assert rig.until(rig.is_quiet)
    assert states(rig) == [("started", None), ("confirmed", None)]
    confirmed = rig.payloads("speculation:state")[-1]
    assert 0.0 <= confirmed["firstPiece_s"] <= confirmed["gained_s"] + 1e-6 <= 0.3
    assert rig.payloads("output:first_sound")[0]["at_s"] - ended_s <= 0.06
    assert rig.voice.calls == len(rig.intents) == 2, "each sentence is synthesised once"
    assert [entry["role"] for entry in rig.stored()] == ["user", "assistant"]


def test_nothing_leaves_it_before_the_turn_is_over(rig: ConversationRig) -> None:
    rig.plans.append((("commit",), ("tool", "k"), ("say", "all done now.")))
    fall_silent(rig, "Do it please.")
    rig.seconds(2.0)
    kinds = {r["type"] for r in rig.records if r.get("generationId")}
    assert kinds == {"generation:state", "speculation:state"}
    assert not rig.effects_run and not rig.stored() and not rig.intents
    rig.finish_utterance("Do it please.")
    rig.until(lambda: bool(rig.tools))
    rig.end_tool()
    assert rig.until(rig.is_quiet)
    order = [r["type"] for r in rig.records]
    assert order.index("input:turn_end") < order.index("history:commit") < order.index("tool:call")
    assert rig.effects_run["k"] == 1 and rig.answers()[-1]["text"] == "all done now."


def test_going_on_throws_it_away(rig: ConversationRig) -> None:
    fall_silent(rig, "What is a whale?")
    rig.tokens(rig.sentence())
    rig.seconds(0.2)
    rig.go_on_speaking()
    rig.advance(1)
    assert states(rig)[-1] == ("discarded", "continued")
    assert not rig.open_calls() or rig.open_calls()[-1].is_over
    rig.seconds(0.5)
    assert not rig.stored() and not rig.intents and not rig.answers()
    rig.provisional("What is a whale and what does it eat?")
    rig.advance(2)
    rig.tokens(rig.sentence())
    rig.end_model()
    rig.finish_utterance("What is a whale and what does it eat?")
    assert rig.until(rig.is_quiet)
    assert [s for s, _ in states(rig)] == ["started", "discarded", "started", "confirmed"]
    assert [entry["text"] for entry in rig.stored() if entry["role"] == "user"] == [
        "What is a whale and what does it eat?"
    ]


@pytest.mark.parametrize(
    ("final", "is_same"), [("what is a whale", True), ("What is a whale!", True), ("What is a snail?", False)]
)
def test_other_words_in_the_end_throw_it_away(rig: ConversationRig, final: str, is_same: bool) -> None:
    fall_silent(rig, "What is a whale?")
    rig.finish_utterance(final)
    rig.until(lambda: bool(rig.open_calls()))
    rig.tokens(rig.sentence())
    rig.end_model()
    assert rig.until(rig.is_quiet)
    assert states(rig)[-1] == (("confirmed", None) if is_same else ("discarded", "text"))
    assert len(rig.inputs) == (1 if is_same else 2) and len(rig.answers()) == 1


@pytest.mark.parametrize("text", ["I would like to", "因为", "Let me think.", "等我想想", "Um", ""])
def test_unfinished_words_begin_nothing(rig: ConversationRig, text: str) -> None:
    fall_silent(rig, text)
    rig.seconds(0.5)
    assert not states(rig) and not rig.inputs
    rig.finish_utterance("", rejected=True)


def test_typed_text_comes_first(rig: ConversationRig) -> None:
    fall_silent(rig, "What is a whale?")
    rig.type("hello")
    rig.advance(2)
    assert states(rig)[-1] == ("discarded", "text")
    rig.until(lambda: bool(rig.open_calls()))
    rig.tokens(rig.sentence())
    rig.end_model()
    rig.finish_utterance("", rejected=True)
    assert rig.until(rig.is_quiet)
    assert [user.text for user in rig.inputs][-1] == "hello" and len(rig.answers()) == 1


def test_a_rejected_final_throws_it_away(rig: ConversationRig) -> None:
    fall_silent(rig, "What is a whale?")
    rig.finish_utterance("", rejected=True)
    rig.seconds(0.5)
    assert states(rig)[-1] == ("discarded", "nothing") and not rig.stored()


def test_an_answer_in_progress_leaves_no_room(rig: ConversationRig) -> None:
    rig.ask("tell me", rig.sentence(), rig.sentence(), rig.sentence())
    rig.until(lambda: len(rig.complete_words) >= 2)
    rig.begin_to_speak()
    rig.vad_cut()
    rig.provisional("What is a whale?")
    rig.seconds(0.3)
    assert not states(rig)
    rig.finish_utterance("What is a whale?")
    rig.until(lambda: len(rig.open_calls()) == 1)
    rig.tokens(rig.sentence())


def test_a_failing_model_is_told_only_after_the_turn(rig: ConversationRig) -> None:
    rig.plans.append((("raise",),))
    fall_silent(rig, "What is a whale?")
    rig.seconds(0.5)
    assert not rig.of("app:error") and not rig.intents
    rig.finish_utterance("What is a whale?")
    assert rig.until(rig.is_quiet)
    assert len(rig.of("app:error")) == 1 and [p["status"] for p in rig.answers()] == ["failed"]
