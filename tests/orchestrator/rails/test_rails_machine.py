"""The pure state machine, sentence by sentence of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.flows.source import parse_source
from orchestrator.rails.machine import end_turn, step
from orchestrator.rails.program import Bot, Do, Extract, Say, Stop
from orchestrator.rails.state import (
    EvalFailed,
    EventKind,
    Failure,
    MachineState,
    RailEvent,
    RailSet,
    RailStatus,
    Transition,
)
from orchestrator.rails.validate import load_rails


class PlainEvaluator:
    """Knows `name`, `name + 1`, `name > 2`, `name == none`; enough to drive logic steps."""

    def condition(self, source: Any, variables: Any) -> bool:
        if isinstance(source, bool):
            return source
        name, _, rest = str(source).removeprefix("vars.").partition(" ")
        value = variables.get(name)
        if rest.startswith("== none"):
            return value is None
        if rest.startswith("> "):
            return value is not None and value > int(rest[2:])
        return bool(value)

    def value(self, source: Any, variables: Any) -> Any:
        if not isinstance(source, str):
            return source
        name, _, rest = source.removeprefix("vars.").partition(" ")
        if rest.startswith("+ "):
            if variables.get(name) is None:
                raise EvalFailed(f"{name} is not set")
            return variables[name] + int(rest[2:])
        return variables.get(name)


class Driver:
    """Feeds events and keeps the state."""

    def __init__(self, text: str) -> None:
        config, problems = load_rails([parse_source(text)])
        assert not [p for p in problems if p.severity == "error"], problems
        self.rails: RailSet = config.rail_set()
        self.state = MachineState()
        self.last: Transition | None = None

    def feed(self, kind: EventKind, name: str = "", **more: Any) -> str | None:
        self.last = step(self.rails, self.state, RailEvent(kind=kind, name=name, **more), PlainEvaluator())
        self.state = self.last.state
        return self.shown()

    def shown(self) -> str | None:
        assert self.last is not None
        found = self.last.next
        if found is None:
            return None
        match found.step:
            case Bot():
                return f"bot {found.step.intent}"
            case Say():
                return f"say {found.step.text}"
            case Do():
                return f"do {found.step.action}"
            case Extract():
                return f"extract {found.step.var}"
            case Stop():
                return "stop"
            case Failure():
                return f"failure {found.step.reason}"

    def user(self, intent: str) -> str | None:
        return self.feed(EventKind.USER, intent)

    def bot(self, intent: str) -> str | None:
        """The bot intent was said by the rail that decided it."""
        uid = self.last.next.uid if self.last is not None and self.last.next is not None else None
        return self.feed(EventKind.BOT, intent, uid=uid)

    def done(self, action: str, value: Any = None) -> str | None:
        return self.feed(EventKind.DONE, action, value=value)

    def event(self, kind: str, **payload: Any) -> str | None:
        return self.feed(EventKind.EXTERNAL, kind, payload=payload)

    def status(self, rail: str) -> RailStatus | None:
        return next((i.status for i in self.state.instances if i.rail == rail), None)


TWO_TURNS = """
rails:
  offer:
    steps: [{user: ask, }, {bot: offer more}, {user: agree}, {bot: give more}]
  weather:
    steps: [{user: ask weather}, {bot: tell weather}]
"""


def test_a_matching_event_moves_the_rail_to_its_next_step() -> None:
    d = Driver(TWO_TURNS)
    assert d.user("ask") == "bot offer more"
    assert d.bot("offer more") is None
    assert d.user("agree") == "bot give more"
    assert d.bot("give more") is None
    assert d.state.instances == ()


def test_two_turn_rail_survives_a_question_of_another_rail() -> None:
    d = Driver(TWO_TURNS)
    d.user("ask")
    d.bot("offer more")
    assert d.user("ask weather") == "bot tell weather"
    assert d.status("offer") is RailStatus.INTERRUPTED
    d.bot("tell weather")
    assert d.status("offer") is RailStatus.ACTIVE
    assert d.user("agree") == "bot give more"


def test_two_turn_rail_survives_a_question_no_rail_knows() -> None:
    d = Driver(TWO_TURNS)
    d.user("ask")
    d.bot("offer more")
    assert d.user("unheard of") is None
    assert d.bot("general response") is None
    assert d.user("agree") == "bot give more"


def test_uninterruptible_rail_is_aborted_by_another_question() -> None:
    d = Driver(TWO_TURNS.replace("offer:\n", "offer:\n    interruptible: false\n"))
    d.user("ask")
    d.bot("offer more")
    d.user("ask weather")
    assert d.status("offer") is None
    d.bot("tell weather")
    assert d.user("agree") is None


def test_interrupted_rail_is_aborted_when_its_interrupter_is() -> None:
    d = Driver("""
