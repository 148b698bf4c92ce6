"""What may be typed at a place of a YAML text: keys and words by the file's schema, ids by what is defined. No Qt.

Works on lines, for a text that is being typed is rarely sound YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

ITEM = "[]"
_KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"'{\[\]},&*!|>%@`-][^#:]*?|-?[\w.]+)\s*:(?:\s+(.*)|$)""")
_PREFIX = re.compile(r"[\w.\-]*$")
_SLOT_READ = re.compile(r"\b(slots|context)\.(\w*)$|\bslots\.get\(['\"](\w*)$")
_MAX_DEPTH = 12
_MAX_CANDIDATES = 200

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The ids that are defined in all layers.

    `steps` are by flow, `contexts` by system flow, `arguments` (the keys of `args`) by action.
    """

    slots: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    rails: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    contexts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One thing to insert. `kind` is key, word or id; `insert` what is typed for it."""

    text: str
    kind: str
    insert: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """`prefix` is what stands before the cursor already and is replaced."""

    prefix: str
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where the cursor is: keys down to the mapping (`[]` for a list), its other entries, and the key if after one.

    `outer` are the entries of the mapping around that one, as far as they are known.
    """

    path: tuple[str, ...]
    siblings: Mapping[str, str]
    key: str | None
    prefix: str
    before: str
    is_item: bool = False
    outer: Mapping[str, str] = field(default_factory=dict)


def complete(text: str, line: int, col: int, schema: Schema, words: Vocabulary) -> Completion:
    """Return what fits at `line` and `col` (from 1); nothing inside a comment."""
    spot = spot_at(text, line, col)
    if _is_in_comment(text, line, col):
        return Completion(prefix=spot.prefix)
    read = _SLOT_READ.search(spot.before)
    if read is not None:
        return _reads(read, spot, words)
    found: list[Candidate] = []
    if spot.key is not None or spot.is_item:
        ids = _ids(spot, words)
        found += [Candidate(text=i, kind="id", insert=_quoted(i)) for i in ids]
        path = spot.path if spot.key is None else (*spot.path, spot.key)
        found += [
            Candidate(text=w, kind="word", insert=w) for w in _enum_words(_schemas_at(schema, path, spot.siblings))
        ]
    if spot.key is None:
        keys: dict[str, None] = {}
        for option in _schemas_at(schema, spot.path, spot.siblings):
            keys.update(dict.fromkeys(option.get("properties", {})))
        keys.update(dict.fromkeys(_argument_names(spot, words)))
        found += [Candidate(text=k, kind="key", insert=f"{k}: ") for k in keys if k not in spot.siblings]
    wanted = spot.prefix.casefold()
    kept = [c for c in dict.fromkeys(found) if wanted in c.text.casefold() and c.text != spot.prefix]
    kept.sort(key=lambda c: not c.text.casefold().startswith(wanted))
    return Completion(prefix=spot.prefix, candidates=tuple(kept[:_MAX_CANDIDATES]))


def _reads(read: re.Match[str], spot: Spot, words: Vocabulary) -> Completion:
    prefix = read[2] if read[1] else read[3]
    names: Iterable[str] = words.slots
    if read[1] == "context":
        flow = spot.path[1] if len(spot.path) > 1 and spot.path[0] == "flows" else ""
        names = words.contexts.get(flow, ())
    found = [Candidate(text=n, kind="id", insert=n) for n in names if n.startswith(prefix) and n != prefix]
    return Completion(prefix=prefix, candidates=tuple(found[:_MAX_CANDIDATES]))


def _argument_names(spot: Spot, words: Vocabulary) -> tuple[str, ...]:
    """Return the keys that the action of the step takes, where the cursor is in its `args`."""
    if not spot.path or spot.path[-1] != "args":
        return ()
    action = spot.outer.get("action") or spot.outer.get("do") or ""
    return words.arguments.get(action.strip("\"'"), ())


def _is_in_comment(text: str, line: int, col: int) -> bool:
    lines = text.split("\n")
    before = lines[line - 1][: max(col - 1, 0)] if 0 < line <= len(lines) else ""
    quote = ""
    for at, char in enumerate(before):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and (at == 0 or before[at - 1] in " [{,:"):
            quote = char
        elif char == "#" and (at == 0 or before[at - 1].isspace()):
            return True
    return False


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[^\W\d][\w .\-]*", text) and text == text.strip() else f'"{text}"'


def _ids(spot: Spot, words: Vocabulary) -> tuple[str, ...]:
    key, path = spot.key, spot.path
    section = path[0] if path else (key or "")
    if key is None:
        key = next((p for p in reversed(path) if p != ITEM), "")
    if section == "flows":
        steps = words.steps.get(path[1], ()) if len(path) > 1 else ()
        table = {
            "next": steps, "then": steps, "else": steps, "on_error": steps, "slot_name": words.slots,
            "slots": words.slots, "action": words.actions, "flow": words.flows, "on_complete": (*steps, *words.flows),
        }  # fmt: skip
        return table.get(key, ())
    if section == "rails":
        return {
            "user": (*words.intents, "..."), "bot": words.messages, "call": words.rails, "action": words.actions,
            "do": words.actions,
        }.get(key, ())  # fmt: skip
    if section in ("input_rails", "output_rails"):
        return words.rails if key in ("input_rails", "output_rails", "rail") else ()
    if section == "tests":
        return {
            "active_flow": words.flows, "user_intent": words.intents, "bot_intents": words.messages,
            "actions": words.actions, "flow": words.flows, "paused": words.flows,
        }.get(key, ())  # fmt: skip
    return words.intents if key == "fallback_intent" else ()


# --- schema ----------------------------------------------------------------------------------------------


def _schemas_at(schema: Schema, path: tuple[str, ...], siblings: Mapping[str, str]) -> list[Schema]:
    """Return the alternatives of the schema at `path`, without those that the entries already there exclude."""
    found = _expand(schema, schema, 0)
    for step in path:
        following: list[Schema] = []
        for option in found:
            following += _step_into(schema, option, step)
        found = following
    fitting = [o for o in found if _fits(o, siblings)]
    return fitting or found


def _expand(root: Schema, option: Any, depth: int) -> list[Schema]:
    if not isinstance(option, Mapping) or depth > _MAX_DEPTH:
        return []
    found: list[Schema] = [option]
    reference = option.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        found += _expand(root, target, depth + 1)
    for group in ("oneOf", "anyOf", "allOf"):
        for alternative in option.get(group, ()):
            found += _expand(root, alternative, depth + 1)
    return found


def _step_into(root: Schema, option: Schema, step: str) -> list[Schema]:
    if step == ITEM:
        return _expand(root, option.get("items"), 0)
    properties = option.get("properties", {})
    if step in properties:
        return _expand(root, properties[step], 0)
    return _expand(root, option.get("additionalProperties"), 0)


def _fits(option: Schema, siblings: Mapping[str, str]) -> bool:
    properties = option.get("properties")
    if not isinstance(properties, Mapping):
        return not siblings
    if option.get("additionalProperties") is False and any(s not in properties for s in siblings):
        return False
    for name, value in siblings.items():
        wanted = properties.get(name, {}).get("const") if isinstance(properties.get(name), Mapping) else None
        if wanted is not None and value and value != wanted:
            return False
    return True


def _enum_words(options: Iterable[Schema]) -> list[str]:
    found: list[str] = []
    for option in options:
        values = [*option.get("enum", ()), *([option["const"]] if "const" in option else ())]
        found += [v for v in values if isinstance(v, str)]
        types = option.get("type")
        if types == "boolean" or (isinstance(types, list) and "boolean" in types):
            found += ["true", "false"]
    return list(dict.fromkeys(found))


# --- where the cursor is ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Token:
    """A dash, or a key with its value, at a column (from 0)."""

    col: int
    key: str | None = None
    value: str = ""


def _tokens(line: str) -> list[_Token]:
    found: list[_Token] = []
    at = len(line) - len(line.lstrip(" "))
    while line[at : at + 2] == "- " or line[at:] == "-":
        found.append(_Token(at))
        at += 1
        at += len(line[at:]) - len(line[at:].lstrip(" "))
    rest = line[at:]
    if not rest or rest.startswith("#"):
        return found
    match = _KEY.match(rest)
    if match is not None and not rest.startswith(("{", "[")):
        found.append(_Token(at, match[1].strip("\"'"), (match[2] or "").strip()))
    else:
        found.append(_Token(at, None, rest))
        found[-1].key = ""
    return found


def spot_at(text: str, line: int, col: int) -> Spot:
    """Return where `line` and `col` (from 1) are."""
    lines = text.split("\n")
    index = min(max(line - 1, 0), len(lines) - 1)
    before = lines[index][: max(col - 1, 0)]
    here = _tokens(before) or [_Token(len(before), "")]
    if here[-1].key is None:
        # A dash alone: what follows begins an entry.
        here.append(_Token(max(here[-1].col + 2, len(before)), ""))
    own = here[-1]
    is_item = len(here) > 1 and own.key == ""
    path, siblings = _climb(lines, index, here)
    inner = _flow_style(own.value) if own.key else _flow_style(own.value or before[own.col :])
    if inner is not None:
        opened, inner_siblings, around, key, rest = inner
        full = [*path, *([own.key] if own.key else []), *opened]
        return Spot(
            path=tuple(full), siblings=inner_siblings, key=key, prefix=_prefix(rest), before=before,
            is_item=bool(opened) and opened[-1] == ITEM and key is None, outer=siblings if around is None else around,
        )  # fmt: skip
    if own.key:
        return Spot(path=tuple(path), siblings=siblings, key=own.key, prefix=_prefix(own.value), before=before)
    return Spot(
        path=tuple(path), siblings=siblings, key=None, prefix=_prefix(before), before=before, is_item=is_item,
        outer=_entries_around(text, lines, index, own.col) if path and path[-1] == "args" else {},
    )  # fmt: skip


def _entries_around(text: str, lines: list[str], index: int, col: int) -> Mapping[str, str]:
    """Return the entries beside the key that opens the mapping at `col`."""
    for number in range(index - 1, -1, -1):
        raw = lines[number]
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        token = _tokens(raw)[-1]
        if token.key and token.col < col:
            return spot_at(text, number + 1, token.col + 2).siblings
    return {}


def _prefix(text: str) -> str:
    found = _PREFIX.search(text)
    return found[0] if found else ""


def _climb(lines: list[str], index: int, here: list[_Token]) -> tuple[list[str], dict[str, str]]:
    """Walk up to the root; returns the path of the mapping the cursor is in, and its other entries."""
    path: list[str] = []
    siblings: dict[str, str] = {}
    col, is_list, is_inner = here[-1].col, False, True
    for token in reversed(here[:-1]):
        path.insert(0, ITEM)
        col, is_list, is_inner = token.col, True, False
    is_first = len(here) == 1
    for number in range(index - 1, -1, -1):
        raw = lines[number]
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        for token in reversed(_tokens(raw)):
            if token.key is None:
                if token.col < col:
                    path.insert(0, ITEM)
                    col, is_list, is_inner = token.col, True, False
            elif token.key and not is_list and token.col == col:
                if is_inner and is_first:
                    siblings.setdefault(token.key, token.value)
            elif token.key and (token.col < col or (is_list and token.col == col)):
                path.insert(0, token.key)
                col, is_list, is_inner = token.col, False, False
    _look_down(lines, index, here[-1].col, siblings)
    return path, siblings


def _look_down(lines: list[str], index: int, col: int, siblings: dict[str, str]) -> None:
    for raw in lines[index + 1 :]:
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        tokens = _tokens(raw)
        if tokens[0].col < col or (tokens[0].col == col and tokens[0].key is None):
            return
        if tokens[0].col == col and tokens[0].key:
            siblings.setdefault(tokens[0].key, tokens[0].value)


def _flow_style(text: str) -> tuple[list[str], dict[str, str], dict[str, str] | None, str | None, str] | None:
    """Read `{a: 1, b: ` up to the cursor.

    Returns the keys of the open brackets, the entries of the innermost, those of the one around it (None: it is the
    outermost), its key, and the rest.
    """
    stack: list[tuple[str, str, dict[str, str]]] = []
    current, quote = "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
            current += char
        elif char in "\"'" and not current.strip().strip("\"'").rpartition(":")[2].strip():
            quote = char
            current += char
        elif char in "{[":
            stack.append((char, current, {}))
            current = ""
        elif char in "}]" and stack:
            current = f"{stack.pop()[1]} …"
        elif char == "," and stack:
            key, _, value = current.partition(":")
            stack[-1][2][key.strip().strip("\"'")] = value.strip().strip("\"'")
            current = ""
        else:
            current += char
    if not stack:
        return None
    path: list[str] = []
    for number, (bracket, lead, _) in enumerate(stack):
        key, colon, _ = lead.partition(":")
        if number and colon:
            path.append(key.strip().strip("\"'"))
        if bracket == "[":
            path.append(ITEM)
    key, colon, value = current.partition(":")
    inner_key = key.strip().strip("\"'") if colon and stack[-1][0] == "{" else None
    around = stack[-2][2] if len(stack) > 1 else None
    return path, stack[-1][2], around, inner_key, value if colon else current
