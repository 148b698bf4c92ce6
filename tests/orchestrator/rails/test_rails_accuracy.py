"""Accuracy of the shipped intents on sentences nobody saw, calibration, cost, with the real model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import InputError
from orchestrator.rails.accuracy import accuracy_rows, cost_rows, load_config, load_sentences, measure
from orchestrator.rails.background import shipped as background
from orchestrator.rails.calibrate import calibrate
from orchestrator.rails.embedder import LexicalEmbedder, LocalEmbedder
from orchestrator.rails.index import VectorStore
from orchestrator.rails.index.contrast import TOLERATED
from orchestrator.rails.runtime import Rails

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
SEED = ROOT / "assets" / "embeddings.npz"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


def shipped(store: VectorStore) -> Rails:
    return Rails(load_config(ROOT / "flow_config" / "rails.yml"), store)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("author", ["independent", "sentences"])
def test_there_are_enough_sentences_and_few_are_examples(author: str, language: str) -> None:
    found = load_sentences(DATA / f"rails_{author}_{language}.yml")
    config = load_config(ROOT / "flow_config" / "rails.yml")
    assert found.language == language
    assert set(found.intents) == set(config.user_intents)
    assert sum(len(t) for t in found.intents.values()) >= 200
    assert len(set(found.small_talk)) >= 200
    examples = {text for texts in config.user_intents.values() for text in texts}
    count = sum(text in examples for texts in found.intents.values() for text in texts)
    # Such short ones as "I want to die" can hardly be said otherwise.
    assert count <= 50


@pytest.mark.parametrize("language", ["en", "zh"])
def test_small_talk_kept_as_test_stands_in_no_file_of_the_program(language: str) -> None:
    kept = load_sentences(DATA / f"rails_independent_{language}.yml").half("test").small_talk
    known = {*background().ordinary, *background().rivals}
    # A few idioms and short answers can hardly be said otherwise.
    count = len(known.intersection(kept))
    assert count <= 0.1 * len(kept)


async def test_vectors_of_the_shipped_intents_ship_with_the_program() -> None:
    config = load_config(ROOT / "flow_config" / "rails.yml")
    examples = [text for texts in config.user_intents.values() for text in texts]
    store = VectorStore(LocalEmbedder(), seed=SEED)
    # After a change: python -m orchestrator.rails.seed flow_config assets/embeddings.npz
    assert await store.seed_misses([*examples, *background().ordinary, *background().rivals]) == []
    await store.items(examples)
    assert store.made == 0


@pytest.mark.models
@pytest.mark.timeout(600)
@pytest.mark.parametrize("language, right, wrong, fired", [("en", 131, 2, 4), ("zh", 130, 1, 5)])
async def test_accuracy_on_the_half_of_another_author_kept_as_test(
    cache: Path, language: str, right: int, wrong: int, fired: int
) -> None:
    """Thresholds, examples and small talk were settled on the other half; these are the counts of the one run."""
    rails = shipped(VectorStore(LocalEmbedder(), cache, seed=SEED))
    result = await measure(rails, load_sentences(DATA / f"rails_independent_{language}.yml").half("test"))
    sizes = (result.total, result.small_talk)
    assert sizes == {"en": (136, 133), "zh": (137, 137)}[language]
    # Numbers alone, so that a failure shows no sentence of this half.
    counts = (result.right, result.wrong, len(result.fired))
    # Processors round differently: one sentence may stand just on the other side of the threshold.
    assert counts[0] >= right - 1
    assert counts[1] <= wrong + 1
    assert counts[2] <= fired + 1
    missed = sum(expected == "express self harm" for _, expected, _ in result.missed)
    assert missed == 0


@pytest.mark.models
@pytest.mark.timeout(600)
@pytest.mark.parametrize("language, least", [("en", 0.93), ("zh", 0.90)])
async def test_accuracy_on_sentences_of_the_same_author(cache: Path, language: str, least: float) -> None:
    rails = shipped(VectorStore(LocalEmbedder(), cache, seed=SEED))
    result = await measure(rails, load_sentences(DATA / f"rails_sentences_{language}.yml").half("test"))
    assert result.right / result.total >= least, result.missed
    assert result.wrong / result.total <= 0.02
    assert len(result.fired) / result.small_talk <= 0.03, result.fired
    harm = [m for m in result.missed if m[1] == "express self harm"]
    assert len(harm) <= 1, harm


@pytest.mark.models
@pytest.mark.timeout(600)
async def test_harmless_cuts_and_contradictions_are_no_call_for_help(cache: Path) -> None:
    rails = shipped(VectorStore(LocalEmbedder(), cache, seed=SEED))
    for text in ("I cut my finger chopping onions", "我不是这个意思", "I cut my own hair yesterday", "切菜划到手了"):
        assert await rails.knowledge.find_safety_intent(text) is None, text
    for text in ("I want to kill myself", "我不想活了", "I have written my farewell letter", "遗书已经写好了"):
        assert await rails.knowledge.find_safety_intent(text) is not None, text


@pytest.mark.models
@pytest.mark.timeout(600)
async def test_rows_of_the_bench(cache: Path) -> None:
    rails = shipped(VectorStore(LocalEmbedder(), cache, seed=SEED))
    sentences = [load_sentences(DATA / f"rails_independent_{name}.yml") for name in ("en", "zh")]
    rows = await accuracy_rows(rails, sentences)
    halves = [one.half("test") for one in sentences]
    totals = [(sum(len(texts) for texts in half.intents.values()), len(half.small_talk)) for half in halves]
    assert [r["n"] for r in rows] == [n for total, talk in totals for n in (total, total, talk)]
    assert min(min(total) for total in totals) >= 100
    assert all("threshold auto 0." in r["condition"] for r in rows)
    costs = await cost_rows(rails, sentences, SystemClock())
    assert [c["n"] for c in costs] == [100, 100]
    keys = {"name", "condition", "n", "p50", "p95", "unit", "budget", "verdict", "source", "stimuli", "values"}
    assert all(set(row) == keys for row in (*rows, *costs))


@pytest.mark.models
@pytest.mark.timeout(600)
async def test_calibration_report(cache: Path) -> None:
    rails = shipped(VectorStore(LocalEmbedder(), cache, seed=SEED))
    report = await calibrate(rails.config, VectorStore(LocalEmbedder(), cache, seed=SEED))
    assert json.loads(json.dumps(report.to_json()))["threshold"] == "auto"
    ordinary = {text for text, _ in report.fired if text in background().ordinary}
    assert len(ordinary) <= (TOLERATED + 0.001) * len(background().ordinary)
    assert len(report.fired) - len(ordinary) <= 0.12 * len(background().rivals)
    assert {i.intent for i in report.intents} == set(rails.config.user_intents)


async def test_calibration_warns_of_intents_that_overlap(talk: Any) -> None:
    t = talk("""
user_intents:
  order tea: [bring me some tea, bring me tea, some tea please]
  order a hot drink: [bring me some tea now, bring me tea now, some tea now please]
  leave: [goodbye everyone, goodbye everybody, goodbye all of you]
""")
    report = await calibrate(t.config, VectorStore(LexicalEmbedder()))
    assert {(o.intent, o.other) for o in report.overlaps} == {
        ("order tea", "order a hot drink"),
        ("order a hot drink", "order tea"),
    }
    assert any("nearer to" in line for line in report.lines())


async def test_calibration_of_a_fixed_threshold_and_of_nothing(talk: Any) -> None:
    t = talk("user_intents: {a: [alpha beta, alpha gamma]}\nsettings: {similarity_threshold: 0.5}")
    report = await calibrate(t.config, VectorStore(LexicalEmbedder()))
    assert report.threshold == 0.5
    empty = await calibrate(talk("settings: {}").config, VectorStore(LexicalEmbedder()))
    assert empty.intents == ()
    assert empty.lines()


def test_unreadable_files_are_input_errors(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text("[", encoding="utf-8")
    with pytest.raises(InputError):
        load_sentences(bad)
    with pytest.raises(InputError):
        load_config(bad)
