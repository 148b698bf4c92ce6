"""The one way to talk to a language model: any OpenAI-compatible endpoint, streamed, cancellable at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask, ToolUse
from orchestrator.contracts.errors import GenerationCancelled, InputError
from orchestrator.contracts.events import LlmCallStarted, LlmEnded, LlmFirstToken, Payload
from orchestrator.contracts.ids import CallId, GenerationId, IdFactory
from orchestrator.contracts.wellformed import StreamMender, mend
from orchestrator.llm.call_arguments import Dialect, json_text
from orchestrator.llm.connection import Connection, connect_to
from orchestrator.llm.endpoint import Endpoint, EndpointSource
from orchestrator.llm.failures import FailureCode, LlmFailure
from orchestrator.llm.think import ThinkStripper
from orchestrator.llm.tokens import estimate_messages
from orchestrator.llm.tool_parts import ToolAssembler
from orchestrator.llm.unavailable import explain

log = logging.getLogger(__name__)

Emit = Callable[[Payload], None]
# Dialect changes a refusal can lead to; each is made once per endpoint.
_MAX_ATTEMPTS = 6
# Servers of a single model take any name; those with several list them.
_UNNAMED_MODEL = "default"
_RECONNECT_S = 0.05
_IDLE_SHARE = 0.6
THOUGHT_LIMIT = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmLimits:
    """Bounds of a call. `first_token_s` counts from sending; `idle_s` is the longest silence between two pieces.

    Pieces without words (thoughts) put the first word off, to `THOUGHT_LIMIT` times `first_token_s` at most.
    """

    connect_s: float = 3.0
    first_token_s: float = 20.0
    idle_s: float = 12.0
    default_max_tokens: int = 512

    @classmethod
    def of_patience(cls, patience_s: float) -> LlmLimits:
        """Return the bounds for a user who waits `patience_s` for the first word."""
        return cls(first_token_s=patience_s, idle_s=_IDLE_SHARE * patience_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmStatus:
    """Result of a probe. `code` is `ok` or a `FailureCode`; `model` the one that will be used."""

    code: str
    model: str = ""
    models: tuple[str, ...] = ()
    base_url: str = ""
    detail: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether calls can be expected to work."""
        return self.code == "ok"

    def message(self, language: str | None = "en") -> str:
        """Return one line for the user: what is wrong and what to do; empty when all is well."""
        if self.is_ok:
            return ""
        return explain(FailureCode(self.code), language, base_url=self.base_url, model=self.model, models=self.models)

    def require_ok(self) -> None:
        """Raise `InputError` (exit code 2) with one clear line if the model can't be used."""
        if not self.is_ok:
            raise InputError(f"llm_{self.code}", self.message(), part="llm")


