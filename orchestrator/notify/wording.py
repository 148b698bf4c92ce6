"""How a notification is worded: by a capable model if there is one, else as it came.

Whether and when it is said is decided by program rules alone (`gate`). The model may shorten it, word it, or ask once
to say it later; what it makes of it is taken only if nothing was lost or added that can be checked.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass

from orchestrator.contracts.dialogue import ChatMessage, Llm, LlmRequest, LlmTask, LlmUnavailable

log = logging.getLogger(__name__)

WORDING_LIMIT_S = 1.5
"""A reminder does not wait longer for better words."""
_LATER = "LATER"
_NUMBER = re.compile(r"\d+")
_CJK = re.compile(r"[\u3400-\u9fff]")
_ASK = {
    "en": "Tell the user this in one short spoken sentence, in your own voice. Keep every name, number and time, add "
    "nothing. If the conversation shows that this is a bad moment, answer only LATER.",
    "zh": "用一句简短的口语把下面的话告诉用户。名字、数字和时间都要保留，不要添加内容。"
    "如果从对话看现在不合适，只回答 LATER。",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What is to be said; `is_later` asks to say it at another time."""

    text: str
    is_later: bool = False


async def word(text: str, llm: Llm, *, recent: tuple[ChatMessage, ...] = (), may_defer: bool) -> Wording:
    """Return `text` in the model's words, or as it is where no capable model gives usable ones in time."""
    plain = Wording(text=text)
    if not (llm.is_configured and llm.can_plan):
        return plain
    ask = _ASK["zh" if _CJK.search(text) else "en"]
    request = LlmRequest(
        task=LlmTask.REPHRASE,
        messages=(ChatMessage(role="system", content=ask), *recent, ChatMessage(role="user", content=text)),
        max_tokens=80,
    )
    try:
        async with asyncio.timeout(WORDING_LIMIT_S):
            answer = (await llm.complete(request)).strip().strip('"“”「」')
    except (LlmUnavailable, TimeoutError):
        log.info("a notification is said as it came: no model worded it in time")
        return plain
    if answer.strip(" .!。！").upper() == _LATER:
        return Wording(text=text, is_later=True) if may_defer else plain
    return Wording(text=answer) if is_faithful(answer, text) else plain


def is_faithful(answer: str, text: str) -> bool:
    """Whether the model's words say what they were to say, as far as that can be checked: numbers, language, length."""
    return (
        0 < len(answer) <= 2 * len(text) + 40
        and "\n" not in answer
        and sorted(_NUMBER.findall(answer)) == sorted(_NUMBER.findall(text))
        and bool(_CJK.search(answer)) == bool(_CJK.search(text))
    )