rails:
  first: {steps: [{user: a}, {bot: b}, {user: c}, {bot: d}]}
  second: {interruptible: false, steps: [{user: e}, {bot: f}, {user: g}, {bot: h}]}
""")
    d.user("a")
    d.bot("b")
    d.user("e")
    d.bot("f")
    assert d.status("first") is RailStatus.INTERRUPTED
    assert d.user("something else") is None
    assert d.state.instances == ()
    assert d.user("c") is None


def test_interrupted_rail_waits_until_its_interrupter_completes() -> None:
    d = Driver("""
rails:
  first: {steps: [{user: a}, {bot: b}, {user: c}, {bot: d}]}
  second: {steps: [{user: e}, {bot: f}, {user: g}, {bot: h}]}
""")
    d.user("a")
    d.bot("b")
    d.user("e")
    d.bot("f")
    assert d.status("first") is RailStatus.INTERRUPTED
    assert d.user("g") == "bot h"
    assert d.bot("h") is None
    assert d.user("c") == "bot d"


def test_rail_at_a_bot_step_is_aborted_by_another_bot_intent() -> None:
    d = Driver("""
rails:
  low: {steps: [{user: a}, {bot: b}]}
  high: {priority: 2.0, steps: [{user: a}, {bot: c}]}
""")
    assert d.user("a") == "bot c"
    assert d.bot("c") is None
    assert d.state.instances == ()


def test_several_rails_on_one_intent_advance_together_on_the_same_bot_intent() -> None:
    d = Driver("""
rails:
  one: {steps: [{user: a}, {bot: b}, {bot: c}]}
  two: {steps: [{user: a}, {bot: b}, {bot: d}]}
""")
    assert d.user("a") == "bot b"
    assert d.bot("b") == "bot c"
    assert d.bot("c") is None


def test_first_in_file_order_wins_a_tie() -> None:
    d = Driver("""
rails:
  one: {steps: [{user: x}, {bot: first}]}
  two: {steps: [{user: x}, {bot: second}]}
""")
    assert d.user("x") == "bot first"


def test_older_rail_later_in_the_file_loses_the_tie() -> None:
    d = Driver("""
rails:
  fresh: {steps: [{user: y}, {bot: from fresh}]}
  old: {steps: [{user: x}, {bot: asked}, {user: y}, {bot: from old}]}
""")
    d.user("x")
    d.bot("asked")
    assert d.user("y") == "bot from fresh"


@pytest.mark.parametrize("priority, expected", [(1.1, "bot second"), (1.0, "bot first"), (0.5, "bot first")])
def test_strictly_highest_priority_wins(priority: float, expected: str) -> None:
    d = Driver(f"""
rails:
  one: {{steps: [{{user: x}}, {{bot: first}}]}}
  two: {{priority: {priority}, steps: [{{user: x}}, {{bot: second}}]}}
""")
    assert d.user("x") == expected


def test_step_that_the_event_did_not_move_keeps_its_place_at_nine_tenths() -> None:
    d = Driver("""
rails:
  talk: {priority: 1.0, steps: [{user: x}, {bot: y}]}
  alarm: {priority: 0.95, steps: [{event: {type: rang}}, {bot: ring}]}
""")
    assert d.user("x") == "bot y"
    assert d.event("rang") == "bot ring"
    assert d.last is not None and d.last.next is not None
    assert d.last.next.priority == pytest.approx(0.95)


def test_unmoved_step_still_wins_over_a_weaker_one() -> None:
    d = Driver("""
rails:
  talk: {priority: 1.0, steps: [{user: x}, {bot: y}]}
  alarm: {priority: 0.8, steps: [{event: {type: rang}}, {bot: ring}]}
""")
    d.user("x")
    assert d.event("rang") == "bot y"
    assert d.last is not None and d.last.next is not None
    assert d.last.next.priority == pytest.approx(0.9)


def test_unrelated_event_leaves_everything() -> None:
    d = Driver(TWO_TURNS)
    d.user("ask")
    assert d.event("something") == "bot offer more"
    d.bot("offer more")
    assert d.event("something") is None
    assert d.user("agree") == "bot give more"


def test_rail_does_not_start_twice_unless_allowed() -> None:
    text = "rails:\n  r: {allow_multiple: %s, steps: [{user: x}, {bot: a}, {user: y}, {bot: b}]}"
    d = Driver(text % "false")
    d.user("x")
    d.bot("a")
    assert d.user("x") is None
    d = Driver(text % "true")
    d.user("x")
    d.bot("a")
    assert d.user("x") == "bot a"


def test_completed_rail_starts_again() -> None:
    d = Driver(TWO_TURNS)
    for _ in range(3):
        assert d.user("ask weather") == "bot tell weather"
        assert d.bot("tell weather") is None


def test_dots_match_any_intent() -> None:
    d = Driver("rails:\n  r: {steps: [{user: start}, {bot: ask name}, {user: ...}, {bot: thank}]}")
    d.user("start")
    d.bot("ask name")
    assert d.user("unknown message") == "bot thank"


def test_leading_logic_runs_before_the_start_and_only_counts_if_it_starts() -> None:
    d = Driver("""
