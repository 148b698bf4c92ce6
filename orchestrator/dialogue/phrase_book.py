"""What short utterances mean for the sound: stop, object, go on, repeat, or only "mm-hm". Pure text rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_BOUNDARY = re.compile(r"[,.!?;:，。！？；：、…—\n]+")
_NOT_WORD = re.compile(r"[^\w\s'\-]+", re.UNICODE)
_CJK = re.compile(r"[\u3400-\u9fff]")

_HUMS = frozenset(
    ("mm", "mmm", "mhm", "hm", "hmm", "uh", "um", "er", "ah", "嗯", "恩", "唔", "呃", "额", "啊", "哦", "诶", "欸")
)

Phrases = Mapping[str, tuple[str, ...]]
"""Phrases by language (`en`, `zh`)."""


def normalise(text: str) -> str:
    """Fold case, width and hyphens; drop marks and doubled spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("-", " ")
    return " ".join(_NOT_WORD.sub(" ", folded).split())


def clauses(text: str) -> list[tuple[str, int]]:
    """Split at punctuation; returns each non-empty clause, normalised, with where the text after it begins."""
    found: list[tuple[str, int]] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if (
            match.group() in ".:"
            and match.start() > 0
            and text[match.start() - 1].isdigit()
            and text[match.end() : match.end() + 1].isdigit()
        ):
            continue
        clause = normalise(text[start : match.start()])
        if clause:
            found.append((clause, match.end()))
        elif found:
            found[-1] = (found[-1][0], match.end())
        start = match.end()
    clause = normalise(text[start:])
    if clause:
        found.append((clause, len(text)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseMatch:
    """What was found. `kind`: pause, objection; `rest` is what the user said after it, "" for nothing."""

    kind: str
    phrase: str
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseBook:
    """The phrases of `policy.yml`, all languages together, since people mix them.

    `fillers` may stand before a phrase (interjections, "no", "please"), `softeners` after it. `names` are those the
    character answers to.
    """

    pause: Phrases
    objection: Phrases
    backchannel: Phrases
    go_on: Phrases
    repeat: Phrases
    fillers: Phrases
    softeners: Phrases
    hold_turn: Phrases
    names: tuple[str, ...] = ()
    _sets: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    def _set(self, name: str) -> frozenset[str]:
        if name not in self._sets:
            phrases: Phrases = getattr(self, name)
            self._sets[name] = frozenset(normalise(p) for group in phrases.values() for p in group)
        return self._sets[name]

    def stop_phrase(self, text: str) -> PhraseMatch | None:
        """Match a stop phrase: the whole text, or its beginning up to a clause boundary."""
        parts = clauses(text)
        kind: str | None = None
        phrase = ""
        end = 0
        for clause, after in parts:
            if kind is None and self._is_filler_only(clause):
                continue
            found, core = self._kind_of_any(clause)
            if found is None:
                if kind is not None and self._is_filler_only(clause):
                    end = after
                    continue
                break
            if kind is None or (kind == "pause" and found == "objection"):
                kind, phrase = found, core
            end = after
        if kind is None:
            return None
        return PhraseMatch(kind=kind, phrase=phrase, rest=text[end:].strip())

    def is_backchannel(self, text: str) -> bool:
        """Whether the text is nothing but listening sounds and words ("mm-hm", "yeah, right", 「嗯，对」)."""
        parts = clauses(text)
        return bool(parts) and all(self._is_made_of(clause, self._set("backchannel")) for clause, _ in parts)

    def is_hum(self, text: str) -> bool:
        """Whether the text is nothing but sounds without meaning ("mm", "uh", 「呃」)."""
        parts = clauses(text)
        return bool(parts) and all(self._is_made_of(clause, _HUMS) for clause, _ in parts)

    def is_go_on(self, text: str) -> bool:
        """Whether the whole text asks to continue."""
        return self._is_whole(text, "go_on")

    def is_repeat(self, text: str) -> bool:
        """Whether the whole text asks to hear the last answer again."""
        return self._is_whole(text, "repeat")

    def holds_turn(self, text: str) -> bool:
        """Whether the text ends by asking for time ("one moment", 「等我想想」)."""
        parts = clauses(text)
        wanted = self._set("hold_turn")
        return bool(parts) and any(core in wanted for core in self._cores(parts[-1][0]))

    def _is_whole(self, text: str, name: str) -> bool:
        parts = [clause for clause, _ in clauses(text) if not self._is_filler_only(clause)]
        wanted = self._set(name)
        return bool(parts) and all(any(core in wanted for core in self._cores(clause)) for clause in parts)

    def _kind_of(self, core: str) -> str | None:
        for kind in ("objection", "pause"):
            if self._is_made_of(core, self._set(kind)):
                return kind
        return None

    def _kind_of_any(self, clause: str) -> tuple[str | None, str]:
        for core in self._cores(clause):
            kind = self._kind_of(core)
            if kind is not None:
                return kind, core
        return None, clause

    def _cores(self, clause: str) -> Iterator[str]:
        """Yield the clause, then what is left as fillers and names go from its start and softeners from its end."""
        names = tuple(normalise(name) for name in self.names)
        before = sorted((*self._set("fillers"), *names), key=len, reverse=True)
        after = sorted((*self._set("softeners"), *names), key=len, reverse=True)
        head: str | None = clause
        while head:
            tail: str | None = head
            while tail:
                yield tail
                tail = _take_off(tail, after, at_start=False)
            head = _take_off(head, before, at_start=True)

    def _is_filler_only(self, clause: str) -> bool:
        words = self._set("fillers") | {normalise(n) for n in self.names}
        return self._is_made_of(clause, words) and self._kind_of(clause) is None

    @staticmethod
    def _is_made_of(clause: str, phrases: Iterable[str]) -> bool:
        """Whether the clause is one of the phrases, or several of them in a row."""
        ordered = sorted(phrases, key=len, reverse=True)
        compact = clause.replace(" ", "") if _CJK.search(clause) else None
        rest = clause
        while rest:
            for phrase in ordered:
                if _starts_with(rest, phrase):
                    rest = rest[len(phrase) :].lstrip()
                    break
            else:
                if compact is not None and compact != clause:
                    return PhraseBook._is_made_of(compact, ordered)
                return False
        return bool(clause)


def _starts_with(text: str, phrase: str) -> bool:
    if not phrase or not text.startswith(phrase):
        return False
    if _CJK.search(phrase[-1]):
        return True
    return (
        len(text) == len(phrase)
        or not (text[len(phrase)].isalnum() or text[len(phrase)] == "'")
        or bool(_CJK.match(text[len(phrase)]))
    )


def _ends_with(text: str, phrase: str) -> bool:
    if not phrase or not text.endswith(phrase):
        return False
    if _CJK.search(phrase[0]):
        return True
    at = len(text) - len(phrase)
    return at == 0 or not text[at - 1].isalnum()


def _take_off(clause: str, phrases: list[str], *, at_start: bool) -> str | None:
    """Return the clause without the longest phrase at that end, None if there is none or nothing would be left."""
    for phrase in phrases:
        if len(phrase) >= len(clause):
            continue
        if at_start and _starts_with(clause, phrase):
            return clause[len(phrase) :].lstrip()
        if not at_start and _ends_with(clause, phrase):
            return clause[: -len(phrase)].rstrip()
    return None


DEFAULT_PHRASES: Mapping[str, Phrases] = {
    "pause": {
        "en": (
            "stop",
            "stop it",
            "stop that",
            "stop talking",
            "stop there",
            "wait",
            "wait a minute",
            "wait a second",
            "wait a moment",
            "wait a sec",
            "just a minute",
            "just a second",
            "hold on",
            "hold on a second",
            "hold on a minute",
            "hang on",
            "hang on a second",
            "hang on a minute",
            "pause",
            "quiet",
            "be quiet",
            "shut up",
            "shush",
            "silence",
            "enough",
            "that's enough",
            "hold it",
            "time out",
        ),
        "zh": (
            "停",
            "停停",
            "停一下",
            "停下",
            "停下来",
            "停止",
            "先停",
            "先停一下",
            "暂停",
            "暂停一下",
            "等一下",
            "等一等",
            "等等",
            "等会儿",
            "等会",
            "等下",
            "先等一下",
            "先等等",
            "稍等",
            "稍等一下",
            "你等一下",
            "别说了",
            "先别说",
            "先别说了",
            "不要说了",
            "别讲了",
            "打住",
            "安静",
            "安静一下",
            "闭嘴",
            "够了",
            "慢着",
            "你先停一下",
        ),
    },
    "objection": {
        "en": (
            "not that",
            "not this",
            "that's not it",
            "that's not what i asked",
            "that's not what i meant",
            "that is not what i asked",
            "that is not what i meant",
            "that's not what i said",
            "i didn't ask that",
            "i didn't mean that",
            "that's wrong",
            "wrong",
            "that's not right",
            "not that one",
            "you misunderstood",
            "you misunderstood me",
        ),
        "zh": (
            "不是这个",
            "不是这样",
            "不是那个",
            "我不是这个意思",
            "我不是问这个",
            "我问的不是这个",
            "我说的不是这个",
            "不是这个意思",
            "你说错了",
            "你理解错了",
            "你误会了",
            "不对",
            "错了",
            "不是的不是这个",
        ),
    },
    "backchannel": {
        "en": (
            "mm",
            "mmm",
            "mhm",
            "mm hm",
            "mm hmm",
            "mmhmm",
            "mhmm",
            "hm",
            "hmm",
            "uh huh",
            "uhuh",
            "uh hu",
            "ah",
            "oh",
            "ooh",
            "aha",
            "yeah",
            "yep",
            "yup",
            "yes",
            "ya",
            "right",
            "okay",
            "ok",
            "k",
            "sure",
            "i see",
            "got it",
            "alright",
            "all right",
            "of course",
            "true",
            "exactly",
            "indeed",
            "really",
            "wow",
            "cool",
            "nice",
            "great",
            "good",
            "uh",
            "um",
            "er",
            "ha",
            "haha",
            "huh",
            "oh yeah",
            "oh okay",
            "oh i see",
            "makes sense",
        ),
        "zh": (
            "嗯",
            "嗯哼",
            "恩",
            "唔",
            "哦",
            "噢",
            "喔",
            "啊",
            "呃",
            "额",
            "哈",
            "哈哈",
            "诶",
            "欸",
            "对",
            "对的",
            "对啊",
            "对呀",
            "是",
            "是的",
            "是啊",
            "是吗",
            "好",
            "好的",
            "好吧",
            "好啊",
            "行",
            "可以",
            "没错",
            "原来如此",
            "这样啊",
            "明白",
            "明白了",
            "懂了",
            "知道了",
            "了解",
            "真的",
            "哇",
            "ok",
        ),
    },
    "go_on": {
        "en": (
            "go on",
            "go ahead",
            "continue",
            "please continue",
            "carry on",
            "keep going",
            "keep talking",
            "keep on",
            "you can continue",
            "you can go on",
            "resume",
            "continue please",
            "go on then",
            "what were you saying",
            "and then",
            "finish what you were saying",
        ),
        "zh": (
            "继续",
            "继续说",
            "继续讲",
            "你继续",
            "你继续说",
            "接着说",
            "接着讲",
            "你接着说",
            "往下说",
            "说下去",
            "讲下去",
            "继续吧",
            "请继续",
            "然后呢",
            "你说吧",
            "你刚才说到哪了",
        ),
    },
    "repeat": {
        "en": (
            "say that again",
            "say it again",
            "repeat",
            "repeat that",
            "repeat it",
            "could you repeat that",
            "can you repeat that",
            "can you say that again",
            "could you say that again",
            "one more time",
            "come again",
            "pardon",
            "pardon me",
            "i beg your pardon",
            "what did you say",
            "what was that",
            "sorry what",
            "say again",
            "i didn't hear you",
            "i didn't catch that",
        ),
        "zh": (
            "再说一遍",
            "再说一次",
            "再讲一遍",
            "重复一遍",
            "重复一下",
            "你再说一遍",
            "请再说一遍",
            "你说什么",
            "你刚才说什么",
            "刚才说什么",
            "你刚说什么",
            "没听清",
            "我没听清",
            "没听清楚",
            "我没听清楚",
            "没听见",
            "再来一遍",
        ),
    },
    "fillers": {
        "en": (
            "oh",
            "ah",
            "um",
            "uh",
            "er",
            "hey",
            "hi",
            "no",
            "nope",
            "well",
            "so",
            "but",
            "okay",
            "ok",
            "yeah",
            "yes",
            "please",
            "sorry",
            "excuse me",
            "hello",
            "look",
            "listen",
            "actually",
            "hm",
            "hmm",
            "wow",
            "whoa",
            "ugh",
            "and",
            "now",
            "just",
            "god",
            "oh no",
            "can you",
            "could you",
            "would you",
        ),
        "zh": (
            "哎",
            "诶",
            "欸",
            "喂",
            "哎呀",
            "啊",
            "嗯",
            "呃",
            "额",
            "不",
            "不不",
            "不是",
            "好",
            "好了",
            "好的",
            "那个",
            "请",
            "请你",
            "你",
            "麻烦",
            "嘿",
            "哦",
            "对不起",
            "不好意思",
            "那",
            "行了",
            "唉",
        ),
    },
    "softeners": {
        "en": (
            "please",
            "now",
            "there",
            "for a second",
            "for a moment",
            "for a minute",
            "a bit",
            "right now",
            "will you",
            "would you",
            "okay",
            "ok",
            "already",
        ),
        "zh": ("吧", "啊", "呀", "哦", "嘛", "呢", "了", "哈", "好吗", "好不好", "行吗", "谢谢"),
    },
    "hold_turn": {
        "en": (
            "one moment",
            "let me think",
            "let me see",
            "give me a second",
            "give me a moment",
            "one second",
            "hmm let me think",
        ),
        "zh": ("等我想想", "让我想想", "我想想", "我想一下", "让我想一下", "等我一下", "给我一点时间", "让我看看"),
    },
}
"""Shipped phrases, also in `flow_config/policy.yml`; the file wins."""


def phrase_book(phrases: Mapping[str, Phrases] | None = None, names: tuple[str, ...] = ()) -> PhraseBook:
    """Return a book from `phrases`, the shipped ones for what is absent."""
    merged = {**DEFAULT_PHRASES, **(phrases or {})}
    return PhraseBook(
        pause=merged["pause"],
        objection=merged["objection"],
        backchannel=merged["backchannel"],
        go_on=merged["go_on"],
        repeat=merged["repeat"],
        fillers=merged["fillers"],
        softeners=merged["softeners"],
        hold_turn=merged["hold_turn"],
        names=names,
    )
