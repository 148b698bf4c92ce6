"""The brain: rails, tasks and the persona behind one protocol, over one committed state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.clock import Clock, SystemClock
from orchestrator.contracts.dialogue import LlmRequest, TurnContext, TurnInput
from orchestrator.dialogue.brain_turn import FlowTurn
from orchestrator.dialogue.example_patterns import ExamplePatterns
from orchestrator.dialogue.matching import ExactMatcher
from orchestrator.dialogue.rails_port import ExampleMatcher, MatcherFactory, NoRails, RailsPort
from orchestrator.dialogue.understanding import Understander, open_question
from orchestrator.flows.model import CollectStep, Flow, FlowConfig
from orchestrator.flows.slot_values import coerce
from orchestrator.flows.texts import PLACEHOLDER
from orchestrator.tasks.actions.builtin import builtin_actions
from orchestrator.tasks.actions.registry import ActionRegistry
from orchestrator.tasks.state import SlotValue, State, SystemRun, Task, state_from_json

PersonaRequest = Callable[[TurnContext, TurnInput], LlmRequest]


class FlowBrain:
    """A `Brain` over a loaded configuration. Belongs to one event loop."""

    def __init__(
        self,
        config: FlowConfig,
        *,
        rails: RailsPort | None = None,
        actions: ActionRegistry | None = None,
        matcher: MatcherFactory | None = None,
        persona_request: PersonaRequest | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Take a configuration; `matcher` defaults to identical wording, `persona_request` None means no persona."""
        self.config = config
        self.rails: RailsPort = rails or NoRails()
        self.actions = actions or ActionRegistry(builtin_actions())
        self.persona_request = persona_request
        self.state = State()
        self.is_origin_due = False
        self.rails_state: Mapping[str, Any] = {}
        self.host_vars: dict[str, Any] = {}
        self.work_count = 0
        self._make_matcher: MatcherFactory = matcher or ExactMatcher
        self._matcher: ExampleMatcher | None = None
        self.patterns = ExamplePatterns(config)
        self._live: FlowTurn | None = None
        self._clock: Clock = clock or SystemClock()

    # --- Brain ------------------------------------------------------------------------------------------

    def begin(self, turn: TurnContext, user: TurnInput) -> FlowTurn:
        """Start a turn from the committed state."""
        self._live = FlowTurn(self, turn, user)
        return self._live

    def accepts_as_answer(self, text: str, language: str | None) -> bool:
        """Whether a running question takes `text` as its answer, or a rail that waits or is for safety these words."""
        # what a speculative turn made of the words is not so until it is confirmed
        live = None if self._live is None or self._live.turn.is_speculative else self._live
        if live.rails_accept(text) if live is not None else self.rails.accepts(self.rails_state, text):
            return True
        # a question that is being asked right now belongs to the turn that is not settled yet
        state = live.state if live is not None else self.state
        has_task = state.active is not None or state.finished is not None
        if state.pending is None and open_question(state, self.config) is None and not has_task:
            return False
        return Understander(self.config, state, self._clock.wall(), language or state.language).accepts(text)

    def expected_answer(self) -> str | None:
        """The type of the slot that is asked for; a question of the engine's own is answered by yes or no."""
        if self.state.pending is not None:
            return "boolean"
        question = open_question(self.state, self.config)
        slot = self.config.slots.get(question.slot) if question is not None else None
        return slot.type if slot is not None else None

    def silence_timeout_s(self) -> float | None:
        """After how much silence the open question is asked again; None without one."""
        question = open_question(self.state, self.config)
        return question.silence_timeout_s if question is not None else None

    def dump_state(self) -> Mapping[str, Any]:
        """Return the committed state."""
        return self.pack(self.state, self.rails_state)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take a stored state; what no longer exists is dropped or moved to the nearest valid step."""
        tasks = state.get("tasks")
        rails = state.get("rails")
        self.state = state_from_json(tasks if isinstance(tasks, Mapping) else {})
        self.is_origin_due = True
        self.rails_state = rails if isinstance(rails, Mapping) else {}
        repair(self.state, self.config)

    # --- beyond the protocol ----------------------------------------------------------------------------

    def reload(
        self, config: FlowConfig, *, rails: RailsPort | None = None, actions: ActionRegistry | None = None
    ) -> None:
        """Use a changed configuration; running conversations go on."""
        self.config = config
        if rails is not None:
            self.rails = rails
        if actions is not None:
            self.actions = actions
        self._matcher = None
        self.patterns = ExamplePatterns(config)
        repair(self.state, config)

    async def flow_matcher(self) -> ExampleMatcher:
        """Return the matcher over what users say to start flows."""
        if self._matcher is None:
            self._matcher = self._make_matcher(
                flow_examples(self.config), threshold=self.config.similarity_threshold, margin=self.config.margin,
                scale=self.config.similarity_scale,
            )  # fmt: skip
        return self._matcher

    def variables(self) -> dict[str, Any]:
        """Return the rail variables as committed."""
        found = self.rails_state.get("vars")
        return dict(found) if isinstance(found, Mapping) else {}

    def note_settled(self, turn: FlowTurn) -> None:
        """Hear that a turn is settled."""
        if self._live is turn:
            self._live = None

    def set_vars(self, values: Mapping[str, Any]) -> None:
        """Set rail variables before the next turn."""
        self.host_vars.update(values)

    def take_host_vars(self) -> dict[str, Any]:
        """Return and forget the variables set from outside."""
        taken, self.host_vars = self.host_vars, {}
        return taken

    def put_slots(self, values: Mapping[str, Any]) -> None:
        """Give slots values before the first turn."""
        for slot_id, value in values.items():
            slot = self.config.slots.get(slot_id)
            if slot is None:
                continue
            result = coerce(slot, value)
            if result.ok:
                self.state.slots[slot_id] = SlotValue(value=result.value)

    def pack(self, state: State, rails_state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the storable form of a state."""
        return {"tasks": state.to_json(), "rails": dict(rails_state)}

    def commit(self, state: State, rails_state: Mapping[str, Any]) -> dict[str, Any]:
        """Take a settled state as the committed one."""
        self.state = state
        self.rails_state = rails_state
        # the configuration may have changed while the turn ran
        repair(self.state, self.config)
        return self.pack(state, rails_state)


