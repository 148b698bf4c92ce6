"""The one language of conditions and templates, compiled at load; evaluation never raises and is bounded.

Names: `slots`, `context`, `world`, `vars`, `user`, `now`. Prompts know more (`PROMPT_NAMES`). The caller's key
`__language__` (`zh`, `en`) is for the filter `spoken` and not visible to authors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.environment import Template as JinjaTemplate
from jinja2.exceptions import TemplateError, TemplateSyntaxError
from jinja2.parser import Parser

from orchestrator.flows.sandbox import (
    FUEL,
    FUNCTIONS,
    MAX_INT_BITS,
    MAX_OUTPUT_CHARS,
    MAX_POWER,
    MAX_RANGE,
    MAX_WEIGHT,
    ArithmeticOnUnset,
    Fuel,
    Refused,
    Sandbox,
    SlotView,
    harden,
    is_allowed,
    is_unset,
    weigh,
)
from orchestrator.flows.source import Report, ScalarNode, did_you_mean

BASE_NAMES = frozenset({"slots", "context", "world", "vars", "user", "now"})
PROMPT_NAMES = BASE_NAMES | {"history", "user_message", "current_response"}
MAX_CONDITION_CHARS = 2_000
MAX_TEMPLATE_CHARS = 20_000
MAX_NODES = 2_000
MAX_DEPTH = 40

_SANDBOX = Sandbox()
_CONSTANTS = frozenset({"true", "false", "none", "True", "False", "None"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionProblem:
    """A fault in a condition or template; `start` and `end` are offsets in its text."""

    start: int
    end: int
    code: str
    message: str
    suggestion: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One place where a text reads `namespace.field`; `guarded` when inside a condition or with a default."""

    namespace: str
    field: str
    offset: int
    printed: bool = False


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
    checker = _Checker(inner, names, shift)
    checker.check(expression)
    if checker.problems:
        return None, tuple(checker.problems)
    compiled, problem = _compile_expression(expression, inner)
    if compiled is None:
        return None, (problem or _too_complex(inner, shift),)
    return Condition(source=text, reads=tuple(checker.reads), compiled=compiled), ()


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
    checker = _Checker(text, names, 0)
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


