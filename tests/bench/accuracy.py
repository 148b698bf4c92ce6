"""Figures of understanding: how well the shipped rails tell intents apart, and how often small talk fires one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.plan import Setting
from bench.rows import Budget, Row

from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import InputError
from orchestrator.rails.accuracy import BUDGET_MS, bench_rows, load_config, load_sentences
from orchestrator.rails.embedder import default_embedder
from orchestrator.rails.index import VectorStore

DATA = Path(__file__).resolve().parent.parent / "data"
SENTENCES = ("rails_independent_en.yml", "rails_independent_zh.yml")


class AccuracySection:
    """The shipped rails with the program's own embedding model, on the halves kept as test."""

    name = "accuracy"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self._rows: list[Row] = []

    def run(self) -> None:
        """Match every sentence of the test halves, then measure the cost of a turn."""
        from desktop.paths import flow_config

        self._set.tell.say("intents of the shipped rails, test halves")
        try:
            config = load_config(flow_config() / "rails.yml")
            sentences = [load_sentences(DATA / name) for name in SENTENCES]
        except InputError as error:
            self._set.tell.failures.append(f"accuracy: {error}")
            return
        store = VectorStore(default_embedder())
        found = asyncio.run(bench_rows(config, sentences, store, SystemClock()))
        self._rows = [_row(one) for one in found]

    def rows(self) -> Sequence[Row]:
        """Return what was measured."""
        return self._rows


def _row(found: dict[str, Any]) -> Row:
    return Row(
        name=found["name"],
        condition=found["condition"],
        values=tuple(found["values"]),
        trials=found["n"],
        unit=found["unit"],
        budget=Budget(p50=BUDGET_MS) if found["budget"] is not None else None,
        source="component",
        stimuli="synthetic",
    )
