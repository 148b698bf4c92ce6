"""`action_response`: static, rephrase (checked: what matters must survive) and generate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask
from orchestrator.flows.model import Slot
from orchestrator.tasks.extraction.extract import extract
from orchestrator.tasks.extraction.normal import with_digits
from orchestrator.tasks.extraction.words import CJK

_NUMBER = re.compile(r"\d+(?:[.:]\d+)*")
_PREFIX = {
    "en": "Rephrase the sentence for speaking aloud. Keep every number, name, date and time. "
    "Answer with the sentence alone.",
    "zh": "把句子换一种说法，用于朗读。数字、名字、日期和时间都要保留。只回答句子本身。",
}


def rephrase_request(prompt: str, text: str, language: str | None) -> LlmRequest:
    """Return the model call that rephrases `text`."""
    system = _PREFIX["zh" if language == "zh" else "en"]
    if prompt:
        system = f"{system}\n{prompt}"
    return LlmRequest(
        task=LlmTask.REPHRASE,
        messages=(ChatMessage(role="system", content=system), ChatMessage(role="user", content=text)),
        temperature=0.5,
        max_tokens=200,
    )


def generate_request(prompt: str, user_text: str) -> LlmRequest:
    """Return the model call that generates a text by `prompt`."""
    messages = [ChatMessage(role="system", content=prompt)]
    messages.append(ChatMessage(role="user", content=user_text or "…"))
    return LlmRequest(task=LlmTask.GENERATE, messages=tuple(messages), temperature=0.7, max_tokens=300)


def _numbers(text: str) -> set[str]:
    folded = with_digits(text)
    found = set()
    for match in _NUMBER.findall(folded):
        found.add(re.sub(r"^0+(?=\d)", "", match.rstrip(".:")))
    return found


def _fold(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def _holds(folded: str, value: str) -> bool:
    """Whether a folded text has the value: as words where it has letters with spaces between, anywhere in Chinese."""
    if CJK.search(value):
        return value.replace(" ", "") in folded.replace(" ", "")
    return re.search(rf"(?<![a-z0-9]){re.escape(value)}(?![a-z0-9])", folded) is not None


_MOMENTS = {
    "datetime": re.compile(r"(?<!\d)\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?!\d)"),
    "date": re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?![\dT])"),
    "time": re.compile(r"(?<![\dT:])[0-2]\d:[0-5]\d(?![\d:])"),
}


def _without_said_moments(rendered: str, rephrased: str, now: datetime) -> tuple[str, set[str]]:
    """Return `rendered` without the dates and times that `rephrased` says in words, and these moments."""
    said: set[str] = set()
    for kind, pattern in _MOMENTS.items():
        for form in set(pattern.findall(rendered)):
            if form in rephrased:
                continue
            found = extract(Slot(id="moment", type=kind), rephrased, now=now)
            if found is not None and found.value == form:
                said.add(form)
                rendered = rendered.replace(form, " ")
    return rendered, said


def survives(rendered: str, rephrased: str, values: Iterable[Any], now: datetime | None = None) -> bool:
    """Whether what matters in `rendered` is still in `rephrased`: numbers (3 = three = 三), moments, slot values.

    `now` lets dates and times be said in words ("December 9th" for 2026-12-09).
    """
    moments: set[str] = set()
    if now is not None:
        rendered, moments = _without_said_moments(rendered, rephrased, now)
        values = [v for v in values if v not in moments] if moments else values
    said, kept = _both_numbers(rendered), _both_numbers(rephrased)
    if not said <= kept:
        return False
    folded_before, folded_after = _fold(rendered), _fold(rephrased)
    for value in values:
        text = _fold(str(value)) if not isinstance(value, (bool, dict, list)) else ""
        lost = bool(text) and _holds(folded_before, text) and not _holds(folded_after, text)
        if lost and not _number_survives(str(value), kept):
            return False
    return True


def _both_numbers(text: str) -> set[str]:
    found = _numbers(text)
    if CJK.search(text):
        # a Chinese sentence may hold English number words and the other way round
        found |= _numbers(re.sub(r"[\u3400-\u9fff]+", " ", text))
    return found


def _number_survives(value: str, kept: set[str]) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?", value)) and value.lstrip("-") in kept


def history_text(entries: Iterable[Any], language: str | None) -> str:
    """Return the conversation as lines for a prompt."""
    names = {"user": "用户", "assistant": "我"} if language == "zh" else {"user": "User", "assistant": "You"}
    lines = []
    for entry in list(entries)[-12:]:
        if entry.object is not None:
            lines.append(f"[{entry.object.type}: {entry.object.title or entry.object.id}]")
        if entry.text:
            lines.append(f"{names.get(entry.role, entry.role)}: {entry.text}")
    return "\n".join(lines)


def prompt_names(names: Mapping[str, Any], *, history: str, user_message: str, current_response: str) -> dict[str, Any]:
    """Return the names prompts know beside those of all texts."""
    return {**names, "history": history, "user_message": user_message, "current_response": current_response}
