from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from audio.playback import Player
from audio.player_render import Segment
from orchestrator.clock import VirtualClock
from orchestrator.contracts.events import OutputStateChanged, OutputWord, TimedWord
from orchestrator.contracts.ids import GenerationId, IntentId

RATE, BLOCK = 8_000, 80
LEVELS = {"g-1": 0.5, "g-2": 0.25, "g-3": 0.125}
WORD_S = 0.05
FADE_FRAMES = round(0.006 * RATE)


class Sink:
    def __init__(self):
        self.events = []

    def post(self, event):
        self.events.append(event)
        return True


def segment(number, generation):
    words = tuple(
        TimedWord(
            index=i, text=f"w{i}", char_start=3 * i, char_end=3 * i + 2, start_s=i * WORD_S, end_s=(i + 1) * WORD_S
        )
        for i in range(6)
    )
    return Segment(
        intent_id=IntentId(f"i-{number}"),
        generation_id=GenerationId(generation),
        text="w0 w1 w2 w3 w4 w5",
        pcm=np.full(round(6 * WORD_S * RATE), LEVELS[generation], dtype=np.float32),
        rate_hz=RATE,
        words=words,
        pause_after_s=0.02,
    )


GENERATION = st.sampled_from(sorted(LEVELS))
OPERATION = st.one_of(
    st.tuples(st.sampled_from(["enqueue", "enqueue", "hold", "resume", "purge"]), GENERATION),
    st.tuples(st.just("run"), st.integers(1, 25)),
    st.tuples(st.just("cut"), st.none()),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(OPERATION, min_size=3, max_size=40))
def test_what_is_stopped_is_not_written_and_what_is_written_is_known(operations):  # noqa: C901 - one branch per operation
    clock = VirtualClock(10.0)
    sink = Sink()
    player = Player(rate_hz=RATE, clock=clock, events=sink)
    silent: set[str] = set()
    purged: set[str] = set()
    count = 0
    enqueued: list[tuple[str, str]] = []
    fading = 0

    def block():
        nonlocal fading
        out = np.empty(BLOCK, dtype=np.float32)
        player.render(out, clock.monotonic_s() + 0.02)
        clock.advance(BLOCK / RATE)
        player.poll(clock.monotonic_s())
        tail = out[FADE_FRAMES:] if fading else out
        fading = max(0, fading - 1)
        for generation, level in LEVELS.items():
            is_heard = bool(np.any(np.isclose(tail, level, atol=1e-4)))
            assert not (is_heard and generation in silent), f"{generation} sounds after it was stopped"

    for kind, value in operations:
        if kind == "enqueue":
            count += 1
            if player.enqueue(segment(count, value)):
                enqueued.append((f"i-{count}", value))
        elif kind == "run":
            for _ in range(value):
                block()
        elif kind == "cut":
            held = player.cut()
            if held is not None:
                silent.add(held)
                fading = 1
        elif kind == "hold":
            player.hold(value)
            silent.add(value)
            fading = 1
        elif kind == "resume":
            player.resume(value)
            if value not in purged:
                silent.discard(value)
        else:
            player.purge(value)
            silent.add(value)
            purged.add(value)
            fading = 1
    for generation in LEVELS:
        player.resume(generation)
        silent -= {generation} - purged
    for _ in range(2000):
        if player.is_idle():
            break
        block()

    assert player.is_idle(), "something is left speaking"
    heard: dict[str, list[int]] = {}
    for event in sink.events:
        if isinstance(event.payload, OutputWord) and not event.payload.cut:
            heard.setdefault(event.intent_id, []).append(event.payload.index)
    for intent_id, generation in enqueued:
        indexes = heard.get(intent_id, [])
        assert indexes == list(range(len(indexes))), "a word was lost, doubled or out of order"
        if generation not in purged:
            assert len(indexes) == 6, "what was not purged is heard to its end"
    stopped = {
        event.generation_id
        for event in sink.events
        if isinstance(event.payload, OutputStateChanged) and event.payload.state == "stopped"
    }
    assert purged <= stopped, "every purge is acknowledged"
