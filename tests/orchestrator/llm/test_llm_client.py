"""The client against a scripted endpoint: text, events, cancelling, failures, dialects."""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
from typing import Any

import pytest

from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask, LlmUnavailable
from orchestrator.contracts.errors import GenerationCancelled, InputError
from orchestrator.contracts.events import LlmCallStarted, LlmEnded, LlmFirstToken
from orchestrator.llm.client import LlmLimits
from orchestrator.llm.endpoint import endpoint_from_options
from orchestrator.llm.no_llm import NoLlm


def request(text: str = "hello", **fields: Any) -> LlmRequest:
    return LlmRequest(task=LlmTask.PERSONA, messages=(ChatMessage(role="user", content=text),), **fields)


async def test_streams_pieces_and_reports_the_call(endpoint, new_answer, llm, emitted):
    endpoint.answers = [new_answer(["Hel", "lo ", "there."])]
    pieces = [piece async for piece in llm.stream(request(max_tokens=20, stop=("\nUser:",)))]
    assert pieces == ["Hel", "lo ", "there."]
    sent = endpoint.requests[0]
    assert sent["model"] == "scripted-1"
    assert sent["messages"] == [{"role": "user", "content": "hello"}]
    assert sent["max_tokens"] == 20
    assert sent["stop"] == ["\nUser:"]
    kinds = [type(payload) for payload in emitted]
    assert kinds == [LlmCallStarted, LlmFirstToken, LlmEnded]
    assert emitted[0].task == "persona"
    assert emitted[0].model == "scripted-1"
    assert len({payload.call_id for payload in emitted}) == 1
    assert (emitted[2].outcome, emitted[2].tokens, emitted[2].closed_s) == ("ok", 3, None)


async def test_thoughts_are_not_part_of_the_text(endpoint, new_answer, llm):
    endpoint.answers = [new_answer(["<th", "ink>secret plan</thi", "nk>\n\nFine", " <b"])]
    assert await llm.complete(request()) == "Fine <b"


@pytest.mark.parametrize("way", ["close", "cancel", "abort"])
async def test_cancel_closes_the_connection_before_another_token(way, endpoint, new_answer, llm, emitted):
    gate = asyncio.Event()
    endpoint.answers = [new_answer(["one ", "two ", "three "], gate=gate, gate_after=1)]
    stream = llm.stream(request())
    assert await anext(stream) == "one "
    loop = asyncio.get_running_loop()
    if way == "close":
        began = loop.time()
        await stream.aclose()
    elif way == "cancel":
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        began = loop.time()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    else:
        began = loop.time()
        llm.abort()
    await asyncio.wait_for(endpoint.closed.wait(), 1)
    assert endpoint.closed_at - began < 0.1
    gate.set()
    if way == "abort":
        with pytest.raises(GenerationCancelled):
            await anext(stream)
        with pytest.raises(GenerationCancelled):
            await anext(llm.stream(request()))
    assert endpoint.tokens_sent == 1
    (end,) = emitted.of(LlmEnded)
    assert end.outcome == "cancelled"
    assert 0 <= end.closed_s < 0.1


async def test_cancel_while_waiting_for_the_answers_head(endpoint, new_answer, llm, emitted):
    endpoint.answers = [new_answer(["never"], head_gate=asyncio.Event())]
    task = asyncio.create_task(llm.complete(request()))
    await endpoint.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(endpoint.closed.wait(), 1)
    assert emitted.of(LlmEnded)[0].closed_s < 0.1
    assert not emitted.of(LlmFirstToken)


async def test_cancel_is_quick_every_time(endpoint, new_answer, make_client, emitted, note):
    client = make_client()
    for _ in range(15):
        endpoint.closed.clear()
        endpoint.answers = [new_answer(endless_every_s=0.005)]
        stream = client.bind(None, emitted).stream(request())
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(endpoint.closed.wait(), 1)
    closed = [end.closed_s for end in emitted.of(LlmEnded)]
    note("closed_s_median", statistics.median(closed))
    assert len(closed) == 15
    assert max(closed) < 0.1


async def test_an_answer_the_caller_forgets_is_closed_by_the_client(endpoint, new_answer, make_client, emitted):
    client = make_client()
    endpoint.answers = [new_answer(["one "], gate=asyncio.Event(), gate_after=1)]
    stream = client.bind(None, emitted).stream(request())
    await anext(stream)
    await client.aclose()
    await asyncio.wait_for(endpoint.closed.wait(), 1)
    assert emitted.of(LlmEnded)[0].outcome == "cancelled"
    with pytest.raises(GenerationCancelled):
        await anext(stream)


