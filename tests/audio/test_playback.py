from __future__ import annotations

import numpy as np
import pytest

from audio.playback import Player
from audio.player_render import Segment
from orchestrator.clock import VirtualClock
from orchestrator.contracts.events import (
    Event,
    OutputCut,
    OutputDuck,
    OutputFirstSound,
    OutputResume,
    OutputStateChanged,
    OutputUnduck,
    OutputWord,
    TimedWord,
)
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.speech.words import word_spans

RATE = 48_000
BLOCK = 480
LATENCY_S = 0.025
G1, G2 = GenerationId("g-1"), GenerationId("g-2")
TEXT = "One two, three four five."


class Sink:
    def __init__(self):
        self.events: list[Event] = []

    def post(self, event):
        self.events.append(event)
        return True

    def of(self, kind):
        return [event.payload for event in self.events if isinstance(event.payload, kind)]

    def states(self, generation_id=None):
        return [
            event.payload.state
            for event in self.events
            if isinstance(event.payload, OutputStateChanged)
            and (generation_id is None or event.generation_id == generation_id)
        ]


class Listener:
    def __init__(self):
        self.calls: list[tuple[str, str]] = []

    def on_playing(self, intent_id):
        self.calls.append(("playing", intent_id))

    def on_held(self, generation_id):
        self.calls.append(("held", generation_id))

    def on_played(self, intent_id):
        self.calls.append(("played", intent_id))


class Ring:
    def __init__(self):
        self.blocks: list[np.ndarray] = []
        self.times: list[float] = []

    def write(self, block, at_s):
        self.blocks.append(block.copy())
        self.times.append(at_s)


def segment(name="i-1", generation=G1, text=TEXT, word_s=0.4, level=0.5, tail_s=0.1, freq=0.0, **more):
    """A tone (or, without frequency, a constant) whose words last `word_s` each, with silence behind them."""
    spans = word_spans(text)
    words = tuple(
        TimedWord(
            index=i,
            text=s.text,
            char_start=s.char_start,
            char_end=s.char_end,
            start_s=i * word_s,
            end_s=(i + 1) * word_s,
        )
        for i, s in enumerate(spans)
    )
    frames = round((len(spans) * word_s + tail_s) * RATE)
    sound = round(len(spans) * word_s * RATE)
    pcm = np.zeros(frames, dtype=np.float32)
    t = np.arange(sound) / RATE
    pcm[:sound] = level * (np.sin(2 * np.pi * freq * t) if freq else 1.0)
    return Segment(
        intent_id=IntentId(name), generation_id=generation, text=text, pcm=pcm, rate_hz=RATE, words=words, **more
    )


class Rig:
    """A player on a virtual clock, played block by block."""

    def __init__(self, **more):
        self.clock = VirtualClock(100.0)
        self.sink = Sink()
        self.listener = Listener()
        self.ring = Ring()
        self.player = Player(
            rate_hz=RATE, clock=self.clock, events=self.sink, reference=self.ring, listener=self.listener, **more
        )

    def block(self):
        out = np.full(BLOCK, 9.0, dtype=np.float32)
        self.player.render(out, self.clock.monotonic_s() + LATENCY_S)
        self.clock.advance(BLOCK / RATE)
        self.player.poll(self.clock.monotonic_s())
        return out

    def run(self, seconds):
        return np.concatenate([self.block() for _ in range(round(seconds * RATE / BLOCK))])

    def heard(self):
        return [word.text for word in self.sink.of(OutputWord) if not word.cut]


def test_words_and_times_are_exact_to_the_sample():
    rig = Rig()
    item = segment()
    rig.player.enqueue(item)
    out = rig.run(2.6)
    assert np.array_equal(out[: len(item.pcm)], item.pcm)
    assert not out[len(item.pcm) :].any()
    [first] = rig.sink.of(OutputFirstSound)
    assert first.at_s == pytest.approx(100.0 + LATENCY_S)
    words = rig.sink.of(OutputWord)
    assert [word.text for word in words] == ["One", "two,", "three", "four", "five."]
    for word, planned in zip(words, item.words, strict=True):
        assert word.at_s == pytest.approx(first.at_s + planned.start_s)
        assert word.end_s == pytest.approx(first.at_s + planned.end_s)
        assert not word.cut
    assert rig.listener.calls == [("playing", "i-1"), ("played", "i-1")]
    assert rig.player.is_idle()


def test_a_word_is_reported_only_after_it_has_sounded():
    rig = Rig()
    rig.player.enqueue(segment())
    while not rig.sink.of(OutputWord):
        rig.block()
    assert rig.clock.monotonic_s() >= rig.sink.of(OutputWord)[0].end_s


