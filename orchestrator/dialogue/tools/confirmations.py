"""What waits for the user's yes. Program rules decide what is a yes; the model has no say in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Brain, Message, PendingTurn, TurnContext, TurnHeard, TurnInput
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.ports import PageOpener
from orchestrator.flows.model import Slot
from orchestrator.generation import Generations
from orchestrator.tasks.extraction.extract import Extraction, extract

_VALID_S = 120.0
_OPEN_LIMIT_S = 15.0
_YES_NO = Slot(id="confirmation", type="boolean")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    url: str
    asked_by: GenerationId
    asked_at_s: float
    language: str

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or "?"


class Confirmations:
    """The one question that may be open: shall this page be opened?

    It is open while the answer that asks it is the newest one, for two minutes, and only if some of it was heard.
    """

    def __init__(self, *, opener: PageOpener, clock: Clock, generations: Generations) -> None:
        """Open confirmed pages with `opener`."""
        self._opener = opener
        self._clock = clock
        self._generations = generations
        self._pending: _Pending | None = None

    def ask(self, url: str, *, asked_by: GenerationId, language: str) -> str:
        """Note that the user is asked by the answer `asked_by`, and return the question."""
        self._pending = _Pending(url=url, asked_by=asked_by, asked_at_s=self._clock.monotonic_s(), language=language)
        host = self._pending.host
        return f"要打开{host}吗？" if language == "zh" else f"Shall I open {host}?"

    def verdict(self, text: str, language: str | None) -> Extraction | None:
        """Return the yes or no that `text` is to the open question; None without a question or a clear answer."""
        pending = self._heard()
        if pending is None or not text.strip():
            return None
        found = extract(_YES_NO, text, now=self._clock.wall(), language=language or pending.language)
        return found if found is not None and found.is_strict else None

    @property
    def is_open(self) -> bool:
        """Whether the question was asked and can still be answered."""
        return self._heard() is not None

    def take(self) -> tuple[str, str]:
        """Close the question and return address and host. Raises `LookupError` if there is none."""
        pending, self._pending = self._pending, None
        if pending is None:
            raise LookupError("no question is open")
        return pending.url, pending.host

    def drop(self) -> None:
        """Close the question: the user spoke of something else."""
        self._pending = None

    async def open(self, url: str) -> str:
        """Open a confirmed page. Raises `OSError` if nothing could."""
        if not await self._opener.open(url):
            raise OSError("no browser could be started")
        return url

    def _heard(self) -> _Pending | None:
        pending = self._pending
        if pending is None or self._clock.monotonic_s() - pending.asked_at_s > _VALID_S:
            return None
        asker = self._generations.get(pending.asked_by)
        return pending if asker is not None and asker.sounded else None


class ConfirmingBrain:
    """A `Brain` that takes the yes or no to an open question itself and leaves the rest to the brain within."""

    def __init__(self, inner: Brain, confirmations: Confirmations) -> None:
        """Wrap `inner`."""
        self._inner = inner
        self._confirmations = confirmations

    def begin(self, turn: TurnContext, user: TurnInput) -> PendingTurn:
        """Start a turn; any other words than yes or no close the question."""
        verdict = self._confirmations.verdict(user.text, user.language) if user.kind == "user" else None
        if verdict is None:
            if user.kind == "user":
                self._confirmations.drop()
            return self._inner.begin(turn, user)
        return _ConfirmedTurn(self._inner, self._confirmations, turn, user, verdict)

    def accepts_as_answer(self, text: str, language: str | None) -> bool:
        """Whether an open question takes `text`; a yes to it is no mere "mm-hm"."""
        return self._confirmations.verdict(text, language) is not None or self._inner.accepts_as_answer(text, language)

    def expected_answer(self) -> str | None:
        """A yes or no where a page waits for it."""
        return "boolean" if self._confirmations.is_open else self._inner.expected_answer()

    def silence_timeout_s(self) -> float | None:
        """As the brain within."""
        return self._inner.silence_timeout_s()

    def dump_state(self) -> Mapping[str, Any]:
        """As the brain within: an open question does not outlive the program."""
        return self._inner.dump_state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """As the brain within."""
        self._inner.load_state(state)


class _ConfirmedTurn:
    """Does what the user agreed to, says so, and answers what else they said."""

    def __init__(
        self, inner: Brain, confirmations: Confirmations, turn: TurnContext, user: TurnInput, verdict: Extraction
    ) -> None:
        self._inner = inner
        self._confirmations = confirmations
        self._turn = turn
        self._user = user
        self._verdict = verdict
        self._next: PendingTurn | None = None

    async def run(self) -> None:
        """Open the page or don't."""
        url, host = self._confirmations.take()
        chinese = self._user.language == "zh" or any("\u4e00" <= char <= "\u9fff" for char in self._user.text)
        if self._verdict.value:
            text = await self._open(url, host, chinese)
        else:
            text = "好，不打开。" if chinese else "All right, I won't."
        language = "zh" if chinese else "en"
        await self._turn.reply.say(Message(text=text, source="system", language=language))
        if self._verdict.rest:
            self._next = self._inner.begin(self._turn, replace(self._user, text=self._verdict.rest))
            await self._next.run()

    async def _open(self, url: str, host: str, chinese: bool) -> str:
        try:
            await self._turn.effects.run(
                key=f"{self._turn.generation_id}:open_page:{self._turn.now.isoformat()}",
                name="open_page",
                args={"url": url},
                effect=self._opening(url),
                timeout_s=_OPEN_LIMIT_S,
            )
        except GenerationCancelled:
            raise
        except Exception:  # noqa: BLE001 - whatever kept the browser from starting, the user hears the same
            return f"{host}打不开。" if chinese else f"I couldn't open {host}."
        return f"好，正在打开{host}。" if chinese else f"Opening {host}."

    def _opening(self, url: str) -> Callable[[], Any]:
        return lambda: self._confirmations.open(url)

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        """Nothing of it belongs to the brain's state but what else was said."""
        return self._next.settle(heard) if self._next is not None else self._inner.dump_state()
