from __future__ import annotations

from pathlib import Path

import pytest
from invariants.scenarios import SCENARIOS, Scenario, run


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_conversation(scenario: Scenario, tmp_path: Path) -> None:
    run(scenario, tmp_path)
