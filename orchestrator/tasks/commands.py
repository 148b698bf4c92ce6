"""The closed grammar of commands: JSON in, good commands and reasons for the dropped ones out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.contracts.wellformed import read_json
from orchestrator.flows.model import FlowConfig, Slot
from orchestrator.flows.slot_values import coerce
from orchestrator.flows.source import did_you_mean

KEYS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "start_flow": (frozenset({"flow"}), frozenset()),
    "set_slots": (frozenset({"slots"}), frozenset()),
    "cancel_flow": (frozenset(), frozenset({"flow"})),
    "resume_flow": (frozenset({"flow"}), frozenset()),
    "correct_slots": (frozenset({"slots"}), frozenset()),
    "clarify": (frozenset({"flows"}), frozenset()),
    "repeat": (frozenset(), frozenset()),
    "skip": (frozenset(), frozenset()),
    "chitchat": (frozenset(), frozenset()),
    "cannot_handle": (frozenset(), frozenset()),
}
"""Every command with the keys it needs and the keys it may have."""

ORDER = ("cancel_flow", "resume_flow", "start_flow", "correct_slots", "set_slots")
TALK = ("clarify", "repeat", "skip", "chitchat", "cannot_handle")
MAX_COMMANDS = 20
MAX_CLARIFY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One good command. `by`: rule, embedding or llm."""

    name: str
    flow: str | None = None
    flows: tuple[str, ...] = ()
    slots: Mapping[str, Any] = field(default_factory=dict)
    by: str = "rule"
    provenance: str = "said"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data: dict[str, Any] = {"command": self.name}
        if self.flow is not None:
            data["flow"] = self.flow
        if self.name == "clarify":
            data["flows"] = list(self.flows)
        if self.name in ("set_slots", "correct_slots"):
            data["slots"] = dict(self.slots)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A command, or a part of one, that was not taken, and why."""

    command: Any
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"command": self.command, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a list of commands came to, in canonical order."""

    commands: tuple[Command, ...]
    dropped: tuple[Dropped, ...]
    notes: tuple[str, ...] = ()


def parse_commands(data: Any, config: FlowConfig, *, by: str = "llm", provenance: str = "said") -> Parsed:
    """Parse commands; what is wrong is dropped with a reason. The result may be empty."""
    commands: list[Command] = []
    dropped: list[Dropped] = []
    notes: list[str] = []
    items: Sequence[Any] = data if isinstance(data, list) else [data]
    for index, item in enumerate(items):
        if index >= MAX_COMMANDS:
            dropped.append(Dropped(command=item, reason=f"more than {MAX_COMMANDS} commands"))
            continue
        reason = _shape_fault(item)
        if reason is not None:
            dropped.append(Dropped(command=item, reason=reason))
            continue
        command, faults, made = _read(item, config, by, provenance)
        dropped.extend(faults)
        notes.extend(made)
        if command is not None:
            commands.append(command)
    return _in_order(commands, dropped, notes)


def _shape_fault(item: Any) -> str | None:
    if not isinstance(item, Mapping):
        return "not a mapping"
    name = item.get("command")
    if not isinstance(name, str):
        return "no command named"
    if name not in KEYS:
        hint = did_you_mean(name, KEYS)
        return f"unknown command {name[:40]!r}" + (f", did you mean {hint}?" if hint else "")
    needed, optional = KEYS[name]
    keys = {str(k) for k in item} - {"command"}
    if keys - needed - optional:
        return f"extra key {sorted(keys - needed - optional)[0]!r}"
    if needed - keys:
        return f"missing key {sorted(needed - keys)[0]!r}"
    return None


def _read(
    item: Mapping[str, Any], config: FlowConfig, by: str, provenance: str
) -> tuple[Command | None, list[Dropped], list[str]]:
    name = str(item["command"])
    if name in ("start_flow", "cancel_flow", "resume_flow"):
        return _read_flow(name, item, config, by)
    if name == "clarify":
        return _read_clarify(item, config, by)
    if name in ("set_slots", "correct_slots"):
        return _read_slots(name, item, config, by, provenance)
    return Command(name=name, by=by), [], []


def _flow_fault(flow: Any, config: FlowConfig) -> str | None:
    if not isinstance(flow, str):
        return "flow must be text"
    found = config.flow(flow)
    if found is None:
        hint = did_you_mean(flow, config.user_flows())
        return f"unknown flow {flow[:60]!r}" + (f", did you mean {hint}?" if hint else "")
    if found.is_system:
        return f"{flow} is a system flow"
    return None


