"""What takes input from outside, each with sound inputs to begin with and what must hold whatever comes."""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

import yaml
from fuzz.mutations import Mutation, of_bytes, of_json, of_lines, of_nodes, of_sentences, of_zip

from audio.tts.normalise import normalise
from desktop.character_card import parse_card
from desktop.control_channel import parse_command, read_line
from desktop.flow_check import FlowCheck, kind_of
from desktop.flow_folders import FlowFolders
from desktop.flow_pack import unpack as unpack_flows
from desktop.flows_cli import flows_main
from desktop.settings import load_settings
from desktop.ui.avatar.importing import import_pack
from orchestrator.bus.event_checker import check_records, read_records
from orchestrator.contracts.errors import InputError
from orchestrator.dialogue.phrases import match_correction, match_phrase
from orchestrator.flows.expressions import compile_condition, compile_template
from orchestrator.flows.loader import Layer, load_config
from orchestrator.flows.model import Choice, FlowConfig, Slot
from orchestrator.flows.source import parse_source
from orchestrator.llm.reply_text import ReplyText
from orchestrator.tasks.commands import parse_commands, parse_plan
from orchestrator.tasks.extraction.extract import extract

ROOT = Path(__file__).resolve().parent.parent.parent
FLOWS = ROOT / "flow_config"
AVATARS = ROOT / "assets" / "avatars"
NOW = datetime(2026, 12, 1, 9, 0)

