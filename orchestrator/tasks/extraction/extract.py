"""Typed answers: what value a sentence gives a slot, how surely, and what else it says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.booleans import find_boolean
from orchestrator.tasks.extraction.clauses import says_something, split_clauses
from orchestrator.tasks.extraction.find_choices import find_choices
from orchestrator.tasks.extraction.find_numbers import find_integers, find_numbers
from orchestrator.tasks.extraction.find_patterns import find_pattern
from orchestrator.tasks.extraction.find_when import dates_in, datetimes_in, durations_in, times_in
from orchestrator.tasks.extraction.hits import Hit, Span
from orchestrator.tasks.extraction.normal import normal_form, with_digits
from orchestrator.tasks.extraction.words import CJK, fold_en, is_measure_zh, is_question, leftover_en, leftover_zh

MAX_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """A value found in a sentence.

    `is_strict`: but for fillers the sentence (or one clause of it) is nothing but the value. `rest` is what the other
    clauses say, "" for nothing.
    """

    value: Any
    is_strict: bool
    rest: str = ""


def extract(slot: Slot, text: str, *, now: datetime, language: str | None = None) -> Extraction | None:
    """Find the slot's value in a sentence; None when there is none or it is not clear which."""
    text = text.strip()[:MAX_CHARS]
    if not text:
        return None
    if slot.is_free_text:
        return None
    whole = _judge(slot, text, now)
    if whole is not None and whole.is_strict and not whole.rest:
        return whole
    clauses = split_clauses(text)
    if len(clauses) > 1:
        found = _from_clauses(slot, clauses, now)
        if found is not None:
            return found
    return whole


def _from_clauses(slot: Slot, clauses: list[str], now: datetime) -> Extraction | None:
    judged = [_judge(slot, clause, now) for clause in clauses]
    strict = [i for i, found in enumerate(judged) if found is not None and found.is_strict]
    if not strict:
        return None
    values = [judged[i].value for i in strict]  # type: ignore[union-attr]
    if any(v != values[0] for v in values) and not _is_self_correction(clauses, strict):
        return None
    chosen = strict[-1] if any(v != values[0] for v in values) else strict[0]
    others = [c for i, c in enumerate(clauses) if i not in strict and says_something(c)]
    found = judged[chosen]
    assert found is not None
    rest = " ".join([*([found.rest] if found.rest else []), *others])
    return Extraction(value=found.value, is_strict=True, rest=rest)


def _is_self_correction(clauses: list[str], strict: list[int]) -> bool:
    between = " ".join(clauses[strict[0] + 1 : strict[-1] + 1]) + " " + clauses[strict[-1]]
    return bool(
        re.search(r"\b(?:no|sorry|wait|actually|rather|i mean|make that|make it)\b", fold_en(between))
        or re.search(r"不对|不是|等等|不不|还是|改成|说错|哦不|应该是", between)
    )


def _judge(slot: Slot, text: str, now: datetime) -> Extraction | None:
    chinese = bool(CJK.search(text))
    if slot.type == "boolean":
        answer = find_boolean(text, chinese=chinese)
        if answer is None:
            return None
        return Extraction(value=answer.value, is_strict=answer.is_strict, rest=answer.rest)
    normal = with_digits(text) if slot.pattern is not None else normal_form(text)
    hits: Iterable[Hit]
    if slot.type == "choice":
        hits = _meant(find_choices(slot, text, normal), text)
    elif slot.pattern is not None:
        hits = find_pattern(slot, text, normal)
    else:
        hits = _found(slot.type, normal, now, chinese)
    distinct: list[Hit] = []
    for hit in hits:
        if not any(hit.value == other.value for other in distinct):
            distinct.append(hit)
    if not distinct:
        return None
    if len(distinct) > 1 and slot.type in ("integer", "number"):
        distinct = _without_moments(distinct, normal, now, chinese)
    if len(distinct) > 1:
        corrected = _corrected(distinct, normal)
        if corrected is None:
            return None
        return Extraction(value=corrected.value, is_strict=True)
    hit = distinct[0]
    base = text if slot.type == "choice" or slot.pattern is not None else normal
    return _with_residue(slot, hit, base, chinese)


def _without_moments(hits: list[Hit], normal: str, now: datetime, chinese: bool) -> list[Hit]:
    """Drop numbers that belong to a time or a length: "for four at half past seven"."""
    found = (*times_in(normal, now, chinese=chinese), *durations_in(normal, now, chinese=chinese))
    # "for four" may be a time, beside another one it is a number
    taken = [(a, b) for hit in found for a, b in hit.spans if not normal[a:b].startswith("for ")]

    def belongs(hit: Hit) -> bool:
        start, end = hit.spans[0]
        return any(a <= start and end <= b and b - a > end - start for a, b in taken)

    return [hit for hit in hits if not belongs(hit)] or hits


