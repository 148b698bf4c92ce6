"""What a turn did, for tests and the inspector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class TurnReport:
    """Commands accepted and dropped, actions, intents, traces and steps of one turn. `error`: it failed aloud."""

    commands: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    user_intent: str | None = None
    bot_intents: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    visited: list[tuple[str, str, str | None]] = field(default_factory=list)
    error: str | None = None
    steps: int = 0
