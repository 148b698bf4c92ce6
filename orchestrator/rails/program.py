"""A rail's steps as a flat program, so that a head is one number that can be stored and loaded.

`compile_steps` takes what YAML holds after validation; it never sees a step the checker refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

ANY_INTENT = "..."
VALUE_TYPES = ("text", "integer", "number", "boolean", "list", "any")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitUser:
    """Wait for a user intent; `...` is any."""

    intent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEvent:
    """Wait for an event of `type` whose payload holds all of `match`."""

    type: str
    match: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way out of a branch."""

    wait: WaitUser | WaitEvent
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Wait for whichever arm comes first."""

    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """Answer with a bot intent; `interruptible` tells whether the user's voice may cut its words."""

    intent: str
    interruptible: bool = True
    on_error: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Speak a template; `interruptible` as for `Bot`."""

    text: str
    interruptible: bool = True
    on_error: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    """Run an action."""

    action: str
    args: Mapping[str, Any] = field(default_factory=dict)
    save_to: str | None = None
    on_error: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Ask the model for one value of the conversation."""

    var: str
    instruction: str
    type: str = "text"
    on_error: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVars:
    """Assign variables, in order."""

    values: Mapping[str, Any]
    on_error: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """Fall through when `condition` holds, else jump."""

    condition: Any
    otherwise: int
    on_error: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """Go on elsewhere in the same program, always forward."""

    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Run a subrail, then come back."""

    rail: str
    on_error: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the processing of this turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """End the whole rail: what follows an error branch."""


Waiting: TypeAlias = WaitUser | WaitEvent | Branch
Actionable: TypeAlias = Bot | Say | Do | Extract | Stop
Logic: TypeAlias = SetVars | If | Jump | Call | End
Op: TypeAlias = Waiting | Actionable | Logic


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Ops with, for each, where it stands in the file (`steps[1].then[0]`)."""

    ops: tuple[Op, ...]
    paths: tuple[str, ...]

    def signature(self, head: int) -> str:
        """Name the step at `head` by what it does, to find it again after the file was changed."""
        return signature(self.ops[head]) if 0 <= head < len(self.ops) else "end"


def signature(op: Op) -> str:
    """Return what an op does as one line, stable over edits elsewhere in the rail."""
    match op:
        case WaitUser():
            return f"user {op.intent}"
        case WaitEvent():
            return f"event {op.type} {json.dumps(dict(op.match), sort_keys=True, default=str)}"
        case Branch():
            return "branch " + " | ".join(signature(arm.wait) for arm in op.arms)
        case Bot():
            return f"bot {op.intent}"
        case Say():
            return f"say {op.text}"
        case Do():
            return f"do {op.action}"
        case Extract():
            return f"extract {op.var}"
        case _:
            return type(op).__name__.lower()


def nearest_step(program: Program, head: int, wanted: str) -> int | None:
    """Return the index of the step called `wanted` that is nearest to `head`, or None."""
    found = [i for i, op in enumerate(program.ops) if signature(op) == wanted]
    return min(found, key=lambda i: (abs(i - head), i)) if found else None


