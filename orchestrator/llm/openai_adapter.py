"""The one module that knows the `openai` package. Importing it takes about a second: see `connection.load_adapter`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from orchestrator.llm.connection import ChatPiece, ToolPart
from orchestrator.llm.endpoint import Endpoint
from orchestrator.llm.failures import FailureCode, LlmFailure

_NO_LIST_STATUS = (404, 405, 501)
_UNKNOWN_MODEL_WORDS = ("not found", "does not exist", "unknown", "invalid", "no such", "not exist")
_TOO_LONG_WORDS = ("context length", "context size", "context window", "exceed_context", "too many tokens", "too long")


class OpenAiConnection:
    """A connection pool to one endpoint. Every error but cancellation and our own timeouts is an `LlmFailure`."""

    def __init__(self, endpoint: Endpoint, *, connect_s: float, answer_s: float) -> None:
        """Open nothing yet; `answer_s` bounds the silence of the socket."""
        timeout = httpx2.Timeout(answer_s, connect=connect_s)
        self._openai = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAsyncHttpxClient(
                timeout=timeout,
                # A proxy set for the machine must not come between the app and its own server.
                trust_env=not endpoint.is_loopback,
                # Plain HTTP needs no certificates, and reading them blocks the loop for 0.1 s.
                verify=endpoint.base_url.startswith("https:"),
                event_hooks={"response": [_watch_for_end]},
            ),
        )

    async def list_models(self) -> tuple[str, ...]:
        """Return the listed names; empty if the endpoint has no list."""
        with _mapped():
            try:
                page = await self._openai.models.list()
            except openai.APIStatusError as error:
                if error.status_code in _NO_LIST_STATUS:
                    return ()
                raise
            return tuple(model.id for model in page.data or ())

    @asynccontextmanager
    async def chat(self, arguments: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[ChatPiece]]:
        """Send a streamed chat call; leaving the context closes the response, whatever is still to come."""
        with _mapped():
            async with await self._openai.chat.completions.create(**arguments) as stream:
                yield _pieces(stream)

    async def embed(self, *, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in their order."""
        with _mapped():
            answer = await self._openai.embeddings.create(model=model, input=list(texts), encoding_format="float")
            rows = sorted(answer.data or (), key=lambda row: row.index)
        if len(rows) != len(texts) or any(not row.embedding for row in rows):
            raise LlmFailure(FailureCode.BAD_ANSWER, f"{len(rows)} vectors for {len(texts)} texts")
        return [[float(value) for value in row.embedding] for row in rows]

    async def aclose(self) -> None:
        """Close all connections."""
        await self._openai.close()


class _WatchedBody(httpx2.AsyncByteStream):
    """The body of a response that knows whether the line that ends a stream of events has come."""

    _END = b"data:[DONE]"

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner
        self._tail = b""

    @property
    def has_end(self) -> bool:
        return self._tail.endswith(self._END)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._tail = (self._tail + b"".join(part.split()))[-len(self._END) :]
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _watch_for_end(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _WatchedBody(response.stream)


async def _pieces(stream: openai.AsyncStream[openai.types.chat.ChatCompletionChunk]) -> AsyncIterator[ChatPiece]:
    async for chunk in stream:
        tokens = (chunk.usage.completion_tokens or 0) if chunk.usage is not None else 0
        choice = chunk.choices[0] if chunk.choices else None
        if choice is None or choice.delta is None:
            yield ChatPiece(text="", tokens=tokens)
        else:
            yield ChatPiece(
                text=choice.delta.content or "",
                tokens=tokens,
                tool_parts=tuple(_tool_parts(choice.delta)),
                is_end=choice.finish_reason is not None,
            )
    body = stream.response.stream
    if isinstance(body, _WatchedBody) and body.has_end:
        yield ChatPiece(text="", is_end=True)


def _tool_parts(delta: openai.types.chat.chat_completion_chunk.ChoiceDelta) -> Iterator[ToolPart]:
    for place, part in enumerate(delta.tool_calls or ()):
        function = part.function
        # Some servers leave the index out; then calls come whole, in one piece each.
        index = part.index if isinstance(part.index, int) else place
        yield ToolPart(
            index=index,
            id=part.id or "",
            name=(function.name or "") if function is not None else "",
            arguments=(function.arguments or "") if function is not None else "",
        )


@contextmanager
def _mapped() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise
    except (openai.OpenAIError, httpx2.HTTPError, OSError, ValueError) as error:
        raise failure_of(error) from error


def _of_status(error: openai.APIStatusError) -> FailureCode:
    text = error.message.lower()
    if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
        return FailureCode.UNAUTHORISED
    if isinstance(error, openai.RateLimitError):
        return FailureCode.RATE_LIMITED
    if isinstance(error, openai.NotFoundError):
        return FailureCode.MODEL_UNKNOWN if "model" in text else FailureCode.UNREACHABLE
    if error.status_code in (408, 504):
        return FailureCode.TIMEOUT
    if any(words in text for words in _TOO_LONG_WORDS):
        return FailureCode.TOO_LONG
    if error.status_code < 500 and "model" in text and any(words in text for words in _UNKNOWN_MODEL_WORDS):
        return FailureCode.MODEL_UNKNOWN
    return FailureCode.SERVER_ERROR


def failure_of(error: Exception) -> LlmFailure:
    """Map an error of the package to a failure with a code."""
    detail = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    if isinstance(error, openai.APIStatusError):
        is_form = isinstance(error, (openai.BadRequestError, openai.UnprocessableEntityError))
        # That tools are not known is told with all kinds of status.
        is_form = is_form or (error.status_code in (404, 500, 501) and "tool" in error.message.lower())
        return LlmFailure(_of_status(error), detail, refusal=error.message if is_form else None)
    if isinstance(error, openai.APITimeoutError):
        code = FailureCode.UNREACHABLE if isinstance(error.__cause__, httpx2.ConnectTimeout) else FailureCode.TIMEOUT
        return LlmFailure(code, detail)
    if isinstance(error, (openai.APIConnectionError, httpx2.TransportError, OSError)):
        return LlmFailure(FailureCode.UNREACHABLE, detail)
    if isinstance(error, (openai.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError)):
        return LlmFailure(FailureCode.BAD_ANSWER, detail)
    if isinstance(error, openai.APIError):
        return LlmFailure(FailureCode.SERVER_ERROR, detail)
    return LlmFailure(FailureCode.BAD_ANSWER, detail)