rails:
  r: {steps: [{set: {seen: true}}, {if: "vars.vip", then: [{user: x}], else: [{user: y}]}, {bot: z}]}
""")
    assert d.user("x") is None
    assert "seen" not in d.state.vars
    assert d.user("y") == "bot z"
    assert d.state.vars["seen"] is True
    d.bot("z")
    d.state = MachineState(vars={"vip": True})
    assert d.user("y") is None
    assert d.user("x") == "bot z"


def test_failing_leading_logic_is_spoken_only_if_the_rail_would_have_started() -> None:
    d = Driver('rails:\n  r: {steps: [{set: {n: "vars.n + 1"}}, {user: x}, {bot: z}]}')
    assert d.user("other") is None
    assert d.user("x") == "failure n is not set"


def test_unset_in_a_condition_equals_none() -> None:
    d = Driver("""
rails:
  r:
    steps:
      - user: x
      - {if: "vars.count > 2", then: [{bot: many}], else: [{bot: few}]}
      - {if: "vars.count == none", then: [{bot: unset}]}
""")
    assert d.user("x") == "bot few"
    assert d.bot("few") == "bot unset"


def test_branch_takes_whichever_comes() -> None:
    text = """
rails:
  r:
    steps:
      - user: x
      - bot: ask
      - branch:
          - {user: agree, then: [{bot: go ahead}]}
          - {event: {type: timeout}, then: [{bot: give up}]}
      - bot: done
"""
    d = Driver(text)
    d.user("x")
    d.bot("ask")
    assert d.user("agree") == "bot go ahead"
    assert d.bot("go ahead") == "bot done"
    d = Driver(text)
    d.user("x")
    d.bot("ask")
    assert d.event("timeout") == "bot give up"
    assert d.bot("give up") == "bot done"
    d = Driver(text)
    d.user("x")
    d.bot("ask")
    assert d.user("other") is None
    assert d.user("agree") == "bot go ahead"


def test_event_step_matches_type_and_payload_and_is_not_disturbed_by_talk() -> None:
    d = Driver("""
rails:
  r: {steps: [{user: x}, {bot: a}, {event: {type: alarm, name: tea}}, {bot: ring}]}
  other: {steps: [{user: y}, {bot: b}, {user: z}, {bot: c}]}
""")
    d.user("x")
    d.bot("a")
    d.user("y")
    d.bot("b")
    assert d.event("alarm", name="eggs") is None
    assert d.event("alarm", name="tea") == "bot ring"


EXTENSION = """
rails:
  answer: {steps: [{user: x}, {bot: a}, {bot: b}]}
  disclaimer: {kind: extension, steps: [{bot: a}, {bot: note}]}
"""


def test_extension_runs_on_a_bot_intent_and_the_rail_goes_on() -> None:
    d = Driver(EXTENSION)
    assert d.user("x") == "bot a"
    assert d.bot("a") == "bot note"
    assert d.bot("note") == "bot b"
    assert d.bot("b") is None
    assert d.state.instances == ()


def test_extension_of_several_steps_gives_back_what_it_aborted_at_its_end() -> None:
    d = Driver(EXTENSION.replace("{bot: note}", "{bot: note}, {say: hm}, {bot: note two}"))
    d.user("x")
    assert d.bot("a") == "bot note"
    assert d.bot("note") == "say hm"
    assert d.status("answer") is RailStatus.ABORTED
    assert d.last is not None and d.last.next is not None
    assert d.feed(EventKind.SAY, "hm", uid=d.last.next.uid) == "bot note two"
    assert d.bot("note two") == "bot b"


def test_extension_that_waits_for_the_user() -> None:
    d = Driver("""
rails:
  answer: {steps: [{user: x}, {bot: a}, {bot: b}]}
  ask: {kind: extension, steps: [{bot: a}, {bot: helpful}, {user: agree}, {bot: glad}]}
""")
    d.user("x")
    d.bot("a")
    assert d.bot("helpful") is None
    assert d.user("agree") == "bot glad"
    assert d.bot("glad") == "bot b"


def test_rail_waiting_for_the_user_survives_an_extension() -> None:
    d = Driver(EXTENSION.replace("{bot: b}", "{user: agree}, {bot: b}"))
    d.user("x")
    assert d.bot("a") == "bot note"
    assert d.bot("note") is None
    assert d.user("agree") == "bot b"


def test_subrail_is_called_and_comes_back_and_never_starts_by_itself() -> None:
    d = Driver("""
