"""The smallest brain: every input goes to the persona. Used where no flows are loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.contracts.dialogue import LlmRequest, Message, TurnContext, TurnHeard, TurnInput


class PersonaBrain:
    """A `Brain` without rails, tasks or state."""

    def __init__(self, make_request: Callable[[TurnContext, TurnInput], LlmRequest]) -> None:
        """Ask the model what `make_request` builds."""
        self._make_request = make_request

    def begin(self, turn: TurnContext, user: TurnInput) -> PersonaTurn:
        """Start a turn."""
        return PersonaTurn(turn, user, self._make_request)

    def accepts_as_answer(self, text: str, language: str | None) -> bool:
        """No question ever runs."""
        return False

    def expected_answer(self) -> str | None:
        """No question ever runs."""
        return None

    def silence_timeout_s(self) -> float | None:
        """Silence means nothing."""
        return None

    def dump_state(self) -> Mapping[str, Any]:
        """There is no state."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """There is no state."""


class PersonaTurn:
    """One answer of the persona."""

    def __init__(
        self, turn: TurnContext, user: TurnInput, make_request: Callable[[TurnContext, TurnInput], LlmRequest]
    ) -> None:
        """Answer `user` within `turn`."""
        self._turn = turn
        self._user = user
        self._make_request = make_request

    async def run(self) -> None:
        """Stream the model's answer."""
        if self._user.kind != "user" or not self._user.text.strip():
            return
        request = self._make_request(self._turn, self._user)
        message = Message(text="", source="persona", language=self._user.language)
        await self._turn.reply.stream(self._turn.llm.stream(request), message)

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Nothing to fold in."""
        return {}
