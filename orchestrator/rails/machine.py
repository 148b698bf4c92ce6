"""The rail state machine: `(state, event) → (state, next step)`. Pure: no model, no clock, no output.

An instance is one run of a rail. What is kept of it is a head per subrail level, a status and who interrupted it;
ended instances are dropped, so a step costs the same at any length of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from orchestrator.rails.program import (
    ANY_INTENT,
    Actionable,
    Bot,
    Branch,
    Call,
    Do,
    End,
    Extract,
    If,
    Jump,
    Op,
    Say,
    SetVars,
    Stop,
    WaitEvent,
    WaitUser,
)
from orchestrator.rails.state import (
    BY_FALLBACK,
    FALLBACK_PRIORITY,
    UNMOVED_FACTOR,
    EvalFailed,
    Evaluator,
    EventKind,
    Failure,
    Instance,
    MachineState,
    NextStep,
    Rail,
    RailEvent,
    RailSet,
    RailStatus,
    Transition,
    compile_lines,
)

Frames: TypeAlias = tuple[tuple[str, int], ...]
_ALWAYS_BONUS = 1_000_000.0
_MAX_SLIDE = 2_000


def matches(op: Op, event: RailEvent, uid: int | None = None) -> int | None:
    """Return 0 when `op` is answered by `event`, the arm's target for a branch, None when it is not."""
    match op:
        case WaitUser():
            return 0 if event.kind is EventKind.USER and op.intent in (ANY_INTENT, event.name) else None
        case WaitEvent():
            hit = event.kind is EventKind.EXTERNAL and event.name == op.type
            return 0 if hit and all(event.payload.get(k) == v for k, v in op.match.items()) else None
        case Branch():
            return next((arm.target for arm in op.arms if matches(arm.wait, event) is not None), None)
        case Bot():
            return 0 if event.kind is EventKind.BOT and event.name == op.intent else None
        case Say():
            own = uid is None or event.uid in (None, uid)
            return 0 if event.kind is EventKind.SAY and own and event.name in ("", op.text) else None
        case Do():
            own = uid is None or event.uid in (None, uid)
            return 0 if event.kind is EventKind.DONE and own and event.name == op.action else None
        case Extract():
            own = uid is None or event.uid in (None, uid)
            return 0 if event.kind is EventKind.EXTRACTED and own and event.name == op.var else None
        case Stop():
            return 0 if event.kind is EventKind.STOPPED else None
        case _:
            return None


def _is_waiting(op: Op | None) -> bool:
    return isinstance(op, (WaitUser, WaitEvent, Branch))


def _waits_for_user(op: Op | None) -> bool:
    return isinstance(op, WaitUser) or (isinstance(op, Branch) and any(isinstance(a.wait, WaitUser) for a in op.arms))