class LlmClient:
    """Owns the connection to the model. Lives in the core loop; `bind` makes each turn's own door."""

    def __init__(
        self,
        source: EndpointSource,
        *,
        clock: Clock,
        ids: IdFactory,
        limits: LlmLimits | None = None,
        offers_tools: bool = False,
    ) -> None:
        """Talk to whatever endpoint `source` names at the time of a call; `offers_tools` lets its model call tools."""
        self._offers_tools = offers_tools
        self.limits = limits or LlmLimits()
        self.clock = clock
        self.ids = ids
        self._source = source
        self._endpoint: Endpoint | None = None
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._model = ""
        self._dialect = Dialect()
        self._calls: set[_Call] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def can_plan(self) -> bool:
        """Whether the model is capable of structured planning."""
        return self._source.can_plan

    @property
    def can_call_tools(self) -> bool:
        """Whether the model may be offered tools, and has not refused them."""
        return self._offers_tools and self._dialect.knows_tools

    @property
    def restarts(self) -> bool:
        """Whether one more try makes sense after a lost connection."""
        return self._source.restarts

    @property
    def model(self) -> str:
        """The model's name as far as known; empty before the first call to an endpoint that chooses it."""
        return self._model

    @property
    def dialect(self) -> Dialect:
        """What the present endpoint has refused so far."""
        return self._dialect

    def bind(self, generation_id: GenerationId | None, emit: Emit) -> BoundLlm:
        """Make the door for one answer; `emit` gets its `llm:*` payloads."""
        return BoundLlm(self, generation_id, emit)

    async def connect(self) -> Connection:
        """Return the connection to the endpoint of the moment, with a model chosen. Raises `LlmFailure`."""
        endpoint = await self._source.endpoint()
        async with self._connecting:
            connection = await self._connection_to(endpoint)
            if not self._model:
                models = await connection.list_models()
                self._model = models[0] if models else _UNNAMED_MODEL
        return connection

    async def check(self, *, probe: bool = False) -> LlmStatus:
        """Tell whether the endpoint is reachable, accepts the key and has the model. Never raises but for cancellation.

        A model the endpoint doesn't list may be an alias: only `probe` finds out, by asking for one token.
        """
        base_url = ""
        models: tuple[str, ...] = ()
        try:
            endpoint = await self._source.endpoint()
            base_url = endpoint.base_url
            async with asyncio.timeout(self.limits.connect_s + self.limits.first_token_s):
                connection = await self.connect()
                models = await connection.list_models()
                if probe and self._model not in models:
                    await self._probe()
        except (LlmFailure, TimeoutError) as error:
            failure = _as_failure(error)
            return LlmStatus(
                code=failure.code, model=self._model, models=models, base_url=base_url, detail=failure.detail
            )
        detail = "" if self._model in models or not models else f"{self._model} is not in the endpoint's list"
        return LlmStatus(code="ok", model=self._model, models=models, base_url=base_url, detail=detail)

    async def aclose(self) -> None:
        """Abort open calls and close the connections."""
        for call in list(self._calls):
            await call.stop()
        self._retire()
        if self._closing:
            await asyncio.wait(self._closing)

    def open_call(self, call: _Call) -> None:
        """Note a running call, so that `aclose` finds it."""
        self._calls.add(call)

    def end_call(self, call: _Call) -> None:
        """Forget a call that is over."""
        self._calls.discard(call)

    async def _connection_to(self, endpoint: Endpoint) -> Connection:
        if self._connection is None or endpoint != self._endpoint:
            self._retire()
            limits = self.limits
            # The socket may be silent for as long as our own, more exact bounds allow.
            answer_s = max(limits.first_token_s, limits.idle_s) + limits.connect_s
            self._connection = await connect_to(endpoint, connect_s=limits.connect_s, answer_s=answer_s)
            self._endpoint, self._model, self._dialect = endpoint, endpoint.model, Dialect()
        return self._connection

    def _retire(self) -> None:
        if self._connection is not None:
            task = asyncio.create_task(self._connection.aclose(), name="llm:retire")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._connection = None

    async def _probe(self) -> None:
        """Ask for one token where there is no list of models."""
        llm = self.bind(None, lambda _payload: None)
        hello = ChatMessage(role="user", content="Hi")
        await llm.complete(LlmRequest(task=LlmTask.GENERAL, messages=(hello,), max_tokens=1))


