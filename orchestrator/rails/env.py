"""The one expression language as rails use it: unset in a text or in arithmetic fails the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.flows.expressions import (
    Condition,
    Outcome,
    Template,
    compile_condition,
    compile_template,
    report_into,
)
from orchestrator.flows.sandbox import SlotView
from orchestrator.flows.source import Report, ScalarNode
from orchestrator.rails.state import EvalFailed


class Expressions:
    """Compiles each source once."""

    def __init__(self) -> None:
        self._conditions: dict[str, Condition | None] = {}
        self._templates: dict[str, Template | None] = {}

    def _condition(self, source: str) -> Condition:
        if source not in self._conditions:
            self._conditions[source] = compile_condition(source)[0]
        found = self._conditions[source]
        if found is None:
            raise EvalFailed("an expression can't be read")
        return found

    def _template(self, source: str) -> Template:
        if source not in self._templates:
            self._templates[source] = compile_template(source)[0]
        found = self._templates[source]
        if found is None:
            raise EvalFailed("a text can't be read")
        return found

    def condition(self, source: Any, names: Mapping[str, Any]) -> bool:
        """Whether it holds; false when it can't be evaluated."""
        if not isinstance(source, str):
            return bool(source)
        try:
            return self._condition(source).holds(names)
        except EvalFailed:
            return False

    def value(self, source: Any, names: Mapping[str, Any]) -> Any:
        """Return the value of a `set` expression; anything but text is taken as it is. Raises `EvalFailed`."""
        if not isinstance(source, str):
            return source
        if "{{" in source and self._template(source).whole is None:
            return self.render(source, names)
        return _checked(self._condition(source).evaluate(names))

    def render(self, source: str, names: Mapping[str, Any]) -> str:
        """Return the text. Raises `EvalFailed` when it prints something unset."""
        outcome = self._template(source).render(names)
        return str(_checked(outcome, printed=True))

    def argument(self, source: Any, names: Mapping[str, Any]) -> Any:
        """Return an argument: templates in it rendered, one whole `{{ … }}` with its type. Raises `EvalFailed`."""
        if isinstance(source, Mapping):
            return {str(k): self.argument(v, names) for k, v in source.items()}
        if isinstance(source, list):
            return [self.argument(v, names) for v in source]
        if not isinstance(source, str):
            return source
        template = self._template(source)
        if template.whole is None:
            return self.render(source, names)
        value = _checked(template.whole.evaluate(names))
        if value is None:
            raise EvalFailed(f"{source} is not set")
        return value


def _checked(outcome: Outcome, *, printed: bool = False) -> Any:
    if not outcome.ok:
        raise EvalFailed(outcome.error or "can't be evaluated")
    if printed and outcome.unset:
        # The view over the variables calls itself slots.
        raise EvalFailed(f"{outcome.unset[0].removeprefix('slots.')} is not set")
    return outcome.value


class BoundEvaluator:
    """The evaluator of one turn. `names` is asked each time: a task may fill a slot between two steps."""

    def __init__(self, expressions: Expressions, names: Callable[[], Mapping[str, Any]]) -> None:
        self._expressions = expressions
        self._names = names

    def names(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return all names, with these variables."""
        return {**self._names(), "vars": SlotView(variables)}

    def condition(self, source: Any, variables: Mapping[str, Any]) -> bool:
        """Whether it holds."""
        return self._expressions.condition(source, self.names(variables))

    def value(self, source: Any, variables: Mapping[str, Any]) -> Any:
        """Return the value of a `set` expression. Raises `EvalFailed`."""
        return self._expressions.value(source, self.names(variables))

    def render(self, source: str, variables: Mapping[str, Any]) -> str:
        """Return a text. Raises `EvalFailed`."""
        return self._expressions.render(source, self.names(variables))

    def argument(self, source: Any, variables: Mapping[str, Any]) -> Any:
        """Return an argument of an action. Raises `EvalFailed`."""
        return self._expressions.argument(source, self.names(variables))


class ExpressionRules:
    """Checks the expressions of rails.yml while it is validated."""

    def condition(self, node: ScalarNode, report: Report) -> None:
        """Check an expression."""
        report_into(report, node, compile_condition(node.text)[1])

    def template(self, node: ScalarNode, report: Report) -> None:
        """Check a text with `{{ … }}`."""
        report_into(report, node, compile_template(node.text)[1])
