"""Examples with places for values: "remind me to {what} {when}" starts the flow and fills the slots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.dialogue.replacement import free_text
from orchestrator.flows.model import CollectStep, Flow, FlowConfig, Slot
from orchestrator.flows.texts import PLACEHOLDER
from orchestrator.tasks.extraction.extract import extract
from orchestrator.tasks.extraction.words import CJK

MAX_CHARS = 160
_LEAD = re.compile(
    r"^(?:(?:please|hey|ok|okay|um|uh|so|well|no|nope|oh|wait|sorry|actually"
    r"|can you|could you|would you|will you|i want you to|i'd like you to)"
    r"[,\s]+)*"
    r"(?:(?:嗯|呃|那|不对|不是|不(?=[，,])|等等|请|麻烦你?|帮我|你|给我|能不能|可以)[，,\s]*)*",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:[\s,，.。!！?？]|\bplease\b|\bthanks\b|谢谢|吧|好吗|可以吗|行吗)+$", re.IGNORECASE)
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
        for flow in config.user_flows().values():
            for example in flow.examples:
                parts = [p for p in PLACEHOLDER.split(example) if p is not None]
                if len(parts) > 1:
                    found.append((flow.id, parts))
        found.sort(key=lambda item: (-len(item[1]), -sum(len(p) for p in item[1][::2])))
        self._patterns = found

    def match(self, text: str, now: datetime) -> Filled | None:
        """Return the first example the whole text fits, with its values."""
        if len(text) > MAX_CHARS or not self._patterns:
            return None
        core = _TAIL.sub("", text.strip())
        for form in dict.fromkeys((core, _LEAD.sub("", core))):
            cache: dict[tuple[str, str], Any] = {}
            for flow_id, parts in self._patterns:
                values = next(self._fit(parts, 0, form, now, cache), None)
                if values is not None:
                    return Filled(flow=flow_id, slots=values)
        return None

    def _fit(
        self, parts: list[str], index: int, rest: str, now: datetime, cache: dict[tuple[str, str], Any]
    ) -> Iterator[dict[str, Any]]:
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
                yield from self._fit(parts, index + 1, rest, now, cache)
            elif stripped.casefold().startswith(words.casefold()):
                tail = stripped[len(words) :]
                if CJK.search(words[-1:]) or not tail[:1].isalnum():
                    yield from self._fit(parts, index + 1, tail, now, cache)
            return
        slot = self._config.slots.get(part)
        if slot is None:
            return
        for end in self._ends(rest, slot):
            value = self._value(slot, rest[:end], now, cache)
            if value is not None:
                for more in self._fit(parts, index + 1, rest[end:], now, cache):
                    yield {slot.id: value, **more}

    def _ends(self, rest: str, slot: Slot) -> list[int]:
        """Return where a value may end: the longest first for typed values, the shortest first for free text."""
        ends = [i for i in range(1, len(rest) + 1) if self._is_boundary(rest, i)]
        return ends if slot.is_free_text else ends[::-1]

    def _is_boundary(self, text: str, at: int) -> bool:
        if at == len(text) or CJK.search(text[at - 1 : at + 1]):
            return True
        return not (text[at - 1].isalnum() and text[at].isalnum())

    def _value(self, slot: Slot, text: str, now: datetime, cache: dict[tuple[str, str], Any]) -> Any:
        key = (slot.id, text)
        if key not in cache:
            if slot.is_free_text:
                cache[key] = free_text(text.strip(" ,，")) or None
            else:
                found = extract(slot, text, now=now)
                cache[key] = found.value if found is not None and found.is_strict and not found.rest else None
        return cache[key]


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
            if found is not None:
                values[slot.id] = found.value
    return values
