"""Puts the parts of the thinking side together: bus, generations, dialogue, notifications, store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.bus.bus import Bus
from orchestrator.bus.envelope import Envelope
from orchestrator.bus.event_log import EventLog
from orchestrator.clock import Clock
from orchestrator.context.sources import ContextSource, ContextWatch
from orchestrator.contracts.commands import (
    Command,
    FocusObject,
    NewSession,
    Notify,
    PostExternalEvent,
    Reload,
    SendText,
    SetAsleep,
    Stop,
    UpdateContext,
)
from orchestrator.contracts.dialogue import Brain, Llm, Message, TurnInput
from orchestrator.contracts.errors import MynahError, PartFailed
from orchestrator.contracts.events import (
    AppError,
    ContextUpdated,
    DeviceStateChanged,
    Event,
    ExternalEvent,
    InputInterrupt,
    InputUser,
    MemoryWrite,
    NotifyRequested,
    ObjectFocused,
    Payload,
)
from orchestrator.contracts.ids import GenerationId, IdFactory
from orchestrator.contracts.lanes import InterruptReason
from orchestrator.contracts.ports import PageOpener, SpeechPort, ViewSink
from orchestrator.contracts.views import DeviceView, NoticeView, StateView
from orchestrator.contracts.wellformed import mend
from orchestrator.dialogue.attention import AttentionSettings
from orchestrator.dialogue.conversation import Conversation
from orchestrator.dialogue.heard import HeardLedger
from orchestrator.dialogue.history import History
from orchestrator.dialogue.thinking import Cue, Thinking
from orchestrator.dialogue.tool_results import ToolResults
from orchestrator.dialogue.tools.builtin import builtin_tools
from orchestrator.dialogue.tools.confirmations import Confirmations, ConfirmingBrain
from orchestrator.dialogue.tools.registry import ToolRegistry
from orchestrator.dialogue.tools.runner import ToolBox
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.dialogue.turn_work import TurnPorts
from orchestrator.generation import Generations
from orchestrator.llm.reply_text import ReplyText
from orchestrator.notify.gate import NotificationGate
from orchestrator.notify.reminders import ReminderClock
from orchestrator.policy_file import Policy
from orchestrator.reloading import Reloading
from orchestrator.store import records
from orchestrator.store.database import Database

log = logging.getLogger(__name__)

_DAMAGED = "store_damaged"
_TOLD_AGAIN_AFTER_S = 600.0
"""On a disk that is nearly full some things can be stored and others not; that is not told each time."""
_MEMORY_TASK = "memory"
_MEMORY_LIMIT_S = 0.3
"""How long the end of the program waits for facts that are being stored."""


class LlmHost(Protocol):
    """The model side, as the core needs it."""

    async def open(self) -> None:
        """Begin starting what there is to start; returns without waiting for a model to load."""
        ...

    async def close(self) -> None:
        """Stop it in bounded time."""
        ...

    def for_turn(self, generation_id: GenerationId, emit: Callable[[Payload], None]) -> Llm:
        """Return the model for one answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreParts:
    """What the composition root hands to the core.

    `remake_brain` reads the configuration again, for a reload, and `load_policy` afterwards gives the policy of it; if
    either raises, nothing has changed.

    `thinking_cue` returns what is said in a language when an answer takes long, None for nothing.
    `may_speculate` lets answers begin before the end of the user's turn is certain; `on_expected` hears, after every
    answer, which type of answer the open question wants (None: there is none). `fault_words` gives what is said
    of a fault of the store, by its code, in the user's language; "" says nothing.
    """

    clock: Clock
    ids: IdFactory
    event_log: EventLog
    database: Database
    speech: SpeechPort
    views: ViewSink
    llm: LlmHost
    make_brain: Callable[[], Brain]
    remake_brain: Callable[[], Brain]
    make_pipe: Callable[[], ReplyText]
    policy: Policy
    apology: Callable[[str | None, str | None], str]
    names: tuple[str, ...] = ()
    greeting: str | None = None
    session_idle_s: float = 1800.0
    load_policy: Callable[[], Policy] | None = None
    page_opener: PageOpener | None = None
    context_sources: Sequence[ContextSource] = ()
    warm_brain: Callable[[Brain], Awaitable[None]] | None = None
    may_speculate: bool = True
    thinking_cue: Cue = lambda language: None
    attention_window_s: float | None = None
    fault_words: Callable[[str], str] = lambda code: ""
    on_expected: Callable[[str | None], None] = lambda expected: None