class _Checker:
    """Static check of a parsed text: names, functions, filters, escapes, bombs, size."""

    def __init__(self, text: str, names: frozenset[str], shift: int) -> None:
        self.text = text
        self.names = names
        self.shift = shift
        self.problems: list[ExpressionProblem] = []
        self.reads: list[Read] = []
        self.count = 0
        self.local: set[str] = set()

    def add(self, at: int, length: int, code: str, message: str, suggestion: str | None = None) -> None:
        start = self.shift + max(0, at)
        self.problems.append(
            ExpressionProblem(start=start, end=start + length, code=code, message=message, suggestion=suggestion)
        )

    def check(self, tree: Any) -> None:
        try:
            depth = _depth(tree)
        except RecursionError:
            depth = MAX_DEPTH + 1
        if depth > MAX_DEPTH:
            self.add(0, len(self.text), "expression_complex", f"nested deeper than {MAX_DEPTH} levels")
            return
        for name in tree.find_all(nodes.Name):
            if name.ctx in ("store", "param"):
                self.local.add(name.name)
        self._walk(tree, printed=False, in_loop=False)
        if self.count > MAX_NODES:
            self.add(0, len(self.text), "expression_size", f"more than {MAX_NODES} parts")

    def _walk(self, node: Any, *, printed: bool, in_loop: bool) -> None:
        self.count += 1
        if not is_allowed(node):
            what = type(node).__name__
            self.add(node.lineno, 1, "expression_forbidden", f"{what} is not allowed here")
            return
        if isinstance(node, nodes.For) and node.recursive:
            self.add(node.lineno, 1, "expression_forbidden", "recursive loops are not allowed")
        handler = getattr(self, f"_check_{type(node).__name__.lower()}", None)
        if handler is not None:
            handler(node, printed, in_loop)
        for child in node.iter_child_nodes():
            is_printed = isinstance(node, nodes.Output) or (printed and isinstance(node, (nodes.Concat, nodes.Filter)))
            if isinstance(node, nodes.Filter) and node.name in ("default", "d"):
                is_printed = False
            self._walk(child, printed=is_printed, in_loop=in_loop or isinstance(node, nodes.For))

    def _check_name(self, node: Any, printed: bool, in_loop: bool) -> None:
        name = node.name
        if name.startswith("_"):
            self.add(node.lineno, len(name), "expression_escape", f"the name {name} is not allowed")
        elif node.ctx != "load":
            if name in self.names or name in FUNCTIONS or name == "loop":
                self.add(node.lineno, len(name), "expression_name", f"the name {name} is taken")
        elif (
            name in self.local
            or name in self.names
            or name in FUNCTIONS
            or name in _CONSTANTS
            or (name == "loop" and in_loop)
        ):
            pass
        else:
            known = [*self.names, *FUNCTIONS, "none", "true", "false", *self.local]
            hint = {"null": "none", "nil": "none", "undefined": "none"}.get(name) or did_you_mean(name, known)
            self.add(node.lineno, len(name), "unknown_name", f"there is no name {name}", hint or f"slots.{name}")

    def _check_getattr(self, node: Any, printed: bool, in_loop: bool) -> None:
        if node.attr.startswith("_"):
            at = self.text.find(node.attr, max(0, node.lineno))
            self.add(
                at if at >= 0 else node.lineno,
                len(node.attr),
                "expression_escape",
                f"the name {node.attr} is not allowed",
            )
        self._note_read(node.node, node.attr, node.lineno + 1, printed)

    def _check_getitem(self, node: Any, printed: bool, in_loop: bool) -> None:
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            if node.arg.value.startswith("_"):
                self.add(node.lineno, 1, "expression_escape", f"the name {node.arg.value[:40]} is not allowed")
            self._note_read(node.node, node.arg.value, node.arg.lineno + 1, printed)

    def _note_read(self, owner: Any, field: str, at: int, printed: bool) -> None:
        if (
            isinstance(owner, nodes.Name)
            and owner.name in self.names
            and owner.name not in self.local
            and field != "get"
        ):
            self.reads.append(Read(namespace=owner.name, field=field, offset=self.shift + at, printed=printed))

    def _check_call(self, node: Any, printed: bool, in_loop: bool) -> None:
        target = node.node
        if isinstance(target, nodes.Getattr) and target.attr == "get" and isinstance(target.node, nodes.Name):
            first = node.args[0] if node.args else None
            if isinstance(first, nodes.Const) and isinstance(first.value, str):
                self._note_read(target.node, first.value, first.lineno + 1, printed and len(node.args) < 2)
        elif isinstance(target, nodes.Name):
            if target.name not in FUNCTIONS:
                hint = did_you_mean(target.name, FUNCTIONS)
                if target.name in self.names or target.name in self.local:
                    self.add(target.lineno, len(target.name), "unknown_function", f"{target.name} is no function", hint)
            elif target.name == "range":
                self._check_range(node)
        elif not isinstance(target, nodes.Getattr):
            self.add(node.lineno, 1, "unknown_function", "this can't be called")
        elif target.attr not in _METHODS:
            at = self.text.find(target.attr, max(0, target.lineno))
            self.add(at if at >= 0 else target.lineno, len(target.attr), "unknown_function",
                     f"there is no function {target.attr}", did_you_mean(target.attr, _METHODS))  # fmt: skip
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            self.add(node.lineno, 1, "expression_forbidden", "* and ** arguments are not allowed")

    def _check_range(self, node: Any) -> None:
        values = [_constant(arg) for arg in node.args]
        if values and all(isinstance(v, int) for v in values):
            try:
                size = len(range(*values[:3]))
            except (ValueError, OverflowError):
                size = MAX_RANGE + 1
            if size > MAX_RANGE:
                self.add(node.node.lineno, 5, "expression_bomb", f"a range of more than {MAX_RANGE} numbers")

    def _check_filter(self, node: Any, printed: bool, in_loop: bool) -> None:
        known = [n for n in _SANDBOX.filters if not n.startswith("_")]
        if node.name not in known:
            self.add(
                node.lineno,
                len(node.name),
                "unknown_filter",
                f"there is no filter {node.name}",
                did_you_mean(node.name, known),
            )

    def _check_test(self, node: Any, printed: bool, in_loop: bool) -> None:
        if node.name not in _SANDBOX.tests:
            at = self.text.find(node.name, max(0, node.lineno))
            self.add(at if at >= 0 else node.lineno, len(node.name), "unknown_test", f"there is no test {node.name}",
                     did_you_mean(node.name, _SANDBOX.tests))  # fmt: skip

    def _check_pow(self, node: Any, printed: bool, in_loop: bool) -> None:
        # the root of a chain of powers is looked at, too: 9**9**9
        base, power = _constant(node.left), _constant(node.right)
        too_high = isinstance(power, (int, float)) and abs(power) > MAX_POWER
        if isinstance(base, int) and isinstance(power, int) and base.bit_length() * abs(power) > MAX_INT_BITS:
            too_high = True
        if too_high:
            self.add(node.lineno, 1, "expression_bomb", "a power too large")

    def _check_mul(self, node: Any, printed: bool, in_loop: bool) -> None:
        left, right = _constant(node.left), _constant(node.right)
        if isinstance(left, int):
            left, right = right, left
        size = (
            len(left)
            if isinstance(left, str)
            else 1
            if isinstance(node.left, nodes.List) or isinstance(node.right, nodes.List)
            else None
        )
        if size is not None and isinstance(right, int) and size * right > MAX_WEIGHT:
            self.add(node.lineno, 1, "expression_bomb", "a repeat too large")

    def _check_const(self, node: Any, printed: bool, in_loop: bool) -> None:
        if isinstance(node.value, int) and node.value.bit_length() > MAX_INT_BITS:
            self.add(node.lineno, 1, "expression_bomb", "a number too large")


