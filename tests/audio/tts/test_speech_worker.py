from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio.playback import Player
from audio.tts.speech_worker import SpeechWorker
from audio.tts.timing import estimate_words
from audio.tts.voice import Utterance
from audio.workers import ThreadWorker, VirtualScheduler, VirtualWorker
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import (
    AppError,
    IntentStateChanged,
    OutputCut,
    OutputFirstSound,
    OutputResume,
    OutputStateChanged,
    OutputWord,
    TtsFirstPcm,
)
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.lanes import Behaviour

RATE, BLOCK, LATENCY_S = 8_000, 80, 0.02
COST_S = 0.1


class Voice:
    """Says every word in 0.2 s; a text with `boom` fails."""

    def __init__(self, name="fake", languages=("en",)):
        self.name = name
        self._languages = languages
        self.texts: list[str] = []

    def speaks(self, language):
        return language in self._languages

    def synthesise(self, text, *, language):
        self.texts.append(text)
        if "boom" in text:
            raise PartFailed("tts_failed", "no", part="tts", recoverable=True)
        if "crash" in text:
            raise RuntimeError("unexpected")
        words = estimate_words(text, start_s=0.0, end_s=0.2 * max(1, len(text.split())))
        frames = round(words[-1].end_s * RATE)
        return Utterance(
            pcm=np.full(frames, 0.5, dtype=np.float32), rate_hz=RATE, words=words, visemes=(), estimated=False
        )


class Sink:
    def __init__(self):
        self.events = []

    def post(self, event):
        self.events.append(event)
        return True

    def of(self, kind):
        return [event for event in self.events if isinstance(event.payload, kind)]


class Stale:
    def __init__(self):
        self.gone: set[str] = set()

    def is_stale(self, generation_id):
        return generation_id in self.gone


class Rig:
    def __init__(self, voices=None, **more):
        self.clock = VirtualClock(50.0)
        self.scheduler = VirtualScheduler(self.clock)
        self.sink = Sink()
        self.stale = Stale()
        self.voices = voices if voices is not None else [Voice()]
        self.player = Player(rate_hz=RATE, clock=self.clock, events=self.sink)
        self.speech = SpeechWorker(
            clock=self.clock,
            events=self.sink,
            staleness=self.stale,
            player=self.player,
            worker=VirtualWorker("tts", self.scheduler, SystemClock()),
            voices=self.voices,
            synth_cost_s=lambda text: COST_S,
        )
        self.count = 0
        self.out: list[np.ndarray] = []

    def say(self, text, generation="g-1", order=1, **more):
        self.count += 1
        name = f"i-{self.count}"
        self.speech.submit(
            SpeechIntent(intent_id=name, generation_id=generation, generation_order=order, text=text, **more)
        )
        return name

    def run(self, seconds, device=True):
        blocks = []
        for _ in range(round(seconds * RATE / BLOCK)):
            out = np.zeros(BLOCK, dtype=np.float32)
            if device:
                self.player.render(out, self.clock.monotonic_s() + LATENCY_S)
            blocks.append(out)
            self.clock.advance(BLOCK / RATE)
            self.scheduler.run_due()
            self.speech.poll(self.clock.monotonic_s())
        self.out.extend(blocks)
        return np.concatenate(blocks)

    def states(self, name):
        return [str(event.payload.state) for event in self.sink.of(IntentStateChanged) if event.intent_id == name]

    def reason(self, name):
        changes = [event.payload for event in self.sink.of(IntentStateChanged) if event.intent_id == name]
        return changes[-1].reason

    def heard(self, name=None):
        return [
            event.payload.text
            for event in self.sink.of(OutputWord)
            if not event.payload.cut and name in (None, event.intent_id)
        ]

    def output_states(self):
        return [event.payload.state for event in self.sink.of(OutputStateChanged)]


