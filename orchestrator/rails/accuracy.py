"""Rows for the bench: how well intents are recognised, how often small talk fires, what a turn costs.

`python -m orchestrator.rails.accuracy RAILS.yml SENTENCES.yml …` writes the rows as JSON.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator.clock import Clock, SystemClock
from orchestrator.contracts.dialogue import TurnHeard, TurnInput
from orchestrator.contracts.errors import InputError
from orchestrator.dialogue.rails_port import ActionOutcome
from orchestrator.flows.source import read_source
from orchestrator.rails.embedder import default_embedder
from orchestrator.rails.env import ExpressionRules
from orchestrator.rails.index import VectorStore
from orchestrator.rails.language import language_of
from orchestrator.rails.model import RailsConfig
from orchestrator.rails.runtime import Rails
from orchestrator.rails.validate import load_rails

BUDGET_MS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """Labelled sentences of one language; `small_talk` belongs to no intent."""

    language: str
    intents: Mapping[str, tuple[str, ...]]
    small_talk: tuple[str, ...]

    def half(self, which: str) -> Sentences:
        """Return the half to look at (`dev`: odd places) or the half to test on (`test`: even places)."""
        start = 0 if which == "dev" else 1
        halves = {name: texts[start::2] for name, texts in self.intents.items()}
        return Sentences(language=self.language, intents=halves, small_talk=self.small_talk[start::2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Counts on one set of sentences. `missed` are (text, expected, got or None); `fired` small talk that fired."""

    right: int
    wrong: int
    total: int
    missed: tuple[tuple[str, str, str | None], ...]
    fired: tuple[tuple[str, str], ...]
    small_talk: int


def load_sentences(path: Path) -> Sentences:
    """Read a file of labelled sentences. Raises `InputError`."""
    document = read_source(path)
    data = document.root.plain() if document.root is not None else None
    if document.problems or not isinstance(data, dict):
        raise InputError("sentences_unreadable", f"{path}: not a file of sentences")
    intents = {str(name): tuple(map(str, texts)) for name, texts in dict(data.get("intents") or {}).items()}
    talk = tuple(map(str, data.get("small_talk") or ()))
    every = [*talk, *(text for texts in intents.values() for text in texts)]
    chinese = sum(language_of(text) == "zh" for text in every)
    return Sentences(language="zh" if chinese * 2 > len(every) else "en", intents=intents, small_talk=talk)


async def measure(rails: Rails, sentences: Sentences) -> Accuracy:
    """Match every sentence as a turn would, the safety rails first. Raises `EmbeddingFailed`."""
    missed: list[tuple[str, str, str | None]] = []
    right = wrong = total = 0
    for name, texts in sentences.intents.items():
        for text in texts:
            got = await recognise(rails, text)
            total += 1
            right += got == name
            wrong += got is not None and got != name
            if got != name:
                missed.append((text, name, got))
    fired = [(text, got) for text in sentences.small_talk if (got := await recognise(rails, text)) is not None]
    return Accuracy(
        right=right,
        wrong=wrong,
        total=total,
        missed=tuple(missed),
        fired=tuple(fired),
        small_talk=len(sentences.small_talk),
    )


async def recognise(rails: Rails, text: str) -> str | None:
    """Return the intent a turn would take for `text` without a model."""
    found = await rails.knowledge.find_safety_intent(text) or await rails.knowledge.find_intent(text)
    return found.intent if found is not None else None


class _SilentHost:
    """Takes what rails say and does nothing with it."""

    def __init__(self, text: str) -> None:
        self.user = TurnInput(text=text)
        self.language = None
        llm = SimpleNamespace(is_configured=False, can_plan=False)
        self.turn: Any = SimpleNamespace(llm=llm, history=(), check=lambda: None, emit=lambda payload: None)

    def names(self) -> Mapping[str, Any]:
        return {"slots": {}, "context": {}, "world": {}, "user": {}, "now": None}

    async def say(
        self, text: str, *, bot_intent: str | None = None, source: str = "rail", interruptible: bool = True
    ) -> None:
        pass

    async def speak(
        self,
        chunks: AsyncIterator[str],
        *,
        bot_intent: str | None = None,
        source: str = "rail",
        guard: Callable[[str], Awaitable[str | None]] | None = None,
        interruptible: bool = True,
    ) -> str:
        return "".join([chunk async for chunk in chunks])

    async def run_action(
        self, name: str, args: Mapping[str, Any], *, key: str, timeout_s: float = 10.0
    ) -> ActionOutcome:
        return ActionOutcome(ok=False, error="no actions here")

    def fail(self, part: str, message: str) -> None:
        pass

    def note_bot_intent(self, name: str) -> None:
        pass

    def note_user_intent(self, name: str) -> None:
        pass


