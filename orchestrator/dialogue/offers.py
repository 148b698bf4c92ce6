"""Answers to a paused task's question given instead of a yes or no to the offer to go on with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.dialogue.decision import Decision
from orchestrator.dialogue.phrases import find_flow, match_phrase, what_to_stop
from orchestrator.flows.model import CollectStep
from orchestrator.tasks.commands import Command
from orchestrator.tasks.extraction.booleans import find_boolean
from orchestrator.tasks.extraction.extract import Extraction
from orchestrator.tasks.extraction.places import place_named
from orchestrator.tasks.extraction.words import CJK, is_question
from orchestrator.tasks.processor import current_step
from orchestrator.tasks.state import Task

if TYPE_CHECKING:
    from orchestrator.dialogue.understanding import Understander

_CHAT_EN = re.compile(
    r"(?:(?:oh|ah|well|hm+|um|uh|so|and|but|okay|ok)[\s,]+)*(?:"
    r"(?:thanks?|thank you|hello|hi|hey|bye|goodbye|maybe|perhaps|later|soon|not|never|nothing|none|wait|hold|stop"
    r"|sorry|wow|nice|great|cool|good|fine|right|really|please|interesting|go|let|lets|you|your|that|thats|this|it|its|he|she"
    r"|they|we|there|dunno|whatever|of course|what|why|how|tell|show|say|play|sing|speak|talk|read|turn)\b"
    r"|i\b(?! (?:need|have|want|(?:ha)?ve got|got|would like)\b|'ve got\b|'d like\b))",
    re.IGNORECASE,
)
_CHAT_ZH = re.compile(
    r"[嗯哦啊呃额噢唉哎]*(?:谢|多谢|你|您|再见|拜拜|也许|可能|以后|等|晚点|待会|一会|稍后|下次|不|没|别|算|好|行|可以|随便|停|对|是|这|那|它|他|她|真|哇|哈"
    r"|原来|知道|明白|说|讲|唱|放|告诉|给我[讲说唱放]|我(?!要|得|需要|想[^想]))"
)


def may_answer(text: str) -> bool:
    """Whether words after an offer may be the answer to the question before it, and no talk, doubt or question."""
    said = text.strip()
    if not said or is_question(said) or match_phrase(said) is not None or what_to_stop(said):
        return False
    chinese = bool(CJK.search(said))
    return (_CHAT_ZH if chinese else _CHAT_EN).match(said) is None and find_boolean(said, chinese=chinese) is None


def _offered(known: Understander) -> Iterator[tuple[Task, Understander]]:
    """Yield the tasks that are offered, the newest first, each with one who sees it running again."""
    pending = known.state.pending
    if pending is None or pending.get("kind") != "resume" or known.state.active is not None:
        return
    for task in known.state.paused:
        if task.root in (pending.get("flows") or ()):
            yield task, known.with_state(replace(known.state, active=task, pending=None))


def _resumed(task: Task, decision: Decision) -> Decision:
    return replace(decision, commands=(Command(name="resume_flow", flow=task.root), *decision.commands))


def answer_beside(known: Understander, found: Extraction) -> Decision | None:
    """Return what stands beside a yes or no ("yes, at five"): an answer to what was asked is a yes of its own."""
    if not found.rest:
        return None
    typed = typed_answer(known, found.rest)
    return typed if typed is not None or not found.value else free_answer(known, found.rest)


def typed_answer(known: Understander, text: str) -> Decision | None:
    """Return what a typed answer to such a question comes to: the task resumes with it."""
    for task, resumed in _offered(known):
        decision = resumed.typed(text)
        if decision is not None:
            return _resumed(task, decision)
    return None


def free_answer(known: Understander, text: str) -> Decision | None:
    """Return what a free-text answer comes to, where it can hardly be talk about something else."""
    if not may_answer(text):
        return None
    for task, resumed in _offered(known):
        step = current_step(resumed.state, known.config)
        if not task.open or not isinstance(step, CollectStep) or not known.config.slots[step.slot].is_free_text:
            continue
        decision = resumed.free(text)
        if decision is not None:
            return _resumed(task, decision)
    return None


def _names(known: Understander, flows: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    shown = known.config.user_flows()
    return [(flow, shown[flow].name.all_raw()) for flow in flows if flow in shown]


def named_flow(known: Understander, text: str, flows: tuple[str, ...]) -> str | None:
    """Return which of the flows that were offered a text names, by name or by place."""
    named = find_flow(text, _names(known, flows))
    if named is not None:
        return named
    names = _names(known, flows)
    folded = text.casefold()
    hits = [i for i, words in names if any(w.casefold() in folded for w in words if len(w) > 1)]
    if len(hits) == 1 and not is_question(text):
        return hits[0]
    place = place_named(text, len(flows), now=known.now)
    return flows[place] if place is not None else None
