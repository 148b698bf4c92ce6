"""Phrase rules for running tasks, English and Chinese: cancel, resume, skip, repeat, correct; and names of flows."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.tasks.extraction.words import CJK, fold_en, fold_zh

_LEAD_EN = re.compile(
    r"^(?:(?:um|uh|er|well|oh|no|nope|ok|okay|please|hey|sorry|wait|actually|you know what|lets|let us|can you|could you|can we|could we|"
    r"i want to|i would like to|id like to|i wanna|just|so|then|and|but|hmm|hm|alright|now)\s+)+"
)
_TAIL_EN = re.compile(
    r"(?:\s+(?:please|thanks|thank you|now|then|for now|ok|okay|instead|after all|right now|mynah|will you))+$"
)
_LEAD_ZH = re.compile(
    r"^(?:嗯|呃|额|那|那就|哦|噢|唉|哎|诶|好吧|好的|请|麻烦|麻烦你|帮我|给我|我想|我要|我们|咱们|不好意思|对不起|等等|不|还是|先|就|你)+"
)
_TAIL_ZH = re.compile(r"(?:吧|了|啊|呀|哦|呢|嘛|啦|谢谢|好了|好吗|行吗|可以吗)+$")

_CANCEL_EN = frozenset(
    """cancel|cancel it|cancel that|cancel this|cancel everything|abort|abort it|abort that|abort this|quit|exit|stop it|stop this|stop that|
    forget it|forget that|forget this|forget about it|forget about that|never mind|nevermind|drop it|drop that|scrap that|scrap it|scratch that|
    leave it|i changed my mind|ive changed my mind|i dont want to anymore|i dont want this anymore|i dont want that anymore|dont bother|
    lets stop|lets not|call it off|do not do it|cancel the task|cancel this task|stop the task|stop asking|enough of this|no more|i give up|
    lets forget it|lets drop it|forget the whole thing|cancel the whole thing|lets cancel|cancel please|end this|end it|stop this task|undo|undo that|undo it|take that back|take it back""".replace("\n", "").replace("    ", "").split("|")
)  # fmt: skip
_SOFT_CANCEL_EN = frozenset(
    [
        "never mind",
        "nevermind",
        "forget it",
        "drop it",
        "leave it",
        "dont bother",
        "lets not",
        "no more",
        "quit",
        "exit",
        "stop it",
        "stop that",
        "end it",
    ]
)
_CANCEL_ZH = frozenset(
    ["取消", "取消掉", "取消它", "取消这个", "取消任务", "取消这个任务", "都取消", "全部取消", "算了", "算了算了", "算了不要", "算了不用", "算了不做", "算了不弄", "不要弄", "别弄", "不弄", "不做", "不办", "不想弄", "不想做", "不想办", "别问", "别再问", "不要再问", "停止任务", "终止", "终止任务", "放弃", "我放弃", "退出", "结束", "结束任务", "结束吧", "我改主意", "改主意", "改变主意", "我改变主意", "不搞", "别搞", "不想继续", "不继续", "不想说", "中止", "撤销", "作废", "不弄这个", "不要做", "别做", "当我没说", "当没说", "就当我没说", "不想要", "不订", "不设", "不设置", "不想设", "不用弄", "不用做", "不用问", "不用办", "停下来不做"]
)  # fmt: skip
_SOFT_CANCEL_ZH = frozenset(
    [
        "算了",
        "算了算了",
        "退出",
        "结束",
        "结束吧",
        "当我没说",
        "当没说",
        "不做",
        "不弄",
        "不搞",
        "不办",
        "别问",
        "不设",
        "不订",
    ]
)
_NO_LIKE = frozenset(
    [
        "不要弄",
        "不做",
        "不弄",
        "不想弄",
        "不想做",
        "不订",
        "不设",
        "不用弄",
        "不用做",
        "lets",
        "not",
        "dont",
        "bother",
        "no",
        "more",
    ]
) | {"lets not", "dont bother", "no more"}

_SKIP_EN = frozenset(
    """skip|skip it|skip that|skip this|skip this one|skip that one|skip this question|skip the question|skip that question|pass|pass on that|
    next|next question|next one|move on|leave it blank|leave that blank|leave it empty|leave it out|leave that out|doesnt matter|it doesnt matter|
    i dont care|no preference|whatever|skip to the next one|lets skip it|lets skip this|lets skip that|lets move on|skip this step|skip this part|
    id rather not say|i would rather not say|i prefer not to say|prefer not to say|go to the next question""".replace("\n", "").replace("    ", "").split("|")
)  # fmt: skip
_SKIP_ZH = frozenset(
    ["跳过", "跳过这个", "跳过这题", "跳过这一题", "跳过这个问题", "跳过这一步", "跳过去", "略过", "略过这个", "过", "下一个", "下一题", "下一个问题", "下一步", "不填", "不填这个", "留空", "空着", "先空着", "无所谓", "随便", "都行", "都可以", "不说", "不想说", "不想回答", "不回答", "这个不说", "这个跳过", "这题跳过", "这个问题跳过", "先跳过", "省略", "不方便说", "换下一个", "换下一题", "这个不填"]
)  # fmt: skip
_REPEAT_EN = frozenset(
    """repeat|repeat that|repeat it|repeat the question|repeat your question|say the question again|ask again|ask me again|what was the question|
    what was your question|what is the question|whats the question|pardon|pardon me|i beg your pardon|excuse me|come again|what did you say|
    what did you ask|what did you just say|what did you just ask|what|say again|once more|one more time|again|i didnt hear that|i didnt hear you|
    i didnt catch that|i didnt get that|i missed that|can you repeat|can you repeat that|could you repeat that|could you repeat the question|
    can you repeat the question|sorry what|what do you mean|what does that mean|what do you mean by that|huh|say that again|whats that|what was that|i didnt understand|i dont understand the question|
    can you say that again|could you say that again""".replace("\n", "").replace("    ", "").split("|")
)  # fmt: skip
_REPEAT_ZH = frozenset(
    ["重复", "重复一遍", "重复一下", "重复问题", "再问一遍", "再问一次", "再说一遍", "再说一次", "再讲一遍", "你再说一遍", "再说一下", "问题是什么", "你问什么", "你问的是什么", "你刚才问什么", "刚才问什么", "你刚才说什么", "你说什么", "什么问题", "没听清", "没听清楚", "我没听清", "我没听清楚", "没听到", "我没听到", "没听见", "没听懂", "我没听懂", "什么意思", "你什么意思", "你是什么意思", "这是什么意思", "我没听见", "啥", "什么", "你说啥", "刚才说什么", "刚才的问题是什么", "问题再说一遍", "把问题再说一遍", "再来一遍", "重新问一遍", "重问", "刚刚问什么", "你刚刚问什么", "刚刚说什么", "你刚刚说什么"]
)  # fmt: skip
_RESUME_EN = re.compile(
    r"^(?:resume|continue|go on|carry on|proceed|back|go back|return|get back|lets get back|lets go back|lets continue|pick up|lets resume|lets return)"
    r"(?: with| to| on)?(?: the| that| my| our)?(?P<what>.*)$"
)
_RESUME_ZH = re.compile(
    r"^(?:继续|恢复|接着|回到|回去|重新开始|接着做|继续做|继续刚才的?|接着刚才的?|回到刚才的?|恢复刚才的?)(?:做|弄|办|填|玩|设|设置|进行|那个|我的|之前的|刚才的|上次的)*(?P<what>.*)$"
)
_CANCEL_NAMED_EN = re.compile(
    r"^(?:cancel|abort|stop|quit|forget|drop|call off|end|scrap|i dont want|i dont need|no more)(?: about| with)?(?: the| that| my| this| our| a| an)? (?P<what>.+)$"
)
_CANCEL_NAMED_ZH = re.compile(
    r"^(?:取消|放弃|终止|停止|结束|退出|不要|不做|不想要|撤销|别做|不用)(?:掉|这个|那个|我的|刚才的|了)*(?P<what>.+)$"
)
_CANCEL_NAMED_ZH_TAIL = re.compile(
    r"^(?:把|将)?(?P<what>.+?)(?:给|都)?(?:取消|撤销|不要了|算了|停掉|不做了|作废)(?:掉|了)*$"
)
_ANY_TASK = frozenset(
    ["task", "job", "thing", "one", "it", "that", "this", "任务", "事情", "事", "那个", "这个", "它", "那件事", "刚才"]
) | {
    "",
    "last one",
    "other one",
    "other task",
    "other thing",
    "earlier task",
    "previous task",
    "刚才的事",
    "刚才那个",
    "之前的任务",
    "上一个",
    "之前的",
    "刚才的任务",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseCommand:
    """A rule that matched. `kind`: cancel, skip, repeat, resume; `what` names a flow in the user's words, if any.

    `is_soft`: said by people who only chat, too, so it counts only while a task runs.
    """

    kind: str
    what: str = ""
    is_soft: bool = False


def _forms_en(text: str) -> list[str]:
    folded = fold_en(text)
    forms = [folded, _LEAD_EN.sub("", folded + " ").strip()]
    forms += [_TAIL_EN.sub("", form) for form in list(forms)]
    return list(dict.fromkeys(f for f in forms if f))


def _forms_zh(text: str) -> list[str]:
    folded = fold_zh(text)
    # 「我不想弄了」: the lead would take the 「不」 along
    forms = [folded, folded.removeprefix("我"), _LEAD_ZH.sub("", folded)]
    # 「算了吧」 is 「算了」 with a particle, so they also go one by one
    forms += [re.sub(r"[吧啊呀哦呢嘛啦]$", "", form) for form in list(forms)]
    forms += [_TAIL_ZH.sub("", form) for form in list(forms)]
    forms += [_LEAD_ZH.sub("", form) for form in list(forms)]
    return list(dict.fromkeys(f for f in forms if f))


def match_phrase(text: str, *, asks_yes_no: bool = False) -> PhraseCommand | None:
    """Match a whole utterance. With a yes/no question open, words that also mean "no" are left to it."""
    found = _match_whole(text, asks_yes_no) or _match_clauses(text, asks_yes_no)
    if found is not None:
        return found
    chinese = bool(CJK.search(text))
    forms = _forms_zh(text) if chinese else _forms_en(text)
    return _with_name(forms, chinese) if forms and len(forms[0]) <= MAX_PHRASE_CHARS else None


MAX_PHRASE_CHARS = 60
_CLAUSES = re.compile(r"[,;.!?，。；！？、…]+")


def _match_clauses(text: str, asks_yes_no: bool) -> PhraseCommand | None:
    """Match a phrase said twice over (「算了吧，不弄了」, "no, never mind, forget it"): every clause has to mean it."""
    clauses = [c for c in _CLAUSES.split(text) if c.strip()]
    if not 2 <= len(clauses) <= 4:
        return None
    meant = [c for c in clauses if not _is_lead(c)]
    found = [_match_whole(c, asks_yes_no) for c in meant]
    kinds = {f.kind if f is not None else "" for f in found}
    if len(kinds) != 1 or not kinds <= {"cancel", "skip", "repeat"}:
        return None
    return PhraseCommand(kind=kinds.pop(), is_soft=all(f is not None and f.is_soft for f in found))


def _is_lead(clause: str) -> bool:
    """Whether a clause is only a word to begin or to be polite with."""
    if CJK.search(clause):
        return not _TAIL_ZH.sub("", _LEAD_ZH.sub("", fold_zh(clause)))
    folded = _LEAD_EN.sub("", fold_en(clause) + " ").strip()
    return not _TAIL_EN.sub("", " " + folded).strip()


def _match_whole(text: str, asks_yes_no: bool) -> PhraseCommand | None:
    chinese = bool(CJK.search(text))
    forms = _forms_zh(text) if chinese else _forms_en(text)
    if not forms or len(forms[0]) > MAX_PHRASE_CHARS:
        return None
    cancel, soft, skip, repeat = (
        (_CANCEL_ZH, _SOFT_CANCEL_ZH, _SKIP_ZH, _REPEAT_ZH)
        if chinese
        else (_CANCEL_EN, _SOFT_CANCEL_EN, _SKIP_EN, _REPEAT_EN)
    )
    for form in forms:
        if form in cancel and not (asks_yes_no and form in _NO_LIKE):
            return PhraseCommand(kind="cancel", is_soft=form in soft)
    for kind, words in (("skip", skip), ("repeat", repeat)):
        if any(form in words for form in forms):
            return PhraseCommand(kind=kind)
    return None


def _with_name(forms: list[str], chinese: bool) -> PhraseCommand | None:
    for form in forms:
        resume = (_RESUME_ZH if chinese else _RESUME_EN).match(form)
        if resume is not None:
            return PhraseCommand(kind="resume", what=_trimmed(resume["what"], chinese))
    patterns = (_CANCEL_NAMED_ZH, _CANCEL_NAMED_ZH_TAIL) if chinese else (_CANCEL_NAMED_EN,)
    for form in forms:
        for pattern in patterns:
            cancel = pattern.match(form)
            if cancel is not None:
                return PhraseCommand(kind="cancel_named", what=_trimmed(cancel["what"], chinese))
    return None


def _trimmed(what: str, chinese: bool) -> str:
    if chinese:
        return (
            re.sub(r"^(?:那个|这个|我的|刚才的|之前的|的)+|(?:任务|流程|吧|了|的事|这件事|那件事)+$", "", what.strip())
            or what.strip()
        )
    return re.sub(r"^(?:the|my|that|this|our) | (?:task|flow|please|thing|again)$", "", what.strip())


_STOP_EN = re.compile(
    r"^(?:(?:cancel|delete|call off|(?:turn|switch|shut) off|(?:do not|dont|stop) play(?:ing)?)(?: (?:the|that|my|this|our|a|an))*"
    r"|(?:stop|end|pause|mute|turn|switch|shut) (?:the|that|my|this|our)) (?P<what>.+?)(?: off)?$"
)
_STOP_ZH = re.compile(
    r"^(?:取消|停止|停掉|停下|关掉|关闭|关了|删掉|删除|暂停|(?:不要|别)再?(?=[放播]))(?:播放|放|播)?(?:掉|这个|那个|我的|了)*(?P<what>[^了]{2,}?)了?$"
    r"|^(?:把|将)(?P<thing>.+?)(?:给|都)?(?:取消|停|关|删)(?:掉|了)*$"
)


def what_to_stop(text: str) -> str:
    """Return what the user wants cancelled or stopped, in his words; "" where a text wants nothing of the kind."""
    chinese = bool(CJK.search(text))
    if len(text) > MAX_PHRASE_CHARS:
        return ""
    for form in _forms_zh(text) if chinese else _forms_en(text):
        match = (_STOP_ZH if chinese else _STOP_EN).match(form)
        what = next((g for g in match.groups() if g), "") if match is not None else ""
        if what and not names_any_task(what):
            return what
    return ""


def shares_word(what: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts is about what the words name: a word (its stem), or two Chinese signs in a row."""
    if CJK.search(what):
        pairs = {what[i : i + 2] for i in range(len(what) - 1)}
        return any(pair in text for text in texts for pair in pairs)
    said = {word[:5] for word in fold_en(what).split()} - _NO_THINGS
    return any(said & {word[:5] for word in fold_en(text).split()} for text in texts)


