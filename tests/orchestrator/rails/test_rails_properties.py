"""Whatever rails and events come, the machine neither raises nor grows, and a stored state goes on as the live one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.rails.env import BoundEvaluator, Expressions
from orchestrator.rails.machine import end_turn, step
from orchestrator.rails.persist import dump_state, load_state
from orchestrator.rails.program import compile_steps
from orchestrator.rails.state import EventKind, MachineState, Rail, RailEvent, RailSet, RailStatus

NAMES = st.sampled_from(["a", "b", "c", "..."])
SIMPLE = st.one_of(
    st.builds(lambda n: {"user": n}, NAMES),
    st.builds(lambda n: {"bot": n}, NAMES),
    st.builds(lambda n: {"say": n}, NAMES),
    st.builds(lambda n: {"event": {"type": n}}, NAMES),
    st.builds(lambda n: {"do": {"action": n, "save_to": "x"}}, NAMES),
    st.just({"set": {"x": "(vars.x or 0) + 1"}}),
    st.just({"set": {"y": "vars.never + 1"}}),
    st.just({"stop": True}),
    st.builds(lambda n: {"call": n}, st.sampled_from(["r0", "r1", "r2", "nowhere"])),
)


def _nested(inner: Any) -> Any:
    steps = st.lists(inner, max_size=3)
    return st.one_of(
        st.builds(lambda t, e: {"if": "vars.x > 1", "then": t, "else": e}, steps, steps),
        st.builds(
            lambda n, t, u: {"branch": [{"user": n, "then": t}, {"event": {"type": "b"}, "then": u}]},
            NAMES,
            steps,
            steps,
        ),
        st.builds(lambda n, t: {"bot": n, "on_error": t}, NAMES, steps),
    )


STEPS = st.lists(st.recursive(SIMPLE, _nested, max_leaves=6), min_size=1, max_size=5)
RAILS = st.lists(
    st.tuples(
        STEPS,
        st.sampled_from(["rail", "rail", "extension", "subrail"]),
        st.sampled_from([0.5, 0.9, 1.0, 2.0]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
EVENTS = st.lists(
    st.tuples(st.sampled_from(list(EventKind)), st.sampled_from(["a", "b", "c", ""]), st.booleans()), max_size=25
)


def _rails(described: Any) -> RailSet:
    return RailSet(
        [
            Rail(id=f"r{i}", program=compile_steps(s), kind=k, priority=p, interruptible=n, allow_multiple=m, index=i)
            for i, (s, k, p, n, m) in enumerate(described)
        ]
    )


@settings(max_examples=150, deadline=None)
@given(RAILS, EVENTS)
def test_any_rails_and_any_events(described: Any, events: Any) -> None:
    rails = _rails(described)
    evaluator = BoundEvaluator(Expressions(), lambda: {"slots": {}})
    state = MachineState()
    last = None
    starts = 0
    for kind, name, own in events:
        uid = last.next.uid if own and last is not None and last.next is not None else None
        event = RailEvent(kind=kind, name=name, uid=uid, value=1)
        last = step(rails, state, event, evaluator)
        stored = load_state(rails, json.loads(json.dumps(dump_state(rails, state))))
        if not any(i.error for i in state.instances):
            again = step(rails, stored, event, evaluator)
            assert again.state == last.state
            assert again.next == last.next
        assert state is not last.state
        state = last.state
        starts += len(described)
        for instance in state.instances:
            assert instance.status is not RailStatus.COMPLETED
            assert instance.frames
        running = [i.rail for i in state.instances if not rails.by_id[i.rail].allow_multiple]
        assert len(running) == len(set(running))
        assert last.work < 20_000
        if last.next is not None:
            assert last.next.uid in {i.uid for i in state.instances if i.status is RailStatus.ACTIVE}
    closed = end_turn(rails, state)
    assert all(i.status is not RailStatus.ACTIVE or i.error is None for i in closed.instances)
