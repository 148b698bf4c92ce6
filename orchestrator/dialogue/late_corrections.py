"""Corrections while nothing is asked: of a task that has just ended, or whose last words are being said.

Nothing is open then that the words could answer, so they must carry their own mark ("no, at ten", "I meant tomorrow",
「不对，是十点」) or have cut into what is said, and they must be a value of something the user has filled.
"""

# ruff: noqa: E501 - patterns are read line by line

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from orchestrator.dialogue.decision import Decision
from orchestrator.dialogue.phrase_book import normalise
from orchestrator.dialogue.phrases import match_correction
from orchestrator.dialogue.replacement import bare_value, is_name_like, is_same_text, replacements
from orchestrator.flows.model import CollectStep, Slot
from orchestrator.flows.texts import PLACEHOLDER
from orchestrator.tasks.commands import Command
from orchestrator.tasks.extraction.words import CJK, is_question
from orchestrator.tasks.state import Task

if TYPE_CHECKING:
    from orchestrator.dialogue.understanding import Understander

MAX_CHARS = 120

_SOUND_EN = r"(?:oh|ah|um|uh|er|hm+|mm|well|ok|okay|please|so|and|but|hey|then|(?:can|could) (?:we|i) (?:do|have|say))"
_MARK_EN = (
    r"(?:(?:yes|yeah|ok|okay|right)[\s,]+but|no|nope|not that|wait|sorry|actually|hold on|hang on|oops|my mistake|correction|scratch that|rather|better|on second thoughts?"
    r"|that'?s wrong|that is wrong|that'?s not right|that is not right"
    r"|i said|i meant?(?: to say)?|i (?:should have|wanted to) sa(?:id|y)|i'd rather"
    r"|(?:can you |could you |please |let'?s )*(?:make|change|move|set|put|switch|push) (?:it|that|this)(?: to)?|let'?s say|let'?s make it"
    r"|it should(?: have)? be(?:en)?|that should(?: have)? be(?:en)?|should(?: have)? be(?:en)?|it'?s|it is|it was)"
)
_LEADS_EN = re.compile(rf"^(?:(?:{_SOUND_EN}|(?P<mark>{_MARK_EN}))\b[\s,.;:!?–—-]*)+", re.IGNORECASE)
_TAIL_EN = re.compile(
    r"(?:[\s,;–—-]+(?:please|thanks|thank you|then|(?P<mark>sorry|instead|rather|i mean|i meant|not that|(?:would be|is|might be) better)))+[\s.!?]*$",
    re.IGNORECASE,
)
_WEAK_EN = re.compile(r"it'?s|it is|it was", re.IGNORECASE)
_SOUND_ZH = r"(?:嗯|呃|额|哦|噢|啊|唉|哎|诶|那个|请|麻烦你?|帮我|你|能不能|可以|好的|好吧|那|我想|我要)"
_MARK_ZH = (
    r"(?:那就|不好意思|不对|不是的|不是|不不不|不不|不|错了|等等|等一下|等下|对不起|抱歉|我?(?:说|弄|搞|记)错了|我的意思是|我意思是|我是想说|我是说|我说的是|我想说的是|我说"
    r"|(?:把它|把时间|时间)?(?:改成|改为|改到|改在|改|换成|换为|换到|换|调到|调成|推迟到|提前到|挪到)|应该是|应该在|应该|其实是|其实|实际上是|还是|更正|要是)"
)
_LEADS_ZH = re.compile(rf"^(?:(?:(?P<mark>{_MARK_ZH})|{_SOUND_ZH})[，,。.；;：:！!、\s]*)+(?:是|在|要)?")
_TAIL_ZH = re.compile(
    r"(?:(?P<mark>(?:更|比较)(?:好|合适))|才对|才是|好了|好吗|行吗|可以吗|吧|啊|呀|哦|呢|嘛|了|谢谢|[，,。.！!？?\s])+$"
)

