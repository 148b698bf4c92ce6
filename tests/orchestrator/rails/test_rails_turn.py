"""Rails in whole turns: the three steps, their fallbacks, variables, actions, screens, interruption."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.contracts.dialogue import TurnHeard
from orchestrator.contracts.events import RailIntentFound, RailStateChanged

SALARY = """
user_intents:
  ask about salary: ["how much do you pay", "what is the salary", "你们工资多少"]
  greet: [hello, 你好]
bot_messages:
  refuse to discuss salary: ["I can't discuss salary here. Please check the HR portal."]
rails:
  salary: {steps: [{user: ask about salary}, {bot: refuse to discuss salary}]}
  greeting: {steps: [{user: greet}, {bot: greet back}]}
settings: {embeddings_only: %s}
"""
REFUSAL = "I can't discuss salary here. Please check the HR portal."


async def test_predefined_text_costs_no_call(talk: Any) -> None:
    t = talk(SALARY % "true")
    r = await t.user("what is the salary", llm=[])
    assert (r.user_intent, r.bot_intents, r.replies) == ("ask about salary", ["refuse to discuss salary"], [REFUSAL])


async def test_bot_step_without_text_costs_exactly_one_call(talk: Any) -> None:
    t = talk(SALARY % "true")
    r = await t.user("hello", llm=[("bot_message", "Hello you.")])
    assert r.replies == ["Hello you."]
    assert "refuse to discuss salary" in r.prompts[0]


async def test_what_a_step_marks_may_not_be_interrupted(talk: Any) -> None:
    t = talk("""
user_intents: {greet: [hello]}
bot_messages: {warn: [Hot.]}
rails:
  one:
    steps:
      - user: greet
      - {bot: warn, interruptible: false}
      - say: Well.
      - {say: Gone for good., interruptible: false}
      - {bot: greet back, interruptible: false}
      - {say: "{{ vars.nothing }}", interruptible: false, on_error: [{say: Sorry.}]}
