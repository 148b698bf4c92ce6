"""`mynah flows`: what an author's slip in a file or an option is answered with."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from orchestrator_flow_support import codes, dumped, runner

from desktop.flows_cli import flows_main
from orchestrator.flows.source import Report, parse_source
from orchestrator.flows.testing.format import read_tests
from orchestrator.flows.testing.runner import run_tests


def run(tmp_path: Path, text: str, *more: str) -> int:
    file = tmp_path / "t.yml"
    file.write_text(text, encoding="utf-8")
    return flows_main(["test", str(file), "--data", str(tmp_path), *more])


def faults(turn: str) -> list[tuple[str, int, int]]:
    report = Report()
    read_tests(parse_source(f"tests:\n- name: a\n  turns:\n  - {turn}\n", "t.yml"), report)
    return [(p.code, p.line, p.col) for p in report.sorted() if p.severity == "error"]


@pytest.mark.parametrize(
    ("turn", "code", "col"),
    [
        ("{user: hi, expect: {slots: 3}}", "wrong_type", 32),
        ("{user: hi, expect: 3}", "wrong_type", 24),
        ("{user: hi, expect: {llm_calls: many}}", "wrong_type", 36),
        ("{user: hi, expect: {error: 1}}", "wrong_type", 32),
        ("{user: hi, expect: {actions: [[a]]}}", "wrong_type", 35),
        ("{user: hi, expect: {commands: [start_flow]}}", "wrong_type", 36),
        ("{user: hi, expect: {prompt_has: {plann: x}}}", "unknown_key", 38),
        ("{user: hi, expect: {reply_matches: ['a(']}}", "bad_pattern", 43),
        ("{user: hi, llm: words}", "wrong_type", 21),
        ("{user: hi, llm: [3]}", "wrong_type", 22),
        ("{user: [hi]}", "wrong_type", 12),
        ("{user: hi, object: file}", "wrong_type", 24),
        ("{event: 3.5e}", "", 0),
        ("{event: {kind: x}}", "missing_key", 13),
        ("{silence: -1}", "out_of_range", 15),
        ("{user: hi, interrupt: {after_words: two}}", "wrong_type", 41),
        ("17", "wrong_type", 5),
    ],
)
def test_a_wrong_type_is_told_with_its_place(turn: str, code: str, col: int) -> None:
    assert faults(turn) == ([(code, 4, col)] if code else [])


WHOLE: dict[str, Any] = {
    "tests": [
        {
            "name": "everything",
            "description": "d",
            "files": [],
            "config": {
                "user_intents": {"greet": ["hello there"]},
                "bot_messages": {"back": ["Hi."]},
                "rails": {"r": {"steps": [{"user": "greet"}, {"do": {"action": "look"}}, {"bot": "back"}]}},
            },
            "embedding": "exact",
            "now": "2026-12-01T09:00:00",
            "language": "en",
            "vars": {"v": 1},
            "slots": {"s": 1},
            "actions": {
                "look": {"returns": 1, "delay_s": 0.1, "increment": "c", "slots": {"s": 1}, "messages": ["m"],
                         "raises": None, "by_args": [{"args": {"a": 1}, "returns": 2}]}
            },
            "turns": [
                {
                    "user": "hello there",
                    "vars": {"w": 1},
                    "object": {"type": "file", "id": "1", "title": "t", "attributes": {}},
                    "llm": [{"task": "persona", "completion": "x", "fails": False}],
                    "interrupt": {"after_words": 1, "with": "wait"},
                    "expect": {
                        "user_intent": "greet", "bot_intents": ["back"], "replies": ["Hi."], "reply_matches": ["H"],
                        "heard": "Hi.", "commands": [{"command": "repeat"}], "dropped": [{"reason": "r"}],
                        "slots": {"s": 1}, "vars": {"v": 1}, "active_flow": None, "step": None, "paused": [],
                        "actions": [{"name": "look", "args": {}}], "llm_calls": 0, "error": False,
                        "prompt_has": {"persona": ["x"]}, "prompt_lacks": {"persona": ["y"]},
                    },
                },
                {"event": {"type": "rang", "n": 1}},
                {"silence": 7},
            ],
            "trace": [{"after": {"user": "greet"}, "next": {"do": "look"}}, {"after": {"vars": {"a": 1}}}],
        }
    ]
}  # fmt: skip


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


WRONG: tuple[Any, ...] = (3, -1.5, True, None, "", "(", [], [[]], {}, {"a": {"b": []}})


def test_no_value_anywhere_in_a_test_file_breaks_the_run() -> None:
    """Each value of a file that uses every key is replaced by each kind of value: it is refused, or it runs."""
    refused = ran = 0

    async def try_all() -> None:
        nonlocal refused, ran
        for path in list(places(WHOLE))[1:]:
            for wrong in WRONG:
                data = copy.deepcopy(WHOLE)
                holder: Any = data
                for key in path[:-1]:
                    holder = holder[key]
                holder[path[-1]] = wrong
                report = Report()
                tests = read_tests(parse_source(dumped(data), "t.yml"), report)
                if any(p.severity == "error" for p in report.problems):
                    assert all(p.line >= 1 and p.col >= 1 and p.message for p in report.problems)
                    refused += 1
                    continue
                for result in await run_tests(runner(), tests):
                    assert not [f for f in result.failures if f.key == "internal"], (path, wrong)
                ran += 1

    asyncio.run(try_all())
    assert refused > 300
    assert ran > 100


def test_a_faulty_test_file_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "tests:\n  - {name: d, files: [], turns: [{user: hi, expect: {slots: 3}}]}\n") == 2
    assert f"{tmp_path / 't.yml'}:2:61  wrong_type" in capsys.readouterr().out


def test_a_test_without_turns_is_an_error_and_a_name_twice_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "tests:\n- {name: a, files: [], turns: []}\n") == 2
    assert ":2:31  empty_test" in capsys.readouterr().out
    turn = "{name: a, files: [], turns: [{user: hi, expect: {paused: []}}]}"
    assert run(tmp_path, f"tests:\n- {turn}\n- {turn}\n") == 0
    assert ":3:10  duplicate_name  warning" in capsys.readouterr().err
    assert run(tmp_path, f"tests:\n- {turn}\n- {turn}\n", "--json") == 0
    assert [w["code"] for w in json.loads(capsys.readouterr().out)["warnings"]] == ["duplicate_name"]


def test_no_tests_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "tests: []\n") == 0
    said = capsys.readouterr()
    assert "no_tests  warning" in said.err
    assert said.out == "no tests\n"
    text = "tests:\n- {name: a, files: [], turns: [{user: hi, expect: {paused: []}}]}\n"
    assert run(tmp_path, text, "-k", "nothing") == 2
    assert "no tests" in capsys.readouterr().err


def test_an_action_that_fails_as_the_test_wants_logs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    data = copy.deepcopy(WHOLE["tests"][0])
    data["actions"] = {"look": {"raises": "down"}}
    data["turns"] = [{"user": "hello there", "expect": {"error": True}}]
    del data["trace"]
    assert run(tmp_path, dumped({"tests": [data]})) == 0, capsys.readouterr().out
    assert not caplog.records
    assert run(tmp_path, dumped({"tests": [data]}), "--log-level", "debug") == 0
    assert [r for r in caplog.records if "look" in r.getMessage()]


FLOW = """
slots: {k: {type: choice, choices: [x, y]}}
flows:
  f:
    name: f
    examples: [do it]
    steps:
      - {id: start, type: start, next: a}
      - {id: a, type: action, action: not_there, next: end}
      - {id: end, type: end}
