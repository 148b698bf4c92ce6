"""Sentences after which nothing more is to be expected: those that the configuration knows word for word.

"What time is it" may go on with "in Tokyo", so a sentence that another known one begins with is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import pairwise

from orchestrator.dialogue.phrase_book import PhraseBook, normalise

_FEWEST_CHARS = 4
_TAKES_A_PLACE = re.compile(r"\b(?:time|day|date|weather|temperature|far|long)\b")
"""English asks where and when at the end, after what may be a breath; Chinese asks it first."""


class KnownSentences:
    """Tells whether words are such a sentence. May be asked from any thread; what is known is changed as a whole."""

    def __init__(self, book: Callable[[], PhraseBook]) -> None:
        """Know the commands of `book` (stop, go on, say that again), and nothing else yet."""
        self._book = book
        self._sentences: frozenset[str] = frozenset()

    def learn(self, examples: Collection[str]) -> None:
        """Know `examples`, what users say to start flows and rails, in place of those before.

        One with a place for a value (`{when}`) is none that could be complete, only one that others may begin.
        """
        heads = {normalise(example.split("{")[0]) for example in examples if "{" in example}
        whole = {normalise(example) for example in examples if "{" not in example} - heads
        known = sorted(whole | heads)
        # In order, what another one begins with stands right before it.
        open_ones = {one for one, other in pairwise(known) if other.startswith(one)}
        self._sentences = frozenset(
            one for one in whole - open_ones if len(one) >= _FEWEST_CHARS and not _TAKES_A_PLACE.search(one)
        )

    def __contains__(self, text: str) -> bool:
        """Whether `text`, all that was said, is complete by what is known."""
        book = self._book()
        if book.is_repeat(text) or book.is_go_on(text):
            return True
        stop = book.stop_phrase(text)
        # After "that's wrong" people tell what is right.
        return (stop is not None and stop.kind == "pause" and not stop.rest) or normalise(text) in self._sentences
