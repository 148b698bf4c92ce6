"""Actions for what tools do with a model, so that the same works by voice without one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any
from urllib.parse import urlsplit

from orchestrator.contracts.dialogue import Reminder
from orchestrator.dialogue.tools.builtin import page_url
from orchestrator.dialogue.tools.spec import ToolRefused
from orchestrator.flows.model import Slot
from orchestrator.flows.spoken import spoken
from orchestrator.tasks.actions.base import Action, ActionContext, ActionResult
from orchestrator.tasks.actions.builtin import is_timer, timer_name
from orchestrator.tasks.extraction.extract import extract
from orchestrator.tasks.extraction.places import means_all, place_named

_MOST_SPOKEN = 5
_SAME_MINUTE_S = 60.0
_SMALL_WORDS = frozenset(
    ("a an the my me i of to for in on at about and or that this it one please reminder reminders timer").split()  # noqa: SIM905
)
_SMALL_ZH = re.compile(r"提醒|闹钟|那个|这个|一下|[的了我把请要给你]")
_CJK = re.compile(r"[\u3400-\u9fff]")


def _say(context: ActionContext, english: str, chinese: str) -> str:
    return chinese if context.language == "zh" else english


def likeness(wanted: str, text: str) -> float:
    """Return from 0 to 1 how much of what the user named is in a reminder's text."""
    if _CJK.search(wanted):
        bare, whole = (_SMALL_ZH.sub("", part) for part in (wanted, text))
        if not bare:
            return 0.0
        match = SequenceMatcher(a=bare, b=whole, autojunk=False).find_longest_match()
        return match.size / len(bare) if match.size >= min(2, len(bare)) else 0.0
    words = {word for word in re.findall(r"[\w']+", wanted.casefold()) if word not in _SMALL_WORDS}
    found = set(re.findall(r"[\w']+", text.casefold()))
    return len(words & found) / len(words) if words else 0.0


def choose(reminders: Sequence[Reminder], *, text: str, at: datetime | None = None) -> list[Reminder]:
    """Return the reminders that are meant: those at the named minute, those most like the named text; else all."""
    found = list(reminders)
    if at is not None:
        found = [r for r in found if abs((r.due - at).total_seconds()) < _SAME_MINUTE_S]
    if text.strip() and not means_all(text):
        scored = [(likeness(text, r.text), r) for r in found]
        best = max((score for score, _ in scored), default=0.0)
        found = [r for score, r in scored if best > 0 and score == best]
    return found