def beyond_name(what: str, names: Iterable[str]) -> str:
    """Return what the words say of a thing beside what it is called: "call Bob" of "the reminder to call Bob"."""
    rest = fold_zh(what) if CJK.search(what) else fold_en(what)
    if CJK.search(what):
        for part in sorted(
            {n[i:j] for n in map(fold_zh, names) for i in range(len(n)) for j in range(i + 2, len(n) + 1)},
            key=len,
            reverse=True,
        ):
            rest = rest.replace(part, "")
        return re.sub(r"^(?:那个|这个|我|的|个|一|新)+|(?:的|这件事|那件事|了|吧)+$", "", rest)
    known = {word for name in names for word in fold_en(name).split()} | {"new", "one", "please", "again"}
    return " ".join(w for w in rest.split() if w not in known and w[:5] not in _NO_THINGS)


_NO_THINGS = frozenset(
    word[:5]
    for word in "the my a an this that all of for to in on at it is me i you your our one with about and or off from".split()  # noqa: SIM905
)


def names_any_task(what: str) -> bool:
    """Whether the words only point ("that one", 「刚才那个」)."""
    return what.strip() in _ANY_TASK


def find_flow(what: str, flows: Iterable[tuple[str, tuple[str, ...]]], *, fuzzy: bool = True) -> str | None:
    """Return the one flow among (id, names) that the words name, None for none or several."""
    wanted_en, wanted_zh = fold_en(what), fold_zh(what)
    if not wanted_en and not wanted_zh:
        return None
    exact: list[str] = []
    partial: list[str] = []
    for flow_id, names in flows:
        for name in (*names, flow_id.replace("_", " ")):
            folded_en, folded_zh = fold_en(name), fold_zh(name)
            if wanted_zh == folded_zh or (wanted_en and wanted_en == folded_en):
                exact.append(flow_id)
            elif fuzzy and _overlap(wanted_en, wanted_zh, folded_en, folded_zh):
                partial.append(flow_id)
    for found in (exact, partial):
        unique = list(dict.fromkeys(found))
        if len(unique) == 1:
            return unique[0]
        if unique:
            return None
    return None


