"""Examples with places for values: "remind me to {what} {when}" starts the flow and fills the slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from orchestrator.dialogue.replacement import free_text
from orchestrator.flows.model import CollectStep, Flow, FlowConfig, Slot
from orchestrator.flows.texts import PLACEHOLDER
from orchestrator.tasks.extraction.amend import day_said
from orchestrator.tasks.extraction.extract import extract
from orchestrator.tasks.extraction.numbers_zh import NOT_NUMERALS
from orchestrator.tasks.extraction.words import CJK, fold_en, fold_zh

MAX_CHARS = 160
_LEAD = re.compile(
    r"^(?:(?:please|hey|ok|okay|um|uh|so|well|no|nope|oh|wait|sorry|actually"
    r"|can you|could you|would you|will you|i want you to|i'd like you to)"
    r"[,\s]+)*"
    r"(?:(?:嗯|呃|那|不对|不是|不(?=[，,])|等等|请|麻烦你?|帮我|你|给我|能不能|可以)[，,\s]*)*",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:[\s,，.。!！?？]|\bplease\b|\bthanks\b|谢谢|吧|好吗|可以吗|行吗)+$", re.IGNORECASE)
# How a day may begin, so that no noun of a text is taken for one, and what makes a day a repeated one.
_MAY_BE_DAY = re.compile(
    r"(?:in the (?:morning|afternoon|evening)|on|by|this|next|today|tomorrow|tonight|the day after"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d|(?:the )?\d)\b"
    r"|[今明后大下这本周星礼\d一二三四五六七八九十]|早上|上午|傍晚|晚上",
    re.IGNORECASE,
)
_MAY_BE_MOMENT = re.compile(
    rf"(?:at|in|noon|midnight|half|quarter|a quarter)\\b|{_MAY_BE_DAY.pattern}|[上中早晚半凌傍清零两]", re.IGNORECASE
)
_DAY_OF_MONTH = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d+(?:st|nd|rd|th)?|\d+月\d+", re.IGNORECASE
)
_NO_DAY_AFTER = re.compile(r"(?:\b(?:every|each|per|the|a|of|last|since|until|for)\s*|[每个到])$", re.IGNORECASE)
_INFERRED = ("duration", "datetime", "date", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A flow and the slot values that were said with its start."""

    flow: str
    slots: dict[str, Any]


class ExamplePatterns:
    """The examples with places of a configuration, most places first."""

    def __init__(self, config: FlowConfig) -> None:
        self._config = config
        found: list[tuple[str, list[str]]] = []
        self._plain: set[str] = set()
        for flow in config.user_flows().values():
            for example in flow.examples:
                parts = [p for p in PLACEHOLDER.split(example) if p is not None]
                if len(parts) > 1:
                    found.append((flow.id, parts))
                else:
                    self._plain.add(_folded(example))
        found.sort(key=lambda item: (-len(item[1]), -sum(len(p) for p in item[1][::2])))
        self._patterns = found

    def match(self, text: str, now: datetime) -> Filled | None:
        """Return the first example the whole text fits, with its values.

        A moment fits before a day alone does; a day is the value of a slot that waits for a moment, too.
        """
        if len(text) > MAX_CHARS or not self._patterns:
            return None
        core = _TAIL.sub("", text.strip())
        forms = tuple(dict.fromkeys((core, _LEAD.sub("", core))))
        if any(_folded(form) in self._plain for form in forms):
            return None
        for takes_days in (False, True):
            for form in forms:
                cache: dict[tuple[str, str], Any] = {}
                fit = _Fit(self._config, now, cache, takes_days)
                for flow_id, parts in self._patterns:
                    values = next(fit.fit(parts, 0, form), None)
                    if values is not None:
                        return Filled(flow=flow_id, slots=self._with_day(flow_id, values, now))
        return None

    def _with_day(self, flow_id: str, values: dict[str, Any], now: datetime) -> dict[str, Any]:
        """Take the day out of a free text where the flow still waits for a moment: "call Bob tomorrow"."""
        moment = only_moment(self._config, flow_id)
        if moment is None or moment.id in values:
            return values
        for slot_id, value in values.items():
            if isinstance(value, str) and self._config.slots[slot_id].is_free_text:
                found = _edge_day(moment, value, now)
                if found is not None:
                    return {**values, slot_id: found[0], moment.id: found[1]}
        return values


