"""What the words so far tell about the end of a turn: finished, going on, or asking for time. Pure rules.

Hints for patience only: the worst they can do is a wait that is a little too long or too short. A recogniser puts a
full stop behind nearly everything, so a last word that needs another one counts more than the stop behind it.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from orchestrator.speech.words import has_cjk


class Ending(StrEnum):
    """How what was said so far ends."""

    CLOSED = "closed"
    """A finished sentence."""
    UNSURE = "unsure"
    OPEN = "open"
    """In the middle of a sentence."""
    HOLD = "hold"
    """The user asked for time: "let me think"."""
    ANSWER = "answer"
    """All that the character has just asked for: a yes or no, a number."""


# fmt: off
_OPEN_WORDS = frozenset((
    # articles, determiners, possessives
    "a", "an", "the", "my", "your", "his", "her", "its", "their", "our", "this", "these", "those", "every", "each",
    "some", "any", "another", "such", "very", "too", "more", "most", "quite", "really", "both", "either", "neither",
    # conjunctions
    "and", "or", "but", "so", "because", "if", "when", "while", "that", "which", "who", "whose", "where", "whether",
    "than", "as", "although", "though", "unless", "until", "since", "before", "after", "then", "also", "not", "nor",
    # prepositions
    "of", "to", "in", "on", "at", "for", "from", "with", "by", "about", "into", "onto", "over", "under", "between",
    "through", "during", "without", "within", "against", "toward", "towards", "upon", "among", "per", "via", "like",
    # verbs that need another word
    "is", "are", "was", "were", "be", "been", "am", "i'm", "it's", "that's", "there's", "he's", "she's", "we're",
    "they're", "you're", "i've", "we've", "i'd", "i'll", "you'll", "he'd", "we'd", "have", "has", "had", "will",
    "would", "can", "could", "should", "shall", "may", "might", "must", "don't", "doesn't", "didn't", "can't", "won't",
    "let's", "gonna", "wanna", "want", "going", "called", "said", "says", "tell", "give", "i", "we", "he", "she",
    "they", "mister", "mr", "mrs", "ms", "dr", "doctor", "miss",
    # fillers
    "um", "uh", "er", "erm", "hmm", "well", "you know", "i mean",
))
# These often end a sentence, too: "turn it on", "what is it for", "yes I would".
_MAY_END = frozenset((
    "on", "in", "to", "for", "of", "with", "at", "about", "from", "by", "over", "through", "like", "before", "after",
    "then", "so", "too", "this", "these", "those", "more", "some", "any", "both", "is", "are", "was", "were", "am",
    "be", "been", "have", "has", "had", "will", "would", "can", "could", "should", "do", "did", "not", "don't",
    "doesn't", "didn't", "can't", "won't", "that", "who", "where", "when", "either", "neither", "another", "each",
    "going", "want", "said", "though", "well", "really", "under", "within", "without", "also", "since", "must", "may",
    "might", "his", "her", "miss", "doctor", "he", "she", "they", "we", "i", "most", "tell", "give", "called",
))
_OPEN_TAIL = re.compile(
    r"(?:\b(?:i|you|we|they|he|she|it|there) (?:want|need|have|would like|am|is|are|was|were|will|can|could|should|"
    r"would|might|may|must|do|did|said|think|thought|know|mean|guess|wonder)"
    r"|\b(?:you know|i mean|kind of|sort of|a lot of|such as|because of|so that|in order to|going to|want to|like to|"
    r"have to|used to|need to|able to|supposed to|due to|next to|as well as|to the|in the|on the|at the|of the|for the|"
    r"and the|and i|but i|and then|what about|how about|what if))$"
)
_OPEN_CHARACTERS = (
    "然后", "因为", "所以", "但是", "可是", "不过", "如果", "就是", "还有", "或者", "以及", "那个", "这个", "关于",
    "而且", "并且", "虽然", "要是", "假如", "除了", "比如", "例如", "根据", "由于", "为了", "只要", "只有", "无论",
    "不管", "尽管", "即使", "甚至", "另外", "同时", "的时候", "的话", "我想", "我要", "我觉得", "我认为", "请问",
    "一个", "这种", "那种", "一些", "每个", "第一", "非常", "特别", "比较", "正在", "已经", "应该", "可以", "需要",
    "能不能", "可不可以", "会不会", "是不是", "有没有", "什么样的", "怎样的", "我的", "你的", "他的", "她的",
    "我们的", "和", "跟", "与", "把", "被", "在", "给", "对于", "对", "从", "向", "往", "比", "让", "使", "是", "很",
    "更", "最", "不", "没", "的", "地", "嗯", "呃", "额", "那", "就", "也", "都", "又", "再", "还", "为", "以", "而",
)
_CHARACTERS_MAY_END = (
    "在", "对", "可以", "需要", "已经", "应该", "这个", "那个", "一些", "是", "不", "没", "的", "还有", "第一", "一个",
    "我想", "我要", "比较", "会不会", "是不是", "有没有", "能不能", "可不可以", "我的", "你的", "他的", "她的",
    "我们的", "给", "还", "让", "就是",
)
_YES_NO = frozenset((
    "yes", "no", "yeah", "yep", "yup", "nope", "nah", "okay", "ok", "sure", "right", "correct", "exactly", "of course",
    "definitely", "absolutely", "maybe", "not yet", "yes please", "no thanks", "no thank you", "thanks", "thank you",
    "对", "对的", "是", "是的", "不是", "不对", "好", "好的", "好啊", "行", "可以", "不行", "不可以", "没有", "有",
    "没错", "当然", "不要", "不用", "要", "谢谢", "不用了", "嗯", "嗯嗯", "没", "不", "可能吧", "也许",
))
# fmt: on
_HUMS = frozenset(("嗯", "嗯嗯", "呃", "额", "um", "uh", "er", "erm", "hmm"))
_FINAL_PARTICLES = (
    "吗", "呢", "吧", "啊", "呀", "怎么办", "怎么样", "怎么走", "是谁", "多少钱", "几点了", "好不好", "在哪里",
    "在哪儿", "在哪", "去哪里", "去哪儿", "是什么", "多少", "多大", "多久", "多远", "几岁", "几号", "星期几", "几点",
)
_CHINESE_OBJECT = re.compile(
    r"^(?:请问)?(?!请问).{2,}(?:什么(?!时候)|哪[个种位些]|多少|几[个次天])[^，,的在是和跟与把被给]{1,4}$"
)
"""What is asked for stands in the middle, with its noun: 「你最喜欢哪个季节」, not 「哪个季节」 nor 「最喜欢哪个」."""
_CLAUSE_MARKS = ",，、;；:：-—–…"
_STOPS = ".!。！"
_ASKS = "?？"
_QUESTION_START = re.compile(
    r"^(?:(?:and|so|but|well|okay|ok|hey|hi|please)[, ]+)*"
    r"(?:what|who|when|where|why|how|which|whose|can|could|would|will|do|does|did|is|are|was|were|have|has|should|may)\b"
)
_ASKS_FOR = re.compile(
    r"^(?:(?:and|so|but|well|okay|ok|hey|hi|please)[, ]+)*(?:what|who|when|where|why|how|which|whose)(?:'s)?\b"
)
_FEW_WORDS = 2
_QUESTION_WORDS = 4
_SURE_QUESTION_CHANCE = 0.85
"""A question for something that has its words is complete sooner than "can I get a coffee" …"""


def bare(text: str) -> str:
    """Return `text` in one width and case, without marks at its ends."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return folded.strip(" \t\n.,!?;:。，！？；：、…—–-\"'“”‘’「」")