def flow_examples(config: FlowConfig) -> dict[str, Sequence[str]]:
    """Return what users say to start each flow: its examples, or its name and description."""
    found: dict[str, Sequence[str]] = {}
    for flow in config.user_flows().values():
        described = flow.description.all_raw() if flow.description is not None else ()
        spoken = [" ".join(PLACEHOLDER.sub(" ", e).split()) for e in flow.examples]
        examples = tuple(dict.fromkeys(e for e in spoken if e))
        found[flow.id] = examples or tuple(dict.fromkeys((*flow.name.all_raw(), *described)))
    return found


# --- repair ----------------------------------------------------------------------------------------------


def repair(state: State, config: FlowConfig) -> None:
    """Make a state fit a configuration, in place: no dangling flow, step or slot stays."""
    for home in (state.slots, *(t.slots for t in _all_tasks(state))):
        _repair_slots(home, config)
    state.paused = [t for t in state.paused if _repair_task(t, config)]
    if state.finished is not None and not _repair_task(state.finished, config):
        state.finished = None
    task = state.active
    if task is not None and not _repair_task(task, config):
        state.active = None
        state.system = None
        flow = config.flow("system_task_canceled")
        if flow is not None:
            context = {
                "canceled_flow_id": task.root,
                "canceled_flow_name": task.names.get(state.language or "en") or task.root.replace("_", " "),
                "reason": "gone",
            }
            state.queue.append(SystemRun(flow=flow.id, step=flow.start, context=context))
    if state.system is not None and not _has_step(config, state.system.flow, state.system.step):
        state.system = None
    state.queue = [r for r in state.queue if _has_step(config, r.flow, r.step)]
    pending = state.pending
    if pending is not None and any(
        config.flow(f) is None
        for f in (*(pending.get("flows") or ()), *([pending["flow"]] if "flow" in pending else []))
    ):
        state.pending = None


def _all_tasks(state: State) -> list[Task]:
    return [*(t for t in (state.active, state.finished) if t is not None), *state.paused]


def _repair_slots(home: dict[str, SlotValue], config: FlowConfig) -> None:
    for slot_id in list(home):
        slot = config.slots.get(slot_id)
        result = coerce(slot, home[slot_id].value) if slot is not None else None
        if result is None or not result.ok:
            del home[slot_id]
        else:
            home[slot_id].value = result.value


def _has_step(config: FlowConfig, flow_id: str, step_id: str) -> bool:
    flow = config.flow(flow_id)
    return flow is not None and step_id in flow.steps


def _repair_task(task: Task, config: FlowConfig) -> bool:
    """Move a task whose step is gone to the nearest valid one; False when its flow is gone."""
    if config.flow(task.root) is None:
        return False
    task.trail = [t for t in task.trail if _has_step(config, t[0], t[1])]
    if all(_has_step(config, flow, step) for flow, step in [*task.stack, [task.flow, task.step]]):
        return True
    task.open = task.answered = False
    if task.trail:
        flow_id, step_id, stack = task.trail[-1]
        if all(_has_step(config, f, s) for f, s in stack):
            task.flow, task.step, task.stack = flow_id, step_id, [list(s) for s in stack]
            return True
    root = config.flow(task.root)
    assert root is not None
    task.flow, task.stack = root.id, []
    task.step = _first_missing(task, root) or root.start
    return True


def _first_missing(task: Task, flow: Flow) -> str | None:
    """Return the first question of the flow whose slot has no value."""
    return next((s.id for s in flow.steps.values() if isinstance(s, CollectStep) and s.slot not in task.slots), None)