FAILURES = [
    (401, {"error": {"message": "bad key"}}, "unauthorised"),
    (403, {"error": {"message": "no"}}, "unauthorised"),
    (404, {"error": {"message": "The model `x` does not exist"}}, "model_unknown"),
    (404, {"error": {"message": "nothing here"}}, "unreachable"),
    (400, {"error": {"message": "invalid model name"}}, "model_unknown"),
    (400, {"error": {"message": "the request exceeds the available context size"}}, "too_long"),
    (429, {"error": {"message": "slow down"}}, "rate_limited"),
    (500, {"error": {"message": "oops"}}, "server_error"),
    (504, {"error": {"message": "gateway"}}, "timeout"),
]


@pytest.mark.parametrize(("status", "body", "code"), FAILURES)
async def test_refusals_have_a_code(status, body, code, endpoint, new_answer, llm, emitted):
    endpoint.answers = [new_answer(status=status, body=body)]
    with pytest.raises(LlmUnavailable) as caught:
        await llm.complete(request())
    assert caught.value.args[0] == code
    assert emitted.of(LlmEnded)[0].outcome == "failed"
    assert emitted.of(LlmEnded)[0].closed_s is None


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"raw": b"data: {not json\n\n"}, "bad_answer"),
        ({"raw": b"<html>hello</html>"}, "bad_answer"),
        ({"raw": b'data: {"error": {"message": "gpu on fire"}}\n\n'}, "server_error"),
        ({"pieces": []}, "bad_answer"),
        ({"pieces": ["<think>only thoughts"]}, "bad_answer"),
    ],
)
async def test_answers_that_are_none_have_a_code(answer, code, endpoint, new_answer, llm):
    endpoint.answers = [new_answer(**answer)]
    with pytest.raises(LlmUnavailable) as caught:
        await llm.complete(request())
    assert caught.value.args[0] == code


