"""A sentence in clauses, and whether a clause says anything of its own."""

from __future__ import annotations

import re

from orchestrator.tasks.extraction.words import CJK, fold_en, is_question, leftover_en, leftover_zh

_CLAUSE = re.compile(
    r"(?<!\d)[.](?!\d)|(?<=\d)[.](?=\s|$)|[,](?!\d)|[!?;，。！？；、…\n]+|\s[-–—]+\s|[—–]+|(?<=[a-z])\.\.\."
    r"|(?<=[吧呢啊了的呀])对了(?=\S{3})|\s+by the way\s+|\s+oh and\s+"
)


def split_clauses(text: str) -> list[str]:
    """Split at punctuation and dashes; question marks stay with their clause."""
    parts: list[str] = []
    start = 0
    for match in _CLAUSE.finditer(text):
        keep = match[0].strip() if match[0].strip() in ("?", "？") else ""
        piece = text[start : match.start()].strip() + keep
        if piece.strip("?？ "):
            parts.append(piece)
        start = match.end()
    tail = text[start:].strip()
    if tail:
        parts.append(tail)
    return parts


def says_something(clause: str) -> bool:
    """Whether a clause is more than fillers."""
    if CJK.search(clause):
        return len(leftover_zh(clause)) >= 2 or is_question(clause)
    return bool(leftover_en(clause)) and (len(fold_en(clause).split()) >= 2)
