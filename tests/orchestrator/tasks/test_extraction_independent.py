"""Typed answers in phrases of independent writers, through the rules the app understands an answer with.

`dev` phrases are those the extractor was mended by; `test` phrases were run once, afterwards: the floors below are what
was measured then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from orchestrator_flow_support import dumped, sound

from orchestrator.dialogue.understanding import Understander
from orchestrator.flows.model import FlowConfig
from orchestrator.tasks.extraction.extract import extract
from orchestrator.tasks.processor import is_day
from orchestrator.tasks.state import State, Task

DATA = Path(__file__).resolve().parents[2] / "data"
Phrase = Mapping[str, Any]


@lru_cache
def phrases(language: str) -> tuple[Phrase, ...]:
    text = (DATA / f"extraction_independent_{language}.yml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text))


@lru_cache
def config_of(kind: str, choices: tuple[str, ...], pattern: str | None) -> FlowConfig:
    """Return a flow that asks for one slot."""
    slot: dict[str, Any] = {"type": kind}
    if choices:
        slot["choices"] = list(choices)
    if pattern:
        slot["pattern"] = pattern
    steps = [
        {"id": "start", "type": "start", "next": "ask"},
        {"id": "ask", "type": "collect", "slot_name": "x", "response": "?", "next": "end"},
        {"id": "end", "type": "end"},
    ]
    return sound(dumped({"slots": {"x": slot}, "flows": {"f": {"name": "f", "steps": steps}}})).config


def value_of(phrase: Phrase, language: str) -> Any:
    """Return what the app gives the slot: by the open question, or out of a sentence nobody asked for."""
    config = config_of(phrase["type"], tuple(phrase.get("choices") or ()), phrase.get("pattern"))
    now = datetime.fromisoformat(str(phrase["now"]))
    text = phrase["text"]
    if phrase["question"] is None:
        found = extract(config.slots["x"], text, now=now, language=language)
        return found.value if found is not None else None
    state = State(active=Task(uid="1", root="f", flow="f", step="ask", open=True))
    understander = Understander(config, state, now, language)
    decision = understander.rules(text) or understander.typed(text) or understander.free(text)
    for command in decision.commands if decision is not None else ():
        if command.name == "set_slots":
            value = command.slots.get("x")
            # A day alone fills no moment: the task keeps it until a time comes.
            return None if phrase["type"] == "datetime" and is_day(value) else value
    return None


def is_same(phrase: Phrase, got: Any, wanted: Any) -> bool:
    if got is None or wanted is None or isinstance(got, bool) or isinstance(wanted, bool):
        return got is wanted
    if isinstance(got, str) and isinstance(wanted, str):
        if phrase["type"] in ("text", "any") and not phrase.get("pattern"):
            return got.casefold().strip(" .。!！?？") == wanted.casefold().strip(" .。!！?？")
        return got.casefold() == wanted.casefold() if phrase.get("pattern") else got == wanted
    return bool(got == wanted)


def is_right(phrase: Phrase, got: Any) -> bool:
    return any(is_same(phrase, got, wanted) for wanted in (phrase["expected"], *(phrase.get("also_ok") or ())))


def misses(language: str, part: str) -> tuple[list[str], int]:
    """Return what came out otherwise than wanted of one half, and how many phrases it has."""
    chosen = [p for p in phrases(language) if p["set"] == part]
    wrong = [
        f"{p['id']} {p['type']} {p['text']!r}: {got!r}, not {p['expected']!r}"
        for p in chosen
        if not is_right(p, got := value_of(p, language))
    ]
    return wrong, len(chosen)


MEASURED = {"en": 124, "zh": 123}
"""Right answers of the test half (138 phrases a language) when it was run, once, after the extractor was finished."""
WRONG = {"en": 9, "zh": 8}
"""Values in the test half that nobody said; what else was missed gave no value."""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_there_are_enough_phrases_in_both_halves(language: str) -> None:
    halves = [sum(p["set"] == part for p in phrases(language)) for part in ("dev", "test")]
    assert sum(halves) == len(phrases(language)) >= 150
    assert min(halves) >= 75


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_half_the_extractor_was_mended_by_is_understood(language: str) -> None:
    wrong, _ = misses(language, "dev")
    assert wrong == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_half_it_never_saw_is_understood_as_well_as_measured(language: str) -> None:
    wrong, count = misses(language, "test")
    # which ones are missed is not printed: the extractor is not to be mended by them
    assert count - len(wrong) >= MEASURED[language]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_more_wrong_values_than_measured(language: str) -> None:
    chosen = [p for p in phrases(language) if p["set"] == "test"]
    values = [(p, value_of(p, language)) for p in chosen]
    assert sum(got is not None and not is_right(p, got) for p, got in values) <= WRONG[language]
