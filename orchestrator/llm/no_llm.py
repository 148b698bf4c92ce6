"""The model of an app without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator

from orchestrator.contracts.dialogue import LlmRequest
from orchestrator.llm.failures import FailureCode, LlmFailure


class NoLlm:
    """The `Llm` where none is configured (`--llm none`)."""

    @property
    def is_configured(self) -> bool:
        """There is no model."""
        return False

    @property
    def can_plan(self) -> bool:
        """Nothing can be planned."""
        return False

    def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Raise `LlmFailure` with code `none` at once."""
        raise LlmFailure(FailureCode.NONE, str(request.task))

    async def complete(self, request: LlmRequest) -> str:
        """Raise `LlmFailure` with code `none`."""
        raise LlmFailure(FailureCode.NONE, str(request.task))

    def abort(self) -> None:
        """Do nothing: there is no call."""
