"""What a model answered, made usable. Nothing here fails: bad answers become the defined fallbacks."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from orchestrator.contracts.wellformed import read_json
from orchestrator.rails.model import GENERAL_RESPONSE, UNKNOWN_INTENT

MAX_LINES = 12
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』"}
_LABELS = {
    "user": re.compile(r"(?:user\s+intent\s*:|user\s+(?!intent\s*:))\s*", re.IGNORECASE),
    "bot": re.compile(r"(?:bot\s+intent\s*:|bot\s+(?!intent\s*:))\s*", re.IGNORECASE),
}
_MESSAGE_LABEL = re.compile(r"bot\s+message\s*:\s*", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "null", "n/a", "unknown", "无", "没有", "未知"})


class Unparsable(Exception):  # noqa: N818 - names an answer
    """The answer holds no value of the type asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """The head of a single-call answer."""

    intent: str
    bot_intent: str


def lines_of(text: str) -> list[str]:
    """Return the non-empty lines, stripped."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def parse_user_intent(text: str) -> str:
    """Return the first non-empty line without a leading `user `; "unknown message" for nothing."""
    lines = lines_of(text)
    if not lines:
        return UNKNOWN_INTENT
    line = lines[0]
    if line == "user" or line.startswith("user "):
        line = line[4:].strip()
    return line or UNKNOWN_INTENT


def parse_bot_intent(text: str) -> str:
    """Return the bot intent of the first non-empty line; "general response" unless it starts with `bot `."""
    lines = lines_of(text)
    if not lines or not lines[0].startswith("bot "):
        return GENERAL_RESPONSE
    return lines[0][4:].strip() or GENERAL_RESPONSE


def parse_small_rail(text: str) -> list[str]:
    """Return the lines of a small rail, cut from the end until all of them parse; it begins with a `bot ` line."""
    lines = lines_of(text)[:MAX_LINES]
    while lines and not all(_is_step(line) for line in lines):
        lines.pop()
    if not lines or not lines[0].startswith("bot "):
        return [f"bot {GENERAL_RESPONSE}"]
    return lines


def _is_step(line: str) -> bool:
    word, _, rest = line.partition(" ")
    return word in ("bot", "user", "do") and bool(rest.strip())


def parse_combined_head(first: str, second: str) -> Combined | None:
    """Return intent and bot intent of the first two lines, or None if they are no such lines.

    The first may lack its `user `, the second must have its `bot `.
    """
    bot = _LABELS["bot"].match(second)
    if bot is None or not second[bot.end() :].strip():
        return None
    if _LABELS["bot"].match(first):
        return None
    user = _LABELS["user"].match(first)
    intent = first[user.end() :].strip() if user else first.strip()
    return Combined(intent=intent, bot_intent=second[bot.end() :].strip()) if intent else None


def clean_message(text: str) -> str:
    """Return a message without surrounding quotes, blank lines and spaces at line ends."""
    cleaner = MessageCleaner()
    return cleaner.feed(text) + cleaner.finish()


class MessageCleaner:
    """Cleans a message while it streams; holds back only what may turn out to be the end."""

    def __init__(self) -> None:
        self._started = False
        self._closing: str | None = None
        self._held = ""
        self._spoken = False

    def feed(self, chunk: str) -> str:
        """Take text and return what can be spoken of it now."""
        out: list[str] = []
        for char in chunk:
            if not self._started:
                if char.isspace():
                    continue
                self._started = True
                self._closing = _QUOTES.get(char)
                if self._closing is not None:
                    continue
            if char.isspace() or char == self._closing:
                self._held += char
                continue
            out.append(_tidy(self._held, at_start=not (out or self._spoken)))
            self._held = ""
            out.append(char)
            self._spoken = True
        return "".join(out)

    def finish(self) -> str:
        """Return what was held back and belongs to the message after all."""
        held = self._held.rstrip()
        if self._closing is not None and held.endswith(self._closing):
            held = held[: -len(self._closing)]
        return _tidy(held, at_start=not self._spoken).rstrip()


def _tidy(held: str, *, at_start: bool) -> str:
    """Make one line break of any run of blank space with a line break in it."""
    if at_start:
        return held.lstrip()
    if "\n" not in held:
        return held
    return re.sub(r"[^\S\n]*\n\s*", "\n", held)


async def clean_stream(chunks: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield cleaned text; closes `chunks` at the end."""
    cleaner = MessageCleaner()
    try:
        async for chunk in chunks:
            text = cleaner.feed(chunk)
            if text:
                yield text
        rest = cleaner.finish()
        if rest:
            yield rest
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


def drop_message_label(text: str) -> str:
    """Remove a leading `bot message:` from the text part of a single-call answer."""
    return _MESSAGE_LABEL.sub("", text.lstrip(), count=1)


def parse_value(text: str, kind: str) -> Any:
    """Return the value of an `extract`. Raises `Unparsable`."""
    whole = text.strip()
    if kind in ("list", "any"):
        found = _json(whole)
        if found is not None and (kind == "any" or isinstance(found, list)):
            return found
        if kind == "list":
            raise Unparsable("no list")
    lines = lines_of(whole)
    line = clean_message(lines[0]) if lines else ""
    if line.casefold().rstrip(".。") in _NOTHING:
        raise Unparsable("nothing was named")
    if kind == "integer":
        return _number(line, int)
    if kind == "number":
        return _number(line, float)
    if kind == "boolean":
        return _boolean(line)
    return line


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


def _number(line: str, cls: type[int] | type[float]) -> int | float:
    line = line.rstrip(".。")
    if not re.fullmatch(r"[-+]?\d{1,18}(\.\d{1,18})?", line):
        raise Unparsable("no number")
    value = float(line)
    if cls is int:
        if not value.is_integer():
            raise Unparsable("no whole number")
        return int(value) if "." in line else int(line)
    return value


def _boolean(line: str) -> bool:
    word = line.casefold().rstrip(".。!！")
    if word in ("true", "yes", "是", "是的", "对"):
        return True
    if word in ("false", "no", "否", "不", "不是"):
        return False
    raise Unparsable("neither true nor false")
