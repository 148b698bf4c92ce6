"""What the brain needs from rails, what rails need from the brain, and the matcher both use.

One turn in order: `RailsPort.begin` → `screen_input` (input rails) → `run_always` → the task rules and typed answers of
the brain → `match` (embeddings, no call to find the intent) → flow starts, free answers → `decide` (a model finds the
intent; only where no task is configured) or `take_intent` (the plan call named one) → the persona. `settle` is called
exactly once, also when the turn was cancelled on the way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.contracts.dialogue import TurnContext, TurnHeard, TurnInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The best candidate for a text. `margin` is the distance to the best *other* candidate, None without one."""

    name: str
    score: float
    margin: float | None
    by: str = "embedding"


class ExampleMatcher(Protocol):
    """Finds which named group of examples a text belongs to."""

    async def match(self, text: str) -> Match | None:
        """Return the best group if it is above threshold and margin, else None."""
        ...

    async def nearest(self, text: str, count: int) -> Sequence[Match]:
        """Return the `count` best groups, best first, whatever their score."""
        ...


class MatcherFactory(Protocol):
    """Makes matchers: the exact one of tests, or the one of the embedding index."""

    def __call__(
        self,
        examples: Mapping[str, Sequence[str]],
        *,
        threshold: float | None = None,
        margin: float = 0.03,
        scale: str = "cosine",
    ) -> ExampleMatcher:
        """Build a matcher; a threshold of None is calibrated from the examples."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """How an action ended. `value` is what it returned; `error` says what went wrong (then `ok` is false)."""

    ok: bool
    value: Any = None
    error: str | None = None


class ActionFailed(Exception):  # noqa: N818 - names an outcome
    """An action failed, timed out or is not registered."""


class RailsHost(Protocol):
    """What rails may use in one turn. The brain implements it; everything goes through the turn's generation."""

    @property
    def turn(self) -> TurnContext:
        """The turn: model, clock, history, events file."""
        ...

    @property
    def user(self) -> TurnInput:
        """The input of the turn."""
        ...

    @property
    def language(self) -> str | None:
        """`zh` or `en`: the language to answer in."""
        ...

    def names(self) -> Mapping[str, Any]:
        """Return `slots`, `context`, `world`, `user` and `now` for conditions and templates; rails add `vars`."""
        ...

    async def say(
        self, text: str, *, bot_intent: str | None = None, source: str = "rail", interruptible: bool = True
    ) -> None:
        """Speak a finished text as one message; output rails are *not* run over it.

        What is not `interruptible` is neither ducked nor cut by the user's voice, which is answered after it.
        """
        ...

    async def speak(
        self,
        chunks: AsyncIterator[str],
        *,
        bot_intent: str | None = None,
        source: str = "rail",
        guard: Callable[[str], Awaitable[str | None]] | None = None,
        interruptible: bool = True,
    ) -> str:
        """Speak a text while it is generated; returns all of it."""
        ...

    async def run_action(
        self, name: str, args: Mapping[str, Any], *, key: str, timeout_s: float = 10.0
    ) -> ActionOutcome:
        """Run a registered action (its messages are spoken, its slot updates applied) and return how it ended.

        `key` tells this run from others of the same rail (rail, step, round); the idempotency key is made of it.
        `start_flow` with `{flow: …}` starts a task; its first question is asked when the rails are done.
        """
        ...

    def fail(self, part: str, message: str) -> None:
        """Mark the turn as failed with a spoken error (the spoken sentence itself goes through `say`)."""
        ...

    def note_bot_intent(self, name: str) -> None:
        """Record a bot intent for tests and the inspector."""
        ...

    def note_user_intent(self, name: str) -> None:
        """Record the user intent for tests and the inspector."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """What the input rails left of the user's text. `is_blocked`: the turn is over (a refusal may have been said)."""

    text: str
    is_blocked: bool = False


