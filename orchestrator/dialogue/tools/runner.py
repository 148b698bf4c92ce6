"""Runs the tools of one answer, and the model with them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeGuard, TypeVar

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import (
    ChatMessage,
    Effects,
    EffectUncertain,
    Llm,
    LlmRequest,
    LlmTask,
    LlmUnavailable,
    Reminders,
    ToolCallingLlm,
    ToolUse,
)
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import Payload
from orchestrator.contracts.wellformed import mend
from orchestrator.dialogue.tool_results import ToolResultLost, ToolResults
from orchestrator.dialogue.tools.registry import ToolRegistry
from orchestrator.dialogue.tools.spec import Tool, ToolAnswer, ToolRefused, ToolScope
from orchestrator.generation import Generation
from orchestrator.llm.failures import FailureCode, LlmFailure
from orchestrator.llm.persona import language_of
from orchestrator.llm.wrapped import WrappedLlm

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_ROUNDS = 4
"""How often one answer may go back to the model with results; after that it must answer with words."""
MOST_CALLS_A_ROUND = 4
_RESULT_CHARS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBox:
    """The tools of the running program; makes each answer's own model. `post` puts an event on the bus."""

    registry: ToolRegistry
    results: ToolResults
    clock: Clock
    post: Callable[[Payload], bool]

    def with_tools(self, llm: Llm, *, generation: Generation, effects: Effects, reminders: Reminders) -> Llm:
        """Return `llm` so that it can call tools, or as it is if it can't."""
        if not _calls_tools(llm):
            return llm
        return ToolUsingLlm(llm, AnswerTools(self, generation, effects, reminders), self.registry)


def _calls_tools(llm: Llm) -> TypeGuard[ToolCallingLlm]:
    return bool(getattr(llm, "can_call_tools", False))