"""


def graph(tmp_path: Path, text: str, name: str) -> int:
    file = tmp_path / "f.yml"
    file.write_text(text, encoding="utf-8")
    return flows_main(["graph", name, str(file), "--data", str(tmp_path)])


def test_a_graph_is_refused_with_the_faults_of_the_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert graph(tmp_path, FLOW.replace("next: end}", "next: edn}"), "f") == 2
    said = capsys.readouterr()
    assert "f.yml:9:56  unknown_target" in said.err
    assert said.out == ""
    assert graph(tmp_path, FLOW, "g") == 2
    assert "no such flow: 'g'" in capsys.readouterr().err


def test_a_flow_whose_action_is_not_installed_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert graph(tmp_path, FLOW, "f") == 0
    said = capsys.readouterr()
    assert said.out.startswith("flowchart TD")
    assert "unknown_action  warning" in said.err


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("[x, y]", "[x, x]", "duplicate_choice"),
        ("[x, y]", "{x: [one], y: [One]}", "ambiguous_choice"),
        ("[x, y]", "{x: [one], y: [x]}", "ambiguous_choice"),
        ("name: f", "name: {cn: f, en: f}", "unknown_language"),
        ("name: f", "name: {en: [f]}", "wrong_type"),
        ("[do it]", "['']", "empty_example"),
        ("[do it]", "['do {']", "bad_placeholder"),
        ("[do it]", "{en: [do it], fr: [faire]}", "unknown_language"),
    ],
)
def test_what_was_passed_over_is_reported(old: str, new: str, code: str) -> None:
    assert codes(FLOW) == []
    assert codes(FLOW.replace(old, new)) == [code]


def test_a_flow_without_steps_is_an_error() -> None:
    assert codes(dumped({"flows": {"g": {"name": "g", "steps": []}}})) == ["missing_steps"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("user_intents: {b: []}", "no_examples"),
        ("user_intents: {c: 5}", "not_text"),
        ("user_intents: {a: [x]}\nrails: {s: {kind: subrail, always: true, steps: [{say: x}]}}", "unused_always"),
        ("user_intents: {a: [x]}\nrails: {r: {steps: [{user: a}, {stop: false}, {say: x}]}}", "bad_value"),
    ],
)
def test_what_was_passed_over_in_rails_is_reported(text: str, code: str) -> None:
    assert code in codes(text)
