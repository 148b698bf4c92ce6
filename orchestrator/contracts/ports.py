"""Doors between the parts: one method each where possible, never blocking, saying whether they accepted."""

from __future__ import annotations

from typing import Protocol

from orchestrator.contracts.commands import Command
from orchestrator.contracts.events import Event
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.views import View


class EventSink(Protocol):
    """Takes events from any thread."""

    def post(self, event: Event) -> bool:
        """Hand over `event`; False if it was refused (the refusal is counted)."""
        ...


class ViewSink(Protocol):
    """Takes views from the core thread; the window paints them."""

    def show(self, view: View) -> bool:
        """Hand over `view`; False if the window is gone or its queue is full."""
        ...


class CommandPort(Protocol):
    """Takes commands from any thread."""

    def submit(self, command: Command) -> bool:
        """Hand over `command`; False if it was refused."""
        ...


class Staleness(Protocol):
    """Tells whether an answer may still be heard, seen or acted on. Callable from any thread, without waiting."""

    def is_stale(self, generation_id: GenerationId) -> bool:
        """Whether `generation_id` was cancelled or has failed."""
        ...


class SpeechPort(Protocol):
    """The loudspeaker side, as the orchestrator sees it. Callable from any thread; never blocks."""

    def submit(self, intent: SpeechIntent) -> bool:
        """Queue `intent` by its behaviour; False if it was refused (an `intent:state` dropped is posted anyway)."""
        ...

    def prepare(self, intent: SpeechIntent) -> None:
        """Synthesise what may have to be said soon, so that it sounds at once when it is submitted.

        Nothing is queued, played, shown or reported; a text that is not submitted is forgotten.
        """
        ...

    def hold(self, generation_id: GenerationId) -> None:
        """Stop the sound of `generation_id` (fade) and keep what is unplayed; `output:cut` follows if it sounded.

        New intents of a held generation are accepted and wait.
        """
        ...

    def resume(self, generation_id: GenerationId) -> None:
        """Go on with a held generation from the start of the cut word (of its clause if < 1 s was left)."""
        ...

    def purge(self, generation_id: GenerationId, reason: str) -> None:
        """Stop and forget everything of `generation_id`; `output:state` stopped with its id acknowledges."""
        ...

    def set_muted(self, on: bool) -> None:
        """Mute or unmute the voice; muted speech is shown at reading pace and counts as heard then."""
        ...


class PageOpener(Protocol):
    """Shows a web page to the user."""

    async def open(self, url: str) -> bool:
        """Open the http or https address `url`; False if nothing could show it."""
        ...