def test_sentences_are_spoken_in_order_while_the_next_is_made():
    rig = Rig()
    names = [rig.say("One two three."), rig.say("Four five."), rig.say("Six.")]
    rig.run(3.0)
    assert rig.heard() == ["One", "two", "three.", "Four", "five.", "Six."]
    for name in names:
        assert rig.states(name) == ["queued", "synthesising", "ready", "playing", "played"]
    starts = [event.payload.at_s for event in rig.sink.of(OutputFirstSound)]
    assert starts[0] == pytest.approx(50.0 + COST_S + LATENCY_S, abs=0.011)
    assert starts[1] - starts[0] == pytest.approx(0.6 + 0.2, abs=0.001)
    assert len(rig.sink.of(TtsFirstPcm)) == 3
    assert rig.output_states() == ["speaking", "queue_empty"]
    assert rig.speech.is_idle()


def test_only_a_little_is_synthesised_ahead():
    rig = Rig()
    for index in range(6):
        rig.say(f"Word {index} and more words to say.")
    rig.run(0.5)
    assert len(rig.voices[0].texts) == 3
    rig.run(1.5)
    assert len(rig.voices[0].texts) == 4


def test_hold_and_resume_go_on_from_the_held_sound_without_new_synthesis():
    rig = Rig()
    name = rig.say("One two three four five six seven eight.")
    rig.run(0.7)
    rig.speech.hold("g-1")
    later = rig.say("Nine ten.")
    silence = rig.run(1.0)
    assert not silence[BLOCK:].any()
    assert rig.states(name)[-1] == "held"
    rig.speech.resume("g-1")
    rig.run(3.0)
    assert rig.heard() == [*["One", "two", "three", "four", "five", "six", "seven"], "eight.", "Nine", "ten."]
    assert rig.voices[0].texts == ["One two three four five six seven eight.", "Nine ten."]
    assert rig.states(name)[-3:] == ["held", "playing", "played"]
    assert rig.states(later)[-1] == "played"
    assert len(rig.sink.of(OutputResume)) == 1


def test_a_cut_by_the_ears_holds_the_queue_too():
    rig = Rig()
    name = rig.say("One two three four.")
    rig.run(0.5)
    assert rig.player.cut() == "g-1"
    rig.say("Other.", generation="g-1")
    rig.run(0.5)
    assert rig.states(name)[-1] == "held"
    rig.speech.purge("g-1", "user_barge_in")
    rig.run(0.5)
    assert {rig.reason(name), rig.reason("i-2")} == {"user_barge_in"}
    assert rig.output_states()[-2:] == ["stopped", "queue_empty"] or rig.output_states()[-1] == "stopped"
    assert rig.speech.is_idle()


def test_a_stale_generation_is_dropped_before_its_sound_is_written():
    rig = Rig()
    name = rig.say("One two.")
    rig.stale.gone.add("g-1")
    out = rig.run(1.0)
    assert not out.any()
    assert rig.states(name)[-1] == "dropped"
    assert rig.reason(name) == "stale"


def test_failed_synthesis_is_told_once_and_shown_at_reading_pace_and_the_rest_is_spoken():
    rig = Rig()
    first, second, third = rig.say("Well boom now."), rig.say("Then fine."), rig.say("A crash too.")
    rig.run(6.0)
    assert rig.heard(first) == ["Well", "boom", "now."]
    assert rig.heard(second) == ["Then", "fine."]
    assert rig.heard(third) == ["A", "crash", "too."]
    assert [rig.states(name)[-1] for name in (first, second, third)] == ["played"] * 3
    assert all(event.payload.estimated for event in rig.sink.of(OutputWord) if event.intent_id == first)
    assert [event.payload.code for event in rig.sink.of(AppError)] == ["tts_failed"]


def test_a_failing_voice_is_replaced_by_the_next_one_that_speaks_the_language():
    class Broken(Voice):
        def synthesise(self, text, *, language):
            raise PartFailed("tts_failed", "no", part="tts", recoverable=True)

    rig = Rig([Broken(), Voice("second")])
    rig.say("Hello you.")
    assert rig.run(1.0).any()
    assert rig.heard() == ["Hello", "you."]


def test_chinese_goes_to_the_voice_that_speaks_it_after_one_notice():
    chinese = Voice("espeak", languages=("en", "zh"))
    rig = Rig([Voice("english"), chinese])
    rig.say("你好。")
    rig.say("再见。")
    rig.say("Bye.")
    rig.run(3.0)
    assert chinese.texts == ["你好。", "再见。"]
    assert [event.payload.code for event in rig.sink.of(AppError)] == ["voice_fallback_zh"]
    assert rig.heard() == ["你", "好。", "再", "见。", "Bye."]


