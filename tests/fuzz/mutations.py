"""Sound inputs made odd: bytes and lines moved, lost, doubled; nodes of a YAML text and entries of a zip changed."""

from __future__ import annotations

import copy
import io
import json
import random
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import yaml

Mutation = Callable[[random.Random, bytes], bytes]

_BITS = (
    *"{}[]:,&*!|>'\"%@`#-?\n\t\\", "null", "{{", "}}", "{%", "%}", "{{ slots.x", "!!python/object:os.system x", "!!set",
    "<<: *a", "&a", "*a", "1e999", "-0", "0x1F", "1_000", "2026-13-45", "\x00", "\ufeff", "\u2028", "\u202e", "：", "“",
    "。", "- - -", "? ", "--- ", "...", "~", "é", "\U0001f426", "\ud7ff", "[" * 300, "a: " * 200,
    "9" * 400, "\ue000\ue100", "²", "½", "٣", "亿" * 60, "一百", " million", " half a ", " hundred ",
    "0,000", " 分钟", "点",
)  # fmt: skip
_BAD_BYTES = (b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\x80", b"\xf4\x90\x80\x80", b"\x00", b"\r", b"\x1b[31m")
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**400, 0.5, 1e308, float("inf"), float("nan"), "", " ", "x" * 3_000,
    "{{ x }}", "{% if %}", "../../x", "你好，世界", [], [[]], {}, [None], {"a": 1}, {1: 2}, {None: None}, {True: []},
    [[[[[1]]]]],
)  # fmt: skip
_MAX_BYTES = 200_000


def of_bytes(rng: random.Random, data: bytes) -> bytes:
    """Change some places: insert, delete, copy from elsewhere, flip a bit."""
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(data) + 1)
        action = rng.randrange(5)
        if action == 0:
            data = data[:at] + rng.choice(_BITS).encode("utf-8", "surrogatepass") + data[at:]
        elif action == 1:
            data = data[:at] + rng.choice(_BAD_BYTES) + data[at:]
        elif action == 2:
            data = data[:at] + data[at + rng.randint(1, 60) :]
        elif action == 3:
            other = rng.randrange(len(data) + 1)
            data = data[:at] + data[other : other + rng.randint(1, 80)] + data[at:]
        elif at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    return data[:_MAX_BYTES]


def of_lines(rng: random.Random, data: bytes) -> bytes:
    """Move, lose, double and indent whole lines."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        action = rng.randrange(4)
        if action == 0:
            del lines[at]
        elif action == 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
        elif action == 2:
            lines[at] = b" " * rng.randint(1, 4) + lines[at]
        else:
            lines[at] = lines[at].lstrip()
        lines = lines or [b""]
    return b"\n".join(lines)[:_MAX_BYTES]


def of_nodes(rng: random.Random, data: bytes) -> bytes:
    """Put other values in place of nodes of a YAML or JSON text; as bytes if it can't be read."""
    try:
        root = yaml.safe_load(data.decode())
    except (ValueError, yaml.YAMLError, RecursionError):
        return of_bytes(rng, data)
    if not _change(rng, root):
        return of_bytes(rng, data)
    try:
        changed = str(yaml.safe_dump(root, allow_unicode=True, sort_keys=False))
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):
        return of_bytes(rng, data)
    return changed.encode("utf-8", "surrogatepass")[:_MAX_BYTES]


def of_json(rng: random.Random, data: bytes) -> bytes:
    """Put other values in place of those of a JSON text; as bytes if it can't be read."""
    try:
        root = json.loads(data)
        if not _change(rng, root):
            return of_bytes(rng, data)
        return json.dumps(root, ensure_ascii=rng.random() < 0.5, default=str, skipkeys=True).encode()[:_MAX_BYTES]
    except (ValueError, RecursionError):
        return of_bytes(rng, data)


def _change(rng: random.Random, root: Any) -> bool:
    for _ in range(rng.randint(1, 3)):
        places = _places(root)
        if not places:
            return False
        holder, key = rng.choice(places)
        action = rng.randrange(4)
        if action == 0:
            del holder[key]
        elif action == 1:
            other, at = rng.choice(places)
            # A copy: a node inside itself would have no end.
            holder[key] = copy.deepcopy(other[at]) if _has(other, at) else None
        elif action == 2 and isinstance(holder, dict):
            holder[rng.choice(("id", "type", "next", "if", "text", "x", 0, None, True, "流程"))] = holder.pop(key)
        else:
            holder[key] = copy.deepcopy(rng.choice(_VALUES))
    return True


def of_sentences(rng: random.Random, data: bytes) -> bytes:
    """Let the user of a test file say other things; the file stays sound."""
    root = yaml.safe_load(data)
    said = [turn for test in root["tests"] for turn in test.get("turns", ()) if isinstance(turn.get("user"), str)]
    for turn in rng.sample(said, min(len(said), rng.randint(1, 2))):
        other = rng.choice(said)["user"]
        text = rng.choice((turn["user"] + " " + other, other, rng.choice(_SAID), turn["user"] + rng.choice(_SAID)))
        turn["user"] = text if rng.random() < 0.6 else of_bytes(rng, text.encode())[:500].decode("utf-8", "replace")
    return str(yaml.safe_dump(root, allow_unicode=True, sort_keys=False)).encode("utf-8", "surrogatepass")


_SAID = (
    "cancel", "never mind, go on", "no, I meant at ten", "what?", "yes", "no", "the second one", "skip that", "stop it",
    "half past three next Wednesday", "in 20 minutes", "because it is broken", "say that again", "all of them", "0",
    "取消", "算了，继续", "不对，我是说十点", "什么？", "对", "不用了", "第二个", "跳过", "下周三下午三点半",
    "全部取消",     "因为坏了", "再说一遍", "二十分钟后", "？", "嗯", "。。。",
)  # fmt: skip


def of_zip(rng: random.Random, data: bytes) -> bytes:
    """Change a zip file's entries and names, or its bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            entries = [(entry.filename, pack.read(entry)) for entry in pack.infolist()]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError):
        return of_bytes(rng, data)
    if not entries or rng.random() < 0.3:
        return of_bytes(rng, data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(entries))
        name, content = entries[at]
        action = rng.randrange(4)
        if action == 0:
            entries[at] = (rng.choice(_NAMES).replace("NAME", name), content)
        elif action == 1:
            entries[at] = (name, rng.choice((of_bytes, of_lines, of_nodes))(rng, content))
        elif action == 2:
            entries.append((rng.choice(_NAMES).replace("NAME", name), b"\x00" * rng.choice((0, 10, 3_000_000))))
        elif len(entries) > 1:
            del entries[at]
    return _zipped(rng, entries)


_NAMES = (
    "../NAME", "/NAME", "C:\\NAME", "..\\..\\NAME", "NAME/", "./NAME", "a/../NAME", "NAME\x00.yml", "con.yml", "x.py",
    "actions/x.py", "é.yml", "NAME", "N" * 300 + ".yml", ".hidden.yml", "tests/../../NAME", "~/NAME", "NAME ",
    "a//b.yml",
)  # fmt: skip


def _zipped(rng: random.Random, entries: Sequence[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(out, "w", method) as pack, warnings.catch_warnings():
        # A name that is there twice is meant.
        warnings.simplefilter("ignore", UserWarning)
        for name, content in entries:
            pack.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _places(node: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    if depth > 40 or not isinstance(node, (dict, list)):
        return []
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    found: list[tuple[Any, Any]] = [(node, key) for key in keys]
    for key in keys:
        found += _places(node[key], depth + 1)
    return found
