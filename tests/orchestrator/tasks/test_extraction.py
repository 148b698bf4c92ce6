"""Typed answers in English and Chinese: phrases written from the specification, half of them never tuned on."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.flows.model import Choice, Slot
from orchestrator.tasks.extraction.extract import extract

NOW = datetime(2026, 12, 1, 9, 0)
DATA = Path(__file__).resolve().parents[2] / "data"
CHOICES = (
    Choice(value="small", names=("小杯", "小的", "最小", "little")),
    Choice(value="medium", names=("中杯", "中的", "middle")),
    Choice(value="large", names=("大杯", "大的", "big", "biggest")),
)


def phrases(language: str) -> list[dict[str, Any]]:
    loaded: dict[str, Any] = yaml.safe_load((DATA / f"extraction_{language}.yml").read_text(encoding="utf-8"))
    return list(loaded["phrases"])


def value_of(phrase: dict[str, Any]) -> Any:
    slot = Slot(id="x", type=phrase["type"], choices=CHOICES if phrase["type"] == "choice" else ())
    found = extract(slot, phrase["text"], now=NOW)
    return found.value if found is not None and found.is_strict else None


def wrong(language: str, kept_for: str) -> tuple[list[str], int]:
    chosen = [p for p in phrases(language) if p["set"] == kept_for]
    misses = [
        f"{p['type']} {p['text']!r}: {value_of(p)!r}, not {p['value']!r}" for p in chosen if value_of(p) != p["value"]
    ]
    return misses, len(chosen)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_there_are_enough_phrases_and_half_are_kept_for_the_test(language: str) -> None:
    found = phrases(language)
    assert len(found) >= 150
    assert sum(p["set"] == "test" for p in found) >= len(found) * 0.45


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kept_for", ["dev", "test"])
def test_phrases_give_their_value(language: str, kept_for: str) -> None:
    misses, count = wrong(language, kept_for)
    allowed = 0 if kept_for == "dev" else round(count * 0.05)
    assert len(misses) <= allowed, f"{len(misses)} of {count}:\n" + "\n".join(misses)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_wrong_value_is_rarer_than_none(language: str) -> None:
    """A value nobody said does more harm than asking again."""
    invented = [p["text"] for p in phrases(language) if value_of(p) not in (None, p["value"])]
    assert len(invented) <= 2, invented