def test_the_reference_gets_what_was_played_with_its_time():
    rig = Rig()
    rig.player.enqueue(segment(freq=200.0))
    rig.player.duck(gain_db=-12.0, ramp_s=0.02)
    out = rig.run(1.0)
    assert np.array_equal(np.concatenate(rig.ring.blocks), out)
    assert rig.ring.times[0] == pytest.approx(100.0 + LATENCY_S)


def test_sentences_follow_with_the_natural_pause():
    rig = Rig()
    rig.player.enqueue(segment("i-1", tail_s=0.0, pause_after_s=0.2))
    rig.player.enqueue(segment("i-2", tail_s=0.0))
    out = rig.run(4.6)
    loud = np.flatnonzero(out > 0.1)
    gap = np.diff(loud).max() / RATE
    assert gap == pytest.approx(0.2, abs=0.001)
    assert rig.player.starved == 0


def test_a_late_sentence_is_counted_and_gets_no_extra_pause():
    rig = Rig()
    rig.player.enqueue(segment("i-1", tail_s=0.0, pause_after_s=0.2))
    rig.run(3.0)
    rig.player.enqueue(segment("i-2", tail_s=0.0))
    out = rig.block()
    assert out[0] == pytest.approx(0.5)
    rig.run(0.1)
    assert rig.player.starved == 1


def test_duck_lowers_by_12_db_within_a_block_and_20_ms_and_comes_back():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(0.2)
    rig.player.duck(gain_db=-12.0, ramp_s=0.02)
    rig.player.duck(gain_db=-12.0, ramp_s=0.02)
    out = rig.run(0.05)
    settled = out[int(0.02 * RATE) :]
    assert np.all(settled <= 0.5 * 10 ** (-12 / 20) + 1e-4)
    assert np.abs(np.diff(out)).max() < 0.01
    [duck] = rig.sink.of(OutputDuck)
    assert duck.at_s == pytest.approx(100.2 + LATENCY_S)
    rig.player.unduck(ramp_s=0.2)
    out = rig.run(0.3)
    assert out[-1] == pytest.approx(0.5)
    assert np.abs(np.diff(out)).max() < 0.001
    assert len(rig.sink.of(OutputUnduck)) == 1
    assert rig.sink.states() == ["speaking", "ducked", "speaking"]


@pytest.mark.parametrize("blocks", [1, 7, 39, 40, 41, 79, 80, 81, 100, 160, 199])
def test_cut_is_silent_within_a_block_without_click_and_the_ledger_is_exact(blocks):
    rig = Rig()
    item = segment(level=0.5)
    rig.player.enqueue(item)
    before = rig.run(blocks * BLOCK / RATE)
    assert rig.player.cut() == G1
    out = rig.run(0.1)
    played = int(np.flatnonzero(out)[-1]) + 1
    assert played <= BLOCK
    assert np.abs(np.diff(np.concatenate([before[-1:], out]))).max() < 0.01
    position_s = (blocks * BLOCK + int(0.006 * RATE)) / RATE
    [cut] = rig.sink.of(OutputCut)
    assert cut.at_s == pytest.approx(100.0 + LATENCY_S + blocks * BLOCK / RATE)
    assert cut.last_sample_at_s == pytest.approx(100.0 + LATENCY_S + position_s)
    assert cut.held_s == pytest.approx(len(item.pcm) / RATE - position_s)
    complete = [word for word in item.words if word.end_s <= position_s]
    inside = [word for word in item.words if word.start_s < position_s < word.end_s]
    assert rig.heard() == [word.text for word in complete]
    assert cut.word == (inside[0].text if inside else None)
    assert [word.text for word in rig.sink.of(OutputWord) if word.cut] == [word.text for word in inside]
    assert cut.char_offset == item.words[len(complete)].char_start
    assert rig.sink.states(G1) == ["speaking", "stopped", "held"]
    assert rig.player.audible() is None


def test_resume_repeats_the_cut_word_from_the_held_sound_and_counts_it_once():
    rig = Rig()
    item = segment()
    rig.player.enqueue(item)
    rig.run(0.6)
    rig.player.cut()
    rig.run(0.3)
    rig.player.resume(G1)
    out = rig.run(2.2)
    start = int(0.4 * RATE)
    rest = item.pcm[start:]
    assert np.allclose(out[300 : len(rest)], rest[300:])
    assert np.abs(np.diff(out[:500])).max() < 0.01
    [resume] = rig.sink.of(OutputResume)
    assert (resume.from_word, resume.repeated_words, resume.attempt) == ("two,", 1, 1)
    assert rig.heard() == ["One", "two,", "three", "four", "five."]
    again = rig.sink.of(OutputFirstSound)[1]
    assert again.start_offset_s == pytest.approx(0.4)
    assert [word.text for word in again.words] == ["two,", "three", "four", "five."]
    assert rig.listener.calls == [("playing", "i-1"), ("held", G1), ("playing", "i-1"), ("played", "i-1")]