def is_short_answer(text: str) -> bool:
    """Whether `text` is only a yes or no, or a number: what a question waits for and what nothing more must follow."""
    core = bare(text)
    return core in _YES_NO or (bool(core) and all(char.isdigit() or char in " .,:" for char in core))


def asks_in_chinese(text: str) -> bool:
    """Whether `text` is a Chinese question that is complete by its words, whatever mark stands behind it."""
    core = bare(text)
    return core.endswith(_FINAL_PARTICLES) or _CHINESE_OBJECT.match(core) is not None


def asks_for_something(text: str) -> bool:
    """Whether `text` is an English question with its mark that begins with what it asks for, and has some words."""
    core = bare(text)
    return text.strip()[-1:] in _ASKS and len(core.split()) >= _QUESTION_WORDS and _ASKS_FOR.match(core) is not None


def ending_of(text: str) -> Ending:
    """Return how `text`, the words of a turn so far in English or Chinese, ends; HOLD is for others to find."""
    stripped = text.strip()
    core = bare(stripped)
    if not core:
        return Ending.UNSURE
    if core in _HUMS:
        return Ending.OPEN
    if is_short_answer(stripped):
        return Ending.CLOSED
    has_asked = stripped[-1] in _ASKS
    if stripped[-1] in _CLAUSE_MARKS or stripped.endswith(("...", "。。。")):
        return Ending.OPEN
    is_stopped = has_asked or stripped[-1] in _STOPS
    if has_cjk(core[-1]):
        return _chinese(core, is_stopped=is_stopped, has_asked=has_asked)
    return _english(core, is_stopped=is_stopped, has_asked=has_asked)


def judged_ending(text: str, end_chance: float | None, *, sure_end_chance: float) -> Ending:
    """Return how `text`, all that was said before a pause, ends, in the light of how sure its recogniser is.

    `end_chance` is how likely the recogniser found an end there, None if it can't tell.
    """
    ending = ending_of(text)
    needed = min(sure_end_chance, _SURE_QUESTION_CHANCE) if asks_for_something(text) else sure_end_chance
    is_sure = end_chance is None or end_chance >= needed or asks_in_chinese(text)
    return Ending.UNSURE if ending is Ending.CLOSED and not is_sure else ending


def _chinese(core: str, *, is_stopped: bool, has_asked: bool) -> Ending:
    tail = next((word for word in _OPEN_CHARACTERS if core.endswith(word)), None)
    if tail is not None and not has_asked:
        return Ending.UNSURE if tail in _CHARACTERS_MAY_END and is_stopped else Ending.OPEN
    if has_asked or core.endswith(_FINAL_PARTICLES) or _CHINESE_OBJECT.match(core):
        return Ending.CLOSED
    return Ending.CLOSED if is_stopped else Ending.UNSURE


def _english(core: str, *, is_stopped: bool, has_asked: bool) -> Ending:
    words = core.split()
    last = words[-1].strip(",;:")
    if last in _OPEN_WORDS and last not in _MAY_END:
        return Ending.OPEN
    if _OPEN_TAIL.search(core) and not (has_asked and last in _MAY_END):
        return Ending.OPEN
    if last in _MAY_END:
        if has_asked or _QUESTION_START.match(core):
            return Ending.CLOSED if is_stopped else Ending.UNSURE
        return Ending.UNSURE if is_stopped else Ending.OPEN
    if has_asked:
        return Ending.CLOSED
    if _QUESTION_START.match(core) and len(words) <= _FEW_WORDS:
        return Ending.OPEN
    return Ending.CLOSED if is_stopped else Ending.UNSURE