""")
    r = await t.user("hello", llm=[("bot_message", "Hello you.")])
    assert r.replies == ["Hot.", "Well.", "Gone for good.", "Hello you.", "Sorry."]
    assert r.protected == ["Hot.", "Gone for good.", "greet back"]


async def test_unmatched_sentence_asks_the_model_for_the_intent(talk: Any) -> None:
    t = talk(SALARY % "false")
    r = await t.user("yo what's the pay like", llm=[("user_intent", "\n  user ask about salary\nand more")])
    assert r.replies == [REFUSAL]
    assert "what is the salary" in r.prompts[0]
    assert t.llm.requests[0].temperature == 0


async def test_most_similar_example_comes_last(talk: Any) -> None:
    t = talk(SALARY % "false")
    r = await t.user("what is the salary then", llm=[("user_intent", "ask about salary")])
    assert r.prompts[0].index("how much do you pay") < r.prompts[0].index("what is the salary")
    assert r.prompts[0].index("hello") < r.prompts[0].index("what is the salary")


async def test_matched_sentence_is_taken_without_a_call_also_with_a_model(talk: Any) -> None:
    t = talk(SALARY % "false")
    assert (await t.user("how much do you pay", llm=[])).replies == [REFUSAL]


async def test_unmatched_sentence_with_embeddings_only_is_left_to_others(talk: Any) -> None:
    t = talk(SALARY % "true")
    r = await t.user("yo what's the pay like", llm=[])
    assert not r.answered
    assert r.replies == []


async def test_fallback_intent_is_taken_for_what_is_not_matched(talk: Any) -> None:
    t = talk(SALARY.replace("%s", "true, fallback_intent: ask about salary"))
    assert (await t.user("something else", llm=[])).replies == [REFUSAL]


@pytest.mark.parametrize("answer", ["", "  \n\n ", "user "])
async def test_empty_intent_is_the_unknown_message(talk: Any, answer: str) -> None:
    t = talk(SALARY % "false")
    r = await t.user("hmm hmm", llm=[("user_intent", answer), ("next_step", "bot shrug"), ("bot_message", "Hm.")])
    assert (r.user_intent, r.bot_intents, r.replies) == ("unknown message", ["shrug"], ["Hm."])


@pytest.mark.parametrize("answer", ["I would say something nice.", '{"bot": "x"}', "", "BOT loud", "bot", "bot "])
async def test_next_step_that_is_none_is_a_general_response(talk: Any, answer: str) -> None:
    t = talk(SALARY % "false")
    r = await t.user("hm", llm=[("user_intent", "wonder"), ("next_step", answer), ("bot_message", "Well.")])
    assert (r.user_intent, r.bot_intents, r.replies) == ("wonder", ["general response"], ["Well."])


@pytest.mark.parametrize(
    "answer, spoken",
    [
        ('"Hello you."', "Hello you."),
        ("\n\n  Hello you.   \n\nGood day.  \n", "Hello you.\nGood day."),
        ("“你好。”", "你好。"),
        ("", "I'm not sure what to say."),
        (" \n ", "I'm not sure what to say."),
        ('""', "I'm not sure what to say."),
        ('{"text": "Hi"}', '{"text": "Hi"}'),
    ],
)
async def test_words_are_cleaned(talk: Any, answer: str, spoken: str) -> None:
    t = talk(SALARY % "true")
    assert (await t.user("hello", llm=[("bot_message", answer)])).replies == [spoken]


async def test_not_sure_is_said_in_the_users_language(talk: Any) -> None:
    t = talk(SALARY % "true")
    assert (await t.user("你好", llm=[("bot_message", "")])).replies == ["我不知道该说什么。"]


async def test_next_step_is_shown_rails_near_the_intent(talk: Any) -> None:
    t = talk(SALARY % "false")
    r = await t.user("pay?", llm=[("user_intent", "complain"), ("next_step", "bot x"), ("bot_message", "y")])
    assert "user ask about salary\nbot refuse to discuss salary" in r.prompts[1]
    assert t.llm.requests[1].temperature == 0


async def test_model_may_choose_a_predefined_answer(talk: Any) -> None:
    t = talk(SALARY % "false")
    r = await t.user("pay?", llm=[("user_intent", "complain"), ("next_step", "bot refuse to discuss salary")])
    assert r.replies == [REFUSAL]


@pytest.mark.parametrize(
    "script",
    [
        [("user_intent", None)],
        [("user_intent", "x"), ("next_step", None)],
        [("user_intent", "x"), ("next_step", "bot y"), ("bot_message", None)],
    ],
)
async def test_failing_model_is_a_spoken_error(talk: Any, script: list[tuple[str, str | None]]) -> None:
    t = talk(SALARY % "false")
    r = await t.user("hm", llm=script)
    assert r.error is not None
    assert r.replies == ["Sorry, I can't reach my language model right now. Please check it in the settings."]


async def test_closed_intents_turn_an_unknown_answer_into_the_fallback_intent(talk: Any) -> None:
    t = talk(SALARY.replace("%s", "false, closed_intents: true, fallback_intent: ask about salary"))
    r = await t.user("x", llm=[("user_intent", "something of its own")])
    assert (r.user_intent, r.replies) == ("ask about salary", [REFUSAL])


async def test_open_intents_are_accepted_as_they_are(talk: Any) -> None:
    t = talk(SALARY % "false")
    r = await t.user("x", llm=[("user_intent", "be rude"), ("next_step", "bot stay calm"), ("bot_message", "Ok.")])
    assert r.user_intent == "be rude"


# --- priorities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority, by_model", [(0.9, False), (0.89, True), (0.5, True), (1.0, False)])
async def test_model_decides_only_below_its_priority(talk: Any, priority: float, by_model: bool) -> None:
    t = talk(f"""
user_intents: {{x: [hello]}}
bot_messages: {{a: [from rail], b: [from model]}}
rails: {{r: {{priority: {priority}, steps: [{{user: x}}, {{bot: a}}]}}}}
""")
    r = await t.user("hello", llm=[("next_step", "bot b")] if by_model else [])
    assert r.replies == ["from model" if by_model else "from rail"]


async def test_weak_rail_decides_when_there_is_no_model(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
bot_messages: {a: [from rail]}
rails: {r: {priority: 0.5, steps: [{user: x}, {bot: a}]}}
""")
    assert (await t.user("hello")).replies == ["from rail"]


