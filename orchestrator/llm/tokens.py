"""How long a text is for a model, without its tokenizer."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.contracts.dialogue import ChatMessage

# Typical byte-pair vocabularies: about four Latin letters or one Chinese character a token; rounded to the safe side.
_LATIN_PER_TOKEN = 3.5
_WIDE_TOKENS = 1.3
_PER_MESSAGE = 5


def is_wide(char: str) -> bool:
    """Whether `char` belongs to a script written without spaces (Chinese, kana) or is its punctuation."""
    code = ord(char)
    return 0x2E80 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0xFF00 <= code <= 0xFFEF or code >= 0x20000


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text`, rather too many than too few."""
    wide = sum(1 for char in text if is_wide(char))
    return int((len(text) - wide) / _LATIN_PER_TOKEN + wide * _WIDE_TOKENS) + 1


def estimate_messages(messages: Iterable[ChatMessage]) -> int:
    """Estimate the tokens of a prompt, with what the chat template adds."""
    return sum(estimate_tokens(message.content) + _PER_MESSAGE for message in messages)