def test_a_language_no_voice_speaks_is_only_shown():
    rig = Rig([Voice()])
    name = rig.say("你好吗？")
    out = rig.run(3.0)
    assert not out.any()
    assert rig.heard() == ["你", "好", "吗？"]
    assert rig.states(name)[-1] == "played"


def test_muted_speech_is_shown_and_counts_when_read():
    rig = Rig()
    playing = rig.say("One two three four.")
    rig.run(0.5)
    rig.speech.set_muted(True)
    shown = rig.say("Five six.")
    out = rig.run(4.0)
    assert not out[2 * BLOCK :].any()
    assert rig.heard(playing) == ["One", "two", "three", "four."]
    assert rig.heard(shown) == ["Five", "six."]
    assert "muted" in rig.output_states()
    rig.speech.set_muted(False)
    rig.say("Seven.")
    assert rig.run(1.0).max() == pytest.approx(0.5)


def test_shown_text_is_held_and_resumed_and_purged_like_sound():
    rig = Rig([])
    name = rig.say("One two three four five six.")
    rig.run(0.6)
    before = rig.heard()
    rig.speech.hold("g-1")
    rig.run(2.0)
    assert rig.heard() == before
    rig.speech.resume("g-1")
    rig.run(0.5)
    assert len(rig.heard()) > len(before)
    rig.speech.purge("g-1", "user_stop")
    count = len(rig.heard())
    rig.run(2.0)
    assert len(rig.heard()) == count < 6
    assert rig.states(name)[-1] == "dropped"


def test_without_a_loudspeaker_the_rest_is_shown_from_the_next_word():
    rig = Rig()
    name = rig.say("One two three four five.")
    rig.say("Six.")
    rig.run(0.55)
    rig.player.detach()
    rig.speech.set_output(False)
    rig.run(4.0, device=False)
    assert rig.heard() == ["One", "two", "three", "four", "five.", "Six."]
    assert rig.states(name)[-1] == "played"
    rig.player.attach(RATE)
    rig.speech.set_output(True)
    rig.say("Seven.")
    assert rig.run(1.0).any()


def test_interrupt_stops_the_sound_and_speaks_next():
    rig = Rig()
    old = rig.say("One two three four five six.")
    rig.run(0.5)
    now = rig.say("Fire!", generation="g-2", order=2, behaviour=Behaviour.INTERRUPT)
    rig.run(1.0)
    assert rig.reason(old) == "interrupted"
    assert rig.states(now)[-1] == "played"
    assert rig.heard(now) == ["Fire!"]
    [cut] = [event.payload for event in rig.sink.of(OutputCut)]
    assert cut.word is not None


def test_a_sentence_made_for_another_rate_is_converted():
    rig = Rig()
    rig.say("One two three.")
    rig.run(0.05)
    rig.player.attach(2 * RATE)
    rig.run(2.0)
    assert rig.heard() == ["One", "two", "three."]
    [first] = [event.payload for event in rig.sink.of(OutputFirstSound)]
    assert first.duration_s == pytest.approx(0.6, abs=0.001)


def test_real_threads_speak_everything_once():
    clock = SystemClock()
    sink = Sink()
    player = Player(rate_hz=RATE, clock=clock, events=sink)
    worker = ThreadWorker("tts-test")
    speech = SpeechWorker(clock=clock, events=sink, staleness=Stale(), player=player, worker=worker, voices=[Voice()])
    stop = threading.Event()

    def device():
        at_s = clock.monotonic_s()
        while not stop.is_set():
            player.render(np.zeros(BLOCK, dtype=np.float32), at_s)
            at_s += BLOCK / RATE
            stop.wait(0.0005)

    def ears():
        while not stop.is_set():
            speech.poll(clock.monotonic_s() + 1e6)
            stop.wait(0.0005)

    threads = [threading.Thread(target=target, name=target.__name__) for target in (device, ears)]
    for thread in threads:
        thread.start()
    try:
        for index in range(30):
            speech.submit(
                SpeechIntent(
                    intent_id=f"i-{index}", generation_id="g-1", generation_order=1, text=f"Word number {index}."
                )
            )
        wait = threading.Event()
        for _ in range(2000):
            if speech.is_idle():
                break
            wait.wait(0.01)
        assert speech.is_idle()
    finally:
        stop.set()
        for thread in threads:
            thread.join(5)
        assert worker.stop(5)
    ends = [e.intent_id for e in sink.of(IntentStateChanged) if e.payload.state == "played"]
    assert ends == [f"i-{index}" for index in range(30)]
    words = [event.payload.text for event in sink.of(OutputWord)]
    assert words == [word for index in range(30) for word in ("Word", "number", f"{index}.")]