def test_resume_with_less_than_a_second_left_repeats_the_clause():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(1.7)
    rig.player.cut()
    rig.run(0.3)
    rig.player.resume(G1)
    rig.run(2.0)
    [resume] = rig.sink.of(OutputResume)
    assert (resume.from_word, resume.repeated_words) == ("three", 3)
    assert rig.heard() == ["One", "two,", "three", "four", "five."]


def test_resume_right_after_the_cut_waits_for_the_fade():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(0.6)
    rig.player.hold(G1)
    rig.player.resume(G1)
    rig.run(3.0)
    assert rig.heard() == ["One", "two,", "three", "four", "five."]
    assert len(rig.sink.of(OutputResume)) == 1


def test_a_second_cut_inside_the_repeat_loses_and_doubles_nothing():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(1.7)
    rig.player.cut()
    rig.run(0.2)
    rig.player.resume(G1)
    rig.run(0.6)
    rig.player.cut()
    rig.run(0.2)
    rig.player.resume(G1)
    rig.run(3.0)
    assert rig.heard() == ["One", "two,", "three", "four", "five."]
    assert [resume.attempt for resume in rig.sink.of(OutputResume)] == [1, 2]


def test_cut_after_the_last_word_leaves_nothing_to_resume():
    rig = Rig()
    rig.player.enqueue(segment(tail_s=0.5))
    rig.run(2.3)
    rig.player.cut()
    rig.run(0.1)
    rig.player.resume(G1)
    out = rig.run(0.5)
    assert not out.any()
    assert rig.listener.calls[-1] == ("played", "i-1")
    assert rig.sink.of(OutputResume)[0].from_word is None
    assert rig.player.is_idle()


def test_purge_ends_the_generation_and_acknowledges_after_the_sound():
    rig = Rig()
    rig.player.enqueue(segment("i-1"))
    rig.player.enqueue(segment("i-2"))
    rig.run(0.5)
    rig.player.purge(G1)
    assert rig.sink.states(G1) == ["speaking"]
    out = rig.run(0.2)
    assert not out[BLOCK:].any()
    assert rig.sink.states(G1) == ["speaking", "stopped"]
    assert rig.sink.of(OutputCut)[0].held_s == 0.0
    assert not rig.player.enqueue(segment("i-3"))
    assert rig.player.refused == 1
    assert not rig.run(0.5).any()
    assert rig.player.is_idle()


def test_another_generation_plays_while_one_is_held():
    rig = Rig()
    rig.player.enqueue(segment("i-1"))
    rig.player.enqueue(segment("i-2", generation=G2, level=0.25))
    rig.run(0.5)
    rig.player.hold(G1)
    out = rig.run(0.5)[BLOCK:]
    assert out.max() == pytest.approx(0.25)
    assert rig.player.audible().generation_id == G2
    rig.player.purge(G1)
    assert rig.sink.states(G1)[-1] == "stopped"
    assert rig.run(0.2).max() == pytest.approx(0.25)


def test_purge_of_silence_is_acknowledged_at_once():
    rig = Rig()
    rig.player.purge(G2)
    assert rig.sink.states(G2) == ["stopped"]


def test_hold_before_the_first_sound_keeps_the_sentence_whole():
    rig = Rig()
    rig.player.hold(G1)
    rig.player.enqueue(segment())
    assert not rig.run(0.3).any()
    assert rig.sink.of(OutputCut) == []
    rig.player.resume(G1)
    rig.run(2.4)
    assert rig.heard() == ["One", "two,", "three", "four", "five."]
    assert rig.sink.of(OutputResume)[0].repeated_words == 0


def test_withdraw_stops_one_intent_and_the_next_follows():
    rig = Rig()
    rig.player.enqueue(segment("i-1"))
    rig.player.enqueue(segment("i-2", level=0.25))
    rig.run(0.5)
    assert rig.player.withdraw(IntentId("i-1"))
    out = rig.run(0.5)
    assert out[-1] == pytest.approx(0.25)
    assert not rig.player.withdraw(IntentId("i-1"))


