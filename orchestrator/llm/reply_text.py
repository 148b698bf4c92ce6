"""From a model's stream to pieces ready to be spoken: filter, then splitter, with expressions at their sentence."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass

from orchestrator.contracts.dialogue import LlmUnavailable
from orchestrator.llm.splitter import WHOLE_TEXT, SentenceSplitter, SplitLimits
from orchestrator.llm.text_filter import ExpressionCue, Filtered, TextFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPiece:
    """A sentence (the first may be a clause) and the expression asked for in it.

    The joined texts are the filtered answer; `text` is empty for an expression behind the last word.
    """

    text: str
    expression: str | None = None

    @property
    def is_speakable(self) -> bool:
        """Whether there is anything to say in it."""
        return any(char.isalnum() for char in self.text)


class ReplyText:
    """Streaming pipeline for one answer; `feed` chunks, then `flush` once."""

    def __init__(self, names: Sequence[str] = (), limits: SplitLimits | None = None) -> None:
        """Take the character's `names` for role prefixes."""
        self._filter = TextFilter(names)
        self._splitter = SentenceSplitter(limits)
        self._cues: deque[ExpressionCue] = deque()
        self._end = 0

    def feed(self, chunk: str) -> list[ReplyPiece]:
        """Return the pieces that are complete with `chunk`."""
        filtered = self._filter.feed(chunk)
        return self._with_cues(filtered, self._splitter.feed(filtered.text))

    def whole(self, text: str) -> list[ReplyPiece]:
        """Return the pieces of an answer that is `text`; in place of `feed` and `flush`."""
        self._splitter = SentenceSplitter(WHOLE_TEXT)
        return [*self.feed(text), *self.flush()]

    def flush(self) -> list[ReplyPiece]:
        """Return the rest at the end of the answer."""
        filtered = self._filter.flush()
        texts = self._splitter.feed(filtered.text) + self._splitter.flush()
        pieces = self._with_cues(filtered, texts)
        if self._cues:
            pieces.append(ReplyPiece(text="", expression=self._cues[-1].expression))
            self._cues.clear()
        return pieces

    def _with_cues(self, filtered: Filtered, texts: Sequence[str]) -> list[ReplyPiece]:
        self._cues.extend(filtered.cues)
        pieces = []
        for text in texts:
            self._end += len(text)
            expression = None
            while self._cues and self._cues[0].offset < self._end:
                expression = expression or self._cues[0].expression
                self._cues.popleft()
            pieces.append(ReplyPiece(text=text, expression=expression))
        return pieces


async def reply_pieces(
    chunks: AsyncIterator[str], names: Sequence[str] = (), limits: SplitLimits | None = None
) -> AsyncIterator[ReplyPiece]:
    """Yield the pieces of an answer while it is generated; closing this closes `chunks`.

    When the model fails half-way, what it had said is yielded before the `LlmUnavailable` comes through.
    """
    pipeline = ReplyText(names, limits)
    failure: LlmUnavailable | None = None
    try:
        try:
            async for chunk in chunks:
                for piece in pipeline.feed(chunk):
                    yield piece
        except LlmUnavailable as error:
            failure = error
        for piece in pipeline.flush():
            yield piece
        if failure is not None:
            raise failure
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
