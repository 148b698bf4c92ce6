"""The model calls tools in the running core: what it gets back, what the user hears, and what a cancel leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rigs.core_rig import CoreRig, FakeOpener
from rigs.scripted_llm import Answer, ScriptedLlm

from orchestrator.contracts.dialogue import ToolUse
from orchestrator.contracts.events import MemoryWrite
from orchestrator.dialogue.tools.builtin import builtin_tools, page_url
from orchestrator.dialogue.tools.registry import ToolRegistry
from orchestrator.dialogue.tools.spec import ToolRefused
from orchestrator.store import records


@pytest.fixture
def llm() -> Iterator[ScriptedLlm]:
    with ScriptedLlm(default=Answer(text="Fine.", first_token_s=0.0, tokens_per_s=2000)) as endpoint:
        yield endpoint


@pytest.fixture
async def opener() -> FakeOpener:
    return FakeOpener()


@pytest.fixture
async def rig(tmp_path: Path, llm: ScriptedLlm, opener: FakeOpener) -> AsyncIterator[CoreRig]:
    async with CoreRig(tmp_path, llm.url, opener=opener) as running:
        yield running


def calls_tool(pattern: str, name: str, arguments: Any = None, text: str = "") -> Answer:
    wanted = [{"name": name, "arguments": {} if arguments is None else arguments}]
    return Answer(pattern=pattern, text=text, tool_calls=wanted, first_token_s=0.0, tokens_per_s=2000)


def then(text: str, pattern: str = "", **fields: Any) -> Answer:
    return Answer(pattern=pattern, text=text, follows_tool=True, first_token_s=0.0, tokens_per_s=2000, **fields)


def results_of(llm: ScriptedLlm, call: int = -1) -> list[Any]:
    return [json.loads(text) for text in llm.calls[call].tool_results]


async def quarantined(rig: CoreRig) -> list[tuple[str, str]]:
    def read(db: Any) -> list[tuple[str, str]]:
        return list(db.execute("SELECT correlation_id, name FROM quarantine"))

    return await rig.database.transact(read)


# --- what comes out ---------------------------------------------------------------------------------------------------


async def test_the_time_is_read_and_the_answer_is_words_only(rig: CoreRig, llm: ScriptedLlm) -> None:
    llm.answers = [calls_tool("time", "current_time", text="Let me look. "), then("It is exactly now.")]
    assert await rig.ask("What time is it?") == ["Let me look.", "It is exactly now."]
    (value,) = results_of(llm)
    now = datetime.fromisoformat(value["now"])
    assert abs((datetime.now().astimezone() - now).total_seconds()) < 30
    (call,), (result,) = rig.of("tool:call"), rig.of("tool:result")
    assert (call["payload"]["name"], call["payload"]["effect"]) == ("current_time", "read")
    assert call["correlationId"] == result["correlationId"]
    assert (result["lane"], result["payload"]["disposition"]) == ("active_generation", "used")
    offered = {tool["function"]["name"] for tool in llm.calls[0].body["tools"]}
    assert offered == {"current_time", "set_reminder", "list_reminders", "cancel_reminder", "remember", "open_page"}
    asked, answered = llm.calls[1].body["messages"][-2:]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"]
    stored = [r["payload"]["text"] for r in rig.of("history:commit") if r["payload"]["role"] == "assistant"]
    assert stored == ["Let me look. It is exactly now."]


async def test_reminders_are_set_listed_and_cancelled(rig: CoreRig, llm: ScriptedLlm) -> None:
    llm.answers = [
        calls_tool("remind", "set_reminder", {"text": "water the plants", "in_minutes": 10}),
        calls_tool("list", "list_reminders"),
        then("You have one.", pattern=r"^\["),
        then("I will remind you."),
    ]
    assert await rig.ask("remind me of the plants in ten minutes") == ["I will remind you."]
    (reminder,) = await rig.database.transact(records.waiting_reminders)
    assert reminder.text == "water the plants"
    left = reminder.due - datetime.now().astimezone()
    assert timedelta(minutes=9) < left < timedelta(minutes=11)
    assert rig.of("tool:call")[0]["payload"]["idempotencyKey"]
    assert await rig.ask("list them") == ["You have one."]
    assert results_of(llm)[0][0]["id"] == reminder.id
    llm.answers = [calls_tool("cancel", "cancel_reminder", {"id": reminder.id}), then("Gone.")]
    assert await rig.ask("cancel it") == ["Gone."]
    assert await rig.database.transact(records.waiting_reminders) == []


async def test_the_same_reminder_twice_is_one(rig: CoreRig, llm: ScriptedLlm) -> None:
    twice = [{"name": "set_reminder", "arguments": {"text": "tea", "in_minutes": 5}}] * 2
    llm.answers = [Answer(pattern="tea", tool_calls=twice, first_token_s=0.0), then("Done.")]
    await rig.ask("tea in five minutes")
    await rig.ask("tea in five minutes")
    assert len(await rig.database.transact(records.waiting_reminders)) == 1
    assert len(rig.of("tool:call")) == 2, "once in each answer"


async def test_reminders_by_tool_are_exact_to_the_second_and_a_minute_apart_is_not_the_same(
    rig: CoreRig, llm: ScriptedLlm
) -> None:
    llm.answers = [
        calls_tool("half", "set_reminder", {"text": "tea", "in_minutes": 0.5}),
        calls_tool("one", "set_reminder", {"text": "tea", "in_minutes": 1}),
        then("Done."),
    ]
    await rig.ask("tea in half a minute")
    await rig.ask("tea in one minute")
    waiting = await rig.database.transact(records.waiting_reminders)
    assert len(waiting) == 2
    assert waiting[1].due - waiting[0].due >= timedelta(seconds=30)
    told = [datetime.fromisoformat(result["due"]) for result in results_of(llm)]
    assert told[-1] == waiting[1].due.replace(microsecond=0), "the model is told the second, not the minute"


async def test_a_fact_goes_through_the_background_lane_into_the_next_prompt(rig: CoreRig, llm: ScriptedLlm) -> None:
    llm.answers = [calls_tool("remember", "remember", {"fact": "The user's cat is called 小花."}), then("I will.")]
    await rig.ask("remember that my cat is called 小花")
    written = await rig.wait_for("memory:write")
    assert written["lane"] == "background"
    await asyncio.gather(*(task for task in rig.core._tasks if task.get_name() == "memory"))
    await rig.ask("good morning")
    assert "小花" not in str(llm.calls[0].body["messages"][:-1])
    prompt = [m["content"] for m in llm.calls[-1].body["messages"] if m["role"] == "system"]
    assert any("小花" in text for text in prompt), "the fact stands in the prompt of the next answer"


async def test_facts_of_an_earlier_start_and_the_world_reach_the_prompt(tmp_path: Path, llm: ScriptedLlm) -> None:
    async with CoreRig(tmp_path, llm.url) as first:
        first.core._post(MemoryWrite(text="The user plays the cello."), "test")
        await first.wait_for("memory:write")
    async with CoreRig(tmp_path, llm.url) as second:
        await second.ask("good morning")
        assert "open_page" not in str(llm.calls[-1].body["tools"]), "nothing can open pages here"
    assert "cello" in str(llm.calls[-1].body["messages"])


# --- mistakes of the model and of tools -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("launch_rocket", {}, "no tool"),
        ("set_remindr", {}, "did you mean set_reminder"),
        ("set_reminder", "{not json", "not JSON"),
        ("set_reminder", "[1]", "JSON object"),
        ("set_reminder", {"in_minutes": 5}, "'text' is a required property"),
        ("set_reminder", {"text": "x", "in_minutes": -5}, "in_minutes"),
        ("set_reminder", {"text": "x"}, "either at or in_minutes"),
        ("set_reminder", {"text": "x", "at": "tomorrow"}, "ISO"),
        ("set_reminder", {"text": "x", "at": "2001-01-01T00:00"}, "in the past"),
        ("set_reminder", {"text": "x", "in_minutes": 5, "colour": "red"}, "colour"),
        ("cancel_reminder", {"id": "r-none"}, "no reminder with the id"),
        ("open_page", {"url": "file:///etc/passwd"}, "no http or https address"),
        ("open_page", {"url": "javascript:alert(1)"}, "no http or https address"),
        ("open_page", {"url": "https://bank.example@evil.example/"}, "user name"),
    ],
)
async def test_a_call_that_makes_no_sense_is_told_to_the_model(
    rig: CoreRig, llm: ScriptedLlm, opener: FakeOpener, name: str, arguments: Any, told: str
) -> None:
    llm.answers = [calls_tool("do it", name, arguments), then("That did not work.", pattern="error")]
    assert await rig.ask("do it") == ["That did not work."]
    (result,) = results_of(llm)
    assert told in result["error"]
    assert await rig.database.transact(records.waiting_reminders) == []
    assert opener.opened == []


async def test_a_slow_tool_is_broken_off(rig: CoreRig, llm: ScriptedLlm, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [tool for tool in builtin_tools(None) if tool.name == "current_time"]

    async def never(scope: Any, args: Any) -> Any:
        await asyncio.Event().wait()

    slow = [
        type(tool)(name=tool.name, description="", parameters=tool.parameters, run=never, timeout_s=0.05)
        for tool in tools
    ]
    box = rig.core.turns._ports.tools
    assert box is not None
    monkeypatch.setattr(box.registry, "_tools", {tool.name: tool for tool in slow})
    llm.answers = [calls_tool("time", "current_time"), then("I don't know.", pattern="too long")]
    assert await rig.ask("time?") == ["I don't know."]
    (result,) = rig.of("tool:result")
    assert (result["payload"]["ok"], result["payload"]["disposition"]) == (False, "used")


async def test_a_model_that_never_stops_calling_is_made_to_answer(rig: CoreRig, llm: ScriptedLlm) -> None:
    again = calls_tool("", "current_time")
    llm.answers = [again, Answer(tool_calls=again.tool_calls, follows_tool=True, first_token_s=0.0)]
    said = await rig.ask("time?")
    assert len(said) == 1 and said[0].startswith("It is"), "the tool's own words, since the model has none"
    assert len(llm.calls) == 5
    assert llm.calls[-1].body["tool_choice"] == "none"


async def test_what_was_done_is_said_even_if_the_model_fails_then(rig: CoreRig, llm: ScriptedLlm) -> None:
    llm.answers = [
        calls_tool("提醒", "set_reminder", {"text": "浇花", "in_minutes": 10}),
        Answer(status=500, text="out of memory", follows_tool=True),
    ]
    said = await rig.ask("十分钟后提醒我浇花")
    assert "".join(said).startswith("好，") and "浇花" in "".join(said)
    assert len(await rig.database.transact(records.waiting_reminders)) == 1


@pytest.mark.parametrize(
    ("status", "text"),
    [(400, "scripted does not support tools"), (500, "tools param requires another template"), (422, "extra fields")],
)
async def test_an_endpoint_that_refuses_tools_is_asked_without(
    rig: CoreRig, llm: ScriptedLlm, status: int, text: str
) -> None:
    llm.answers = [Answer(pattern="first", status=status, text=text)]
    refusing = llm.answer_for

    def without_tools(call: Any) -> Answer:
        return refusing(call) if "tools" in call.body else llm.default

    llm.answer_for = without_tools  # type: ignore[method-assign]
    assert await rig.ask("first question") == ["Fine."]
    assert await rig.ask("another question") == ["Fine."]
    assert ["tools" in call.body for call in llm.calls] == [True, False, False]
    assert not rig.host.client.can_call_tools


async def test_without_the_setting_no_tools_are_offered(tmp_path: Path, llm: ScriptedLlm) -> None:
    async with CoreRig(tmp_path, llm.url, offers_tools=False) as rig:
        assert await rig.ask("hello") == ["Fine."]
    assert "tools" not in llm.calls[0].body


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "question", "yes", "reply"),
    [
        ("open the example page", "Shall I open example.org?", "yes please", "Opening example.org."),
        ("打开示例网页", "要打开example.org吗？", "好的", "好，正在打开example.org。"),
    ],
)
async def test_a_page_opens_after_the_users_yes(
    rig: CoreRig, llm: ScriptedLlm, opener: FakeOpener, wish: str, question: str, yes: str, reply: str
) -> None:
    llm.answers = [calls_tool("example|示例", "open_page", {"url": "https://example.org/a"})]
    assert "".join(await rig.ask(wish)) == question
    assert opener.opened == []
    assert len(llm.calls) == 1, "the program asks, not the model"
    assert "".join(await rig.ask(yes)) == reply
    assert opener.opened == ["https://example.org/a"]
    assert len(llm.calls) == 1
    calls = [(r["payload"]["name"], r["payload"]["effect"]) for r in rig.of("tool:call")]
    assert calls == [("open_page", "read"), ("open_page", "write")]


@pytest.mark.parametrize(("reply", "said"), [("no", "All right, I won't."), ("不用了", "好，不打开。")])
async def test_a_page_stays_closed_after_a_no(
    rig: CoreRig, llm: ScriptedLlm, opener: FakeOpener, reply: str, said: str
) -> None:
    llm.answers = [calls_tool("open", "open_page", {"url": "example.org"})]
    await rig.ask("open it")
    assert " ".join(await rig.ask(reply)) == said
    await rig.ask("yes")
    assert opener.opened == []


async def test_other_words_close_the_question_and_so_does_time(
    rig: CoreRig, llm: ScriptedLlm, opener: FakeOpener
) -> None:
    llm.answers = [calls_tool("open", "open_page", {"url": "example.org"})]
    await rig.ask("open it")
    assert await rig.ask("what a lovely day") == ["Fine."]
    assert await rig.ask("yes") == ["Fine."]
    assert opener.opened == []


async def test_a_question_nobody_heard_takes_no_yes(rig: CoreRig, llm: ScriptedLlm, opener: FakeOpener) -> None:
    llm.answers = [calls_tool("open", "open_page", {"url": "example.org"})]
    rig.speech.is_paused = True
    rig.type("open it")
    await rig.wait_for("intent:state", lambda r: r["payload"]["state"] == "queued")
    rig.stop()
    await rig.wait_for("turn:commit")
    rig.speech.is_paused = False
    assert await rig.ask("yes") == ["Fine."]
    assert opener.opened == []


async def test_a_yes_to_the_question_is_no_mere_listening_sound(rig: CoreRig, llm: ScriptedLlm) -> None:
    llm.answers = [calls_tool("open", "open_page", {"url": "example.org"})]
    await rig.ask("open it")
    brain = rig.core._present_brain()
    assert brain.accepts_as_answer("yeah", "en") and brain.accepts_as_answer("嗯", "zh")
    assert not brain.accepts_as_answer("the weather", "en")
    await rig.ask("no")
    assert not rig.core._present_brain().accepts_as_answer("yeah", "en")


async def test_a_browser_that_does_not_start_is_told(rig: CoreRig, llm: ScriptedLlm, opener: FakeOpener) -> None:
    opener.works = False
    llm.answers = [calls_tool("open", "open_page", {"url": "example.org"})]
    await rig.ask("open it")
    assert await rig.ask("yes") == ["I couldn't open example.org."]
    assert not rig.of("tool:result")[-1]["payload"]["ok"]


# --- cancelling in each stage -----------------------------------------------------------------------------------------


async def test_cancelled_while_a_reading_tool_is_out(
    rig: CoreRig, llm: ScriptedLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = asyncio.Event()

    async def slow(scope: Any, args: Any) -> Any:
        out.set()
        await asyncio.Event().wait()

    tool = next(tool for tool in builtin_tools(None) if tool.name == "current_time")
    box = rig.core.turns._ports.tools
    assert box is not None
    slow_tool = type(tool)(name=tool.name, description="", parameters=tool.parameters, run=slow)
    monkeypatch.setitem(box.registry._tools, tool.name, slow_tool)
    llm.answers = [calls_tool("time", "current_time")]
    rig.type("time?")
    await asyncio.wait_for(out.wait(), 10)
    rig.stop()
    await rig.wait_for("turn:commit")
    (result,) = rig.of("tool:result")
    assert (result["payload"]["ok"], result["payload"]["disposition"]) == (False, "dropped")
    assert len(llm.calls) == 1 and rig.speech.said == []


async def test_cancelled_while_a_writing_tool_is_out_its_result_is_set_aside(
    rig: CoreRig, llm: ScriptedLlm, opener: FakeOpener
) -> None:
    opener.gate = asyncio.Event()
    llm.answers = [calls_tool("open", "open_page", {"url": "example.org"})]
    await rig.ask("open it")
    rig.type("yes")
    await asyncio.wait_for(opener.asked.wait(), 10)
    seq = rig.last_seq
    rig.stop()
    await rig.wait_for("turn:commit", after=seq)
    seq = rig.last_seq
    assert await rig.ask("and now something else") == ["Fine."]
    opener.gate.set()
    result = await rig.wait_for("tool:result", after=seq)
    assert result["payload"]["disposition"] == "quarantined"
    await asyncio.gather(*rig.core.results._storing)
    assert await quarantined(rig) == [(result["correlationId"], "open_page")]
    assert await rig.ask("well?") == ["Fine."]
    assert "example.org" not in str(llm.calls[-1].body["messages"][-1])


async def test_cancelled_with_the_result_on_its_way_back(rig: CoreRig, llm: ScriptedLlm) -> None:
    take = rig.bus.post

    def post_and_stop(event: Any) -> bool:
        is_taken = take(event)
        if event.payload.TYPE == "tool:result":
            rig.stop()
        return is_taken

    rig.bus.post = post_and_stop  # type: ignore[method-assign]
    llm.answers = [calls_tool("remind", "set_reminder", {"text": "tea", "in_minutes": 5}), then("Done.")]
    rig.type("remind me")
    await rig.wait_for("turn:commit")
    rig.bus.post = take  # type: ignore[method-assign]
    (result,) = rig.of("tool:result")
    assert (result["payload"]["ok"], result["payload"]["disposition"]) == (True, "quarantined")
    assert len(llm.calls) == 1, "the model of the cancelled answer is not told"
    assert rig.speech.said == []
    assert await rig.ask("hello") == ["Fine."]
    assert not llm.calls[-1].tool_results


async def test_cancelled_while_the_model_answers_with_the_result(rig: CoreRig, llm: ScriptedLlm) -> None:
    endless = " ".join(f"Sentence number {n} goes on." for n in range(200))
    llm.answers = [calls_tool("time", "current_time"), Answer(text=endless, follows_tool=True, tokens_per_s=50)]
    rig.type("time?")
    await rig.wait_for("output:word")
    rig.stop()
    await rig.wait_for("turn:commit")
    outcomes = [r["payload"]["outcome"] for r in rig.of("llm:end")]
    assert outcomes == ["ok", "cancelled"]
    assert llm.calls[1].over.wait(5) and llm.calls[1].tokens_after_close == 0


async def test_cancelled_before_the_effect_it_never_starts(rig: CoreRig, llm: ScriptedLlm) -> None:
    wanted = [{"name": "set_reminder", "arguments": {"text": "tea", "in_minutes": 5}}]
    llm.answers = [Answer(pattern="remind", text="One moment please. ", tool_calls=wanted, tokens_per_s=10)]
    rig.type("remind me")
    await rig.wait_for("llm:first_token")
    active = rig.core.turns.active
    assert active is not None and active.suspend("the user began to speak")
    await rig.wait_for("llm:end")
    await rig.database.transact(records.facts)  # whatever was to be stored before is stored now
    assert rig.of("tool:call") == [], "nothing begins while the answer is held"
    rig.stop()
    await rig.wait_for("turn:commit")
    assert rig.of("tool:call") == []
    assert await rig.database.transact(records.waiting_reminders) == []


# --- small parts ------------------------------------------------------------------------------------------------------


def test_every_tool_has_a_schema_and_words_for_the_model() -> None:
    registry = ToolRegistry(builtin_tools(None))
    assert len(registry.offers) == 5
    for offer in registry.offers:
        assert offer.description and offer.parameters["additionalProperties"] is False
    with pytest.raises(ValueError, match="two tools"):
        ToolRegistry([*builtin_tools(None), *builtin_tools(None)])
    tool, args = registry.resolve(ToolUse(id="1", name="current_time", arguments=""))
    assert tool.name == "current_time" and args == {}


@pytest.mark.parametrize(
    ("given", "full"),
    [("example.org", "https://example.org"), (" http://例子.测试/a ", "http://例子.测试/a")],
)
def test_addresses_are_completed(given: str, full: str) -> None:
    assert page_url(given) == full


@pytest.mark.parametrize("given", ["", "https://", "ftp://example.org", "https://exa mple.org", "https://[::1"])
def test_no_addresses(given: str) -> None:
    with pytest.raises(ToolRefused):
        page_url(given)
