"""Puts the tool calls of a streamed answer together from their parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.contracts.dialogue import ToolUse
from orchestrator.llm.connection import ToolPart
from orchestrator.llm.failures import FailureCode, LlmFailure

MOST_CALLS = 16
MOST_ARGUMENT_CHARS = 20_000


@dataclass(slots=True)
class _Building:
    id: str
    name: str = ""
    arguments: str = ""


class ToolAssembler:
    """Collects parts in the order they come. Bounded: a server that floods is a broken one."""

    def __init__(self) -> None:
        """Start empty."""
        self._calls: list[_Building] = []
        self._by_index: dict[int, _Building] = {}

    def feed(self, parts: Iterable[ToolPart]) -> None:
        """Add parts.

        Raises:
            LlmFailure: there are too many or too long calls (`bad_answer`).
        """
        for part in parts:
            call = self._by_index.get(part.index)
            # Servers that send whole calls may give all of them the same index.
            if call is None or (part.id and call.id and part.id != call.id):
                call = _Building(id=part.id)
                self._by_index[part.index] = call
                self._calls.append(call)
            call.id = call.id or part.id
            # The name comes once; a server that repeats it with every part does not mean a longer name.
            if part.name and part.name != call.name:
                call.name += part.name
            call.arguments += part.arguments
            if len(self._calls) > MOST_CALLS or len(call.arguments) > MOST_ARGUMENT_CHARS:
                raise LlmFailure(FailureCode.BAD_ANSWER, "too many or too long tool calls")

    def uses(self) -> tuple[ToolUse, ...]:
        """Return the calls that have a name; a missing id is made up."""
        named = [call for call in self._calls if call.name]
        return tuple(
            ToolUse(id=call.id or f"call_{number}", name=call.name, arguments=call.arguments)
            for number, call in enumerate(named, start=1)
        )
