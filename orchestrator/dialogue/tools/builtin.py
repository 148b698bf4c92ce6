"""The tools that come with Mynah: time, reminders, facts, web pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from orchestrator.contracts.dialogue import Reminder
from orchestrator.contracts.events import MemoryWrite
from orchestrator.dialogue.tools.confirmations import Confirmations
from orchestrator.dialogue.tools.spec import Tool, ToolAnswer, ToolRefused, ToolScope, arguments_schema
from orchestrator.flows.spoken import spoken

_TWIN_WITHIN_S = 15.0
"""How far apart two calls may fall due that mean one reminder: a model that calls twice does so within seconds."""
_MOST_LISTED = 20
_LONGEST_DAYS = 3660
_FACT_CHARS = 300


def _words(scope: ToolScope, english: str, chinese: str) -> str:
    return chinese if scope.language == "zh" else english


def _when(scope: ToolScope, due: datetime) -> str:
    local = due.astimezone(scope.now().tzinfo)
    return spoken(local, language=scope.language, now=scope.now())


def _listed(scope: ToolScope, reminder: Reminder) -> dict[str, str]:
    due = reminder.due.astimezone(scope.now().tzinfo)
    return {"id": reminder.id, "text": reminder.text, "due": due.isoformat(timespec="seconds")}


async def current_time(scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
    """Tell date, time and day of the week."""
    now = scope.now()
    value = {"now": now.isoformat(timespec="seconds"), "weekday": now.strftime("%A")}
    words = _when(scope, now.replace(second=0))
    return ToolAnswer(value=value, spoken=_words(scope, f"It is {words}.", f"现在是{words}。"))


def due_of(args: Mapping[str, Any], now: datetime) -> datetime:
    """Return when a reminder is due. Raises `ToolRefused` for what is no future moment."""
    minutes, at = args.get("in_minutes"), args.get("at")
    if (minutes is None) == (at is None):
        raise ToolRefused("give either at or in_minutes")
    if minutes is not None:
        return now + timedelta(minutes=float(minutes))
    try:
        due = datetime.fromisoformat(str(at))
    except ValueError as error:
        raise ToolRefused(f"at: {at!r} is no ISO date and time such as 2026-12-01T08:00") from error
    if due.tzinfo is None:
        due = due.replace(tzinfo=now.tzinfo)
    if due <= now:
        raise ToolRefused(f"{at} is in the past; now it is {now.isoformat(timespec='minutes')}")
    if due - now > timedelta(days=_LONGEST_DAYS):
        raise ToolRefused(f"{at} is more than ten years away")
    return due


async def set_reminder(scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
    """Store a reminder; one with the same words and moment is there already and stays the only one."""
    due = due_of(args, scope.now())
    text = str(args["text"]).strip()
    waiting = await scope.reminders.list()
    twin = next(
        (r for r in waiting if r.text == text and abs((r.due - due).total_seconds()) < _TWIN_WITHIN_S),
        None,
    )
    stored = twin or await scope.reminders.add(text=text, due=due)
    words = _when(scope, due)
    said = _words(scope, f"All right: {text}, {words}.", f"好，{words}提醒你：{text}。")
    return ToolAnswer(value=_listed(scope, stored), spoken=said)


async def list_reminders(scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
    """Return the waiting reminders, soonest first."""
    found = list(await scope.reminders.list())[:_MOST_LISTED]
    lines = [f"{r.text}, {_when(scope, r.due)}" for r in found[:5]]
    if not lines:
        said = _words(scope, "There are no reminders.", "没有待办的提醒。")
    else:
        said = _words(scope, f"Your reminders: {'; '.join(lines)}.", f"你的提醒：{'；'.join(lines)}。")
    return ToolAnswer(value=[_listed(scope, r) for r in found], spoken=said)


async def cancel_reminder(scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
    """Cancel a waiting reminder by the id that `list_reminders` gives."""
    reminder_id = str(args["id"])
    found = next((r for r in await scope.reminders.list() if r.id == reminder_id), None)
    if found is None or not await scope.reminders.cancel(reminder_id):
        raise ToolRefused(f"no reminder with the id {reminder_id!r} is waiting; call list_reminders for the ids")
    said = _words(scope, f"I cancelled the reminder: {found.text}.", f"提醒取消了：{found.text}。")
    return ToolAnswer(value={"cancelled": reminder_id}, spoken=said)


async def remember(scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
    """Hand a fact to the memory; it is stored in the background."""
    fact = " ".join(str(args["fact"]).split())
    if not fact:
        raise ToolRefused("fact: is empty")
    if not scope.post(MemoryWrite(text=fact)):
        raise ToolRefused("the memory takes nothing at the moment")
    return ToolAnswer(value={"remembered": fact}, spoken=_words(scope, "I'll remember that.", "我记住了。"))


def page_url(url: str) -> str:
    """Return a web address in full. Raises `ToolRefused` for anything but http and https."""
    text = url.strip()
    if "://" not in text and not text.lower().startswith(("javascript:", "data:", "file:", "mailto:")):
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if (
        not host
        or parts.scheme not in ("http", "https")
        or any(char.isspace() or not char.isprintable() for char in text)
    ):
        raise ToolRefused(f"{url[:80]!r} is no http or https address")
    if parts.username is not None or parts.password is not None:
        raise ToolRefused("addresses with a user name are not opened")
    return text


def open_page_tool(confirmations: Confirmations) -> Tool:
    """Return the tool that asks the user whether a page may be opened; the user's yes opens it."""

    async def open_page(scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
        url = page_url(str(args["url"]))
        question = confirmations.ask(url, asked_by=scope.generation_id, language=scope.language)
        return ToolAnswer(value={"status": "the user is being asked", "url": url}, spoken=question, ends_answer=True)

    return Tool(
        name="open_page",
        description="Open a web page in the user's browser. The user is asked first and may refuse.",
        parameters=arguments_schema(("url",), url={"type": "string", "minLength": 3, "maxLength": 2000}),
        run=open_page,
    )


def builtin_tools(confirmations: Confirmations | None) -> list[Tool]:
    """Return all tools; the page opener only where something can open pages."""
    tools = [
        Tool(
            name="current_time",
            description="The current local date, time and day of the week.",
            parameters=arguments_schema(),
            run=current_time,
        ),
        Tool(
            name="set_reminder",
            description="Remind the user of something later. Give at or in_minutes, not both.",
            parameters=arguments_schema(
                ("text",),
                text={"type": "string", "minLength": 1, "maxLength": 300, "description": "what to remind of"},
                at={"type": "string", "description": "local time, ISO 8601, such as 2026-12-01T08:00"},
                in_minutes={"type": "number", "exclusiveMinimum": 0, "maximum": _LONGEST_DAYS * 1440},
            ),
            run=set_reminder,
            effect="write",
        ),
        Tool(
            name="list_reminders",
            description="The reminders that are waiting, with their ids.",
            parameters=arguments_schema(),
            run=list_reminders,
        ),
        Tool(
            name="cancel_reminder",
            description="Cancel a waiting reminder by its id.",
            parameters=arguments_schema(("id",), id={"type": "string", "minLength": 1, "maxLength": 80}),
            run=cancel_reminder,
            effect="write",
        ),
        Tool(
            name="remember",
            description="Remember a lasting fact about the user, as one short sentence.",
            parameters=arguments_schema(("fact",), fact={"type": "string", "minLength": 1, "maxLength": _FACT_CHARS}),
            run=remember,
            effect="write",
        ),
    ]
    if confirmations is not None:
        tools.append(open_page_tool(confirmations))
    return tools