async def test_intent_without_a_rail_is_decided_by_the_model(talk: Any) -> None:
    t = talk("user_intents: {x: [hello]}")
    r = await t.user("hello", llm=[("next_step", "bot b"), ("bot_message", "Hi.")])
    assert r.replies == ["Hi."]
    assert not (await t.user("hello")).answered


# --- single call and multi step -----------------------------------------------------------------------

SINGLE = SALARY.replace("%s", "false, single_call: true")


async def test_single_call_answers_with_one_call(talk: Any) -> None:
    t = talk(SINGLE)
    r = await t.user("tell me of the sea", llm=[("combined", 'user ask of sea\nbot tell of sea\n  "It is wide."\n')])
    assert (r.user_intent, r.bot_intents, r.replies) == ("ask of sea", ["tell of sea"], ["It is wide."])
    assert 'User: "what is the salary"\nuser ask about salary\nbot refuse to discuss salary\nI can\'t' in r.prompts[0]


async def test_single_call_text_is_used_only_for_its_own_bot_intent(talk: Any) -> None:
    t = talk(SINGLE)
    r = await t.user("hi hi", llm=[("combined", "user greet\nbot tell of sea\nIt is wide."), ("bot_message", "Hi.")])
    assert (r.bot_intents, r.replies) == (["greet back"], ["Hi."])
    r = await t.user("hi hi", llm=[("combined", "user greet\nbot greet back\nHi from the call.")])
    assert r.replies == ["Hi from the call."]


async def test_single_call_gives_way_to_predefined_text(talk: Any) -> None:
    t = talk(SINGLE)
    r = await t.user("pay", llm=[("combined", "user ask about salary\nbot refuse to discuss salary\nNo.")])
    assert r.replies == [REFUSAL]


@pytest.mark.parametrize(
    "answer", ["Sure, the sea is wide.", '{"intent": "x"}', "", "user x\nIt is wide.\nVery.", "bot a\nbot b\nc"]
)
async def test_single_call_that_cannot_be_parsed_becomes_several(talk: Any, answer: str) -> None:
    t = talk(SINGLE)
    script = [("combined", answer), ("user_intent", "ask of sea"), ("next_step", "bot tell"), ("bot_message", "Wide.")]
    r = await t.user("tell me of the sea", llm=script)
    assert (r.user_intent, r.bot_intents, r.replies) == ("ask of sea", ["tell"], ["Wide."])


async def test_single_call_without_fallback_is_a_spoken_error(talk: Any) -> None:
    t = talk(SALARY.replace("%s", "false, single_call: true, fallback_to_multiple_calls: false"))
    r = await t.user("tell me of the sea", llm=[("combined", "Sure.")])
    assert r.error is not None
    assert len(r.replies) == 1


async def test_multi_step_rail_is_cut_until_it_parses(talk: Any) -> None:
    t = talk(SALARY.replace("%s", "false, multi_step: true"))
    script = [
        ("user_intent", "order"),
        ("next_step", "bot ask size\nuser give size\nbot thank\nThat is all, I think."),
        ("bot_message", "Which size?"),
    ]
    assert (await t.user("one coffee", llm=script)).replies == ["Which size?"]
    stored = json.loads(json.dumps(t.state))
    t.state = stored
    r = await t.user("big one", llm=[("user_intent", "give size"), ("bot_message", "Thanks.")])
    assert (r.bot_intents, r.replies) == (["thank"], ["Thanks."])


async def test_multi_step_prose_is_a_general_response(talk: Any) -> None:
    t = talk(SALARY.replace("%s", "false, multi_step: true"))
    script = [("user_intent", "order"), ("next_step", "Well, let me think.\nbot x"), ("bot_message", "Hm.")]
    assert (await t.user("one coffee", llm=script)).bot_intents == ["general response"]


