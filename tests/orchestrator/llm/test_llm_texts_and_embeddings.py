"""What is said when there is no model, and vectors from an endpoint."""

from __future__ import annotations

import itertools

import pytest

from orchestrator.contracts.dialogue import LlmUnavailable
from orchestrator.llm.embeddings_client import EmbeddingsClient
from orchestrator.llm.failures import FailureCode
from orchestrator.llm.persona import language_of
from orchestrator.llm.unavailable import FailureNotice, OfflineFallback, code_of, explain, spoken


@pytest.mark.parametrize("code", list(FailureCode))
def test_every_failure_has_its_sentence_in_both_languages(code):
    assert language_of(spoken(code, "en")) == "en"
    assert language_of(spoken(code, "zh-CN")) == "zh"
    assert spoken(code, None) == spoken(code, "en")
    line = explain(code, "en", base_url="http://h/v1", model="m", models=("a", "b"))
    assert "\n" not in line
    assert "{" not in line


def test_a_failure_is_said_in_full_once():
    notice = FailureNotice()
    first = notice.sentence(FailureCode.UNREACHABLE, "en")
    again = notice.sentence(FailureCode.UNREACHABLE, "en")
    assert "settings" in first
    assert len(again) < len(first)
    assert notice.sentence(FailureCode.UNAUTHORISED, "zh") == spoken(FailureCode.UNAUTHORISED, "zh")
    notice.recovered()
    assert notice.sentence(FailureCode.UNAUTHORISED, "zh") == spoken(FailureCode.UNAUTHORISED, "zh")


def test_codes_come_from_the_exceptions_argument():
    assert code_of(LlmUnavailable("timeout").args[0]) is FailureCode.TIMEOUT
    assert code_of("something else") is FailureCode.BAD_ANSWER


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_a_model_the_lines_vary(language):
    fallback = OfflineFallback()
    lines = [fallback.line(language) for _ in range(8)]
    assert all(language_of(line) == language for line in lines)
    assert all(a != b for a, b in itertools.pairwise(lines))
    assert len(set(lines)) == 4


async def test_embeddings_in_order(endpoint, make_client):
    client = EmbeddingsClient(make_client(), model="embed-1")
    texts = ["x" * n for n in range(1, 71)]
    vectors = await client.embed(texts)
    assert vectors == [[float(n), 1.0] for n in range(1, 71)]
    assert all(type(value) is float for vector in vectors for value in vector)
    assert [request["model"] for request in endpoint.requests] == ["embed-1"] * 2
    assert await client.embed([]) == []


async def test_embeddings_that_are_none(endpoint, make_client):
    endpoint.embedding = lambda _text: []
    with pytest.raises(LlmUnavailable) as caught:
        await EmbeddingsClient(make_client()).embed(["a"])
    assert caught.value.args[0] == "bad_answer"
