"""The offline model in its child process, with the real SmolLM2."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import time
from pathlib import Path

import httpx2
import pytest

from orchestrator.clock import SystemClock
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask, LlmUnavailable
from orchestrator.contracts.events import LlmEnded
from orchestrator.contracts.ids import IdFactory
from orchestrator.llm.client import LlmClient
from orchestrator.llm.local_server import LocalServer, ServerState, ServerTimes

MODELS = Path(os.environ.get("MYNAH_MODELS", Path.home() / ".cache" / "mynah" / "models"))
ROOT = Path(__file__).resolve().parents[3]
MODEL = MODELS / "smollm2-135m-instruct" / "model.gguf"
SYSTEM = ChatMessage(
    role="system",
    content="You are Mynah, a friendly bird who talks with people. You like seeds, songs and short answers. "
    "Answer in one or two short sentences of plain English.",
)
pytestmark = pytest.mark.models


def ask(text: str, max_tokens: int = 16) -> LlmRequest:
    messages = (SYSTEM, ChatMessage(role="user", content=text))
    return LlmRequest(task=LlmTask.PERSONA, messages=messages, max_tokens=max_tokens)


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until_dead(pid: int, within_s: float) -> float:
    began = time.monotonic()
    while is_alive(pid):
        assert time.monotonic() - began < within_s
        await asyncio.sleep(0.01)
    return time.monotonic() - began


@pytest.fixture
async def states():
    return []


@pytest.fixture
async def server(tmp_path, states):
    if not MODEL.is_file():
        pytest.skip(f"no model at {MODEL}")
    made = LocalServer(
        model_path=MODEL,
        log_path=tmp_path / "记录" / "llm.log",
        clock=SystemClock(),
        warm=lambda: [SYSTEM, ChatMessage(role="user", content="Hi")],
        on_state=states.append,
        times=ServerTimes(health_every_s=0.5, wait_s=90.0),
    )
    yield made
    await made.stop()


@pytest.fixture
async def client(server):
    made = LlmClient(server, clock=SystemClock(), ids=IdFactory())
    yield made
    await made.aclose()


async def test_life_of_the_server(server, states, client, emitted, note, tmp_path):
    stalls = []

    async def pulse() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            stalls.append(time.monotonic() - before - 0.005)

    pulsing = asyncio.create_task(pulse(), name="test:pulse")
    endpoint = await server.start()
    assert states == [ServerState.LOADING, ServerState.WARMING, ServerState.RUNNING]
    assert server.pid is not None
    if sys.platform == "linux":
        assert os.getpriority(os.PRIO_PROCESS, server.pid) >= os.getpriority(os.PRIO_PROCESS, 0) + 5
        assert endpoint.api_key.encode() not in command_line(server.pid)
    assert not (await client.check()).detail
    assert client.can_plan is False

    # Answers, from a warm prompt cache: sooner than to a prompt it has never seen.
    began = time.monotonic()
    cold = (ChatMessage(role="system", content="Birds of the sea fly over the grey water. " * 12), SYSTEM)
    stream = client.bind(None, emitted).stream(LlmRequest(task=LlmTask.GENERAL, messages=cold, max_tokens=4))
    await anext(stream)
    cold_s = time.monotonic() - began
    await stream.aclose()
    note("cold_first_token_s", cold_s)
    firsts = []
    rates = []
    for question in ("Who are you?", "What do you like to eat?", "Can you sing for me?", "Is it nice outside?"):
        began = time.monotonic()
        stream = client.bind(None, emitted).stream(ask(question, 24))
        pieces = [await anext(stream)]
        firsts.append(time.monotonic() - began)
        pieces += [piece async for piece in stream]
        rates.append(len(pieces) / (time.monotonic() - began - firsts[-1]))
        assert "".join(pieces).strip()
    note("first_token_s", statistics.median(firsts))
    note("tokens_per_s", statistics.median(rates))
    assert statistics.median(firsts) < cold_s

    # Cancelling frees the model.
    emitted.clear()
    for _ in range(5):
        stream = client.bind(None, emitted).stream(ask("Tell me a very long story about the sea.", 1000))
        await anext(stream)
        await stream.aclose()
    closed = [end.closed_s for end in emitted.of(LlmEnded)]
    note("closed_s_median", statistics.median(closed))
    assert max(closed) < 0.1
    async with httpx2.AsyncClient(trust_env=False) as http:
        headers = {"Authorization": f"Bearer {endpoint.api_key}"}
        address = endpoint.base_url.removesuffix("/v1")
        for _ in range(100):
            slots = (await http.get(f"{address}/slots", headers=headers)).json()
            if not any(slot["is_processing"] for slot in slots):
                break
            await asyncio.sleep(0.02)
        assert not any(slot["is_processing"] for slot in slots)
        assert {slot["n_ctx"] for slot in slots} == {4096}
        # Nobody without the key gets in.
        refused = await http.post(f"{address}/v1/chat/completions", json={"messages": []})
        assert refused.status_code == 401

    # A killed child costs one restart, and the very next turn works.
    old = server.pid
    os.kill(old, signal.SIGKILL)
    text = await client.bind(None, emitted).complete(ask("Are you still there?"))
    assert text
    assert server.pid not in (None, old)
    assert server.restart_count == 1
    assert ServerState.RESTARTING in states

    # Stopping leaves nothing behind.
    pid = server.pid
    began = time.monotonic()
    await server.stop()
    note("stop_s", time.monotonic() - began)
    assert time.monotonic() - began < 2
    assert not is_alive(pid)
    assert server.state is ServerState.STOPPED
    with pytest.raises(LlmUnavailable):
        await client.bind(None, emitted).complete(ask("Hello?"))
    pulsing.cancel()
    note("longest_stall_s", max(stalls))
    assert (tmp_path / "记录" / "llm.log").is_file()


async def test_stop_while_loading(server):
    server.begin()
    while server.pid is None:  # noqa: ASYNC110 - the child's process id has no event
        await asyncio.sleep(0.005)
    pid = server.pid
    began = time.monotonic()
    await server.stop()
    assert time.monotonic() - began < 2
    assert not is_alive(pid)


async def test_a_kill_in_the_middle_of_an_answer(server, client, emitted):
    await server.start()
    stream = client.bind(None, emitted).stream(ask("Tell me a very long story about the sea.", 1000))
    await anext(stream)
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(LlmUnavailable) as caught:
        async for _ in stream:
            pass
    assert caught.value.args[0] == "unreachable"
    assert await client.bind(None, emitted).complete(ask("Hello again."))


async def test_a_stopped_child_is_noticed_and_replaced(server, client, emitted, tmp_path):
    server._times = ServerTimes(health_every_s=0.1, health_timeout_s=1.0, unhealthy_after=2, wait_s=90.0)
    await server.start()
    old = server.pid
    os.kill(old, signal.SIGSTOP)
    await until_dead(old, 30)
    assert await client.bind(None, emitted).complete(ask("Hello."))


async def test_a_file_that_is_no_model(tmp_path, states):
    bad = tmp_path / "model.gguf"
    bad.write_bytes(b"GGUF but not really")
    server = LocalServer(
        model_path=bad,
        log_path=tmp_path / "llm.log",
        clock=SystemClock(),
        on_state=states.append,
        times=ServerTimes(back_off_s=(0.01,)),
    )
    try:
        with pytest.raises(LlmUnavailable) as caught:
            await server.start()
        assert caught.value.args[0] == "crashed"
        assert states[-1] is ServerState.FAILED
        assert server.restart_count == 1
        assert server.pid is None
        with pytest.raises(LlmUnavailable):
            await server.endpoint()
    finally:
        await server.stop()


PARENT = """
import asyncio, pathlib, sys
from orchestrator.clock import SystemClock
from orchestrator.llm.local_server import LocalServer
async def main():
    model, log = map(pathlib.Path, sys.argv[1:])
    server = LocalServer(model_path=model, log_path=log, clock=SystemClock())
    await server.start()
    print(server.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_the_child_does_not_outlive_its_parent(tmp_path):
    arguments = (sys.executable, "-c", PARENT, str(MODEL), str(tmp_path / "l.log"))
    parent = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    pid = int(await parent.stdout.readline())
    assert is_alive(pid)
    parent.kill()
    await parent.wait()
    await until_dead(pid, 3)