_STRONG = re.compile(
    rf"^(?:(?:{_SOUND_EN}|no|nope|wait|sorry|actually|oops)\b[\s,.;:!–—-]*)*"
    r"(?:i meant?(?: to say)?|i said|i should have said|i wanted to say|make (?:it|that)|correction|change (?:it|that) to)[\s,:]+(?:to )?(?P<en>\S.*)$"
    rf"|^(?:(?:{_SOUND_ZH}|不对|不是的?|不|等等|不好意思|对不起|抱歉)[，,。.！!、\s]*)*"
    r"(?:我?(?:说|弄|搞)错了|我的意思是|我意思是|我是想说|我是说|我说的是|应该是|更正|改成|改为|换成)[，,：:\s]*(?:是)?(?P<zh>\S.*)$"
    r"|^(?:哦|啊|嗯)*(?:不对|不是|不不?)[，,。.！!\s]*是(?P<zh2>\S.*)$",
    re.IGNORECASE,
)
_SHIFTS = re.compile(
    r"\b(?:later|earlier|sooner)\b|推迟|延后|延迟|往后|提前|往前|早一?点?(?=.*[分时])|晚(?=.*(?:分钟|小时))",
    re.IGNORECASE,
)
_HOLDS = re.compile(
    r"\b(?:wait|hold on|hang on|just|give me)\b[\s,]*(?:for )?(?:just )?(?:a|one|1) (?:sec|second|minute|min|moment)\b|等我?一?(?:下|会儿?|分钟|秒钟?)[。！!吧]*$",
    re.IGNORECASE,
)
"""Words that ask for patience; the minute in them is no value."""
_REFUSES = re.compile(r"(?:no|nope|不是的?|不对|不)[,，.。:：\s]+(?P<value>\S.{0,80})$", re.IGNORECASE)
_TALK = re.compile(r"(?:you|that|it|this|thanks?|we|how|what|why|i|there|nothing)\b|[你您这那谢它我]", re.IGNORECASE)
_NUMBER_LIKE = re.compile(r"[A-Za-z]{0,3}[-#]?\d[\d\s-]*[A-Za-z]?")


_I_MEAN = re.compile(r"(?:\W*\b(?:no|nope|oh|well|sorry|wait|actually)\b)*\W*i mean\b", re.IGNORECASE)
"""Said by people who only talk on, too."""
_NAMED = re.compile(
    r"(?P<before>.*\b(?:called|named|name is|lives? in|is|are) )(?P<name>[\w'-]+(?: [\w'-]+)?)[.!]?"
    r"|(?P<before_zh>.*(?:叫做?|名字是|姓|住在|是))(?P<name_zh>[^，,。！!]{1,6})[。！!]?",
    re.IGNORECASE,
)


def _in_place(old: str, said: str) -> str | None:
    """Put a name in the place of the one at the end: "Ella" into "my sister is called Anna"; None where none is."""
    said = said.strip(" .。!！")
    match = _NAMED.fullmatch(old.strip())
    if match is None or not is_name_like(said) or _NAMED.fullmatch(said) is not None:
        return None
    if bool(CJK.search(said)) != (match["name_zh"] is not None) or len(said.split()) > 2 or len(said) > 20:
        return None
    return f"{match['before'] or match['before_zh']}{said}"


def _is_like(old: str, new: str) -> bool:
    """Whether a sentence says what the old one said, but for some of it: half of the words in their order."""
    was, now = (normalise(t).split() for t in (old, new))
    same = sum(b.size for b in SequenceMatcher(a=was, b=now, autojunk=False).get_matching_blocks())
    return len(now) >= 3 and same >= max(len(was), len(now)) / 2


def late_correction(understander: Understander, task: Task, text: str) -> Decision | None:
    """Take a text for a correction of something the user filled in a task that asks nothing now."""
    text = text.strip()
    if not text or len(text) > MAX_CHARS:
        return None
    state = replace(understander.state, active=task, pending=None)
    return _Late(understander.with_state(state), task, understander.cut_in).decide(text)


