"""What a person, the window or the control channel asks of the running program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.contracts.events import ObjectRef
from orchestrator.contracts.ids import GenerationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Base of all commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendText(Command):
    """A typed line, handled like a spoken one. `via` is typed or control.

    `corrects` is the misheard line that this one puts right, None for a line of its own; `corrects_turn` the answer
    that was begun with it, where that is known.
    """

    text: str
    via: str = "typed"
    object: ObjectRef | None = None
    corrects: str | None = None
    corrects_turn: GenerationId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(Command):
    """Be silent now (button, key)."""

    by: str = "button"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushToTalk(Command):
    """Push-to-talk went down or up."""

    down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteMicrophone(Command):
    """Close or open the microphone."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteVoice(Command):
    """Silence or restore the character's voice; subtitles stay."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsleep(Command):
    """Let the character sleep, so that only its name (or this command) wakes it, or wake it."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify(Command):
    """Say something when there is room for it."""

    id: str
    text: str
    urgent: bool = False
    expires_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateContext(Command):
    """News about the world."""

    source: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostExternalEvent(Command):
    """An event that rails may wait for."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusObject(Command):
    """Bring a thing into focus."""

    object: ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload(Command):
    """Read the configuration again.

    `on_done` is told, in the core's thread, when it is over: None if all is in force, else what is wrong, one fault a
    line; the former configuration stays then. While an answer is being made the reload waits for its end.
    """

    on_done: Callable[[str | None], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession(Command):
    """Begin a new conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quit(Command):
    """End the program."""
