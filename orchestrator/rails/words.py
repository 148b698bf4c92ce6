"""The words of a step: predefined text, a variable, or the model; and the single call's text while it streams."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from orchestrator.rails.answers import Combined, clean_message, clean_stream, drop_message_label, parse_combined_head
from orchestrator.rails.env import BoundEvaluator
from orchestrator.rails.model import Variant
from orchestrator.rails.prompts import eligible_language
from orchestrator.rails.state import EvalFailed

_VARIABLE = re.compile(r"\$(?P<plain>\w+)|vars\.(?P<dotted>\w+)|\{\{\s*vars\.(?P<braced>\w+)\s*\}\}")


def predefined(
    variants: Sequence[Variant],
    language: str,
    evaluator: BoundEvaluator,
    variables: Mapping[str, Any],
    chooser: random.Random | None,
) -> str:
    """Return one wording with its variables filled in; the first eligible one without a `chooser`.

    Raises `EvalFailed` when every variant needs something unset.
    """
    texts: list[str] = []
    failure = EvalFailed("no wording is eligible")
    for variant in eligible_language(variants, language):
        try:
            text = evaluator.render(variant.text, variables)
        except EvalFailed as error:
            failure = error
            continue
        if text.strip():
            texts.append(text)
            if chooser is None:
                break
    if not texts:
        raise failure
    return texts[0] if chooser is None else chooser.choice(texts)


def variable_text(intent: str, variables: Mapping[str, Any]) -> str | None:
    """Return the text of the variable a bot intent names, None when it names none; `EvalFailed` if it is unset."""
    match = _VARIABLE.fullmatch(intent.strip())
    if match is None:
        value = variables.get(intent)
        return value if isinstance(value, str) and value.strip() else None
    name = match["plain"] or match["dotted"] or match["braced"]
    value = variables.get(name)
    if value is None:
        raise EvalFailed(f"vars.{name} is not set")
    return str(value)


async def one_chunk(text: str) -> AsyncIterator[str]:
    """Yield `text` as a stream."""
    yield text


class SingleCall:
    """The answer of one `combined` call: its head first, then the words as they stream.

    Owns the model's stream; `aclose` must be called, and ends the call.
    """

    def __init__(self, chunks: AsyncIterator[str]) -> None:
        self._chunks = chunks
        self._rest = ""
        self._is_used = False
        self.head: Combined | None = None

    async def read_head(self) -> Combined | None:
        """Read until the first two lines are known; None when they can't be parsed."""
        text = ""
        while True:
            found = _two_lines(text)
            if found is not None:
                first, second, self._rest = found
                self.head = parse_combined_head(first, second)
                return self.head
            chunk = await anext(self._chunks, None)
            if chunk is None:
                found = _two_lines(text + "\n")
                if found is not None:
                    first, second, self._rest = found
                    self.head = parse_combined_head(first, second)
                return self.head
            text += chunk

    def has_words_for(self, bot_intent: str) -> bool:
        """Whether its text can be used for the bot intent that was decided."""
        return not self._is_used and self.head is not None and self.head.bot_intent == bot_intent

    async def words(self) -> AsyncIterator[str]:
        """Yield the cleaned text; once."""
        self._is_used = True
        async for chunk in clean_stream(self._unlabelled()):
            yield chunk

    async def _unlabelled(self) -> AsyncIterator[str]:
        text = self._rest
        while len(text.lstrip()) < 16:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                break
            text += chunk
        yield drop_message_label(text)
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        """Close the model's stream."""
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


def _two_lines(text: str) -> tuple[str, str, str] | None:
    """Return the first two complete non-empty lines and what follows them."""
    found: list[str] = []
    at = 0
    while len(found) < 2:
        end = text.find("\n", at)
        if end < 0:
            return None
        line = text[at:end].strip()
        at = end + 1
        if line:
            found.append(line)
    return found[0], found[1], text[at:]


class Peeked:
    """A stream whose first piece was looked at."""

    def __init__(self, chunks: AsyncIterator[str]) -> None:
        self._chunks = chunks
        self._first: str | None = None

    async def has_text(self) -> bool:
        """Wait for the first piece; False when there is none."""
        self._first = await anext(self._chunks, None)
        return self._first is not None

    async def stream(self) -> AsyncIterator[str]:
        """Yield everything, closing the source at the end."""
        try:
            if self._first is not None:
                yield self._first
            async for chunk in self._chunks:
                yield chunk
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the source."""
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


async def gather_text(chunks: AsyncIterator[str]) -> str:
    """Return all of a stream, cleaned."""
    return clean_message("".join([chunk async for chunk in chunks]))