def _overlap(wanted_en: str, wanted_zh: str, name_en: str, name_zh: str) -> bool:
    if CJK.search(name_zh):
        return (
            len(wanted_zh) >= 2 and CJK.search(wanted_zh) is not None and (wanted_zh in name_zh or name_zh in wanted_zh)
        )
    words = set(name_en.split()) - {"a", "an", "the", "my", "set", "start", "request"}
    said = set(wanted_en.split())
    return bool(words) and bool(said) and (words <= said or bool(said <= set(name_en.split())))


# --- corrections -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A correction in words. `about` names a slot in the user's words ("" for none), `value` what it should be.

    An empty `value` asks to be asked again.
    """

    about: str
    value: str


_CORRECT_EN: list[re.Pattern[str]] = [
    re.compile(r"^(?:no |wait |sorry |actually |oh |please |can you |could you )*(?:change|set|update|correct|make|switch) (?:the |my |that |this )?(?P<about>[a-z][a-z ]*?) (?:to|into|as) (?P<value>.+)$"),
    re.compile(r"^(?:no |wait |sorry |actually |oh )*(?:the |my )(?P<about>[a-z][a-z ]*?) (?:should be|should have been|has to be|must be|is actually|is really|was actually) (?P<value>.+)$"),
    re.compile(r"^(?:no |wait |sorry |actually |oh )*(?:change|correct|redo|fix|update) (?:the |my |that |this )?(?P<about>[a-z][a-z ]*?)(?P<value>)$"),
    re.compile(r"^(?:no |wait |sorry |actually |oh )*(?:the |my |that )(?P<about>[a-z][a-z ]*?) (?:is|was|is not|isnt|was not|wasnt) (?:wrong|incorrect|not right|not correct|right|correct)(?P<value>)$"),
    re.compile(r"^(?:(?:no|oh|wait|sorry|oops|hold on) )*(?:i meant|i mean|make that|make it|i should have said|i wanted to say|correction|scratch that|better|rather) (?P<value>.+?)(?P<about>)$"),
    re.compile(r"^(?:no |oh )?not (?P<old>.+?) but (?P<value>.+?)(?P<about>)$"),
    re.compile(r"^(?:(?:no|oh|oops) )*(?:wait|sorry|actually|no no)(?: no)?(?: its| it is| it was)? (?P<value>.+?)(?P<about>)$"),
]  # fmt: skip
_CORRECT_ZH: list[re.Pattern[str]] = [
    re.compile(r"^(?:不对|等等|等一下|不好意思|对不起|那个|请|帮我|麻烦)*[，,]?(?:把|将)?(?P<about>[^把将，,]{1,12}?)(?:改成|改为|改到|换成|换为|更正为|设成|设为|变成)(?:了)?(?P<value>.+)$"),
    re.compile(r"^(?:不对|等等|不好意思|对不起)*[，,]?(?P<about>[^，,]{1,12}?)(?:应该是|应当是|其实是|实际上是)(?P<value>.+)$"),
    re.compile(r"^(?:不对|等等|不好意思|对不起)*[，,]?(?:把|将)?(?P<about>[^，,]{1,12}?)(?:改一下|改改|重新说|重说|重填|更正一下|更正|要改)(?P<value>)$"),
    re.compile(r"^(?:不对|等等|不好意思|对不起|请|帮我|麻烦|我想|我要)*[，,]?(?:改一下|改下|更正一下|修改一下|修改|换一下)(?P<about>[^，,]{1,8}?)(?P<value>)$"),
    re.compile(r"^(?:等等|不好意思|对不起)*[，,]?(?P<about>[^，,]{1,12}?)(?:不对|错了|说错了|弄错了|填错了|写错了|不正确|有误)(?P<value>)$"),
    re.compile(r"^(?:不对|不是|等等|哦不|啊不|不好意思|对不起|抱歉)*[，,]?(?:我说错了|说错了|我的意思是|我是说|我是想说|改成|改为|换成|应该是|其实是|更正)[，,]?(?:应该)?(?:是)?(?P<value>.+?)(?P<about>)$"),
    re.compile(r"^不是(?P<old>[^，,]+?)[，,]?(?:而)?是(?P<value>.+?)(?P<about>)$"),
    re.compile(r"^(?:不对不对|不对|等等不对|哦不|啊不|说错了|不不不|不不)[，,]?(?:是)?(?P<value>.+?)(?P<about>)$"),
]  # fmt: skip
_WRONG = frozenset(
    [
        "thats wrong",
        "that is wrong",
        "thats not right",
        "that is not right",
        "wrong",
        "i made a mistake",
        "i said it wrong",
        "i misspoke",
        "thats incorrect",
    ]
)
_WRONG_ZH = frozenset(["不对", "错了", "说错了", "我说错了", "不是这个", "弄错了", "搞错了", "我弄错了", "我搞错了"])


def match_correction(text: str) -> Correction | None:
    """Match words that correct something said before."""
    if len(text) > 200:
        return None
    if CJK.search(text):
        bare = re.sub(r"[。！!.？?\s]+$", "", text.strip())
        bare = re.sub(r"\s+", "", bare)
        if fold_zh(bare) in _WRONG_ZH:
            return Correction(about="", value="")
        return _first(_CORRECT_ZH, bare)
    return _correct_en(text)


def _correct_en(text: str) -> Correction | None:
    folded = re.sub(
        r"\s+", " ", re.sub(r"[^\w\s:./%+-]+", " ", text.casefold().replace("’", "'").replace("'", ""))
    ).strip(" .")
    if folded in _WRONG:
        return Correction(about="", value="")
    found = _first(_CORRECT_EN, folded)
    if found is None or not found.value:
        return found
    # the value keeps the user's own spelling
    at = re.search(r"\W*".join(map(re.escape, found.value.split())), text, re.IGNORECASE)
    return Correction(about=found.about, value=at[0].strip(" .") if at else found.value)


def _first(patterns: list[re.Pattern[str]], text: str) -> Correction | None:
    for pattern in patterns:
        match = pattern.match(text)
        if match is not None:
            return Correction(about=(match["about"] or "").strip(), value=(match["value"] or "").strip(" ，,"))
    return None


def find_slot(about: str, slots: Iterable[tuple[str, tuple[str, ...]]]) -> str | None:
    """Return the one slot among (id, labels) that the words name."""
    return find_flow(about, slots)


def backchannel_only(text: str) -> bool:
    """Whether a text is nothing but listening sounds, which say nothing to a task."""
    folded = fold_en(text) if not CJK.search(text) else fold_zh(text)
    return folded in _SOUNDS


_SOUNDS = frozenset(
    [
        "mm",
        "mhm",
        "mm hm",
        "hm",
        "hmm",
        "uh",
        "um",
        "er",
        "ah",
        "oh",
        "uh huh",
        "嗯",
        "嗯嗯",
        "呃",
        "额",
        "啊",
        "哦",
        "噢",
        "唔",
        "嗯哼",
    ]
)
