"""Verdicts on finished utterances."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.interruption import Situation, Verdict, decide, is_echo
from orchestrator.dialogue.phrase_book import phrase_book

BOOK = phrase_book(names=("Mynah",))
HELD = Situation(
    has_answer=True,
    is_held=True,
    sounded=True,
    during_output=True,
    recent_text="The capital of France is Paris, a city on the Seine.",
    is_answer=False,
)
THINKING = Situation(has_answer=True, is_held=True, sounded=False, during_output=False, recent_text="", is_answer=False)
IDLE = Situation(has_answer=False, is_held=False, sounded=False, during_output=False, recent_text="", is_answer=False)
ASKING = Situation(
    has_answer=True, is_held=True, sounded=True, during_output=True, recent_text="Shall I delete it?", is_answer=True
)


@pytest.mark.parametrize(
    ("text", "situation", "verdict", "because", "new_input", "joined"),
    [
        ("", HELD, Verdict.RESUME, "nothing", None, False),
        ("...", HELD, Verdict.RESUME, "nothing", None, False),
        ("Mm-hm.", HELD, Verdict.RESUME, "backchannel", None, False),
        ("嗯", HELD, Verdict.RESUME, "backchannel", None, False),
        ("go on", HELD, Verdict.RESUME, "backchannel", None, False),
        ("France is Paris, a city", HELD, Verdict.RESUME, "echo", None, False),
        ("wait", HELD, Verdict.STOP_ONLY, "words", None, False),
        ("等一下", HELD, Verdict.STOP_ONLY, "words", None, False),
        ("wait, what about Rome?", HELD, Verdict.CANCEL, "words", "what about Rome?", False),
        ("不是这个", HELD, Verdict.CANCEL, "words", "不是这个", False),
        ("and what about Rome?", HELD, Verdict.CANCEL, "words", "and what about Rome?", False),
        ("for two people", THINKING, Verdict.CANCEL, "words", "for two people", True),
        ("", THINKING, Verdict.RESUME, "nothing", None, False),
        ("yeah", ASKING, Verdict.CANCEL, "words", "yeah", False),
        ("嗯", ASKING, Verdict.CANCEL, "words", "嗯", False),
        ("", IDLE, Verdict.KEEP, "nothing", None, False),
        ("mm", IDLE, Verdict.KEEP, "backchannel", None, False),
        ("yes", IDLE, Verdict.KEEP, "words", "yes", False),
        ("what time is it", IDLE, Verdict.KEEP, "words", "what time is it", False),
        ("stop", IDLE, Verdict.STOP_ONLY, "words", None, False),
    ],
)
def test_verdicts(
    text: str, situation: Situation, verdict: Verdict, because: str, new_input: str | None, joined: bool
) -> None:
    decision = decide(text, rejected=False, situation=situation, book=BOOK)
    assert (decision.verdict, decision.because, decision.input_text, decision.is_joined) == (
        verdict,
        because,
        new_input,
        joined,
    )


def test_a_rejected_transcript_is_nothing() -> None:
    assert decide("Thank you for watching", rejected=True, situation=HELD, book=BOOK).verdict is Verdict.RESUME


def test_an_objection_is_handed_on_as_such() -> None:
    assert decide("that's not what I asked", rejected=False, situation=HELD, book=BOOK).hint == "objection"


def test_words_over_a_protected_answer_are_kept_for_later() -> None:
    protected = Situation(
        has_answer=True,
        is_held=False,
        sounded=True,
        during_output=True,
        recent_text="Careful now.",
        is_answer=False,
        is_protected=True,
    )
    decision = decide("what do you mean by that", rejected=False, situation=protected, book=BOOK)
    assert decision.verdict is Verdict.KEEP
    assert decision.is_kept
    assert decision.input_text == "what do you mean by that"


@pytest.mark.parametrize(
    ("text", "said", "echo"),
    [
        ("a city on the same", "Paris, a city on the Seine.", True),
        ("the city", "Paris, a city on the Seine.", False),
        ("what about a city in Spain", "Paris, a city on the Seine.", False),
        ("今天天气很好", "我觉得今天天气很好，适合出门。", True),
        ("明天天气怎么样", "我觉得今天天气很好，适合出门。", False),
        ("anything at all", "", False),
    ],
)
def test_echo(text: str, said: str, echo: bool) -> None:
    assert is_echo(text, said) is echo
