"""The sentences that belong to no intent: what ships, and what is said of a broken file."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.contracts.errors import InputError
from orchestrator.rails.accuracy import load_config
from orchestrator.rails.background import read_background, shipped
from orchestrator.rails.language import language_of

ROOT = Path(__file__).parents[3]
GOOD = """
ordinary: {en: [it rains], zh: [下雨了]}
near_misses: {en: [], zh: []}
other_jobs: {en: [set a timer], zh: []}
"""


def test_what_ships_is_enough_in_both_languages_and_no_example() -> None:
    found = shipped()
    for language in ("en", "zh"):
        assert sum(language_of(text) == language for text in found.ordinary) >= 400
        assert sum(language_of(text) == language for text in found.rivals) >= 50
    config = load_config(ROOT / "flow_config" / "rails.yml")
    examples = {text for texts in config.user_intents.values() for text in texts}
    assert examples.isdisjoint((*found.ordinary, *found.rivals))


def test_kinds_are_kept_apart(tmp_path: Path) -> None:
    file = tmp_path / "b.yml"
    file.write_text(GOOD, encoding="utf-8")
    found = read_background(file)
    assert found.ordinary == ("it rains", "下雨了")
    assert found.rivals == ("set a timer",)


@pytest.mark.parametrize(
    "old, new, place, words",
    [
        ("it rains", "[it, rains]", ":2:17", "expected a sentence in en"),
        ("it rains", "3", ":2:17", "expected a sentence in en"),
        ("[下雨了]", "[it rains too]", ":2:33", "expected a sentence in zh"),
        ("set a timer", "it rains", ":4:19", "stands there twice"),
        ("other_jobs", "other_job", ":4:1", "did you mean other_jobs"),
        ("ordinary: {en: [it rains], zh: [下雨了]}", "ordinary: []", ":2:11", "expected a mapping with en, zh"),
        (", zh: [下雨了]", "", ":2:11", "zh is missing"),
        (GOOD, "", "", "is empty"),
        (GOOD, "[", ":2:1", "yaml_syntax"),
    ],
)
def test_a_broken_file_is_one_line_with_its_place(tmp_path: Path, old: str, new: str, place: str, words: str) -> None:
    file = tmp_path / "b.yml"
    file.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_background(file)
    message = str(error.value)
    assert f"b.yml{place}" in message
    assert words in message
    assert "\n" not in message
