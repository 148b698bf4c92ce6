"""Sound that is still being made while it plays."""

from __future__ import annotations

import numpy as np
import pytest

from audio.playback import Player
from audio.tts.growing import FIRST_S, GrowingSound, resample
from audio.tts.pauses import Pauses
from audio.tts.speech_worker import SpeechWorker
from audio.tts.timing import estimate_words
from audio.tts.voice import StreamingSynthesiser, Utterance
from audio.workers import VirtualScheduler, VirtualWorker
from orchestrator.clock import SystemClock, VirtualClock
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import AppError, OutputFirstSound, OutputResume, OutputWord, TtsFirstPcm
from orchestrator.contracts.intents import SpeechIntent

RATE, BLOCK, LATENCY_S, WORD_S = 8_000, 80, 0.02, 0.25


def tone(frames, rate=RATE):
    return (0.5 * np.sin(np.arange(frames) * 2 * np.pi * 200 / rate)).astype(np.float32)


class Stream:
    def __init__(self, voice, text):
        self.voice = voice
        self.rate_hz = voice.rate_hz
        self.words = estimate_words(text, start_s=0.0, end_s=WORD_S * len(text.split()))
        self.visemes = ()
        self.estimated = False
        self._pcm = tone(round(self.words[-1].end_s * self.rate_hz), self.rate_hz)
        self.frames = len(self._pcm) + 400
        self._at = 0

    @property
    def is_over(self):
        return self._at >= len(self._pcm)

    def read(self, seconds):
        self.voice.reads += 1
        if self.voice.fails_at == self.voice.reads:
            raise PartFailed("tts_failed", "no", part="tts", recoverable=True)
        piece = self._pcm[self._at : self._at + round(seconds * self.rate_hz)]
        self._at += len(piece)
        return piece


class Voice:
    name = "streaming"

    def __init__(self, rate_hz=RATE, fails_at=None):
        self.rate_hz = rate_hz
        self.reads = 0
        self.fails_at = fails_at
        self.texts = []

    def speaks(self, language):
        return language == "en"

    def begin(self, text, *, language, first_s):
        self.texts.append(text)
        return Stream(self, text)

    def synthesise(self, text, *, language):
        stream = Stream(self, text)
        return Utterance(pcm=stream.read(1e9), rate_hz=self.rate_hz, words=stream.words, visemes=(), estimated=False)


class Sink:
    def __init__(self):
        self.events = []

    def post(self, event):
        self.events.append(event)
        return True

    def of(self, kind):
        return [event.payload for event in self.events if isinstance(event.payload, kind)]


class Fresh:
    def __init__(self):
        self.gone = set()

    def is_stale(self, generation_id):
        return generation_id in self.gone


class Rig:
    """Synthesis of a text costs `cost_s` of virtual time; four tenths of it come before the first piece."""

    def __init__(self, voice=None, cost_s=0.5, **more):
        self.clock = VirtualClock(50.0)
        self.scheduler = VirtualScheduler(self.clock)
        self.sink = Sink()
        self.stale = Fresh()
        self.voice = voice or Voice()
        self.player = Player(rate_hz=RATE, clock=self.clock, events=self.sink, resample=resample)
        self.speech = SpeechWorker(
            clock=self.clock,
            events=self.sink,
            staleness=self.stale,
            player=self.player,
            worker=VirtualWorker("tts", self.scheduler, SystemClock()),
            voices=[self.voice],
            synth_cost_s=lambda text: cost_s,
            **more,
        )
        self.count = 0

    def say(self, text, generation="g-1", order=1, **more):
        self.count += 1
        intent = SpeechIntent(
            intent_id=f"i-{self.count}", generation_id=generation, generation_order=order, text=text, **more
        )
        self.speech.submit(intent)

    def run(self, seconds):
        blocks = []
        for _ in range(round(seconds * RATE / BLOCK)):
            out = np.zeros(BLOCK, dtype=np.float32)
            self.player.render(out, self.clock.monotonic_s() + LATENCY_S)
            blocks.append(out)
            self.clock.advance(BLOCK / RATE)
            self.scheduler.run_due()
            self.speech.poll(self.clock.monotonic_s())
        return np.concatenate(blocks)


LONG = "one two three four five six seven eight nine ten eleven twelve."


def holes(sound):
    """Return the lengths of the silent stretches between the first and the last sound, in frames, from 20 on."""
    loud = np.flatnonzero(np.abs(sound) > 1e-4)
    gaps = np.diff(loud) - 1
    return [int(gap) for gap in gaps if gap >= 20]


def test_the_first_sound_does_not_wait_for_the_whole_sentence():
    rig = Rig(cost_s=0.5)
    assert isinstance(rig.voice, StreamingSynthesiser)
    rig.say(LONG)
    sound = rig.run(5.0)
    first = np.flatnonzero(np.abs(sound) > 0.01)[0] / RATE
    assert first == pytest.approx(0.2, abs=0.03)
    assert holes(sound) == []
    assert [word.text for word in rig.sink.of(OutputWord)] == LONG.split()
    assert rig.sink.of(TtsFirstPcm)[0].frames == round(FIRST_S * RATE)
    assert rig.voice.reads > 3
    assert rig.player.starved == 0
    assert rig.speech.is_idle()


def test_what_is_heard_is_the_voice_to_the_sample():
    rig = Rig()
    rig.say(LONG)
    sound = rig.run(5.0)
    start = np.flatnonzero(sound)[0] - 1
    want = tone(round(12 * WORD_S * RATE))
    np.testing.assert_allclose(sound[start : start + len(want)], want, atol=1e-6)
    assert np.count_nonzero(sound[start + len(want) :]) == 0


