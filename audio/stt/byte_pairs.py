"""Whisper's text tokens, from the word list beside the model.

The tokenizer that comes with the recogniser's library reads its own description of the same tokens in one go of a
tenth of a second, in which no other thread runs: the window stands still and the sound breaks off. The list alone says
as much: a token's place is its number and, for the pieces of text, its rank among the merges.
"""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_LISTS = ("vocabulary.json", "vocabulary.txt")
_NEEDED = ("<|endoftext|>", "<|startoftranscript|>", "<|startofprev|>", "<|transcribe|>", "<|notimestamps|>")
_ENDINGS = ("s", "t", "m", "d", "re", "ve", "ll")
"""What may follow an apostrophe as a piece of its own."""

_NOT_SPACE = "\x1c\x1d\x1e\x1f"
"""Spaces to Python only."""


def read_tokens(model_dir: Path) -> BytePairs | None:
    """Return the tokens of the model in `model_dir`; None if it has no list, or one that is not Whisper's."""
    for name in _LISTS:
        path = model_dir / name
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
            tokens = json.loads(text) if name.endswith(".json") else text.removesuffix("\n").split("\n")
        except (OSError, ValueError):
            return None
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            return None
        found = BytePairs(tokens)
        return found if found.is_whisper else None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """The numbers of a text, named as the recogniser's library expects it."""

    ids: list[int]


class BytePairs:
    """Byte-level pair encoding; a stand-in for `tokenizers.Tokenizer` in what the recogniser asks of it."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """Number `tokens` by their places."""
        self._tokens = tokens
        self._ids = {token: place for place, token in enumerate(tokens)}
        self._end = self._ids.get(_NEEDED[0], len(tokens))
        self._letters = _letters()
        self._bytes = {letter: byte for byte, letter in enumerate(self._letters)}

    @property
    def is_whisper(self) -> bool:
        """Whether the tokens that steer Whisper are there, and every byte."""
        return all(token in self._ids for token in (*_NEEDED, *self._letters))

    def token_to_id(self, token: str) -> int | None:
        """Return the number of `token`, None if there is none."""
        return self._ids.get(token)

    def encode(self, text: str, add_special_tokens: bool = False) -> Encoding:
        """Return the numbers of `text`; nothing in it steers, and nothing is added."""
        return Encoding(ids=[token for piece in _pieces(text) for token in self._merge(piece)])

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` without what steers; bytes that are no text become U+FFFD."""
        known = self._bytes
        return bytes(
            known[letter] for token in ids if token < self._end for letter in self._tokens[token] if letter in known
        ).decode("utf-8", errors="replace")

    def _merge(self, piece: str) -> list[int]:
        """Join neighbours, those first that were merged first when the tokens were made."""
        parts = [self._letters[byte] for byte in piece.encode("utf-8", errors="replace")]
        while len(parts) > 1:
            ranks = [self._ids.get(first + second, self._end) for first, second in itertools.pairwise(parts)]
            rank = min(ranks)
            if rank >= self._end:
                break
            joined: list[str] = []
            place = 0
            while place < len(parts):
                if place < len(ranks) and ranks[place] == rank:
                    joined.append(parts[place] + parts[place + 1])
                    place += 2
                else:
                    joined.append(parts[place])
                    place += 1
            parts = joined
        return [self._ids[part] for part in parts]


def _letters() -> list[str]:
    """Return the letter that stands for each byte: itself if it can be seen, else one from 256 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(byte if byte in seen else next(hidden)) for byte in range(256)]


def _kind(letter: str) -> str:
    if letter.isspace() and letter not in _NOT_SPACE:
        return "space"
    category = unicodedata.category(letter)[0]
    return {"L": "letter", "N": "number"}.get(category, "other")


def _pieces(text: str) -> Iterator[str]:
    r"""Part `text` into words, numbers and marks, each with the one space before it, and the remaining spaces.

    As the pattern 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ does.
    """
    kinds = [_kind(letter) for letter in text]
    start = 0
    while start < len(text):
        end = _ending(text, start)
        if end is None:
            first = start + (text[start] == " " and start + 1 < len(text) and kinds[start + 1] != "space")
            end = first + 1
            while end < len(text) and kinds[end] == kinds[first]:
                end += 1
            if kinds[first] == "space" and end < len(text) and end - first > 1:
                end -= 1
        yield text[start:end]
        start = end


def _ending(text: str, start: int) -> int | None:
    if text[start] != "'":
        return None
    return next((start + 1 + len(ending) for ending in _ENDINGS if text.startswith(ending, start + 1)), None)
