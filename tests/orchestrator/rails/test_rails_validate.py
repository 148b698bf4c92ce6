"""rails.yml is checked whole: every fault at once, with its place."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from orchestrator.flows.source import parse_source, read_source
from orchestrator.rails.env import ExpressionRules
from orchestrator.rails.model import RailsConfig
from orchestrator.rails.schema import rails_schema
from orchestrator.rails.validate import load_rails

SHIPPED = Path(__file__).parents[3] / "flow_config" / "rails.yml"
INTERFACE_EXAMPLE = """
user_intents:
  ask about salary: ["how much do you pay", "what is the salary", "你们工资多少"]
bot_messages:
  refuse to discuss salary: ["I can't discuss salary here. Please check the HR portal."]
rails:
  salary:
    kind: rail                 # rail | subrail | extension
    priority: 1.0
    interruptible: true
    allow_multiple: false
    always: false              # true: a safety rail, checked before everything but input rails
    steps:
      - user: ask about salary            # wait for this user intent; `...` is any
      - bot: refuse to discuss salary     # predefined text if there is one, else one `bot_message` call
      - say: "{{ vars.name }}, one moment."           # template, no model call
      - do: {action: lookup, args: {id: "{{ vars.id }}"}, save_to: result, on_error: [{say: "…"}]}
      - set: {count: "(vars.count or 0) + 1"}         # an expression as in spec-tasks §2
      - {if: "vars.count > 2", then: [{stop: true}], else: [{call: other_subrail}]}
      - branch:                                       # whichever comes
          - {user: agree, then: [{bot: go ahead}]}
          - {event: {type: timeout}, then: [{bot: give up}]}
      - extract: {var: city, instruction: "the city the user named", type: text}   # one `value` call
      - event: {type: alarm_fired}        # wait for a non-speech event
      - stop: true                        # end the processing of this turn
  other_subrail: {kind: subrail, steps: [{say: x}]}
  check_input: {kind: subrail, steps: [{set: {user_message: "'x'"}}]}
  check_output: {kind: subrail, steps: [{stop: true}]}
input_rails: [check_input]                # subrails run on the user message
output_rails: [{rail: check_output, scope: sentence}]   # sentence (default) | reply
settings: {embeddings_only: true, similarity_threshold: auto, similarity_scale: cosine, margin: 0.03,
           fallback_intent: null, closed_intents: false, single_call: false, fallback_to_multiple_calls: true,
           multi_step: false, max_events: 300}
"""


def check(text: str, actions: set[str] | None = None) -> tuple[RailsConfig, list[tuple[int, int, str]]]:
    config, problems = load_rails([parse_source(text, "r.yml")], expressions=ExpressionRules(), actions=actions)
    return config, [(p.line, p.col, p.code) for p in problems]


def codes(text: str, severity: str | None = None) -> list[str]:
    _, problems = load_rails([parse_source(text, "r.yml")], expressions=ExpressionRules())
    return [p.code for p in problems if severity in (None, p.severity)]


def test_example_of_the_format_loads_as_it_stands() -> None:
    config, _ = check(INTERFACE_EXAMPLE)
    assert codes(INTERFACE_EXAMPLE, "error") == []
    assert [r.id for r in config.rails] == ["salary", "other_subrail", "check_input", "check_output"]
    assert config.settings.max_events == 300
    assert config.settings.similarity_threshold is None
    assert config.input_rails == ("check_input",)
    assert [(o.rail, o.scope) for o in config.output_rails] == [("check_output", "sentence")]


@pytest.mark.parametrize("text", [INTERFACE_EXAMPLE, SHIPPED.read_text(encoding="utf-8")])
def test_schema_accepts_what_the_checker_accepts(text: str) -> None:
    jsonschema.validate(yaml.safe_load(text), rails_schema())


def test_shipped_rails_have_no_problem_at_all() -> None:
    config, problems = load_rails([read_source(SHIPPED)], expressions=ExpressionRules())
    assert problems == []
    assert config.always_intents == {"express self harm"}
    for rail in config.rails:
        for name in ("en", "zh"):
            for op in rail.program.ops:
                intent = getattr(op, "intent", None)
                if intent in config.bot_messages:
                    assert any(v.language == name for v in config.bot_messages[intent]), (intent, name)


def test_all_faults_come_at_once_with_their_places() -> None:
    _, found = check("""\
user_intents: [a]
bot_mesages: {}
rails:
  one:
    knd: rail
    priority: high
    steps:
      - usr: x
      - {user: a, bot: b}
      - do: {args: {}}
  two: {steps: []}
