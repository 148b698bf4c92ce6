"""Answers taken from the ledger, without asking a model: going on, and saying again."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.contracts.dialogue import ChatMessage, HistoryEntry, LlmRequest, LlmTask, Message
from orchestrator.dialogue.glue import glue
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.dialogue.turn_work import Script

_NOTHING_LEFT = {"en": "That was all I had to say.", "zh": "我刚才已经说完了。"}
_NOTHING_SAID = {"en": "I haven't said anything yet.", "zh": "我还没说过什么呢。"}


def _language_of(text: str, given: str | None) -> str:
    if given is not None:
        return "zh" if given.startswith("zh") else "en"
    return "zh" if any("\u3400" <= char <= "\u9fff" for char in text) else "en"


def whole_answer(history: Sequence[HistoryEntry]) -> str:
    """Return the last answer as it was generated: what was said on being asked to go on belongs to it; "" for none."""
    text, last = "", None
    for entry in reversed(history):
        if entry.role != "assistant":
            continue
        if last is None:
            text = glue(entry.text, entry.unheard)
        elif entry.status == "interrupted" and entry.unheard and _begins_with(last, entry.unheard):
            text = glue(entry.text, text)
        else:
            break
        last = glue(entry.text, entry.unheard)
    return text


def _begins_with(text: str, rest: str) -> bool:
    return "".join(text.split()).startswith("".join(rest.split()))


def _last_answer(turn: CoreTurn) -> HistoryEntry | None:
    return next((entry for entry in reversed(turn.history) if entry.role == "assistant"), None)


def continuation(turns: TurnLoop) -> Script:
    """Return a script that speaks the unheard rest of the last answer as it was generated.

    If the model was cut off before it had finished, one call continues the text after the rest; it was, too, where it
    broke off by itself, or failed half-way.
    """

    async def run(turn: CoreTurn) -> None:
        last = turns.broken_off() or _last_answer(turn)
        user_text = turns.input_of(turn.generation)
        language = _language_of(user_text, None)
        if last is None:
            await turn.reply.say(Message(text=_NOTHING_SAID[language], source="system", language=language))
            return
        if last.status != "interrupted":
            await turn.reply.say(Message(text=_NOTHING_LEFT[language], source="system", language=language))
            return
        language = _language_of(last.text, None)
        if last.unheard:
            await turn.reply.say(Message(text=last.unheard, source="system", language=language))
        is_unfinished = turns.last_was_unfinished or not last.unheard
        if not last.unheard and not turn.llm.is_configured:
            own = _language_of(user_text, None)
            await turn.reply.say(Message(text=_NOTHING_LEFT[own], source="system", language=own))
        elif is_unfinished and turn.llm.is_configured:
            request = LlmRequest(
                task=LlmTask.PERSONA,
                messages=(
                    *(
                        ChatMessage(role=entry.role, content=entry.text)
                        for entry in turn.history[-6:]
                        if entry is not last
                    ),
                    ChatMessage(role="assistant", content=glue(last.text, last.unheard)),
                    ChatMessage(role="user", content="继续。" if language == "zh" else "Go on from exactly there."),
                ),
                max_tokens=200,
            )
            await turn.reply.stream(turn.llm.stream(request), Message(text="", source="persona", language=language))

    return run


def repetition(turns: TurnLoop) -> Script:
    """Return a script that says the last answer again, from its beginning, word for word."""

    async def run(turn: CoreTurn) -> None:
        last = _last_answer(turn)
        language = _language_of(turns.input_of(turn.generation), None)
        if last is None:
            await turn.reply.say(Message(text=_NOTHING_SAID[language], source="system", language=language))
            return
        text = whole_answer(turn.history)
        await turn.reply.say(Message(text=text, source="system", language=_language_of(text, None)))

    return run
