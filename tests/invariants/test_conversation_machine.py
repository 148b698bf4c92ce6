"""The nine invariants under random orders of events: a small run always, a large one when asked for."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from invariants.conversation_machine import Conversations

# The explaining phase traces every line, which takes longer than all the rest.
PHASES = (Phase.generate, Phase.shrink)
SMALL = settings(
    phases=PHASES,
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
PIECES = 10
"""The large run comes in pieces, each with a seed of its own, so that a failure can be had again by itself."""
LARGE = settings(
    phases=PHASES,
    max_examples=250,
    stateful_step_count=60,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def _quiet_log() -> object:
    """Scripted failures are logged with their traces; a thousand of them help nobody."""
    logger = logging.getLogger("orchestrator")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


def test_random_conversations_keep_the_invariants() -> None:
    run_state_machine_as_test(Conversations, settings=SMALL)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("piece", range(PIECES))
def test_many_random_conversations_keep_the_invariants(piece: int) -> None:
    class Piece(Conversations):
        pass

    run_state_machine_as_test(seed(piece)(Piece), settings=LARGE)