def test_no_gap_between_sentences_but_the_pause():
    rig = Rig(cost_s=1.0, pauses=Pauses(clause_s=0.1, sentence_s=0.3, paragraph_s=0.6))
    for text in ("one two three four five six,", "seven eight nine ten.", "eleven twelve\n", "thirteen."):
        rig.say(text)
    sound = rig.run(8.0)
    assert holes(sound) == pytest.approx([0.1 * RATE, 0.3 * RATE, 0.6 * RATE], abs=2)
    assert rig.player.starved == 0


def test_pauses_follow_the_setting_while_it_talks():
    rig = Rig(cost_s=0.1)
    for text in ("one two three.", "four.", "five."):
        rig.say(text)
    rig.run(0.02)
    rig.speech.set_pauses(Pauses().scaled(3.0))
    assert holes(rig.run(5.0))[-1] == pytest.approx(0.6 * RATE, abs=2)


def test_a_late_piece_is_a_soft_hole_and_counted_once():
    rig = Rig(cost_s=3.0)
    rig.say(LONG)
    sound = rig.run(9.0)
    assert rig.player.starved >= 1
    assert len(holes(sound)) == rig.player.starved
    assert np.abs(np.diff(sound)).max() < 0.12, "no click where it stops and goes on"
    assert [word.text for word in rig.sink.of(OutputWord)] == LONG.split()


def test_other_rates_come_out_as_if_converted_in_one_go():
    rig = Rig(voice=Voice(rate_hz=11_025))
    rig.say(LONG)
    sound = rig.run(5.0)
    want = resample(tone(round(12 * WORD_S * 11_025), 11_025), 11_025, RATE)
    start = np.flatnonzero(np.abs(sound) > 1e-5)[0]
    offset = np.flatnonzero(np.abs(want) > 1e-5)[0]
    got = sound[start - offset : start - offset + len(want)]
    np.testing.assert_allclose(got, want, atol=2e-3)


def test_the_rest_is_not_made_for_an_answer_that_was_cancelled():
    rig = Rig(cost_s=2.0)
    rig.say(LONG)
    rig.run(0.9)
    reads = rig.voice.reads
    rig.stale.gone.add("g-1")
    rig.speech.purge("g-1", "cancelled")
    rig.say("Yes.", generation="g-2", order=2)
    sound = rig.run(3.0)
    assert np.flatnonzero(sound).size
    assert rig.voice.reads <= reads + 2, "one piece may be under way, one is the new answer's"
    assert rig.speech.is_idle()


def test_a_held_answer_goes_on_from_its_growing_sound_without_a_new_call():
    rig = Rig(cost_s=1.0)
    rig.say(LONG)
    rig.run(0.8)
    rig.speech.hold("g-1")
    rig.run(1.5)
    rig.speech.resume("g-1")
    rig.run(5.0)
    assert rig.voice.texts == [LONG]
    (resumed,) = rig.sink.of(OutputResume)
    assert resumed.repeated_words <= 1
    whole = [word.text for word in rig.sink.of(OutputWord) if not word.cut]
    assert whole == LONG.split()


def test_an_answer_that_passes_a_held_one_gets_its_sound_first():
    rig = Rig(cost_s=2.0)
    rig.say(LONG)
    rig.run(0.9)
    rig.speech.hold("g-1")
    rig.run(0.1)
    rig.say("Quick.", generation="g-2", order=2)
    rig.run(2.0)
    assert [first.words[0].text for first in rig.sink.of(OutputFirstSound)] == ["one", "Quick."]
    assert rig.player.holds("g-1")


def test_a_device_of_another_rate_in_the_middle_of_it():
    rig = Rig(cost_s=1.5)
    rig.say(LONG)
    rig.run(0.9)
    rig.player.detach()
    rig.player.attach(RATE * 2)
    for _ in range(900):
        out = np.zeros(BLOCK * 2, dtype=np.float32)
        rig.player.render(out, rig.clock.monotonic_s() + LATENCY_S)
        rig.clock.advance(BLOCK / RATE)
        rig.scheduler.run_due()
        rig.speech.poll(rig.clock.monotonic_s())
    words = [word.text for word in rig.sink.of(OutputWord) if not word.cut]
    assert words == LONG.split()
    assert rig.speech.is_idle()


def test_a_voice_that_fails_in_mid_sentence_ends_it_and_is_told_once():
    rig = Rig(voice=Voice(fails_at=3))
    rig.say(LONG)
    rig.run(5.0)
    assert [error.code for error in rig.sink.of(AppError)] == ["tts_failed"]
    assert rig.speech.is_idle()
    rig.say("Again.")
    rig.run(2.0)
    assert rig.sink.of(OutputWord)[-1].text == "Again."


def test_pieces_double_up_to_a_bound():
    sound = GrowingSound(Stream(Voice(), " ".join(["word"] * 60)), first_s=FIRST_S)
    assert sound.first_frames == round(FIRST_S * RATE)
    while not sound.is_over:
        assert sound.next_share <= 1.5 * RATE / (60 * WORD_S * RATE) + 1e-9
        sound.grow()


def test_a_paragraph_a_sentence_and_a_clause_end_with_different_breaths():
    pauses = Pauses()
    ends = [pauses.after(text) for text in ("so,", "So.", "So.\n", "这样，", "这样。", "no mark")]
    assert ends == [0.12, 0.2, 0.45, 0.12, 0.2, 0.2]
