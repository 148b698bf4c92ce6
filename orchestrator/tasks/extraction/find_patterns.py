"""Values that must match a pattern, such as codes and addresses, in the forms people say them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.flows.model import Slot
from orchestrator.flows.slot_values import coerce
from orchestrator.tasks.extraction.hits import Hit, Span
from orchestrator.tasks.extraction.normal import with_digits
from orchestrator.tasks.extraction.numbers_zh import digits_for_numerals
from orchestrator.tasks.extraction.words import CJK


def find_pattern(slot: Slot, text: str, normal: str) -> Iterator[Hit]:
    """Yield the first form of a part of the text that the slot takes."""
    for candidate, span in _pattern_candidates(text, normal):
        result = coerce(slot, candidate)
        if result.ok:
            yield Hit(value=result.value, spans=(span,))
            return


_SIGNS = (
    (r"\s*\b(?:dot|point)\b\s*|(?<=[a-z0-9])点(?=[a-z])", "."), (r"\s+at\s+|\s*(?:艾特|at)\s*(?=[a-z0-9]+[.点])", "@"),
    (r"\s*\bunderscore\b\s*|下划线", "_"), (r"\s*\b(?:dash|hyphen|minus)\b\s*|横杠|中划线|减号", "-"),
    (r"\s*\b(?:forward )?slash\b\s*|斜杠", "/"), (r"\s*\bplus\b\s*|加号", "+"), (r"\s*\bcolon\b\s*|冒号", ":"),
)  # fmt: skip


def _as_written(text: str) -> str:
    """Return addresses as they are written: "anna dot smith at example dot com"."""
    written = text
    for pattern, sign in _SIGNS:
        written = re.sub(pattern, sign, written, flags=re.IGNORECASE)
    return written


def _pattern_candidates(text: str, normal: str) -> Iterator[tuple[str, Span]]:
    bare = text.strip(" .,。，!！?？")
    whole = (0, len(text))
    for form in (
        text,
        bare,
        bare.replace(" ", ""),
        bare.upper().replace(" ", ""),
        re.sub(r"[\s\-]", "", normal),
        re.sub(r"[\s\-]", "", normal).upper(),
    ):
        yield form, whole
    tokens = list(re.finditer(r"[^\s,，。！？!?;；]+", text))[:20]
    for size in range(len(tokens), 0, -1):
        for at in range(len(tokens) - size + 1):
            span = (tokens[at].start(), tokens[at + size - 1].end())
            piece = text[span[0] : span[1]].strip(".")
            joined = piece.replace(" ", "").replace("-", "")
            numerals = with_digits(piece)
            for form in (piece, joined, joined.upper(), numerals.replace(" ", ""), numerals.replace(" ", "").upper()):
                yield form, span
    spoken = _as_written(text)
    for match in re.finditer(r"[A-Za-z0-9._%+\-@:/#~?=&]+", spoken):
        yield match[0].strip(".?"), whole
    for match in re.finditer(
        r"[A-Za-z0-9\-]+(?: [A-Za-z0-9]+)*", digits_for_numerals(text) if CJK.search(text) else text
    ):
        yield match[0].replace(" ", ""), whole
