"""The one language of conditions and templates, compiled at load; evaluation never raises and is bounded.

Names: `slots`, `context`, `world`, `vars`, `user`, `now`. Prompts know more (`PROMPT_NAMES`). The caller's key
`__language__` (`zh`, `en`) is for the filter `spoken` and not visible to authors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from jinja2 import nodes
from jinja2.environment import Template as JinjaTemplate
from jinja2.exceptions import TemplateError, TemplateSyntaxError
from jinja2.parser import Parser

from orchestrator.flows.expression_check import Checker, ExpressionProblem, Read
from orchestrator.flows.fuel import (
    FUEL,
    MAX_OUTPUT_CHARS,
    ArithmeticOnUnset,
    Fuel,
    Refused,
    SlotView,
    is_unset,
    weigh,
)
from orchestrator.flows.sandbox import Sandbox, harden
from orchestrator.flows.sandbox_values import FUNCTIONS
from orchestrator.flows.source import Report, ScalarNode
from orchestrator.flows.spoken import Seconds

__all__ = [
    "BASE_NAMES",
    "PROMPT_NAMES",
    "Condition",
    "ExpressionProblem",
    "Outcome",
    "Read",
    "Template",
    "compile_condition",
    "compile_template",
    "report_into",
]

BASE_NAMES = frozenset({"slots", "context", "world", "vars", "user", "now"})
PROMPT_NAMES = BASE_NAMES | {"history", "user_message", "current_response"}
MAX_CONDITION_CHARS = 2_000
MAX_TEMPLATE_CHARS = 20_000
MAX_CACHED = 1_000

_SANDBOX = Sandbox()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an evaluation came to.

    `value` is plain data (none for unset). `ok` is false when it was refused or failed: the value is then False for a
    condition, "" for a template, none for a value. `unset` names what was printed or calculated with while unset;
    `unset_arithmetic` says that arithmetic met such a value. `traces` are for the author.
    """

    value: Any
    ok: bool = True
    error: str | None = None
    unset: tuple[str, ...] = ()
    unset_arithmetic: bool = False
    traces: tuple[str, ...] = ()


def _scope(names: Mapping[str, Any], tank: Fuel) -> dict[str, Any]:
    scope = dict(names)
    tank.language = scope.pop("__language__", None)
    now = scope.get("now")
    tank.now = now if isinstance(now, datetime) else None
    slots = scope.get("slots")
    if isinstance(slots, Mapping) and not isinstance(slots, SlotView):
        scope["slots"] = SlotView(slots)
    return scope