OPERATION = st.one_of(
    st.tuples(
        st.just("say"),
        st.integers(1, 3),
        st.sampled_from(["Hi.", "One two three.", "boom", "", "你好。"]),
        st.sampled_from([Behaviour.QUEUE, Behaviour.QUEUE, Behaviour.INTERRUPT, Behaviour.REPLACE]),
    ),
    st.tuples(st.sampled_from(["hold", "resume", "purge", "cancel"]), st.integers(1, 3)),
    st.tuples(st.sampled_from(["cut", "duck", "unduck", "mute", "unmute", "lose", "find"])),
    st.tuples(st.just("run"), st.sampled_from([0.01, 0.05, 0.3, 1.0])),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(OPERATION, max_size=30))
def test_invariants_hold_in_any_order_of_events(operations):  # noqa: C901 - one branch per operation
    rig = Rig()
    gone: dict[str, int] = {}
    said: list[str] = []
    is_lost = False
    for operation in operations:
        kind = operation[0]
        if kind == "say":
            said.append(rig.say(operation[2], f"g-{operation[1]}", operation[1], behaviour=operation[3], slot="s"))
        elif kind == "hold":
            rig.speech.hold(f"g-{operation[1]}")
        elif kind == "resume":
            rig.speech.resume(f"g-{operation[1]}")
        elif kind in ("purge", "cancel"):
            generation = f"g-{operation[1]}"
            if kind == "cancel":
                rig.stale.gone.add(generation)
            rig.speech.purge(generation, "cancelled")
            gone.setdefault(generation, len(rig.sink.events))
        elif kind == "cut":
            rig.player.cut()
        elif kind == "duck":
            rig.player.duck(gain_db=-14.0, ramp_s=0.02)
        elif kind == "unduck":
            rig.player.unduck(ramp_s=0.1)
        elif kind in ("mute", "unmute"):
            rig.speech.set_muted(kind == "mute")
        elif kind == "lose" and not is_lost:
            is_lost = True
            rig.player.detach()
            rig.speech.set_output(False)
        elif kind == "find" and is_lost:
            is_lost = False
            rig.player.attach(RATE)
            rig.speech.set_output(True)
        elif kind == "run":
            rig.run(operation[1], device=not is_lost)
    for generation in ("g-1", "g-2", "g-3"):
        rig.speech.resume(generation)
    for _ in range(100):
        rig.run(0.2, device=not is_lost)
        if rig.speech.is_idle():
            break

    # Every intent that was opened has ended exactly once, and nothing is left "speaking".
    ends = Counter(e.intent_id for e in rig.sink.of(IntentStateChanged) if e.payload.state in ("played", "dropped"))
    assert ends == Counter(said)
    assert rig.speech.is_idle()
    assert rig.player.audible() is None
    # A word counts once, in order.
    counted: dict[str, list[int]] = {}
    for event in rig.sink.of(OutputWord):
        if not event.payload.cut:
            counted.setdefault(event.intent_id, []).append(event.payload.index)
    for indexes in counted.values():
        assert indexes == list(range(len(indexes)))
    # Nothing of a purged generation begins to sound afterwards, and its stop is acknowledged.
    for generation, place in gone.items():
        later = [e for e in rig.sink.events[place:] if e.generation_id == generation]
        assert not [e for e in later if isinstance(e.payload, OutputFirstSound | OutputResume)]
        acknowledged = [e for e in rig.sink.of(OutputStateChanged) if e.generation_id == generation]
        assert "stopped" in [e.payload.state for e in acknowledged]
