"""Yes and no, with what else a sentence says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.tasks.extraction.clauses import says_something, split_clauses
from orchestrator.tasks.extraction.words import NO_EN, NO_ZH, YES_EN, YES_ZH, fold_en, fold_zh, is_question


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Yes (true) or no. `is_strict`: said as an answer, not only begun like one; `rest`: what else was said."""

    value: bool
    is_strict: bool
    rest: str = ""


_LEAD_EN = re.compile(
    r"^(?:(?:um|uh|er|well|oh|hmm|hm|so|ah|and|but|actually|honestly|i mean|you know|please|hey)\s+)+"
)
_TAIL_EN = re.compile(
    r"(?:\s+(?:please|thanks|thank you|then|now|sir|actually|i think|i guess|of course|definitely|for sure|"
    r"indeed|really|at all|it is|i do|it isnt|i dont))+$"
)


_HUM = re.compile(r"(?:嗯+|哦|噢|啊|唔|恩|mm+|mhm|m+|hm+|uh)[^\w]*", re.IGNORECASE)
_YES_WORDS = frozenset({"yes", "yeah", "yep", "yup", "ya"})
_NO_WORDS = frozenset({"no", "nope", "nah"})
_EITHER = ("yes", "yeah", "yep", "yup", "no", "nope", "nah", "dont", "not", "say", "said", "saying", "either")
_TAKES_BACK = re.compile(r"\b(?:wait|actually|sorry|i mean)\b|等等|不对|说错|还是|[啊哦噢哎]不|不不", re.IGNORECASE)


def find_boolean(text: str, *, chinese: bool) -> Answer | None:
    """Return what yes or no a text says; None when it says neither."""
    clauses = split_clauses(text)
    for index, clause in enumerate(clauses):
        value = _boolean_zh(clause) if chinese else _boolean_en(clause)
        if value is None:
            if not says_something(clause) or (chinese and len(fold_zh(clause)) <= 1):
                continue
            break
        others = clauses[index + 1 :]
        following = [_boolean_zh(c) if chinese else _boolean_en(c) for c in others]
        # a hum before a word: 「嗯，不用了」
        if _HUM.fullmatch(clause.strip()) and following and following[0] is not None:
            return Answer(value=following[0], is_strict=True)
        # "yes, no problem" and "no, it's fine" mean what comes first, unless it is taken back
        if any(v is not None and v != value for v in following) and _TAKES_BACK.search(text):
            return Answer(value=[v for v in following if v is not None][-1], is_strict=True)
        rest = " ".join(c for c, v in zip(others, following, strict=True) if v is None and says_something(c))
        return Answer(value=value, is_strict=True, rest=rest)
    value = _starts_with(text, chinese)
    if value is None:
        return None
    return Answer(value=value, is_strict=False)


def _boolean_en(clause: str) -> bool | None:
    folded = fold_en(clause)
    forms = {folded, _LEAD_EN.sub("", folded + " ").strip()}
    forms |= {_TAIL_EN.sub("", f) for f in set(forms)}
    for form in forms:
        if form in NO_EN:
            return False
        if form in YES_EN:
            return True
    words = folded.split()
    spoken = [w for w in words if w not in ("wait", "actually", "sorry", "oh", "um", "uh", "well", "but")]
    if len(spoken) >= 2 and all(w in _YES_WORDS | _NO_WORDS for w in spoken):
        # "yeah no", "yes wait no": the last word is meant
        return spoken[-1] in _YES_WORDS
    # "it is, yeah": the answer comes last
    if 2 <= len(words) <= 5 and words[-1] in ("yes", "yeah", "yep", "yup", "no", "nope", "nah"):
        opposite = YES_EN if words[-1] in ("no", "nope", "nah") else NO_EN
        if words[0] not in _EITHER and " ".join(words[:-1]) not in opposite and not is_question(clause):
            return words[-1] in ("yes", "yeah", "yep", "yup")
    first = _LEAD_EN.sub("", folded + " ").split()
    if first and len(words) <= 7 and not is_question(clause):
        if first[0] in ("yes", "yeah", "yep", "yup", "sure", "absolutely", "definitely", "certainly"):
            return "not" not in first[:3] or first[1:3] == ["why", "not"]
        if first[0] in ("no", "nope", "nah") and first[1:2] not in (["problem"], ["doubt"]):
            return False
        if " ".join(first[:2]) in (
            "i dont",
            "i do",
            "no i",
            "i didnt",
            "i wont",
            "i havent",
            "please dont",
            "of course",
        ):
            return "not" not in first and "nt" not in first[1][-2:] and first[0] != "no"
    return None


_PARTICLES_ZH = re.compile(
    r"^[嗯呃额哦噢啊唔那]+|(?:谢谢|多谢|麻烦了|了|啊|呀|吧|呢|嘛|啦|哈|哦|的|喔|哟|哒|滴|你|您)+$"
)


_DO_IT_ZH = re.compile(
    r"(?:嗯+|那|好)?(?:就|快|给我|帮我)?(?:存|保存|发|发送|提交|确认|确定|开始|继续|来|去|走|试|试试|玩|要|订|买|做|打开|关|关掉|删|删掉|删除|加|弄|办|改|"
    r"设|设置|用|听|放|播|记|记下)(?:一下|上|了|掉)?吧"
)
"""「存吧」 takes up the verb of the question."""


def _boolean_zh(clause: str) -> bool | None:
    folded = fold_zh(clause)
    if folded in NO_ZH:
        return False
    if is_question(clause) and not folded.endswith("呢"):
        return None
    forms = [folded]
    for _ in range(3):
        forms.append(_PARTICLES_ZH.sub("", forms[-1]))
    for form in forms:
        if form in NO_ZH:
            return False
        if form in YES_ZH:
            return True
    match = re.match(
        r"(?:嗯+|那|哦|也|倒|其实)*(?:(是的|对的|对|好的|可以|没错|当然|行)|(不是的|不是|不用|不要|不行|没有|不对|不想|不需要|不))(?=我|他|她|它|就|这|那|你|今天|现在|没|不(?!是|行|可|能|好|对)|还|要|请|谢|很|太|特别)",
        folded,
    )
    if match and len(folded) <= 10 and not folded.startswith(("对不", "不过", "不知", "不一定", "不确定", "不好说")):
        return match[1] is not None
    return True if _DO_IT_ZH.fullmatch(folded) else None


def _starts_with(text: str, chinese: bool) -> bool | None:
    if chinese:
        match = re.match(
            r"\W*(?:嗯+|那|哦)?\W*(?:(是的|对的|好的|没错|当然|可以)|(不是|不用|不要|不行|没有|不对|不想|不需要))", text
        )
        return match[1] is not None if match else None
    first = _LEAD_EN.sub("", fold_en(text) + " ").split()
    if first and first[0] in ("yes", "yeah", "yep", "yup"):
        return True
    return False if first and first[0] in ("no", "nope", "nah") else None
