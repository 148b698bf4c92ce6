"""Search by meaning: exact cosine, margins, top-k, cache, scales, providers, calibration."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.rails.embedder import (
    EmbeddingFailed,
    EndpointEmbedder,
    ExactEmbedder,
    FallbackEmbedder,
    LexicalEmbedder,
    lexical_vector,
    normalise,
)
from orchestrator.rails.index import MatchIndex, VectorStore, to_scale
from orchestrator.rails.lazy_index import LazyIndex
from orchestrator.rails.runtime import IndexMatcherFactory


class Angles:
    """Sentences are angles in degrees: their cosine is known exactly."""

    name = "angles"
    is_exact = False

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Any:
        self.calls.append(list(texts))
        return [[3 * math.cos(math.radians(float(t))), 3 * math.sin(math.radians(float(t)))] for t in texts]


class Wide(Angles):
    """Sentences are "kind number": points near the axis of their kind, each with a direction of its own."""

    name = "wide"
    kinds = ("tea", "bus", "talk")

    async def embed(self, texts: Sequence[str]) -> Any:
        rows = []
        for text in texts:
            kind, number = text.split()
            row = [0.0] * 48
            row[self.kinds.index(kind)] = 1.0
            row[3 + int(number)] = 1.5
            rows.append(row)
        return rows


ITEMS = [("0", "a"), ("10", "a"), ("40", "b"), ("90", "c")]


async def test_score_is_the_exact_cosine_and_margin_is_to_the_best_other_label() -> None:
    index = await MatchIndex.build(ITEMS, VectorStore(Angles()))
    found = await index.match("13")
    assert found is not None
    assert (found.label, found.text) == ("a", "10")
    assert found.score == pytest.approx(math.cos(math.radians(3)), abs=1e-5)
    assert found.margin == pytest.approx(math.cos(math.radians(3)) - math.cos(math.radians(27)), abs=1e-5)


async def test_angular_scale() -> None:
    index = await MatchIndex.build(ITEMS, VectorStore(Angles()), scale="angular")
    found = await index.match("13")
    assert found is not None
    cosine = math.cos(math.radians(3))
    assert found.score == pytest.approx(1 - math.sqrt(2 - 2 * cosine) / 2, abs=1e-4)
    assert to_scale(1.0, "angular") == 1.0
    assert to_scale(-1.0, "angular") == pytest.approx(0.0)


async def test_threshold_and_margin_are_both_needed() -> None:
    index = await MatchIndex.build(ITEMS, VectorStore(Angles()))
    assert await index.match_at("13", threshold=0.99, margin=0.05) is not None
    assert await index.match_at("20", threshold=0.99, margin=0.05) is None
    assert await index.match_at("26", threshold=0.5, margin=0.05) is None


WIDE = [(f"tea {i}", "tea") for i in range(6)] + [(f"bus {i}", "bus") for i in range(26, 32)]
TALK = [f"talk {i}" for i in range(6, 26)]


async def test_what_examples_have_in_common_counts_beside_the_nearest_ones() -> None:
    index = await MatchIndex.build(WIDE, VectorStore(Wide()), background=TALK)
    # "tea 26" is nearest to the example "bus 26", "tea 6" to the small talk "talk 6".
    for text, label in (("tea 40", "tea"), ("bus 41", "bus"), ("tea 26", "tea"), ("tea 6", "tea"), ("bus 7", "bus")):
        found = await index.match_auto(text, margin=0.02)
        assert found is not None, text
        assert found.label == label
    assert await index.match_auto("talk 42", margin=0.02) is None
    assert all(match.label == label for match, (_, label) in zip(index.leave_one_out(), WIDE, strict=True))
    assert not [m for m in index.small_talk_left_out() if m.lift >= index.thresholds["en"]]


async def test_left_out_sentences_score_as_if_they_were_not_there() -> None:
    """The closed form of leaving one out is what an index without that sentence finds, the means aside."""
    whole = await MatchIndex.build(WIDE, VectorStore(Wide()), background=TALK)
    for place in (0, 7):
        rest = [item for i, item in enumerate(WIDE) if i != place]
        index = await MatchIndex.build(rest, VectorStore(Wide()), background=TALK)
        found = await index.match_contrast(WIDE[place][0])
        with_it = await whole.match_contrast(WIDE[place][0])
        left_out = whole.leave_one_out()[place]
        assert found is not None
        assert with_it is not None
        assert left_out.label == found.label
        assert left_out.lift == pytest.approx(found.lift, abs=0.1)
        assert with_it.lift > left_out.lift + 0.1


async def test_very_wide_vectors_are_judged_by_the_nearest_examples_alone() -> None:
    class VeryWide(Wide):
        name = "very wide"

        async def embed(self, texts: Sequence[str]) -> Any:
            return [[*row, *[0.0] * 2000] for row in await super().embed(texts)]

    index = await MatchIndex.build(WIDE, VectorStore(VeryWide()), background=TALK)
    found = await index.match_contrast("tea 26")
    assert found is not None
    assert found.label == "bus"


async def test_top_is_best_first_in_the_order_given_on_ties_and_never_filtered() -> None:
    items = [("30", "a"), ("-30", "b"), ("90", "c"), ("180", "d"), ("5", "e"), ("30.0", "f")]
    index = await MatchIndex.build(items, VectorStore(Angles()))
    hits = await index.top("0", 4)
    assert [h.label for h in hits] == ["e", "a", "b", "f"]
    assert [h.label for h in await index.top("0", 50)] == ["e", "a", "b", "f", "c", "d"]
    assert await index.top_labels("0", 2) == ["e", "a"]


async def test_identical_wording_wins_whatever_the_margin() -> None:
    index = await MatchIndex.build([("0", "a"), ("1", "b")], VectorStore(Angles()))
    found = await index.match_at("1", threshold=0.999, margin=0.5)
    assert found is not None
    assert (found.label, found.is_exact) == ("b", True)


async def test_wording_of_two_labels_is_ambiguous() -> None:
    index = await MatchIndex.build([("hello", "a"), ("hello", "b")], VectorStore(ExactEmbedder()))
    assert await index.match_auto("hello", margin=0.03) is None


async def test_exact_provider_matches_identical_text_only() -> None:
    index = await MatchIndex.build([("what is the salary", "s"), ("hello", "h")], VectorStore(ExactEmbedder()))
    assert await index.match_auto("What is the salary?", margin=0) is None
    assert await index.match_at("what is the salary then", threshold=0.6, margin=0) is None
    found = await index.match_auto("  hello ", margin=0.03)
    assert found is not None
    assert found.score == 1.0


async def test_vectors_are_made_once_and_kept_on_disk(tmp_path: Path) -> None:
    provider = Angles()
    store = VectorStore(provider, tmp_path)
    await MatchIndex.build(ITEMS, store)
    assert store.made == 4
    await MatchIndex.build([*ITEMS, ("50", "b")], store)
    assert store.made == 5
    again = VectorStore(provider, tmp_path)
    index = await MatchIndex.build([*ITEMS, ("50", "b")], again)
    assert again.made == 0
    found = await index.match("13")
    assert found is not None
    assert found.label == "a"


def _damage(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(b"PK\x03\x04 broken")


async def test_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    await MatchIndex.build(ITEMS, VectorStore(Angles(), tmp_path))
    _damage(tmp_path)
    store = VectorStore(Angles(), tmp_path)
    await MatchIndex.build(ITEMS, store)
    assert store.made == 4


async def test_seed_is_used_for_its_own_model_only(tmp_path: Path) -> None:
    seed = tmp_path / "seed.npz"
    await VectorStore(Angles()).write_seed(seed, [text for text, _ in ITEMS])
    store = VectorStore(Angles(), seed=seed)
    index = await MatchIndex.build(ITEMS, store)
    assert store.made == 0
    found = await index.match("13")
    assert found is not None
    assert found.score == pytest.approx(math.cos(math.radians(3)), abs=1e-3)
    other = VectorStore(LexicalEmbedder(), seed=seed)
    await other.items(["0"])
    assert other.made == 1


async def test_a_sentence_is_embedded_once_for_all_indexes() -> None:
    provider = Angles()
    store = VectorStore(provider)
    first = await MatchIndex.build(ITEMS, store)
    second = await MatchIndex.build([("3", "x")], store)
    await first.match("7")
    await second.match("7")
    assert provider.calls.count(["7"]) == 1


async def test_failing_provider_is_replaced_and_vectors_never_mix() -> None:
    class Broken:
        name = "broken"
        is_exact = False
        calls = 0

        async def embed(self, texts: Sequence[str]) -> Any:
            self.calls += 1
            if self.calls > 1:
                raise EmbeddingFailed("gone")
            return [[1.0, 0.0] for _ in texts]

    provider = FallbackEmbedder(Broken(), LexicalEmbedder())
    index = await MatchIndex.build([("good morning", "a"), ("buy some milk", "b")], VectorStore(provider))
    found = await index.match("good morning to you")
    assert found is not None
    assert found.label == "a"
    assert provider.failure == "gone"
    assert provider.name == LexicalEmbedder.name


@pytest.mark.parametrize("rows", [[[float("nan"), 0.0]], [], "text"])
async def test_unusable_vectors_are_refused(rows: Any) -> None:
    class Odd:
        async def embed(self, texts: Sequence[str]) -> Any:
            return rows

    store = VectorStore(EndpointEmbedder(Odd(), "odd"))
    with pytest.raises(EmbeddingFailed):
        await store.items(["a"])


async def test_endpoint_errors_become_embedding_failures() -> None:
    class Down:
        async def embed(self, texts: Sequence[str]) -> Any:
            raise ConnectionError("no")

    with pytest.raises(EmbeddingFailed):
        await EndpointEmbedder(Down(), "m").embed(["a"])


async def test_lexical_matcher_knows_similar_wording_in_both_languages() -> None:
    items = [("你叫什么名字", "name"), ("what is your name", "name"), ("明天下雨吗", "rain"), ("will it rain", "rain")]
    index = await MatchIndex.build(items, VectorStore(LexicalEmbedder()))
    for text, label in (("你的名字叫什么", "name"), ("What's your name?", "name"), ("明天会下雨吗", "rain")):
        found = await index.match(text)
        assert found is not None
        assert found.label == label


def test_normalising_drops_what_a_recogniser_adds() -> None:
    assert normalise("  What's  YOUR name?! ") == "whats your name"
    assert normalise("你好，世界。") == "你好 世界"
    assert len(lexical_vector("…")) == len(lexical_vector("abc"))


async def test_empty_index_finds_nothing() -> None:
    index = await MatchIndex.build([], VectorStore(Angles()))
    assert await index.match("1") is None
    assert await index.match_auto("1", margin=0) is None
    assert await index.top("1") == []
    assert index.leave_one_out() == []


async def test_matcher_for_flow_starts() -> None:
    factory = IndexMatcherFactory(VectorStore(LexicalEmbedder()))
    matcher = factory({"timer": ["set a timer", "start a timer"], "game": ["play a game"]}, threshold=0.6, margin=0.1)
    found = await matcher.match("set a timer please")
    assert found is not None
    assert found.name == "timer"
    assert await matcher.match("quite another thing") is None
    assert [m.name for m in await matcher.nearest("play a game now", 2)] == ["game", "timer"]
    assert await factory({}).match("x") is None


async def test_turn_does_not_wait_for_an_index_in_the_making() -> None:
    class Slow(Angles):
        name = "slow"

        def __init__(self) -> None:
            super().__init__()
            self.go = asyncio.Event()

        async def embed(self, texts: Sequence[str]) -> Any:
            await self.go.wait()
            return [lexical_vector(text) for text in texts]

    slow = Slow()
    lazy = LazyIndex(VectorStore(slow), [("good morning", "a"), ("buy milk", "b")], patience_s=0.0)
    stand_in = await lazy.get()
    found = await stand_in.match("good morning all")
    assert found is not None
    assert found.label == "a"
    assert not lazy.is_ready
    slow.go.set()
    assert await lazy.wait() is await lazy.get()
    assert lazy.is_ready
    await lazy.stop()


async def test_stopping_ends_the_building_task() -> None:
    class Never(Angles):
        async def embed(self, texts: Sequence[str]) -> Any:
            await asyncio.Event().wait()

    lazy = LazyIndex(VectorStore(Never()), [("1", "a")], patience_s=0.0)
    await lazy.get()
    await lazy.stop()
    assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("build")]
