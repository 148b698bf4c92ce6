"""What one answer consists of while it is made, and what the turn loop needs from around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Brain, Llm, PendingTurn, Reminders, TurnInput
from orchestrator.contracts.events import Event, Payload
from orchestrator.contracts.ids import GenerationId, IdFactory
from orchestrator.contracts.ports import PageOpener, SpeechPort, ViewSink
from orchestrator.dialogue.effects import TurnEffects
from orchestrator.dialogue.heard import HeardLedger
from orchestrator.dialogue.history import History
from orchestrator.dialogue.reply import SpeechReply
from orchestrator.dialogue.tool_results import ToolResults
from orchestrator.dialogue.tools.runner import ToolBox
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.generation import Generation, Generations
from orchestrator.llm.reply_text import ReplyText
from orchestrator.store.database import Database


class Script(Protocol):
    """Speaks something without the brain: the unheard rest, the last answer, a notification, an apology."""

    async def __call__(self, turn: CoreTurn) -> None:
        """Speak it."""
        ...


@dataclass(slots=True)
class TurnWork:
    """What belongs to one generation while it lives.

    `kept` and `early_state` are what a speculative one would have told and stored; `storing` stores the user's words.
    `is_cut_short`: the model broke off; what it said until then is an answer that was interrupted.
    `replaces` is the misheard turn that this one is in place of; `before` the dialogue state it began with.
    """

    generation: Generation
    user: TurnInput
    script: Script | None
    reply: SpeechReply
    effects: TurnEffects
    pending: PendingTurn | None = None
    run_is_over: bool = False
    failed_because: str | None = None
    is_cut_short: bool = False
    is_joined: bool = False
    on_end: Callable[[Generation], None] | None = None
    kept: list[Event] = field(default_factory=list)
    early_state: Mapping[str, Any] | None = None
    storing: asyncio.Task[None] | None = None
    replaces: GenerationId | None = None
    before: Mapping[str, Any] | None = None

    def outcome_of(self, end: str) -> str:
        """Return how the answer counts when it ends as `end`: completed or cancelled."""
        return "failed" if self.failed_because is not None else end


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPorts:
    """What the turn loop needs from around it."""

    clock: Clock
    ids: IdFactory
    generations: Generations
    ledger: HeardLedger
    history: History
    database: Database
    speech: SpeechPort
    views: ViewSink
    brain: Callable[[], Brain]
    llm_for: Callable[[GenerationId, Callable[[Payload], None]], Llm]
    results: ToolResults
    reminders_for: Callable[[str], Reminders]
    make_pipe: Callable[[], ReplyText]
    trace: Callable[[Event], None]
    world: Callable[[], Mapping[str, Any]]
    facts: Callable[[], tuple[str, ...]]
    apology: Callable[[str | None, str | None], str]
    remember: Callable[[str], bool]
    tools: ToolBox | None = None
    page_opener: PageOpener | None = None