class Core:
    """The thinking side. Everything but the constructor belongs to the loop it is opened on."""

    def __init__(self, parts: CoreParts, bus: Bus, generations: Generations) -> None:
        """Wire the parts around a bus that audio may already post to."""
        self._parts = parts
        self.bus = bus
        self.generations = generations
        self._world: dict[str, Any] = {}
        self._facts: tuple[str, ...] = ()
        self._brain: Brain | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._session_timer: asyncio.TimerHandle | None = None
        self.reloading = Reloading(
            is_busy=lambda: self.turns.is_settling, read=self._read_again, report=self._report_reload
        )
        self.ledger = HeardLedger()
        self._store_failure_told_s: float | None = None
        self.history = History(parts.database, parts.clock, on_failure=self._on_store_failure)
        self._reminders = ReminderClock(database=parts.database, bus=bus, clock=parts.clock)
        self.results = ToolResults(bus=bus, database=parts.database, clock=parts.clock, ids=parts.ids)
        self._context = ContextWatch(parts.context_sources, post=lambda payload: self._post(payload, "context"))
        self._confirmations = (
            Confirmations(opener=parts.page_opener, clock=parts.clock, generations=generations)
            if parts.page_opener is not None
            else None
        )
        tools = ToolBox(
            registry=ToolRegistry(builtin_tools(self._confirmations)),
            results=self.results,
            clock=parts.clock,
            post=lambda payload: self._post(payload, "tools"),
        )
        self.turns = TurnLoop(
            TurnPorts(
                clock=parts.clock,
                ids=parts.ids,
                generations=generations,
                ledger=self.ledger,
                history=self.history,
                database=parts.database,
                speech=parts.speech,
                views=parts.views,
                brain=self._present_brain,
                llm_for=parts.llm.for_turn,
                results=self.results,
                remember=lambda text: self._post(MemoryWrite(text=text), "memory"),
                tools=tools,
                page_opener=parts.page_opener,
                reminders_for=self._reminders.store_for,
                make_pipe=parts.make_pipe,
                trace=bus.trace,
                world=lambda: self._world,
                facts=lambda: self._facts,
                apology=parts.apology,
            ),
            parts.ids.session(),
            self._on_change,
        )
        self.conversation = Conversation(
            bus=bus,
            clock=parts.clock,
            generations=generations,
            ledger=self.ledger,
            turns=self.turns,
            speech=parts.speech,
            views=parts.views,
            brain=self._present_brain,
            book=parts.policy.book(parts.names),
            thinking=Thinking(
                turns=self.turns, speech=parts.speech, views=parts.views, ids=parts.ids, cue=parts.thinking_cue
            ),
            times=parts.policy.times,
            may_speculate=self._may_speculate,
            attention=AttentionSettings(window_s=parts.attention_window_s, names=parts.names),
        )
        self._gate = NotificationGate(
            bus=bus,
            clock=parts.clock,
            turns=self.turns,
            conversation=self.conversation,
            on_spoken=self._reminders.note_spoken,
        )
        bus.set_policy(parts.policy.table)
        bus.subscribe(ContextUpdated, self._on_context)
        bus.subscribe(ExternalEvent, self._on_external)
        bus.subscribe(ObjectFocused, self._on_object)
        bus.subscribe(MemoryWrite, self._on_memory)
        bus.subscribe(AppError, self._on_error)
        bus.subscribe(DeviceStateChanged, self._on_device)

    # --- life -------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Prepare and begin."""
        await self.prepare()
        self.begin()

    async def prepare(self) -> None:
        """Load the stored conversation and start the model; nothing is dispatched yet.

        Raises `InputError` for a model that can't be used.
        """
        parts = self._parts
        self._brain = parts.make_brain()
        state = await parts.database.transact(records.load_state)
        if state is not None:
            self._brain.load_state(state)
        self._facts = tuple(await parts.database.transact(records.facts))
        await self.history.open_session(self.turns.session_id)
        await parts.llm.open()

    def begin(self) -> None:
        """Dispatch from now on, beginning with what was posted meanwhile."""
        parts = self._parts
        if parts.database.moved_aside is not None:
            self._report_damage(parts.database.moved_aside.name)
        self.bus.attach(asyncio.get_running_loop())
        self._reminders.start()
        self._context.start()
        self.conversation.refresh()
        if parts.warm_brain is not None and self._brain is not None:
            self._spawn(parts.warm_brain(self._brain), "warm-brain")

    def _report_damage(self, file: str) -> None:
        """Show and say that what was stored is gone, reminders too: the user has to set them again."""
        message = f"The stored conversations, reminders and facts were damaged and moved to “{file}”."
        self._post(AppError(code=_DAMAGED, part="store", recoverable=True, message=message), "store")
        self._say_fault(_DAMAGED)

    def _on_store_failure(self, error: MynahError) -> None:
        """Show and say, once in a while, that nothing is stored; the conversation goes on."""
        now_s = self._parts.clock.monotonic_s()
        if self._store_failure_told_s is not None and now_s < self._store_failure_told_s + _TOLD_AGAIN_AFTER_S:
            return
        self._store_failure_told_s = now_s
        log.warning("nothing can be stored: %s", error.code)
        message = f"Nothing can be stored, the conversation goes on: {error.message}"
        self._post(AppError(code=error.code, part="store", recoverable=True, message=message), "store")
        self._say_fault(error.code)

    def _say_fault(self, code: str) -> None:
        words = self._parts.fault_words(code)
        if words:
            self._post(NotifyRequested(id=code, text=words, urgent=False), "store")

    async def close(self) -> None:
        """Cancel what is going on, store it, and stop the model; in bounded time."""
        self.reloading.close()
        self.conversation.close()
        self.bus.drain()
        self._reminders.stop()
        await self._context.stop()
        if self._session_timer is not None:
            self._session_timer.cancel()
        self._gate.close()
        await self.turns.shut_down()
        await self._parts.llm.close()
        self.bus.drain()
        await self.results.close()
        memories = [task for task in self._tasks if task.get_name() == _MEMORY_TASK]
        if memories:
            await asyncio.wait(memories, timeout=_MEMORY_LIMIT_S)
        for task in list(self._tasks):
            task.cancel()

    def greet(self) -> None:
        """Say the persona's greeting, if there is one."""
        greeting = self._parts.greeting
        if not greeting:
            return

        async def script(turn: CoreTurn) -> None:
            await turn.reply.say(Message(text=greeting, source="persona"))

        self.turns.start(TurnInput(kind="event", event_type="start"), script=script)

    # --- commands ---------------------------------------------------------------------------------------

    def handle(self, command: Command) -> None:
        """Carry out what the window or the control channel asks; text that nobody could store is mended first."""
        command = mend(command)
        match command:
            case SendText():
                self._post(
                    InputUser(
                        text=command.text,
                        via=command.via,
                        object=command.object,
                        corrects=command.corrects,
                        corrects_turn=command.corrects_turn,
                    ),
                    "control" if command.via == "control" else "window",
                )
            case Stop():
                self.bus.post(
                    Event(
                        payload=InputInterrupt(reason=InterruptReason.USER_STOP, by=command.by),
                        source="window",
                        session_id=self.turns.session_id,
                        target_generation_id=self.turns.active.generation_id if self.turns.active is not None else None,
                        interrupt_reason=InterruptReason.USER_STOP,
                    )
                )
            case Notify():
                now_s = self._parts.clock.monotonic_s()
                self.bus.post(
                    Event(
                        payload=NotifyRequested(id=command.id, text=command.text, urgent=command.urgent),
                        source="control",
                        session_id=self.turns.session_id,
                        expires_at_s=now_s + command.expires_s if command.expires_s is not None else None,
                    )
                )
            case UpdateContext():
                self._post(ContextUpdated(origin=command.source, values=command.values), "control")
            case PostExternalEvent():
                self._post(ExternalEvent(name=command.type, data=command.payload), "control")
            case FocusObject():
                self._post(ObjectFocused(object=command.object), "control")
            case Reload():
                self.reloading.ask(command.on_done)
            case SetAsleep():
                self.conversation.attention.set_asleep(command.on, because="command")
            case NewSession():
                self._spawn(self._new_session(), "new-session")
            case _:
                log.warning("no one takes the command %s", type(command).__name__)

    def _read_again(self) -> None:
        parts = self._parts
        brain = parts.remake_brain()
        if self._brain is not None:
            brain.load_state(self._brain.dump_state())
        policy = parts.load_policy() if parts.load_policy is not None else None
        self._brain = brain
        if parts.warm_brain is not None:
            self._spawn(parts.warm_brain(brain), "warm-brain")
        if policy is not None:
            self.bus.set_policy(policy.table)
            self.conversation.set_phrases(policy.book(parts.names), policy.times)

    def _report_reload(self, error: MynahError) -> None:
        failed = AppError(code="reload_failed", part=error.part, recoverable=True, message=error.message)
        self._post(failed, "core")

    # --- handlers ---------------------------------------------------------------------------------------

    def _present_brain(self) -> Brain:
        if self._brain is None:
            raise RuntimeError("the core is not open")
        return self._brain if self._confirmations is None else ConfirmingBrain(self._brain, self._confirmations)

    def _may_speculate(self) -> bool:
        """An open confirmation is closed by any answer that begins, so none may begin that could be thrown away."""
        return self._parts.may_speculate and (self._confirmations is None or not self._confirmations.is_open)

    def _on_change(self) -> None:
        self.conversation.refresh()
        if self.turns.active is None and not self.turns.is_settling and self._brain is not None:
            self._parts.on_expected(self._present_brain().expected_answer())
        self.reloading.retry()
        if self._session_timer is not None:
            self._session_timer.cancel()
            self._session_timer = None
        if self.turns.active is None and self._parts.session_idle_s > 0:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
            self._session_timer = loop.call_later(
                self._parts.session_idle_s, lambda: self._spawn(self._new_session(), "idle-session")
            )

    async def _new_session(self) -> None:
        if self.turns.active is not None:
            self.turns.cancel(self.turns.active, InterruptReason.TOPIC_CHANGE)
        self.turns.session_id = self._parts.ids.session()
        await self.history.open_session(self.turns.session_id)

    def _on_context(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        if isinstance(payload, ContextUpdated):
            self._world[payload.origin] = dict(payload.values)

    def _on_external(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        if isinstance(payload, ExternalEvent) and self.turns.active is None:
            self.turns.start(
                TurnInput(kind="event", event_type=payload.name, event_payload=dict(payload.data)),
                on_end=self.conversation.after_notification,
            )

    def _on_object(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        if isinstance(payload, ObjectFocused) and self.turns.active is None:
            self.turns.start(TurnInput(kind="user", object=payload.object), on_end=self.conversation.after_notification)

    def _on_memory(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        if isinstance(payload, MemoryWrite):
            self._spawn(self._remember(payload.text), _MEMORY_TASK)

    async def _remember(self, text: str) -> None:
        now = self._parts.clock.wall()
        try:
            await self._parts.database.transact(lambda db: records.add_fact(db, text, now))
            self._facts = tuple(await self._parts.database.transact(records.facts))
        except PartFailed as error:
            self._on_store_failure(error)

    def _on_error(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        if isinstance(payload, AppError):
            self._notice(payload.code, payload.message, severity="warning" if payload.recoverable else "error")

    def _on_device(self, envelope: Envelope) -> None:
        payload = envelope.event.payload
        if isinstance(payload, DeviceStateChanged):
            self._parts.views.show(
                DeviceView(
                    direction=payload.direction, device=payload.device, state=payload.state, reason=payload.reason
                )
            )

    # --- small things -----------------------------------------------------------------------------------

    @property
    def world(self) -> Mapping[str, Any]:
        """Newest context values by source."""
        return self._world

    def show_state(self, state: str) -> None:
        """Tell the window a state of the program that is not one of the conversation (starting, error)."""
        self._parts.views.show(StateView(state=state))

    def _notice(self, code: str, text: str, *, severity: str = "warning") -> None:
        self._parts.views.show(NoticeView(code=code, text=text, severity=severity))

    def _post(self, payload: Payload, source: str) -> bool:
        return self.bus.post(Event(payload=payload, source=source, session_id=self.turns.session_id))

    def _spawn(self, work: Any, name: str) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