class BoundLlm:
    """The `Llm` of one answer. `abort` closes all its connections, wherever the caller waits.

    After a time limit its further calls fail at once: the user has waited for this answer as long as for any.
    """

    def __init__(self, client: LlmClient, generation_id: GenerationId | None, emit: Emit) -> None:
        """Serve the answer `generation_id`."""
        self._client = client
        self._generation_id = generation_id
        self._emit = emit
        self._calls: set[_Call] = set()
        self._is_aborted = False
        self._timeout: LlmFailure | None = None

    @property
    def is_configured(self) -> bool:
        """There is a model to ask."""
        return True

    @property
    def can_plan(self) -> bool:
        """Whether the model is capable of structured planning."""
        return self._client.can_plan

    @property
    def can_call_tools(self) -> bool:
        """Whether the model may be offered tools, and has not refused them."""
        return self._client.can_call_tools

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Yield text pieces as they come; closing the iterator or cancelling the task closes the connection.

        Raises:
            LlmFailure: the model can't be reached or failed; pieces yielded before stay valid. With CUT_SHORT they are
                all that the endpoint sent before it closed the stream, unfinished.
            GenerationCancelled: `abort` was called.
        """
        async with aclosing(self.converse(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    yield piece

    async def converse(self, request: LlmRequest) -> AsyncGenerator[str | ToolUse]:
        """Yield text pieces, then the tools the model wants called. Closing and errors as with `stream`."""
        if self._is_aborted:
            raise GenerationCancelled("aborted")
        if self._timeout is not None:
            raise self._timeout
        call = _Call(self._client, request, self._emit)
        self._calls.add(call)
        try:
            while (piece := await call.next_piece()) is not None:
                yield piece
            call.raise_failure()
        except LlmFailure as failure:
            if failure.code is FailureCode.TIMEOUT:
                self._timeout = failure
            raise
        finally:
            self._calls.discard(call)
            await call.stop()

    async def complete(self, request: LlmRequest) -> str:
        """Return the whole text; with a `schema`, the JSON in it. Raises as `stream`."""
        pieces: list[str] = []
        try:
            async for piece in self.stream(request):
                pieces.append(piece)
        except LlmFailure as failure:
            # JSON tells by itself whether it is whole.
            if failure.code is not FailureCode.CUT_SHORT or request.schema is None:
                raise
        text = "".join(pieces).strip()
        return text if request.schema is None else json_text(text)

    def abort(self) -> None:
        """Begin to close every connection of this answer and refuse new calls. Never waits."""
        self._is_aborted = True
        for call in self._calls:
            call.abort()


class _Call:
    """One request on its way. Its task reads the network, so that closing never depends on where the caller waits.

    The queue holds at most one answer (bounded by the token limit), so the task never waits for the caller.
    """

    def __init__(self, client: LlmClient, request: LlmRequest, emit: Emit) -> None:
        self._client = client
        self._request = request
        self._emit = emit
        self._id: CallId = client.ids.call()
        self._max_tokens = request.max_tokens or client.limits.default_max_tokens
        self._pieces: asyncio.Queue[str | ToolUse | None] = asyncio.Queue()
        self._failure: LlmFailure | None = None
        self._tokens = 0
        self._is_announced = False
        self._has_text = False
        self._cancelled_at_s: float | None = None
        self._task = asyncio.create_task(self._run(), name=f"llm:{self._id}")
        client.open_call(self)
        self._task.add_done_callback(self._on_done)

    async def next_piece(self) -> str | ToolUse | None:
        """Return the next text or tool call, or none at the end."""
        return await self._pieces.get()

    def raise_failure(self) -> None:
        """Raise what ended the call, if it was not the end of the text."""
        if self._failure is not None:
            raise self._failure
        if self._cancelled_at_s is not None:
            raise GenerationCancelled("aborted")

    def abort(self) -> None:
        """Begin to close the connection."""
        if not self._task.done() and self._cancelled_at_s is None:
            self._cancelled_at_s = self._client.clock.monotonic_s()
            self._task.cancel()

    async def stop(self) -> None:
        """Close the connection and wait until it is closed."""
        self.abort()
        if not self._task.done():
            await asyncio.wait({self._task})

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._client.end_call(self)
        self._pieces.put_nowait(None)
        if not task.cancelled() and task.exception() is not None:
            log.error("model call ended by a fault", exc_info=task.exception())
            self._failure = LlmFailure(FailureCode.BAD_ANSWER, type(task.exception()).__name__)

    async def _run(self) -> None:
        outcome = "cancelled"
        try:
            await self._answer()
            outcome = "ok"
        except (LlmFailure, TimeoutError) as error:
            outcome = "failed"
            self._failure = _as_failure(error)
            log.warning("model call failed: %s", self._failure.code)
            log.debug("model call failed: %s", self._failure.detail)
        finally:
            self._announce()
            closed_s = None
            if self._cancelled_at_s is not None:
                closed_s = self._client.clock.monotonic_s() - self._cancelled_at_s
            self._emit(LlmEnded(call_id=self._id, outcome=outcome, tokens=self._tokens, closed_s=closed_s))

    def _announce(self) -> None:
        if not self._is_announced:
            self._is_announced = True
            call = LlmCallStarted(
                call_id=self._id,
                task=str(self._request.task),
                model=self._client.model,
                prompt_tokens=estimate_messages(self._request.messages),
            )
            self._emit(call)

    async def _answer(self) -> None:
        """Read the whole answer, adapting to what the endpoint refuses. Raises `LlmFailure` or `TimeoutError`."""
        may_reconnect = self._client.restarts
        for _attempt in range(_MAX_ATTEMPTS):
            connection = await self._client.connect()
            self._announce()
            dialect = self._client.dialect
            try:
                await self._read(connection, dialect)
                return
            except LlmFailure as failure:
                if self._tokens:
                    raise
                if failure.refusal is not None:
                    has_schema, has_tools = self._request.schema is not None, bool(self._request.tools)
                    if not dialect.adapt(failure.refusal, has_schema=has_schema, has_tools=has_tools):
                        raise
                elif failure.code is FailureCode.UNREACHABLE and may_reconnect:
                    # The server of before may have crashed a moment ago; `connect` waits for its successor.
                    may_reconnect = False
                    await asyncio.sleep(_RECONNECT_S)
                else:
                    raise
        raise LlmFailure(FailureCode.BAD_ANSWER, "the endpoint refuses every form of the request")

    async def _read(self, connection: Connection, dialect: Dialect) -> None:
        limits = self._client.limits
        loop = asyncio.get_running_loop()
        stripper, mender = ThinkStripper(), StreamMender()
        tools = ToolAssembler()
        arguments = dialect.arguments(self._request, model=self._client.model, max_tokens=self._max_tokens)
        # An answer can't have more pieces than tokens; one that does comes from a broken server.
        max_pieces = 4 * self._max_tokens + 64
        count = told = 0
        is_whole = False
        began_s = loop.time()
        async with asyncio.timeout(limits.first_token_s) as deadline, connection.chat(arguments) as pieces:
            async for piece in pieces:
                until_s = loop.time() + limits.idle_s
                if count == 0 and not piece.text and not piece.tool_parts:
                    until_s = min(max(until_s, deadline.when() or 0.0), began_s + THOUGHT_LIMIT * limits.first_token_s)
                deadline.reschedule(until_s)
                is_whole = is_whole or piece.is_end
                told = max(told, piece.tokens)
                self._tokens = max(told, count)
                if not piece.text and not piece.tool_parts:
                    continue
                if count == 0:
                    self._emit(LlmFirstToken(call_id=self._id))
                count += 1
                self._tokens = max(told, count)
                tools.feed(piece.tool_parts)
                self._put(stripper.feed(mender.feed(piece.text)))
                if count > max_pieces:
                    is_whole = True
                    break
        self._put(stripper.feed(mender.flush()))
        self._put(stripper.flush())
        uses = tools.uses() if self._request.tools else ()
        if not self._has_text and not uses:
            raise LlmFailure(FailureCode.BAD_ANSWER, "an empty answer")
        if not is_whole:
            raise LlmFailure(FailureCode.CUT_SHORT, "the stream closed before the answer was whole")
        for use in uses:
            self._pieces.put_nowait(mend(use))

    def _put(self, text: str) -> None:
        if text:
            self._has_text = True
            self._pieces.put_nowait(text)


def _as_failure(error: LlmFailure | TimeoutError) -> LlmFailure:
    if isinstance(error, LlmFailure):
        return error
    return LlmFailure(FailureCode.TIMEOUT, "no answer in time")
