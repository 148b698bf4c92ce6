"""The bench's figures: statistics, budgets, verdicts, what is stored and printed."""

from __future__ import annotations

import json

import pytest
from bench.rows import Budget, Row, markdown, percentile, share_row, table
from hypothesis import given
from hypothesis import strategies as st

FIELDS = {"name", "condition", "n", "p50", "p95", "unit", "budget", "verdict", "source", "stimuli"}


def row(values: tuple[float, ...] = (), budget: Budget | None = None, note: str = "") -> Row:
    return Row(
        name="onset → silent",
        condition="no echo, 中文",
        values=values,
        unit="ms",
        budget=budget,
        source="loudspeaker",
        stimuli="recorded",
        note=note,
    )


@pytest.mark.parametrize(("percent", "expected"), [(0, 1.0), (50, 5.0), (90, 9.0), (91, 10.0), (95, 10.0), (100, 10.0)])
def test_a_percentile_is_a_measured_value(percent: float, expected: float) -> None:
    assert percentile([10.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0], percent) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_a_percentile_leaves_its_share_at_or_below(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) >= percent / 100 * len(values) - 1e-9


def test_a_percentile_of_nothing_or_beyond_all_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)
    with pytest.raises(ValueError, match="101"):
        percentile([1.0], 101)


@pytest.mark.parametrize(
    ("budget", "values", "verdict"),
    [
        (Budget(p50=270, p95=380), (200.0, 270.0, 380.0), "under"),
        (Budget(p50=270, p95=380), (271.0, 271.0, 380.0), "over"),
        (Budget(p50=270, p95=380), (200.0, 210.0, 381.0), "over"),
        (Budget(p99=5), (1.0,) * 99 + (6.0,), "under"),
        (Budget(p99=5), (1.0,) * 98 + (6.0, 6.0), "over"),
        (Budget(worst=50), (1.0,) * 999 + (51.0,), "over"),
        (Budget(share=0), (0.0,), "under"),
        (Budget(share=0), (1.0,), "over"),
        (Budget(p50=550, p95_over_p50=1.6), (400.0, 400.0, 640.0), "under"),
        (Budget(p50=550, p95_over_p50=1.6), (400.0, 400.0, 641.0), "over"),
        (Budget(p50=550), (), "over"),
        (None, (1e9,), None),
    ],
)
def test_a_row_is_over_when_any_limit_is_exceeded_and_when_it_was_not_measured(
    budget: Budget | None, values: tuple[float, ...], verdict: str | None
) -> None:
    assert row(values, budget).verdict == verdict


def test_a_stored_row_has_exactly_the_promised_fields() -> None:
    stored = json.loads(json.dumps(row((123.456, 88.0), Budget(p50=270, p95=380)).to_json()))
    assert set(stored) == FIELDS
    assert stored == {
        "name": "onset → silent",
        "condition": "no echo, 中文",
        "n": 2,
        "p50": 88.0,
        "p95": 123.0,
        "unit": "ms",
        "budget": "p50 ≤ 270, p95 ≤ 380",
        "verdict": "under",
        "source": "loudspeaker",
        "stimuli": "recorded",
    }


def test_what_was_not_measured_is_stored_without_figures() -> None:
    stored = row((), Budget(p50=1)).to_json()
    assert (stored["n"], stored["p50"], stored["p95"], stored["verdict"]) == (0, None, None, "over")


@pytest.mark.parametrize(("value", "stored"), [(0.0, 0.0), (0.012345, 0.0123), (12.345, 12.3), (1234.5, 1234.0)])
def test_figures_keep_three_digits(value: float, stored: float) -> None:
    assert row((value,)).to_json()["p50"] == stored


def test_a_share_counts_trials() -> None:
    found = share_row(
        name="cut", condition="noises", hits=1, trials=40, budget=2.0, source="loudspeaker", stimuli="synthetic"
    )
    assert (found.n, found.values, found.unit, found.verdict) == (40, (2.5,), "%", "over")
    none = share_row(name="cut", condition="noises", hits=0, trials=0, source="loudspeaker", stimuli="synthetic")
    assert (none.n, none.values, none.verdict) == (0, (), None)


def test_the_table_is_aligned_with_wide_characters_and_says_what_is_missing() -> None:
    text = table([row((1.0, 2.0), Budget(p50=5), note="p99 7"), row()])
    head, _, first, note, second = text.splitlines()
    assert head.split()[:3] == ["name", "condition", "n"]
    assert " ".join(first.split()) == "onset → silent no echo, 中文 2 1 2 ms p50 ≤ 5 under loudspeaker recorded"
    assert note.strip() == "(p99 7)"
    assert "not measured" in second and "none" in second
    # Four columns of screen for two Chinese characters.
    assert first.index("loudspeaker") + 2 == head.index("source")


def test_the_markdown_has_a_cell_for_every_column() -> None:
    lines = markdown([row((1.0,), Budget(worst=3), note="x")], {"load_before": 0.5}).splitlines()
    assert lines[0] == "- load_before: 0.5"
    cells = {line.count("|") for line in lines if line.startswith("|")}
    assert cells == {11}
