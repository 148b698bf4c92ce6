"""Lines nobody should send: odd types, broken text, huge numbers, deep nesting, and good commands among them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

_TEXTS = (
    "", " ", "\x00", "a\x00b", "\u202eabc", "\u200f", "\ufeff", "\ufffe", "\ud800", "\udfff hi", "\ud83d\ude00",
    "\u0301" * 40, "\r\n\t", "{{ slots.x }}", "{{ 9**9**9 }}", "../../etc/passwd", "'; DROP TABLE messages; --",
    "stop", "go on", "say that again", "继续", "停一下", "null", "\x1b[31m", "\x7f\x80\x9f", "💥\u200d🔥", "😀" * 50,
    "remind me in 99999999999999999999 minutes", "set a timer for 1e400 seconds", "٣ ４ Ⅷ ½", "what time is it",
    "A" * 3_000,
)  # fmt: skip
_RAW = (
    "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 400, "9" * 5_000, "1e-400", "-0", "0", "-1", "0.0001",
    "true", "null", "[]", "{}", '""', '"\\ud800"', '"\\u0000"', "[" * 20 + "]" * 20, "[" * 40 + "]" * 40,
    '{"a":' * 30 + "1" + "}" * 30, '{"a":1,"a":2}',
)  # fmt: skip
_COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("text", ("text", "object")),
    ("stop", ()),
    ("ptt_down", ()),
    ("ptt_up", ()),
    ("sleep", ("on",)),
    ("mute_mic", ("on",)),
    ("mute_voice", ("on",)),
    ("notify", ("id", "text", "urgent", "expires_s")),
    ("context", ("source", "values")),
    ("event", ("type", "payload")),
    ("object", ("object",)),
    ("reload", ()),
    ("new_session", ()),
    ("dump", ()),
)


def _value(rng: random.Random, depth: int = 0) -> str:
    kind = rng.randrange(8 if depth < 4 else 4)
    if kind < 2:
        return json.dumps(rng.choice(_TEXTS))
    if kind < 4:
        return rng.choice(_RAW)
    if kind == 4:
        return json.dumps(rng.choice((0, 1, -5, 2**63, 10**30, 0.5, 1e308, True, False, None)))
    items = [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return f"[{','.join(items)}]"
    return "{" + ",".join(f"{json.dumps(rng.choice(_TEXTS))}:{item}" for item in items) + "}"


def _good(rng: random.Random, field: str) -> str:
    text = json.dumps(rng.choice(_TEXTS))
    thing = f'{{"type": {text}, "id": {json.dumps(rng.choice(_TEXTS))}, "attributes": {{{text}: {_value(rng)}}}}}'
    return {
        "on": rng.choice(("true", "false")),
        "urgent": rng.choice(("true", "false")),
        "expires_s": rng.choice(("0.2", "5", "1e308", "1e-300", "1" + "0" * 200)),
        "object": thing,
        "values": f"{{{text}: {_value(rng)}}}",
        "payload": f"{{{text}: {_value(rng)}}}",
    }.get(field, text)


def _command(rng: random.Random, names: tuple[str, ...]) -> str:
    name, fields = rng.choice([row for row in _COMMANDS if row[0] in names])
    parts = [f'"cmd": {json.dumps(name)}']
    for field in fields:
        if rng.random() < 0.9:
            parts.append(f'"{field}": {_good(rng, field) if rng.random() < 0.7 else _value(rng)}')
    if rng.random() < 0.2:
        parts.append(f"{json.dumps(rng.choice(_TEXTS))}: {_value(rng)}")
    rng.shuffle(parts)
    return "{" + ", ".join(parts) + "}"


def _broken(rng: random.Random, names: tuple[str, ...]) -> bytes:
    makers: tuple[Callable[[], bytes], ...] = (
        lambda: _value(rng).encode(),
        lambda: _command(rng, names).encode()[: rng.randrange(1, 40)],
        lambda: bytes(byte for byte in rng.randbytes(rng.randrange(1, 60)) if byte not in (10, 13)) or b"?",
        lambda: f'{{"cmd": {_value(rng)}}}'.encode(),
        lambda: b"[" * rng.choice((50, 5_000)),
        lambda: _command(rng, names).encode("utf-16"),
        lambda: b"\xef\xbb\xbf" + _command(rng, names).encode(),
        lambda: _command(rng, names).encode()[:-1] + b', "\xff": 1}',
    )
    return rng.choice(makers)().replace(b"\n", b" ").replace(b"\r", b" ") or b"?"


ALL = tuple(row[0] for row in _COMMANDS)


def odd_lines(seed: int, count: int, *, commands: tuple[str, ...] = ALL) -> Iterator[bytes]:
    """Yield `count` lines without their ends; none is blank, so each must be answered."""
    rng = random.Random(seed)
    for _ in range(count):
        line = _broken(rng, commands) if rng.random() < 0.3 else _command(rng, commands).encode()
        yield line if line.strip() else b"?"