# --- variables and templates ---------------------------------------------------------------------------


async def test_variant_that_needs_an_unset_variable_is_not_eligible(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
bot_messages: {a: ["Hi {{ vars.name }}.", "Hi."]}
rails: {r: {steps: [{user: x}, {bot: a}]}}
""")
    assert (await t.user("hello")).replies == ["Hi."]
    assert (await t.user("hello", variables={"name": "Ann"})).replies == ["Hi Ann."]


async def test_no_eligible_variant_takes_the_error_branch_or_is_spoken(talk: Any) -> None:
    text = """
user_intents: {x: [hello]}
bot_messages: {a: ["Hi {{ vars.name }}."], sorry: [Sorry.]}
rails: {r: {steps: [{user: x}, {bot: a%s}, {bot: sorry}]}}
"""
    r = await talk(text % ", on_error: [{say: Who are you?}]").user("hello")
    assert (r.replies, r.error) == (["Who are you?"], None)
    r = await talk(text % "").user("hello")
    assert (r.replies, r.error is None) == (["Sorry, something went wrong on my side."], False)


async def test_variable_is_spoken_as_it_is(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
rails: {r: {steps: [{user: x}, {set: {note: "'All is well.'"}}, {bot: note}]}}
""")
    assert (await t.user("hello", llm=[])).replies == ["All is well."]


async def test_say_with_an_unset_variable_is_an_error_and_in_a_condition_it_is_none(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello], y: [bye]}
rails:
  r: {steps: [{user: x}, {say: "Hi {{ vars.name }}"}]}
  s: {steps: [{user: y}, {if: "vars.name == none", then: [{say: nobody}], else: [{say: somebody}]}]}
""")
    assert (await t.user("hello")).error is not None
    assert (await t.user("bye")).replies == ["nobody"]
    assert (await t.user("hello", variables={"name": "Ann"})).replies == ["Hi Ann"]


async def test_set_keeps_types_and_counts(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
rails:
  r:
    steps:
      - user: x
      - set: {count: "(vars.count or 0) + 1", list: [1, 2], copy: "{{ vars.list }}", text: "n={{ vars.count }}"}
      - {if: "vars.count > 2", then: [{say: enough}, {stop: true}], else: [{say: "{{ vars.text }}"}]}
      - say: more
""")
    assert (await t.user("hello")).replies == ["n=1", "more"]
    assert (await t.user("hello")).replies == ["n=2", "more"]
    assert (await t.user("hello")).replies == ["enough"]
    assert t.vars["count"] == 3
    assert t.vars["copy"] == [1, 2]


async def test_arithmetic_with_unset_is_a_spoken_error(talk: Any) -> None:
    t = talk('user_intents: {x: [hello]}\nrails: {r: {steps: [{user: x}, {set: {n: "vars.n + 1"}}, {say: ok}]}}')
    r = await t.user("hello")
    assert (r.replies, r.error is None) == (["Sorry, something went wrong on my side."], False)
    assert (await t.user("hello", variables={"n": 1})).replies == ["ok"]


