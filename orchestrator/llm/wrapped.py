"""What stands around a model says of it what the model says of itself."""

from __future__ import annotations

from typing import Generic, TypeVar

from orchestrator.contracts.dialogue import Llm

L = TypeVar("L", bound=Llm)


class WrappedLlm(Generic[L]):
    """Base of an `Llm` around another: what it is able to do is what the inner one is able to do."""

    def __init__(self, inner: L) -> None:
        """Stand around `inner`."""
        self._inner = inner

    @property
    def is_configured(self) -> bool:
        """Whether there is a model to ask at all."""
        return self._inner.is_configured

    @property
    def can_plan(self) -> bool:
        """Whether the model is capable of structured planning."""
        return self._inner.can_plan