def _plain(value: Any) -> Any:
    if is_unset(value):
        return None
    if isinstance(value, Seconds):
        return int(value)
    if isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return [_plain(v) for v in value]
    if isinstance(value, Iterator):
        return [_plain(v) for v in list(value)]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Condition:
    """A compiled expression: a condition, or a value that keeps its type."""

    source: str
    reads: tuple[Read, ...]
    compiled: JinjaTemplate

    def evaluate(self, names: Mapping[str, Any]) -> Outcome:
        """Return the expression's value with its type; never raises."""
        tank = Fuel()
        token = FUEL.set(tank)
        try:
            context = self.compiled.new_context(_scope(names, tank))
            for _ in self.compiled.root_render_func(context):
                pass
            value = context.vars["result"]
            weigh(value if not isinstance(value, Iterator) else None)
            return Outcome(value=_plain(value), unset=tuple(tank.unset), traces=tuple(tank.traces))
        except Exception as error:  # noqa: BLE001 - an author's text must never take a turn down
            return _failed(None, error, tank)
        finally:
            FUEL.reset(token)

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Return whether the condition is true; false when it could not be evaluated."""
        return bool(self.evaluate(names).value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Template:
    """A compiled text. A text that is one whole `{{ … }}` can keep its type with `evaluate`."""

    source: str
    reads: tuple[Read, ...]
    compiled: JinjaTemplate | None
    whole: Condition | None = None

    def render(self, names: Mapping[str, Any]) -> Outcome:
        """Return the text; empty when it could not be rendered; never raises."""
        if self.compiled is None:
            return Outcome(value=self.source)
        tank = Fuel()
        token = FUEL.set(tank)
        try:
            context = self.compiled.new_context(_scope(names, tank))
            pieces: list[str] = []
            size = 0
            for piece in self.compiled.root_render_func(context):
                size += len(piece)
                if size > MAX_OUTPUT_CHARS:
                    raise Refused("the text gets too long")
                pieces.append(piece)
            return Outcome(value="".join(pieces), unset=tuple(tank.unset), traces=tuple(tank.traces))
        except Exception as error:  # noqa: BLE001 - an author's text must never take a turn down
            return _failed("", error, tank)
        finally:
            FUEL.reset(token)

    def evaluate(self, names: Mapping[str, Any]) -> Outcome:
        """Return the value: typed for one whole `{{ … }}`, else the rendered text."""
        return self.whole.evaluate(names) if self.whole is not None else self.render(names)


def _failed(value: Any, error: Exception, tank: Fuel) -> Outcome:
    text = (
        str(error)
        if isinstance(error, (Refused, ArithmeticOnUnset))
        else f"can't be evaluated ({type(error).__name__})"
    )
    return Outcome(
        value=value, ok=False, error=text, unset=tuple(tank.unset), traces=(*tank.traces, text),
        unset_arithmetic=isinstance(error, ArithmeticOnUnset),
    )  # fmt: skip


_WHOLE = re.compile(r"\s*\{\{(?P<inner>.*)\}\}\s*", re.DOTALL)
_HAS_MARKUP = re.compile(r"\{\{|\{%|\{#")


# what is compiled has no state of its own, and a reload meets mostly the texts it met before
@lru_cache(maxsize=MAX_CACHED)
def compile_condition(
    text: str, *, names: frozenset[str] = BASE_NAMES
) -> tuple[Condition | None, tuple[ExpressionProblem, ...]]:
    """Compile an expression; a whole `{{ … }}` around it is accepted. None when there are problems."""
    inner, shift = text, 0
    match = _WHOLE.fullmatch(text)
    if match and "{{" not in match["inner"] and "}}" not in match["inner"]:
        inner, shift = match["inner"], match.start("inner")
    if len(text) > MAX_CONDITION_CHARS:
        return None, (
            ExpressionProblem(
                start=0, end=len(text), code="expression_size", message=f"longer than {MAX_CONDITION_CHARS} characters"
            ),
        )
    if not inner.strip():
        return None, (
            ExpressionProblem(start=0, end=len(text), code="expression_empty", message="an expression is missing"),
        )
    try:
        parser = Parser(_SANDBOX, inner, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            current = parser.stream.current
            raise TemplateSyntaxError(f"unexpected {str(current.value)[:30]!r}", current.lineno)
    except Exception as error:  # noqa: BLE001 - the parser meets arbitrary text
        return None, (_syntax_problem(inner, error, shift),)
    expression.set_environment(_SANDBOX)
    checker = Checker(inner, names, shift, _SANDBOX)
    checker.check(expression)
    if checker.problems:
        return None, tuple(checker.problems)
    compiled, problem = _compile_expression(expression, inner)
    if compiled is None:
        return None, (problem or _too_complex(inner, shift),)
    return Condition(source=text, reads=tuple(checker.reads), compiled=compiled), ()


@lru_cache(maxsize=MAX_CACHED)
def compile_template(
    text: str, *, names: frozenset[str] = BASE_NAMES
) -> tuple[Template | None, tuple[ExpressionProblem, ...]]:
    """Compile a text with `{{ … }}` and `{% … %}`. None when there are problems."""
    if len(text) > MAX_TEMPLATE_CHARS:
        return None, (
            ExpressionProblem(
                start=0, end=len(text), code="template_size", message=f"longer than {MAX_TEMPLATE_CHARS} characters"
            ),
        )
    if not _HAS_MARKUP.search(text):
        return Template(source=text, reads=(), compiled=None), ()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = Parser(_SANDBOX, text).parse()
    except Exception as error:  # noqa: BLE001 - the parser meets arbitrary text
        return None, (_syntax_problem(text, error, 0),)
    tree.set_environment(_SANDBOX)
    checker = Checker(text, names, 0, _SANDBOX)
    checker.check(tree)
    if checker.problems:
        return None, tuple(checker.problems)
    compiled = _generate(harden(tree))
    if compiled is None:
        return None, (_too_complex(text, 0),)
    whole = None
    match = _WHOLE.fullmatch(text)
    if match and "{{" not in match["inner"] and "}}" not in match["inner"] and "{%" not in text and "{#" not in text:
        whole, _ = compile_condition(text, names=names)
    return Template(source=text, reads=tuple(checker.reads), compiled=compiled, whole=whole), ()


def _compile_expression(expression: Any, text: str) -> tuple[JinjaTemplate | None, ExpressionProblem | None]:
    target = nodes.Name("result", "store", lineno=0)
    tree = nodes.Template([nodes.Assign(target, harden(expression), lineno=0)], lineno=0)
    tree.set_environment(_SANDBOX)
    return _generate(tree), None


def _generate(tree: Any) -> JinjaTemplate | None:
    try:
        code = _SANDBOX.compile(tree)
        return JinjaTemplate.from_code(_SANDBOX, code, dict(FUNCTIONS))
    except (TemplateError, SyntaxError, MemoryError, RecursionError, ValueError, OverflowError):
        return None


def _too_complex(text: str, shift: int) -> ExpressionProblem:
    return ExpressionProblem(
        start=shift, end=shift + len(text), code="expression_complex", message="too complex to compile"
    )


_HINTS = (
    ("&&", "and"),
    ("||", "or"),
    ("===", "=="),
    ("!", "not"),
    ("=", "=="),
    ("?", "… if … else …"),
    ("&", "and"),
    ("|", "or"),
)


def _syntax_problem(text: str, error: Exception, shift: int) -> ExpressionProblem:
    if isinstance(error, RecursionError):
        return _too_complex(text, shift)
    if not isinstance(error, TemplateSyntaxError):
        message = "not readable as an expression"
        return ExpressionProblem(start=shift, end=shift + len(text), code="expression_syntax", message=message)
    at = max(0, min(error.lineno or 0, len(text)))
    message = re.sub(r" at \d+$", "", error.message or "not readable")
    if "nknown tag" in message or "xpected tag name" in message:
        message = "only {% if %}, {% for %} and {% set %} are allowed here"
    hint = next((better for bad, better in _HINTS if text.startswith(bad, at)), None)
    return ExpressionProblem(
        start=shift + at, end=shift + min(at + 1, len(text)), code="expression_syntax",
        message=message[:200].rstrip("."), suggestion=hint,
    )  # fmt: skip


def report_into(report: Report, node: ScalarNode, problems: tuple[ExpressionProblem, ...]) -> None:
    """Add the problems of a node's text with their places in the file."""
    for problem in problems:
        report.add_inside(
            node, problem.start, problem.end, problem.code, problem.message, suggestion=problem.suggestion
        )
