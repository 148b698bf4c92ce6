"""The matcher of tests: only identical text matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.dialogue.rails_port import Match


class ExactMatcher:
    """Finds the group that has the very sentence among its examples."""

    def __init__(
        self,
        examples: Mapping[str, Sequence[str]],
        *,
        threshold: float | None = None,
        margin: float = 0.03,
        scale: str = "cosine",
    ) -> None:
        """Take the examples; threshold, margin and scale mean nothing here."""
        self._names: dict[str, str] = {}
        for name, texts in examples.items():
            for text in texts:
                self._names.setdefault(text.strip(), name)

    async def match(self, text: str) -> Match | None:
        """Return the group of an identical example."""
        name = self._names.get(text.strip())
        return Match(name=name, score=1.0, margin=None, by="exact") if name is not None else None

    async def nearest(self, text: str, count: int) -> Sequence[Match]:
        """Return the exact match, if any, then the other groups in file order."""
        found = await self.match(text)
        names = list(dict.fromkeys(self._names.values()))
        if found is not None:
            names = [found.name, *(n for n in names if n != found.name)]
        return [
            Match(name=n, score=1.0 if found is not None and n == found.name else 0.0, margin=None, by="exact")
            for n in names[:count]
        ]
