"""Conversations written from the specification: every command in every state, and the table of decisions row by row."""

from __future__ import annotations

from pathlib import Path

import pytest
from orchestrator_flow_support import FLOWS, runner

from orchestrator.flows.source import Report, read_source
from orchestrator.flows.testing.format import TestCase, read_tests

HERE = Path(__file__).resolve().parent / "scenarios"


def cases(folder: Path) -> list[TestCase]:
    report = Report()
    found = [t for path in sorted(folder.glob("*.yml")) for t in read_tests(read_source(path), report)]
    assert not report.problems, [str(p) for p in report.problems]
    return found


@pytest.mark.parametrize("case", cases(HERE), ids=lambda c: c.name)
async def test_scenario(case: TestCase) -> None:
    result = await runner(HERE).run(case)
    assert result.passed, "\n".join(map(str, result.failures))


SHIPPED = [
    pytest.param(c, id=c.name, marks=[pytest.mark.models] if c.embedding == "real" else [])
    for c in cases(FLOWS / "tests")
    if "flows" in Path(c.file).name
]


@pytest.mark.parametrize("case", SHIPPED)
async def test_shipped_flow(case: TestCase) -> None:
    result = await runner(FLOWS).run(case)
    assert result.passed, "\n".join(map(str, result.failures))