def test_a_cut_ends_the_ducking():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(0.2)
    rig.player.duck(gain_db=-14.0, ramp_s=0.01)
    rig.run(0.1)
    rig.player.cut()
    rig.run(0.1)
    rig.player.resume(G1)
    assert rig.run(0.1)[-1] == pytest.approx(0.5)


def test_muted_sound_is_silent_counts_as_shown_and_is_not_audible():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(0.5)
    rig.player.set_muted(True)
    out = rig.run(2.0)
    assert not out[int(0.03 * RATE) :].any()
    words = rig.sink.of(OutputWord)
    assert len(words) == 5
    assert [word.estimated for word in words] == [False, True, True, True, True]
    assert rig.player.audible() is None


def test_audible_tells_generation_start_interruptible_and_text():
    rig = Rig()
    assert rig.player.audible() is None
    rig.player.enqueue(segment(interruptible=False, pause_after_s=0.0, tail_s=0.0))
    rig.run(0.9)
    audible = rig.player.audible()
    assert (audible.generation_id, audible.intent_id, audible.interruptible) == (G1, "i-1", False)
    assert audible.since_s == pytest.approx(100.0 + LATENCY_S)
    assert audible.recent_text == "One two, three"
    rig.run(1.11)
    assert rig.player.audible() is not None
    rig.run(0.03)
    assert rig.player.audible() is None
    assert rig.player.recent_text(10.0) == TEXT
    assert rig.player.recent_text(0.5) == "four five."


def test_without_a_device_the_rest_waits_and_goes_on_at_the_new_rate():
    rig = Rig()
    rig.player.enqueue(segment(freq=100.0))
    rig.run(0.9)
    rig.player.detach()
    rig.clock.advance(1.0)
    rig.player.poll(rig.clock.monotonic_s())
    rig.player.hold(G1)
    assert rig.sink.states(G1)[-1] == "held"
    rig.player.resume(G1)
    rig.player.attach(24_000)
    out = np.zeros(240, dtype=np.float32)
    for _ in range(300):
        rig.player.render(out, rig.clock.monotonic_s() + LATENCY_S)
        rig.clock.advance(0.01)
        rig.player.poll(rig.clock.monotonic_s())
    assert rig.heard() == ["One", "two,", "three", "four", "five."]


def test_a_stalled_callback_does_not_keep_a_stop_waiting_for_ever():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(0.5)
    rig.player.purge(G1)
    rig.clock.advance(1.5)
    rig.player.poll(rig.clock.monotonic_s())
    assert rig.sink.states(G1)[-1] == "stopped"


@pytest.mark.parametrize("size", [64, 441, 1024, 10_000])
def test_any_block_size_plays_the_same_sound(size):
    rig = Rig()
    item = segment(freq=150.0)
    rig.player.enqueue(item)
    parts = []
    for index in range(120_000 // size + 1):
        out = np.empty(size, dtype=np.float32)
        rig.player.render(out, 100.0 + index * size / RATE)
        parts.append(out)
    rig.player.poll(200.0)
    assert np.array_equal(np.concatenate(parts)[: len(item.pcm)], item.pcm)
    assert len(rig.heard()) == 5


def test_the_rate_of_the_device_may_turn_out_another_one_after_the_first_sentence_came():
    rig = Rig()
    rig.player.enqueue(segment(freq=100.0))
    rig.player.attach(16_000)
    assert rig.player.rate_hz == 16_000
    assert not rig.player.enqueue(segment("i-2"))
    out = np.zeros(160, dtype=np.float32)
    for _ in range(250):
        rig.player.render(out, rig.clock.monotonic_s() + LATENCY_S)
        rig.clock.advance(0.01)
        rig.player.poll(rig.clock.monotonic_s())
    assert rig.heard() == ["One", "two,", "three", "four", "five."]


def test_without_any_device_everything_is_handed_back():
    rig = Rig()
    rig.player.enqueue(segment("i-1"))
    rig.player.enqueue(segment("i-2"))
    rig.run(0.9)
    assert rig.player.take_back() == [("i-1", 2), ("i-2", 0)]
    assert rig.player.is_idle()
    rig.player.purge(G1)
    assert rig.sink.states(G1)[-1] == "stopped"


def test_holding_a_silent_generation_does_not_end_what_sounds():
    rig = Rig()
    rig.player.enqueue(segment())
    rig.run(0.5)
    rig.player.hold(G2)
    rig.run(0.1)
    assert rig.sink.states(G2) == ["stopped", "held"]
    rig.run(2.0)
    assert rig.heard() == ["One", "two,", "three", "four", "five."]
    assert rig.sink.states(G1) == ["speaking"]
