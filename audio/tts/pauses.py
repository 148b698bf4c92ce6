"""The silence between two pieces of speech, as long as a breath there."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.speech.words import ends_clause, ends_sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Seconds of silence behind a clause, a sentence and a paragraph; a voice adds about 0.07 s of its own."""

    clause_s: float = 0.12
    sentence_s: float = 0.2
    paragraph_s: float = 0.45

    def after(self, text: str) -> float:
        """Return the pause behind `text`, by its last mark; a line break behind it ends a paragraph."""
        bare = text.rstrip()
        if "\n" in text[len(bare) :]:
            return self.paragraph_s
        return self.clause_s if ends_clause(bare) and not ends_sentence(bare) else self.sentence_s

    def scaled(self, factor: float) -> Pauses:
        """Return these pauses, `factor` times as long."""
        return Pauses(
            clause_s=self.clause_s * factor,
            sentence_s=self.sentence_s * factor,
            paragraph_s=self.paragraph_s * factor,
        )
