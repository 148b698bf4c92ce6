"""Typed answers: what value a sentence gives a slot, how surely, and what else it says."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from orchestrator.flows.model import Slot
from orchestrator.flows.slot_values import coerce
from orchestrator.tasks.extraction import moments_en, moments_zh
from orchestrator.tasks.extraction.durations import find_durations
from orchestrator.tasks.extraction.moments import FoundDate, FoundTime, resolve_time
from orchestrator.tasks.extraction.numbers_en import digits_for_words
from orchestrator.tasks.extraction.numbers_zh import digits_for_numerals
from orchestrator.tasks.extraction.words import (
    CJK,
    NO_EN,
    NO_ZH,
    YES_EN,
    YES_ZH,
    fold_en,
    fold_zh,
    is_measure_zh,
    is_question,
    leftover_en,
    leftover_zh,
)

Span = tuple[int, int]
MAX_CHARS = 400

_CLAUSE = re.compile(
    r"(?<!\d)[.](?!\d)|(?<=\d)[.](?=\s|$)|[,](?!\d)|[!?;，。！？；、…\n]+|\s[-–—]+\s|[—–]+|(?<=[a-z])\.\.\."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """A value found in a sentence.

    `is_strict`: but for fillers the sentence (or one clause of it) is nothing but the value. `rest` is what the other
    clauses say, "" for nothing.
    """

    value: Any
    is_strict: bool
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    value: Any
    spans: tuple[Span, ...]


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


def split_clauses(text: str) -> list[str]:
    """Split at punctuation and dashes; question marks stay with their clause."""
    parts: list[str] = []
    start = 0
    for match in _CLAUSE.finditer(text):
        keep = match[0].strip() if match[0].strip() in ("?", "？") else ""
        piece = text[start : match.start()].strip() + keep
        if piece.strip("?？ "):
            parts.append(piece)
        start = match.end()
    tail = text[start:].strip()
    if tail:
        parts.append(tail)
    return parts


def _from_clauses(slot: Slot, clauses: list[str], now: datetime) -> Extraction | None:
    judged = [_judge(slot, clause, now) for clause in clauses]
    strict = [i for i, found in enumerate(judged) if found is not None and found.is_strict]
    if not strict:
        return None
    values = [judged[i].value for i in strict]  # type: ignore[union-attr]
    if any(v != values[0] for v in values) and not _is_self_correction(clauses, strict):
        return None
    chosen = strict[-1] if any(v != values[0] for v in values) else strict[0]
    others = [c for i, c in enumerate(clauses) if i not in strict and _says_something(c)]
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


def _says_something(clause: str) -> bool:
    if CJK.search(clause):
        return len(leftover_zh(clause)) >= 2 or is_question(clause)
    return bool(leftover_en(clause)) and (len(fold_en(clause).split()) >= 2)


def _judge(slot: Slot, text: str, now: datetime) -> Extraction | None:
    chinese = bool(CJK.search(text))
    if slot.type == "boolean":
        return _boolean(text, chinese)
    normal = digits_for_numerals(text) if chinese else digits_for_words(text)
    if slot.type == "choice":
        hits = _choices(slot, text, normal)
    elif slot.pattern is not None:
        hits = _pattern(slot, text, normal)
    else:
        hits = _FINDERS[slot.type](normal, now, chinese)
    distinct: list[_Hit] = []
    for hit in hits:
        if not any(hit.value == other.value for other in distinct):
            distinct.append(hit)
    if not distinct:
        return None
    if len(distinct) > 1:
        corrected = _corrected(distinct, normal)
        if corrected is None:
            return None
        return Extraction(value=corrected.value, is_strict=True)
    hit = distinct[0]
    base = text if slot.type == "choice" or slot.pattern is not None else normal
    return _with_residue(slot, hit, base, chinese)


def _with_residue(slot: Slot, hit: _Hit, base: str, chinese: bool) -> Extraction:
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
    if _says_something(before) or len(after) < 4 or not is_question(after):
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


def _corrected(hits: list[_Hit], normal: str) -> _Hit | None:
    """Of two values take the last if the words between take the first one back ("3 no 4")."""
    ordered = sorted(hits, key=lambda h: h.spans[0][0])
    first, last = ordered[0], ordered[-1]
    between = normal[first.spans[-1][1] : last.spans[0][0]]
    if re.search(
        r"\b(?:no|sorry|wait|actually|rather|i mean|make that|make it)\b|不对|不是|不不|等等|说错了|还是|哦不", between
    ):
        return last
    before = normal[max(0, first.spans[0][0] - 6) : first.spans[0][0]]
    if len(ordered) == 2 and re.search(r"\bnot (?:at |on |for )?$|不是$|不要$|别$", before):
        return last
    return None


# --- finders ---------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.:/])[-+]?\d+(?:\.\d+)?(?:th)?(?![\d:/]|\.\d)")
_NUMBER_ZH = re.compile(r"(?<![\d.:/A-Za-z])[-+]?\d+(?:\.\d+)?(?![\d:/A-Za-z]|\.\d)")

_HALF = re.compile(r"\b(?:(?<!at )once(?! (?:more|again|upon))|twice|(?:a |one )?half)\b")
_HALF_ZH = re.compile(r"[一1]半|半(?!天|小时|点|年)")


def _numbers(normal: str, now: datetime, chinese: bool) -> Iterator[_Hit]:
    percent = re.search(r"百分之([-\d.]+)", normal) if chinese else None
    if percent is not None:
        yield _Hit(value=_plain_number(percent[1]), spans=(percent.span(),))
        return
    fraction = re.search(r"(\d+)分之(\d+)", normal) if chinese else None
    if fraction is not None and int(fraction[1]):
        yield _Hit(value=int(fraction[2]) / int(fraction[1]), spans=(fraction.span(),))
        return
    found = list((_NUMBER_ZH if chinese else _NUMBER).finditer(normal))
    if len(found) > 1 and all(re.fullmatch(r"\s?", normal[a.end() : b.start()]) for a, b in itertools.pairwise(found)):
        texts = [m[0] for m in found]
        if all(len(t) == 1 for t in texts) or (len(texts) == 2 and len(texts[0]) == 2 and len(texts[1]) == 2):
            yield _Hit(value=int("".join(texts)), spans=((found[0].start(), found[-1].end()),))
            return
    for match in found:
        end = match.end()
        unit = re.match(r" ?(?:%|percent\b)", normal[end:])
        half = re.match(r"个半", normal[end:]) if chinese else None
        value = _plain_number(match[0])
        if half is not None:
            value += 0.5
        elif chinese and match[0] == "1" and normal[end:].startswith("半"):
            yield _Hit(value=0.5, spans=((match.start(), end + 1),))
            continue
        yield _Hit(value=value, spans=((match.start(), end + (unit.end() if unit else half.end() if half else 0)),))
    if not found:
        word = (_HALF_ZH if chinese else _HALF).search(normal)
        if word is not None:
            value = {"once": 1, "twice": 2}.get(word[0], 0.5)
            yield _Hit(value=value, spans=(word.span(),))


def _plain_number(text: str) -> float | int:
    text = text.removesuffix("th")
    return float(text) if "." in text else int(text[:19])


def _integers(normal: str, now: datetime, chinese: bool) -> Iterator[_Hit]:
    for hit in _numbers(normal, now, chinese):
        if hit.value == int(hit.value):
            yield _Hit(value=int(hit.value), spans=hit.spans)


def _durations(normal: str, now: datetime, chinese: bool) -> Iterator[_Hit]:
    for found in find_durations(normal, chinese=chinese):
        yield _Hit(value=found.seconds, spans=(found.span,))


def _dates(normal: str, now: datetime, chinese: bool) -> Iterator[_Hit]:
    module = moments_zh if chinese else moments_en
    dates: list[FoundDate] = list(module.find_dates(normal, now.date()))
    for found in dates:
        yield _Hit(value=found.day.isoformat(), spans=(found.span,))


def _times(normal: str, now: datetime, chinese: bool) -> Iterator[_Hit]:
    module = moments_zh if chinese else moments_en
    moments = list(module.find_moments(normal, now))
    for moment in moments:
        yield _Hit(value=moment.moment.strftime("%H:%M"), spans=(moment.span,))
    if moments:
        return
    dates: list[FoundDate] = list(module.find_dates(normal, now.date()))
    day = dates[0].day if len(dates) == 1 else None
    for found in _apart(list(module.find_times(normal)), dates):
        when = resolve_time(found, now, day)
        spans = (*(d.span for d in dates), found.span) if len(dates) == 1 else (found.span,)
        yield _Hit(value=when.strftime("%H:%M"), spans=_merged(spans))


def _datetimes(normal: str, now: datetime, chinese: bool) -> Iterator[_Hit]:
    module = moments_zh if chinese else moments_en
    moments = list(module.find_moments(normal, now))
    if moments and any(m.moment.time() != now.replace(tzinfo=None, second=0, microsecond=0).time() for m in moments):
        for moment in moments:
            yield _Hit(value=moment.moment.strftime("%Y-%m-%dT%H:%M"), spans=(moment.span,))
        return
    dates: list[FoundDate] = list(module.find_dates(normal, now.date()))
    times = _apart(list(module.find_times(normal)), dates)
    days = list(dict.fromkeys(d.day for d in dates))
    for found in times:
        wanted: list[date | None] = [*days] if days else [None]
        for day in wanted:
            when = resolve_time(found, now, day)
            spans = (*(d.span for d in dates if d.day == day), found.span)
            yield _Hit(value=when.strftime("%Y-%m-%dT%H:%M"), spans=_merged(spans))
    for moment in moments if not times else ():
        # whole days from now, without a clock time: the same time of day
        yield _Hit(value=moment.moment.strftime("%Y-%m-%dT%H:%M"), spans=(moment.span,))


def _apart(times: list[FoundTime], dates: list[FoundDate]) -> list[FoundTime]:
    """Drop times that are really part of a date (the 9 of "December 9"), but keep "tonight at 8"."""
    kept = []
    for found in times:
        overlaps = [d for d in dates if d.span[0] < found.span[1] and found.span[0] < d.span[1]]
        if all(d.span[1] - d.span[0] <= found.span[1] - found.span[0] for d in overlaps):
            kept.append(found)
    return kept


def _merged(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


_FINDERS: dict[str, Callable[[str, datetime, bool], Iterator[_Hit]]] = {
    "integer": _integers,
    "number": _numbers,
    "duration": _durations,
    "date": _dates,
    "time": _times,
    "datetime": _datetimes,
}


def _choices(slot: Slot, text: str, normal: str) -> Iterator[_Hit]:
    folded = text.casefold()
    found: list[tuple[Span, Any]] = []
    for choice in slot.choices:
        for name in (str(choice.value), str(choice.value).replace("_", " "), *choice.names):
            word = re.escape(name.casefold())
            pattern = word if CJK.search(name) else rf"(?<![a-z0-9]){word}(?:s|es)?(?![a-z0-9])"
            found += [(m.span(), choice.value) for m in re.finditer(pattern, folded)]
    # of two names where one contains the other, the longer counts
    kept = [
        (span, value)
        for span, value in found
        if not any(
            o[0] <= span[0] and span[1] <= o[1] and o != span and o[1] - o[0] > span[1] - span[0] for o, _ in found
        )
    ]
    if kept:
        for span, value in sorted(kept, key=lambda item: item[0]):
            yield _Hit(value=value, spans=(span,))
        return
    ordinal = re.search(r"第(\d+)|(?:the |number |option )?(\d+)th\b|\b(?:number|option) (\d+)\b", normal)
    index = int(next(g for g in ordinal.groups() if g)) if ordinal else 0
    if re.search(r"\bthe last\b|最后一?[个项]", normal):
        index = len(slot.choices)
    elif re.search(r"\bthe second\b", normal):
        index = 2
    if 1 <= index <= len(slot.choices):
        yield _Hit(value=slot.choices[index - 1].value, spans=((0, len(text)),))


def _pattern(slot: Slot, text: str, normal: str) -> Iterator[_Hit]:
    for candidate, span in _pattern_candidates(text, normal):
        result = coerce(slot, candidate)
        if result.ok:
            yield _Hit(value=result.value, spans=(span,))
            return


def _pattern_candidates(text: str, normal: str) -> Iterator[tuple[str, Span]]:
    bare = text.strip(" .,。，!！?？")
    whole = (0, len(text))
    for form in (
        text,
        bare,
        bare.replace(" ", ""),
        bare.upper().replace(" ", ""),
        re.sub(r"[\s\-]", "", normal),
        re.sub(r"[\s\-]", "", normal).upper(),
    ):
        yield form, whole
    tokens = list(re.finditer(r"[^\s,，。！？!?;；]+", text))[:20]
    for size in range(len(tokens), 0, -1):
        for at in range(len(tokens) - size + 1):
            span = (tokens[at].start(), tokens[at + size - 1].end())
            piece = text[span[0] : span[1]].strip(".")
            joined = piece.replace(" ", "").replace("-", "")
            numerals = digits_for_numerals(piece) if CJK.search(piece) else digits_for_words(piece)
            for form in (piece, joined, joined.upper(), numerals.replace(" ", ""), numerals.replace(" ", "").upper()):
                yield form, span
    for match in re.finditer(
        r"[A-Za-z0-9\-]+(?: [A-Za-z0-9]+)*", digits_for_numerals(text) if CJK.search(text) else text
    ):
        yield match[0].replace(" ", ""), whole


_LEAD_EN = re.compile(
    r"^(?:(?:um|uh|er|well|oh|hmm|hm|so|ah|and|but|actually|honestly|i mean|you know|please|hey)\s+)+"
)
_TAIL_EN = re.compile(
    r"(?:\s+(?:please|thanks|thank you|then|now|sir|actually|i think|i guess|of course|definitely|for sure|"
    r"indeed|really|at all|it is|i do|it isnt|i dont))+$"
)


_TAKES_BACK = re.compile(r"\b(?:wait|actually|sorry|i mean)\b|等等|不对|说错|还是", re.IGNORECASE)


def _boolean(text: str, chinese: bool) -> Extraction | None:
    clauses = split_clauses(text)
    for index, clause in enumerate(clauses):
        value = _boolean_zh(clause) if chinese else _boolean_en(clause)
        if value is None:
            if not _says_something(clause) or (chinese and len(fold_zh(clause)) <= 1):
                continue
            break
        others = clauses[index + 1 :]
        following = [_boolean_zh(c) if chinese else _boolean_en(c) for c in others]
        # "yes, no problem" and "no, it's fine" mean what comes first, unless it is taken back
        if any(v is not None and v != value for v in following) and _TAKES_BACK.search(text):
            return Extraction(value=[v for v in following if v is not None][-1], is_strict=True)
        rest = " ".join(c for c, v in zip(others, following, strict=True) if v is None and _says_something(c))
        return Extraction(value=value, is_strict=True, rest=rest)
    value = _starts_with(text, chinese)
    if value is None:
        return None
    return Extraction(value=value, is_strict=False)


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
    first = _LEAD_EN.sub("", folded + " ").split()
    if first and len(words) <= 7 and not is_question(clause):
        if first[0] in ("yes", "yeah", "yep", "yup", "sure", "absolutely", "definitely", "certainly"):
            return "not" not in first[:3]
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


def _boolean_zh(clause: str) -> bool | None:
    folded = fold_zh(clause)
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
        r"(?:嗯+|那|哦)?(?:(是的|对的|对|好的|可以|没错|当然|行)|(不是的|不是|不用|不要|不行|没有|不对|不想|不需要|不))(?=我|他|她|它|就|这|那|你|今天|现在|没|不|还|要|请|谢)",
        folded,
    )
    if match and len(folded) <= 10 and not folded.startswith(("对不", "不过", "不知", "不一定", "不确定", "不好说")):
        return match[1] is not None
    return None


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
