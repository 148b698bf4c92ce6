"""Word lists and character classes of the text filter: what in a model's text is not meant to be spoken."""

from __future__ import annotations

import re
import unicodedata

# Expressions a character can show, by the words models use for them.
_EXPRESSION_WORDS: dict[str, str] = {
    "neutral": "neutral calm 平静 中性",
    "happy": "happy joy joyful glad cheerful smile smiling excited playful love 开心 高兴 快乐 微笑 笑 喜欢 兴奋 调皮",
    "sad": "sad sorry unhappy cry crying 难过 伤心 悲伤 抱歉 哭 失落",
    "angry": "angry annoyed upset mad 生气 愤怒 恼火",
    "surprised": "surprised surprise shocked amazed wow 惊讶 吃惊 震惊",
    "thinking": "thinking think thoughtful curious confused puzzled 思考 想 好奇 疑惑 困惑",
    "shy": "shy embarrassed blush blushing 害羞 尴尬 脸红",
    "sleepy": "sleepy tired yawn yawning 困 疲倦 打哈欠",
}
EXPRESSIONS: dict[str, str] = {
    word: expression for expression, words in _EXPRESSION_WORDS.items() for word in words.split()
}

# Verbs of stage directions (third person or -ing) and the expression they show, if any.
_STAGE_VERBS: dict[str, str] = {
    "happy": "smile laugh chuckle giggle grin beam cheer wink dance",
    "sad": "sigh cry sob weep frown pout sniffle",
    "angry": "growl scowl huff glare",
    "surprised": "gasp blink startle",
    "thinking": "think ponder hum tilt wonder muse scratch",
    "shy": "blush shrug",
    "sleepy": "yawn stretch",
    "": "nod pause wave whisper chirp tweet sing cough clear look lean flap hop whistle bow turn flutter preen shake "
    "clap breathe peck raise roll gesture point squawk perch ruffle softly gently quietly happily excitedly",
}


def _forms(verb: str) -> tuple[str, ...]:
    stem = verb[:-1] if verb.endswith("e") else verb
    doubled = f"{verb}{verb[-1]}ing" if re.search(r"[^aeiou][aeiou][bgmnpt]$", verb) else f"{stem}ing"
    third = f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}s"
    return (verb, third, f"{verb}es", f"{stem}ing", doubled)


STAGE_VERBS: dict[str, str] = {
    form: expression for expression, verbs in _STAGE_VERBS.items() for verb in verbs.split() for form in _forms(verb)
}
_STAGE_CHINESE: dict[str, str] = {
    "笑": "happy",
    "眨眼": "happy",
    "叹": "sad",
    "哭": "sad",
    "皱眉": "sad",
    "生气": "angry",
    "惊": "surprised",
    "思考": "thinking",
    "沉思": "thinking",
    "歪头": "thinking",
    "害羞": "shy",
    "脸红": "shy",
    "哈欠": "sleepy",
    "点头": "",
    "摇头": "",
    "停顿": "",
    "挥手": "",
    "轻声": "",
    "小声": "",
    "清嗓": "",
    "咳": "",
    "拍翅": "",
    "扇动": "",
    "鞠躬": "",
    "唱": "",
}
_MAX_STAGE_CHINESE = 14
_MAX_STAGE_WORDS = 8
_SUBJECTS = ("i", "he", "she", "it", "mynah")


def stage_direction(text: str) -> tuple[bool, str]:
    """Tell whether the content of brackets or stars is a stage direction, and the expression it shows (or "")."""
    content = text.strip().strip(".。!！~～").lower()
    words = re.findall(r"[a-z']+", content)
    if len(words) > 1 and words[0] in _SUBJECTS:
        words = words[1:]
    if words:
        if len(words) > _MAX_STAGE_WORDS:
            return False, ""
        for word in words[:2]:
            # Adverbs may precede the verb; a bare verb form decides only in the first place.
            if word in STAGE_VERBS and (word == words[0] or word.endswith(("s", "ing"))):
                shown = next((STAGE_VERBS[w] for w in words if STAGE_VERBS.get(w)), "")
                return True, shown
        return False, ""
    if len(content) <= _MAX_STAGE_CHINESE:
        for mark, expression in _STAGE_CHINESE.items():
            if mark in content:
                return True, expression
    return False, ""


def expression_tag(text: str) -> str | None:
    """Return the (first) expression that a tag's content names, none if it holds anything but names of expressions."""
    word = text.strip().lower()
    for prefix in ("emotion:", "expression:", "mood:", "表情：", "表情:", "情绪：", "情绪:"):
        word = word.removeprefix(prefix).strip()
    names = [EXPRESSIONS.get(part.strip()) for part in re.split(r"[,，、/|+&]", word)]
    return names[0] if None not in names else None


# Pictographs, dingbats, arrows, box drawing and the invisible parts of emoji sequences.
_UNSPOKEN_RANGES = (
    (0x20E3, 0x20E3),
    (0x2190, 0x21FF),
    (0x2300, 0x23FF),
    (0x2460, 0x24FF),
    (0x2500, 0x27BF),
    (0x2900, 0x297F),
    (0x2B00, 0x2BFF),
    (0xFE00, 0xFE0F),
    (0x1F000, 0x1FAFF),
    (0xE0000, 0xE007F),
)


def is_unspoken(char: str) -> bool:
    """Whether `char` is an emoji, an ornament, a control character or invisible."""
    code = ord(char)
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return char != "\n"
    return code >= 0x20E3 and any(low <= code <= high for low, high in _UNSPOKEN_RANGES)
