"""The Jinja2 sandbox in which conditions and templates run: its immutable one, narrowed to our language.

Values are weighed when they come into being, so that no later step can be dearer than the bounds allow; rounds of loops
and the weight of all results are paid from one `Fuel` per evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from jinja2 import nodes, pass_context
from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment

from orchestrator.flows.fuel import (
    ArithmeticOnUnset,
    Refused,
    SafeCall,
    SlotView,
    Unset,
    fuel,
    is_unset,
    weighed,
)
from orchestrator.flows.sandbox_values import (
    FILTERS,
    FUNCTIONS,
    TESTS,
    arithmetic,
    as_text,
    compare,
    concat,
    is_number,
    loop,
    read_attribute,
)

__all__ = ["Sandbox", "SlotView", "harden", "is_allowed"]


@pass_context
def _finalize(_context: Any, value: Any) -> str:
    # taking the context keeps Jinja2 from evaluating anything at compile time
    if value is None:
        fuel().note_unset("none")
    return as_text(value)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's immutable sandbox, narrowed to the language of conditions and templates.

    Tokens carry their offset in the text in place of a line number, so that every node and error knows its place.
    """

    intercepted_binops: ClassVar[frozenset[str]] = frozenset(["+", "-", "*", "/", "//", "%", "**"])  # type: ignore[misc]
    intercepted_unops: ClassVar[frozenset[str]] = frozenset(["-", "+"])  # type: ignore[misc]

    def __init__(self) -> None:
        """Build it with our filters, tests and functions and nothing else."""
        super().__init__(undefined=Unset, autoescape=False, optimized=False, finalize=_finalize, cache_size=0)
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)
        self.globals = dict(FUNCTIONS)
        self.filters.update(
            {"_compare": compare, "_concat": concat, "_loop": loop, "_weighed": weighed, "_slice": self._slice}
        )

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        def with_offsets() -> Iterator[tuple[int, str, str]]:
            at = 0
            try:
                for _, token, value in self.lexer.tokeniter(source, name, filename, state):
                    found = source.find(value, at)
                    start = found if found >= 0 else at
                    at = start + len(value)
                    yield start, token, value
            except TemplateSyntaxError as error:
                place = re.search(r" at (\d+)$", error.message or "")
                error.lineno = int(place[1]) if place else at
                raise

        return TokenStream(self.lexer.wrap(with_offsets(), name, filename), name, filename)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - Jinja2's signature
        """Call only what was handed out as callable."""
        if not isinstance(__obj, SafeCall):
            raise Refused("this can't be called")
        return __obj(*args, **kwargs)

    def call_binop(self, _context: Any, operator: str, left: Any, right: Any) -> Any:
        """Do arithmetic within bounds."""
        fuel().spend(1)
        return arithmetic(operator, left, right)

    def call_unop(self, _context: Any, operator: str, arg: Any) -> Any:
        """Do a sign within bounds."""
        if is_unset(arg):
            raise ArithmeticOnUnset("arithmetic with an unset value")
        if not is_number(arg):
            raise Refused(f"'{operator}' has no meaning here")
        return -arg if operator == "-" else +arg

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Read `obj.attribute`."""
        fuel().spend(1)
        return read_attribute(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Read `obj[argument]`."""
        fuel().spend(1)
        if isinstance(argument, str):
            return read_attribute(obj, argument)
        if isinstance(obj, (list, tuple, str)) and isinstance(argument, int):
            return obj[argument] if -len(obj) <= argument < len(obj) else Unset(name=f"[{argument}]")
        if isinstance(obj, (list, tuple, str)) and isinstance(argument, slice):
            return weighed(obj[argument])
        if isinstance(obj, Mapping) and not isinstance(argument, slice):
            try:
                return obj.get(argument, Unset(name=f"[{argument}]"))
            except TypeError:
                return Unset(name="item")
        return Unset(name="item")

    def _slice(self, obj: Any, start: Any, stop: Any, step: Any) -> Any:
        bounds = [None if is_unset(b) else b for b in (start, stop, step)]
        if any(b is not None and not isinstance(b, int) for b in bounds) or bounds[2] == 0:
            raise Refused("a slice takes whole numbers")
        return self.getitem(obj, slice(*bounds))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Refuse everything: reading goes through `read_attribute` alone."""
        return False


_ALLOWED_NODES = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.For,
    nodes.Assign,
    nodes.Name,
    nodes.Const,
    nodes.Tuple,
    nodes.List,
    nodes.Dict,
    nodes.Pair,
    nodes.Keyword,
    nodes.CondExpr,
    nodes.Filter,
    nodes.Test,
    nodes.Call,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.Pos,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Pow,
    nodes.Concat,
)


def is_allowed(node: nodes.Node) -> bool:
    """Whether this kind of node belongs to the language."""
    return type(node) in _ALLOWED_NODES


def harden(node: Any) -> Any:
    """Rewrite a parsed tree so that comparisons, loops, joins and literals go through the bounded functions."""
    for field in node.fields:
        value = getattr(node, field, None)
        if isinstance(value, nodes.Node):
            setattr(node, field, harden(value))
        elif isinstance(value, list):
            setattr(node, field, [harden(v) if isinstance(v, nodes.Node) else v for v in value])
    at = {"lineno": node.lineno, "environment": node.environment}
    if isinstance(node, nodes.Compare):
        parts: list[nodes.Expr] = []
        left = node.expr
        for operand in node.ops:
            parts.append(_filter(left, "_compare", [nodes.Const(operand.op, **at), operand.expr], at))
            left = operand.expr
        result = parts[0]
        for part in parts[1:]:
            result = nodes.And(result, part, **at)
        return result
    if isinstance(node, nodes.Concat):
        return _filter(node.nodes[0], "_concat", node.nodes[1:], at)
    if isinstance(node, nodes.For):
        node.iter = _filter(node.iter, "_loop", [], at)
    if isinstance(node, nodes.Filter) and not node.name.startswith("_"):
        return _filter(node, "_weighed", [], at)
    if isinstance(node, (nodes.List, nodes.Dict)) or (isinstance(node, nodes.Tuple) and node.ctx == "load"):
        return _filter(node, "_weighed", [], at)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        # a slice is generated as plain Python; as a call of getitem it meets our checks
        parts = [
            p if p is not None else nodes.Const(None, **at) for p in (node.arg.start, node.arg.stop, node.arg.step)
        ]
        return _filter(node.node, "_slice", parts, at)
    return node


def _filter(node: Any, name: str, args: list[Any], at: dict[str, Any]) -> nodes.Filter:
    return nodes.Filter(node, name, args, [], None, None, **at)
