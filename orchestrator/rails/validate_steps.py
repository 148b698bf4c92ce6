"""Checks of single rail steps."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Protocol

from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode, did_you_mean
from orchestrator.rails.program import VALUE_TYPES

STEP_KEYS = ("user", "bot", "say", "do", "set", "if", "branch", "extract", "event", "call", "stop")
_COMPANIONS = {"if": ("then", "else", "on_error")}
_WITH_ERROR = ("bot", "say", "do", "set", "extract", "call")
_SPOKEN = ("bot", "say")
_COMPANION_KEYS = ("then", "else", "on_error", "interruptible")
DO_KEYS = ("action", "args", "save_to", "on_error")
EXTRACT_KEYS = ("var", "instruction", "type", "on_error")


class ExpressionCheck(Protocol):
    """The checker of conditions and templates; writes what it finds into the report."""

    def condition(self, node: ScalarNode, report: Report) -> None:
        """Check an expression."""
        ...

    def template(self, node: ScalarNode, report: Report) -> None:
        """Check a text with `{{ … }}`."""
        ...


def text_of(node: Node | None) -> str | None:
    """Return a scalar's text as written, or None for anything that is no text or number."""
    if not isinstance(node, ScalarNode) or node.value is None:
        return None
    return node.text


class StepChecker:
    """Walks the steps of one rail."""

    def __init__(self, report: Report, *, expressions: ExpressionCheck | None, actions: Container[str] | None) -> None:
        self._report = report
        self._expressions = expressions
        self._actions = actions

    def steps(self, node: Node | None) -> None:
        """Check a list of steps."""
        if not isinstance(node, ListNode):
            if node is not None:
                self._report.add(node, "not_a_list", f"steps must be a list, not {node.kind}")
            return
        for item in node.items:
            self._step(item)

    def _step(self, node: Node) -> None:
        if not isinstance(node, MapNode):
            self._report.add(node, "bad_step", f"a step is a mapping such as `bot: …`, not {node.kind}")
            return
        found = [key for key in node if key in STEP_KEYS]
        for key in node:
            if key not in STEP_KEYS and key not in _COMPANION_KEYS:
                near = did_you_mean(key, (*STEP_KEYS, *_COMPANION_KEYS))
                self._report.add(node.key(key), "unknown_step", f"unknown step {key!r}", suggestion=near)
        if len(found) != 1:
            if found or all(k in _COMPANION_KEYS for k in node):
                self._report.add(node, "bad_step", f"a step has exactly one of {', '.join(STEP_KEYS)}")
            return
        kind = found[0]
        allowed: tuple[str, ...] = _COMPANIONS.get(kind, ("on_error",) if kind in _WITH_ERROR else ())
        allowed += ("interruptible",) if kind in _SPOKEN else ()
        for key in node:
            if key in _COMPANION_KEYS and key not in allowed:
                self._report.add(node.key(key), "unknown_key", f"{key} does not belong to {kind}")
        mark = node.get("interruptible")
        if mark is not None and not isinstance(mark.plain(), bool):
            self._report.add(mark, "bad_value", "interruptible takes true or false")
        getattr(self, f"_check_{kind}")(node.entries[kind][1], node)
        self.steps(node.get("on_error"))

    # --- one method per step -------------------------------------------------------------------------

    def _name(self, node: Node, what: str) -> None:
        text = text_of(node)
        if text is None or not text.strip():
            self._report.add(node, "not_text", f"{what} must be a text, not {node.kind if text is None else 'empty'}")

    def _check_user(self, value: Node, _step: MapNode) -> None:
        self._name(value, "a user intent")

    def _check_bot(self, value: Node, _step: MapNode) -> None:
        self._name(value, "a bot intent")

    def _check_say(self, value: Node, _step: MapNode) -> None:
        self._name(value, "what is said")
        self._template(value)

    def _check_call(self, value: Node, _step: MapNode) -> None:
        self._name(value, "the subrail")

    def _check_stop(self, value: Node, _step: MapNode) -> None:
        if value.plain() is not True:
            self._report.add(value, "bad_value", "stop takes true; leave the step out to go on")

    def _check_event(self, value: Node, _step: MapNode) -> None:
        kind = text_of(value.get("type")) if isinstance(value, MapNode) else text_of(value)
        if not kind:
            self._report.add(value, "missing_type", "an event step is {type: name}")

    def _check_branch(self, value: Node, _step: MapNode) -> None:
        if not isinstance(value, ListNode) or not value.items:
            self._report.add(value, "bad_branch", "branch takes a list of {user: … or event: …, then: […]}")
            return
        for arm in value.items:
            if not isinstance(arm, MapNode):
                self._report.add(arm, "bad_branch", "an arm is {user: … or event: …, then: […]}")
                continue
            heads = [key for key in arm if key in ("user", "event")]
            if len(heads) != 1:
                self._report.add(arm, "bad_branch", "an arm has exactly one of user and event")
                continue
            for key in arm:
                if key not in ("user", "event", "then"):
                    self._report.add(arm.key(key), "unknown_key", f"unknown key {key!r} in a branch",
                                     suggestion=did_you_mean(key, ("user", "event", "then")))  # fmt: skip
            getattr(self, f"_check_{heads[0]}")(arm.entries[heads[0]][1], arm)
            self.steps(arm.get("then"))

    def _check_if(self, value: Node, step: MapNode) -> None:
        if isinstance(value, ScalarNode) and isinstance(value.value, str):
            self._condition(value)
        elif not isinstance(value.plain(), bool):
            self._report.add(value, "not_text", "if takes a condition")
        if "then" not in step:
            self._report.add(step, "missing_then", "if needs then")
        self.steps(step.get("then"))
        self.steps(step.get("else"))

    def _keys(self, node: MapNode, allowed: tuple[str, ...], what: str) -> None:
        for key in node:
            if key not in allowed:
                self._report.add(
                    node.key(key),
                    "unknown_key",
                    f"unknown key {key!r} in {what}",
                    suggestion=did_you_mean(key, allowed),
                )

    def _variable(self, node: Node | None, what: str) -> None:
        name = text_of(node)
        if node is not None and (name is None or not name.isidentifier()):
            self._report.add(node, "bad_name", f"{what} must be a name made of letters, digits and _")

    def _check_do(self, value: Node, _step: MapNode) -> None:
        if not isinstance(value, MapNode):
            self._name(value, "an action")
            self._action(value)
            return
        self._keys(value, DO_KEYS, "do")
        action = value.get("action")
        if action is None:
            self._report.add(value, "missing_action", "do needs an action")
        else:
            self._name(action, "an action")
            self._action(action)
        args = value.get("args")
        if args is not None and not isinstance(args, MapNode) and args.plain() is not None:
            self._report.add(args, "not_a_mapping", f"args must be a mapping, not {args.kind}")
        self._templates(args)
        self._variable(value.get("save_to"), "save_to")
        self.steps(value.get("on_error"))

    def _action(self, node: Node) -> None:
        name = text_of(node)
        if self._actions is not None and name is not None and name not in self._actions:
            known = sorted(self._actions) if isinstance(self._actions, Iterable) else ()
            self._report.add(node, "unknown_action", f"no action is called {name!r}",
                             suggestion=did_you_mean(name, known), severity="warning")  # fmt: skip

    def _check_extract(self, value: Node, _step: MapNode) -> None:
        if not isinstance(value, MapNode):
            self._report.add(value, "not_a_mapping", "extract takes {var, instruction, type}")
            return
        self._keys(value, EXTRACT_KEYS, "extract")
        if "var" not in value:
            self._report.add(value, "missing_var", "extract needs var")
        self._variable(value.get("var"), "var")
        kind = value.get("type")
        if kind is not None and text_of(kind) not in VALUE_TYPES:
            self._report.add(kind, "bad_value", f"type must be one of {', '.join(VALUE_TYPES)}",
                             suggestion=did_you_mean(text_of(kind) or "", VALUE_TYPES))  # fmt: skip
        self.steps(value.get("on_error"))

    def _check_set(self, value: Node, _step: MapNode) -> None:
        if not isinstance(value, MapNode) or not value.entries:
            self._report.add(value, "not_a_mapping", "set takes {name: expression}")
            return
        for name in value:
            if not name.isidentifier():
                self._report.add(value.key(name), "bad_name", "a variable's name is made of letters, digits and _")
            node = value.entries[name][1]
            if isinstance(node, ScalarNode) and isinstance(node.value, str):
                (self._template if "{{" in node.text else self._condition)(node)

    # --- expressions ---------------------------------------------------------------------------------

    def _condition(self, node: Node) -> None:
        if self._expressions is not None and isinstance(node, ScalarNode):
            self._expressions.condition(node, self._report)

    def _template(self, node: Node) -> None:
        if self._expressions is not None and isinstance(node, ScalarNode):
            self._expressions.template(node, self._report)

    def _templates(self, node: Node | None) -> None:
        pending = [node]
        while pending:
            current = pending.pop()
            if isinstance(current, ScalarNode):
                self._template(current)
            elif isinstance(current, ListNode):
                pending.extend(current.items)
            elif isinstance(current, MapNode):
                pending.extend(v for _, v in current.entries.values())
