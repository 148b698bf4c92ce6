"""`mynah flows check`: every kind of fault, with its place, all at once."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from orchestrator_flow_support import FLOWS, codes, dumped, load, places

from desktop.flows_cli import flows_main
from orchestrator.flows.loader import Layer, load_config
from orchestrator.flows.source import parse_source

REFUND = (FLOWS / "examples" / "refund.yml").read_text(encoding="utf-8")
HEAD = "slots:\n  n: {type: integer}\n  t: {type: text}\nflows:\n  f:\n    name: f\n    steps:\n"


def flow(*steps: str) -> str:
    return HEAD + "".join(f"      - {s}\n" for s in steps)


GOOD = flow(
    "{id: start, type: start, next: ask}",
    '{id: ask, type: collect, slot_name: n, response: "n?", next: end}',
    "{id: end, type: end}",
)


def test_a_sound_flow_has_no_problem() -> None:
    assert codes(GOOD) == []


def test_the_example_of_the_specification_loads_byte_for_byte() -> None:
    assert codes(REFUND) == []
    config = load(REFUND).config
    assert list(config.user_flows()) == ["refund_request"]
    assert config.slots["order_number"].label_in("zh") == "订单号"


@pytest.mark.parametrize(
    ("old", "new", "code", "where"),
    [
        ("next: ask}", "next: aks}", "unknown_target", "aks}"),
        ("slot_name: n,", "slot_name: m,", "unknown_slot", "m, response"),
        ("type: collect", "type: colect", "unknown_type", "colect"),
        ("response:", "respons:", "unknown_key", "respons:"),
        ('"n?"', '"{{ slots.m }}?"', "unknown_slot", "m }}"),
        ('"n?"', '"{{ slots.n }} {{ slots.n | uper }}"', "unknown_filter", "uper"),
        ('"n?"', '"{{ slots.n + }}"', "expression_syntax", "}}"),
        ('"n?"', '"ok {% include 3 %}"', "expression_forbidden", "include"),
        ('"n?"', "{mode: rephase, text: x}", "unknown_type", "rephase"),
        ('"n?"', "{mode: generate}", "missing_prompt", "{mode: generate}"),
        ('"n?"', "{mode: static}", "missing_text", "{mode: static}"),
        ('"n?"', '"{{ context.x }}"', "unknown_context_field", "x }}"),
        ("next: end}", 'next: [{if: "slots.n > ", then: end}, {else: end}]}', "expression_syntax", ">"),
        ("next: end}", 'next: [{if: "slots.n == null", then: end}, {else: end}]}', "unknown_name", "null"),
        ("next: end}", 'next: [{if: "slots.n > 1", then: end}]}', "missing_else", "[{if"),
        ("next: end}", 'next: [{else: end}, {if: "1", then: end}]}', "else_not_last", "{else: end}, {if"),
        ("next: end}", 'next: end, validation: {condition: "slots.n.__class__"}}', "expression_escape", "__class__"),
        ("next: end}", 'next: end, validation: {condition: "2 ** 999"}}', "expression_bomb", "2 ** 999"),
        ("next: end}", "next: end, max_attempts: 0}", "out_of_range", "0}"),
        ("next: end}", "next: end, interruptible: yes}", "wrong_type", "yes}"),
        ("next: end}", "next: end, on_give_up: {next: nope}}", "unknown_target", "nope"),
        ("{id: end, type: end}", "{id: end, type: end, next: ask}", "next_after_end", "ask}\n"),
        ("{id: end, type: end}", "{id: end, type: end}\n      - {id: lost, type: action, action: x, next: end}", "unreachable_step", "lost"),
        ("{id: end, type: end}", "{id: end, type: end}\n      - {id: ask, type: end}", "duplicate_step", "ask, type: end"),
        ("{id: end, type: end}", "{id: end, typ: end}", "missing_type", "end, typ"),
        ("{type: integer}", "{type: intger}", "unknown_type", "intger"),
        ("{type: integer}", "{type: integer, default: many}", "bad_default", "many"),
        ("{type: integer}", '{type: text, pattern: "ab("}', "bad_pattern", '("'),
        ("{type: integer}", "{type: choice}", "missing_choices", "n: {type: choice}"),
        ("{type: integer}", "{type: integer}\n  n: {type: text}", "duplicate_key", "n: {type: text}"),
        ("name: f", "name: f\n    on_complete: nowhere", "unknown_target", "nowhere"),
        ("name: f", 'name: f\n    if: "slots.q"', "unknown_slot", 'q"'),
        ("name: f", 'name: f\n    examples: ["say {q}"]', "unknown_slot", 'q}"'),
    ],
)  # fmt: skip
def test_a_fault_is_found_at_its_place(old: str, new: str, code: str, where: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    lines = text.split("\n")
    found = [
        ("\n".join([lines[line - 1][col - 1 :], *lines[line:]]), code_found) for code_found, line, col in places(text)
    ]
    assert any(rest.startswith(where) and code_found == code for rest, code_found in found), [
        (c, r[:20]) for r, c in found
    ]


def test_a_syntax_error_has_its_line() -> None:
    assert places(GOOD.replace("{type: integer}", "{type: integer"))[0][:2] == ("yaml_syntax", 3)


def test_a_suggestion_is_made() -> None:
    problems = load(GOOD.replace("next: ask}", "next: aks}")).problems
    assert [p.suggestion for p in problems if p.code == "unknown_target"] == ["ask"]
    assert "did you mean ask?" in str(next(p for p in problems if p.code == "unknown_target"))


def test_all_faults_come_at_once() -> None:
    text = (
        GOOD.replace("next: ask}", "next: aks}")
        .replace("slot_name: n", "slot_name: m")
        .replace("type: integer", "type: intger")
    )
    assert {"unknown_target", "unknown_slot", "unknown_type"} <= set(codes(text))


def test_a_circle_that_never_listens_is_refused() -> None:
    text = flow(
        "{id: start, type: start, next: a}",
        "{id: a, type: set_slots, slots: {n: 1}, next: b}",
        '{id: b, type: action, action: x, next: [{if: "slots.n > 3", then: end}, {else: a}]}',
        "{id: end, type: end}",
    )
    assert "loop_without_listen" in codes(text)


def test_a_recursive_call_is_refused() -> None:
    text = (
        "flows:\n"
        "  a: {name: a, steps: [{id: start, type: start, next: c}, {id: c, type: call, flow: b, next: end}, {id: end, type: end}]}\n"
        "  b: {name: b, steps: [{id: start, type: start, next: c}, {id: c, type: call, flow: a, next: end}, {id: end, type: end}]}\n"
    )
    assert codes(text).count("recursive_call") == 2
    assert load(text).config.user_flows() == {}


def test_an_unknown_action_is_found_where_actions_are_known() -> None:
    text = flow(
        "{id: start, type: start, next: a}",
        "{id: a, type: action, action: action_lisen, next: end}",
        "{id: end, type: end}",
    )
    loaded = load_config([Layer.of_texts({"f.yml": text})], actions=["action_listen", "action_response"])
    assert [(p.code, p.suggestion) for p in loaded.problems] == [("unknown_action", "action_listen")]


def test_a_text_that_may_print_an_unset_slot_is_warned_of() -> None:
    text = flow(
        "{id: start, type: start, next: say}",
        '{id: say, type: action, action: action_response, args: {text: "{{ slots.n }} {{ slots.t | default(1) }}"}, next: ask}',
        '{id: ask, type: collect, slot_name: n, response: "n?", next: say2}',
        '{id: say2, type: action, action: action_response, args: {text: "{{ slots.n }}"}, next: end}',
        "{id: end, type: end}",
    )
    found = [(p.code, p.severity, p.line) for p in load(text).problems]
    assert found == [("maybe_unset", "warning", 9)]


def test_an_id_stands_once_in_a_layer_and_overlays_another_layer() -> None:
    one, two = (
        Layer.of_texts({"a.yml": GOOD, "b.yml": GOOD}),
        Layer.of_texts({"user.yml": GOOD.replace('"n?"', '"mine?"')}),
    )
    assert [p.code for p in load_config([one]).problems] == ["duplicate_id"] * 3
    config = load_config([Layer.of_texts({"a.yml": GOOD}), two]).config
    step = config.flows["f"].steps["ask"]
    assert step.response.text.raw() == "mine?"  # type: ignore[attr-defined]


def test_a_faulty_flow_is_left_out_and_the_rest_goes_on() -> None:
    text = GOOD + GOOD.split("flows:\n")[1].replace("  f:", "  g:").replace("next: ask}", "next: aks}")
    assert list(load(text).config.user_flows()) == ["f"]


def test_positions_are_right_inside_every_kind_of_string() -> None:
    text = "a: >\n  folded\n  {{ bad1 }}\nb: |\n  x\n    {{ bad2 }}\nc: \"esc\\t\\u4f60{{ bad3 }}\"\nd: 'it''s {{ bad4 }}'\n"
    root = parse_source(text).root
    assert root is not None
    for key, word, place in (
        ("a", "bad1", (3, 6)),
        ("b", "bad2", (6, 8)),
        ("c", "bad3", (7, 19)),
        ("d", "bad4", (8, 14)),
    ):
        node = root.get(key)  # type: ignore[attr-defined]
        assert node.place(node.text.index(word)) == place


# --- fuzz ------------------------------------------------------------------------------------------------


def _assert_bounded(text: str) -> None:
    lines = text.split("\n")
    for problem in load_config([Layer.of_texts({"f.yml": text})]).problems:
        assert problem.message
        assert 1 <= problem.line <= len(lines) + 1, problem
        assert 1 <= problem.col <= max(map(len, lines)) + 2, problem


def test_mutated_files_give_problems_never_a_traceback() -> None:
    sources = [REFUND, GOOD, (FLOWS / "system_flows.yml").read_text(encoding="utf-8")[:3000]]
    chaos = random.Random(4)
    bits = [
        *list("{}[]:,&*!|>'\"%@`#-? \n\t"),
        "null",
        "{{",
        "}}",
        "{%",
        "!!python/object:os.system x",
        "<<: *a",
        "&a",
        "*a",
        "1e999",
        "\x00",
        "：",
        "{",
        "- - -",
    ]
    for round_number in range(150):
        text = sources[round_number % 3]
        for _ in range(chaos.randint(1, 6)):
            at = chaos.randrange(len(text) + 1)
            action = chaos.randrange(3)
            if action == 0:
                text = text[:at] + chaos.choice(bits) + text[at:]
            elif action == 1:
                text = text[:at] + text[at + chaos.randint(1, 40) :]
            else:
                other = chaos.randrange(len(text) + 1)
                text = text[:at] + text[other : other + 30] + text[at:]
        _assert_bounded(text)


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["start", "end", "ask", "n", "collect", "{{ slots.n }}", "{% if", "context.x", "", "f"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["id", "type", "next", "if", "then", "else", "slot_name", "response", "text", "mode", "steps", "name", "args", "validation", "on_give_up", "from_object", "examples", "slots", "flow", "prompt", "condition"]),
        inner, max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(slots=_PLAIN, flows=_PLAIN, body=_PLAIN, steps=st.lists(_PLAIN, max_size=4))
def test_any_structure_gives_problems_never_a_traceback(
    slots: object, flows: object, body: object, steps: list[object]
) -> None:
    _assert_bounded(dumped({"slots": slots, "flows": flows}))
    _assert_bounded(
        dumped(
            {"slots": {"n": body, "x": {"type": "integer"}}, "flows": {"f": {"name": "f", "steps": steps}, "g": body}}
        )
    )


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_parses_or_gives_problems(text: str) -> None:
    document = parse_source(text)
    for problem in document.problems:
        assert problem.line >= 1
        assert problem.col >= 1


@pytest.mark.parametrize(
    "text",
    ["[" * 9000, "a: " * 3000, "- " * 5000, "{a: " * 2000, "&a [*a]", "x" * 2_000_000, "a: &x [" + "1," * 5 + "]\n" + "\n".join(f"b{i}: &b{i} [*{'x' if i == 0 else f'b{i - 1}'}{(', *' + ('x' if i == 0 else f'b{i - 1}')) * 9}]" for i in range(9))],
    ids=["brackets", "keys", "dashes", "braces", "self", "long", "aliases"],
)  # fmt: skip
def test_hostile_files_are_cheap(text: str) -> None:
    assert parse_source(text).problems


# --- the command -----------------------------------------------------------------------------------------


def test_the_command_prints_places_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "user_flows.yml").write_text(GOOD.replace("next: ask}", "next: aks}"), encoding="utf-8")
    assert flows_main(["check", str(tmp_path)]) == 2
    out = capsys.readouterr().out
    assert f"{tmp_path / 'user_flows.yml'}:8:40  unknown_target" in out
    assert "did you mean ask?" in out
    assert flows_main(["check", str(tmp_path), "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert {"file", "line", "col", "code", "message", "suggestion"} <= set(report["problems"][0])


def test_a_missing_path_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert flows_main(["check", "/nowhere/at/all"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_shipped_configuration_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert flows_main(["check", str(FLOWS)]) == 0
    assert flows_main(["check", str(FLOWS / "examples" / "refund.yml")]) == 0
    assert flows_main(["graph", "set_timer", str(FLOWS)]) == 0
    assert "flowchart TD" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        ("flows:\n\tf: {}\n", "yaml_syntax", (2, 1), "a tab can't be used"),
        ('flows:\n  f:\n    name: "abc\n    steps: []\n', "yaml_syntax", (3, 11), "quoted scalar"),
        ("flows:\n  f: null\n", "missing_steps", (2, 3), "needs steps"),
        ("rails:\n  r:\n", "not_a_mapping", (2, 5), ""),
    ],
    ids=["tab", "quote", "no flow", "no rail"],
)
def test_a_fault_is_told_where_it_begins(text: str, code: str, place: tuple[int, int], words: str) -> None:
    first = load_config([Layer.of_texts({"f.yml": text})]).problems[0]
    assert (first.code, (first.line, first.col)) == (code, place)
    assert words in first.message