class _Late:
    def __init__(self, known: Understander, task: Task, cut_in: bool) -> None:
        self._known = known
        self._task = task
        # a bare value is a correction only where it cut into the task's own last words
        self._cut_in = cut_in and (task.ended_at is None or known.state.turn - task.ended_turn <= 1)
        filled = known.filled()
        order = {slot: at for at, slot in enumerate(self._asked())}
        # the newest question first: what was confirmed last is what is corrected
        self._filled = sorted(filled, key=lambda s: order.get(s.id, -1), reverse=True)

    def _asked(self) -> Iterator[str]:
        for flow_id, step_id, _ in self._task.trail:
            flow = self._known.config.flow(flow_id)
            step = flow.steps.get(step_id) if flow is not None else None
            if isinstance(step, CollectStep):
                yield step.slot

    def decide(self, text: str) -> Decision | None:
        if not self._filled:
            return None
        replaced = self._known.replaced(text) or self._part_replaced(text)
        if replaced is not None:
            return replaced
        value, is_marked = _bared(text)
        if _HOLDS.search(text):
            return None
        if value and (is_marked or self._cut_in or _SHIFTS.search(value)) and not _TALK.match(value):
            found = self._typed(value) or self._known.correct_named(value)
            # "remind me at five to say sorry" is no correction by its last word
            if found is None and is_marked and not text.startswith(value):
                found = self._said_again(value)
            if found is not None:
                return found
        correction = match_correction(text)
        if correction is not None and correction.about:
            return self._known.correct(correction, text)
        if correction is not None and not correction.value:
            return self._asked_again()
        return None if is_question(text) else self._free(text, value)

    def _part_replaced(self, text: str) -> Decision | None:
        """Take "not milk, bread" for a text with milk in it."""
        values = self._known.state.values()
        for found in replacements(text):
            for slot in self._filled:
                old = str(values.get(slot.id))
                bounds = ("", "") if CJK.search(found.old) else (r"\b", r"\b")
                part = re.compile(f"{bounds[0]}{re.escape(found.old)}{bounds[1]}", re.IGNORECASE)
                if slot.is_free_text and len(part.findall(old)) == 1 and is_name_like(found.new):
                    return self._set(slot, found.new.join(part.split(old)))
        return None

    def _typed(self, value: str) -> Decision | None:
        values = self._known.state.values()
        for slot in self._filled:
            found = None if slot.is_free_text else self._known.typed_value(slot, value)
            if found is None or (slot.type == "boolean" and slot is not self._filled[0]):
                continue
            if found == values.get(slot.id):
                return None
            return self._set(slot, found) if self._known.validates(slot, found) else None
        return None

    def _said_again(self, value: str) -> Decision | None:
        """Take what starts the flow with a value and without a subject: "no, remind me at ten"."""
        flow = self._known.config.flow(self._task.root)
        parts = {p.strip() for e in (flow.examples if flow is not None else ()) for p in PLACEHOLDER.split(e)[::2]}
        folded = value.casefold()
        for words in sorted((p.casefold() for p in parts if len(p) > 1), key=len, reverse=True):
            tight = bool(CJK.search(words))
            for is_first in (True, False):
                if not (folded.startswith(words) if is_first else folded.endswith(words)):
                    continue
                rest = value[len(words) :] if is_first else value[: -len(words)]
                if re.search(r"\bto\b", rest):
                    continue
                if rest.strip() and (tight or not (rest[:1] if is_first else rest[-1:]).isalnum()):
                    found = self._typed(rest.strip(" ,，.。!！"))
                    if found is not None:
                        return found
        return None

    def _asked_again(self) -> Decision | None:
        """Ask again what was asked last, if the words follow at once: what else could be wrong?"""
        slot = self._filled[0]
        if slot.type == "boolean" or self._known.state.turn - self._task.ended_turn > 1:
            return None
        return self._set(slot, None)

    def _free(self, text: str, bare: str) -> Decision | None:
        free = [s for s in self._filled if s.is_free_text]
        values = self._known.state.values()
        strong = _STRONG.match(text)
        refuses = _REFUSES.match(text)
        if strong is not None:
            said = strong["en"] or strong["zh"] or strong["zh2"]
        else:
            said = bare_value(refuses["value"]) if refuses is not None else bare
        if not free or not said:
            return None
        # a number in the place of a number: "no, 10002"
        if _NUMBER_LIKE.fullmatch(said):
            like = [s for s in free if _NUMBER_LIKE.fullmatch(str(values.get(s.id)).strip())]
            return (
                self._set(like[0], said) if len(like) == 1 and not is_same_text(said, str(values[like[0].id])) else None
            )
        if is_question(said) or self._is_typed_somehow(said):
            return None
        slot = free[0]
        old = str(values.get(slot.id))
        new = _in_place(old, said) if strong is not None or refuses is not None else None
        if new is None:
            is_like = _is_like(old, said)
            if strong is None or (_TALK.match(said) and not is_like):
                return None
            if _I_MEAN.match(text) and not (is_like or is_name_like(said)):
                return None
            new = said
        if is_same_text(new, old) or not self._known.validates(slot, new):
            return None
        return self._set(slot, new.rstrip(" .。"))

    def _is_typed_somehow(self, said: str) -> bool:
        return any(self._known.holds_value(slot, said) for slot in self._filled if not slot.is_free_text)

    def _set(self, slot: Slot, value: Any) -> Decision:
        return Decision(commands=(Command(name="correct_slots", slots={slot.id: value}),), note="a late correction")


def _bared(text: str) -> tuple[str, bool]:
    """Return a text without the words around a corrected value, and whether any of them marks a correction."""
    chinese = bool(CJK.search(text))
    leads, tail = (_LEADS_ZH, _TAIL_ZH) if chinese else (_LEADS_EN, _TAIL_EN)
    lead = leads.match(text)
    is_marked = lead is not None and bool(lead["mark"])
    if is_marked and lead is not None and not chinese and _WEAK_EN.fullmatch(lead[0].strip(" ,.;:!?")):
        is_marked = False
    rest = text[lead.end() :] if lead is not None else text
    end = tail.search(rest)
    if end is not None:
        is_marked = is_marked or bool(end["mark"])
        rest = rest[: end.start()]
    return rest.strip(" ,，.。!！"), is_marked
