"""Why a language model did not answer, as one closed list of codes, and the mapping of the client library's errors."""

from __future__ import annotations

import json
from enum import StrEnum

import httpx2
import openai

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
    TOO_LONG = "too_long"
    SERVER_ERROR = "server_error"
    BAD_ANSWER = "bad_answer"


class LlmFailure(LlmUnavailable):
    """A model call that failed. `detail` is for logs and the inspector, never spoken."""

    def __init__(self, code: FailureCode, detail: str = "") -> None:
        """Keep the code (also `args[0]`) and a technical detail."""
        super().__init__(str(code))
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        """Code and detail in one line."""
        return f"{self.code}: {self.detail}" if self.detail else str(self.code)


_UNKNOWN_MODEL_WORDS = ("not found", "does not exist", "unknown", "invalid", "no such", "not exist")
_TOO_LONG_WORDS = ("context length", "context size", "context window", "exceed_context", "too many tokens", "too long")


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
    """Map an error of the client library, or a timeout of ours, to a failure with a code."""
    detail = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    if isinstance(error, LlmFailure):
        return error
    if isinstance(error, openai.APIStatusError):
        return LlmFailure(_of_status(error), detail)
    if isinstance(error, openai.APITimeoutError):
        code = FailureCode.UNREACHABLE if isinstance(error.__cause__, httpx2.ConnectTimeout) else FailureCode.TIMEOUT
        return LlmFailure(code, detail)
    if isinstance(error, (openai.APIConnectionError, httpx2.TransportError, OSError)) and not isinstance(
        error, TimeoutError
    ):
        return LlmFailure(FailureCode.UNREACHABLE, detail)
    if isinstance(error, TimeoutError):
        return LlmFailure(FailureCode.TIMEOUT, detail)
    if isinstance(error, (openai.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError)):
        return LlmFailure(FailureCode.BAD_ANSWER, detail)
    if isinstance(error, openai.APIError):
        return LlmFailure(FailureCode.SERVER_ERROR, detail)
    return LlmFailure(FailureCode.BAD_ANSWER, detail)
