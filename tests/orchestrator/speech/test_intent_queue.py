from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.lanes import Behaviour, IntentState
from orchestrator.speech.intent_queue import IntentQueue, Way


class Log:
    def __init__(self):
        self.steps: list[tuple[str, str, str | None]] = []

    def __call__(self, intent, change):
        assert change.text == intent.text
        self.steps.append((intent.intent_id, str(change.state), change.reason))

    def ends(self):
        return [step for step in self.steps if step[1] in ("played", "dropped")]

    def of(self, name):
        return [state for intent, state, _ in self.steps if intent == name]

    def reason(self, name):
        return next(reason for intent, state, reason in self.steps if intent == name and state == "dropped")


def intent(name, generation="g-1", order=1, text="Hello.", **more):
    return SpeechIntent(intent_id=name, generation_id=generation, generation_order=order, text=text, **more)


def make(**more):
    log = Log()
    return IntentQueue(on_state=log, **more), log


def prepare(queue, now_s=0.0):
    """Synthesise everything that waits."""
    while (entry := queue.next_to_synthesise(now_s)) is not None:
        queue.synthesised(entry.intent.intent_id, 1.0, now_s)


def take(queue, now_s=0.0):
    """Hand everything over that may be."""
    taken = []
    while (entry := queue.next_for_output(now_s)) is not None:
        taken.append(entry.intent.intent_id)
    return taken


def test_an_intent_goes_through_its_states_once():
    queue, log = make()
    assert queue.submit(intent("a"), 0.0)
    prepare(queue)
    assert take(queue) == ["a"]
    queue.playing("a")
    queue.played_out("a")
    assert log.of("a") == ["queued", "synthesising", "ready", "playing", "played"]
    assert len(queue) == 0
    assert queue.played == 1


def test_order_is_kept_although_a_later_one_is_ready_first():
    queue, _ = make()
    queue.submit(intent("a"), 0.0)
    queue.submit(intent("b"), 0.0)
    queue.next_to_synthesise(0.0)
    queue.next_to_synthesise(0.0)
    queue.synthesised("b", 1.0, 0.0)
    assert take(queue) == []
    queue.synthesised("a", 1.0, 0.0)
    assert take(queue) == ["a", "b"]


def test_failed_synthesis_frees_its_place_and_is_shown_after_what_sounds():
    queue, log = make()
    for name in "abc":
        queue.submit(intent(name), 0.0)
    queue.next_to_synthesise(0.0)
    queue.synthesised("a", 1.0, 0.0)
    queue.next_to_synthesise(0.0)
    queue.failed("b", 0.0)
    prepare(queue)
    assert take(queue) == ["a"]
    queue.played_out("a")
    [entry] = [queue.next_for_output(0.0)]
    assert (entry.intent.intent_id, entry.way) == ("b", Way.SHOWN)
    assert take(queue) == []
    queue.played_out("b")
    assert take(queue) == ["c"]
    assert [name for name, _, _ in log.ends()] == ["a", "b"]


def test_replace_takes_the_place_of_the_waiting_one_with_its_slot():
    queue, log = make()
    queue.submit(intent("a", slot="status"), 0.0)
    queue.submit(intent("b"), 0.0)
    queue.submit(intent("c", slot="status", behaviour=Behaviour.REPLACE), 0.0)
    prepare(queue)
    assert take(queue) == ["c", "b"]
    assert log.reason("a") == "replaced"


def test_replace_stops_the_current_one_with_its_slot_and_keeps_the_order_behind():
    queue, log = make()
    queue.submit(intent("a", slot="status"), 0.0)
    queue.submit(intent("b"), 0.0)
    prepare(queue)
    assert take(queue) == ["a", "b"]
    queue.playing("a")
    queue.submit(intent("c", slot="status", behaviour=Behaviour.REPLACE), 0.0)
    assert sorted(queue.take_withdrawn()) == ["a", "b"]
    assert take(queue) == []
    prepare(queue)
    assert take(queue) == ["c", "b"]
    assert log.of("a")[-1] == "dropped"