class CancelReminder(Action):
    """Cancel a waiting reminder: by `id`, by words of its `text`, by its time `at`; all of them with `all`.

    `timers` says whether only timers count (true) or only what is none (false).

    With several that fit nothing is cancelled and the user is asked which; with `choices_to` nothing is said and they
    are put into the slot of that name. `pick` says which of those: a place, a time, words, or all. The value is
    `{"cancelled": [ids], "waiting": [{"id", "text"}]}`.
    """

    name = "action_cancel_reminder"
    arguments = ("text", "at", "id", "all", "timers", "choices_to", "pick")

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Cancel what is meant, and say so."""
        waiting = list(await context.turn.reminders.list())
        if args.get("timers"):
            waiting = [r for r in waiting if is_timer(r.text)]
            if not waiting:
                return self._result(
                    context, [], [], _say(context, "There is no timer running.", "没有正在走的计时器。")
                )
        elif args.get("timers") is False:
            waiting = [r for r in waiting if not is_timer(r.text)]
        if not waiting:
            return self._result(context, [], [], _say(context, "There are no reminders.", "没有待办的提醒。"))
        meant = self._meant(context, args, waiting)
        if not meant:
            return self._result(context, [], waiting, _say(context, "I found no such reminder.", "没有找到这个提醒。"))
        pick = str(args.get("pick") or "")
        meant = self._picked(context, pick, meant) if pick.strip() else meant
        if len(meant) > 1 and not args.get("all") and not means_all(pick):
            listed = self._listed(context, meant)
            slot = args.get("choices_to")
            if slot:
                found = self._result(context, [], meant, "")
                return replace(found, messages=(), slot_updates={str(slot): listed})
            said = _say(context, f"Which one? There are: {listed}.", f"要取消哪一个？有：{listed}。")
            return self._result(context, [], meant, said)
        done = [r for r in meant if await context.turn.reminders.cancel(r.id)]
        left = [r for r in waiting if r not in done]
        listed = self._listed(context, done)
        return self._result(context, done, left, _say(context, f"Cancelled: {listed}.", f"已取消：{listed}。"))

    @staticmethod
    def _meant(context: ActionContext, args: Mapping[str, Any], waiting: list[Reminder]) -> list[Reminder]:
        if args.get("all"):
            return waiting
        if args.get("id"):
            return [r for r in waiting if r.id == str(args["id"])]
        at = datetime.fromisoformat(str(args["at"])) if args.get("at") else None
        if at is not None and at.tzinfo is None:
            at = at.replace(tzinfo=context.now.tzinfo)
        return choose(waiting, text=str(args.get("text") or ""), at=at)

    @staticmethod
    def _picked(context: ActionContext, pick: str, meant: list[Reminder]) -> list[Reminder]:
        """Return what is picked by time, by place or by words; all where that is said or nothing fits."""
        moment = extract(Slot(id="at", type="time"), pick, now=context.now)
        if moment is not None:
            timed = [r for r in meant if r.due.astimezone(context.now.tzinfo).strftime("%H:%M") == moment.value]
            if timed:
                return timed
        place = place_named(pick, len(meant), now=context.now)
        if place is not None:
            return [meant[place]]
        return choose(meant, text=pick) or meant

    @staticmethod
    def _listed(context: ActionContext, reminders: Sequence[Reminder]) -> str:
        parts = []
        for reminder in reminders[:_MOST_SPOKEN]:
            if is_timer(reminder.text):
                parts.append(timer_name(reminder.text, context.language))
                continue
            due = reminder.due.astimezone(context.now.tzinfo) if context.now.tzinfo else reminder.due
            when = spoken(due, language=context.language, now=context.now)
            parts.append(f"{when}{reminder.text}" if context.language == "zh" else f"{reminder.text}, {when}")
        return ("；" if context.language == "zh" else "; ").join(parts)

    @staticmethod
    def _result(
        context: ActionContext, done: Sequence[Reminder], waiting: Sequence[Reminder], said: str
    ) -> ActionResult:
        value = {"cancelled": [r.id for r in done], "waiting": [{"id": r.id, "text": r.text} for r in waiting]}
        return ActionResult(messages=(said,), value=value)

    def label(self, args: Mapping[str, Any], language: str | None) -> str:
        """Name what is cancelled."""
        text = str(args.get("text") or "")
        return f"取消提醒{text}" if language == "zh" else f"cancel the reminder {text}".strip()


class Remember(Action):
    """Remember the fact `text`; it reaches the prompts of later answers. Where there is no memory it does nothing."""

    name = "action_remember"
    arguments = ("text",)

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Hand the fact to the memory."""
        fact = " ".join(str(args.get("text") or "").split())[:300]
        if not fact:
            raise ValueError("text: there is nothing to remember")
        remember = getattr(context.turn, "remember", None)
        if remember is not None and not remember(fact):
            raise OSError("the memory takes nothing at the moment")
        return ActionResult(messages=(_say(context, "I'll remember that.", "我记住了。"),), value=fact)

    def label(self, args: Mapping[str, Any], language: str | None) -> str:
        """Name the fact."""
        text = str(args.get("text") or "")
        return f"记住「{text}」" if language == "zh" else f'remember "{text}"'


class OpenPage(Action):
    """Open the web page `url` after a yes; an address without http gets https."""

    name = "action_open_page"
    arguments = ("url",)
    needs_confirmation = True

    async def run(self, context: ActionContext, args: Mapping[str, Any]) -> ActionResult:
        """Open it with what the program has for that."""
        url = self._url(args)
        opener = getattr(context.turn, "page_opener", None)
        if opener is not None and not await opener.open(url):
            raise OSError("no browser could be started")
        return ActionResult(value=url)

    @staticmethod
    def _url(args: Mapping[str, Any]) -> str:
        try:
            return page_url(str(args.get("url") or ""))
        except ToolRefused as error:
            raise ValueError(str(error)) from error

    def label(self, args: Mapping[str, Any], language: str | None) -> str:
        """Name the site."""
        try:
            host = urlsplit(self._url(args)).hostname or "?"
        except ValueError:
            host = "?"
        return f"打开{host}" if language == "zh" else f"open {host}"


def companion_actions() -> list[Action]:
    """Return one of each."""
    return [CancelReminder(), Remember(), OpenPage()]