class _Run:
    """One transition in the making."""

    def __init__(self, rails: RailSet, state: MachineState, event: RailEvent, evaluator: Evaluator) -> None:
        self.rails = rails
        self.event = event
        self.evaluator = evaluator
        self.vars: dict[str, Any] = dict(state.vars)
        self.next_uid = state.next_uid
        self.instances: dict[int, Instance] = {i.uid: i for i in state.instances}
        self.before = dict(self.instances)
        self.best: NextStep | None = None
        self.best_rank: tuple[float, int, int] | None = None
        self.moved: list[int] = []
        self.work = 0

    # --- sliding -------------------------------------------------------------------------------------

    def op_at(self, instance: Instance) -> Op | None:
        if not instance.frames:
            return None
        rail_id, head = instance.frames[-1]
        program = self.rails.program(instance, rail_id)
        return program.ops[head] if program is not None and 0 <= head < len(program.ops) else None

    def slide(self, instance: Instance, variables: dict[str, Any]) -> Instance:
        """Run logic until a step that waits or acts; an instance without frames has ended."""
        frames = list(instance.frames)
        for _ in range(_MAX_SLIDE):
            self.work += 1
            if not frames:
                return replace(instance, frames=())
            rail_id, head = frames[-1]
            program = self.rails.program(instance, rail_id)
            if program is None or head >= len(program.ops):
                frames.pop()
                continue
            op = program.ops[head]
            if isinstance(op, End):
                return replace(instance, frames=())
            if not isinstance(op, (SetVars, If, Jump, Call)):
                return replace(instance, frames=tuple(frames))
            problem = self._logic(op, frames, variables)
            if problem is not None:
                branch = self.error_frames(instance, tuple(frames))
                if branch is None:
                    return replace(instance, frames=tuple(frames), error=problem)
                frames = list(branch)
        return replace(instance, frames=tuple(frames), error="too many logic steps")

    def _logic(
        self, op: SetVars | If | Jump | Call, frames: list[tuple[str, int]], variables: dict[str, Any]
    ) -> str | None:
        rail_id, head = frames[-1]
        match op:
            case Jump():
                frames[-1] = (rail_id, op.target)
            case If():
                holds = self.evaluator.condition(op.condition, variables)
                frames[-1] = (rail_id, head + 1 if holds else op.otherwise)
            case SetVars():
                try:
                    for name, source in op.values.items():
                        variables[name] = self.evaluator.value(source, variables)
                except EvalFailed as error:
                    return str(error)
                frames[-1] = (rail_id, head + 1)
            case Call():
                if op.rail not in self.rails.by_id:
                    return f"there is no subrail {op.rail}"
                if any(name == op.rail for name, _ in frames):
                    return f"subrail {op.rail} calls itself"
                frames[-1] = (rail_id, head + 1)
                frames.append((op.rail, 0))
        return None

    def error_frames(self, instance: Instance, frames: Frames) -> Frames | None:
        """Return the frames of the error branch: of the failed step, else of the call that led to it."""
        for depth in range(len(frames), 0, -1):
            rail_id, head = frames[depth - 1]
            program = self.rails.program(instance, rail_id)
            at = head if depth == len(frames) else head - 1
            op = program.ops[at] if program is not None and 0 <= at < len(program.ops) else None
            target = getattr(op, "on_error", None)
            if target is not None:
                return (*frames[: depth - 1], (rail_id, target))
        return None

    # --- the parts of a transition -------------------------------------------------------------------

    def put(self, instance: Instance) -> None:
        self.instances[instance.uid] = instance

    def propose(self, instance: Instance, factor: float = 1.0) -> None:
        """Let the instance's step compete for being the next one."""
        op = self.op_at(instance)
        step: Actionable | Failure
        if instance.error is not None:
            step = Failure(reason=instance.error)
        elif isinstance(op, (Bot, Say, Do, Extract, Stop)):
            step = op
        else:
            return
        rail = self.rails.rail_of(instance)
        priority = rail.priority * factor + (_ALWAYS_BONUS if rail.always else 0.0)
        rank = (-priority, rail.index, instance.uid)
        if self.best_rank is None or rank < self.best_rank:
            self.best_rank = rank
            self.best = NextStep(uid=instance.uid, rail=instance.rail, step=step, priority=priority)

    def advance(self, instance: Instance, target: int) -> None:
        rail_id, head = instance.frames[-1]
        self._keep_result(self.op_at(instance))
        frames = (*instance.frames[:-1], (rail_id, target or head + 1))
        self._settle_moved(replace(instance, frames=frames))

    def _settle_moved(self, instance: Instance) -> None:
        moved = self.slide(instance, self.vars)
        if not moved.frames:
            moved = replace(moved, status=RailStatus.COMPLETED)
        self.moved.append(moved.uid)
        self.put(moved)
        if moved.status is RailStatus.ACTIVE:
            self.propose(moved)

    def _keep_result(self, op: Op | None) -> None:
        if isinstance(op, Do) and op.save_to:
            self.vars[op.save_to] = self.event.value
        elif isinstance(op, Extract):
            self.vars[op.var] = self.event.value

    def fail(self, instance: Instance) -> None:
        """Take the error branch of the step that failed, or abort."""
        branch = self.error_frames(instance, instance.frames)
        if branch is None:
            self.put(replace(instance, status=RailStatus.ABORTED, error=None))
            return
        self._settle_moved(replace(instance, frames=branch, error=None))

    def move_existing(self, instance: Instance) -> None:
        event = self.event
        op = self.op_at(instance)
        self.work += 1
        if event.kind is EventKind.FAILED:
            if instance.uid == event.uid or (event.uid is None and isinstance(op, Do) and op.action == event.name):
                self.fail(instance)
            else:
                self._not_matched(instance, op)
            return
        is_deaf = event.is_safety and not self.rails.rail_of(instance).always
        target = None
        if op is not None and instance.error is None and not is_deaf:
            target = matches(op, event, instance.uid)
        if target is not None:
            self.advance(instance, target)
        elif event.kind is EventKind.EXTERNAL or (_is_waiting(op) and not _waits_for_user(op)):
            # An event from outside concerns only who waits for it, and who waits for one is not disturbed by talk.
            self.propose(instance, UNMOVED_FACTOR)
        else:
            self._not_matched(instance, op)

    def _not_matched(self, instance: Instance, op: Op | None) -> None:
        if _is_waiting(op):
            if not _waits_for_user(op):
                return
            if self.rails.rail_of(instance).interruptible:
                self.put(replace(instance, status=RailStatus.INTERRUPTED, interrupted_by=None))
                return
        self.put(replace(instance, status=RailStatus.ABORTED, aborted_by=self._acting_extension(instance)))

    def _acting_extension(self, instance: Instance) -> int | None:
        actor = self.instances.get(self.event.uid) if self.event.uid is not None else None
        if actor is None or actor.uid == instance.uid or self.rails.rail_of(actor).kind != "extension":
            return None
        return actor.uid

    def start(self, rail: Rail) -> None:
        if not rail.allow_multiple and self._is_running(rail):
            return
        variables = dict(self.vars)
        fresh = Instance(uid=self.next_uid, rail=rail.id, frames=((rail.id, 0),))
        leading = self.slide(fresh, variables)
        problem: Instance | None = None
        while leading.error is not None and leading.frames:
            # Look past the failed logic step: the error is only worth speaking of if the rail would have started.
            problem = problem or leading
            rail_id, head = leading.frames[-1]
            past = (*leading.frames[:-1], (rail_id, head + 1))
            leading = self.slide(replace(leading, error=None, frames=past), variables)
        op = self.op_at(leading)
        target = matches(op, self.event) if op is not None else None
        if target is None:
            return
        self.next_uid += 1
        self.vars = variables
        if problem is not None:
            self.moved.append(problem.uid)
            self.put(problem)
            self.propose(problem)
            return
        self.advance(leading, target)

    def _is_running(self, rail: Rail) -> bool:
        return any(
            i.rail == rail.id and (i.status is not RailStatus.ABORTED or i.aborted_by is not None)
            for i in self.instances.values()
        )

    def reactivate(self) -> None:
        """Give back what a completed extension had aborted."""
        for instance in list(self.instances.values()):
            if instance.status is not RailStatus.ABORTED or instance.aborted_by is None:
                continue
            owner = self.instances.get(instance.aborted_by)
            if owner is not None and owner.status is RailStatus.COMPLETED:
                back = replace(instance, status=RailStatus.ACTIVE, aborted_by=None)
                self.put(back)
                self.propose(back, UNMOVED_FACTOR)
            elif owner is None or owner.status is RailStatus.ABORTED:
                self.put(replace(instance, aborted_by=None))

    def name_interrupters(self) -> None:
        """Say for each rail interrupted by this event which rail did it."""
        event = self.event
        if event.uid is not None and event.uid in self.moved:
            by = event.uid
        elif self.best is not None:
            by = self.best.uid
        else:
            by = self.moved[0] if self.moved else BY_FALLBACK
        for instance in self.instances.values():
            if instance.status is RailStatus.INTERRUPTED and instance.interrupted_by is None:
                self.put(replace(instance, interrupted_by=by if by != instance.uid else BY_FALLBACK))

    def come_back(self) -> None:
        """Resume what completed rails had interrupted, abort what aborted ones had, until nothing changes."""
        changed = True
        while changed:
            changed = False
            for instance in list(self.instances.values()):
                if instance.status is not RailStatus.INTERRUPTED or instance.interrupted_by == BY_FALLBACK:
                    continue
                by = self.instances.get(instance.interrupted_by or BY_FALLBACK)
                if by is None or by.status is RailStatus.COMPLETED:
                    self.put(replace(instance, status=RailStatus.ACTIVE, interrupted_by=None))
                elif by.status is RailStatus.ABORTED and by.aborted_by is None:
                    self.put(replace(instance, status=RailStatus.ABORTED, interrupted_by=None))
                else:
                    continue
                changed = True

    def changes(self) -> Iterator[Instance]:
        for uid, instance in self.instances.items():
            if self.before.get(uid) != instance:
                yield instance

    def result(self) -> Transition:
        changed = tuple(self.changes())
        kept = tuple(
            i
            for i in self.instances.values()
            if i.status in (RailStatus.ACTIVE, RailStatus.INTERRUPTED) or i.aborted_by is not None
        )
        state = MachineState(instances=kept, vars=self.vars, next_uid=self.next_uid)
        return Transition(state=state, next=self.best, changed=changed, moved=bool(self.moved), work=self.work)


