"""The actions that come with Mynah."""

from __future__ import annotations

import asyncio
import re
import webbrowser
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlsplit

from orchestrator.contracts.dialogue import Reminder
from orchestrator.flows.spoken import spoken
from orchestrator.tasks.actions.base import Action, ActionContext, ActionResult


def due_time(args: Mapping[str, Any], now: datetime) -> datetime:
    """Return when something is due: `at` (datetime), `in_s` (seconds), or `date` and `time`; raises `ValueError`."""
    if args.get("in_s") is not None:
        return now + timedelta(seconds=float(args["in_s"]))
    if args.get("at"):
        due = datetime.fromisoformat(str(args["at"]))
    else:
        day = date.fromisoformat(str(args["date"])) if args.get("date") else now.date()
        clock = time.fromisoformat(str(args["time"])) if args.get("time") else None
        if clock is None:
            raise ValueError("neither at, in_s nor time is given")
        due = datetime.combine(day, clock)
    if due.tzinfo is None:
        due = due.replace(tzinfo=now.tzinfo)
    if not args.get("date") and not args.get("at") and due <= now:
        due += timedelta(days=1)
    return due


_TIMER = re.compile(r"^\d.* (?:is|are) over$|^\d.*到了$")
"""What the flow `set_timer` has a timer say."""


def is_timer(text: str) -> bool:
    """Whether a reminder with this text is what a timer says."""
    return _TIMER.search(text) is not None


def timer_name(text: str, language: str | None) -> str:
    """Return what a timer with this text is called: by its length, as it was said."""
    length = re.sub(r" (?:is|are) over$|到了$", "", text)
    return f"{length}的计时器" if language == "zh" else f"a timer of {length}"


def _left(context: ActionContext, timer: Reminder) -> str:
    seconds = max(1, round((timer.due - context.now).total_seconds()))
    return spoken(seconds, "duration", language=context.language)


class SetReminder(Action):
    """Store a reminder: `text` and `at`, `in_s`, or `date` and `time`."""

    name = "action_set_reminder"
    arguments = ("text", "at", "in_s", "date", "time")
    can_undo = True

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Add it to the reminders; the value is its id."""
        due = due_time(args, context.now)
        reminder = await context.turn.reminders.add(text=str(args.get("text") or ""), due=due)
        return ActionResult(value={"id": reminder.id, "due": due.isoformat(timespec="seconds")})

    async def undo(self, context: ActionContext, args: Mapping[str, Any], value: Any) -> None:
        """Cancel it; one that has fired is gone already."""
        if isinstance(value, Mapping) and value.get("id"):
            await context.turn.reminders.cancel(str(value["id"]))

    def label(self, args: Mapping[str, Any], language: str | None) -> str:
        """Name the reminder, or the timer with its length."""
        text = str(args.get("text") or "")
        if args.get("in_s") and is_timer(text):
            length = spoken(float(args["in_s"]), "duration", language=language)
            return f"设置{length}的计时器" if language == "zh" else f"set a timer for {length}"
        return f"设置提醒「{text}」" if language == "zh" else f'set the reminder "{text}"'


class ListReminders(Action):
    """Say which reminders wait; with `timers` how long each timer still runs."""

    name = "action_list_reminders"
    arguments = ("timers",)
    effect = "read"

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Return one message with all of them (five at most are spoken)."""
        found = await context.turn.reminders.list()
        chinese = context.language == "zh"
        if args.get("timers"):
            return self._timers(context, [r for r in found if is_timer(r.text)], chinese=chinese)
        if not found:
            return ActionResult(messages=("没有待办的提醒。" if chinese else "There are no reminders.",), value=[])
        lines = []
        for reminder in list(found)[:5]:
            if is_timer(reminder.text):
                left = _left(context, reminder)
                name = timer_name(reminder.text, context.language)
                lines.append(f"{name}还剩{left}" if chinese else f"{name} with {left} left")
                continue
            due = reminder.due.astimezone(context.now.tzinfo) if context.now.tzinfo else reminder.due
            when = spoken(due, language=context.language, now=context.now)
            lines.append(f"{when}：{reminder.text}" if chinese else f"{reminder.text}, {when}")
        more = len(found) - len(lines)
        text = ("；" if chinese else "; ").join(lines)
        if more > 0:
            text += f"；还有{more}个" if chinese else f"; and {more} more"
        text = f"你的提醒：{text}。" if chinese else f"Your reminders: {text}."
        return ActionResult(messages=(text,), value=[{"id": r.id, "text": r.text} for r in found])


    @staticmethod
    def _timers(context: ActionContext, timers: Sequence[Reminder], *, chinese: bool) -> ActionResult:
        if not timers:
            said = "没有正在走的计时器。" if chinese else "There is no timer running."
            return ActionResult(messages=(said,), value=[])
        lengths = [_left(context, r) for r in timers]
        text = f"还剩{'；'.join(lengths)}。" if chinese else f"{', '.join(lengths)} left."
        return ActionResult(messages=(text,), value=[{"id": r.id, "text": r.text} for r in timers])


class Now(Action):
    """Tell the date and time; with `slot` it is stored there and nothing is said."""

    name = "action_now"
    arguments = ("slot",)
    effect = "read"

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Return the moment as the value."""
        value = context.now.strftime("%Y-%m-%dT%H:%M")
        if args.get("slot"):
            return ActionResult(slot_updates={str(args["slot"]): value}, value=value)
        clock = spoken(value[11:], language=context.language)
        # without a moment to compare with, the date is spoken in full
        day = spoken(value[:10], language=context.language)
        text = f"现在是{clock}，{day}。" if context.language == "zh" else f"It is {clock}, {day}."
        return ActionResult(messages=(text,), value=value)


class OpenUrl(Action):
    """Open `url` in the browser, after a yes."""

    name = "action_open_url"
    arguments = ("url",)
    needs_confirmation = True

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Open http and https addresses only."""
        url = str(args.get("url") or "")
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("only http and https addresses are opened")
        opened = await asyncio.to_thread(webbrowser.open, url)
        if not opened:
            raise OSError("no browser could be started")
        return ActionResult(value=url)

    def label(self, args: Mapping[str, Any], language: str | None) -> str:
        """Name the site."""
        host = urlsplit(str(args.get("url") or "")).hostname or "?"
        return f"打开{host}" if language == "zh" else f"open {host}"


def builtin_actions() -> list[Action]:
    """Return one of each."""
    # The companion's actions share their rules with the tools of a model, whose modules know this one.
    from orchestrator.tasks.actions.companion import companion_actions

    return [SetReminder(), ListReminders(), Now(), OpenUrl(), *companion_actions()]
