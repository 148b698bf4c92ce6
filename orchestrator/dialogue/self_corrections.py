"""Corrections inside one input: "remind me at nine to buy milk no, at ten", said in one breath or joined.

The first part is taken as it stands and the second corrects it, as if the two had been said one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.dialogue.late_corrections import late_correction
from orchestrator.dialogue.replacement import free_text
from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.words import CJK
from orchestrator.tasks.state import SlotValue, Task

if TYPE_CHECKING:
    from orchestrator.dialogue.understanding import Understander

MAX_CHARS = 160

_SPLIT_EN = re.compile(
    r"[\s,.;:–—-]+(?=(?:oh )?(?:no|nope|not|wait|sorry|actually|rather|correction|scratch that|hold on|oops"
    r"|i mean|i meant|i said|make (?:that|it)|let'?s say|change (?:that|it))\b)",
    re.IGNORECASE,
)
_SPLIT_ZH = re.compile(
    r"[，,。.；;、\s]*(?=哦不|啊不|不对|不是|不不|等等|等一下|不好意思|对不起|我?(?:说|弄|搞|记)错了|我是说|我是想说|我的意思是"
    r"|改成|改为|改到|换成|应该是|(?<=[，,。；;\s])不[，,])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A text as what was said first and what may correct it. `is_apart`: a mark stands between them."""

    head: str
    tail: str
    is_apart: bool


def splits(text: str) -> Iterator[Split]:
    """Yield how a text may be read so, the longest correction first."""
    if len(text) > MAX_CHARS:
        return
    for match in (_SPLIT_ZH if CJK.search(text) else _SPLIT_EN).finditer(text):
        head, tail = text[: match.start()].strip(), text[match.end() :].strip()
        if head and tail:
            yield Split(head=head, tail=tail, is_apart=bool(match[0].strip()))


def corrected(understander: Understander, flow: str, values: Mapping[str, Any], split: Split) -> dict[str, Any] | None:
    """Return the values of a flow's slots as the tail corrects them; None where it corrects none of them.

    One that is only said to be wrong is left out, to be asked for.
    """
    turn = understander.state.turn
    slots = {slot: SlotValue(value=value, turn=turn) for slot, value in values.items()}
    task = Task(uid="", root=flow, flow=flow, step="", slots=slots, ended_turn=turn)
    decision = late_correction(understander, task, split.tail)
    command = decision.commands[0] if decision is not None and decision.commands else None
    if command is None or not set(command.slots) <= set(values):
        return None
    if not split.is_apart and None in command.slots.values():
        # 「告诉小王这不对」 is a text
        return None
    merged = {**values, **command.slots}
    return {slot: value for slot, value in merged.items() if value is not None}


def corrected_text(understander: Understander, flow: str, slot: Slot, text: str) -> str:
    """Return a free text as its own second part corrects it."""
    for split in splits(text):
        meant = corrected(understander, flow, {slot.id: free_text(split.head)}, split)
        if meant:
            return str(meant[slot.id])
    return text
