"""Why a language model did not answer, as one closed list of codes."""

from __future__ import annotations

from enum import StrEnum

from orchestrator.contracts.dialogue import LlmUnavailable


class FailureCode(StrEnum):
    """What went wrong; `orchestrator.llm.unavailable` has the sentences."""

    NONE = "none"
    STARTING = "starting"
    CRASHED = "crashed"
    UNREACHABLE = "unreachable"
    UNAUTHORISED = "unauthorised"
    MODEL_UNKNOWN = "model_unknown"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    CUT_SHORT = "cut_short"
    TOO_LONG = "too_long"
    SERVER_ERROR = "server_error"
    BAD_ANSWER = "bad_answer"


class LlmFailure(LlmUnavailable):
    """A model call that failed. `detail` is for logs and the inspector, never spoken.

    `refusal` is the endpoint's message when it found the form of the request wrong, so that another form may work.
    """

    def __init__(self, code: FailureCode, detail: str = "", *, refusal: str | None = None) -> None:
        """Keep the code (also `args[0]`) and a technical detail."""
        super().__init__(str(code))
        self.code = code
        self.detail = detail
        self.refusal = refusal

    def __str__(self) -> str:
        """Code and detail in one line."""
        return f"{self.code}: {self.detail}" if self.detail else str(self.code)
