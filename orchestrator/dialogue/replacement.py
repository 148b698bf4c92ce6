"""Corrections that name the wrong value with the right one ("not Paris, Rome"), and what may follow a no."""

# ruff: noqa: E501 - patterns and lists of words are read line by line

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.booleans import find_boolean
from orchestrator.tasks.extraction.words import CJK, fold_en, fold_zh, is_question

MAX_CHARS = 120

_LEAD_EN = r"(?:(?:no|nope|oh|ah|wait|sorry|actually|um|uh|well|hold on|i said)\b[\s,.;:!–—-]*)*"
_IT_EN = r"(?:(?:it|that)(?:'|’)?s |(?:it|that) is |it was |i (?:said|meant?) |(?:make|change) (?:it|that)(?: to)? |rather )?"
_NOT_EN = (
    re.compile(
        rf"^{_LEAD_EN}{_IT_EN}not (?P<old>[^,;.!?–—]+?)(?:\s*[,;.–—]+\s*(?:but )?|\s+but )(?:rather )?{_IT_EN}(?P<new>\S.*)$",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^{_LEAD_EN}{_IT_EN}(?P<new>[^,;.!?–—]+?)\s*[,;.–—]+\s*(?:and )?not (?P<old>[^,;.!?–—]+)$", re.IGNORECASE
    ),
)
_LEAD_ZH = r"(?:(?:不对|不是的|不是|等等|等一下|哦不|啊不|不|哦|啊|嗯|呃|不好意思|对不起|抱歉|我说错了|说错了)[，,。、；;！!]*)*"
_NOT_ZH = (
    re.compile(
        rf"^{_LEAD_ZH}不(?:是|要|去)(?P<old>[^，,。；;！!？?]+?)"
        r"(?:[，,。；;]+(?:而|应该|我要)?(?:是|要|去|改成|换成|改为|换)?|(?:而是|应该是|是|改成|换成|改为))(?P<new>[^，,。；;！!？?]+)$"
    ),
    re.compile(
        rf"^{_LEAD_ZH}(?:是|要|去|应该是)?(?P<new>[^，,。；;！!？?]+?)[，,。；;]+不(?:是|要|去)(?P<old>[^，,。；;！!？?]+)$"
    ),
)
_PREFIXES = ("to ", "for ", "in ", "at ", "on ", "from ", "the ", "a ", "去", "到", "在", "从", "订", "要", "叫")
_TAIL = re.compile(
    r"(?:[\s,，.。!！;；]+|\b(?:please|then|thanks|thank you)|(?<=\S)[吧啊呀哦呢]|谢谢|好吗)+$", re.IGNORECASE
)

_TALK_EN = frozenset(
    re.findall(
        r"\w+",
        """
    i im ill id ive you we it its that thats this there he she they me us my your what why how when where who which do does did
    dont doesnt didnt not never nothing none neither wont cant cannot thanks thank please sorry wait wrong right cancel stop quit
    later maybe perhaps ok okay fine good great enough way need want keep leave forget mind go lets let just yet now again
    is are was were be have has had can could will would should thing something anything else more no yes yeah nope hold sure
    really course problem worries hello hi bye start change different another other
        """,
    )
)
_TALK_ZH = re.compile(
    r"[我你您他她它咱]|谢|不|没|别|再|等|算了|停|取消|好的|好吧|可以|错|以后|下次|什么|怎么|哪|吗|呢|了$|这|那|先|还|就|麻烦|再见|对|换|改|随便|一下"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A wrong value and the one that is right, both in the user's words."""

    old: str
    new: str


def replacements(text: str) -> Iterator[Replacement]:
    """Yield how a text may be read as "not this, that", in either order and with or without a leading "to"."""
    said = text.strip()
    if len(said) > MAX_CHARS or is_question(said):
        return
    for pattern in _NOT_ZH if CJK.search(said) else _NOT_EN:
        match = pattern.match(_TAIL.sub("", said))
        if match is None:
            continue
        old, new = _TAIL.sub("", match["old"].strip()), _TAIL.sub("", match["new"].strip())
        if not old or not new:
            continue
        yield Replacement(old=old, new=new)
        for prefix in _PREFIXES:
            if old.casefold().startswith(prefix) and len(old) > len(prefix):
                rest = new[len(prefix) :] if new.casefold().startswith(prefix) else new
                yield Replacement(old=old[len(prefix) :], new=rest or new)


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts are the same words."""
    return (fold_zh(one), fold_en(one)) == (fold_zh(other), fold_en(other))


def is_name_like(text: str) -> bool:
    """Whether what follows a no can only be a value: a few words, none of which people say to refuse or to go on."""
    said = _TAIL.sub("", text.strip())
    chinese = bool(CJK.search(said))
    if not said or is_question(text) or re.search(r"[,，.。;；!！?？]", said):
        return False
    if find_boolean(said, chinese=chinese) is not None:
        return False
    if chinese:
        return len(said) <= 10 and _TALK_ZH.search(said) is None
    words = fold_en(said).split()
    return 0 < len(words) <= 4 and not _TALK_EN & set(words)


def bare_value(text: str) -> str:
    """Return what follows a no without what is said around it."""
    return re.sub(
        r"^(?:(?:to|for|in) (?=\S)|[去到是要](?=\S{2}))", "", _TAIL.sub("", text.strip()), flags=re.IGNORECASE
    )


def names_choice(slot: Slot, text: str) -> bool:
    """Whether the text is the very name of a choice."""
    said = _bare(text)
    return any(said == _bare(str(name)) for choice in slot.choices for name in (choice.value, *choice.names))


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def free_text(text: str) -> str:
    """Return a sentence as a value: without spaces around it and without its full stop."""
    value = text.strip()
    if CJK.search(value):
        return value.rstrip("。.").strip()
    return re.sub(r"(?<!\.)\.$", "", value).strip()