async def test_built_in_variables(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
bot_messages: {a: [First.]}
rails: {r: {steps: [{user: x}, {bot: a}, {say: "{{ vars.user_message }} {{ vars.bot_message }}"}]}}
""")
    assert (await t.user("hello")).replies == ["First.", "hello First."]


async def test_slots_can_be_read(talk: Any) -> None:
    t = talk('user_intents: {x: [hello]}\nrails: {r: {steps: [{user: x}, {say: "{{ slots.city }}"}]}}')
    t.slots["city"] = "Rome"
    assert (await t.user("hello")).replies == ["Rome"]


# --- actions and values --------------------------------------------------------------------------------

ACTION = """
user_intents: {x: [hello]}
rails:
  r:
    steps:
      - user: x
      - do: {action: look, args: {id: "{{ vars.id }}", text: "no {{ vars.id }}"}, save_to: found%s}
      - say: "found {{ vars.found }}"
"""


async def test_action_arguments_keep_their_types_and_the_result_is_saved(talk: Any) -> None:
    t = talk(ACTION % "", actions={"look": lambda args: args["id"] + 1})
    r = await t.user("hello", variables={"id": 7})
    assert r.actions == [("look", {"id": 7, "text": "no 7"})]
    assert r.replies == ["found 8"]
    assert t.vars["found"] == 8


@pytest.mark.parametrize("actions", [{}, {"look": RuntimeError("broken")}])
async def test_unregistered_and_failing_actions(talk: Any, actions: dict[str, Any]) -> None:
    t = talk(ACTION % ", on_error: [{say: Not now.}]", actions=actions)
    r = await t.user("hello", variables={"id": 1})
    assert (r.replies, r.error) == (["Not now."], None)
    t = talk(ACTION % "", actions=actions)
    r = await t.user("hello", variables={"id": 1})
    assert (r.replies, r.error is None) == (["Sorry, something went wrong on my side."], False)
    assert t.running() == {}


async def test_action_with_an_unset_argument_does_not_run(talk: Any) -> None:
    t = talk(ACTION % "", actions={"look": 1})
    r = await t.user("hello")
    assert r.actions == []
    assert r.error is not None


async def test_rail_may_start_a_task(talk: Any) -> None:
    t = talk(
        "user_intents: {x: [hello]}\nrails: {r: {steps: [{user: x}, {do: {action: start_flow, args: {flow: f}}}]}}",
        actions={"start_flow": None},
    )
    r = await t.user("hello")
    assert (r.actions, r.answered) == ([("start_flow", {"flow": "f"})], True)


EXTRACT = """
user_intents: {x: [hello]}
rails:
  r:
    steps:
      - user: x
      - extract: {var: v, instruction: what was named, type: %s}
        on_error: [{say: Unclear.}]
      - say: "got {{ vars.v }}"
"""


@pytest.mark.parametrize(
    "kind, answer, value",
    [
        ("text", '"Rome"\n', "Rome"),
        ("integer", "42", 42),
        ("number", "4.5", 4.5),
        ("boolean", "yes", True),
        ("boolean", "否", False),
        ("list", '["a", "b"]', ["a", "b"]),
        ("any", '{"a": 1}', {"a": 1}),
    ],
)
async def test_extract_reads_values(talk: Any, kind: str, answer: str, value: Any) -> None:
    t = talk(EXTRACT % kind)
    r = await t.user("hello", llm=[("value", answer)])
    assert t.vars["v"] == value
    assert r.error is None
    assert t.llm.requests[0].temperature == 0
    assert "what was named" in r.prompts[0]


@pytest.mark.parametrize(
    "kind, answer",
    [
        ("text", ""),
        ("text", "none"),
        ("integer", "about forty"),
        ("integer", "4.5"),
        ("integer", '{"v": 42}'),
        ("boolean", "maybe"),
        ("list", "a"),
    ],
)
async def test_value_that_cannot_be_parsed_takes_the_error_branch(talk: Any, kind: str, answer: str) -> None:
    t = talk(EXTRACT % kind)
    r = await t.user("hello", llm=[("value", answer)])
    assert r.replies == ["Unclear."]
    assert "v" not in t.vars


async def test_value_that_cannot_be_parsed_is_a_spoken_error_without_branch(talk: Any) -> None:
    t = talk(EXTRACT.replace("        on_error: [{say: Unclear.}]\n", "") % "integer")
    assert (await t.user("hello", llm=[("value", "prose")])).error is not None


async def test_recursive_subrail_is_a_spoken_error(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
rails:
  r: {steps: [{user: x}, {call: a}]}
  a: {kind: subrail, steps: [{call: a}]}
""")
    r = await t.user("hello")
    assert (len(r.replies), r.error is None) == (1, False)


async def test_event_bound_ends_in_one_spoken_sentence(talk: Any, caplog: pytest.LogCaptureFixture) -> None:
    t = talk(
        """
user_intents: {x: [hello]}
rails:
  r: {steps: [{user: x}, {do: again}]}
  e: {kind: rail, allow_multiple: true, steps: [{do: again}, {do: again}]}
settings: {max_events: 20}
""",
        actions={"again": 1},
    )
    r = await t.user("hello")
    assert r.replies == ["Sorry, I got lost in my own rules."]
    assert len(r.actions) == 20
    assert r.error is not None
    assert "action_done again" in caplog.text
    assert t.running() == {}


