"""The one way between the core and the widgets: views come in, commands and painted facts go out."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from PySide6.QtCore import QObject, Qt, Signal, SignalInstance

from orchestrator.clock import Clock
from orchestrator.contracts.commands import Command
from orchestrator.contracts.events import Event, Payload
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.ports import CommandPort, EventSink, Staleness
from orchestrator.contracts.views import (
    CharacterTextView,
    DeviceView,
    ExpressionView,
    GenerationEndedView,
    MisheardView,
    MuteView,
    NoticeView,
    SpeechStoppedView,
    SpeechTimelineView,
    StateView,
    UserTextView,
    View,
)

logger = logging.getLogger(__name__)

_DRAIN_BUDGET_S = 0.008
"""Longest stretch of view handling before the loop gets its turn: half a frame at 60 fps."""

_ANSWERING_STATES = frozenset({"thinking", "speaking"})


def _adds_to_picture(view: View) -> TypeGuard[CharacterTextView | SpeechTimelineView | ExpressionView | StateView]:
    """Whether `view` shows something of an answer.

    The others take something away (a stop, an end, "interrupted") and are painted even when the answer is stale:
    they are how its subtitle gets its cut mark.
    """
    if isinstance(view, StateView):
        return view.state in _ANSWERING_STATES
    return isinstance(view, (CharacterTextView, SpeechTimelineView, ExpressionView))


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeCounters:
    """What went through the bridge since the start."""

    shown: int = 0
    coalesced: int = 0
    stale: int = 0
    overflow: int = 0
    refused_commands: int = 0
    refused_events: int = 0


class Bridge(QObject):
    """Adapter between the core and the widgets; implements `ViewSink`.

    Views wait in a bounded queue that belongs to this object and are handed to the widgets on the GUI thread
    by typed signals. A full queue refuses the new view (`overflow`); a live user text replaces the previous one
    of the same utterance (`coalesced`). The outer doors may be attached after the window is open.
    """

    state_changed = Signal(object)
    user_text_changed = Signal(object)
    character_text_added = Signal(object)
    speech_started = Signal(object)
    speech_stopped = Signal(object)
    generation_ended = Signal(object)
    expression_changed = Signal(object)
    notice_raised = Signal(object)
    device_changed = Signal(object)
    mute_changed = Signal(object)
    misheard = Signal(object)
    command_refused = Signal(object)

    _woken = Signal()
    _called = Signal(object)

    def __init__(
        self,
        clock: Clock,
        *,
        commands: CommandPort | None = None,
        events: EventSink | None = None,
        staleness: Staleness | None = None,
        level_db: Callable[[], float | None] | None = None,
        on_stop_now: Callable[[], None] | None = None,
        capacity: int = 1024,
        parent: QObject | None = None,
    ) -> None:
        """Use `clock` for every time the window needs.

        `level_db` returns the microphone's level in dBFS, or none while it is not open; it must not wait.
        `on_stop_now` silences the player directly, before the core hears of the stop.
        """
        super().__init__(parent)
        self.clock = clock
        self._commands = commands
        self._events = events
        self._staleness = staleness
        self._level_db = level_db
        self._on_stop_now = on_stop_now
        self._capacity = capacity
        self._lock = threading.Lock()
        self._inbox: deque[View] = deque()
        self._is_wake_pending = False
        self._is_closed = False
        self._counters = BridgeCounters()
        self._signals: dict[type[View], SignalInstance] = {
            StateView: self.state_changed,
            UserTextView: self.user_text_changed,
            CharacterTextView: self.character_text_added,
            SpeechTimelineView: self.speech_started,
            SpeechStoppedView: self.speech_stopped,
            GenerationEndedView: self.generation_ended,
            ExpressionView: self.expression_changed,
            NoticeView: self.notice_raised,
            DeviceView: self.device_changed,
            MuteView: self.mute_changed,
            MisheardView: self.misheard,
        }
        self._woken.connect(self._on_woken, Qt.ConnectionType.QueuedConnection)
        self._called.connect(self._on_called, Qt.ConnectionType.QueuedConnection)

    def attach(
        self,
        *,
        commands: CommandPort | None = None,
        events: EventSink | None = None,
        staleness: Staleness | None = None,
        level_db: Callable[[], float | None] | None = None,
        on_stop_now: Callable[[], None] | None = None,
    ) -> None:
        """Connect doors that were not there at the start; none leaves a door as it is. GUI thread."""
        self._commands = commands or self._commands
        self._events = events or self._events
        self._staleness = staleness or self._staleness
        self._level_db = level_db or self._level_db
        self._on_stop_now = on_stop_now or self._on_stop_now

    # --- from the core ---------------------------------------------------------------------------------

    def show(self, view: View) -> bool:
        """Hand over `view` from any thread; False if the window is gone or the queue is full."""
        with self._lock:
            if self._is_closed:
                return False
            if self._coalesce(view):
                return True
            if len(self._inbox) >= self._capacity:
                self._count("overflow")
                return False
            self._inbox.append(view)
            if self._is_wake_pending:
                return True
            self._is_wake_pending = True
        self._woken.emit()
        return True

    def call(self, function: Callable[[], None]) -> bool:
        """Run `function` on the GUI thread soon; callable from any thread, does not wait. False when closed."""
        if self._is_closed:
            return False
        self._called.emit(function)
        return True

    def close(self) -> None:
        """Refuse everything from now on and forget what waits."""
        with self._lock:
            self._is_closed = True
            self._inbox.clear()

    def is_stale(self, generation_id: GenerationId | None) -> bool:
        """Whether nothing of this answer may be painted any more; an answer without an id never is."""
        if generation_id is None or self._staleness is None:
            return False
        return self._staleness.is_stale(generation_id)

    # --- to the core -----------------------------------------------------------------------------------

    def submit(self, command: Command) -> bool:
        """Forward `command`; False, counted and signalled, when nobody takes it."""
        accepted = self._commands is not None and self._commands.submit(command)
        if not accepted:
            with self._lock:
                self._count("refused_commands")
            self.command_refused.emit(command)
        return accepted

    def stop_now(self) -> None:
        """Silence the player at once, without the detour through the core."""
        if self._on_stop_now is not None:
            self._on_stop_now()

    def report_painted(
        self,
        payload: Payload,
        *,
        utterance_id: UtteranceId | None = None,
        generation_id: GenerationId | None = None,
        intent_id: IntentId | None = None,
    ) -> None:
        """Tell the event sink what is on the screen now."""
        if self._events is None:
            return
        event = Event(
            payload=payload,
            source="window",
            utterance_id=utterance_id,
            generation_id=generation_id,
            intent_id=intent_id,
        )
        if not self._events.post(event):
            with self._lock:
                self._count("refused_events")

    def level_db(self) -> float | None:
        """Microphone level in dBFS, or none while it is not open."""
        return self._level_db() if self._level_db is not None else None

    def counters(self) -> BridgeCounters:
        """Return what was counted so far."""
        with self._lock:
            return self._counters

    # --- inside ----------------------------------------------------------------------------------------

    def _count(self, name: str) -> None:
        values: Mapping[str, Any] = {name: getattr(self._counters, name) + 1}
        self._counters = replace(self._counters, **values)

    def _coalesce(self, view: View) -> bool:
        if not isinstance(view, UserTextView) or not self._inbox:
            return False
        last = self._inbox[-1]
        if not isinstance(last, UserTextView) or last.final or last.utterance_id != view.utterance_id:
            return False
        self._inbox[-1] = view
        self._count("coalesced")
        return True

    def _on_woken(self) -> None:
        deadline_s = self.clock.monotonic_s() + _DRAIN_BUDGET_S
        while True:
            with self._lock:
                if not self._inbox:
                    self._is_wake_pending = False
                    return
                view = self._inbox.popleft()
            self._deliver(view)
            if self.clock.monotonic_s() >= deadline_s:
                break
        self._woken.emit()

    def _deliver(self, view: View) -> None:
        if _adds_to_picture(view) and self.is_stale(view.generation_id):
            with self._lock:
                self._count("stale")
            return
        signal = self._signals.get(type(view))
        if signal is None:
            logger.warning("no widget paints %s", type(view).__name__)
            return
        with self._lock:
            self._count("shown")
        signal.emit(view)

    def _on_called(self, function: Callable[[], None]) -> None:
        function()