class _Fit:
    """Fits one text to examples. `takes_days`: a day alone is a value of a slot that waits for a moment."""

    def __init__(self, config: FlowConfig, now: datetime, cache: dict[tuple[str, str], Any], takes_days: bool) -> None:
        self._config = config
        self._now = now
        self._cache = cache
        self._takes_days = takes_days

    def fit(self, parts: list[str], index: int, rest: str) -> Iterator[dict[str, Any]]:
        """Fit the parts from `index` on; even ones are words, odd ones slots."""
        if index == len(parts):
            if not rest.strip(" ,，。."):
                yield {}
            return
        part = parts[index]
        if index % 2 == 0:
            words = part.strip()
            stripped = rest.lstrip(" ,，")
            if not words:
                yield from self.fit(parts, index + 1, rest)
            elif stripped.casefold().startswith(words.casefold()):
                tail = stripped[len(words) :]
                if CJK.search(words[-1:]) or not tail[:1].isalnum():
                    yield from self.fit(parts, index + 1, tail)
            return
        slot = self._config.slots.get(part)
        if slot is None:
            return
        for end in self._ends(rest, slot):
            value = self._value(slot, rest[:end])
            if value is not None:
                for more in self.fit(parts, index + 1, rest[end:]):
                    yield {slot.id: value, **more}

    def _ends(self, rest: str, slot: Slot) -> list[int]:
        """Return where a value may end: the longest first for typed values, the shortest first for free text."""
        ends = [i for i in range(1, len(rest) + 1) if self._is_boundary(rest, i)]
        return ends if slot.is_free_text else ends[::-1]

    def _is_boundary(self, text: str, at: int) -> bool:
        if any(m.start() < at < m.end() for p in (NOT_NUMERALS, _DAY_OF_MONTH) for m in p.finditer(text)):
            return False
        if at == len(text) or CJK.search(text[at - 1 : at + 1]):
            return True
        return not (text[at - 1].isalnum() and text[at].isalnum())

    def _value(self, slot: Slot, text: str) -> Any:
        key = (slot.id, text)
        if key not in self._cache:
            if slot.is_free_text:
                self._cache[key] = free_text(text.strip(" ,，")) or None
            else:
                self._cache[key] = _whole_value(slot, text, self._now)
                if self._cache[key] is None and slot.type == "datetime" and self._takes_days:
                    self._cache[key] = day_said(slot, text, now=self._now)
        return self._cache[key]


def _folded(text: str) -> str:
    return fold_zh(text) if CJK.search(text) else fold_en(text)


def _whole_value(slot: Slot, text: str, now: datetime) -> Any:
    found = extract(slot, text, now=now)
    return found.value if found is not None and found.is_strict and not found.rest else None


def only_moment(config: FlowConfig, flow_id: str) -> Slot | None:
    """Return the one slot of a flow that waits for a moment."""
    flow = config.flow(flow_id)
    steps = flow.steps.values() if flow is not None else ()
    asked = [config.slots[s.slot] for s in steps if isinstance(s, CollectStep)]
    moments = [slot for slot in asked if slot.type == "datetime"]
    return moments[0] if len(moments) == 1 else None


def split_moment(slot: Slot, text: str, now: datetime) -> tuple[str, str] | None:
    """Return a text without the moment or the day at its end or its beginning, and that value of `slot`."""
    return _edge(text, _MAY_BE_MOMENT, lambda part: _whole_value(slot, part, now)) or _edge_day(slot, text, now)


def _edge_day(slot: Slot, text: str, now: datetime) -> tuple[str, str] | None:
    return _edge(text, _MAY_BE_DAY, lambda part: day_said(slot, part, now=now))


def _edge(text: str, begins: re.Pattern[str], read: Callable[[str], Any]) -> tuple[str, str] | None:
    cuts = [i for i in range(1, len(text)) if CJK.search(text[i - 1 : i + 1]) or text[i - 1] == " "]
    for cut in cuts:
        part, rest = text[cut:], text[:cut]
        if begins.match(part) and not _NO_DAY_AFTER.search(rest):
            value = read(part)
            if value is not None:
                return rest.strip(" ,，"), value
    for cut in reversed(cuts):
        part, rest = text[:cut], text[cut:].strip(" ,，")
        value = read(part.strip(" ,，")) if begins.match(part) else None
        if value is not None:
            return re.sub(r"^(?:to|要|去(?=去)|的时候)\s*", "", rest), value
    return None


def inferred(config: FlowConfig, flow: Flow, text: str, now: datetime) -> dict[str, Any]:
    """Return moments and durations that stand in a sentence which starts a flow, for the slots that wait for them."""
    waiting = [
        config.slots[s.slot]
        for s in flow.steps.values()
        if isinstance(s, CollectStep) and config.slots[s.slot].type in _INFERRED
    ]
    kinds = [slot.type for slot in waiting]
    values: dict[str, Any] = {}
    for slot in waiting:
        if kinds.count(slot.type) == 1 and not ({"datetime", "time"} <= set(kinds)):
            found = extract(slot, text, now=now)
            if found is None and slot.type == "datetime":
                found = extract(replace(slot, type="date"), text, now=now)
            if found is not None:
                values[slot.id] = found.value
    return values
