"""The specification of tasks as conversations: the files of tests/data/spec_tasks, run as `mynah flows test` does."""

from __future__ import annotations

from pathlib import Path

import pytest
from orchestrator_flow_support import SYSTEM, load, runner

from orchestrator.flows.loader import Layer, load_config
from orchestrator.flows.source import Report, read_source
from orchestrator.flows.testing.format import TestCase, read_tests
from orchestrator.flows.testing.runner import Runner

FOLDER = Path(__file__).resolve().parents[2] / "data" / "spec_tasks"


def _read(path: Path) -> list[TestCase]:
    report = Report()
    tests = read_tests(read_source(path, path.name), report)
    assert not report.problems, [str(p) for p in report.problems]
    return tests


CASES = [(path.stem, test) for path in sorted(FOLDER.glob("*.yml")) for test in _read(path)]


@pytest.fixture(scope="module")
def spec_runner() -> Runner:
    return runner(FOLDER)


@pytest.mark.parametrize("case", [pytest.param(t, id=f"{stem}: {t.name}") for stem, t in CASES])
async def test_conversation(spec_runner: Runner, case: TestCase) -> None:
    result = await spec_runner.run(case)
    assert result.passed, "\n".join(map(str, result.failures))


def test_names_are_unique() -> None:
    names = [(stem, test.name) for stem, test in CASES]
    assert len(set(names)) == len(names)


def test_the_file_of_the_specification_has_no_problems() -> None:
    loaded = load((FOLDER / "flows" / "refund.yml").read_text(encoding="utf-8"))
    assert [str(p) for p in loaded.problems] == []


@pytest.mark.parametrize("path", sorted((FOLDER / "broken").glob("*.yml")), ids=lambda p: p.stem)
def test_a_broken_file_is_told_by_line_with_a_hint(path: Path) -> None:
    """A line that ends in `#! words` has a fault, and the message about it holds the words."""
    text = path.read_text(encoding="utf-8")
    layers = [Layer.of_texts(SYSTEM), Layer.of_texts({path.name: text})]
    problems = load_config(
        layers, actions=frozenset({"action_response", "action_listen", "action_set_reminder", "action_now"})
    ).problems
    wanted = [(i, line.split("#!")[1].strip()) for i, line in enumerate(text.splitlines(), 1) if "#!" in line]
    assert wanted
    for number, words in wanted:
        assert any(p.line == number and p.col > 0 and words in str(p) for p in problems), (number, words, problems)
