"""Broken rails.yml files: every problem at once, each with its place and, where one is near, what was meant."""

from __future__ import annotations

import re

import pytest

from orchestrator.flows.loader import Layer, Loaded, load_config
from orchestrator.flows.source import Problem

ACTIONS = ("action_now", "start_flow")
HEAD = """user_intents: {ask about pay: [pay]}
bot_messages: {refuse to answer: [no]}
rails:
  one: {steps: [{user: ask about pay}, """

# step after `user:` → (code, the text it must point at, what was meant)
STEPS = [
    ("{bto: hi}", "unknown_step", "bto", "bot"),
    ("{机器人: 好}", "unknown_step", "机器人", None),
    ("{user: ask about pya}", "unknown_intent", "ask about pya", "ask about pay"),
    ("{branch: [{user: ask abuot pay}]}", "unknown_intent", "ask abuot pay", "ask about pay"),
    ("{bot: refuse to anwser}", "unknown_message", "refuse to anwser", "refuse to answer"),
    ("{call: helpr}", "unknown_subrail", "helpr", "helper"),
    ("{call: one}", "not_a_subrail", "one", None),
    ("{call: loop}", "recursive_call", "loop", None),
    ("{say: '{{ vras.x }}'}", "unknown_name", "vras", "vars"),
    ("{say: '{{ vars.x | uper }}'}", "unknown_filter", "uper", "upper"),
    ("{say: '{{ slots.pieecs }}'}", "unknown_slot", "pieecs", "pieces"),
    ("{if: \"slots.get('pieecs')\", then: [{say: x}]}", "unknown_slot", "pieecs", "pieces"),
    ("{do: {action: x, args: {n: '{{ slots.pieecs }}'}}}", "unknown_slot", "pieecs", "pieces"),
    ("{say: '{{ context.response }}'}", "unknown_context_field", "response", None),
    ("{set: {n: 'vars.__class__'}}", "expression_escape", "__class__", None),
    ("{set: {n: '9**9**9'}}", "expression_bomb", "**9", None),
    ("{do: action_nwo}", "unknown_action", "action_nwo", "action_now"),
    ("{do: {action: start_flow, args: {flow: ordr}}}", "unknown_flow", "ordr", "order"),
    ("{do: {acton: x}}", "unknown_key", "acton", "action"),
    ("{extract: {varr: c}}", "unknown_key", "varr", "var"),
    ("{extract: {var: c, type: integr}}", "bad_value", "integr", "integer"),
    ("{branch: [{user: ask about pay, than: []}]}", "unknown_key", "than", "then"),
    ("{say: x, on_error: [{sya: z}]}", "unknown_step", "sya", "say"),
    ("{stop: maybe}", "bad_value", "maybe", None),
    ("{say: x, interruptible: maybe}", "bad_value", "maybe", None),
    ("{say: x, interuptible: false}", "unknown_step", "interuptible", "interruptible"),
    ("{call: helper, interruptible: false}", "unknown_key", "interruptible", None),
]
TAIL = """]}
  helper: {kind: subrail, steps: [{say: x}]}
  loop: {kind: subrail, steps: [{call: loop}]}
slots: {pieces: {type: integer}}
flows: {order: {name: order, steps: [{id: start, type: start, next: end}, {id: end, type: end}]}}
"""


def _load(text: str) -> Loaded:
    return load_config([Layer.of_texts({"rails.yml": text})], actions=ACTIONS)


def _at(problem: Problem, text: str) -> str:
    return text.splitlines()[problem.line - 1][problem.col - 1 :]


@pytest.mark.parametrize(("step", "code", "place", "meant"), STEPS)
def test_a_wrong_step_is_found_where_it_stands(step: str, code: str, place: str, meant: str | None) -> None:
    text = HEAD + step + TAIL
    found = [p for p in _load(text).problems if p.code == code and p.line == 4]
    assert len(found) == 1
    assert _at(found[0], text).lstrip("'\"").startswith(place)
    assert found[0].suggestion == meant


def test_all_problems_come_at_once() -> None:
    clean = {code for p in _load(HEAD + "{say: x}" + TAIL).problems for code in [p.code]}
    text = HEAD + ", ".join(step for step, *_ in STEPS) + TAIL
    found = _load(text).problems
    for _, code, place, _ in STEPS:
        assert any(p.code == code and _at(p, text).lstrip("'\"").startswith(place) for p in found), (code, place)
    assert clean <= {"recursive_call"}
    assert [(p.line, p.col) for p in found] == sorted((p.line, p.col) for p in found)


@pytest.mark.parametrize(
    ("text", "code", "meant"),
    [
        ("rails:\n  one: {steps: [{user: a}\n", "yaml_syntax", None),
        ("rails:\n\tone: x\n", "yaml_syntax", None),
        ("- a\n", "not_a_mapping", None),
        ("user_intent: {a: [x]}\n", "unknown_key", "user_intents"),
        ("user_intents: {a: [x], a: [y]}\n", "duplicate_key", None),
        ("user_intents: {'...': [x]}\n", "reserved_name", None),
        ("user_intents: !!python/object/apply:os.system [echo]\n", "yaml_tag", None),
        ("bot_messages: {b: ['{{ vars.x ']}\n", "expression_syntax", None),
        ("bot_messages: {b: ['{{ slots.nix }}']}\n", "unknown_slot", None),
        ("rails: {one: {step: [{say: x}]}}\n", "unknown_key", "steps"),
        ("rails: {one: {kind: subrial, steps: [{say: x}]}}\n", "bad_value", "subrail"),
        ("rails: {one: {priority: .nan, steps: [{user: a}]}}\n", "bad_value", None),
        ("rails: {one: {priority: 0.8, steps: [{user: a}]}}\n", "low_priority", None),
        ("rails: {one: {steps: [{set: {x: '1'}}]}}\n", "rail_start", None),
        ("rails: {one: {kind: extension, steps: [{user: a}]}}\n", "extension_start", None),
        ("rails: {one: 5}\n", "not_a_mapping", None),
        ("rails: {one: {steps: []}}\n", "missing_steps", None),
        ("rails: {chek: {kind: subrail, steps: [{say: x}]}}\ninput_rails: [check]\n", "unknown_subrail", "chek"),
        ("rails: {c: {kind: subrail, steps: [{say: x}]}}\ninput_rails: [{rial: c}]\n", "unknown_key", "rail"),
        ("rails: {c: {kind: subrail, steps: [{user: a}]}}\noutput_rails: [c]\n", "screen_waits", None),
        ("output_rails: [{rail: c, scope: repy}]\n", "bad_value", "reply"),
        ("settings: {embedings_only: true}\n", "unknown_key", "embeddings_only"),
        ("settings: {similarity_scale: cosinus}\n", "bad_value", "cosine"),
        ("settings: {single_call: cosinus}\n", "bad_value", None),
        ("settings: {max_events: 0}\n", "bad_value", None),
        ("user_intents: {unclear: [x]}\nsettings: {fallback_intent: uncler}\n", "unknown_intent", "unclear"),
        ("rails: {}\n---\nrails: {}\n", "yaml_documents", None),
        ("rails: &r {one: *r}\n", "yaml_alias", None),
        ("rails: " + "[" * 500 + "]" * 500 + "\n", "yaml_depth", None),
    ],
)  # fmt: skip
def test_a_broken_file_names_line_column_and_what_was_meant(text: str, code: str, meant: str | None) -> None:
    found = [p for p in _load(text).problems if p.code == code]
    assert found
    assert re.match(r"rails\.yml:[1-9]\d*:[1-9]\d*\b", str(found[0]))
    assert meant in {p.suggestion for p in found}
