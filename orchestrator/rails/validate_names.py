"""Checks of the names in rails: subrails, intents, messages, flows and slots that a step refers to.

They read the nodes, not the compiled rails, so that a faulty step does not hide a wrong name beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.flows.expressions import compile_condition, compile_template
from orchestrator.flows.source import ListNode, MapNode, Node, Report, ScalarNode, did_you_mean
from orchestrator.rails.model import UNKNOWN_INTENT, bot_intents_of
from orchestrator.rails.program import ANY_INTENT, Bot, Branch, Do, Extract, Say, WaitEvent, WaitUser
from orchestrator.rails.state import Rail
from orchestrator.rails.validate_steps import text_of

_NESTED = ("then", "else", "on_error", "branch", "do", "extract")
_PLAIN = ("user", "bot", "call")
_READ_KINDS = {"slots": "slot", "context": "context"}
_WITH_TEXT = ("say", "if", "set", "args")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A name a step refers to. `kind` is user, bot, call, flow, slot or context; `offset` is where a text reads it."""

    kind: str
    name: str
    node: Node
    offset: int = 0


def references(node: Node | None) -> Iterator[Reference]:
    """Yield the names steps refer to, in file order."""
    if isinstance(node, ListNode):
        for item in node.items:
            yield from references(item)
        return
    if not isinstance(node, MapNode):
        return
    for key in node:
        value = node.entries[key][1]
        text = text_of(value)
        if key in _PLAIN and text:
            yield Reference(kind=key, name=text, node=value)
        elif key in _NESTED:
            yield from references(value)
        elif key in _WITH_TEXT:
            yield from reads_in(value, is_condition=key in ("if", "set"))
    yield from _flow_started(node)


def reads_in(node: Node, *, is_condition: bool = False) -> Iterator[Reference]:
    """Yield the slots and context fields that texts read; with `is_condition` a text without `{{` is an expression."""
    if isinstance(node, ListNode):
        for item in node.items:
            yield from reads_in(item, is_condition=is_condition)
    elif isinstance(node, MapNode):
        for _, value in node.entries.values():
            yield from reads_in(value, is_condition=is_condition)
    elif isinstance(node, ScalarNode) and isinstance(node.value, str) and _reads_something(node.text):
        as_expression = is_condition and "{{" not in node.text
        compiled = (compile_condition if as_expression else compile_template)(node.text)[0]
        for read in compiled.reads if compiled is not None else ():
            kind = _READ_KINDS.get(read.namespace)
            if kind is not None and read.field != "get":
                yield Reference(kind=kind, name=read.field, node=node, offset=read.offset)


def _reads_something(text: str) -> bool:
    return any(namespace in text for namespace in _READ_KINDS)


def _flow_started(node: MapNode) -> Iterator[Reference]:
    args = node.get("args")
    flow = args.get("flow") if isinstance(args, MapNode) else None
    name = text_of(flow)
    if flow is not None and name and text_of(node.get("action")) == "start_flow" and "{" not in name:
        yield Reference(kind="flow", name=name, node=flow)


