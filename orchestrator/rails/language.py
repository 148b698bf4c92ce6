"""Which of the two languages a sentence is in."""

from __future__ import annotations

import re

_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def language_of(text: str) -> str:
    """Return `zh` for text with Chinese characters, else `en`."""
    return "zh" if _CJK.search(text) else "en"
