"""Static check of a parsed condition or template: names, functions, filters, escapes, bombs, size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jinja2 import nodes

from orchestrator.flows.fuel import MAX_INT_BITS, MAX_POWER, MAX_RANGE, MAX_WEIGHT
from orchestrator.flows.sandbox import Sandbox, is_allowed
from orchestrator.flows.sandbox_values import FUNCTIONS, METHODS
from orchestrator.flows.source import did_you_mean

MAX_NODES = 2_000
MAX_DEPTH = 40
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


class Checker:
    """Static check of a parsed text: names, functions, filters, escapes, bombs, size."""

    def __init__(self, text: str, names: frozenset[str], shift: int, sandbox: Sandbox) -> None:
        self.text = text
        self.sandbox = sandbox
        self.names = names
        self.shift = shift
        self.problems: list[ExpressionProblem] = []
        self.reads: list[Read] = []
        self.count = 0
        self.local: set[str] = set()

    def add(self, at: int, length: int, code: str, message: str, suggestion: str | None = None) -> None:
        """Note a problem of `length` characters at `at`."""
        start = self.shift + max(0, at)
        self.problems.append(
            ExpressionProblem(start=start, end=start + length, code=code, message=message, suggestion=suggestion)
        )

    def check(self, tree: Any) -> None:
        """Check a tree; fills `problems` and `reads`."""
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
        elif target.attr not in METHODS:
            at = self.text.find(target.attr, max(0, target.lineno))
            self.add(at if at >= 0 else target.lineno, len(target.attr), "unknown_function",
                     f"there is no function {target.attr}", did_you_mean(target.attr, METHODS))  # fmt: skip
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
        known = [n for n in self.sandbox.filters if not n.startswith("_")]
        if node.name not in known:
            self.add(
                node.lineno,
                len(node.name),
                "unknown_filter",
                f"there is no filter {node.name}",
                did_you_mean(node.name, known),
            )

    def _check_test(self, node: Any, printed: bool, in_loop: bool) -> None:
        if node.name not in self.sandbox.tests:
            at = self.text.find(node.name, max(0, node.lineno))
            self.add(at if at >= 0 else node.lineno, len(node.name), "unknown_test", f"there is no test {node.name}",
                     did_you_mean(node.name, self.sandbox.tests))  # fmt: skip

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