SENTENCES = (
    "Remind me at half past three next Wednesday to call Bob", "It's not blue, I said green!",
    "in 2.5 hours, or 90 min.", "No no, wait: 3rd of May 2027, 10:30 pm", "cancel the reminder",
    "twenty-one and a half", "yes please", "the 2nd one", "明天早上八点半提醒我给妈妈打电话", "下周三下午三点",
    "不对，我是说二十五号", "取消那个提醒", "三个半小时以后", "一百零五块", "好的，没问题", "第二个",
)  # fmt: skip
ANSWERS = (
    "**Sure!** It's 3 °C – see https://example.org/a_(b). [smile] *waves* <think>hm</think> Dr. Who, e.g., left",
    "好的！今天是2026年12月1日，气温-3℃。```py\nprint(1)\n```\n1. 牛奶\n2. 面包\nUser: and?",
    "$3.50, 1,000 km/h, 50% of 3/4…",
)  # fmt: skip
PLANS = (
    '[{"command": "start_flow", "flow": "refund_request"}, {"command": "set_slots", "slots": {"order_number": "1"}}]',
    '```json\n{"commands": [{"command": "clarify", "flows": ["a", "b"]}], "user_intent": "x"}\n```',
    '{"command": "skip"}',
)  # fmt: skip
EXPRESSIONS = (
    "slots.get('a') and slots.n > 3", "{{ slots.items | join(', ') }}", "{% for x in range(3) %}{{ x }}{% endfor %}",
    "now.hour >= 9 and 'a' in vars.names", "{{ (slots.n or 0) + 1 }}", "{{ slots.when | spoken }}", "len(slots.a) == 0",
)  # fmt: skip
LINES = (
    '{"cmd": "text", "text": "hi", "object": {"type": "file", "id": "1", "title": "a", "attributes": {"n": 1}}}',
    '{"cmd": "notify", "id": "a", "text": "b", "urgent": true, "expires_s": 2.5}', '{"cmd": "mute_mic", "on": true}',
    '{"cmd": "context", "source": "s", "values": {"a": [1, 2]}}', '{"cmd": "event", "type": "t", "payload": {}}',
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`run` takes any bytes: it returns a word for what came of it, or raises, which is a fault."""

    name: str
    seeds: tuple[bytes, ...]
    run: Callable[[bytes], str]
    mutations: tuple[Mutation, ...] = (of_bytes, of_lines)
    is_joined: bool = True


def targets() -> tuple[Target, ...]:
    """Return all targets, by the names that `--only` takes."""
    texts = (of_bytes, of_lines, of_nodes, of_nodes)
    names = ("user_flows.yml", "system_flows.yml", "rails.yml", "policy.yml", "persona.yml", "tests/refund_flows.yml")
    return (
        *(_checked_file(name, texts) for name in names),
        Target(name="settings.yaml", seeds=(_SETTINGS,), run=_settings, mutations=texts),
        Target(name="conversation", seeds=_conversations(), run=_converse, mutations=(of_sentences,), is_joined=False),
        Target(name="expression", seeds=_encoded(EXPRESSIONS), run=_expression),
        Target(name="control", seeds=_encoded(LINES), run=_control, mutations=(of_bytes, of_json)),
        Target(name="plan", seeds=_encoded(PLANS), run=_plan, mutations=(of_bytes, of_json)),
        Target(name="sentence", seeds=_encoded(SENTENCES), run=_sentence),
        Target(name="answer", seeds=_encoded(ANSWERS), run=_answer),
        Target(name="events", seeds=(_EVENTS,), run=_events),
        Target(name="card", seeds=(json.dumps(_CARD).encode(),), run=_card, mutations=(of_bytes, of_json)),
        Target(name="flow-pack", seeds=(_flow_pack(),), run=_unpack_flows, mutations=(of_zip,)),
        Target(name="avatar", seeds=(_avatar_pack("mynah"), _avatar_pack("bit")), run=_avatar, mutations=(of_zip,)),
    )


def _encoded(texts: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def _files(pattern: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(FLOWS.glob(pattern)))


def _conversations() -> tuple[bytes, ...]:
    roots = [parse_source(data.decode()).root for data in _files("tests/*.yml")]
    tests = [test for root in roots if root is not None for test in root.plain()["tests"]]
    return tuple(
        yaml.safe_dump({"tests": [{"files": list(_ALL), **test}]}, allow_unicode=True, sort_keys=False).encode()
        for test in tests
        if test.get("turns") and test.get("embedding") != "real"
    )


# --- configuration -----------------------------------------------------------------------------------------


def _checked_file(name: str, mutations: tuple[Mutation, ...]) -> Target:
    examples = _files("examples/*.yml") if kind_of(name) == "flows" else ()

    def run(data: bytes) -> str:
        with tempfile.TemporaryDirectory(prefix="mynah-fuzz-") as folder:
            user, shipped = Path(folder) / "user", Path(folder) / "shipped"
            for made in (user / "tests", shipped):
                made.mkdir(parents=True)
            (user / name).write_bytes(data)
            checked = FlowCheck(FlowFolders(shipped=shipped, user=user)).run()
        lines = data.count(b"\n") + data.count(b"\r") + data.count("\u2028".encode()) + data.count("\x85".encode()) + 2
        for problem in checked.problems:
            assert problem.message, "a problem without words"
            assert 1 <= problem.line <= lines, f"line {problem.line} of {lines}: {problem.message}"
            assert problem.col >= 1, f"column {problem.col}"
        return "faulty" if checked.errors() else "sound"

    return Target(name=name, seeds=((FLOWS / name).read_bytes(), *examples), run=run, mutations=mutations)


def _settings(data: bytes) -> str:
    with tempfile.TemporaryDirectory(prefix="mynah-fuzz-") as folder:
        (Path(folder) / "settings.yaml").write_bytes(data)
        loaded = load_settings(Path(folder))
    return "faulty" if loaded.problems else "sound"


def _converse(data: bytes) -> str:
    """Run a test file as an author would: no turn of any conversation may raise."""
    out, told = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory(prefix="mynah-fuzz-") as folder:
        file = Path(folder) / "fuzz.yml"
        file.write_bytes(data)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            code = flows_main(["test", str(file), "--json", "--data", folder, "--flows", folder])
    assert code in (0, 1, 2), f"exit {code}"
    assert "Traceback" not in told.getvalue()
    return ("all pass", "some fail", "refused")[code]


# --- text from outside -------------------------------------------------------------------------------------


def _expression(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    slots = {"n": 4, "a": "x", "items": ["a", 1], "when": "15:30"}
    names: Mapping[str, object] = {"slots": slots, "vars": {}, "now": NOW}
    condition, problems = compile_condition(text)
    template, more = compile_template(text)
    assert all(problem.message for problem in (*problems, *more))
    done = [made.evaluate(names).ok for made in (condition, template) if made is not None]
    return "refused" if not done else "evaluated" if all(done) else "failed softly"


def _control(data: bytes) -> str:
    try:
        name, fields = read_line(data)
        if name != "dump":
            parse_command(fields)
    except ValueError as error:
        assert str(error), "a refusal without words"
        return "refused"
    return "taken"


def _plan(data: bytes) -> str:
    plan = parse_plan(data.decode("utf-8", "replace"))
    if plan is None:
        return "unreadable"
    parsed = parse_commands(plan.commands, _config())
    assert all(dropped.reason for dropped in parsed.dropped)
    return f"{min(len(parsed.commands), 2)} commands"


def _sentence(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    match_phrase(text)
    match_correction(text)
    found = [extract(slot, text, now=NOW) for slot in _SLOTS]
    for language in ("en", "zh"):
        normalise(text, language)
    return f"{sum(hit is not None for hit in found)} values"


def _answer(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    whole = ReplyText(("Mynah",)).feed
    chunked = ReplyText(("Mynah",))
    rng = random.Random(len(data))
    pieces = []
    at = 0
    while at < len(text):
        step = rng.randint(1, 12)
        pieces += chunked.feed(text[at : at + step])
        at += step
    pieces += chunked.flush()
    whole(text)
    for piece in pieces:
        for language in ("en", "zh"):
            normalise(piece.text, language)
    return f"{min(len(pieces), 5)} pieces"


def _events(data: bytes) -> str:
    try:
        problems = check_records(read_records(data.decode("utf-8", "replace").splitlines()))
    except ValueError:
        return "unreadable"
    return "problems" if problems else "ok"


def _card(data: bytes) -> str:
    return _refused_or("read", parse_card, data)


def _unpack_flows(data: bytes) -> str:
    def run(data: bytes) -> None:
        for name in unpack_flows(data):
            assert ".." not in name and not name.startswith("/") and name.endswith((".yml", ".yaml")), name

    return _refused_or("unpacked", run, data)


def _avatar(data: bytes) -> str:
    def run(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="mynah-fuzz-") as folder:
            home, pack = Path(folder) / "in" / "avatars", Path(folder) / "pack.zip"
            home.mkdir(parents=True)
            pack.write_bytes(data)
            try:
                import_pack(pack, home)
            finally:
                outside = [p for p in Path(folder).rglob("*") if p != pack and not p.is_relative_to(home.parent)]
                assert not outside, f"written outside: {outside[0].name}"

    return _refused_or("imported", run, data)


def _refused_or(done: str, run: Callable[[bytes], object], data: bytes) -> str:
    try:
        run(data)
    except InputError as error:
        assert error.message, "a refusal without words"
        return error.code
    return done


# --- sound inputs ------------------------------------------------------------------------------------------

# What a test that names no files is about.
_ALL = ("rails.yml", "user_flows.yml", "companion_flows.yml")
_KINDS = ("text", "integer", "number", "boolean", "choice", "date", "time", "datetime", "duration", "any")
_CHOICES = (Choice(value="red", names=("red", "红色")), Choice(value=2, names=("second", "第二个")))
_SLOTS = tuple(Slot(id=kind, type=kind, choices=_CHOICES if kind == "choice" else ()) for kind in _KINDS)
_SETTINGS = b"llm: http://localhost:11434/v1\nllm_model: qwen3:4b\nlanguages: [zh, en]\nsensitivity: eager\n"
_CARD = {
    "spec": "chara_card_v2", "spec_version": "2.0",
    "data": {"name": "Ann", "description": "{{char}} is kind.", "first_mes": "Hi {{user}}!",
             "mes_example": "<START>\n{{user}}: a\n{{char}}: b", "tags": []},
}  # fmt: skip
_EVENTS = "\n".join(
    json.dumps({"t": n, "seq": n + 1, "type": kind, "source": "core", "generationId": "g1", "payload": payload})
    for n, (kind, payload) in enumerate(
        (
            ("log:open", {"schema": 1}), ("generation:state", {"from": None, "to": "PREPARING"}),
            ("generation:state", {"from": "PREPARING", "to": "CANCELLED"}), ("app:exit", {"code": 0, "counters": {}}),
        )
    )
).encode()  # fmt: skip


@cache
def _config() -> FlowConfig:
    return load_config([Layer.of_folder(FLOWS)]).config


def _flow_pack() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as pack:
        for path in (FLOWS / "user_flows.yml", FLOWS / "tests" / "refund_flows.yml"):
            pack.write(path, str(path.relative_to(FLOWS)))
    return out.getvalue()


def _avatar_pack(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as pack:
        for path in sorted((AVATARS / name).iterdir()):
            pack.write(path, f"{name}/{path.name}")
    return out.getvalue()
