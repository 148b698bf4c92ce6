"""What rails say when something went wrong, in both languages."""

from __future__ import annotations

NOT_SURE = {"en": "I'm not sure what to say.", "zh": "我不知道该说什么。"}
STEP_FAILED = {"en": "Sorry, something went wrong on my side.", "zh": "抱歉，我这边出了点问题。"}
MODEL_FAILED = {
    "en": "Sorry, I can't reach my language model right now. Please check it in the settings.",
    "zh": "抱歉，我现在连不上语言模型，请在设置里检查一下。",
}
TOO_LONG = {"en": "Sorry, I got lost in my own rules.", "zh": "抱歉，我被自己的规则绕晕了。"}


def phrase(table: dict[str, str], language: str | None) -> str:
    """Return the wording in `language`; English for any other."""
    return table.get(language or "en", table["en"])