def test_replace_without_its_like_queues():
    queue, _ = make()
    queue.submit(intent("a"), 0.0)
    queue.submit(intent("c", slot="status", behaviour=Behaviour.REPLACE), 0.0)
    prepare(queue)
    assert take(queue) == ["a", "c"]


def test_interrupt_stops_the_current_one_purges_older_generations_and_plays_next():
    queue, log = make()
    queue.submit(intent("old1", "g-1", 1), 0.0)
    queue.submit(intent("old2", "g-1", 1), 0.0)
    queue.submit(intent("same", "g-2", 2), 0.0)
    prepare(queue)
    take(queue)
    queue.playing("old1")
    queue.submit(intent("now", "g-2", 2, behaviour=Behaviour.INTERRUPT), 0.0)
    assert sorted(queue.take_withdrawn()) == ["old1", "old2", "same"]
    prepare(queue)
    assert take(queue) == ["now", "same"]
    assert log.reason("old1") == log.reason("old2") == "interrupted"


def test_interrupt_plays_although_an_older_generation_was_held():
    queue, _ = make()
    queue.submit(intent("a", "g-1", 1), 0.0)
    prepare(queue)
    take(queue)
    queue.playing("a")
    queue.hold("g-1")
    queue.submit(intent("now", "g-2", 2, behaviour=Behaviour.INTERRUPT), 0.0)
    prepare(queue)
    assert take(queue) == ["now"]
    assert not queue.is_held("g-1")


def test_what_is_expired_stale_or_asked_to_be_dropped_leaves_without_effect():
    stale = {"g-9"}
    queue, log = make(is_stale=lambda generation: generation in stale)
    assert not queue.submit(intent("a", expires_at_s=5.0), 5.0)
    assert not queue.submit(intent("b", "g-9"), 0.0)
    assert not queue.submit(intent("c", behaviour=Behaviour.DROP), 0.0)
    assert queue.submit(intent("d", expires_at_s=5.0), 0.0)
    assert queue.submit(intent("e", "g-3"), 0.0)
    assert queue.next_to_synthesise(0.0).intent.intent_id == "d"
    stale.add("g-3")
    queue.drop_overdue(6.0)
    assert {name: log.reason(name) for name in "abcde"} == {
        "a": "expired",
        "b": "stale",
        "c": "behaviour",
        "d": "expired",
        "e": "stale",
    }
    assert queue.dropped == Counter(expired=2, stale=2, behaviour=1)
    assert not queue.synthesised("d", 1.0, 6.0)


def test_what_has_begun_does_not_expire():
    queue, log = make()
    queue.submit(intent("a", expires_at_s=5.0), 0.0)
    prepare(queue)
    take(queue)
    queue.playing("a")
    queue.drop_overdue(9.0)
    assert log.ends() == []


def test_a_held_generation_keeps_back_what_it_has_and_what_comes():
    queue, log = make()
    queue.submit(intent("a"), 0.0)
    prepare(queue)
    take(queue)
    queue.playing("a")
    queue.hold("g-1")
    queue.submit(intent("b"), 0.0)
    prepare(queue)
    assert take(queue) == []
    queue.resume("g-1")
    assert take(queue) == ["b"]
    queue.playing("a")
    assert log.of("a") == ["queued", "synthesising", "ready", "playing", "held", "playing"]


def test_purge_ends_everything_of_a_generation_and_refuses_what_comes_later():
    queue, log = make()
    for name in "ab":
        queue.submit(intent(name), 0.0)
    queue.submit(intent("c", "g-2"), 0.0)
    assert queue.purge("g-1", "user_stop") == 2
    assert not queue.submit(intent("d"), 0.0)
    assert [log.reason(name) for name in "abd"] == ["user_stop"] * 3
    prepare(queue)
    assert take(queue) == ["c"]


def test_overflow_refuses_the_newest_and_counts():
    queue, log = make(capacity=2)
    assert queue.submit(intent("a"), 0.0)
    assert queue.submit(intent("b"), 0.0)
    assert not queue.submit(intent("c"), 0.0)
    assert log.reason("c") == "overflow"
    assert queue.dropped["overflow"] == 1