rails:
  main: {steps: [{user: x}, {call: part}, {bot: end}]}
  part: {kind: subrail, steps: [{bot: one}, {user: y}, {bot: two}]}
  own: {kind: subrail, steps: [{user: z}, {bot: never}]}
""")
    assert d.user("z") is None
    assert d.user("x") == "bot one"
    assert d.bot("one") is None
    assert d.user("y") == "bot two"
    assert d.bot("two") == "bot end"


RECURSIVE = """
rails:
  main: {steps: [{user: x}, {call: a%s}, {bot: end}]}
  a: {kind: subrail, steps: [{call: b}]}
  b: {kind: subrail, steps: [{call: a}]}
"""


def test_recursive_subrail_fails() -> None:
    d = Driver(RECURSIVE % "")
    assert d.user("x") == "failure subrail a calls itself"


def test_recursive_subrail_takes_the_error_branch_of_the_call() -> None:
    d = Driver(RECURSIVE % ", on_error: [{bot: sorry}]")
    assert d.user("x") == "bot sorry"
    assert d.bot("sorry") is None


ACTION = """
rails:
  r: {steps: [{user: x}, {do: {action: look, save_to: found%s}}, {bot: end}]}
"""


def test_only_a_successful_action_advances() -> None:
    d = Driver(ACTION % "")
    assert d.user("x") == "do look"
    assert d.done("look", 42) == "bot end"
    assert d.state.vars["found"] == 42


def test_failed_action_takes_the_error_branch_and_the_rail_ends() -> None:
    d = Driver(ACTION % ", on_error: [{bot: sorry}, {bot: bye}]")
    d.user("x")
    assert d.feed(EventKind.FAILED, "look") == "bot sorry"
    assert d.bot("sorry") == "bot bye"
    assert d.bot("bye") is None
    assert d.state.instances == ()


def test_failed_action_without_error_branch_aborts() -> None:
    d = Driver(ACTION % "")
    d.user("x")
    assert d.feed(EventKind.FAILED, "look") is None
    assert d.state.instances == ()


def test_another_event_than_the_awaited_action_aborts() -> None:
    d = Driver(ACTION % "")
    d.user("x")
    assert d.done("other") is None
    assert d.done("look") is None


def test_arithmetic_with_unset_takes_the_error_branch() -> None:
    d = Driver('rails:\n  r: {steps: [{user: x}, {set: {n: "vars.n + 1"}, on_error: [{bot: sorry}]}, {bot: z}]}')
    assert d.user("x") == "bot sorry"


def test_stop_ends_and_the_rail_goes_on_next_turn() -> None:
    d = Driver("rails:\n  r: {steps: [{user: x}, {stop: true}, {user: y}, {bot: z}]}")
    assert d.user("x") == "stop"
    assert d.last is not None and d.last.next is not None
    assert d.feed(EventKind.STOPPED, uid=d.last.next.uid) is None
    assert d.user("y") == "bot z"


def test_always_rail_is_before_every_priority() -> None:
    d = Driver("""
rails:
  loud: {priority: 1000, steps: [{user: x}, {bot: loud}]}
  safe: {always: true, priority: 0.5, steps: [{user: x}, {bot: safe}]}
""")
    assert d.user("x") == "bot safe"


def test_end_of_turn_drops_steps_nobody_did() -> None:
    d = Driver(TWO_TURNS)
    d.user("ask")
    state = end_turn(d.rails, d.state)
    assert state.instances == ()


def test_a_step_costs_the_same_at_turn_1_and_at_turn_1000() -> None:
    text = "rails:\n" + "".join(
        f"  r{i}: {{steps: [{{user: ask {i}}}, {{bot: offer {i}}}, {{user: agree {i}}}, {{bot: give {i}}}]}}\n"
        for i in range(50)
    )
    d = Driver(text)
    work = []
    for turn in range(1000):
        i = turn % 50
        total = 0
        for kind, name in (("user", "ask"), ("bot", "offer"), ("user", "agree"), ("bot", "give")):
            d.user(f"{name} {i}") if kind == "user" else d.bot(f"{name} {i}")
            assert d.last is not None
            total += d.last.work
        work.append(total)
    assert work[0] == work[-1]
    assert max(work) == min(work)


def test_state_does_not_grow_with_rails_left_unfinished() -> None:
    d = Driver(TWO_TURNS)
    sizes = set()
    for _ in range(200):
        d.user("ask")
        d.bot("offer more")
        d.user("ask weather")
        d.bot("tell weather")
        d.state = end_turn(d.rails, d.state)
        sizes.add(len(d.state.instances))
    assert sizes == {1}
