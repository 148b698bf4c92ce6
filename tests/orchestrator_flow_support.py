"""Shared by the tests of flows, tasks and the brain: runners over the shipped and inline configurations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask, TurnContext, TurnInput
from orchestrator.dialogue.brain_loading import TestRails
from orchestrator.flows.loader import Layer, Loaded, load_config
from orchestrator.flows.source import parse_source
from orchestrator.flows.testing.format import TestTurn
from orchestrator.flows.testing.runner import Conversation, Runner, TurnOutcome

ROOT = Path(__file__).resolve().parent.parent
FLOWS = ROOT / "flow_config"
SYSTEM = {"system_flows.yml": (FLOWS / "system_flows.yml").read_text(encoding="utf-8")}


def persona(turn: TurnContext, user: TurnInput) -> LlmRequest:
    return LlmRequest(task=LlmTask.PERSONA, messages=(ChatMessage(role="user", content=user.text),))


def runner(folder: Path = FLOWS) -> Runner:
    return Runner(
        folder=folder,
        shipped=SYSTEM,
        make_rails=TestRails(seed=ROOT / "assets" / "embeddings.npz"),
        persona_request=persona,
    )


def load(text: str, name: str = "user_flows.yml") -> Loaded:
    """Load YAML text over the shipped system flows."""
    return load_config([Layer.of_texts(SYSTEM), Layer.of_texts({name: text})])


def sound(text: str) -> Loaded:
    loaded = load(text)
    assert not loaded.errors, [str(p) for p in loaded.errors]
    return loaded


def conversation(
    text: str, *, stubs: Mapping[str, Mapping[str, Any]] | None = None, now: datetime = datetime(2026, 12, 1, 9, 0)
) -> Conversation:
    clock = VirtualClock(0.0, now.replace(tzinfo=UTC))
    return runner().conversation(sound(text).config, clock, stubs=stubs)


def say(talk: Conversation, text: str, **more: Any) -> TurnOutcome:
    return asyncio.run(talk.take(TestTurn(user=text, **more)))


def codes(text: str) -> list[str]:
    """Return the codes of all problems of a flow file."""
    return [p.code for p in load(text).problems]


def places(text: str) -> list[tuple[str, int, int]]:
    return [(p.code, p.line, p.col) for p in load(text).problems]


def dumped(data: Any) -> str:
    return yaml.safe_dump(data, allow_unicode=True, sort_keys=False)


__all__ = [
    "FLOWS",
    "ROOT",
    "codes",
    "conversation",
    "dumped",
    "load",
    "parse_source",
    "places",
    "runner",
    "say",
    "sound",
]
