"""A model that never begins, stalls or breaks off: the real client over a scripted connection, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rigs.simulated_rig import Heard, converse, words_of

from orchestrator.clock import SystemClock
from orchestrator.contracts.commands import Command, SendText
from orchestrator.contracts.dialogue import LlmRequest
from orchestrator.contracts.ids import IdFactory
from orchestrator.llm import client as client_module
from orchestrator.llm.client import LlmClient, LlmLimits
from orchestrator.llm.connection import ChatPiece
from orchestrator.llm.endpoint import Endpoint, FixedEndpoint
from orchestrator.llm.failures import FailureCode, LlmFailure
from orchestrator.llm.unavailable import spoken

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HANGS, CLOSES, ENDS, BREAKS = "hangs", "closes", "ends", "breaks"
SAID = {"en": "Seven brave sailors crossed an ocean. Their captain trusted", "zh": "七个水手过了大海。船长只相信"}
REST = {"en": "only stars and winds.", "zh": "月亮和风。"}
ASKED = {"en": "Can you tell me something about the sea?", "zh": "你能说说大海吗？"}
GO_ON = {"en": "go on", "zh": "继续"}
OTHER = {"en": "And what about the mountains?", "zh": "那么山呢，你能说说吗？"}


@dataclass
class BreakingEndpoint:
    """A connection whose calls say something and then do what their script says; and the `Llm` over it."""

    script: Sequence[tuple[str, str]]
    sent: list[Mapping[str, Any]] = field(default_factory=list)
    is_configured: bool = True
    can_plan: bool = False

    def __post_init__(self) -> None:
        source = FixedEndpoint(Endpoint(base_url="http://127.0.0.1:9/v1", model="m", can_plan=False))
        self._client = LlmClient(source, clock=SystemClock(), ids=IdFactory("x"), limits=LlmLimits())

    async def list_models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass

    @asynccontextmanager
    async def chat(self, arguments: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[ChatPiece]]:
        text, end = self.script[len(self.sent)]
        self.sent.append(arguments)
        yield self._pieces(text, end)

    @staticmethod
    async def _pieces(text: str, end: str) -> AsyncIterator[ChatPiece]:
        yield ChatPiece(text="")
        for piece in text.split(" ") if " " in text else [text]:
            await asyncio.sleep(0.05)
            yield ChatPiece(text=f"{piece} " if piece and " " in text else piece)
        if end == HANGS:
            await asyncio.sleep(1e6)
        if end == BREAKS:
            raise LlmFailure(FailureCode.UNREACHABLE, "the connection is gone")
        if end == ENDS:
            yield ChatPiece(text="", is_end=True)

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        async for piece in self._client.bind(None, lambda _: None).stream(request):
            yield piece

    async def complete(self, request: LlmRequest) -> str:
        return await self._client.bind(None, lambda _: None).complete(request)


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(endpoint: BreakingEndpoint, lines: Mapping[float, str], length_s: float) -> Heard:
        async def connected(*_: object, **__: object) -> BreakingEndpoint:
            return endpoint

        monkeypatch.setattr(client_module, "connect_to", connected)
        at: dict[float, Command] = {at_s: SendText(text=line) for at_s, line in lines.items()}
        return converse(tmp_path, {}, length_s=length_s, llm=endpoint, at=at)  # type: ignore[arg-type]

    return run


def whole_words(heard: Heard) -> list[str]:
    return [word for word, part in heard.words() if part >= 0.9]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_model_that_never_begins_is_said_once_and_the_next_turn_works(talk: Any, language: str) -> None:
    endpoint = BreakingEndpoint([("", HANGS), (SAID[language] + REST[language], ENDS)])
    heard = talk(endpoint, {1.0: ASKED[language], 33.0: OTHER[language]}, 44.0)
    limit_s = LlmLimits().first_token_s
    (error,) = heard.of("app:error")
    assert error["payload"]["message"] == spoken(FailureCode.TIMEOUT, language)
    assert error["t"] - heard.begin_s <= 1.0 + limit_s + 0.5
    assert heard.final_states() == ["FAILED", "COMPLETED"]
    assert [p["status"] for p in heard.answers()] == ["failed", "completed"]
    said = whole_words(heard)
    failure = words_of(error["payload"]["message"])
    assert said[: len(failure)] == failure and len(said) > len(failure)
    assert len(endpoint.sent) == 2


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("end", "code"), [(HANGS, FailureCode.TIMEOUT), (BREAKS, FailureCode.UNREACHABLE)])
def test_a_model_that_stalls_is_said_once_and_can_go_on(talk: Any, language: str, end: str, code: FailureCode) -> None:
    endpoint = BreakingEndpoint([(SAID[language], end), (REST[language], ENDS)])
    heard = talk(endpoint, {1.0: ASKED[language], 30.0: GO_ON[language]}, 40.0)
    (error,) = heard.payloads("app:error")
    assert error["message"] == spoken(code, language)
    assert heard.final_states() == ["FAILED", "COMPLETED"]
    assert [p["status"] for p in heard.answers()] == ["failed", "completed"], "no pretence of an answer"
    first = words_of(SAID[language].split("." if language == "en" else "。")[0])
    assert whole_words(heard) == first + words_of(error["message"]) + words_of(REST[language])
    assert len(endpoint.sent) == 2, "one call goes on"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_stream_that_closes_early_is_an_answer_cut_short(talk: Any, language: str) -> None:
    endpoint = BreakingEndpoint([(SAID[language], CLOSES), (REST[language], ENDS)])
    heard = talk(endpoint, {1.0: ASKED[language], 16.0: GO_ON[language]}, 26.0)
    (error,) = heard.payloads("app:error")
    assert (error["code"], error["message"]) == ("llm_cut_short", spoken(FailureCode.CUT_SHORT, language))
    first, rest = heard.answers()
    assert (first["status"], first["text"]) == ("interrupted", SAID[language])
    assert (rest["status"], rest["text"]) == ("completed", REST[language])
    assert whole_words(heard) == words_of(SAID[language]) + words_of(error["message"]) + words_of(REST[language])
    assert len(endpoint.sent) == 2, "one call goes on"
    assert endpoint.sent[1]["messages"][-2]["content"] == SAID[language]
