"""Which expression the words of a sentence have by themselves; pure. What a model asks for by a tag comes before it."""

from __future__ import annotations

import re

_ENGLISH: dict[str, str] = {
    "sad": r"i(?:'m| am) (?:so |very |really |truly )?sorry|so sorry|sorry to hear|sad to hear|my condolences|"
    r"that(?:'s| is| must be) (?:so |very |really )?(?:sad|hard|tough|awful|terrible)|unfortunately|i(?:'m| am) afraid|"
    r"what a pity|i apologi[sz]e|my apologies",
    "surprised": r"wow|oh my|oh no|(?<!is )(?<!was )no way(?=\s*[!?.,…]|\s*$)|really\?!|unbelievable|incredible|"
    r"what a surprise|i didn(?:'t| not) expect",
    "happy": r"congratulations|congrats|well done|great(?: job| news| to|!)|wonderful|fantastic|awesome|hooray|yay|"
    r"happy to|glad to|my pleasure|i(?:'m| am) (?:so |very |really )?(?:glad|happy)|good morning|nice to meet|"
    r"welcome back|ha ?ha|you(?:'re| are) welcome|love (?:it|that)|cheers",
    "thinking": r"hm+|let me (?:think|see)|i(?:'m| am) not sure|good question|i wonder|perhaps|maybe",
}
_CHINESE: dict[str, str] = {
    "sad": "对不起|抱歉|很遗憾|真遗憾|可惜|难过|节哀|辛苦你了|不好意思",
    "surprised": "哇|天哪|天啊|哎呀|没想到|真的吗|不会吧|竟然",
    "happy": "恭喜|太好了|太棒了|真棒|很高兴|真高兴|开心|哈哈|欢迎回来|不客气|加油|祝你|早上好",
    "thinking": "让我想想|我想想|嗯…|嗯，|不太确定|不确定|好问题|也许|可能吧",
}
_NEGATION = re.compile(
    r"\b(?:not|never|no|isn't|don't|didn't|without|nothing)(?:\s+\w+)?\s*$|(?:不|没|别|无)(?:太|很|那么)?$"
)

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<![\w'])(?:{_ENGLISH[name]})(?![\w-])|{_CHINESE[name]}", re.IGNORECASE)) for name in _ENGLISH
)
_LONGEST = 600


def expression_of(text: str) -> str | None:
    """Return sad, surprised, happy or thinking if the sentence says so, None if it is of no expression of its own."""
    said = text[:_LONGEST].replace("’", "'")
    for name, rule in _RULES:
        for match in rule.finditer(said):
            if not _NEGATION.search(said[: match.start()].casefold()[-24:]):
                return name
    return None
