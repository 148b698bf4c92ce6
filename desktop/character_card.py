"""Character cards of other programs (JSON or PNG, versions 1 to 3), read as data and turned into a persona.

A card comes from strangers: nothing of it is executed or expanded, every size is bounded, and what it would tell a
model beside the character itself (system prompts, lore books, scripts) is left out and named.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orchestrator.contracts.errors import InputError
from orchestrator.llm.persona import Persona, language_of, load_persona

MAX_BYTES = 30_000_000
"""Of a file: a picture with its character."""

_MAX_JSON_BYTES = 4_000_000
_MAX_NAME = 60
_MAX_ABOUT = 1200
_MAX_STYLE = 600
_MAX_GREETING = 300
_MAX_LINE = 300
_MAX_EXAMPLES = 6
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEYS = ("ccv3", "chara")
"""Chunks that hold a character, the newer form first."""

_LEFT_OUT = (
    "system_prompt",
    "post_history_instructions",
    "character_book",
    "alternate_greetings",
    "group_only_greetings",
    "creator_notes",
    "assets",
    "extensions",
)

_MACRO = re.compile(r"\{\{[^{}]*\}\}|\{%.*?%\}|<(?:START|BOT|USER)>", re.IGNORECASE | re.DOTALL)
_CHAR = re.compile(r"\{\{\s*char\s*\}\}|<BOT>", re.IGNORECASE)
_USER = re.compile(r"\{\{\s*user\s*\}\}|<USER>", re.IGNORECASE)
_STAGE = re.compile(r"\*[^*\n]{1,400}\*|（[^（）\n]{1,200}）")
_TAG = re.compile(r"<[^<>\n]{1,200}>")
_LINE = re.compile(r"^\s*(\{\{\s*(?:user|char)\s*\}\}|<USER>|<BOT>)\s*[:：]\s*(.*)$", re.IGNORECASE)
_ENDS = ".!?。！？…\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterCard:
    """A card as read. `left_out` names the fields that were there and are not taken; `is_shortened`: texts were cut."""

    persona_text: str
    persona: Persona
    spec: str
    creator: str = ""
    left_out: tuple[str, ...] = ()
    is_shortened: bool = False

    @property
    def name(self) -> str:
        """What the character is called."""
        return self.persona.name.get(None)


def read_card(path: Path) -> CharacterCard:
    """Read a card. Raises `InputError`: `card_unreadable`, `card_too_big`, `card_empty` or `card_broken`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError("card_too_big", f"{path.name} is too big for a character card", part="persona")
        data = path.read_bytes()
    except OSError as error:
        raise InputError("card_unreadable", f"{path.name} can't be read: {error.strerror}", part="persona") from error
    return parse_card(data, path.name)


def parse_card(data: bytes, source: str = "the card") -> CharacterCard:
    """Read the bytes of a PNG or JSON file; see `read_card` for what is raised."""
    text = _from_png(data, source) if data.startswith(_PNG) else data
    if len(text) > _MAX_JSON_BYTES:
        raise InputError("card_too_big", f"{source} is too big for a character card", part="persona")
    try:
        # No number of a card is needed: huge ones are not to be computed.
        root = json.loads(text.decode("utf-8-sig"), parse_int=_zero, parse_float=_zero, parse_constant=_zero)
    except (ValueError, RecursionError) as error:
        raise _broken(source, "it is neither a picture with a character nor JSON") from error
    if not isinstance(root, dict):
        raise _broken(source, "it holds no character")
    return _from_root(root, source)


def _zero(_: str) -> int:
    return 0


def _from_root(root: Mapping[str, Any], source: str) -> CharacterCard:
    spec = root.get("spec")
    data = root.get("data") if isinstance(spec, str) and isinstance(root.get("data"), dict) else root
    assert isinstance(data, Mapping)
    for key in ("name", "description", "personality", "scenario", "first_mes", "mes_example"):
        if key in data and data[key] is not None and not isinstance(data[key], str):
            raise _broken(source, f"{key} is no text")
    reader = _Reader(data)
    if not reader.name:
        raise _broken(source, "the character has no name")
    values = reader.values()
    text = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=110)
    try:
        persona = load_persona(text)
    except (InputError, ValueError) as error:
        raise _broken(source, "its texts make no persona") from error
    creator = data.get("creator")
    return CharacterCard(
        persona_text=text,
        persona=persona,
        spec=spec[:40] if isinstance(spec, str) else "v1",
        creator=_tidy(creator)[:_MAX_NAME] if isinstance(creator, str) else "",
        left_out=tuple(name for name in _LEFT_OUT if data.get(name)),
        is_shortened=reader.is_shortened,
    )


