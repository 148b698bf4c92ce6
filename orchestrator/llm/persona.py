"""The character: what `persona.yml` says, checked, with every mistake named by line and column."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from orchestrator.contracts.errors import InputError
from orchestrator.flows.whole_text import WholeTextLoader
from orchestrator.llm.unavailable import text_language

_LANGUAGES = ("auto", "en", "zh")
_TEXT_LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Localised:
    """A text in one or more languages. A plain value in the file is under the key ""."""

    by_language: Mapping[str, str] = field(default_factory=dict)

    def get(self, language: str | None) -> str:
        """Return the text in `language`, else the plain one, else English, else any; empty if there is none."""
        texts = self.by_language
        for key in (text_language(language), "", "en"):
            if key in texts:
                return texts[key]
        return next(iter(texts.values()), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A short exchange that shows how the character talks."""

    user: str
    assistant: str
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """The character. `language` auto follows the user; `voice` and `avatar` are none for the app's own choice."""

    name: Localised
    aliases: tuple[str, ...] = ()
    language: str = "auto"
    style: Localised = Localised()
    greeting: Localised = Localised()
    about: Localised = Localised()
    limits: Localised = Localised()
    voice: Mapping[str, str] = field(default_factory=dict)
    avatar: str | None = None
    examples: tuple[Example, ...] = ()
    thinking_cue: Localised = Localised()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name the character answers to, without doubles."""
        return tuple(dict.fromkeys((*self.name.by_language.values(), *self.aliases)))

    def voice_for(self, language: str | None) -> str | None:
        """Return the voice to speak `language` with, none for the app's own choice."""
        return self.voice.get(text_language(language)) or self.voice.get("")

    def reply_language(self, heard: str | None) -> str:
        """Return the language to answer in, `en` or `zh`, given the language of what the user said."""
        return text_language(heard) if self.language == "auto" else self.language


_LOCALISED = ("name", "style", "greeting", "about", "limits", "thinking_cue")
_KEYS = (*_LOCALISED, "aliases", "language", "voice", "avatar", "examples")