def step(rails: RailSet, state: MachineState, event: RailEvent, evaluator: Evaluator) -> Transition:
    """Process one event. Returns the new state and the strictly best next step; the argument is left as it was."""
    if event.kind in (EventKind.USER, EventKind.EXTERNAL):
        state = resume_after_fallback(state)
    run = _Run(rails, state, event, evaluator)
    for instance in list(run.instances.values()):
        if instance.status is RailStatus.ACTIVE:
            run.move_existing(instance)
    for rail in rails.candidates(event):
        if rail.always or not event.is_safety:
            run.start(rail)
    run.reactivate()
    run.name_interrupters()
    run.come_back()
    return run.result()


def resume_after_fallback(state: MachineState) -> MachineState:
    """Bring back the rails that no rail had interrupted: the turn that did is over."""
    if not any(i.interrupted_by == BY_FALLBACK for i in state.instances):
        return state
    instances = tuple(_active(i) if i.interrupted_by == BY_FALLBACK else i for i in state.instances)
    return replace(state, instances=instances)


def _active(instance: Instance) -> Instance:
    return replace(instance, status=RailStatus.ACTIVE, interrupted_by=None)


def end_turn(rails: RailSet, state: MachineState) -> MachineState:
    """Close a turn: steps nobody will do any more abort their rail, rails interrupted by nobody come back."""
    probe = _Run(rails, state, RailEvent(kind=EventKind.STOPPED), _NoEvaluator())
    for instance in list(probe.instances.values()):
        if instance.status is RailStatus.ACTIVE and not _is_waiting(probe.op_at(instance)):
            probe.put(replace(instance, status=RailStatus.ABORTED))
    probe.come_back()
    return resume_after_fallback(probe.result().state)


