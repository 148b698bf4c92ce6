"""Rail state to JSON and back, also when rails.yml changed in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.rails.program import nearest_step
from orchestrator.rails.state import Instance, MachineState, RailSet, RailStatus

VERSION = 1


def dump_state(rails: RailSet, state: MachineState) -> dict[str, Any]:
    """Return the state as JSON-able data."""
    return {
        "version": VERSION,
        "vars": dict(state.vars),
        "next_uid": state.next_uid,
        "rails": [_dump(rails, instance) for instance in state.instances],
    }


def _dump(rails: RailSet, instance: Instance) -> dict[str, Any]:
    frames = []
    for rail_id, head in instance.frames:
        program = rails.program(instance, rail_id)
        at = program.signature(head) if program is not None else ""
        frames.append({"rail": rail_id, "head": head, "step": at})
    found: dict[str, Any] = {
        "uid": instance.uid,
        "rail": instance.rail,
        "status": instance.status.value,
        "frames": frames,
        "interrupted_by": instance.interrupted_by,
        "aborted_by": instance.aborted_by,
    }
    if instance.lines:
        found["lines"] = list(instance.lines)
    return found


def load_state(rails: RailSet, data: Mapping[str, Any]) -> MachineState:
    """Return a stored state. Rails that are gone are dropped; a step that moved is found again, or its rail dropped."""
    raw = data.get("vars")
    variables = dict(raw) if isinstance(raw, Mapping) else {}
    instances: list[Instance] = []
    highest = 0
    entries = data.get("rails")
    for entry in entries if isinstance(entries, list) else ():
        instance = _load(rails, entry)
        if instance is not None:
            instances.append(instance)
            highest = max(highest, instance.uid)
    given = data.get("next_uid")
    next_uid = max(highest + 1, given if isinstance(given, int) else 1)
    return MachineState(instances=tuple(instances), vars=variables, next_uid=next_uid)


def _load(rails: RailSet, entry: Any) -> Instance | None:
    try:
        lines = tuple(str(line) for line in entry.get("lines", ()))
        instance = Instance(
            uid=int(entry["uid"]),
            rail=str(entry["rail"]),
            frames=tuple((str(f["rail"]), int(f["head"])) for f in entry["frames"]),
            status=RailStatus(entry["status"]),
            interrupted_by=entry.get("interrupted_by"),
            aborted_by=entry.get("aborted_by"),
            lines=lines,
        )
        steps = [str(f.get("step", "")) for f in entry["frames"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    frames: list[tuple[str, int]] = []
    for (rail_id, head), wanted in zip(instance.frames, steps, strict=True):
        program = rails.program(instance, rail_id)
        if program is None:
            return None
        if program.signature(head) != wanted:
            found = nearest_step(program, head, wanted)
            if found is None:
                return None
            head = found
        frames.append((rail_id, head))
    return replace(instance, frames=tuple(frames)) if frames else None