class AnswerTools:
    """Runs tools for one answer. A mistake of the model or a failure becomes an error result, never an exception."""

    def __init__(self, box: ToolBox, generation: Generation, effects: Effects, reminders: Reminders) -> None:
        """Bind to `generation`."""
        self._box = box
        self._generation = generation
        self._effects = effects
        self._reminders = reminders
        # Seeded runs hand out the same ids again, over the same store.
        self._began = box.clock.wall().isoformat()

    async def run(self, use: ToolUse, *, language: str) -> ToolAnswer:
        """Run one call and return what the model is to know of it. Raises only for a cancelled answer."""
        scope = ToolScope(
            generation_id=self._generation.generation_id,
            now=self._box.clock.wall,
            reminders=self._reminders,
            post=self._box.post,
            language=language,
        )
        try:
            tool, args = self._box.registry.resolve(use)
            run = self._write if tool.effect == "write" else self._read
            return await run(tool, scope, args)
        except GenerationCancelled:
            raise
        except ToolRefused as refusal:
            return ToolAnswer(value={"error": str(refusal)})
        except TimeoutError:
            return ToolAnswer(value={"error": "it took too long and was broken off"})
        except EffectUncertain:
            return ToolAnswer(value={"error": "nobody knows whether this was done; do not try again"})
        except ToolResultLost:
            return ToolAnswer(value={"error": "the result was lost"})
        except Exception as error:
            log.warning("the tool %s failed: %s", use.name[:60], type(error).__name__)
            return ToolAnswer(value={"error": f"it failed: {type(error).__name__}"})

    async def _write(self, tool: Tool, scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
        async def effect() -> dict[str, Any]:
            return _packed(await tool.run(scope, args))

        packed = await self._effects.run(
            key=self._key(tool, args), name=tool.name, args=args, effect=effect, timeout_s=tool.timeout_s
        )
        return _unpacked(packed)

    async def _read(self, tool: Tool, scope: ToolScope, args: Mapping[str, Any]) -> ToolAnswer:
        self._generation.check()
        await self._generation.confirmed.wait()
        self._generation.check()
        results = self._box.results
        call = results.begin(self._generation, name=tool.name, args=args, effect="read")
        try:
            async with asyncio.timeout(tool.timeout_s):
                packed = _packed(await tool.run(scope, args))
        except Exception as error:
            results.finish(call, ok=False, error=error)
        else:
            results.finish(call, ok=True, value=packed)
        finally:
            # Cancelled while it ran: there is no result, and nobody waits.
            results.give_up(call)
        return _unpacked(await call.answer)

    def _key(self, tool: Tool, args: Mapping[str, Any]) -> str:
        """Return the same key for the same call in the same answer: models repeat themselves."""
        text = self._began + json.dumps(args, ensure_ascii=False, sort_keys=True)
        return f"{self._generation.generation_id}:{tool.name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _packed(answer: ToolAnswer) -> dict[str, Any]:
    value = mend(json.loads(json.dumps(answer.value, ensure_ascii=False, default=str)))
    return {"value": value, "spoken": answer.spoken, "ends_answer": answer.ends_answer}


def _unpacked(packed: Any) -> ToolAnswer:
    known = packed if isinstance(packed, dict) else {}
    return ToolAnswer(
        value=known.get("value"),
        spoken=str(known.get("spoken") or ""),
        ends_answer=bool(known.get("ends_answer")),
    )


class ToolUsingLlm(WrappedLlm[ToolCallingLlm]):
    """The `Llm` of one answer with tools: a free answer may call them in between; only its words come out."""

    def __init__(self, inner: ToolCallingLlm, tools: AnswerTools, registry: ToolRegistry) -> None:
        """Let `inner` call `tools`."""
        super().__init__(inner)
        self._tools = tools
        self._registry = registry

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Yield the words of the answer; between them the model may call tools. Raises `LlmUnavailable`."""
        if request.task is not LlmTask.PERSONA or not self._inner.can_call_tools:
            async with aclosing(_as_generator(self._inner.stream(request))) as pieces:
                async for piece in pieces:
                    yield piece
            return
        async with aclosing(self._converse(request)) as words:
            async for word in words:
                yield word

    async def complete(self, request: LlmRequest) -> str:
        """Return the whole text. Raises `LlmUnavailable`."""
        if request.task is not LlmTask.PERSONA:
            return await self._inner.complete(request)
        return "".join([piece async for piece in self.stream(request)]).strip()

    async def _converse(self, request: LlmRequest) -> AsyncGenerator[str]:
        language = _language_of(request)
        messages = request.messages
        unsaid = ""
        before = ""
        for number in range(MOST_ROUNDS + 1):
            may_call = number < MOST_ROUNDS
            asked = replace(request, messages=messages, tools=self._registry.offers, may_call_tools=may_call)
            said = ""
            uses: list[ToolUse] = []
            try:
                async with aclosing(_as_generator(self._inner.converse(asked))) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, ToolUse):
                            uses.append(piece)
                            continue
                        if not said and before and not before[-1].isspace():
                            yield " "
                        said += piece
                        yield piece
            except LlmUnavailable:
                # What was done is done: the user is to hear of it even if the model has no words for it.
                if said or not unsaid:
                    raise
                yield unsaid
                return
            before = said or before
            unsaid = "" if said.strip() else unsaid
            if not uses or not may_call:
                if unsaid:
                    yield unsaid
                elif not before.strip():
                    raise LlmFailure(FailureCode.BAD_ANSWER, "tool calls and no words")
                return
            answers = [await self._answer_to(place, use, language) for place, use in enumerate(uses)]
            final = [answer.spoken for answer in answers if answer.ends_answer]
            if final:
                yield (" " if before and not before[-1].isspace() else "") + " ".join(final)
                return
            unsaid = " ".join(answer.spoken for answer in answers if answer.spoken)
            messages = (*messages, *_exchange(said, uses, answers))

    async def _answer_to(self, place: int, use: ToolUse, language: str) -> ToolAnswer:
        if place >= MOST_CALLS_A_ROUND:
            return ToolAnswer(value={"error": f"not more than {MOST_CALLS_A_ROUND} calls at a time"})
        return await self._tools.run(use, language=language)


def _exchange(said: str, uses: list[ToolUse], answers: list[ToolAnswer]) -> tuple[ChatMessage, ...]:
    """Return what the model wrote and what its tools gave, as messages."""
    results = [
        ChatMessage(
            role="tool",
            content=json.dumps(answer.value, ensure_ascii=False, default=str)[:_RESULT_CHARS],
            tool_use_id=use.id,
        )
        for use, answer in zip(uses, answers, strict=True)
    ]
    return (ChatMessage(role="assistant", content=said, tool_uses=tuple(uses)), *results)


def _language_of(request: LlmRequest) -> str:
    words = next((m.content for m in reversed(request.messages) if m.role == "user"), "")
    return language_of(words)


async def _as_generator(pieces: AsyncIterator[T]) -> AsyncGenerator[T]:
    try:
        async for piece in pieces:
            yield piece
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()
