"""The proofs are proven: every wrong version of the logic is noticed."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from invariants.conversation_machine import Conversations
from invariants.mutants import MUTANTS
from invariants.scenarios import SCENARIOS, run

QUICK = (
    "watermark_skipped",
    "purge_skipped",
    "commit_late",
    "resumed_twice",
    "history_keeps_the_full_text",
    "duplicates_pass",
    "control_not_first",
    "late_results_are_used",
)
MACHINE = (
    "purge_skipped",
    "player_purge_skipped",
    "commit_late",
    "resumed_twice",
    "history_keeps_the_full_text",
    "cut_words_count_as_heard",
    "hold_skipped",
    "duplicates_pass",
    "control_not_first",
    "the_oldest_context_wins",
    "waiting_is_unbounded",
    "drops_are_not_counted",
    "late_results_are_used",
    "effects_do_not_wait",
    "held_answers_block_the_others",
    "intents_end_twice",
    "never_resumed",
    "what_stood_aside_is_forgotten",
)
"""Those that random conversations must find, without being led there."""

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _quiet_log() -> object:
    logger = logging.getLogger()
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(before)


def noticed_by(folder: Path) -> list[str]:
    """Return the scenarios that fail."""
    found = []
    for scenario in SCENARIOS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run(scenario, folder)
        except Exception:
            found.append(scenario.__name__)
    return found


@pytest.mark.parametrize("name", QUICK)
def test_a_wrong_version_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert noticed_by(tmp_path), f"nobody noticed {name}"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(set(MUTANTS) - set(QUICK)))
def test_every_wrong_version_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert noticed_by(tmp_path), f"nobody noticed {name}"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", MACHINE)
def test_random_conversations_notice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    many = settings(
        max_examples=600,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(BaseException) as caught:
        run_state_machine_as_test(Conversations, settings=many)
    assert not isinstance(caught.value, KeyboardInterrupt)
