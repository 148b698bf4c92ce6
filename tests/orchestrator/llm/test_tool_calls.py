"""Tool calls as servers stream them, and how requests with tools are written."""

from __future__ import annotations

import json

import pytest

from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask, ToolOffer, ToolUse
from orchestrator.llm.call_arguments import Dialect
from orchestrator.llm.connection import ToolPart
from orchestrator.llm.failures import LlmFailure
from orchestrator.llm.tool_parts import ToolAssembler

OFFER = ToolOffer(name="look", description="Look.", parameters={"type": "object"})


def chunk(tool_calls: list[dict[str, object]], content: str | None = None) -> bytes:
    delta = {"content": content, "tool_calls": tool_calls}
    data = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [{"index": 0, "delta": delta}]}  # fmt: skip # noqa: E501
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def request(*messages: ChatMessage, **fields: object) -> LlmRequest:
    asked = messages or (ChatMessage(role="user", content="hello"),)
    return LlmRequest(task=LlmTask.PERSONA, messages=asked, tools=(OFFER,), **fields)


def assembled(*parts: ToolPart) -> list[tuple[str, str, str]]:
    tools = ToolAssembler()
    for part in parts:
        tools.feed([part])
    return [(use.id, use.name, use.arguments) for use in tools.uses()]


def test_parts_are_joined_by_their_index() -> None:
    found = assembled(
        ToolPart(index=0, id="a", name="look"),
        ToolPart(index=1, id="b", name="listen"),
        ToolPart(index=0, arguments='{"at":'),
        ToolPart(index=1, arguments="{}"),
        ToolPart(index=0, arguments='"sky"}'),
    )
    assert found == [("a", "look", '{"at":"sky"}'), ("b", "listen", "{}")]


def test_whole_calls_under_one_index_stay_apart_and_repeated_names_are_one() -> None:
    whole = [ToolPart(index=0, id=name, name=name, arguments="{}") for name in ("a", "b")]
    assert assembled(*whole) == [("a", "a", "{}"), ("b", "b", "{}")]
    assert assembled(ToolPart(index=0, name="look", arguments="{"), ToolPart(index=0, name="look", arguments="}")) == [
        ("call_1", "look", "{}")
    ]
    assert assembled(ToolPart(index=0, id="a", arguments="{}")) == [], "a call without a name is none"


def test_a_flood_is_refused() -> None:
    with pytest.raises(LlmFailure):
        assembled(*(ToolPart(index=number, name="look") for number in range(40)))
    with pytest.raises(LlmFailure):
        assembled(*(ToolPart(index=0, name="look", arguments="x" * 1000) for _ in range(40)))


async def test_text_comes_first_then_the_calls_and_a_stream_has_text_only(endpoint, new_answer, llm):
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}
    raw = chunk([first], "Let me ") + chunk([{"index": 0, "function": {"arguments": "{}"}}], "look.")
    endpoint.answers = [new_answer(raw=raw + b"data: [DONE]\n\n") for _ in range(2)]
    pieces = [piece async for piece in llm.converse(request())]
    assert pieces == ["Let me ", "look.", ToolUse(id="c1", name="look", arguments="{}")]
    assert [piece async for piece in llm.stream(request())] == ["Let me ", "look."]
    assert endpoint.requests[0]["tools"][0]["function"]["name"] == "look"


async def test_a_call_without_text_is_an_answer_but_not_where_no_tools_were_offered(endpoint, new_answer, llm):
    raw = chunk([{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]) + b"data: [DONE]\n\n"
    endpoint.answers = [new_answer(raw=raw) for _ in range(2)]
    assert [piece async for piece in llm.converse(request())] == [ToolUse(id="c1", name="look", arguments="{}")]
    plain = LlmRequest(task=LlmTask.PERSONA, messages=(ChatMessage(role="user", content="hi"),))
    with pytest.raises(LlmFailure):
        assert [piece async for piece in llm.converse(plain)] == []


def test_an_endpoint_without_tools_reads_their_results_as_notes() -> None:
    use = ToolUse(id="c1", name="look", arguments="{}")
    messages = (
        ChatMessage(role="user", content="look"),
        ChatMessage(role="assistant", content="", tool_uses=(use,)),
        ChatMessage(role="tool", content='{"sky": "blue"}', tool_use_id="c1"),
    )
    dialect = Dialect()
    sent = dialect.arguments(request(*messages, may_call_tools=False), model="m", max_tokens=5)
    assert sent["tool_choice"] == "none"
    assert sent["messages"][1]["tool_calls"][0]["function"] == {"name": "look", "arguments": "{}"}
    assert sent["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": '{"sky": "blue"}'}
    assert dialect.adapt("unknown field tools", has_schema=False, has_tools=True)
    assert not dialect.knows_tools
    plain = dialect.arguments(request(*messages), model="m", max_tokens=5)
    assert "tools" not in plain and "tool_choice" not in plain
    assert [message["role"] for message in plain["messages"]] == ["user", "assistant", "system"]
    assert all("tool_calls" not in message for message in plain["messages"])


@pytest.mark.parametrize(
    "refusal", ["max_completion_tokens instead of max_tokens", "temperature is fixed", "stop is not supported"]
)
def test_other_refusals_leave_the_tools(refusal: str) -> None:
    dialect = Dialect()
    assert dialect.adapt(refusal, has_schema=False, has_tools=True)
    assert dialect.knows_tools
