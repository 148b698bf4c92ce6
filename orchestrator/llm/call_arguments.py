"""What is sent: the arguments of a chat call in the dialect the endpoint understands."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, ToolOffer
from orchestrator.llm.failures import FailureCode, LlmFailure

_SCHEMA_MODES = ("json_schema", "json_object", "prompt")
_TOOL_WORDS = ("tool", "function call", "functions")


class Dialect:
    """What one endpoint has refused; starts with the newest form and steps back at each refusal."""

    def __init__(self) -> None:
        """Assume that everything is understood."""
        self._schema_mode = 0
        self._tokens_name = "max_tokens"
        self._drops_temperature = False
        self._drops_stop = False
        self._drops_tools = False

    @property
    def knows_tools(self) -> bool:
        """Whether the endpoint has not refused tools yet."""
        return not self._drops_tools

    def adapt(self, refusal: str, *, has_schema: bool, has_tools: bool = False) -> bool:
        """Change the dialect so that `refusal` (the endpoint's message) does not come again; False if nothing fits."""
        text = refusal.lower()
        if has_tools and not self._drops_tools and any(word in text for word in _TOOL_WORDS):
            self._drops_tools = True
            return True
        if "max_completion_tokens" in text and self._tokens_name == "max_tokens":
            self._tokens_name = "max_completion_tokens"
            return True
        if "temperature" in text and not self._drops_temperature:
            self._drops_temperature = True
            return True
        if "stop" in text and not self._drops_stop:
            self._drops_stop = True
            return True
        if has_schema and self._schema_mode + 1 < len(_SCHEMA_MODES):
            self._schema_mode += 1
            return True
        if has_tools and not self._drops_tools:
            # Many endpoints refuse what they don't know without naming it.
            self._drops_tools = True
            return True
        return False

    def arguments(self, request: LlmRequest, *, model: str, max_tokens: int) -> dict[str, Any]:
        """Return the keyword arguments of the chat call; always streamed, since only a stream can be cancelled."""
        has_tools = bool(request.tools) and not self._drops_tools
        messages = [_message(message, with_tools=has_tools) for message in request.messages]
        arguments: dict[str, Any] = {"model": model, "stream": True, self._tokens_name: max_tokens}
        if not self._drops_temperature:
            arguments["temperature"] = request.temperature
        if request.stop and not self._drops_stop:
            arguments["stop"] = list(request.stop)
        if has_tools:
            arguments["tools"] = [_function(offer) for offer in request.tools]
            if not request.may_call_tools:
                arguments["tool_choice"] = "none"
        if request.schema is not None:
            mode = _SCHEMA_MODES[self._schema_mode]
            if mode == "json_schema":
                schema = {"name": str(request.task), "schema": dict(request.schema)}
                arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
            else:
                messages = _with_schema_note(request)
                if mode == "json_object":
                    arguments["response_format"] = {"type": "json_object"}
        arguments["messages"] = messages
        return arguments


def _function(offer: ToolOffer) -> dict[str, Any]:
    function = {"name": offer.name, "description": offer.description, "parameters": dict(offer.parameters)}
    return {"type": "function", "function": function}


def _message(message: ChatMessage, *, with_tools: bool) -> dict[str, Any]:
    """Return a message as it is sent; an endpoint without tools gets their results as plain notes."""
    if not with_tools:
        role = "system" if message.role == "tool" else message.role
        return {"role": role, "content": message.content}
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_use_id or "", "content": message.content}
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_uses:
        sent["tool_calls"] = [
            {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}
            for use in message.tool_uses
        ]
    return sent


def _with_schema_note(request: LlmRequest) -> list[dict[str, Any]]:
    note = "Answer with one JSON object and nothing else. It must match this JSON Schema:\n" + json.dumps(
        request.schema, ensure_ascii=False
    )
    head, *rest = request.messages or (ChatMessage(role="system", content=""),)
    if head.role == "system":
        first = ChatMessage(role="system", content=f"{head.content}\n\n{note}".strip())
        messages = [first, *rest]
    else:
        messages = [ChatMessage(role="system", content=note), head, *rest]
    return [{"role": message.role, "content": message.content} for message in messages]


def json_text(text: str) -> str:
    """Return the JSON object (or array) in `text`, without fences and words around it.

    Raises:
        LlmFailure: there is none (`bad_answer`).
    """
    decoder = json.JSONDecoder()
    for start, char in enumerate(text):
        if char in "{[":
            try:
                _, length = decoder.raw_decode(text[start:])
            except ValueError:
                continue
            return text[start : start + length]
    raise LlmFailure(FailureCode.BAD_ANSWER, "no JSON in the answer")
