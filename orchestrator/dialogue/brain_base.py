"""What every part of a turn shares: the working state, what executor and rails see, applying commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.contracts.dialogue import TurnContext, TurnInput
from orchestrator.contracts.events import FlowCommanded, FlowSlotChanged, Payload
from orchestrator.dialogue.brain_report import TurnReport
from orchestrator.dialogue.rails_port import NoRailsTurn, RailsTurn
from orchestrator.flows.model import ActionStep
from orchestrator.flows.slot_values import shown
from orchestrator.flows.texts import language_of
from orchestrator.tasks.commands import Command, Dropped
from orchestrator.tasks.executor import Executor
from orchestrator.tasks.processor import Applied, Setting, apply
from orchestrator.tasks.settling import Spoken, keep_what_was_said
from orchestrator.tasks.state import State, Task

if TYPE_CHECKING:
    from orchestrator.dialogue.brain import FlowBrain


class TurnBase:
    """A turn on a copy of the brain's state. Lives on the core loop."""

    def __init__(self, brain: FlowBrain, turn: TurnContext, user: TurnInput) -> None:
        """Start from the brain's committed state."""
        self._brain = brain
        self._config = brain.config
        self._turn = turn
        self._user = user
        self._base = brain.state
        if brain.is_origin_due or not self._base.origin:
            # A stored count of tasks may be older than the last effect (a crash): a new origin keeps their keys apart.
            self._base.origin = str(turn.generation_id)
            brain.is_origin_due = False
        self._state = self._base.copy()
        self._state.turn += 1
        if user.kind != "silence":
            spoken_language = language_of(user.text, user.language) if user.text else user.language
            self._state.language = spoken_language or self._state.language
        self._messages: list[Spoken] = []
        self._executor: Executor | None = None
        self._effects = 0
        self._text = user.text
        self._last_said = ""
        self._is_offer_due = False
        self.report = TurnReport()
        self._rails: RailsTurn = NoRailsTurn()

    @property
    def turn(self) -> TurnContext:
        """The turn's context."""
        return self._turn

    @property
    def user(self) -> TurnInput:
        """The input."""
        return self._user

    @property
    def language(self) -> str | None:
        """The language to talk in."""
        return self._state.language

    @property
    def has_spoken(self) -> bool:
        """Whether anything was said in this turn."""
        return bool(self._messages)

    @property
    def state(self) -> State:
        """The working state."""
        return self._state

    def names(self, context: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return the names of conditions and texts."""
        world = dict(self._turn.world)
        told = world.get("user")
        return {
            "slots": {k: shown(self._config.slots.get(k), v) for k, v in self._state.values().items()},
            "context": dict(context or {}),
            "world": world,
            "vars": dict(self._rails.vars),
            "user": {"text": self._text, "language": self.language, **(told if isinstance(told, Mapping) else {})},
            "now": self._turn.now,
            "__language__": self.language,
        }

    def emit(self, payload: Payload) -> None:
        """Put a fact into the events file."""
        self._turn.emit(payload)

    def trace(self, text: str) -> None:
        """Note something for the author."""
        self.report.traces.append(text)

    def visited(self, flow: str, step: str, target: str | None) -> None:
        """Record a step for coverage."""
        self.report.visited.append((flow, step, target))

    def fail(self, part: str, message: str) -> None:
        """Mark the turn as failed with a spoken error."""
        self.report.error = f"{part}: {message}"

    def note_bot_intent(self, name: str) -> None:
        """Record a bot intent."""
        self.report.bot_intents.append(name)

    def note_user_intent(self, name: str) -> None:
        """Record the user intent."""
        self.report.user_intent = name

    def _setting(self) -> Setting:
        return Setting(
            config=self._config,
            now=self._turn.now,
            generation=str(self._turn.generation_id),
            language=self.language,
            names=self.names,
            label=self._done_label,
        )

    def _done_label(self, task: Task, place: str) -> str:
        """Name what a task did, in the language spoken now; as it was named then where the step is gone."""
        flow_id, _, step_id = place.partition("/")
        flow = self._config.flow(flow_id)
        step = flow.steps.get(step_id) if flow is not None else None
        action = self._brain.actions.get(step.action) if isinstance(step, ActionStep) else None
        args = task.done_args.get(place)
        if action is None or not isinstance(args, Mapping):
            return task.done.get(place, step_id)
        return str(action.label(args, self.language))

    def _apply(self, commands: tuple[Command, ...]) -> Applied:
        """Apply to a copy and swap: all or nothing."""
        copy = self._state.copy()
        before, self._state = self._state, copy
        try:
            applied = apply(copy, commands, self._setting())
        except BaseException:
            self._state = before
            raise
        if not applied.accepted:
            self._state = before
        self._note_dropped(tuple(applied.dropped))
        for command in applied.accepted:
            self.report.commands.append(command.to_json())
            self.emit(FlowCommanded(command=command.to_json(), accepted=True, by=command.by))
        for change in applied.changes:
            self.emit(
                FlowSlotChanged(
                    slot=change.slot, old=change.old, new=change.new, provenance=change.by, accepted=change.accepted
                )
            )
        return applied

    def _note_dropped(self, dropped: tuple[Dropped, ...]) -> None:
        for item in dropped:
            self.report.dropped.append(item.to_json())
            shown = item.command if isinstance(item.command, Mapping) else {"command": item.command}
            self.emit(FlowCommanded(command=shown, accepted=False, reason=item.reason, by="llm"))

    def _note_talk(self, command: Command) -> None:
        self.report.commands.append(command.to_json())
        self.emit(FlowCommanded(command=command.to_json(), accepted=True, by=command.by))

    async def _commit_said(self, applied: Applied) -> None:
        if any(change.accepted and change.by == "said" for change in applied.changes):
            await self.commit_effects()

    async def commit_effects(self) -> None:
        """Store now what must not wait: slots said, effects done."""
        kept = keep_what_was_said(self._base, self._state, at=self._turn.now.isoformat(), is_undone=False)
        await self._turn.commit_early(self._brain.pack(kept, self._brain.rails_state))
