"""The prompts of the three steps, the single call and `extract`."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.contracts.dialogue import ChatMessage, HistoryEntry, LlmRequest, LlmTask
from orchestrator.rails.index import Hit
from orchestrator.rails.knowledge import Knowledge
from orchestrator.rails.model import RailsConfig, Variant
from orchestrator.rails.program import Bot, WaitUser

_RECENT = 6
_MOST_INTENTS = 200


class Prompts:
    """Writes the requests of one configuration. `persona` says who speaks and how."""

    def __init__(self, knowledge: Knowledge, persona: str = "") -> None:
        self._knowledge = knowledge
        self._config: RailsConfig = knowledge.config
        self._persona = persona.strip()

    async def user_intent(self, text: str, history: Sequence[HistoryEntry]) -> LlmRequest:
        """Ask for the meaning of the user's sentence."""
        examples = [f"{_quoted(hit)}\nuser {hit.label}" for hit in await self._knowledge.examples(text)]
        system = _join(
            "Name the meaning of the user's last sentence. Answer with one line: the word user, then the intent.",
            self._candidates(),
            _section("Examples", examples),
        )
        return _request(LlmTask.USER_INTENT, system, f'{_talk(history)}User: "{text}"', max_tokens=24)

    async def next_step(self, intent: str, text: str, history: Sequence[HistoryEntry]) -> LlmRequest:
        """Ask what kind of answer comes next."""
        rails = ["\n".join(self._config.rail_lines[name]) for name in await self._knowledge.near_rails(intent)]
        several = self._config.settings.multi_step
        task = (
            "Continue the conversation with a few lines, each starting with bot, user or do. The first starts with bot."
            if several
            else "Decide how the bot answers. Reply with one line: the word bot, then a short name of the answer."
        )
        system = _join(task, _section("Examples", rails))
        user = f'{_talk(history)}User: "{text}"\nuser {intent}'
        return _request(LlmTask.NEXT_STEP, system, user, max_tokens=80 if several else 24)

    async def bot_message(self, intent: str, text: str, history: Sequence[HistoryEntry], language: str) -> LlmRequest:
        """Ask for the words of a bot intent."""
        near = await self._knowledge.near_messages(intent)
        examples = [f"bot {name}\n{self._wording(name, language)}" for name in near]
        system = _join(
            self._persona,
            f"Write what the character says now. It is spoken aloud: one to three short sentences, "
            f"no lists, no quotes, in {_language(language)}.",
            _section("Examples", examples),
        )
        user = f'{_talk(history)}User: "{text}"\nWhat the character does now: {intent}'
        return _request(LlmTask.BOT_MESSAGE, system, user, temperature=0.7, max_tokens=200)

    async def combined(self, text: str, history: Sequence[HistoryEntry], language: str) -> LlmRequest:
        """Ask for intent, bot intent and words in one call."""
        examples = [self._joined_example(hit, language) for hit in await self._knowledge.examples(text)]
        system = _join(
            self._persona,
            "Answer the user's last sentence in three parts. First line: the word user, then its intent. "
            "Second line: the word bot, then a short name of the answer. Then the answer itself, one to three short "
            f"spoken sentences in {_language(language)}.",
            self._candidates(),
            _section("Examples", examples),
        )
        return _request(LlmTask.COMBINED, system, f'{_talk(history)}User: "{text}"', temperature=0.0, max_tokens=240)

    def value(self, instruction: str, kind: str, text: str, history: Sequence[HistoryEntry]) -> LlmRequest:
        """Ask for one value of the conversation."""
        shape = {"text": "a few words", "any": "a value", "list": "a JSON list", "boolean": "true or false"}
        system = _join(
            f"Find in the conversation: {instruction}",
            f"Answer with nothing but {shape.get(kind, f'a {kind}')}; if it was not said, answer none.",
        )
        return _request(LlmTask.VALUE, system, f'{_talk(history)}User: "{text}"', max_tokens=60)

    def _candidates(self) -> str:
        names = list(self._config.user_intents)[:_MOST_INTENTS]
        rule = "Use one of these intents" if self._config.settings.closed_intents else "Intents to choose from"
        return _section(rule, names, separator="\n")

    def _joined_example(self, hit: Hit, language: str) -> str:
        lines = [_quoted(hit), f"user {hit.label}"]
        answer = self._answer_to(hit.label)
        if answer is not None:
            lines.append(f"bot {answer}")
            if answer in self._config.bot_messages:
                lines.append(self._wording(answer, language))
        return "\n".join(lines)

    def _answer_to(self, intent: str) -> str | None:
        for rail in self._config.rails:
            ops = rail.program.ops
            for at, op in enumerate(ops):
                if isinstance(op, WaitUser) and op.intent == intent:
                    return next((later.intent for later in ops[at:] if isinstance(later, Bot)), None)
        return None

    def _wording(self, name: str, language: str) -> str:
        variants = eligible_language(self._config.bot_messages.get(name, ()), language)
        return variants[0].text if variants else ""


def eligible_language(variants: Sequence[Variant], language: str) -> list[Variant]:
    """Return the variants in a language; those of any language when it has none; all when there is no choice."""
    return (
        [v for v in variants if v.language == language] or [v for v in variants if v.language is None] or list(variants)
    )


def _quoted(hit: Hit) -> str:
    return f'User: "{hit.text}"'


def _language(language: str) -> str:
    return {"zh": "Chinese", "en": "English"}.get(language, "the user's language")


def _talk(history: Sequence[HistoryEntry]) -> str:
    lines = []
    for entry in history[-_RECENT:]:
        who = "User" if entry.role == "user" else "Character"
        if entry.text.strip():
            lines.append(f'{who}: "{entry.text}"')
    return "".join(f"{line}\n" for line in lines)


def _section(title: str, items: Sequence[str], separator: str = "\n\n") -> str:
    return f"{title}:\n{separator.join(items)}" if items else ""


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _request(
    task: LlmTask, system: str, user: str, *, temperature: float = 0.0, max_tokens: int | None = None
) -> LlmRequest:
    messages = (ChatMessage(role="system", content=system), ChatMessage(role="user", content=user))
    return LlmRequest(task=task, messages=messages, temperature=temperature, max_tokens=max_tokens)
