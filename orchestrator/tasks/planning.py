"""The one `plan` call: a prompt and a JSON schema that list only what is allowed now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.contracts.dialogue import ChatMessage, HistoryEntry, LlmRequest, LlmTask
from orchestrator.flows.model import CollectStep, Flow, FlowConfig, Slot
from orchestrator.tasks.actions.response import history_text
from orchestrator.tasks.state import State

_JSON_TYPES: Mapping[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "date": {"type": "string"},
    "time": {"type": "string"},
    "datetime": {"type": "string"},
    "duration": {"type": "number"},
    "any": {},
}
_INSTRUCTIONS = """You turn what a user says into commands for a dialogue engine. Answer with JSON only:
{"commands": [...], "user_intent": null or one of the intents}. Commands:
start_flow {flow}: the user wants to begin a task. set_slots {slots}: values the user gave. correct_slots {slots}:
values the user corrects (null: unknown yet). cancel_flow, resume_flow {flow}. clarify {flows}: at most three,
when it is unclear which task is meant. repeat, skip: for the open question. chitchat: small talk.
cannot_handle: nothing fits.
Give only values the user said. Dates are YYYY-MM-DD, times HH:MM, date and time YYYY-MM-DDTHH:MM, durations seconds."""


def _slot_schema(slot: Slot) -> dict[str, Any]:
    if slot.type == "choice":
        return {"enum": [c.value for c in slot.choices]}
    return dict(_JSON_TYPES[slot.type])


def _allowed_flows(config: FlowConfig, names: Mapping[str, Any]) -> list[Flow]:
    return [f for f in config.user_flows().values() if f.guard is None or f.guard.holds(names)]


def plan_schema(
    config: FlowConfig, state: State, names: Mapping[str, Any], intents: Sequence[str], has_question: bool
) -> dict[str, Any]:
    """Return the schema of a plan: only flows, slots and commands that make sense in this state."""
    flows = [f.id for f in _allowed_flows(config, names)]
    slot_ids = set().union(*(config.slots_of(f) for f in flows)) if flows else set()
    if state.active is not None:
        slot_ids |= config.slots_of(state.active.root)
    slot_ids |= {s.id for s in config.slots.values() if s.persist}
    slots = {s: _slot_schema(config.slots[s]) for s in sorted(slot_ids) if config.slots[s].filled_by == "user"}

    def command(name: str, **properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": False,
            "required": ["command", *properties],
            "properties": {"command": {"const": name}, **properties},
        }

    options = [command("chitchat"), command("cannot_handle")]
    if flows:
        options += [command("start_flow", flow={"enum": flows})]
        options += [command("clarify", flows={"type": "array", "maxItems": 3, "items": {"enum": flows}})]
    if slots:
        options.append(
            command("set_slots", slots={"type": "object", "additionalProperties": False, "properties": slots})
        )
    if state.active is not None:
        options.append(command("cancel_flow"))
        nullable = {k: {"anyOf": [v, {"type": "null"}]} for k, v in slots.items()}
        options.append(
            command("correct_slots", slots={"type": "object", "additionalProperties": False, "properties": nullable})
        )
    if state.paused:
        options.append(command("resume_flow", flow={"enum": [t.root for t in state.paused]}))
    if has_question:
        options += [command("repeat"), command("skip")]
    properties: dict[str, Any] = {"commands": {"type": "array", "maxItems": 6, "items": {"anyOf": options}}}
    if intents:
        properties["user_intent"] = {"anyOf": [{"enum": list(intents)}, {"type": "null"}]}
    return {"type": "object", "additionalProperties": False, "required": ["commands"], "properties": properties}


def _wording(question: CollectStep, language: str | None) -> str:
    return question.response.text.raw(language) if question.response.text is not None else ""


def plan_request(
    config: FlowConfig,
    state: State,
    *,
    text: str,
    names: Mapping[str, Any],
    history: Sequence[HistoryEntry],
    language: str | None,
    question: CollectStep | None,
    intents: Mapping[str, Sequence[str]],
) -> LlmRequest:
    """Return the call that turns a sentence into commands."""
    lines = [_INSTRUCTIONS, "", "Tasks:"]
    for flow in _allowed_flows(config, names):
        about = flow.description.raw(language) if flow.description is not None else ""
        lines.append(
            f"- {flow.id}: {flow.name_in(language)}. {about} slots: {', '.join(sorted(config.slots_of(flow.id)))}"
        )
    lines.append("Slots:")
    for slot in config.slots.values():
        about = slot.description.raw(language) if slot.description is not None else slot.label_in(language)
        kind = f"one of {', '.join(str(c.value) for c in slot.choices)}" if slot.choices else slot.type
        lines.append(f"- {slot.id} ({kind}): {about}")
    if intents:
        lines.append("Intents: " + "; ".join(f"{name} ({', '.join(list(ex)[:3])})" for name, ex in intents.items()))
    lines.append(f"Now: {names.get('now')}")
    if state.active is not None:
        lines.append(
            f"Active task: {state.active.root}, known: {json.dumps(state.values(), ensure_ascii=False, default=str)}"
        )
    if question is not None:
        lines.append(f"Open question: the slot {question.slot}: {_wording(question, language)}")
    if state.paused:
        lines.append(f"Paused tasks: {', '.join(t.root for t in state.paused)}")
    if history:
        lines += ["Conversation:", history_text(history, language)]
    return LlmRequest(
        task=LlmTask.PLAN,
        messages=(ChatMessage(role="system", content="\n".join(lines)), ChatMessage(role="user", content=text)),
        temperature=0.0,
        max_tokens=400,
        schema=plan_schema(config, state, names, list(intents), question is not None),
    )