# --- rails over turns ----------------------------------------------------------------------------------

OFFER = """
user_intents: {ask: [tell me], agree: ["yes"], weather: [is it warm]}
bot_messages: {offer: [More?], more: [More.], warm: [Warm.]}
rails:
  offer: {steps: [{user: ask}, {bot: offer}, {user: agree}, {bot: more}]}
  weather: {steps: [{user: weather}, {bot: warm}]}
"""


async def test_two_turn_rail_survives_questions_in_between_and_a_restart(talk: Any) -> None:
    t = talk(OFFER)
    assert (await t.user("tell me")).replies == ["More?"]
    assert (await t.user("is it warm")).replies == ["Warm."]
    assert not (await t.user("nobody knows this")).answered
    again = talk(OFFER)
    again.state = json.loads(json.dumps(t.state))
    assert (await again.user("yes")).replies == ["More."]


async def test_stored_rail_is_found_again_after_its_file_changed(talk: Any) -> None:
    t = talk(OFFER)
    await t.user("tell me")
    changed = talk(OFFER.replace("{bot: offer}, {user: agree}", "{bot: offer}, {set: {a: 1}}, {user: agree}"))
    changed.state = json.loads(json.dumps(t.state))
    assert (await changed.user("yes")).replies == ["More."]
    gone = talk(OFFER.replace("{user: agree}", "{user: other}"))
    gone.state = json.loads(json.dumps(t.state))
    assert not (await gone.user("yes")).answered


@pytest.mark.parametrize("state", [{}, {"rails": 3}, {"rails": [{"uid": "x"}]}, {"vars": []}, {"rails": [None]}])
async def test_odd_stored_states_are_taken_as_new(talk: Any, state: dict[str, Any]) -> None:
    t = talk(OFFER)
    t.state = state
    assert (await t.user("tell me")).replies == ["More?"]


async def test_dots_take_what_no_intent_fits(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
rails: {r: {steps: [{user: x}, {say: Name?}, {user: ...}, {say: "Hi {{ vars.user_message }}"}]}}
""")
    await t.user("hello")
    assert (await t.user("Ann")).replies == ["Hi Ann"]


async def test_event_from_outside_moves_a_rail(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
rails: {r: {steps: [{user: x}, {say: ok}, {event: {type: alarm}}, {say: "ring {{ vars.event.name }}"}]}}
""")
    await t.user("hello")
    assert not (await t.event("other")).answered
    assert (await t.event("alarm", name="tea")).replies == ["ring tea"]


async def test_stop_ends_the_turn(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
rails: {r: {steps: [{user: x}, {say: a}, {stop: true}, {user: x}, {say: b}]}}
""")
    assert (await t.user("hello")).replies == ["a"]
    assert (await t.user("hello")).replies == ["b"]


async def test_always_rail_answers_before_everything_else(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello], crisis: [I want to die]}
bot_messages: {help: [Please call.], a: [A?], b: [B.]}
rails:
  r: {steps: [{user: x}, {bot: a}, {user: ...}, {bot: b}]}
  safe: {always: true, steps: [{user: crisis}, {bot: help}]}
""")
    await t.user("hello")
    assert (await t.user("I want to die")).replies == ["Please call."]
    assert (await t.user("anything")).replies == ["B."]


# --- rails on what is said -----------------------------------------------------------------------------

