"""The rails specification as conversations: every file in tests/data/spec_rails, run as `mynah flows test` runs it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, TurnContext, TurnInput
from orchestrator.dialogue.brain_loading import TestRails
from orchestrator.flows.source import Report, read_source
from orchestrator.flows.testing.format import TestCase, read_tests
from orchestrator.flows.testing.runner import Runner, run_tests

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tests" / "data" / "spec_rails"
KNOWN_OPEN: frozenset[str] = frozenset()


def _read(path: Path) -> list[TestCase]:
    report = Report()
    tests = read_tests(read_source(path, path.name), report)
    assert not report.problems, [str(p) for p in report.problems]
    return tests


CASES = [(path.stem, test) for path in sorted(FOLDER.glob("*.yml")) for test in _read(path)]


def _persona(turn: TurnContext, user: TurnInput) -> LlmRequest:
    del turn
    return LlmRequest(task="persona", messages=(ChatMessage(role="user", content=user.text),))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    system = (ROOT / "flow_config" / "system_flows.yml").read_text(encoding="utf-8")
    return Runner(
        folder=FOLDER,
        shipped={"system_flows.yml": system},
        make_rails=TestRails(tmp_path_factory.mktemp("vectors"), ROOT / "assets" / "embeddings.npz"),
        persona_request=_persona,
    )


def _case(stem: str, test: TestCase) -> object:
    marks = [pytest.mark.models] if test.embedding == "real" else []
    if test.name in KNOWN_OPEN:
        marks.append(pytest.mark.xfail(strict=True, reason="open"))
    return pytest.param(test, id=f"{stem}: {test.name}", marks=marks)


@pytest.mark.parametrize("test", [_case(stem, test) for stem, test in CASES])
def test_conversation(runner: Runner, test: TestCase) -> None:
    (result,) = asyncio.run(run_tests(runner, [test]))
    assert result.passed, [(f.turn, f.key, f.expected, f.got) for f in result.failures]


def test_names_are_unique_and_every_conversation_asserts() -> None:
    names = [test.name for _, test in CASES]
    assert len(names) == len(set(names))
    assert sum(1 for _, t in CASES if t.trace) >= 15
    assert sum(1 for _, t in CASES if t.turns) >= 70


def _case_named(name: str) -> TestCase:
    return next(test for _, test in CASES if test.name == name)


def test_a_conversation_loaded_from_the_store_goes_on_inside_its_rail(runner: Runner) -> None:
    test = _case_named("interruptions nest and unwind one by one")
    config = runner.load(test).config

    async def talk() -> list[list[str]]:
        said: list[list[str]] = []
        stored: dict[str, object] = {}
        for turn in test.turns:
            conversation = runner.conversation(config, VirtualClock(0.0, test.now.replace(tzinfo=UTC)))
            conversation.brain.load_state(stored)
            said.append((await conversation.take(turn)).replies)
            stored = json.loads(json.dumps(conversation.brain.dump_state()))
        return said

    assert asyncio.run(talk()) == [turn.expect["replies"] for turn in test.turns]


@pytest.mark.models
def test_the_most_similar_example_is_shown_last(runner: Runner) -> None:
    test = _case_named("only the five most similar examples are shown")
    config = runner.load(test).config

    async def prompt() -> str:
        conversation = runner.conversation(config, VirtualClock(0.0, test.now.replace(tzinfo=UTC)), embedding="real")
        turn = replace(test.turns[0], user="penguins slide over ice on their belly")
        return (await conversation.take(turn)).llm.calls[0].prompt

    shown = asyncio.run(prompt())
    examples = [t for texts in config.rails.user_intents.values() for t in texts]
    places = {text: shown.rfind(text) for text in examples if text in shown}
    assert len(places) == 5
    assert max(places, key=lambda text: places[text]) == "penguins slide over the ice on their bellies"
