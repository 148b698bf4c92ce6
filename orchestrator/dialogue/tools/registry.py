"""Which tools there are, and whether a call the model wrote makes sense."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from orchestrator.contracts.dialogue import ToolOffer, ToolUse
from orchestrator.contracts.wellformed import read_json
from orchestrator.dialogue.tools.spec import Tool, ToolRefused

_MOST_FAULTS = 3


class ToolRegistry:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Take `tools`. Raises `ValueError` for a double name or a broken schema."""
        self._tools: dict[str, Tool] = {}
        self._validators: dict[str, Draft202012Validator] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are called {tool.name}")
            schema = dict(tool.parameters)
            Draft202012Validator.check_schema(schema)
            self._tools[tool.name] = tool
            self._validators[tool.name] = Draft202012Validator(schema)

    @property
    def offers(self) -> tuple[ToolOffer, ...]:
        """How all tools are described to the model."""
        return tuple(tool.offer for tool in self._tools.values())

    def resolve(self, use: ToolUse) -> tuple[Tool, Mapping[str, Any]]:
        """Return the tool and its checked arguments.

        Raises:
            ToolRefused: there is no such tool, or the arguments are not what it takes.
        """
        tool = self._tools.get(use.name)
        if tool is None:
            near = difflib.get_close_matches(use.name, list(self._tools), n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(self._tools)}"
            raise ToolRefused(f"there is no tool {use.name[:60]!r}{hint}")
        try:
            args = read_json(use.arguments) if use.arguments.strip() else {}
        except ValueError as error:
            raise ToolRefused(f"the arguments can't be read: {error}") from error
        if not isinstance(args, dict):
            raise ToolRefused("the arguments must be a JSON object")
        faults = sorted(self._validators[tool.name].iter_errors(args), key=lambda fault: list(map(str, fault.path)))
        if faults:
            told = [f"{'.'.join(map(str, fault.path)) or 'arguments'}: {fault.message[:200]}" for fault in faults]
            raise ToolRefused("; ".join(told[:_MOST_FAULTS]))
        return tool, args