class _Compiler:
    """Emits ops depth first; error branches come after the main line and end the rail."""

    def __init__(self) -> None:
        self.ops: list[Any] = []
        self.paths: list[str] = []
        self._errors: list[tuple[int, Sequence[Mapping[str, Any]], str]] = []

    def emit(self, op: Any, path: str) -> int:
        self.ops.append(op)
        self.paths.append(path)
        return len(self.ops) - 1

    def steps(self, steps: Sequence[Mapping[str, Any]], path: str) -> None:
        for number, step in enumerate(steps):
            self.step(step, f"{path}[{number}]")

    def step(self, step: Mapping[str, Any], path: str) -> None:
        on_error = step.get("on_error")
        if "branch" in step:
            self._branch(step["branch"], path)
            return
        if "if" in step:
            at = self._if(step, path)
        else:
            at = self.emit(_simple(step), path)
            body = step.get("do") or step.get("extract")
            if isinstance(body, Mapping) and on_error is None:
                on_error = body.get("on_error")
        if on_error:
            self._errors.append((at, on_error, f"{path}.on_error"))

    def _if(self, step: Mapping[str, Any], path: str) -> int:
        at = self.emit(None, path)
        self.steps(step.get("then") or (), f"{path}.then")
        otherwise = step.get("else") or ()
        if otherwise:
            jump = self.emit(None, path)
            target = len(self.ops)
            self.steps(otherwise, f"{path}.else")
            self.ops[jump] = Jump(target=len(self.ops))
        else:
            target = len(self.ops)
        self.ops[at] = If(condition=step["if"], otherwise=target)
        return at

    def _branch(self, arms: Sequence[Mapping[str, Any]], path: str) -> None:
        at = self.emit(None, path)
        made: list[Arm] = []
        jumps: list[int] = []
        for number, arm in enumerate(arms):
            made.append(Arm(wait=_wait(arm), target=len(self.ops)))
            self.steps(arm.get("then") or (), f"{path}.branch[{number}].then")
            jumps.append(self.emit(None, path))
        self.ops[at] = Branch(arms=tuple(made))
        for jump in jumps:
            self.ops[jump] = Jump(target=len(self.ops))

    def finish(self) -> Program:
        if self._errors:
            self.emit(End(), "end")
        while self._errors:
            at, steps, path = self._errors.pop(0)
            target = len(self.ops)
            self.steps(steps, path)
            self.emit(End(), path)
            self.ops[at] = _with_error(self.ops[at], target)
        return Program(ops=tuple(self.ops), paths=tuple(self.paths))


def _with_error(op: Any, target: int) -> Any:
    fields = {name: getattr(op, name) for name in op.__dataclass_fields__}
    return type(op)(**{**fields, "on_error": target})


def _wait(step: Mapping[str, Any]) -> WaitUser | WaitEvent:
    if "user" in step:
        return WaitUser(intent=str(step["user"]))
    event = step["event"]
    if isinstance(event, str):
        return WaitEvent(type=event)
    return WaitEvent(type=str(event["type"]), match={k: v for k, v in event.items() if k != "type"})


def _simple(step: Mapping[str, Any]) -> Op:
    if "user" in step or "event" in step:
        return _wait(step)
    if "bot" in step:
        return Bot(intent=str(step["bot"]), interruptible=bool(step.get("interruptible", True)))
    if "say" in step:
        return Say(text=str(step["say"]), interruptible=bool(step.get("interruptible", True)))
    if "do" in step:
        body = step["do"] if isinstance(step["do"], Mapping) else {"action": step["do"]}
        return Do(action=str(body["action"]), args=body.get("args") or {}, save_to=body.get("save_to"))
    if "extract" in step:
        body = step["extract"]
        return Extract(var=body["var"], instruction=str(body.get("instruction", "")), type=body.get("type", "text"))
    if "set" in step:
        return SetVars(values=dict(step["set"]))
    if "call" in step:
        return Call(rail=str(step["call"]))
    return Stop() if step.get("stop", True) else Jump(target=0)


def compile_steps(steps: Sequence[Mapping[str, Any]]) -> Program:
    """Compile the steps of one rail."""
    compiler = _Compiler()
    compiler.steps(steps, "steps")
    program = compiler.finish()
    return _without_null_jumps(program)


def _without_null_jumps(program: Program) -> Program:
    """Turn `stop: false` into a jump to the next step."""
    ops = [Jump(target=i + 1) if isinstance(op, Jump) and op.target == 0 else op for i, op in enumerate(program.ops)]
    return Program(ops=tuple(ops), paths=program.paths)


def digest(steps: Any) -> str:
    """Return a short hash of a rail's steps; the same steps give the same hash in every run."""
    text = json.dumps(steps, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
