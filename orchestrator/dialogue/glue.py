"""Puts parts of a text together as they were before it was cut."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")
_CLOSES = re.compile(r"[,.;:!?%)\]}”’…]")


def glue(before: str, after: str) -> str:
    """Join two parts: no space beside Chinese, none before a sign that closes."""
    before, after = before.rstrip(), after.lstrip()
    if not before or not after:
        return before or after
    is_tight = _WIDE.match(before[-1]) or _WIDE.match(after[0]) or _CLOSES.match(after[0])
    return f"{before}{'' if is_tight else ' '}{after}"


def glued(parts: Iterable[str]) -> str:
    """Join all parts that are not empty."""
    text = ""
    for part in parts:
        text = glue(text, part)
    return text
