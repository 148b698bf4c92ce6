"""Answers to choices, by name or by place in the list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.hits import Hit, Span
from orchestrator.tasks.extraction.words import CJK


def find_choices(slot: Slot, text: str, normal: str) -> Iterator[Hit]:
    """Yield the choices named, in the order of the text."""
    folded = text.casefold()
    found: list[tuple[Span, Any]] = []
    for choice in slot.choices:
        for name in (str(choice.value), str(choice.value).replace("_", " "), *choice.names):
            word = re.escape(name.casefold())
            pattern = word if CJK.search(name) else rf"(?<![a-z0-9]){word}(?:s|es)?(?![a-z0-9])"
            found += [(m.span(), choice.value) for m in re.finditer(pattern, folded)]
    # of two names where one contains the other, the longer counts
    kept = [
        (span, value)
        for span, value in found
        if not any(
            o[0] <= span[0] and span[1] <= o[1] and o != span and o[1] - o[0] > span[1] - span[0] for o, _ in found
        )
    ]
    if kept:
        for span, value in sorted(kept, key=lambda item: item[0]):
            yield Hit(value=value, spans=(span,))
        return
    by_part = _by_distinct_part(slot, folded)
    if by_part:
        yield from by_part
        return
    ordinal = re.search(r"第(\d+)|^(\d+)号|(?:the |number |option )?(\d+)th\b|\b(?:number|option) (\d+)\b", normal)
    index = int(next(g for g in ordinal.groups() if g)) if ordinal else 0
    if re.search(r"\bthe (?:last|latter)\b|最后(?:那|这)?[1一]?[个项种]|后面(?:那|这)?1?个|后者", normal):
        index = len(slot.choices)
    elif re.search(r"\bthe second\b", normal) or (len(slot.choices) == 3 and re.search(r"\bmiddle\b|中间", normal)):
        index = 2
    elif re.search(r"\bthe former\b|前面(?:那|这)?1?个|前者|头1?个", normal):
        index = 1
    if 1 <= index <= len(slot.choices):
        yield Hit(value=slot.choices[index - 1].value, spans=((0, len(text)),))


def _by_distinct_part(slot: Slot, folded: str) -> list[Hit]:
    """Return the choices of which the text has what sets them apart: 「大的」 of 小杯 and 大杯."""
    found: list[Hit] = []
    names = [str(choice.value).casefold() for choice in slot.choices]
    for choice, name in zip(slot.choices, names, strict=True):
        others = [other for other in names if other != name]
        for part in _parts(name, others):
            pattern = re.escape(part) if CJK.search(part) else rf"(?<![a-z0-9]){re.escape(part)}(?![a-z0-9])"
            match = re.search(pattern, folded)
            if match is not None:
                found.append(Hit(value=choice.value, spans=(match.span(),)))
                break
    return sorted(found, key=lambda hit: hit.spans)


def _parts(name: str, others: list[str]) -> list[str]:
    """Return parts of a name that no other name has, the surest first."""
    if not others:
        return []
    if not CJK.search(name):
        return [w for w in name.replace("_", " ").split() if len(w) > 2 and not any(w in o.split() for o in others)]
    shared = next((n for n in range(len(name), 0, -1) if all(o.endswith(name[-n:]) for o in others)), 0)
    stem = name[:-shared] if shared else ""
    pairs = [name[i : i + 2] for i in range(len(name) - 1)] if len(name) >= 3 else []
    parts = [f"{stem}的"] if len(stem) == 1 else [stem] if stem else []
    return [*parts, *(p for p in pairs if CJK.search(p) and not any(p in o for o in others))]