async def test_nobody_there(make_client, emitted):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = make_client(url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(LlmUnavailable) as caught:
        await client.bind(None, emitted).complete(request())
    assert caught.value.args[0] == "unreachable"
    assert [end.outcome for end in emitted.of(LlmEnded)] == ["failed"]
    status = await client.check()
    assert status.code == "unreachable"
    with pytest.raises(InputError, match=str(port)) as refused:
        status.require_ok()
    assert "\n" not in refused.value.message


async def test_no_first_token_in_time(endpoint, new_answer, make_client, emitted):
    client = make_client(limits=LlmLimits(connect_s=0.05, first_token_s=0.1))
    endpoint.answers = [new_answer(["late"], gate=asyncio.Event())]
    with pytest.raises(LlmUnavailable) as caught:
        await client.bind(None, emitted).complete(request())
    assert caught.value.args[0] == "timeout"
    await asyncio.wait_for(endpoint.closed.wait(), 1)


async def test_silence_inside_an_answer_ends_it_and_keeps_what_came(endpoint, new_answer, make_client, emitted):
    client = make_client(limits=LlmLimits(idle_s=0.1))
    endpoint.answers = [new_answer(["one "], gate=asyncio.Event(), gate_after=1)]
    got = []
    with pytest.raises(LlmUnavailable) as caught:
        async for piece in client.bind(None, emitted).stream(request()):
            got.append(piece)
    assert (got, caught.value.args[0]) == (["one "], "timeout")


async def test_after_a_time_limit_the_same_answer_waits_for_nothing_more(endpoint, new_answer, make_client, emitted):
    client = make_client(limits=LlmLimits(first_token_s=0.1))
    endpoint.answers = [new_answer(["late"], gate=asyncio.Event()), new_answer(["soon"])]
    llm = client.bind(None, emitted)
    for _ in range(2):
        with pytest.raises(LlmUnavailable) as caught:
            await llm.complete(request())
        assert caught.value.args[0] == "timeout"
    assert len(endpoint.requests) == 1
    assert await client.bind(None, emitted).complete(request()) == "soon"


def sse(*choices: dict[str, Any], done: bool = False) -> bytes:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    lines = [f"data: {json.dumps({**head, 'choices': [choice]})}\n\n" for choice in choices]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


WORDS = {"index": 0, "delta": {"content": "one two "}, "finish_reason": None}
STOP = {"index": 0, "delta": {}, "finish_reason": "stop"}


@pytest.mark.parametrize("raw", [sse(WORDS, STOP, done=True), sse(WORDS, STOP), sse(WORDS, done=True)])
async def test_either_sign_of_the_end_makes_an_answer_whole(endpoint, new_answer, llm, raw):
    endpoint.answers = [new_answer(raw=raw)]
    assert await llm.complete(request()) == "one two"


async def test_a_stream_that_closes_without_a_sign_of_its_end_is_cut_short(endpoint, new_answer, llm, emitted):
    endpoint.answers = [new_answer(raw=sse(WORDS))]
    got = []
    with pytest.raises(LlmUnavailable) as caught:
        async for piece in llm.stream(request()):
            got.append(piece)
    assert ("".join(got), caught.value.args[0]) == ("one two ", "cut_short")
    assert [end.outcome for end in emitted.of(LlmEnded)] == ["failed"]
    cut = {"index": 0, "delta": {"content": '{"a": 1}'}, "finish_reason": None}
    endpoint.answers = [new_answer(raw=sse(cut))]
    assert await llm.complete(request(schema=SCHEMA)) == '{"a": 1}', "JSON tells by itself whether it is whole"


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


async def test_schema_steps_back_when_refused_and_remembers(endpoint, new_answer, make_client, emitted):
    client = make_client()
    refusal = {"error": {"message": "response_format is not supported"}}
    endpoint.answers = [
        new_answer(status=400, body=refusal),
        new_answer(status=400, body=refusal),
        new_answer(['Sure: ```json\n{"a": 1}', "\n```"]),
        new_answer(['{"a": 2}']),
    ]
    assert json.loads(await client.bind(None, emitted).complete(request(schema=SCHEMA))) == {"a": 1}
    formats = [sent.get("response_format", {}).get("type") for sent in endpoint.requests]
    assert formats == ["json_schema", "json_object", None]
    assert endpoint.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "JSON Schema" in endpoint.requests[2]["messages"][0]["content"]
    assert json.loads(await client.bind(None, emitted).complete(request(schema=SCHEMA))) == {"a": 2}
    assert len(endpoint.requests) == 4
    assert len(emitted.of(LlmEnded)) == 2


async def test_schema_answer_without_json_is_bad(endpoint, new_answer, llm):
    endpoint.answers = [new_answer(["I would rather {not}."])]
    with pytest.raises(LlmUnavailable) as caught:
        await llm.complete(request(schema=SCHEMA))
    assert caught.value.args[0] == "bad_answer"


async def test_newer_parameter_names_are_learnt(endpoint, new_answer, llm):
    endpoint.answers = [
        new_answer(status=400, body={"error": {"message": "use 'max_completion_tokens' instead of 'max_tokens'"}}),
        new_answer(status=400, body={"error": {"message": "'temperature' does not support 0.7"}}),
        new_answer(["ok"]),
    ]
    assert await llm.complete(request(max_tokens=9)) == "ok"
    last = endpoint.requests[-1]
    assert last["max_completion_tokens"] == 9
    assert "max_tokens" not in last
    assert "temperature" not in last


async def test_a_server_without_end_is_cut(endpoint, new_answer, make_client, emitted):
    client = make_client()
    endpoint.answers = [new_answer(["x"] * 500)]
    text = await client.bind(None, emitted).complete(request(max_tokens=5))
    assert 5 <= len(text) < 200


async def test_check_tells_models_and_chooses_one(endpoint, make_client):
    endpoint.models = ["first", "second"]
    client = make_client(model="", api_key="sesame")
    status = await client.check()
    assert (status.code, status.model, status.models) == ("ok", "first", ("first", "second"))
    assert status.message() == ""
    assert endpoint.keys[0] == "sesame"


async def test_check_without_a_list(endpoint, new_answer, make_client):
    endpoint.models = None
    assert (await make_client().check()).code == "ok"
    endpoint.answers = [new_answer(status=404, body={"error": {"message": "model not found"}})]
    status = await make_client().check(probe=True)
    assert status.code == "model_unknown"
    assert "scripted-1" in status.message("en")
    assert "模型" in status.message("zh-CN")


async def test_check_of_a_wrong_key(endpoint, make_client):
    endpoint.models_status = 401
    status = await make_client().check()
    assert status.code == "unauthorised"
    assert "--llm-key-env" in status.message()


def test_endpoint_options():
    made = endpoint_from_options(url="http://host:8080", model=None, key_env="K", environ={"K": " s3 "})
    assert (made.base_url, made.model, made.api_key) == ("http://host:8080/v1", "", "s3")
    assert "s3" not in repr(made)
    kept = endpoint_from_options(url="https://h/api/v3/chat/completions", model="m", key_env=None, environ={})
    assert (kept.base_url, kept.is_loopback) == ("https://h/api/v3", False)
    for url in ("lokal", "ftp://h", "http://", "http://h:port"):
        with pytest.raises(InputError, match="--llm"):
            endpoint_from_options(url=url, model=None, key_env=None, environ={})
    with pytest.raises(InputError, match="NOPE"):
        endpoint_from_options(url="http://h", model=None, key_env="NOPE", environ={})


async def test_without_a_model():
    llm = NoLlm()
    assert not llm.is_configured
    assert not llm.can_plan
    with pytest.raises(LlmUnavailable) as caught:
        await llm.complete(request())
    assert caught.value.args[0] == "none"
    with pytest.raises(LlmUnavailable):
        async for _ in llm.stream(request()):
            pass
