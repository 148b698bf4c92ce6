"""Reminders that survive restarts and fire through the notification lane."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from datetime import datetime

from orchestrator.bus.bus import Bus
from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Reminder
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import Event, NotifyRequested
from orchestrator.store import records
from orchestrator.store.database import Database

log = logging.getLogger(__name__)

_LONGEST_SLEEP_S = 60.0
"""The wall clock may jump (sleep, time zone), so a far reminder is looked at again every minute."""
_STALE_AFTER_S = 24 * 3600.0


class ReminderClock:
    """Posts a notification when a stored reminder is due. Lives on the core loop.

    Reminders that fell due while the program was not running fire at start, if they are less than a day old.
    """

    def __init__(self, *, database: Database, bus: Bus, clock: Clock) -> None:
        """Begin with `start`."""
        self._database = database
        self._bus = bus
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._posted: set[str] = set()
        self._unmarked: set[str] = set()

    def store_for(self, scope: str) -> StoredReminders:
        """Return the `Reminders` of one turn; `scope` makes its ids unique."""
        return StoredReminders(self._database, self)

    def start(self) -> None:
        """Look at what is due, and from then on whenever the next one is."""
        self.look_again()

    def stop(self) -> None:
        """Fire nothing more."""
        if self._timer is not None:
            self._timer.cancel()

    def look_again(self) -> None:
        """Post what is due now and set the timer for the next one."""
        task = asyncio.get_running_loop().create_task(self._look(), name="reminders")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def note_spoken(self, reminder_id: str) -> None:
        """Mark a reminder as fired once it was said."""
        if reminder_id not in self._posted:
            return
        task = asyncio.get_running_loop().create_task(self._mark(reminder_id), name="reminder-fired")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _mark(self, reminder_id: str) -> None:
        """Note in the store that one was said; one that can't be noted stays in mind and is noted at a later look."""
        try:
            await self._set_fired(reminder_id)
        except PartFailed as error:
            log.warning("a reminder can't be marked as said: %s", error.code)
            self._unmarked.add(reminder_id)
            return
        self._unmarked.discard(reminder_id)
        self._posted.discard(reminder_id)

    async def _set_fired(self, reminder_id: str) -> None:
        await self._database.transact(lambda db: records.set_reminder_state(db, reminder_id, "fired"))

    async def _look(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for reminder_id in tuple(self._unmarked):
            await self._mark(reminder_id)
        try:
            waiting = await self._database.transact(records.waiting_reminders)
        except PartFailed as error:
            log.warning("the reminders can't be read: %s", error.code)
            waiting = []
        now = self._clock.wall()
        next_s = _LONGEST_SLEEP_S
        for reminder in waiting:
            if reminder.id in self._posted:
                continue
            left_s = (reminder.due - now).total_seconds()
            if left_s > 0:
                next_s = min(next_s, left_s)
                continue
            if left_s < -_STALE_AFTER_S:
                self._posted.add(reminder.id)
                await self._mark(reminder.id)
                continue
            self._posted.add(reminder.id)
            self._bus.post(
                Event(payload=NotifyRequested(id=reminder.id, text=reminder.text, urgent=False), source="reminders")
            )
        self._timer = asyncio.get_running_loop().call_later(max(0.01, next_s), self.look_again)


class StoredReminders:
    """The `Reminders` of `contracts.dialogue` on the store."""

    def __init__(self, database: Database, clock: ReminderClock) -> None:
        """Write to `database`; `clock` learns of new ones."""
        self._database = database
        self._clock = clock

    async def add(self, *, text: str, due: datetime) -> Reminder:
        """Store a reminder."""
        reminder = Reminder(id=f"r-{uuid.uuid4().hex[:10]}", text=text, due=due)
        stored = await self._database.transact(lambda db: records.add_reminder(db, reminder, effect_key=None))
        self._clock.look_again()
        return stored

    async def list(self) -> Sequence[Reminder]:
        """Return the waiting ones, soonest first."""
        return await self._database.transact(records.waiting_reminders)

    async def cancel(self, reminder_id: str) -> bool:
        """Cancel one; False if it was not waiting."""
        done = await self._database.transact(lambda db: records.set_reminder_state(db, reminder_id, "cancelled"))
        self._clock.look_again()
        return done