class RailsTurn(Protocol):
    """Rails in one turn, on a copy of their state."""

    @property
    def vars(self) -> Mapping[str, Any]:
        """The rail variables as they are now; also `vars` of the tasks' conditions and texts."""
        ...

    def set_vars(self, values: Mapping[str, Any]) -> None:
        """Set variables from outside (the host of a test, a stub that counts)."""
        ...

    def accepts(self, text: str) -> bool:
        """Whether a safety rail or a rail that waits now takes these very words, which are then no mere "mm-hm"."""
        ...

    async def screen_input(self, text: str) -> Screened:
        """Run the input rails over the user's text."""
        ...

    async def run_always(self, text: str) -> bool:
        """Let rails marked `always` answer; True if one did."""
        ...

    async def match(self, text: str) -> bool:
        """Let rails answer what is recognised without a model call; True if one did (or ended the turn)."""
        ...

    async def decide(self, text: str) -> bool:
        """Find the intent with the model (`user_intent` or `combined`) and answer; True if rails answered."""
        ...

    async def take_intent(self, intent: str, text: str) -> bool:
        """Answer an intent that was found elsewhere; True if rails answered."""
        ...

    async def handle_event(self, event_type: str, payload: Mapping[str, Any]) -> bool:
        """Give rails an event that is no speech; True if one answered."""
        ...

    async def guard(self, sentence: str) -> str | None:
        """Run the output rails of sentence scope; returns what to say ("" for nothing), None to block the rest."""
        ...

    def note_bot_text(self, text: str, source: str) -> None:
        """Hear what others (tasks, persona) said in this turn, for `vars.bot_message`."""
        ...

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Return the rails' state after the turn, JSON-able."""
        ...


class RailsPort(Protocol):
    """The rails of one configuration."""

    @property
    def has_user_intents(self) -> bool:
        """Whether there are user intents at all; without them the persona answers."""
        ...

    @property
    def has_output_rails(self) -> bool:
        """Whether model text must pass `guard`."""
        ...

    @property
    def reply_scope(self) -> bool:
        """Whether an output rail needs the whole reply, which turns streaming off."""
        ...

    def begin(self, state: Mapping[str, Any], host: RailsHost) -> RailsTurn:
        """Start a turn on a copy of `state` (empty for a new conversation; unknown parts are dropped)."""
        ...

    def accepts(self, state: Mapping[str, Any], text: str) -> bool:
        """Whether a safety rail, or a rail that waits in `state`, takes these very words."""
        ...

    def user_intents(self) -> Mapping[str, Sequence[str]]:
        """Return the intents with their examples, for the plan prompt."""
        ...


@dataclass(slots=True)
class NoRailsTurn:
    """Rails in a configuration without any; keeps variables."""

    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def vars(self) -> Mapping[str, Any]:
        """The variables set from outside."""
        return self.variables

    def set_vars(self, values: Mapping[str, Any]) -> None:
        """Set variables."""
        self.variables.update(values)

    def accepts(self, text: str) -> bool:
        """Take nothing."""
        return False

    async def screen_input(self, text: str) -> Screened:
        """Pass the text."""
        return Screened(text=text)

    async def run_always(self, text: str) -> bool:
        """Answer nothing."""
        return False

    async def match(self, text: str) -> bool:
        """Answer nothing."""
        return False

    async def decide(self, text: str) -> bool:
        """Answer nothing."""
        return False

    async def take_intent(self, intent: str, text: str) -> bool:
        """Answer nothing."""
        return False

    async def handle_event(self, event_type: str, payload: Mapping[str, Any]) -> bool:
        """Answer nothing."""
        return False

    async def guard(self, sentence: str) -> str | None:
        """Pass the sentence."""
        return sentence

    def note_bot_text(self, text: str, source: str) -> None:
        """Remember nothing."""

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Return the variables."""
        return {"vars": dict(self.variables)}


class NoRails:
    """A configuration without rails."""

    has_user_intents = False
    has_output_rails = False
    reply_scope = False

    def begin(self, state: Mapping[str, Any], host: RailsHost) -> NoRailsTurn:
        """Start a turn."""
        variables = state.get("vars")
        return NoRailsTurn(dict(variables) if isinstance(variables, Mapping) else {})

    def accepts(self, state: Mapping[str, Any], text: str) -> bool:
        """Take nothing."""
        return False

    def user_intents(self) -> Mapping[str, Sequence[str]]:
        """Return none."""
        return {}