class _NoEvaluator:
    def condition(self, source: Any, variables: Mapping[str, Any]) -> bool:
        return False

    def value(self, source: Any, variables: Mapping[str, Any]) -> Any:
        raise EvalFailed("nothing is evaluated here")


def start_lines(state: MachineState, lines: Sequence[str]) -> tuple[MachineState, NextStep]:
    """Start a rail the model wrote (`multi_step`); its first line is a `bot` line."""
    uid = state.next_uid
    name = f"model:{uid}"
    instance = Instance(uid=uid, rail=name, frames=((name, 0),), lines=tuple(lines))
    first = compile_lines(lines).ops[0]
    assert isinstance(first, Bot)
    new = replace(state, instances=(*state.instances, instance), next_uid=uid + 1)
    return new, NextStep(uid=uid, rail=name, step=first, priority=FALLBACK_PRIORITY)


def enter(rails: RailSet, rail_id: str, variables: Mapping[str, Any], evaluator: Evaluator) -> Transition:
    """Start a rail by name, whatever its first step: the rails run on what is said."""
    run = _Run(rails, MachineState(vars=variables), RailEvent(kind=EventKind.EXTERNAL), evaluator)
    run.next_uid = 2
    run._settle_moved(Instance(uid=1, rail=rail_id, frames=((rail_id, 0),)))
    return run.result()


def awaited_intents(rails: RailSet, state: MachineState) -> frozenset[str]:
    """Return the user intents running rails wait for by name."""
    probe = _Run(rails, resume_after_fallback(state), RailEvent(kind=EventKind.USER), _NoEvaluator())
    found: set[str] = set()
    for instance in probe.instances.values():
        op = probe.op_at(instance) if instance.status is RailStatus.ACTIVE else None
        waits = [arm.wait for arm in op.arms] if isinstance(op, Branch) else [op]
        found |= {wait.intent for wait in waits if isinstance(wait, WaitUser)}
    return frozenset(found - {ANY_INTENT})


def accepts(rails: RailSet, state: MachineState, event: RailEvent) -> bool:
    """Whether a running rail waits for `event`; starts are not looked at."""
    probe = _Run(rails, resume_after_fallback(state), event, _NoEvaluator())
    for instance in probe.instances.values():
        op = probe.op_at(instance) if instance.status is RailStatus.ACTIVE else None
        if op is not None and matches(op, event, instance.uid) is not None:
            return True
    return False
