"""The steps of a flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.flows.expressions import PROMPT_NAMES, compile_condition, report_into
from orchestrator.flows.model import (
    DEFAULT_ACTION_TIMEOUT_S,
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_SILENCE_TIMEOUT_S,
    MODES,
    STEP_TYPES,
    ActionStep,
    CallStep,
    CollectStep,
    EndStep,
    FromObject,
    GiveUp,
    Links,
    Response,
    SetSlotsStep,
    StartStep,
    Step,
)
from orchestrator.flows.read_slots import check_id
from orchestrator.flows.reading import as_map, check_keys, is_empty, read_bool, read_number, read_string, read_word
from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode, did_you_mean
from orchestrator.flows.texts import Value, read_condition, read_text, read_value

COMMON_KEYS = ("id", "type", "description", "next")
STEP_KEYS = {
    "start": COMMON_KEYS,
    "end": COMMON_KEYS,
    "collect": (
        *COMMON_KEYS, "slot_name", "response", "validation", "ask_even_if_known", "unrecognized_response",
        "last_attempt_response", "max_attempts", "on_give_up", "silence_response", "silence_timeout_s", "interruptible",
        "skippable", "from_object",
    ),
    "action": (*COMMON_KEYS, "action", "args", "timeout_s", "on_error"),
    "set_slots": (*COMMON_KEYS, "slots"),
    "call": (*COMMON_KEYS, "flow"),
}  # fmt: skip
RESPONSE_KEYS = ("mode", "text", "prompt", "interruptible", "object")


def read_response(node: Node | None, report: Report, what: str) -> Response | None:
    """Read a response: a text alone, a mapping by language, or `{mode, text, prompt}`."""
    if is_empty(node):
        if node is not None:
            report.add(node, "missing_text", f"{what} needs a text")
        return None
    assert node is not None
    if not isinstance(node, MapNode) or not any(k in RESPONSE_KEYS for k in node):
        text = read_text(node, report, what)
        return Response(text=text) if text is not None else None
    check_keys(node, RESPONSE_KEYS, report, what)
    mode = read_word(node.get("mode"), report, "the mode of a response", MODES, "static")
    text_node, prompt_node = node.get("text"), node.get("prompt")
    text = None if is_empty(text_node) else read_text(text_node, report, f"the text of {what}")
    prompt = None if is_empty(prompt_node) else read_text(prompt_node, report, f"the prompt of {what}", PROMPT_NAMES)
    if mode in ("static", "rephrase") and is_empty(text_node):
        report.add(node, "missing_text", f"{what} in mode {mode} needs a text")
        return None
    if mode == "generate" and is_empty(prompt_node):
        report.add(node, "missing_prompt", f"{what} in mode generate needs a prompt")
        return None
    if mode == "static" and prompt_node is not None:
        report.add(node.key("prompt"), "unused_prompt", "a static text takes no prompt", severity="warning")
    if (mode != "generate" and text is None) or (mode == "generate" and prompt is None):
        return None
    interruptible = read_bool(node.get("interruptible"), report, "interruptible", True)
    thing = as_map(node.get("object"), report, "object")
    if thing is not None:
        check_keys(thing, ("type", "id", "title", "attributes"), report, "object")
        if "type" not in thing or "id" not in thing:
            report.add(thing, "bad_object", "an object needs type and id")
    return Response(
        mode=mode,
        text=text,
        prompt=prompt,
        interruptible=interruptible,
        thing=read_value(thing, report) if thing is not None else None,
    )


def read_links(node: Node | None, report: Report, step_key: Node, what: str) -> Links:
    """Read `next`: a step, or a list of `{if, then}` and one final `{else}`."""
    if node is None or is_empty(node) or (isinstance(node, ListNode) and not node.items):
        return Links()
    if isinstance(node, ScalarNode):
        return Links(otherwise=node.text)
    if not isinstance(node, ListNode):
        report.add(node, "wrong_type", f"next of {what} must be a step or a list of links, not {node.kind}")
        return Links()
    branches = []
    otherwise: str | None = None
    for index, item in enumerate(node.items):
        if not isinstance(item, MapNode):
            report.add(item, "wrong_type", "a link is {if: …, then: …} or {else: …}")
            continue
        check_keys(item, ("if", "then", "else"), report, "a link")
        if "else" in item:
            if "if" in item or "then" in item:
                report.add(item, "bad_link", "else stands alone, as the last link")
            if index != len(node.items) - 1:
                report.add(item, "else_not_last", "else must be the last link; what follows is never reached")
            otherwise = read_string(item.get("else"), report, "else") or otherwise
            continue
        if "if" not in item or "then" not in item:
            report.add(item, "bad_link", "a link needs both if and then")
            continue
        condition = read_condition(item.get("if"), report)
        target = read_string(item.get("then"), report, "then")
        if condition is not None and target is not None:
            branches.append((condition, target))
    if otherwise is None and not any(isinstance(i, MapNode) and "else" in i for i in node.items):
        report.add(node, "missing_else", f"the links of {what} need a final {{else: …}}")
    return Links(branches=tuple(branches), otherwise=otherwise)


def read_step(node: Node, report: Report) -> Step | None:
    """Read one step; None when it is too faulty to stand in a flow."""
    body = as_map(node, report, "a step")
    if body is None:
        return None
    id_node = body.get("id")
    if not isinstance(id_node, ScalarNode) or is_empty(id_node):
        report.add(node, "missing_id", "a step needs an id")
        return None
    check_id(id_node, report, "step")
    step_id = id_node.text
    if body.get("type") is None:
        report.add(id_node, "missing_type", f"the step {step_id!r} needs a type: {', '.join(STEP_TYPES)}")
        check_keys(body, sorted({k for keys in STEP_KEYS.values() for k in keys}), report, "a step")
        return None
    kind = read_word(body.get("type"), report, "the type of a step", STEP_TYPES, "")
    if not kind:
        return None
    check_keys(body, STEP_KEYS[kind], report, f"a {kind} step")
    description = body.get("description")
    common: dict[str, Any] = {
        "id": step_id, "type": kind,
        "description": "" if is_empty(description) else read_string(description, report, "description") or "",
        "links": read_links(body.get("next"), report, id_node, f"the step {step_id!r}"),
    }  # fmt: skip
    if kind == "start":
        return StartStep(**common)
    if kind == "end":
        return EndStep(**common)
    return _READERS[kind](body, id_node, common, report)


def _read_collect(body: MapNode, id_node: ScalarNode, common: dict[str, Any], report: Report) -> Step | None:
    slot = read_string(body.get("slot_name"), report, "slot_name") if "slot_name" in body else None
    if "slot_name" not in body:
        report.add(id_node, "missing_slot", f"the collect step {id_node.text!r} needs a slot_name")
    if "response" not in body:
        report.add(id_node, "missing_text", f"the collect step {id_node.text!r} needs a response")
    response = read_response(body.get("response"), report, "response")
    condition, failure = _read_validation(body.get("validation"), report)
    extra: dict[str, Any] = {
        field: read_response(body.get(key), report, key) if key in body else None
        for field, key in (
            ("unrecognized", "unrecognized_response"), ("last_attempt", "last_attempt_response"),
            ("silence", "silence_response"),
        )
    }  # fmt: skip
    attempts = int(
        read_number(body.get("max_attempts"), report, "max_attempts", DEFAULT_MAX_ATTEMPTS, low=1, high=20, whole=True)
    )
    silence_s = read_number(
        body.get("silence_timeout_s"), report, "silence_timeout_s", DEFAULT_SILENCE_TIMEOUT_S, low=0.5, high=3600
    )
    give_up = _read_give_up(body.get("on_give_up"), report)
    from_object = _read_from_object(body.get("from_object"), report)
    flags: dict[str, Any] = {
        name: read_bool(body.get(name), report, name, default)
        for name, default in (("ask_even_if_known", False), ("interruptible", True), ("skippable", False))
    }
    if slot is None or response is None:
        return None
    return CollectStep(
        **common, slot=slot, response=response, condition=condition, failure=failure, **extra, max_attempts=attempts,
        silence_timeout_s=silence_s, give_up=give_up, from_object=from_object, **flags,
    )  # fmt: skip


def _read_validation(node: Node | None, report: Report) -> tuple[Any, Response | None]:
    body = as_map(node, report, "validation")
    if body is None:
        return None, None
    check_keys(body, ("condition", "failure_response"), report, "validation")
    if "condition" not in body:
        report.add(body, "missing_condition", "a validation needs a condition")
    condition = read_condition(body.get("condition"), report)
    failure = (
        read_response(body.get("failure_response"), report, "failure_response") if "failure_response" in body else None
    )
    return condition, failure


def _read_give_up(node: Node | None, report: Report) -> GiveUp:
    if node is None:
        return GiveUp()
    if isinstance(node, ScalarNode):
        if node.text != "cancel":
            report.add(node, "bad_give_up", "on_give_up is cancel, {default: value} or {next: step}",
                       suggestion=did_you_mean(node.text, ("cancel",)))  # fmt: skip
        return GiveUp(is_explicit=True)
    body = as_map(node, report, "on_give_up")
    if body is None:
        return GiveUp()
    check_keys(body, ("default", "next"), report, "on_give_up")
    if len(body.entries) != 1:
        report.add(node, "bad_give_up", "on_give_up has either default or next")
    if "next" in body:
        return GiveUp(step=read_string(body.get("next"), report, "next"), is_explicit=True)
    default = body.get("default")
    return GiveUp(
        has_value=default is not None, value=default.plain() if default is not None else None, is_explicit=True
    )


def _read_from_object(node: Node | None, report: Report) -> FromObject | None:
    body = as_map(node, report, "from_object")
    if body is None:
        return None
    check_keys(body, ("type", "field"), report, "from_object")
    values = [read_string(body.get(k), report, k) for k in ("type", "field")]
    if values[0] is None or values[1] is None:
        if len(body.entries) < 2:
            report.add(body, "bad_from_object", "from_object needs type and field")
        return None
    return FromObject(type=values[0], field=values[1])


def _read_action(body: MapNode, id_node: ScalarNode, common: dict[str, Any], report: Report) -> Step | None:
    name = read_string(body.get("action"), report, "action") if "action" in body else None
    if "action" not in body:
        report.add(id_node, "missing_action", f"the action step {id_node.text!r} needs an action")
    timeout_s = read_number(body.get("timeout_s"), report, "timeout_s", DEFAULT_ACTION_TIMEOUT_S, low=0.01, high=600)
    on_error = read_string(body.get("on_error"), report, "on_error") if "on_error" in body else None
    if name is None:
        return None
    args = body.get("args")
    value: Value | None = None
    reference = response = None
    if isinstance(args, ScalarNode) and not is_empty(args):
        reference, problems = compile_condition(args.text)
        report_into(report, args, problems)
    elif name == "action_response":
        if args is None:
            report.add(id_node, "missing_text", "action_response needs args with a text")
        response = read_response(args, report, "args") if args is not None else None
        if response is None:
            return None
    elif args is not None and not is_empty(args):
        if isinstance(args, MapNode):
            value = read_value(args, report)
        else:
            report.add(args, "wrong_type", "args must be a mapping or a reference such as context.response")
    return ActionStep(
        **common,
        action=name,
        args=value,
        reference=reference,
        response=response,
        timeout_s=timeout_s,
        on_error=on_error,
    )


def _read_set_slots(body: MapNode, id_node: ScalarNode, common: dict[str, Any], report: Report) -> Step | None:
    slots = as_map(body.get("slots"), report, "slots")
    if slots is None or not slots.entries:
        report.add(id_node, "missing_slots", f"the step {id_node.text!r} needs slots to set")
        return None
    return SetSlotsStep(**common, values={k: read_value(v, report) for k, (_, v) in slots.entries.items()})


def _read_call(body: MapNode, id_node: ScalarNode, common: dict[str, Any], report: Report) -> Step | None:
    flow = read_string(body.get("flow"), report, "flow") if "flow" in body else None
    if flow is None:
        if "flow" not in body:
            report.add(id_node, "missing_flow", f"the call step {id_node.text!r} needs a flow")
        return None
    return CallStep(**common, flow=flow)


_READERS: dict[str, Callable[[MapNode, ScalarNode, dict[str, Any], Report], Step | None]] = {
    "collect": _read_collect, "action": _read_action, "set_slots": _read_set_slots, "call": _read_call,
}  # fmt: skip