class NameChecker:
    """Checks the names of all rails of a configuration. `bodies` are all rails as written, `built` the sound ones."""

    def __init__(
        self,
        report: Report,
        built: Mapping[str, Rail],
        bodies: Mapping[str, tuple[ScalarNode, MapNode]],
        *,
        intents: Collection[str],
        messages: Collection[str],
        flows: Container[str] | None,
        slots: Container[str] | None,
    ) -> None:
        """Collect what refers to what."""
        self._report = report
        self._built = built
        self._bodies = bodies
        self._intents = intents
        self._messages = messages
        self._flows = flows
        self._slots = slots
        self._refs = {name: tuple(references(body.get("steps"))) for name, (_, body) in bodies.items()}
        self._calls = {name: {r.name for r in refs if r.kind == "call"} for name, refs in self._refs.items()}
        self._subrails = [name for name in bodies if self._kind(name) == "subrail"]

    def check_rails(self) -> None:
        """Check every step of every rail."""
        for refs in self._refs.values():
            for reference in refs:
                getattr(self, f"_check_{reference.kind}")(reference)
        for name, rail in self._built.items():
            missing = bot_intents_of(rail) - set(self._messages)
            if rail.always and missing:
                self._report.add(self._bodies[name][0], "improvised_safety",
                                 f"the always rail {name!r} has no words for {min(missing)!r}",
                                 severity="warning")  # fmt: skip
            if rail.kind == "rail" and not self._waits(name, set()) and not _begins_by_itself(rail):
                problem = f"the rail {name!r} never starts: it waits for nothing"
                self._report.add(self._bodies[name][0], "rail_start", problem, severity="warning")

    def check_texts(self, nodes: Iterable[Node]) -> None:
        """Check what bot messages read."""
        for node in nodes:
            for reference in reads_in(node):
                getattr(self, f"_check_{reference.kind}")(reference)

    def check_fallback(self, fallback: tuple[Node, str] | None) -> None:
        """Check the fallback intent: one nobody knows can be answered by the model alone."""
        if fallback is None:
            return
        node, name = fallback
        waited = {r.name for refs in self._refs.values() for r in refs if r.kind == "user"}
        known = {*self._intents, *waited}
        if name not in known and name != UNKNOWN_INTENT:
            self._report.add(node, "unknown_intent", f"no rail waits for {name!r}, and it has no examples",
                             suggestion=did_you_mean(name, sorted(known)), severity="warning")  # fmt: skip

    def check_screen(self, node: Node, name: str) -> bool:
        """Check a rail that is run on what is said: a subrail that never waits. True if it can be used."""
        if name not in self._bodies:
            self._unknown_subrail(node, name, self._subrails or self._bodies)
            return False
        if self._kind(name) != "subrail":
            self._report.add(node, "not_a_subrail", f"{name!r} is no subrail; give it kind: subrail")
            return False
        if self._waits(name, set()):
            self._report.add(node, "screen_waits", f"{name!r} waits for something; a rail on what is said must not")
            return False
        return name in self._built

    # --- one method per kind of name -------------------------------------------------------------------

    def _check_user(self, reference: Reference) -> None:
        name = reference.name
        if self._intents and name not in self._intents and name not in (ANY_INTENT, UNKNOWN_INTENT):
            self._report.add(reference.node, "unknown_intent", f"the intent {name!r} has no examples",
                             suggestion=did_you_mean(name, self._intents), severity="warning")  # fmt: skip

    def _check_bot(self, reference: Reference) -> None:
        """Warn of a bot intent without words only where it looks like a misspelt one: the model may word the others."""
        if reference.name in self._messages:
            return
        close = _misspelt(reference.name, self._messages)
        if close is not None:
            self._report.add(reference.node, "unknown_message", f"there is no bot message {reference.name!r}",
                             suggestion=close, severity="warning")  # fmt: skip

    def _check_call(self, reference: Reference) -> None:
        name = reference.name
        if name not in self._bodies:
            self._unknown_subrail(reference.node, name, self._subrails)
        elif self._kind(name) != "subrail":
            self._report.add(reference.node, "not_a_subrail", f"{name!r} is no subrail; give it kind: subrail")
        elif self._reaches(name, name):
            self._report.add(reference.node, "recursive_call",
                             f"{name!r} ends up calling itself: a spoken error at run time",
                             severity="warning")  # fmt: skip

    def _check_flow(self, reference: Reference) -> None:
        if self._flows is not None and reference.name not in self._flows:
            known = sorted(self._flows) if isinstance(self._flows, Iterable) else ()
            self._report.add(reference.node, "unknown_flow", f"there is no flow {reference.name!r}",
                             suggestion=did_you_mean(reference.name, known))  # fmt: skip

    def _check_slot(self, reference: Reference) -> None:
        if self._slots is not None and reference.name not in self._slots:
            known = sorted(self._slots) if isinstance(self._slots, Iterable) else ()
            self._add_read(reference, "unknown_slot", f"there is no slot {reference.name!r}",
                           did_you_mean(reference.name, known))  # fmt: skip

    def _check_context(self, reference: Reference) -> None:
        self._add_read(reference, "unknown_context_field", "only system flows have a context; rails have vars", None)

    # --- help ------------------------------------------------------------------------------------------

    def _add_read(self, reference: Reference, code: str, message: str, suggestion: str | None) -> None:
        node = reference.node
        assert isinstance(node, ScalarNode)
        start = max(node.text.find(reference.name, reference.offset), 0)
        self._report.add_inside(node, start, start + len(reference.name), code, message, suggestion=suggestion)

    def _unknown_subrail(self, node: Node, name: str, options: Iterable[str]) -> None:
        self._report.add(node, "unknown_subrail", f"there is no subrail {name!r}",
                         suggestion=did_you_mean(name, options))  # fmt: skip

    def _kind(self, name: str) -> str:
        return text_of(self._bodies[name][1].get("kind")) or "rail"

    def _reaches(self, start: str, goal: str) -> bool:
        seen: set[str] = set()
        pending = [start]
        while pending:
            for name in self._calls.get(pending.pop(), ()):
                if name == goal:
                    return True
                if name not in seen:
                    seen.add(name)
                    pending.append(name)
        return False

    def _waits(self, name: str, seen: set[str]) -> bool:
        if name in seen or name not in self._bodies:
            return False
        seen.add(name)
        rail = self._built.get(name)
        if rail is not None and any(isinstance(op, (WaitUser, WaitEvent, Branch)) for op in rail.program.ops):
            return True
        return any(self._waits(other, seen) for other in self._calls[name])


def _begins_by_itself(rail: Rail) -> bool:
    """Whether some step can be matched by what another rail does, of which `_check_start` warns on its own."""
    return any(isinstance(op, (Bot, Say, Do, Extract)) for op in rail.program.ops)


def _misspelt(name: str, known: Collection[str]) -> str | None:
    """Return the known name that `name` differs from by a slip of one or two letters, or None."""
    close = did_you_mean(name, known)
    if close is None:
        return None
    slips = 1 if min(len(name), len(close)) < 8 else 2
    return close if min(len(name), len(close)) > 3 and _distance(name.casefold(), close.casefold()) <= slips else None


def _distance(one: str, other: str) -> int:
    """Count the edits between two words, a swap of neighbours as one (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