def test_an_id_is_taken_once():
    queue, log = make()
    queue.submit(intent("a"), 0.0)
    assert not queue.submit(intent("a"), 0.0)
    queue.purge("g-1", "x")
    assert not queue.submit(intent("a", "g-2"), 0.0)
    assert queue.dropped["duplicate"] == 2
    assert len(log.ends()) == 1


def test_an_empty_last_intent_ends_when_all_before_it_has_ended():
    queue, log = make()
    queue.submit(intent("a"), 0.0)
    queue.submit(intent("end", text="", is_last=True), 0.0)
    prepare(queue)
    assert take(queue) == ["a"]
    assert log.of("end") == ["queued"]
    queue.played_out("a")
    assert take(queue) == []
    assert log.of("end") == ["queued", "played"]


OPERATION = st.one_of(
    st.tuples(
        st.just("submit"),
        st.integers(1, 3),
        st.sampled_from([Behaviour.QUEUE, Behaviour.QUEUE, Behaviour.REPLACE, Behaviour.INTERRUPT, Behaviour.DROP]),
        st.sampled_from([None, "slot"]),
        st.sampled_from([None, 3.0]),
        st.booleans(),
    ),
    st.tuples(st.sampled_from(["hold", "resume", "purge", "stale"]), st.integers(1, 3)),
    st.tuples(st.sampled_from(["synth", "fail", "take", "play", "end", "tick", "mute"])),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(OPERATION, max_size=60))
def test_every_intent_ends_exactly_once_whatever_happens(operations):  # noqa: C901 - one branch per operation
    stale: set[str] = set()
    queue, log = make(is_stale=lambda generation: generation in stale, capacity=8)
    submitted: list[str] = []
    synthesising: list[str] = []
    at_output: list[str] = []
    now_s = 0.0

    def settle():
        for name in queue.take_withdrawn():
            assert name in at_output
            at_output.remove(name)

    for operation in operations:
        kind = operation[0]
        if kind == "submit":
            _, order, behaviour, slot, expires_s, is_mark = operation
            name = f"i-{len(submitted)}"
            submitted.append(name)
            queue.submit(
                intent(
                    name,
                    f"g-{order}",
                    order,
                    "" if is_mark else "Hi.",
                    behaviour=behaviour,
                    slot=slot,
                    expires_at_s=expires_s,
                ),
                now_s,
            )
        elif kind == "hold":
            queue.hold(f"g-{operation[1]}")
        elif kind == "resume":
            queue.resume(f"g-{operation[1]}")
        elif kind == "purge":
            queue.purge(f"g-{operation[1]}", "purged")
        elif kind == "stale":
            stale.add(f"g-{operation[1]}")
        elif kind == "synth":
            if synthesising:
                queue.synthesised(synthesising.pop(0), 1.0, now_s)
            elif (entry := queue.next_to_synthesise(now_s)) is not None:
                synthesising.append(entry.intent.intent_id)
        elif kind == "fail" and synthesising:
            queue.failed(synthesising.pop(0), now_s)
        elif kind == "take":
            if (entry := queue.next_for_output(now_s)) is not None:
                settle()
                at_output.append(entry.intent.intent_id)
        elif kind == "play" and at_output:
            queue.playing(at_output[0])
        elif kind == "end" and at_output:
            queue.played_out(at_output.pop(0))
        elif kind == "tick":
            now_s += 1.0
        elif kind == "mute":
            queue.show_instead()
        settle()
        # The output has a leading run of the queue: nothing overtakes.
        in_order = [entry.intent.intent_id for entry in queue.entries()]
        assert at_output == in_order[: len(at_output)]

    for generation in ("g-1", "g-2", "g-3"):
        queue.purge(generation, "end")
    ends = Counter(name for name, _, _ in log.ends())
    assert ends == Counter(submitted)
    assert queue.played + sum(queue.dropped.values()) == len(submitted)
    for name in submitted:
        states = log.of(name)
        assert states[-1] in (IntentState.PLAYED, IntentState.DROPPED)