SCREENS = """
user_intents: {x: [hello], y: [hello friend]}
bot_messages: {no: ["I won't talk about that."], greeting: [Hi.]}
rails:
  r: {steps: [{user: x}, {bot: talk}, {say: after}]}
  s: {steps: [{user: y}, {bot: greeting}]}
  check_in:
    kind: subrail
    steps:
      - {if: "'secret' in vars.user_message", then: [{bot: no}, {stop: true}]}
      - {if: "vars.user_message == 'hi friend'", then: [{set: {user_message: "'hello friend'"}}]}
  check_out:
    kind: subrail
    steps:
      - {if: "'bad' in vars.bot_message", then: [{bot: no}, {stop: true}]}
      - {if: "'rude' in vars.bot_message", then: [{set: {bot_message: "'Softer.'"}}]}
input_rails: [check_in]
output_rails: [{rail: check_out%s}]
"""


async def test_input_rail_blocks(talk: Any) -> None:
    r = await talk(SCREENS % "").user("tell me the secret", llm=[])
    assert (r.replies, r.answered, r.bot_intents) == (["I won't talk about that."], True, ["no"])


async def test_input_rail_rewrites(talk: Any) -> None:
    assert (await talk(SCREENS % "").user("hi friend", llm=[])).user_intent == "y"


async def test_output_rail_blocks_the_rest_and_says_the_refusal(talk: Any) -> None:
    r = await talk(SCREENS % "").user("hello", llm=[("bot_message", "One fine. Two bad. Three fine.")])
    assert r.replies == ["One fine.", "I won't talk about that."]


async def test_output_rail_rewrites_a_sentence(talk: Any) -> None:
    r = await talk(SCREENS % "").user("hello", llm=[("bot_message", "One fine. Two rude. Three fine.")])
    assert r.replies == ["One fine. Softer. Three fine.", "after"]


async def test_output_rail_of_reply_scope_sees_everything_first(talk: Any) -> None:
    t = talk(SCREENS % ", scope: reply")
    assert t.rails.reply_scope
    r = await t.user("hello", llm=[("bot_message", "One fine. Two bad. Three fine.")])
    assert r.replies == ["I won't talk about that."]


async def test_output_rails_skip_predefined_text(talk: Any) -> None:
    t = talk((SCREENS % "").replace("greeting: [Hi.]", "greeting: [So bad.]"))
    assert (await t.user("hello friend", llm=[])).replies == ["So bad."]


async def test_failing_input_rail_blocks_with_a_spoken_error(talk: Any) -> None:
    t = talk("""
user_intents: {x: [hello]}
rails:
  r: {steps: [{user: x}, {say: hi}]}
  check: {kind: subrail, steps: [{do: {action: unknown}}]}
input_rails: [check]
""")
    r = await t.user("hello")
    assert (r.replies, r.error is None) == (["Sorry, something went wrong on my side."], False)


# --- interruption --------------------------------------------------------------------------------------

LONG = """
user_intents: {x: [hello], agree: ["yes"]}
bot_messages: {a: [A.], b: [B?], c: [C.]}
rails: {r: {steps: [{user: x}, {bot: a}, {bot: b}, {user: agree}, {bot: c}]}}
"""


async def test_question_that_sounded_can_be_answered(talk: Any) -> None:
    t = talk(LONG)
    await t.user("hello", sounded=2)
    assert (await t.user("yes")).replies == ["C."]


async def test_question_that_never_sounded_is_not_open(talk: Any) -> None:
    t = talk(LONG)
    await t.user("hello", sounded=1)
    assert not (await t.user("yes")).answered
    assert (await t.user("hello")).replies == ["A.", "B?"]


async def test_turn_that_never_sounded_has_not_been(talk: Any) -> None:
    t = talk(LONG)
    await t.user("hello", heard=TurnHeard(outcome="interrupted", joined=True))
    assert t.running() == {}
    assert (await t.user("hello")).replies == ["A.", "B?"]


# --- what is reported ----------------------------------------------------------------------------------


async def test_intent_and_rail_states_are_reported(talk: Any) -> None:
    r = await talk(SALARY % "true").user("what is the salary")
    found = [e for e in r.events if isinstance(e, RailIntentFound)]
    assert [(e.intent, e.by, e.score) for e in found] == [("ask about salary", "exact", 1.0)]
    states = [(e.rail, e.status) for e in r.events if isinstance(e, RailStateChanged)]
    assert states == [("salary", "active"), ("salary", "completed")]