async def turn_costs_ms(rails: Rails, texts: Sequence[str], turns: int, clock: Clock) -> list[float]:
    """Run `turns` turns of one conversation and return what each cost, the embedding of the sentence left out."""
    for text in texts:
        await recognise(rails, text)  # embeds the sentence; the search for it is part of every turn below
    state: Mapping[str, Any] = {}
    costs: list[float] = []
    for number in range(turns):
        text = texts[number % len(texts)]
        started_s = clock.monotonic_s()
        turn = rails.begin(state, _SilentHost(text))
        screened = await turn.screen_input(text)
        if not await turn.run_always(screened.text) and not await turn.match(screened.text):
            await turn.decide(screened.text)
        state = turn.settle(TurnHeard(outcome="completed"))
        costs.append((clock.monotonic_s() - started_s) * 1000)
    return costs


def _row(name: str, condition: str, values: Sequence[float], unit: str, budget: float | None) -> dict[str, Any]:
    ordered = sorted(values)
    p50 = statistics.median(ordered)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    verdict = "under" if budget is None or p50 <= budget else "over"
    return {
        "name": name, "condition": condition, "n": len(values), "p50": round(p50, 3), "p95": round(p95, 3),
        "unit": unit, "budget": budget, "verdict": verdict, "source": "component", "stimuli": "synthetic",
        "values": [round(value, 3) for value in values],
    }  # fmt: skip


def _share_row(name: str, condition: str, count: int, total: int) -> dict[str, Any]:
    share = 100 * count / total if total else 0.0
    return {**_row(name, condition, [share], "%", None), "n": total}


async def accuracy_rows(rails: Rails, sentences: Sequence[Sentences]) -> list[dict[str, Any]]:
    """Return the rows of accuracy and wrong firings, on the halves kept as test."""
    index = await rails.knowledge.intents()
    settings = rails.config.settings
    found: list[dict[str, Any]] = []
    for one in sentences:
        fixed = settings.similarity_threshold
        threshold = f"auto {index.thresholds[one.language]:.3f}" if fixed is None else f"{fixed:g}"
        condition = f"{one.language}, test half, threshold {threshold}, margin {settings.margin:g}"
        result = await measure(rails, one.half("test"))
        found.append(_share_row("intents recognised", condition, result.right, result.total))
        found.append(_share_row("intents taken for another", condition, result.wrong, result.total))
        found.append(_share_row("small talk that fires a rail", condition, len(result.fired), result.small_talk))
    return found


async def cost_rows(rails: Rails, sentences: Sequence[Sentences], clock: Clock) -> list[dict[str, Any]]:
    """Return the rows of a turn's cost at the start and at the end of a conversation of 1,000 turns."""
    texts = [texts[0] for one in sentences for texts in one.intents.values()]
    costs = await turn_costs_ms(rails, texts, 1000, clock)
    name = "rail turn without a model, beside the embedding"
    return [
        _row(name, "turns 1 to 100", costs[:100], "ms", BUDGET_MS),
        _row(name, "turns 901 to 1000", costs[-100:], "ms", BUDGET_MS),
    ]


async def bench_rows(
    config: RailsConfig, sentences: Sequence[Sentences], store: VectorStore, clock: Clock
) -> list[dict[str, Any]]:
    """Return all rows for a configuration. Raises `EmbeddingFailed`."""
    rails = Rails(config, store)
    return [*await accuracy_rows(rails, sentences), *await cost_rows(rails, sentences, clock)]


def load_config(path: Path) -> RailsConfig:
    """Read one rails.yml. Raises `InputError`."""
    config, problems = load_rails([read_source(path)], expressions=ExpressionRules())
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise InputError("rails_invalid", str(errors[0]))
    return config


def main(arguments: Sequence[str]) -> int:
    """Write the rows for a rails.yml and files of sentences."""
    try:
        config = load_config(Path(arguments[0]))
        sentences = [load_sentences(Path(name)) for name in arguments[1:]]
    except (IndexError, InputError) as error:
        sys.stderr.write(f"usage: RAILS.yml SENTENCES.yml …: {error}\n")
        return 2
    store = VectorStore(default_embedder())
    rows = asyncio.run(bench_rows(config, sentences, store, SystemClock()))
    sys.stdout.write(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
