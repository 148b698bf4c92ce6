"""Compares what a turn came to with what a test expects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.dialogue.brain import FlowBrain
from orchestrator.flows.testing.format import TestTurn

if TYPE_CHECKING:
    from orchestrator.flows.testing.runner import TurnOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An expectation that was not met. Turns count from 1; 0 stands for the test as a whole."""

    turn: int
    key: str
    expected: Any
    got: Any

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"turn": self.turn, "key": self.key, "expected": self.expected, "got": self.got}

    def __str__(self) -> str:
        """Return one line."""
        where = f"turn {self.turn}: " if self.turn else ""
        return f"{where}{self.key}: expected {self.expected!r}, got {self.got!r}"


def check_turn(number: int, turn: TestTurn, outcome: TurnOutcome, brain: FlowBrain) -> list[Failure]:
    """Return every expectation of a turn that was not met; also calls that were not in the script or never made."""
    failures: list[Failure] = []

    def check(key: str, expected: Any, got: Any, *, ok: bool | None = None) -> None:
        if not (expected == got if ok is None else ok):
            failures.append(Failure(turn=number, key=key, expected=expected, got=got))

    if outcome.llm.faults:
        check("llm", [dict(e) for e in turn.llm], outcome.llm.faults, ok=False)
    elif outcome.llm.script:
        check("llm", "every completion is asked for", [dict(e) for e in outcome.llm.script], ok=False)
    if outcome.failed and outcome.failed.startswith("internal"):
        check("internal", None, outcome.failed, ok=False)
    got = observed(outcome, brain)
    for key, expected in turn.expect.items():
        _check_key(key, expected, got, outcome, check)
    return failures


def observed(outcome: TurnOutcome, brain: FlowBrain) -> dict[str, Any]:
    """Return what can be expected of a turn."""
    state = brain.state
    task = state.active
    return {
        "user_intent": outcome.report.user_intent,
        "bot_intents": outcome.report.bot_intents,
        "replies": outcome.replies,
        "heard": outcome.heard,
        "commands": outcome.report.commands,
        "dropped": outcome.report.dropped,
        "slots": state.values(),
        "vars": brain.variables(),
        "active_flow": task.root if task is not None else None,
        "step": task.step if task is not None else None,
        "paused": [t.root for t in state.paused],
        "actions": outcome.report.actions,
        "llm_calls": len(outcome.llm.calls),
        "error": bool(outcome.failed or outcome.report.error),
    }


def _check_key(key: str, expected: Any, got: Mapping[str, Any], outcome: TurnOutcome, check: Any) -> None:
    if key in ("slots", "vars"):
        for name, value in (expected or {}).items():
            check(f"{key}.{name}", value, got[key].get(name))
    elif key == "reply_matches":
        for pattern in [expected] if isinstance(expected, str) else expected:
            check(key, pattern, outcome.replies, ok=any(_found(pattern, reply) for reply in outcome.replies))
    elif key == "actions":
        names = [dict(a) for a in got["actions"] if a["name"] not in ("action_response", "action_listen")]
        check(key, expected, names, ok=_same_actions(expected, names))
    elif key == "dropped":
        check(key, expected, got["dropped"], ok=_same_dropped(expected, got["dropped"]))
    elif key == "error":
        check(key, bool(expected), got["error"])
    elif key in ("prompt_has", "prompt_lacks"):
        for task, words in (expected or {}).items():
            prompts = [c.prompt for c in outcome.llm.calls if c.task == task]
            for word in words if isinstance(words, list) else [words]:
                hit = any(str(word) in p for p in prompts)
                check(f"{key}.{task}", word, prompts, ok=hit if key == "prompt_has" else not hit)
    elif key == "replies" and isinstance(expected, str):
        check(key, [expected], got["replies"])
    else:
        check(key, expected, got.get(key))


def _found(pattern: str, text: str) -> bool:
    try:
        return re.search(str(pattern), text) is not None
    except re.error:
        return str(pattern) in text


def _same_actions(expected: Any, got: list[dict[str, Any]]) -> bool:
    items = expected if isinstance(expected, list) else [expected]
    if len(items) != len(got):
        return False
    for wanted, made in zip(items, got, strict=True):
        if isinstance(wanted, Mapping):
            if wanted.get("name") != made["name"] or ("args" in wanted and (wanted["args"] or {}) != made["args"]):
                return False
        elif wanted != made["name"]:
            return False
    return True


def _same_dropped(expected: Any, got: list[dict[str, Any]]) -> bool:
    items = expected if isinstance(expected, list) else [expected]
    if len(items) != len(got):
        return False
    return all(_is_dropped(wanted, made) for wanted, made in zip(items, got, strict=True))


def _is_dropped(wanted: Any, made: Mapping[str, Any]) -> bool:
    command, reason = made["command"], str(made["reason"])
    if isinstance(wanted, str):
        name = command.get("command") if isinstance(command, Mapping) else command
        return wanted == name or wanted in reason
    if not isinstance(wanted, Mapping):
        return False
    if "reason" in wanted and not _found(str(wanted["reason"]), reason):
        return False
    if "command" not in wanted:
        return "reason" in wanted
    inner = wanted["command"]
    if isinstance(inner, Mapping):
        return bool(inner == command)
    if not isinstance(command, Mapping):
        return bool(inner == command)
    return all(command.get(k) == v for k, v in wanted.items() if k != "reason")