_METHODS = frozenset(
    [
        "get",
        "keys",
        "values",
        "items",
        "upper",
        "lower",
        "title",
        "capitalize",
        "strip",
        "lstrip",
        "rstrip",
        "startswith",
        "endswith",
        "isdigit",
        "isalpha",
        "isalnum",
        "isnumeric",
        "find",
        "count",
        "splitlines",
        "casefold",
        "replace",
        "split",
        "join",
        "weekday",
        "isoweekday",
        "isoformat",
        "date",
        "time",
        "strftime",
        "index",
    ]
)


def _constant(node: Any) -> Any:
    if isinstance(node, nodes.Const):
        return node.value
    if isinstance(node, nodes.Neg):
        value = _constant(node.node)
        return -value if isinstance(value, (int, float)) else None
    if isinstance(node, (nodes.Pow, nodes.Mul)):
        left, right = _constant(node.left), _constant(node.right)
        if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
            return None
        if isinstance(node, nodes.Mul):
            return left * right
        if abs(right) > MAX_POWER or (isinstance(left, int) and left.bit_length() * abs(right) > MAX_INT_BITS * 4):
            return 1 << (MAX_INT_BITS + 1)
        return left**right
    return None


def _depth(node: Any) -> int:
    deepest = 0
    stack = [(node, 1)]
    while stack:
        item, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in item.iter_child_nodes())
    return deepest


def report_into(report: Report, node: ScalarNode, problems: tuple[ExpressionProblem, ...]) -> None:
    """Add the problems of a node's text with their places in the file."""
    for problem in problems:
        report.add_inside(
            node, problem.start, problem.end, problem.code, problem.message, suggestion=problem.suggestion
        )