class _Problems:
    """Collects what is wrong, in the order of the file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[tuple[int, int, str]] = []

    def add(self, node: yaml.Node | None, text: str) -> None:
        mark = node.start_mark if node is not None else None
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        self.found.append((line, column, text))

    def raise_any(self) -> None:
        if self.found:
            lines = [f"{self.source}:{line}:{column}: {text}" for line, column, text in sorted(self.found)]
            raise InputError("persona_invalid", "\n".join(lines), part="persona")


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a text"


def _suggestion(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"


def _entries(node: yaml.MappingNode, known: Sequence[str], problems: _Problems, what: str) -> dict[str, yaml.Node]:
    """Return the values by key, naming unknown and doubled keys."""
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        word = str(key.value) if isinstance(key, yaml.ScalarNode) else _kind(key)
        if word not in known:
            problems.add(key, f"unknown {what} {word!r}{_suggestion(word, known)}")
        elif word in entries:
            problems.add(key, f"{what} {word!r} is there twice")
        else:
            entries[word] = value
    return entries


def _text(node: yaml.Node, problems: _Problems, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        problems.add(node, f"{what} must be a text, not {_kind(node)}")
        return ""
    if node.tag == "tag:yaml.org,2002:null" or not str(node.value).strip():
        problems.add(node, f"{what} is empty")
        return ""
    return str(node.value).strip()


def _localised(node: yaml.Node, problems: _Problems, what: str) -> Mapping[str, str]:
    """Read a text or one text per language; a list of texts becomes one with a sentence a line."""
    if isinstance(node, yaml.MappingNode):
        entries = _entries(node, _TEXT_LANGUAGES, problems, f"language of {what}")
        return {key: _joined(value, problems, f"{what}.{key}") for key, value in entries.items()}
    return {"": _joined(node, problems, what)}


def _joined(node: yaml.Node, problems: _Problems, what: str) -> str:
    if isinstance(node, yaml.SequenceNode):
        return "\n".join(_text(item, problems, f"{what}[{index}]") for index, item in enumerate(node.value))
    return _text(node, problems, what)


def _list(node: yaml.Node, problems: _Problems, what: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        problems.add(node, f"{what} must be a list, not {_kind(node)}")
        return []
    return list(node.value)


def _examples(node: yaml.Node, problems: _Problems) -> tuple[Example, ...]:
    examples = []
    for index, item in enumerate(_list(node, problems, "examples")):
        what = f"examples[{index}]"
        if not isinstance(item, yaml.MappingNode):
            problems.add(item, f"{what} must be a mapping with user and assistant, not {_kind(item)}")
            continue
        entries = _entries(item, ("user", "assistant", "language"), problems, f"key of {what}")
        missing = [key for key in ("user", "assistant") if key not in entries]
        if missing:
            problems.add(item, f"{what} lacks {' and '.join(missing)}")
            continue
        texts = {key: _text(value, problems, f"{what}.{key}") for key, value in entries.items()}
        language = texts.get("language") or language_of(texts["user"])
        if language not in _TEXT_LANGUAGES:
            problems.add(entries["language"], f"{what}.language must be one of {', '.join(_TEXT_LANGUAGES)}")
        examples.append(Example(user=texts["user"], assistant=texts["assistant"], language=language))
    return tuple(examples)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _fields(root: yaml.MappingNode, problems: _Problems) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, node in _entries(root, _KEYS, problems, "key").items():
        if _is_null(node) and key != "name":
            fields[key] = _EMPTY[key]
        elif key in _LOCALISED:
            fields[key] = Localised(by_language=_localised(node, problems, key))
        elif key == "voice":
            fields[key] = _localised(node, problems, key)
        elif key == "avatar":
            fields[key] = _text(node, problems, key)
        elif key == "aliases":
            items = _list(node, problems, key)
            fields[key] = tuple(_text(item, problems, f"aliases[{index}]") for index, item in enumerate(items))
        elif key == "language":
            fields[key] = _text(node, problems, key)
            if fields[key] and fields[key] not in _LANGUAGES:
                problems.add(node, f"language must be one of {', '.join(_LANGUAGES)}, not {fields[key]!r}")
        else:
            fields[key] = _examples(node, problems)
    return fields


_EMPTY: dict[str, Any] = {
    **{key: Localised() for key in _LOCALISED},
    "aliases": (),
    "language": "auto",
    "voice": {},
    "avatar": None,
    "examples": (),
}


def load_persona(text: str, *, source: str = "persona.yml", base: Persona | None = None) -> Persona:
    """Read a persona; keys that are absent are taken from `base`, the layer below.

    Raises:
        InputError: a line `source:line:col: …` for every mistake.
    """
    problems = _Problems(source)
    try:
        root = yaml.compose(text, Loader=WholeTextLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark is not None else "1:1"
        line = f"{source}:{place}: {error.problem or 'no YAML'}"
        raise InputError("persona_invalid", line, part="persona") from error
    except yaml.YAMLError as error:
        raise InputError("persona_invalid", f"{source}:1:1: {error}".splitlines()[0], part="persona") from error
    fields: dict[str, Any] = {}
    if isinstance(root, yaml.MappingNode):
        fields = _fields(root, problems)
    elif root is not None:
        problems.add(root, f"the file must be a mapping, not {_kind(root)}")
    if base is None and "name" not in fields:
        problems.add(root, "name is missing")
    problems.raise_any()
    if base is not None:
        fields = {key: getattr(base, key) for key in _KEYS} | fields
    return Persona(**fields)


def load_persona_layers(paths: Sequence[Path]) -> Persona:
    """Read the layers from the lowest (shipped) to the highest (the user's); files that don't exist are left out.

    Raises:
        InputError: a file can't be read or has mistakes, or there is none at all.
    """
    persona: Persona | None = None
    for path in paths:
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("persona_unreadable", f"{path}: can't be read as UTF-8 text: {error}") from error
        persona = load_persona(text, source=str(path), base=persona)
    if persona is None:
        raise InputError("persona_missing", f"no persona.yml in {', '.join(str(path.parent) for path in paths)}")
    return persona


def language_of(text: str) -> str:
    """Return `zh` if `text` is mostly Chinese characters, else `en`."""
    wide = sum(1 for char in text if "\u4e00" <= char <= "\u9fff" or "\u3400" <= char <= "\u4dbf")
    latin = sum(1 for char in text if char.isalpha() and char.isascii())
    # A Chinese character carries about as much as a short word.
    return "zh" if wide and wide * 3 >= latin else "en"


def persona_schema() -> dict[str, Any]:
    """Return the JSON Schema of `persona.yml`."""
    text = {"type": "string", "minLength": 1}
    texts = {"anyOf": [text, {"type": "array", "items": text}]}
    by_language = {
        "type": "object",
        "properties": dict.fromkeys(_TEXT_LANGUAGES, texts),
        "additionalProperties": False,
    }
    localised = {"anyOf": [*texts["anyOf"], by_language, {"type": "null"}]}
    example = {
        "type": "object",
        "properties": {"user": text, "assistant": text, "language": {"enum": list(_TEXT_LANGUAGES)}},
        "required": ["user", "assistant"],
        "additionalProperties": False,
    }
    properties: dict[str, Any] = dict.fromkeys((*_LOCALISED, "voice"), localised)
    properties["name"] = {"anyOf": localised["anyOf"][:-1]}
    properties["aliases"] = {"type": ["array", "null"], "items": text}
    properties["language"] = {"enum": [*_LANGUAGES, None]}
    properties["avatar"] = {"type": ["string", "null"]}
    properties["examples"] = {"type": ["array", "null"], "items": example}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "persona.yml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