def _read_flow(
    name: str, item: Mapping[str, Any], config: FlowConfig, by: str
) -> tuple[Command | None, list[Dropped], list[str]]:
    flow = item.get("flow")
    if name == "cancel_flow" and "flow" not in item:
        return Command(name=name, by=by), [], []
    fault = _flow_fault(flow, config)
    if fault is not None:
        return None, [Dropped(command=dict(item), reason=fault)], []
    return Command(name=name, flow=flow, by=by), [], []


def _read_clarify(
    item: Mapping[str, Any], config: FlowConfig, by: str
) -> tuple[Command | None, list[Dropped], list[str]]:
    flows = item.get("flows")
    if not isinstance(flows, list) or not flows:
        return None, [Dropped(command=dict(item), reason="flows must be a list of flows")], []
    if len(flows) > MAX_CLARIFY:
        return None, [Dropped(command=dict(item), reason=f"more than {MAX_CLARIFY} flows to choose from")], []
    for flow in flows:
        fault = _flow_fault(flow, config)
        if fault is not None:
            return None, [Dropped(command=dict(item), reason=fault)], []
    return Command(name="clarify", flows=tuple(dict.fromkeys(flows)), by=by), [], []


def _read_slots(
    name: str, item: Mapping[str, Any], config: FlowConfig, by: str, provenance: str
) -> tuple[Command | None, list[Dropped], list[str]]:
    slots = item.get("slots")
    if not isinstance(slots, Mapping) or not slots:
        return None, [Dropped(command=dict(item), reason="slots must be a mapping of slot to value")], []
    good: dict[str, Any] = {}
    dropped: list[Dropped] = []
    notes: list[str] = []
    for key, value in slots.items():
        fault, kept, note = _slot_fault(key, value, config, nullable=name == "correct_slots")
        if fault is not None:
            dropped.append(Dropped(command={"command": name, "slots": {str(key): value}}, reason=fault))
        else:
            good[str(key)] = kept
            if note:
                notes.append(f"{key}: {note}")
    command = Command(name=name, slots=good, by=by, provenance=provenance) if good else None
    return command, dropped, notes


def _slot_fault(key: Any, value: Any, config: FlowConfig, *, nullable: bool) -> tuple[str | None, Any, str | None]:
    slot: Slot | None = config.slots.get(key) if isinstance(key, str) else None
    if slot is None:
        hint = did_you_mean(str(key), config.slots)
        return f"unknown slot {str(key)[:60]!r}" + (f", did you mean {hint}?" if hint else ""), None, None
    if slot.filled_by == "action":
        return f"the slot {slot.id} is filled by an action only", None, None
    if value is None:
        return (None, None, None) if nullable else ("null is no value", None, None)
    result = coerce(slot, value)
    if not result.ok:
        return result.reason or "wrong type", None, None
    return None, result.value, result.note


def _in_order(commands: list[Command], dropped: list[Dropped], notes: list[str]) -> Parsed:
    acting = [c for c in commands if c.name in ORDER]
    talking = [c for c in commands if c.name in TALK]
    if acting:
        dropped += [Dropped(command=c.to_json(), reason=f"{c.name} counts only when it stands alone") for c in talking]
        acting.sort(key=lambda c: ORDER.index(c.name))
        return Parsed(commands=tuple(acting), dropped=tuple(dropped), notes=tuple(notes))
    if len(talking) > 1:
        same = all(c.to_json() == talking[0].to_json() for c in talking)
        keep = talking[0] if same else None
        dropped += [
            Dropped(command=c.to_json(), reason=f"{c.name} counts only when it stands alone")
            for c in (talking[1:] if same else talking)
        ]
        talking = [keep] if keep is not None else []
    return Parsed(commands=tuple(talking), dropped=tuple(dropped), notes=tuple(notes))


_FENCE = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a `plan` call returned: commands as JSON, and a user intent for the rails."""

    commands: list[Any]
    user_intent: str | None = None


def parse_plan(text: str) -> Plan | None:
    """Read the answer of a `plan` call: a list, or `{"commands": […], "user_intent": …}`. None: unreadable."""
    body = text.strip()
    fence = _FENCE.search(body)
    if fence:
        body = fence[1].strip()
    try:
        data = read_json(body)
    except ValueError:
        return None
    if isinstance(data, list):
        return Plan(commands=data)
    if isinstance(data, Mapping):
        intent = data.get("user_intent")
        intent = intent.strip() if isinstance(intent, str) and intent.strip() else None
        if "command" in data:
            return Plan(commands=[dict(data)])
        commands = data.get("commands", [])
        if isinstance(commands, list) and ("commands" in data or intent):
            return Plan(commands=commands, user_intent=intent)
    return None