settings: {margn: 1, embeddings_only: maybe}
""")
    assert found == [
        (1, 15, "not_a_mapping"),
        (2, 1, "unknown_key"),
        (5, 5, "unknown_key"),
        (6, 15, "bad_value"),
        (8, 9, "unknown_step"),
        (9, 9, "bad_step"),
        (10, 13, "missing_action"),
        (11, 16, "missing_steps"),
        (12, 12, "unknown_key"),
        (12, 39, "bad_value"),
    ]


def test_suggestions() -> None:
    _, problems = load_rails([parse_source("rails:\n  r: {steps: [{user: a}, {sya: b}]}\nsetings: {}")])
    assert [p.suggestion for p in problems] == ["say", "settings"]


def test_a_misspelt_key_of_tasks_is_suggested_too() -> None:
    _, problems = load_rails([parse_source("slot: {}\nflow: {}\nrial: {}")])
    assert [p.suggestion for p in problems] == ["slots", "flows", "rails"]


@pytest.mark.parametrize(
    "step, code",
    [
        ("{if: 'vars.x >'}", "expression_syntax"),
        ("{if: 'vars.x', else: []}", "missing_then"),
        ("{say: '{{ vars.x'}", "expression_syntax"),
        ("{set: {x: 'unknown + 1'}}", "unknown_name"),
        ("{set: {a b: '1'}}", "bad_name"),
        ("{set: {x: '().__class__'}}", "expression_escape"),
        ("{call: nowhere}", "unknown_subrail"),
        ("{call: r}", "not_a_subrail"),
        ("{branch: []}", "bad_branch"),
        ("{branch: [{bot: x}]}", "bad_branch"),
        ("{extract: {instruction: x}}", "missing_var"),
        ("{extract: {var: x, type: date}}", "bad_value"),
        ("{event: {name: x}}", "missing_type"),
        ("{user: b, on_error: []}", "unknown_key"),
        ("{stop: now}", "bad_value"),
        ("{do: {action: x, save_to: 'a b'}}", "bad_name"),
    ],
)
def test_faults_of_steps(step: str, code: str) -> None:
    assert code in codes(f"rails:\n  r:\n    steps:\n      - user: a\n      - {step}\n", "error")


@pytest.mark.parametrize(
    "text, code",
    [
        ("rails: {r: {priority: 0.9, steps: [{user: a}, {bot: b}]}}", "low_priority"),
        ("rails: {r: {priority: 0.5, steps: [{user: a}, {bot: b}]}}", "low_priority"),
        ("rails: {r: {steps: [{user: a}, {call: s}]}, s: {kind: subrail, steps: [{call: s}]}}", "recursive_call"),
        ("user_intents: {ask: [x]}\nrails: {r: {steps: [{user: aks}, {bot: b}]}}", "unknown_intent"),
        ("user_intents: {a: [Same words], b: [same  words]}", "same_example"),
        ("rails: {r: {always: true, steps: [{user: a}, {bot: b}]}}", "improvised_safety"),
        ("rails: {r: {steps: [{bot: a}, {bot: b}]}}", "rail_start"),
    ],
)
def test_warnings(text: str, code: str) -> None:
    assert code in codes(text, "warning")
    assert codes(text, "error") == []


def test_priority_above_the_models_gives_no_warning() -> None:
    assert codes("rails: {r: {priority: 0.91, steps: [{user: a}, {bot: b}]}}") == []


@pytest.mark.parametrize(
    "text, code",
    [
        ("input_rails: [x]", "unknown_subrail"),
        ("rails: {x: {steps: [{user: a}]}}\ninput_rails: [x]", "not_a_subrail"),
        ("rails: {x: {kind: subrail, steps: [{user: a}]}}\noutput_rails: [{rail: x}]", "screen_waits"),
        ("rails: {x: {kind: subrail, steps: [{stop: true}]}}\noutput_rails: [{rail: x, scope: word}]", "bad_value"),
        ("rails: {x: {kind: extension, steps: [{user: a}]}}", "extension_start"),
        ("bot_messages: {a: []}", "empty_message"),
    ],
)
def test_other_faults(text: str, code: str) -> None:
    assert code in codes(text, "error")


def test_unknown_actions_are_a_warning_where_the_actions_are_known() -> None:
    assert (1, 33, "unknown_action") in check("rails: {r: {steps: [{do: {action: look}}]}}", actions={"other"})[
        1
    ] or any(
        c == "unknown_action" for _, _, c in check("rails: {r: {steps: [{user: a}, {do: look}]}}", actions={"other"})[1]
    )


def test_user_layer_lies_over_the_shipped_one_and_doubles_in_one_layer_are_errors() -> None:
    first = parse_source("bot_messages: {a: [one], b: [two]}\nsettings: {margin: 0.1, max_events: 9}", "1.yml")
    second = parse_source("bot_messages: {a: [three]}\nsettings: {margin: 0.2}", "2.yml")
    config, problems = load_rails([first, second], layered=True)
    assert problems == []
    assert [config.bot_messages[n][0].text for n in ("a", "b")] == ["three", "two"]
    assert (config.settings.margin, config.settings.max_events) == (0.2, 9)
    _, problems = load_rails([first, second])
    assert [p.code for p in problems] == ["duplicate_id"]


def test_faulty_rail_is_left_out_and_the_others_stay() -> None:
    config, _ = check("rails: {bad: {steps: [{nope: 1}]}, good: {steps: [{user: a}, {bot: b}]}}")
    assert [r.id for r in config.rails] == ["good"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "- 1",
        "rails: 3",
        "rails: {a: 3}",
        "user_intents: {a: {b: c}}",
        "settings: []",
        "rails: {a: {steps: [1]}}",
        "{",
        "output_rails: 3",
        "rails: {r: {steps: [{branch: 3}, {set: 3}, {do: [1]}, {extract: 3}, {event: []}]}}",
    ],
)
def test_odd_files_give_problems_never_exceptions(text: str) -> None:
    load_rails([parse_source(text)], expressions=ExpressionRules())
