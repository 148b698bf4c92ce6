"""A sentence as the finders read it: its number words are digits."""

from __future__ import annotations

import re

from orchestrator.tasks.extraction.numbers_en import digits_for_words
from orchestrator.tasks.extraction.numbers_zh import digits_for_numerals
from orchestrator.tasks.extraction.words import CJK

# The longest run of digits that a float holds exactly: a longer one is a code, no number.
MAX_DIGITS = 15
_CODE = re.compile(rf"\d{{{MAX_DIGITS + 1},}}")


def with_digits(text: str) -> str:
    """Return the text with number words as digits, however many; for patterns and comparisons."""
    return digits_for_numerals(text) if CJK.search(text) else digits_for_words(text)


def normal_form(text: str) -> str:
    """Return the text with number words as digits and codes blanked, as long as they were; for what is computed."""
    return _CODE.sub(lambda match: "#" * len(match[0]), with_digits(text))
