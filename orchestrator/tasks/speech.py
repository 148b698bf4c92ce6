"""What the executor hands to the turn: things to say, and how an action ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.flows.model import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """Something to say by `action_response`. `literal` texts were rendered before and are not rendered again.

    `asks` is the kind of asking when it is the question of a collect step (`place` names it).
    """

    response: Response
    literal: str | None = None
    asks: str | None = None
    place: str | None = None
    source: str = "task"
    interruptible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How an action ended."""

    ok: bool
    slot_updates: Mapping[str, Any]
    label: str | None = None
    value: Any = None
    error: str | None = None
