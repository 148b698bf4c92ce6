"""What tools do with a model, done by voice without one: actions that cancel reminders, remember and open pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from rigs.core_rig import CoreRig, FakeOpener

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import Message, TurnContext, TurnHeard, TurnInput
from orchestrator.flows.testing.host import MemoryHost
from orchestrator.store import records
from orchestrator.tasks.actions.base import Action, ActionContext
from orchestrator.tasks.actions.companion import CancelReminder, OpenPage, Remember, companion_actions, likeness
from orchestrator.tasks.actions.registry import run_action

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=timezone(timedelta(hours=1)))


def context_of(turn: TurnContext, language: str = "en") -> ActionContext:
    return ActionContext(
        turn=turn,
        slots={},
        vars={},
        world={},
        now=turn.now,
        language=language,
        key=f"{turn.generation_id}:a",
        timeout_s=5.0,
    )


async def host_with(*texts: str) -> MemoryHost:
    host = MemoryHost(clock=VirtualClock(0.0, NOW))
    for hours, text in enumerate(texts, start=1):
        await host.reminders.add(text=text, due=NOW + timedelta(hours=hours))
    return host


async def cancel(host: MemoryHost, language: str = "en", **args: Any) -> tuple[str, list[str]]:
    """Return what is said and what still waits."""
    _, result = await run_action(CancelReminder(), context_of(host.turn(), language), args)
    return result.messages[0], [reminder.text for reminder in await host.reminders.list()]


@pytest.mark.parametrize(
    ("language", "wanted", "left"),
    [
        ("en", {"text": "the plants"}, ["call mum", "给妈妈打电话"]),
        ("en", {"text": "cancel my reminder to call"}, ["water the plants", "给妈妈打电话"]),
        ("zh", {"text": "给妈妈打电话的提醒"}, ["water the plants", "call mum"]),
        ("en", {"at": "2026-12-01T11:00"}, ["water the plants", "给妈妈打电话"]),
        ("en", {"text": "mum", "at": "2026-12-01T11:00:00+01:00"}, ["water the plants", "给妈妈打电话"]),
        ("en", {"all": True}, []),
    ],
)
async def test_the_reminder_that_is_meant_is_cancelled(language: str, wanted: dict[str, Any], left: list[str]) -> None:
    host = await host_with("water the plants", "call mum", "给妈妈打电话")
    said, waiting = await cancel(host, language, **wanted)
    assert waiting == left
    assert said.startswith("已取消" if language == "zh" else "Cancelled")


async def test_unclear_or_unknown_cancels_nothing_and_says_what_waits() -> None:
    host = await host_with("water the plants", "call mum")
    said, waiting = await cancel(host)
    assert "Which one?" in said and "plants" in said and "mum" in said and len(waiting) == 2
    said, waiting = await cancel(host, text="the dentist")
    assert "no such reminder" in said and len(waiting) == 2
    said, _ = await cancel(host, "zh", text="看牙医")
    assert said == "没有找到这个提醒。"
    alone = await host_with("call mum")
    assert (await cancel(alone))[1] == []
    assert (await cancel(alone))[0] == "There are no reminders."


@pytest.mark.parametrize(("wanted", "text"), [("it", "fit it"), ("提醒", "提醒我"), ("", "x")])
def test_small_words_name_nothing(wanted: str, text: str) -> None:
    assert likeness(wanted, text) == 0.0


async def test_what_can_not_be_done_is_an_outcome() -> None:
    turn = (await host_with()).turn()
    for action, args in ((Remember(), {"text": " "}), (OpenPage(), {"url": "file:///etc/passwd"}), (OpenPage(), {})):
        outcome, _ = await run_action(action, context_of(turn), args)
        assert not outcome.ok
    outcome, result = await run_action(Remember(), context_of(turn, "zh"), {"text": "我喜欢茶"})
    assert outcome.ok and result.messages == ("我记住了。",)
    assert all(action.name.startswith("action_") for action in companion_actions())
    assert OpenPage().question({"url": "example.org"}, "zh") == "要打开example.org吗？"
    assert OpenPage.needs_confirmation


class OneActionBrain:
    """A `Brain` whose every turn runs one action."""

    def __init__(self, action: Action, args: Mapping[str, Any]) -> None:
        self.action = action
        self.args = args

    def begin(self, turn: TurnContext, user: TurnInput) -> OneActionBrain:
        self._turn = turn
        return self

    async def run(self) -> None:
        outcome, result = await run_action(self.action, context_of(self._turn), self.args)
        text = " ".join(result.messages) or ("Done." if outcome.ok else "Failed.")
        await self._turn.reply.say(Message(text=text, source="task"))

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        return {}

    def accepts_as_answer(self, text: str, language: str | None) -> bool:
        return False

    def expected_answer(self) -> str | None:
        return None

    def silence_timeout_s(self) -> float | None:
        return None

    def dump_state(self) -> Mapping[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        pass


async def test_in_the_running_core_facts_reach_the_memory_and_pages_the_opener(tmp_path: Path) -> None:
    opener, brain = FakeOpener(), OneActionBrain(Remember(), {"text": "The user likes tea."})
    async with CoreRig(tmp_path, "http://127.0.0.1:9/v1", opener=opener, brain=brain) as rig:
        assert await rig.ask("remember that I like tea") == ["I'll remember that."]
        assert (await rig.wait_for("memory:write"))["lane"] == "background"
        brain.action, brain.args = OpenPage(), {"url": "example.org"}
        assert await rig.ask("open example.org") == ["Done."]
        assert opener.opened == ["https://example.org"]
        opener.works = False
        assert await rig.ask("open example.org again") == ["Failed."]
        assert [r["payload"]["effect"] for r in rig.of("tool:call")] == ["write"] * 3
    async with CoreRig(tmp_path, "http://127.0.0.1:9/v1", brain=brain) as rig:
        assert await rig.database.transact(records.facts) == ["The user likes tea."]
