"""The prompt of a free answer: persona, what was heard so far, what is known, and the current input.

The order keeps a model's prompt cache useful: what never changes comes first, the history is cut in steps of several
messages, and what changes with every turn comes last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.contracts.dialogue import ChatMessage, HistoryEntry, LlmRequest, LlmTask, TurnInput
from orchestrator.llm.persona import Persona, language_of
from orchestrator.llm.tokens import estimate_messages, estimate_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBudget:
    """How much a prompt may hold, in (estimated) tokens and messages.

    `history_step` messages at a time leave the history when it is full. `is_small` is for models that get confused
    by notes: they get no world and no time.
    """

    context_tokens: int = 4096
    answer_tokens: int = 300
    history_messages: int = 16
    history_step: int = 8
    note_tokens: int = 400
    is_small: bool = False


SMALL_BUDGET = PromptBudget(
    context_tokens=2048, answer_tokens=120, history_messages=8, history_step=4, note_tokens=120, is_small=True
)
CAPABLE_BUDGET = PromptBudget(context_tokens=8192, answer_tokens=400, history_messages=40, history_step=16)

_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "is": "You are {name}.",
        "speech": "Your words are spoken aloud: use short, plain sentences, no lists, no markdown, no emoji. "
        "Answer in English.",
        "examples": "This is how you talk:",
        "user": "User",
        "notes": "Notes for this turn (information, not instructions):",
        "now": "It is {now}.",
        "memory": "You remember: {facts}",
        "world": "Known now: {world}",
        "object": "The user points at this: {object}",
        "interrupted": 'Your last answer was interrupted. The user heard only this of it: "{heard}"',
        "unheard": "Your last answer was interrupted before the user heard any of it.",
        "objection": "The user says that your last answer was not what they meant. Ask back, or answer anew.",
        "silence": "The user has been silent for a while. Say something short and friendly, or ask a question.",
        "event": "Something happened: {event}. Say something short about it.",
        "go": "(The user says nothing.)",
    },
    "zh": {
        "is": "你是{name}。",
        "speech": "你的话会被读出来：用简短平实的句子，不要列表，不要标记符号，不要表情符号。请用中文回答。",
        "examples": "你这样说话：",
        "user": "用户",
        "notes": "本轮的备注（只是信息，不是指令）：",
        "now": "现在是{now}。",
        "memory": "你记得：{facts}",
        "world": "目前已知：{world}",
        "object": "用户指着这个：{object}",
        "interrupted": "你上一句回答被打断了。用户只听到了：“{heard}”",
        "unheard": "你上一句回答还没出声就被打断了。",
        "objection": "用户说你上一句回答不是他想要的。问清楚他的意思，或重新回答。",
        "silence": "用户有一会儿没说话了。说一句简短友好的话，或问一个问题。",
        "event": "发生了一件事：{event}。简短地说一句。",
        "go": "（用户没有说话。）",
    },
}
_NOTE_MARKS = (
    "Your last answer was interrupted",
    "The user heard only this of it",
    "The user says that your last answer",
    "Notes for this turn",
    "你上一句回答",
    "用户只听到了",
    "用户说你上一句回答",
    "本轮的备注",
)
"""How the sentences of the notes begin; what begins like this is never spoken."""

_STOP_MARKS = re.compile(r"\s*(?:\.{2,}|…+|—+|–+|。{2,})\s*")
_TRAILING_MARKS = re.compile(r"(?:\.{2,}|…|—|–|。{2,}|\s|[,，、;；:：-])+$")


def without_stop_marks(text: str) -> str:
    """Return `text` without ellipses and dashes, which a model takes for a sign that speech breaks off."""
    text = _TRAILING_MARKS.sub("", text)
    return _STOP_MARKS.sub(lambda match: "，" if _is_in_chinese(text, match.start()) else ", ", text).strip(", ，")


def _is_in_chinese(text: str, at: int) -> bool:
    return language_of(text[max(0, at - 4) : at]) == "zh" if at else False


def system_text(persona: Persona, language: str, budget: PromptBudget) -> str:
    """Return the unchanging part of the prompt, for one language."""
    texts = _TEXTS[language]
    name = persona.name.get(language)
    parts = [texts["is"].format(name=name)]
    parts += [part for part in (persona.about.get(language), persona.style.get(language)) if part]
    parts += [part for part in (persona.limits.get(language),) if part]
    parts.append(texts["speech"])
    joiner = "" if language == "zh" else " "
    text = joiner.join(" ".join(part.split()) if language == "en" else part.replace("\n", "") for part in parts)
    examples = [example for example in persona.examples if example.language == language]
    if examples and not budget.is_small:
        lines = [f"{texts['user']}: {example.user}\n{name}: {example.assistant}" for example in examples]
        text += f"\n\n{texts['examples']}\n" + "\n".join(lines)
    return text


def _head(persona: Persona, language: str, budget: PromptBudget) -> list[ChatMessage]:
    """Return the system message and, for small models, the examples as turns: they imitate rather than read."""
    head = [ChatMessage(role="system", content=system_text(persona, language, budget))]
    if budget.is_small:
        for example in [example for example in persona.examples if example.language == language][:2]:
            head.append(ChatMessage(role="user", content=example.user))
            head.append(ChatMessage(role="assistant", content=example.assistant))
    return head


def warm_up_messages(persona: Persona, language: str, budget: PromptBudget = SMALL_BUDGET) -> list[ChatMessage]:
    """Return what every persona prompt in `language` begins with, for `LocalServer(warm=…)`."""
    return [*_head(persona, language, budget), ChatMessage(role="user", content="Hi" if language == "en" else "你好")]


def _history(entries: Sequence[HistoryEntry], budget: PromptBudget, room: int) -> list[ChatMessage]:
    """Return the newest messages that fit, beginning with a user's; the beginning moves in steps."""
    messages = [
        ChatMessage(role=entry.role, content=_as_heard(entry))
        for entry in entries
        if entry.role in ("user", "assistant") and entry.text.strip() and entry.status != "failed"
    ]
    surplus = max(0, len(messages) - budget.history_messages)
    start = -(-surplus // budget.history_step) * budget.history_step
    while start < len(messages) and estimate_messages(messages[start:]) > room:
        start += max(2, budget.history_step // 2)
    kept = messages[start:]
    while kept and kept[0].role != "user":
        kept.pop(0)
    return kept


def _as_heard(entry: HistoryEntry) -> str:
    text = entry.text.strip()
    return without_stop_marks(text) if entry.status == "interrupted" else text


def is_note(sentence: str) -> bool:
    """Whether a generated sentence only repeats a note of the prompt, as small models do."""
    bare = sentence.strip(" \"'“”")
    return any(bare.startswith(mark) for mark in _NOTE_MARKS)


def _interruption_notes(history: Sequence[HistoryEntry], texts: Mapping[str, str]) -> list[str]:
    last = next((entry for entry in reversed(history) if entry.role == "assistant"), None)
    if last is None or last is not history[-1] or last.status != "interrupted":
        return []
    heard = without_stop_marks(last.text.strip())
    return [texts["interrupted"].format(heard=heard) if heard else texts["unheard"]]


def _notes(
    *,
    language: str,
    history: Sequence[HistoryEntry],
    world: Mapping[str, Any],
    memory: Sequence[str],
    user: TurnInput,
    now: datetime | None,
    budget: PromptBudget,
) -> str:
    texts = _TEXTS[language]
    notes: list[str] = []
    notes += _interruption_notes(history, texts)
    if user.interrupt_hint == "objection":
        notes.append(texts["objection"])
    if user.kind == "silence":
        notes.append(texts["silence"])
    if user.kind == "event":
        payload = _compact({"type": user.event_type, **user.event_payload}, budget.note_tokens)
        notes.append(texts["event"].format(event=payload))
    if user.object is not None:
        thing = {"type": user.object.type, "title": user.object.title, **user.object.attributes}
        notes.append(texts["object"].format(object=_compact(thing, budget.note_tokens)))
    if memory:
        facts = "; ".join(without_stop_marks(fact) for fact in memory[: 3 if budget.is_small else 12])
        notes.append(texts["memory"].format(facts=_shortened(facts, budget.note_tokens)))
    if not budget.is_small:
        if now is not None:
            form = "%A, %Y-%m-%d %H:%M" if language == "en" else "%Y-%m-%d %H:%M"
            notes.append(texts["now"].format(now=now.strftime(form)))
        if world:
            notes.append(texts["world"].format(world=_compact(world, budget.note_tokens)))
    if not notes:
        return ""
    return "\n".join(notes) if budget.is_small else texts["notes"] + "\n" + "\n".join(notes)


def _compact(values: Mapping[str, Any], tokens: int) -> str:
    known = {key: value for key, value in values.items() if value not in (None, "", {}, [])}
    return _shortened(json.dumps(known, ensure_ascii=False, default=str), tokens)


def _shortened(text: str, tokens: int) -> str:
    while estimate_tokens(text) > tokens:
        text = text[: max(1, int(len(text) * 0.8))]
    return text


def _merged(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Join neighbours of the same role: many chat templates insist on alternation."""
    merged: list[ChatMessage] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            content = f"{merged[-1].content}\n{message.content}"
            merged[-1] = ChatMessage(role=message.role, content=content)
        else:
            merged.append(message)
    return tuple(merged)


def persona_messages(
    persona: Persona,
    *,
    history: Sequence[HistoryEntry],
    user: TurnInput,
    world: Mapping[str, Any] | None = None,
    memory: Sequence[str] = (),
    now: datetime | None = None,
    budget: PromptBudget | None = None,
) -> tuple[ChatMessage, ...]:
    """Return the prompt for a free answer; `memory` is facts worth remembering, most fitting first.

    The notes of the turn are a system message in front of the user's words. The prompt fits the budget whatever the
    history.
    """
    budget = budget or CAPABLE_BUDGET
    language = persona.reply_language(user.language or language_of(user.text or _last_user_text(history)))
    words = user.text.strip() or _TEXTS[language]["go"]
    notes = _notes(
        language=language,
        history=history,
        world=world or {},
        memory=memory,
        user=user,
        now=now,
        budget=budget,
    )
    head = _head(persona, language, budget)
    room = budget.context_tokens - budget.answer_tokens - estimate_messages(head)
    words = _shortened(words, max(64, room // 2))
    tail: list[ChatMessage] = []
    if notes:
        tail.append(ChatMessage(role="system", content=notes))
    tail.append(ChatMessage(role="user", content=words))
    messages = [*head, *_history(history, budget, room - estimate_messages(tail)), *tail]
    return _merged(messages)


def _last_user_text(history: Sequence[HistoryEntry]) -> str:
    return next((entry.text for entry in reversed(history) if entry.role == "user"), "")


def persona_request(
    persona: Persona,
    *,
    history: Sequence[HistoryEntry],
    user: TurnInput,
    world: Mapping[str, Any] | None = None,
    memory: Sequence[str] = (),
    now: datetime | None = None,
    budget: PromptBudget | None = None,
) -> LlmRequest:
    """Return the model call for a free answer, bounded, and stopped where the model would speak for the user."""
    budget = budget or CAPABLE_BUDGET
    messages = persona_messages(persona, history=history, user=user, world=world, memory=memory, now=now, budget=budget)
    return LlmRequest(
        task=LlmTask.PERSONA,
        messages=messages,
        temperature=0.4 if budget.is_small else 0.7,
        max_tokens=budget.answer_tokens,
        stop=("\nUser:", "\n用户："),
    )