class _Reader:
    """Takes the texts of a card over, one field at a time."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.is_shortened = False
        self.full_name = _one_line(_MACRO.sub("", _tidy(self._raw("name"))))[:_MAX_NAME].strip()
        nickname = _one_line(_MACRO.sub("", _tidy(self._raw("nickname"))))[:_MAX_NAME].strip()
        self.name = nickname or self.full_name
        whole = "".join(self._raw(key) for key in ("first_mes", "description", "personality"))
        self._is_chinese = language_of(whole) == "zh"

    def _raw(self, key: str) -> str:
        value = self._data.get(key)
        return value if isinstance(value, str) else ""

    def values(self) -> dict[str, Any]:
        """Return the keys of a persona. What the card says nothing of is said to be nothing: no shipped text stays."""
        about = "\n".join(t for t in (self._prose("description"), self._prose("scenario")) if t)
        style = self._prose("personality")
        return {
            "name": self.name,
            "aliases": [self.full_name] if self.full_name not in ("", self.name) else [],
            "language": "auto",
            "style": self._cut(style, _MAX_STYLE) or None,
            "greeting": self._cut(self._spoken(self._raw("first_mes")), _MAX_GREETING) or None,
            "about": self._cut(about, _MAX_ABOUT) or None,
            "examples": self._examples(),
        }

    def _prose(self, key: str) -> str:
        return _squeeze(self._named(self._raw(key), "用户" if self._is_chinese else "the user"))

    def _named(self, text: str, user: str) -> str:
        text = _USER.sub(lambda _: user, _CHAR.sub(lambda _: self.name, _tidy(text)))
        return _TAG.sub("", _MACRO.sub("", text))

    def _spoken(self, text: str) -> str:
        """Return what of `text` is speech: stage directions and quotation marks around it are not read aloud."""
        plain = _STAGE.sub(" ", self._named(text, "朋友" if self._is_chinese else "my friend"))
        return _one_line(plain).strip(' "“”「」')

    def _cut(self, text: str, most: int) -> str:
        """Shorten at the end of a sentence, else of a word."""
        if len(text) <= most:
            return text
        self.is_shortened = True
        head = text[:most]
        ends = [head.rfind(mark) for mark in _ENDS]
        if max(ends) > most // 3:
            return head[: max(ends) + 1].strip()
        return (head.rpartition(" ")[0] or head).strip()

    def _examples(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = []
        user, answer, who = "", "", ""
        for line in [*self._raw("mes_example")[: 40 * 2 * _MAX_LINE].splitlines(), "<START>"]:
            said = _LINE.match(line)
            is_user = said is not None and "user" in said[1].lower()
            if said is None and line.strip().upper() != "<START>":
                # A message may go on in the next line.
                user, answer = (user + " " + line, answer) if who == "user" else (user, answer + " " + line)
                continue
            if (said is None or is_user) and (pair := self._pair(user, answer)) is not None:
                found.append(pair)
            if said is None:
                user, answer, who = "", "", ""
            elif is_user:
                user, answer, who = said[2], "", "user"
            else:
                answer, who = f"{answer} {said[2]}", "char"
        self.is_shortened = self.is_shortened or len(found) > _MAX_EXAMPLES
        return found[:_MAX_EXAMPLES]

    def _pair(self, user: str, answer: str) -> dict[str, str] | None:
        said, answered = self._cut(self._spoken(user), _MAX_LINE), self._cut(self._spoken(answer), _MAX_LINE)
        return {"user": said, "assistant": answered} if said and answered else None


# --- PNG --------------------------------------------------------------------------------------------------------------


def _from_png(data: bytes, source: str) -> bytes:
    """Return the JSON text that a picture carries; the picture itself is not looked at."""
    found: dict[str, bytes] = {}
    for key, value in _text_chunks(data, source):
        found.setdefault(key.lower(), value)
    for key in _PNG_KEYS:
        if key in found:
            try:
                return base64.b64decode(found[key], validate=False)
            except (binascii.Error, ValueError) as error:
                raise _broken(source, f"its chunk {key} is damaged") from error
    raise InputError("card_empty", f"{source} is a picture without a character in it", part="persona")


def _text_chunks(data: bytes, source: str) -> Iterator[tuple[str, bytes]]:
    place = len(_PNG)
    while place + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + size]
        if len(body) != size:
            raise _broken(source, "the picture ends too early")
        if kind in (b"tEXt", b"zTXt", b"iTXt"):
            entry = _text_of(kind, body, source)
            if entry is not None:
                yield entry
        if kind == b"IEND":
            return
        place += 12 + size


def _text_of(kind: bytes, body: bytes, source: str) -> tuple[str, bytes] | None:
    name, found, rest = body.partition(b"\0")
    key = name.decode("latin-1")
    if not found or key.lower() not in _PNG_KEYS:
        return None
    if kind == b"tEXt":
        return key, rest
    if kind == b"zTXt":
        return key, _inflate(rest[1:], source)
    if len(rest) < 2:
        return None
    is_packed = rest[0] == 1
    _, _, after = rest[2:].partition(b"\0")
    _, _, text = after.partition(b"\0")
    return key, _inflate(text, source) if is_packed else text


def _inflate(packed: bytes, source: str) -> bytes:
    """Unpack a bounded amount: what claims to be small may not be."""
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(packed, 2 * _MAX_JSON_BYTES)
    except zlib.error as error:
        raise _broken(source, "its character is damaged") from error
    if unpacker.unconsumed_tail:
        raise InputError("card_too_big", f"{source} is too big for a character card", part="persona")
    return text


# --- texts ------------------------------------------------------------------------------------------------------------


def _tidy(text: str) -> str:
    """Return `text` without what no file and no voice can take: controls, lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "ignore").decode("utf-8")
    return "".join(c for c in text if c == "\n" or c.isprintable() or c == "\u3000")


def _squeeze(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _broken(source: str, why: str) -> InputError:
    return InputError("card_broken", f"{source} is no character card: {why}", part="persona")
