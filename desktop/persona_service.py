"""The character of the window: what it is now, one from a card, and the way back to the one that ships."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from desktop.character_card import CharacterCard, read_card
from desktop.flow_files import FlowFiles
from desktop.flow_folders import FlowFolders
from desktop.work_queue import WorkQueue
from orchestrator.contracts.errors import InputError, MynahError
from orchestrator.llm.persona import Persona, load_persona_layers

PERSONA_FILE = "persona.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaState:
    """What holds now. `is_own`: the user's layer has a persona; `code` and `message` say what went wrong."""

    persona: Persona | None = None
    is_own: bool = False
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRead:
    """A card, or why there is none."""

    card: CharacterCard | None = None
    code: str = ""
    message: str = ""


class PersonaService:
    """Reads and writes the user's `persona.yml` on a thread of its own; callbacks come from there.

    `on_changed` is called after a change, so that the program reads its configuration again.
    """

    def __init__(self, folders: FlowFolders, on_changed: Callable[[], None]) -> None:
        """Touch nothing yet."""
        self._folders = folders
        self._on_changed = on_changed
        self._work = WorkQueue("persona")

    def close(self) -> None:
        """End the worker."""
        self._work.close()

    def find(self, on_done: Callable[[PersonaState], None]) -> None:
        """Look up what holds."""
        self._work.add(lambda: on_done(self._state()))

    def read(self, path: Path, on_done: Callable[[CardRead], None]) -> None:
        """Read a character card; nothing is taken over."""

        def work() -> None:
            try:
                found = CardRead(card=read_card(path))
            except InputError as error:
                found = CardRead(code=error.code, message=error.message)
            on_done(found)

        self._work.add(work)

    def take(self, card: CharacterCard, on_done: Callable[[PersonaState], None]) -> None:
        """Make the card's character the user's; a former persona stays as `persona.yml.bak`."""

        def work() -> None:
            files = FlowFiles(self._folders)
            # Another part of the layer may be faulty; that is no reason to keep the old character.
            files.save(PERSONA_FILE, card.persona_text, stamp=files.stamp(PERSONA_FILE), force=True)

        self._do(work, on_done)

    def go_back(self, on_done: Callable[[PersonaState], None]) -> None:
        """Return to the character that ships; the user's stays as `persona.yml.bak`."""

        def work() -> None:
            path = self._folders.user / PERSONA_FILE
            if path.is_file():
                path.replace(path.with_name(PERSONA_FILE + ".bak"))

        self._do(work, on_done)

    def _do(self, change: Callable[[], None], on_done: Callable[[PersonaState], None]) -> None:
        def work() -> None:
            try:
                change()
            except MynahError as error:
                on_done(self._failed(error.code, error.message))
                return
            except OSError as error:
                on_done(self._failed("flow_unwritable", f"{PERSONA_FILE} can't be written: {error.strerror}"))
                return
            self._on_changed()
            on_done(self._state())

        self._work.add(work)

    def _failed(self, code: str, message: str) -> PersonaState:
        state = self._state()
        return PersonaState(persona=state.persona, is_own=state.is_own, code=code, message=message)

    def _state(self) -> PersonaState:
        own = self._folders.user / PERSONA_FILE
        shipped = self._folders.shipped / PERSONA_FILE
        try:
            return PersonaState(persona=load_persona_layers([shipped, own]), is_own=own.is_file())
        except InputError as error:
            first = error.message.splitlines()[0]
            try:
                return PersonaState(
                    persona=load_persona_layers([shipped]), is_own=own.is_file(), code=error.code, message=first
                )
            except InputError:
                return PersonaState(is_own=own.is_file(), code=error.code, message=first)