def _with_residue(slot: Slot, hit: Hit, base: str, chinese: bool) -> Extraction:
    residue = _without(base, hit.spans)
    extra = _label_words(slot) | (_CARRIERS if slot.type in ("choice", "text", "any") else frozenset())
    if chinese:
        left = leftover_zh(residue, extra)
        strict = not left or (slot.type in ("integer", "number") and is_measure_zh(left.removeprefix("第")))
    else:
        words = leftover_en(residue, extra)
        # "three tickets": one noun may follow a number
        counted = slot.type in ("integer", "number") and len(words) == 1 and not is_question(residue)
        strict = not words or (counted and leftover_en(base[hit.spans[-1][1] :], extra) == words)
    if strict:
        return Extraction(value=hit.value, is_strict=True)
    question = _question_beside(base, hit.spans)
    if question:
        return Extraction(value=hit.value, is_strict=True, rest=question)
    return Extraction(value=hit.value, is_strict=False)


def _question_beside(base: str, spans: tuple[Span, ...]) -> str:
    """Return a question that follows the value without punctuation between: "3 o'clock will it rain"."""
    start, end = min(s for s, _ in spans), max(e for _, e in spans)
    before, after = base[:start].strip(), base[end:].strip(" ,，.")
    if says_something(before) or len(after) < 4 or not is_question(after):
        return ""
    if CJK.search(after):
        return (
            after
            if len(after) >= 4 and not re.fullmatch(r"(?:行|好|可以|成|怎么样|如何)[吗呢么]?[?？]?", after)
            else ""
        )
    return after if len(after.split()) >= 3 else ""


_CARRIERS = frozenset(
    [
        "one",
        "ones",
        "number",
        "code",
        "order",
        "option",
        "choice",
        "color",
        "colour",
        "id",
        "号码",
        "号",
        "编号",
        "代码",
        "那个",
        "这个",
        "种",
        "颜色",
        "选项",
        "第",
    ]
)


def _without(text: str, spans: tuple[Span, ...]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + " " + text[end:]
    return text


def _label_words(slot: Slot) -> frozenset[str]:
    words = set(re.findall(r"[a-z]+", slot.id.casefold()))
    for label in slot.label.all_raw() if slot.label is not None else ():
        words.add(label.casefold())
        words.update(re.findall(r"[a-z]+", label.casefold()))
    return frozenset(words)


_REFUSED = re.compile(
    r"(?:\b(?:not|no|never|but|except|without|don'?t want|do not want|don'?t like)(?: (?:the|a|an|for|by))* ?"
    r"|不要|不是|别|除了|不喜欢|不想要)$"
)


def _meant(hits: Iterator[Hit], text: str) -> list[Hit]:
    """Leave out choices that are refused: "anything but red"."""
    folded = text.casefold()
    return [
        hit
        for hit in hits
        if not _REFUSED.search(folded[: hit.spans[0][0]]) or re.search(r"\bno $", folded[: hit.spans[0][0]])
    ]


_REPLACES = re.compile(
    r"\b(?:no|sorry|wait|actually|rather|i mean|make that|make it)\b"
    r"|不对|不是|不不|等等|说错了|还是|哦不|啊不|后来|那就|改成|换成|算了|[,，。]不[,，。]"
)
_UNDECIDED = re.compile(r"还是.*(?:呢|吗|[?？])|纠结|拿不定|选哪")


def _corrected(hits: list[Hit], normal: str) -> Hit | None:
    """Of two values take the last if the words between take the first one back ("3 no 4")."""
    ordered = sorted(hits, key=lambda h: h.spans[-1][0])
    first, last = ordered[0], ordered[-1]
    between = normal[first.spans[-1][1] : last.spans[-1][0]]
    if _UNDECIDED.search(normal):
        return None
    if _REPLACES.search(between):
        return last
    before = normal[max(0, first.spans[0][0] - 12) : first.spans[0][0]]
    if len(ordered) == 2 and re.search(r"\b(?:not|no|never)(?: (?:the|a|an|at|on|for|in))* ?$|不是$|不要$|别$", before):
        return last
    return None


def _found(kind: str, normal: str, now: datetime, chinese: bool) -> Iterator[Hit]:
    if kind == "integer":
        return find_integers(normal, chinese=chinese)
    if kind == "number":
        return find_numbers(normal, chinese=chinese)
    return _MOMENTS[kind](normal, now, chinese=chinese)


_MOMENTS = {"duration": durations_in, "date": dates_in, "time": times_in, "datetime": datetimes_in}
